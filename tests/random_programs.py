"""NumPy programs made at random, each from its number alone: source, arguments of any layout, and how exact results are.

Statements are chosen one by one and run by NumPy at once, so that each is one that NumPy takes. Of each variable is
known how large its values may be, which power of two they are multiples of, and what error rounding may have left: so
what is exact must come out bitwise, and only what is exact is asked for what a small error changes wholly.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

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
CASTS = ("float64", "float32", "float16", "int64", "int32", "int16", "uint8", "bool")
LAYOUTS = (
    *["plain"] * 6, "steps", "reversed", "fortran", "transposed", "readonly", "unaligned", "part", "broadcast", "swapped",
)  # fmt: skip
SIZES = (*[0] * 1, *[1] * 2, *range(2, 71))
MOST_ELEMENTS = 20_000
LEAST = 1e-150
"""What values of no known grain are multiples of."""
_MANTISSA = {"float16": 11, "float32": 24, "float64": 53}


@dataclass
class Exactness:
    """Of the values of one array, all its views included: largest magnitude, what they are multiples of, their error."""

    bound: float
    grain: float = 1.0
    error: float = 0.0


@dataclass(frozen=True)
class Argument:
    """How one argument is made: dimensions by name or number, dtype and layout; or a view of an earlier argument."""

    dims: tuple[Any, ...]
    dtype: str
    layout: str
    special: bool = False
    view_of: tuple[int, str] | None = None

    def make(self, sizes: dict[str, int], chosen: np.random.Generator, others: list[Any]) -> Any:
        if self.view_of is not None:
            return eval(self.view_of[1], {"a": others[self.view_of[0]], "np": np})
        if self.layout == "python":
            return (
                chosen.integers(-3, 4).item() / 2
                if self.dtype == "float64"
                else chosen.integers(-3, 9).item()
            )
        shape = tuple(sizes[d] if isinstance(d, str) else d for d in self.dims)
        if self.layout == "scalar":
            return _values((), self.dtype, chosen, self.special)[()]
        return laid_out(_values(shape, self.dtype, chosen, self.special), self.layout)


def _values(shape: tuple[int, ...], dtype: str, chosen: np.random.Generator, special: bool) -> Any:
    """Multiples of a quarter, or ints, among which ties are frequent."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return chosen.random(shape) < 0.5
    if kind == "u":
        return chosen.integers(0, 9, shape).astype(dtype)
    if kind == "i":
        return chosen.integers(-4, 5, shape).astype(dtype)
    found = np.asarray(chosen.integers(-16, 17, shape) / 4, dtype)
    if special:
        kinds = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0], dtype)
        found = np.where(chosen.random(shape) < 0.2, kinds[chosen.integers(0, 5, shape)], found)
    return found


def laid_out(values: Any, layout: str) -> Any:
    """An array with these values that lies in memory in some way."""
    values = np.asarray(values)
    if layout in ("steps", "part") and values.ndim:
        shape = (*values.shape[:-1], values.shape[-1] * (2 if layout == "steps" else 1) + 3)
        whole = np.zeros(shape, values.dtype)
        found = whole[..., 1 : 1 + values.shape[-1] * 2 : 2] if layout == "steps" else whole[..., 2:-1]
    elif layout == "reversed" and values.ndim:
        found = values.copy()[::-1]
    elif layout == "fortran":
        found = np.empty(values.shape, values.dtype, "F")
    elif layout == "transposed":
        found = np.empty(values.shape[::-1], values.dtype).T
    elif layout == "swapped" and values.ndim > 1:
        found = np.empty((values.shape[1], values.shape[0], *values.shape[2:]), values.dtype).swapaxes(0, 1)
    elif layout == "unaligned":
        raw = np.zeros(values.nbytes + 1, np.uint8)
        found = (
            raw[1:].view(values.dtype)[: values.size].reshape(values.shape) if values.size else values.copy()
        )
    elif layout == "broadcast" and values.ndim and values.shape[0]:
        return np.broadcast_to(values[:1], values.shape)
    else:
        found = values.copy()
    found[...] = values
    if layout == "readonly":
        found.flags.writeable = False
    return found


