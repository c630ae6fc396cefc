"""Random NumPy programs, each from its number alone: source, arguments of any layout, and the exactness of results.

Each statement is drawn and executed by NumPy at once, so that NumPy accepts it. For each variable the program tracks
the bound of its values, the power of two that they are multiples of, and their rounding error: exact results must be
bitwise equal, and discontinuous operations get exact operands only.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

LAYOUTS = (
    *["plain"] * 6, "steps", "reversed", "fortran", "transposed", "readonly", "unaligned", "part", "broadcast", "swapped",
)  # fmt: skip


@dataclass
class Exactness:
    """Facts about the values of one array and its views: largest magnitude, grain (their common divisor), error."""

    bound: float
    grain: float = 1.0
    error: float = 0.0


@dataclass(frozen=True)
class Argument:
    """How to make one argument: dimensions by name or number, dtype and layout; or a view of an earlier argument."""

    dims: tuple[Any, ...]
    dtype: str
    layout: str
    special: bool = False
    view_of: tuple[int, str] | None = None

    def make(self, sizes: dict[str, int], chosen: np.random.Generator, others: list[Any]) -> Any:
        if self.view_of is not None:
            return eval(self.view_of[1], {"a": others[self.view_of[0]], "np": np})
        if self.layout == "python":
            return chosen.integers(-3, 4).item() / 2 if self.dtype == "float64" else chosen.integers(-3, 9).item()
        shape = tuple(sizes[d] if isinstance(d, str) else d for d in self.dims)
        if self.layout == "scalar":
            return _values((), self.dtype, chosen, self.special)[()]
        return laid_out(_values(shape, self.dtype, chosen, self.special), self.layout)


def _values(shape: tuple[int, ...], dtype: str, chosen: np.random.Generator, special: bool) -> Any:
    """Return multiples of a quarter, or ints, with frequent ties."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return chosen.random(shape) < 0.5
    if kind == "u":
        return chosen.integers(0, 9, shape).astype(dtype)
    if kind == "i":
        return chosen.integers(-4, 5, shape).astype(dtype)
    array = np.asarray(chosen.integers(-16, 17, shape) / 4, dtype)
    if special:
        kinds = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0], dtype)
        array = np.where(chosen.random(shape) < 0.2, kinds[chosen.integers(0, 5, shape)], array)
    return array


def laid_out(values: Any, layout: str) -> Any:
    """Return an array with these values in a memory layout."""
    values = np.asarray(values)
    if layout in ("steps", "part") and values.ndim:
        shape = (*values.shape[:-1], values.shape[-1] * (2 if layout == "steps" else 1) + 3)
        buffer = np.zeros(shape, values.dtype)
        view = buffer[..., 1 : 1 + values.shape[-1] * 2 : 2] if layout == "steps" else buffer[..., 2:-1]
    elif layout == "reversed" and values.ndim:
        view = values.copy()[::-1]
    elif layout == "fortran":
        view = np.empty(values.shape, values.dtype, "F")
    elif layout == "transposed":
        view = np.empty(values.shape[::-1], values.dtype).T
    elif layout == "swapped" and values.ndim > 1:
        view = np.empty((values.shape[1], values.shape[0], *values.shape[2:]), values.dtype).swapaxes(0, 1)
    elif layout == "unaligned":
        raw = np.zeros(values.nbytes + 1, np.uint8)
        view = raw[1:].view(values.dtype)[: values.size].reshape(values.shape) if values.size else values.copy()
    elif layout == "broadcast" and values.ndim and values.shape[0]:
        return np.broadcast_to(values[:1], values.shape)
    else:
        view = values.copy()
    view[...] = values
    if layout == "readonly":
        view.flags.writeable = False
    return view


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
        """Return the program, as a new function each time."""
        scope: dict[str, Any] = {"np": np}
        exec(compile(self.source(), f"<random program {self.number}>", "exec"), scope)
        return scope["program"]  # type: ignore[no-any-return]

    def other_sizes(self) -> dict[str, int]:
        """Return other sizes of the same pattern: extents of 0 and 1 stay."""
        chosen = np.random.default_rng([self.number, 77])
        sizes = {name: size for name, size in self.sizes.items() if size < 2}
        for name in self.sizes:
            while name not in sizes:
                size = int(chosen.integers(2, 71))
                if size not in sizes.values():
                    sizes[name] = size
        return sizes

    def values(self, call: int, sizes: dict[str, int]) -> list[Any]:
        """Return the arguments of one call."""
        chosen = np.random.default_rng([self.number, call])
        result: list[Any] = []
        for argument in self.arguments:
            result.append(argument.make(sizes, chosen, result))
        return result

    def __str__(self) -> str:
        kinds = "\n".join(f"  {name}: {argument}" for name, argument in zip(self.names, self.arguments, strict=True))
        return f"program {self.number}, {self.sizes}\n{self.source()}{kinds}"


def owner(value: Any) -> Any:
    """Return the array that owns the memory of a view."""
    while isinstance(getattr(value, "base", None), np.ndarray):
        value = value.base
    return value
