"""``jitkernels bench beside-numpy``: single operations that are compiled against NumPy's own, however arrays lie.

Programs of several operations are what compiling is for. Of a single one NumPy's is often a copy of rows, a search that
ends early or a loop for just that layout: nobody should have to know for which a compiled function would be slower.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from jitkernels.benchmark.compilers import own_compiler
from jitkernels.benchmark.suite import Line, Settings, Verdict, benchmark
from jitkernels.benchmark.table import geometric_mean, settled, time_calls
from jitkernels.signature import AnyArray

DTYPES = ("bool", "uint8", "int64", "float32")
SIZES = (8, 1000, 100_000)
SECONDS = 0.1
"""Share of the seconds of a line that an operation gets: there are thousands, all short."""
LEAST = 1.0


def _written(change: Callable[[Any], None]) -> Callable[[Any], Any]:
    """A function that changes its argument and gives it back."""

    def written(x: Any) -> Any:
        change(x)
        return x

    return written


def _reduced(function: Callable[..., Any], axis: int | None) -> Callable[[Any], Any]:
    return lambda x: function(x, axis=axis)


def _filled(x: Any) -> None:
    x[...] = 1


def _shifted(x: Any) -> None:
    x[1:] = x[:-1]


def _pulled(x: Any) -> None:
    x[:-1] = x[1:]


def _added(x: Any) -> None:
    x += x.dtype.type(1)


OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "copy": lambda x: x.copy(),
    "repeat(0)": lambda x: np.repeat(x, 3, axis=0),
    "repeat(-1)": lambda x: np.repeat(x, 3, axis=-1),
    "tile": lambda x: np.tile(x, 3),
    "stack(0)": lambda x: np.stack([x, x, x]),
    "stack(-1)": lambda x: np.stack([x, x, x], axis=-1),
    "concatenate": lambda x: np.concatenate([x, x]),
    "pad": lambda x: np.pad(x, 2),
    "roll(0)": lambda x: np.roll(x, 1, axis=0),
    "roll": lambda x: np.roll(x, 3),
    "flip": lambda x: x[::-1].copy(),
    "step": lambda x: x[::2].copy(),
    "ravel": lambda x: x.ravel() == x.dtype.type(1),
    "astype": lambda x: x.astype(np.float32),
    "x[...] = 1": _written(_filled),
    "x[1:] = x[:-1]": _written(_shifted),
    "x[:-1] = x[1:]": _written(_pulled),
    "x += 1": _written(_added),
    **{
        f"{name}({'' if axis is None else axis})": _reduced(getattr(np, name), axis)
        for name in ("sum", "min", "max", "any", "all", "argmax", "argmin", "mean", "cumsum")
        for axis in (None, 0, -1)
    },
    "x * x": lambda x: x * x,
    "x < y": lambda x: x < x[::-1],
    "x - x[:1]": lambda x: x - x[:1],
    "abs": lambda x: np.abs(x),
    "sqrt": lambda x: np.sqrt(x),
    "exp": lambda x: np.exp(x),
    "x // y": lambda x: x // x[::-1],
    "x // x[:1]": lambda x: x // x[:1],
    "x // 3": lambda x: x // 3,
    "x % y": lambda x: x % x[::-1],
    "where": lambda x: np.where(x > 0, x, x[::-1]),
    "sort": lambda x: np.sort(x, axis=-1),
}


PRODUCTS: dict[str, Callable[[Any, Any], Any]] = {
    "x @ w": lambda x, w: x @ w,
    "x @ v.T": lambda x, w: x @ w.T,
    "y.T @ w": lambda x, w: x.T @ w,
    "maximum(x @ w + 1, 0)": lambda x, w: np.maximum(x @ w + 1, 0),
}
SHAPES = (
    (3, 5, 8), (2, 3, 600), (600, 2, 200), (3, 600, 200), (64, 17, 200), (8, 64, 600), (3000, 5, 17), (200, 200, 64),
)  # fmt: skip
"""Rows and columns of products, and what is summed: thin ones, for which libraries have ways of their own."""


def layouts(dtype: str, elements: int) -> Iterator[tuple[str, AnyArray]]:
    """Arrays of about so many elements, by how they lie; of bools none is true, which is when searches end late."""
    numbers = np.random.default_rng(0).integers(1, 100, 4 * elements + 16)
    given = np.zeros(numbers.shape, dtype) if dtype == "bool" else numbers.astype(dtype)
    side, few = max(int(elements**0.5), 2), max(elements // 3, 2)
    yield "whole", given[:elements]
    yield "square", given[: side * side].reshape(side, side)
    yield "transposed", given[: side * side].reshape(side, side).T
    yield "a part of each row", given[: 2 * side * side].reshape(side, 2 * side)[:, :side]
    yield "reversed", given[:elements][::-1]
    yield "every second", given[: 2 * elements : 2]
    yield "three columns", given[: 3 * few].reshape(few, 3)
    yield "three columns reversed", given[: 3 * few].reshape(few, 3)[:, ::-1]
    yield "three rows transposed", given[: 3 * few].reshape(3, few).T


def verdict(lines: Sequence[Line]) -> Verdict:
    ratios = {f"{line.group}, {line.case}": line.speed_over("numpy") or 0.0 for line in lines}
    slower = sorted((ratio, name) for name, ratio in ratios.items() if ratio < LEAST)
    listed = "".join(f"\n{ratio:6.2f}  {name}" for ratio, name in slower)
    mean = geometric_mean(list(ratios.values()))
    return Verdict(
        f"{len(ratios)} single operations: geometric mean {mean:.2f} times NumPy's speed, {len(slower)} slower than "
        f"NumPy (promised: none){listed}",
        not slower,
    )


@benchmark("beside-numpy", verdict=verdict, against="numpy")
def beside_numpy(settings: Settings) -> Iterator[Line]:
    """Single operations, compiled and by NumPy: dtypes, layouts, 8 to 100,000 elements; products of thin matrices."""
    yield from lines_of(OPERATIONS, DTYPES, SIZES, settings.seconds)
    yield from lines_of_products(PRODUCTS, SHAPES, settings.seconds)


def lines_of_products(
    operations: Mapping[str, Callable[[Any, Any], Any]],
    shapes: Sequence[tuple[int, int, int]],
    seconds: float,
) -> Iterator[Line]:
    """The lines of some products, each of which has one code for all shapes."""
    compiler, generator = own_compiler(), np.random.default_rng(0)
    for name, operation in operations.items():
        for dtype in ("float32", "float64"):
            compiled = compiler(operation)
            for m, n, k in shapes:
                left, right = (k, m) if "y.T" in name else (m, k), (n, k) if "v.T" in name else (k, n)
                given = [generator.standard_normal(shape).astype(dtype) for shape in (left, right)]
                calls = {"jitkernels": partial(compiled, *given), "numpy": partial(operation, *given)}
                case = f"{m} x {n} of {k} {dtype}"
                yield settled(partial(_line, name, case, calls, SECONDS * seconds), "numpy")


def lines_of(
    operations: Mapping[str, Callable[[Any], Any]],
    dtypes: Sequence[str],
    sizes: Sequence[int],
    seconds: float,
) -> Iterator[Line]:
    """The lines of some operations; each has code of its own for each layout, made from the smallest array on."""
    compiler = own_compiler()
    for name, operation in operations.items():
        for dtype in dtypes:
            made: dict[str, Callable[[Any], Any]] = {}
            for elements in sizes:
                for layout, array in layouts(dtype, elements):
                    compiled = made.setdefault(layout, compiler(operation))
                    with warnings.catch_warnings(), np.errstate(all="ignore"):
                        warnings.simplefilter("ignore")
                        try:
                            operation(array)
                        except TypeError:  # which NumPy has no loop for
                            continue
                        calls = {"jitkernels": partial(compiled, array), "numpy": partial(operation, array)}
                        case = f"{elements} {dtype}, {layout}"
                        yield settled(partial(_line, name, case, calls, SECONDS * seconds), "numpy")


def _line(
    name: str, case: str, calls: Mapping[str, partial[Any]], seconds: float, turn: int
) -> Line:  # the arrays are those of the call
    return Line(name, case, time_calls(calls, seconds=seconds, rounds=(3, 15)), "jitkernels")