@dataclass
class RandomProgram:
    """A program: `lines` are statements of ``def program(a, b, ...)``; `errors` those of results and of arguments."""

    number: int
    arguments: tuple[Argument, ...]
    sizes: dict[str, int]
    lines: list[str]
    returned: list[str]
    errors: list[float] = field(default_factory=list)
    argument_errors: list[float] = field(default_factory=list)

    @property
    def names(self) -> str:
        return "abcdefgh"[: len(self.arguments)]

    def source(self) -> str:
        result = self.returned[0] if len(self.returned) == 1 else f"({', '.join(self.returned)})"
        body = "".join(f"    {line}\n" for line in [*self.lines, f"return {result}"])
        return f"def program({', '.join(self.names)}):\n{body}"

    def function(self) -> Callable[..., Any]:
        """The program, as a function of its own each time."""
        scope: dict[str, Any] = {"np": np}
        exec(compile(self.source(), f"<random program {self.number}>", "exec"), scope)
        return scope["program"]  # type: ignore[no-any-return]

    def other_sizes(self) -> dict[str, int]:
        """Sizes that are of the same pattern: those of 0 and 1 stay."""
        chosen = np.random.default_rng([self.number, 77])
        found = {name: size for name, size in self.sizes.items() if size < 2}
        for name in self.sizes:
            while name not in found:
                size = int(chosen.integers(2, 71))
                if size not in found.values():
                    found[name] = size
        return found

    def values(self, call: int, sizes: dict[str, int]) -> list[Any]:
        """The arguments of one call."""
        chosen = np.random.default_rng([self.number, call])
        found: list[Any] = []
        for one in self.arguments:
            found.append(one.make(sizes, chosen, found))
        return found

    def __str__(self) -> str:
        kinds = "\n".join(f"  {name}: {one}" for name, one in zip(self.names, self.arguments, strict=True))
        return f"program {self.number}, {self.sizes}\n{self.source()}{kinds}"


def owner(value: Any) -> Any:
    """The array whose memory a view shows."""
    while isinstance(getattr(value, "base", None), np.ndarray):
        value = value.base
    return value


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
        found: list[Argument] = []
        special = self.chance(0.25)
        nested = self.chance(0.3)  # views of one array, most of them
        main = self.pick(DTYPES)
        for _ in range(int(self.chosen.integers(1, 5))):
            dtype = main if self.chance(0.6) else self.pick(DTYPES)
            if found and self.chance(0.6 if nested else 0.05):
                other = int(self.chosen.integers(len(found)))
                one = found[other]
                if one.dims and one.view_of is None:
                    text = self.pick(("a", "a[1:]", "a[:-1]", "a[::-1]", "a[::2]", "a.T", "a[:]"))
                    found.append(Argument(one.dims, one.dtype, "view", view_of=(other, text)))
                    continue
            if found and self.chance(0.15):
                found.append(Argument((), self.pick(("float64", "int64")), "python"))
                continue
            layout = "scalar" if self.chance(0.06) else self.pick(LAYOUTS)
            found.append(Argument(self.pick(shapes) if layout != "scalar" else (), dtype, layout, special))
        return tuple(found)

    # What is known of values

    def exactness(self, value: Any, found: Exactness) -> None:
        of = owner(value)
        kept = self.known.get(id(of))
        if kept is not None and kept[0] is of:
            old = kept[1]
            old.bound, old.grain = max(old.bound, found.bound), min(old.grain, found.grain)
            old.error = max(old.error, found.error)
        else:
            self.known[id(of)] = of, found

    def of(self, value: Any) -> Exactness:
        return self.known[id(owner(value))][1]

    # Operands

    def variables(self) -> list[str]:
        return [name for name in self.scope if name != "np"]

    def array(self, kinds: str = "fiub", exact: bool = False) -> str | None:
        """A variable that is an array, the last ones rather than the first."""
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
        """What may be the other side of an operation with a variable."""
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
        """Add one statement, if what is chosen is one that NumPy takes."""
        self.count += 0.1  # type: ignore[assignment]  # so that it ends
        found = self.pick(STATEMENTS)(self)
        if found is None:
            return
        text, exactness = found
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
        name = (
            line.split(" ")[0].split("[")[0].split("(")[0] if is_new else text[1:].split(" ")[0].split("[")[0]
        )
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
        """Drop what Python enters beside variables."""
        for name in [name for name in self.scope if name.startswith("__")]:
            del self.scope[name]

    def undo(self, name: str, is_new: bool) -> None:
        """Forget a new variable. What is written in place stays written, which is no matter but for values."""
        if is_new:
            self.scope.pop(name)

    def new_name(self) -> str:
        return f"v{len(self.scope)}"


