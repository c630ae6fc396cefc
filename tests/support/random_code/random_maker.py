"""Make random programs: each statement is drawn and executed by NumPy at once, so that NumPy accepts it."""

import warnings
from typing import Any

import numpy as np
from random_programs import LAYOUTS, Argument, Exactness, RandomProgram, owner
from random_statements import STATEMENTS, rounded

DTYPES = (
    "float64",
    "float32",
    "float32",
    "float64",
    "float16",
    "int64",
    "int32",
    "int8",
    "uint8",
    "uint64",
    "bool",
    "int16",
)
SIZES = (*[0] * 1, *[1] * 2, *range(2, 71))
MOST_ELEMENTS = 20_000


class Maker:
    """Makes one program."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.chosen = np.random.default_rng([number, 5])
        self.scope: dict[str, Any] = {"np": np}
        self.known: dict[int, tuple[Any, Exactness]] = {}
        self.lines: list[str] = []
        self.count = 0

    def pick(self, options: Any) -> Any:
        return options[int(self.chosen.integers(len(options)))]

    def chance(self, probability: float) -> bool:
        return bool(self.chosen.random() < probability)

    def make(self) -> RandomProgram:
        sizes: dict[str, int] = {}
        for name in "nmk":
            size = self.pick(SIZES)
            while size > 1 and size in sizes.values():
                size = self.pick(SIZES)
            sizes[name] = size
        arguments = self.some_arguments()
        program = RandomProgram(self.number, arguments, sizes, self.lines, [])
        values = program.values(0, sizes)
        self.arguments = dict(zip(program.names, values, strict=True))
        for (name, value), argument in zip(self.arguments.items(), arguments, strict=True):
            bound, grain = (9.0, 0.25) if np.asarray(value).dtype.kind == "f" else (9.0, 1.0)
            self.scope[name] = value
            self.exactness(value, Exactness(bound, grain))
            del argument
        steps = int(self.chosen.integers(1, 11))
        while self.count < steps:
            self.step()
        own = [name for name in self.scope if name not in ("np", *self.arguments)]
        returned = [own[-1]] if own else [program.names[0]]
        while self.chance(0.6) and len(returned) < 5:
            returned.append(self.pick(own or list(self.arguments)))
        program.returned = returned
        program.errors = [self.of(self.scope[name]).error for name in returned]
        program.argument_errors = [self.of(value).error for value in values]
        return program

    def some_arguments(self) -> tuple[Argument, ...]:
        shapes: tuple[tuple[Any, ...], ...] = (
            ("n",), ("n",), ("n", "m"), ("n", "m"), ("m",), ("n", 1), (1, "m"), (), ("k", "n", "m"), ("m", "n"),
        )  # fmt: skip
        result: list[Argument] = []
        special = self.chance(0.25)
        nested = self.chance(0.3)  # mostly views of one array
        main = self.pick(DTYPES)
        for _ in range(int(self.chosen.integers(1, 5))):
            dtype = main if self.chance(0.6) else self.pick(DTYPES)
            if result and self.chance(0.6 if nested else 0.05):
                other = int(self.chosen.integers(len(result)))
                earlier = result[other]
                if earlier.dims and earlier.view_of is None:
                    text = self.pick(("a", "a[1:]", "a[:-1]", "a[::-1]", "a[::2]", "a.T", "a[:]"))
                    result.append(Argument(earlier.dims, earlier.dtype, "view", view_of=(other, text)))
                    continue
            if result and self.chance(0.15):
                result.append(Argument((), self.pick(("float64", "int64")), "python"))
                continue
            layout = "scalar" if self.chance(0.06) else self.pick(LAYOUTS)
            result.append(Argument(self.pick(shapes) if layout != "scalar" else (), dtype, layout, special))
        return tuple(result)

    # Facts about values

    def exactness(self, value: Any, facts: Exactness) -> None:
        of = owner(value)
        parent = self.known.get(id(of))
        if parent is not None and parent[0] is of:
            old = parent[1]
            old.bound, old.grain = max(old.bound, facts.bound), min(old.grain, facts.grain)
            old.error = max(old.error, facts.error)
        else:
            self.known[id(of)] = of, facts

    def of(self, value: Any) -> Exactness:
        return self.known[id(owner(value))][1]

    # Operands

    def variables(self) -> list[str]:
        return [name for name in self.scope if name != "np"]

    def array(self, kinds: str = "fiub", exact: bool = False) -> str | None:
        """Draw an array variable, preferring recent ones."""
        names = [
            name
            for name in self.variables()
            if isinstance(self.scope[name], np.ndarray)
            and self.scope[name].dtype.kind in kinds
            and not (exact and self.of(self.scope[name]).error)
        ]
        if not names:
            return None
        return str(self.pick(names[-3:] if self.chance(0.6) else names))

    def operand(self, like: str, exact: bool = False) -> str:
        """Draw the other operand of an operation with a variable."""
        kind = np.asarray(self.scope[like]).dtype.kind
        if self.chance(0.3):
            options = {
                "f": ("2", "0.5", "-1.5", "np.float32(2)", "np.float64(0.25)", "True", "-0.0", "3", "1"),
                "b": ("True", "1", "False", "0.5"),
            }.get(kind, ("2", "3", "1", "0", "0.5", "True", "np.int16(3)", "np.uint8(2)", "-1"))
            return str(self.pick(options))
        fitting = []
        for name in self.variables():
            try:
                np.broadcast_shapes(np.shape(self.scope[name]), np.shape(self.scope[like]))
            except ValueError:
                continue
            if not (exact and self.of(self.scope[name]).error):
                fitting.append(name)
        if fitting and self.chance(0.85):
            return str(self.pick(fitting[-4:] if self.chance(0.5) else fitting))
        other = self.array()
        return str(other if other is not None and not exact else "1")

    def exactness_of(self, text: str) -> Exactness:
        if text in self.scope:
            return self.of(self.scope[text])
        value = eval(text, {"np": np})
        return Exactness(abs(float(value)), 0.25)

    # Statements

    def step(self) -> None:
        """Add a statement, if NumPy accepts the drawn one."""
        self.count += 0.1  # type: ignore[assignment]  # so that it ends
        statement = self.pick(STATEMENTS)(self)
        if statement is None:
            return
        text, exactness = statement
        is_new = not text.startswith("!")
        line = f"{self.new_name()} = {text}" if is_new else text[1:]
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                exec(line, self.scope)
            except (ValueError, TypeError, IndexError, OverflowError, ZeroDivisionError, AttributeError):
                self.tidy()
                return
        self.tidy()
        name = line.split(" ")[0].split("[")[0].split("(")[0] if is_new else text[1:].split(" ")[0].split("[")[0]
        if not is_new and name.startswith("np"):
            name = text.rsplit("out=", 1)[1].rstrip(")")
        value = self.scope[name]
        if not isinstance(value, np.ndarray | np.generic | float | int) or np.size(value) > MOST_ELEMENTS:
            self.undo(name, is_new)
            return
        exactness = rounded(exactness, np.asarray(value).dtype)
        if exactness is None:
            self.undo(name, is_new)
            return
        self.lines.append(line)
        self.count = int(self.count) + 1
        self.exactness(value, exactness)

    def tidy(self) -> None:
        """Remove what Python adds to the namespace."""
        for name in [name for name in self.scope if name.startswith("__")]:
            del self.scope[name]

    def undo(self, name: str, is_new: bool) -> None:
        """Remove a new variable. Writes in place stay, which only affects values."""
        if is_new:
            self.scope.pop(name)

    def new_name(self) -> str:
        return f"v{len(self.scope)}"