def rounded(found: Exactness, dtype: Any) -> Exactness | None:
    """Of values rounded to a dtype; None where they may come near to its largest."""
    if dtype.kind in "iub":
        if found.error:
            return None
        return Exactness(min(found.bound, 2.0**63), 1.0)
    if found.bound * 4 > float(np.finfo(dtype).max) or found.error * 100 > 1 + found.bound:
        return None
    if found.error or found.bound / found.grain >= 2.0 ** _MANTISSA[dtype.name]:
        error = found.error + 2.0 ** -_MANTISSA[dtype.name] * found.bound
        return Exactness(found.bound, found.grain, error)
    return found


Statement = tuple[str, Exactness]


def sum_of(one: Exactness, other: Exactness) -> Exactness:
    return Exactness(one.bound + other.bound, min(one.grain, other.grain), one.error + other.error)


def either(one: Exactness, other: Exactness) -> Exactness:
    return Exactness(max(one.bound, other.bound), min(one.grain, other.grain), max(one.error, other.error))


def product_of(one: Exactness, other: Exactness) -> Exactness:
    error = one.error * other.bound + other.error * one.bound
    return Exactness(one.bound * other.bound, max(one.grain * other.grain, LEAST), error)


def rough(bound: float, error: float, dtype: Any) -> Exactness:
    """Of what is not exact whatever it comes from."""
    name = np.dtype(dtype).name if np.dtype(dtype).kind == "f" else "float64"
    name = "float16" if np.dtype(dtype).name in ("int8", "uint8", "bool") else name
    name = "float32" if np.dtype(dtype).name in ("int16", "uint16") else name
    return Exactness(bound, LEAST, error + bound * 8 * 2.0 ** -_MANTISSA[name])


def arithmetic(maker: Maker) -> Statement | None:
    one = maker.array()
    if one is None:
        return None
    other = maker.operand(one)
    sign = maker.pick("++--**")
    left, right = (one, other) if maker.chance(0.7) else (other, one)
    x, y = maker.exactness_of(one), maker.exactness_of(other)
    return f"{left} {sign} {right}", product_of(x, y) if sign == "*" else sum_of(x, y)


def fused(maker: Maker) -> Statement | None:
    """Several operations in one statement."""
    one = maker.array("f")
    if one is None:
        return None
    x, (b, c) = maker.exactness_of(one), (maker.operand(one), maker.operand(one))
    y, z = maker.exactness_of(b), maker.exactness_of(c)
    return f"{one} * {b} + {c}", sum_of(product_of(x, y), z)


def unary(maker: Maker) -> Statement | None:
    one = maker.array()
    if one is None:
        return None
    x = maker.exactness_of(one)
    kind = maker.scope[one].dtype.kind
    dtype = maker.scope[one].dtype
    same = [
        "-@",
        "abs(@)",
        "np.abs(@)",
        "np.positive(@)",
        "@.copy()",
        "np.copy(@)",
        "np.ascontiguousarray(@)",
    ]
    steps = [
        "np.sign(@)",
        "np.floor(@)",
        "np.ceil(@)",
        "np.trunc(@)",
        "np.rint(@)",
        "@.round()",
        "np.logical_not(@)",
    ]
    tests = ["np.isnan(@)", "np.isinf(@)", "np.isfinite(@)", "@ > 0", "@ != @"]
    smooth = {
        "np.sin(@)": 1, "np.cos(@)": 1, "np.tanh(@)": 1, "np.arctan(@)": 2, "np.log(abs(@) + 1)": 100, "np.arcsinh(@)": 100,
    }  # fmt: skip
    choice = maker.chosen.random()
    if kind in "iub" and choice < 0.3:
        return f"~{one}" if maker.chance(0.5) else f"np.invert({one})", Exactness(
            max(x.bound + 1, 2.0**64 if kind == "u" else 0)
        )
    if choice < 0.35:
        bound = x.bound if kind != "u" else 2.0**64
        return maker.pick(same).replace("@", one), Exactness(bound, x.grain, x.error)
    if choice < 0.45:
        return maker.pick(("np.square(@)", "@ ** 2", "@ * @")).replace("@", one), product_of(x, x)
    if choice < 0.65 and not x.error:
        return maker.pick(steps).replace("@", one), Exactness(x.bound + 1)
    if choice < 0.75 and not x.error:
        return maker.pick(tests).replace("@", one), Exactness(1)
    if choice < 0.9:
        text = maker.pick(list(smooth))
        return text.replace("@", one), rough(min(float(smooth[text]), 100.0), x.error, dtype)
    if choice < 0.95:
        return f"np.exp(np.minimum({one}, 3))", rough(np.exp(3.0), x.error * np.exp(3.0), dtype)
    return f"np.sqrt(abs({one}))", rough(np.sqrt(x.bound), np.sqrt(x.error), dtype)


def compared(maker: Maker) -> Statement | None:
    one = maker.array(exact=True)
    if one is None:
        return None
    other = maker.operand(one, exact=True)
    if maker.exactness_of(other).error:
        return None
    return f"{one} {maker.pick(('<', '<=', '>', '>=', '==', '!='))} {other}", Exactness(1)


def extreme(maker: Maker) -> Statement | None:
    one = maker.array()
    if one is None:
        return None
    other = maker.operand(one)
    name = maker.pick(("maximum", "minimum", "fmax", "fmin"))
    return f"np.{name}({one}, {other})", either(maker.exactness_of(one), maker.exactness_of(other))


def integer(maker: Maker) -> Statement | None:
    one = maker.array("iub")
    if one is None:
        return None
    other = maker.operand(one, exact=True)
    x, y = maker.exactness_of(one), maker.exactness_of(other)
    if y.error:
        return None
    sign = maker.pick(("&", "|", "^", "//", "%", "<<", ">>"))
    return f"{one} {sign} {other}", Exactness(2.0**63 if sign == "<<" else x.bound + y.bound + 1)


def logical(maker: Maker) -> Statement | None:
    one = maker.array(exact=True)
    if one is None:
        return None
    other = maker.operand(one, exact=True)
    if maker.exactness_of(other).error:
        return None
    return f"np.logical_{maker.pick(('and', 'or', 'xor'))}({one}, {other})", Exactness(1)


def division(maker: Maker) -> Statement | None:
    one = maker.array()
    if one is None:
        return None
    x, dtype = maker.exactness_of(one), maker.scope[one].dtype
    if maker.chance(0.5):
        divisor = maker.pick(("2", "4.0", "0.5", "8"))
        return f"{one} / {divisor}", Exactness(x.bound * 2, x.grain / 8, x.error * 2)
    other = maker.operand(one)
    y = maker.exactness_of(other)
    if maker.chance(0.4) and not x.error and not y.error:
        return f"{one} {maker.pick(('//', '%'))} {maker.pick(('2', '0.75', '-3', '0'))}", Exactness(
            x.bound * 2 + 3, x.grain / 4
        )
    return f"{one} / (abs({other}) + 1)", rough(x.bound, x.error + x.bound * y.error, dtype)


def choice(maker: Maker) -> Statement | None:
    one = maker.array()
    if one is None:
        return None
    x = maker.exactness_of(one)
    kind = maker.chosen.random()
    if kind < 0.3:
        low, high = maker.pick((("-1", "2"), ("0", "1"), ("None", "1.5"), ("0", "None"), ("2", "1")))
        text = maker.pick((f"np.clip({one}, {low}, {high})", f"{one}.clip({low}, {high})"))
        return text, Exactness(x.bound + 2, min(x.grain, 0.5), x.error)
    condition = maker.array("b", exact=True) or "True"
    if kind < 0.5 and not x.error:
        condition = f"{one} > 0"
    other = maker.operand(one)
    return f"np.where({condition}, {one}, {other})", either(x, maker.exactness_of(other))


def cast(maker: Maker) -> Statement | None:
    one = maker.array()
    if one is None:
        return None
    x, value = maker.exactness_of(one), maker.scope[one]
    dtype = maker.pick(CASTS)
    source = one
    if value.dtype.kind == "f" and dtype[0] in "iu":
        if x.error:
            return None
        source = f"np.clip(np.nan_to_num({one}), {0 if dtype[0] == 'u' else -100}, 100)"
        x = Exactness(100)
    if np.dtype(dtype).kind in "iu":
        x = Exactness(
            max(x.bound, 2.0 ** (8 * np.dtype(dtype).itemsize)) if x.bound > 100 else max(x.bound, 256)
        )
    if dtype == "bool":
        if x.error:
            return None
        x = Exactness(1)
    return f"{source}.astype({maker.pick((repr(dtype), f'np.{dtype}' if dtype != 'bool' else 'bool'))})", x


def view(maker: Maker) -> Statement | None:
    one = maker.array()
    if one is None:
        return None
    return view_text(maker, one), maker.exactness_of(one)


def view_text(maker: Maker, one: str) -> str:
    options = [
        "@[1:]", "@[:-1]", "@[::2]", "@[1::3]", "@[::-1]", "@[-2::-2]", "@[1:-1]", "@[...]", "@.T", "@[None]", "@[..., None]",
        "@.reshape(-1)", "@[0]", "@[-1]", "@.ravel()", "@[:0]", "@[2:2]", "np.squeeze(@)",
    ]  # fmt: skip
    if maker.scope[one].ndim > 1:
        options += [
            "@[:, 0]", "@[:, ::-1]", "@[:, 1:-1]", "@[1:, :-1]", "@[:, None]", "@.swapaxes(0, 1)", "@[0, 1:]", "@[::-1, ::-1]",
            "np.moveaxis(@, 0, -1)", "@[..., -1]", "@.reshape(@.shape[1], -1)", "@[::2, 1::2]", "np.diagonal(@)", "@.T[1:]",
            "np.flip(@)", "np.flip(@, 1)", "np.swapaxes(@, 0, -1)",
        ]  # fmt: skip
    return str(maker.pick(options)).replace("@", one)


def reduction(maker: Maker) -> Statement | None:
    one = maker.array()
    if one is None:
        return None
    x, value = maker.exactness_of(one), maker.scope[one]
    axes = ["None", "0", "-1", *(["(0, 1)", "1", "(0, -1)"] if value.ndim > 1 else [])]
    if value.ndim == 0:
        axes = ["None"]
    axis = maker.pick(axes)
    keep = maker.pick(("", "", ", keepdims=True"))
    count = max(value.size, 4900)
    name = maker.pick(
        (
            "sum",
            "sum",
            "max",
            "min",
            "mean",
            "any",
            "all",
            "argmax",
            "argmin",
            "prod",
            "cumsum",
            "count",
            "ptp",
            "var",
        )
    )
    large = 2.0**63 if value.dtype.kind in "iu" else 0.0
    if name in ("any", "all", "argmax", "argmin", "prod", "count") and x.error:
        return None
    if name in ("argmax", "argmin"):
        return f"{one}.{name}({maker.pick(('', '0', 'axis=-1'))})", Exactness(5000)
    if name in ("any", "all"):
        return f"{one}.{name}(axis={axis}{keep})", Exactness(1)
    if name == "count":
        return f"np.count_nonzero({one}, axis={axis})", Exactness(5000)
    if name in ("max", "min"):
        return maker.pick((f"{one}.{name}(axis={axis}{keep})", f"np.{name}({one}, axis={axis}{keep})")), x
    if name == "ptp":
        return f"np.ptp({one}, axis={axis})", Exactness(max(2 * x.bound, large), x.grain, 2 * x.error)
    if name == "prod":
        return (f"{one}.prod(axis={axis}{keep})", Exactness(2.0**63)) if value.dtype.kind in "iub" else None
    if value.dtype == np.float16 and name in ("var", "mean") and x.bound > 50:
        return None
    half = value.dtype == np.float16
    total = Exactness(x.bound * count, x.grain, x.error * count)
    if half:
        total = Exactness(x.bound * min(value.size, count), x.grain, x.error * count)
        if total.bound / total.grain > 2000:  # rounded after each addition, in whichever order
            total.error += total.bound * 2.0**-9
    if name == "cumsum":
        axis = axis if axis in ("None", "0", "-1") else "0"
        return f"{one}.cumsum(axis={axis})", total
    if name == "sum":
        return maker.pick(
            (
                f"{one}.sum(axis={axis}{keep})",
                f"np.sum({one}, axis={axis}{keep})",
                f"np.add.reduce({one}, axis={axis if axis != 'None' or value.ndim else '0'})",
            )
        ), total
    dtype = value.dtype if value.dtype.kind == "f" else np.dtype("float64")
    if name == "mean":
        return f"{one}.mean(axis={axis}{keep})", rough(x.bound, x.error + total.error / count, dtype)
    wide = rough(x.bound**2, x.error * 4 * x.bound, dtype)
    wide.error *= 4
    return f"{one}.var(axis={axis}{keep})", wide


def write(maker: Maker) -> Statement | None:
    one = maker.array()
    if one is None:
        return None
    x = maker.exactness_of(one)
    target = maker.pick(
        ("@[1:-1]", "@[...]", "@[:]", "@[::2]", "@[0]", "@[1:]", "@[:-1]", "@[::-1]", "@[-1]")
    ).replace("@", one)
    if maker.scope[one].ndim > 1 and maker.chance(0.5):
        target = maker.pick(
            ("@[:, 0]", "@[1:, 1:]", "@[:, ::2]", "@[0, :]", "@[:, 1:-1]", "@[..., 0]")
        ).replace("@", one)
    other = maker.operand(one)
    kind = maker.chosen.random()
    y = maker.exactness_of(other)
    if maker.scope[one].dtype.kind in "iub":
        if y.error or np.asarray(eval(other, maker.scope)).dtype.kind == "f":
            maker.tidy()
            return None
        maker.tidy()
    if kind < 0.3:
        return f"!{target} = {other}", y
    if kind < 0.5:
        return f"!{target} += {other}", sum_of(x, y)
    if kind < 0.6:
        return f"!{one} *= {other}", product_of(x, y)
    if kind < 0.7:
        source = view_text(maker, one)
        return f"!{target} = {source}", x
    if kind < 0.8:
        return f"!{one} += {view_text(maker, one)}", sum_of(x, x)
    if kind < 0.9 and not x.error:
        return f"!{one}[{one} > 0] = 1", either(x, Exactness(1))
    return f"!np.add({one}, {other}, out={one})", sum_of(x, y)


def joined(maker: Maker) -> Statement | None:
    one = maker.array()
    if one is None:
        return None
    other = maker.array() or one
    if maker.scope[other].shape[1:] != maker.scope[one].shape[1:] or maker.chance(0.4):
        other = one
    found = either(maker.exactness_of(one), maker.exactness_of(other))
    texts = (
        "np.concatenate([@, $])", "np.concatenate(($, @), axis=-1)", "np.stack([@, $])", "np.stack([@, $], axis=-1)",
        "np.roll(@, 1)", "np.pad(@, 1)", "np.tile(@, 2)", "np.repeat(@, 2, axis=0)", "np.hstack([@, $])", "np.take(@, [0, -1], axis=0)",
        "@[[0, -1]]", "np.tril(@)", "np.diff(@, axis=0)", "np.zeros_like(@)", "np.ones(@.shape, @.dtype) - @", "np.arange(@.shape[0]) + @.size",
    )  # fmt: skip
    bound = Exactness(max(found.bound * 2, 20_000 if True else 0), found.grain, found.error * 2)
    text = maker.pick(texts)
    return text.replace("@", one).replace(
        "$", other
    ), bound if "diff" in text or "- @" in text or "arange" in text else found


STATEMENTS = (
    *[arithmetic] * 5, fused, *[unary] * 4, *[compared] * 2, *[extreme] * 2, integer, logical, division, *[choice] * 2, cast,
    *[view] * 4, *[reduction] * 4, *[write] * 4, *[joined] * 2,
)  # fmt: skip
