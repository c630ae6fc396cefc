"""``jitkernels bench beside-numpy``: single compiled operations against NumPy's, for all memory layouts.

Compilation pays off for programs of several operations. For a single one NumPy often copies rows, stops a search
early or has a loop for exactly that layout: users should not have to know when a compiled function would be slower.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.suite import Line, Settings, Verdict, benchmark
from jitkernels.benchmarks.table import geometric_mean, settled_calls

DTYPES = ("bool", "uint8", "int64", "float32")
SIZES = (8, 1000, 100_000)
SECONDS_PER_LINE = 0.1
"""Share of a line's seconds for an operation: there are thousands, all short."""
PROMISED_LEAST = 1.0


def _written(change: Callable[[Any], None]) -> Callable[[Any], Any]:
    """Return a function that modifies its argument and returns it."""

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
"""Rows, columns and summed extent of products: skinny shapes, for which BLAS libraries have special kernels."""


ORDERED: dict[str, Callable[[Any], Any]] = {
    "sort in order": lambda x: np.sort(x),
    "median in order": lambda x: np.median(x),
    "percentile in order": lambda x: np.percentile(x, 30.0),
}
ORDER_SIZES = (16, 1000, 5001, 100_000, 1_000_000)


def orders(dtype: str, elements: int) -> Iterator[tuple[str, AnyArray]]:
    """Return vectors by the order of their elements, which sorts may profit or suffer from."""
    generator = np.random.default_rng(0)
    normal = generator.standard_normal(elements).astype(dtype)
    yield "random", normal
    yield "ascending", np.sort(normal)
    yield "descending", np.sort(normal)[::-1].copy()
    yield "seven values", generator.integers(0, 7, elements).astype(dtype)
    yield "equal", np.ones(elements, dtype)


def layouts(dtype: str, elements: int) -> Iterator[tuple[str, AnyArray]]:
    """Return arrays of about `elements` elements by layout; bools are all False, where searches end last."""
    numbers = np.random.default_rng(0).integers(1, 100, 4 * elements + 16)
    array = np.zeros(numbers.shape, dtype) if dtype == "bool" else numbers.astype(dtype)
    side, few = max(int(elements**0.5), 2), max(elements // 3, 2)
    yield "whole", array[:elements]
    yield "square", array[: side * side].reshape(side, side)
    yield "transposed", array[: side * side].reshape(side, side).T
    yield "a part of each row", array[: 2 * side * side].reshape(side, 2 * side)[:, :side]
    yield "reversed", array[:elements][::-1]
    yield "every second", array[: 2 * elements : 2]
    yield "three columns", array[: 3 * few].reshape(few, 3)
    yield "three columns reversed", array[: 3 * few].reshape(few, 3)[:, ::-1]
    yield "three rows transposed", array[: 3 * few].reshape(3, few).T


def verdict(lines: Sequence[Line]) -> Verdict:
    ratios = {f"{line.group}, {line.case}": line.speed_over("numpy") or 0.0 for line in lines}
    slower = sorted((ratio, name) for name, ratio in ratios.items() if ratio < PROMISED_LEAST)
    listed = "".join(f"\n{ratio:6.2f}  {name}" for ratio, name in slower)
    mean = geometric_mean(list(ratios.values()))
    return Verdict(
        f"{len(ratios)} single operations: geometric mean {mean:.2f} times NumPy's speed, {len(slower)} slower than "
        f"NumPy (promised: none){listed}",
        not slower,
    )


@benchmark("beside-numpy", verdict=verdict, against="numpy")
def beside_numpy(settings: Settings) -> Iterator[Line]:
    """Single operations, compiled and in NumPy: dtypes, layouts and orders of elements; products of thin matrices."""
    some = settings.limited
    yield from lines_of(dict(some(OPERATIONS.items())), some(DTYPES), some(SIZES), settings.seconds)
    yield from lines_of_products(dict(some(PRODUCTS.items())), some(SHAPES), settings.seconds)
    yield from lines_of_orders(dict(some(ORDERED.items())), some(ORDER_SIZES), settings.seconds)


def lines_of_products(
    operations: Mapping[str, Callable[[Any, Any], Any]], shapes: Sequence[tuple[int, int, int]], seconds: float
) -> Iterator[Line]:
    """Yield the lines of matrix products, each with one compiled function for all shapes."""
    compiler, generator = jk.jit, np.random.default_rng(0)
    for name, operation in operations.items():
        for dtype in ("float32", "float64"):
            compiled = compiler(operation)
            for m, n, k in shapes:
                left, right = (k, m) if "y.T" in name else (m, k), (n, k) if "v.T" in name else (k, n)
                operands = [generator.standard_normal(shape).astype(dtype) for shape in (left, right)]
                calls = {"jitkernels": partial(compiled, *operands), "numpy": partial(operation, *operands)}
                case = f"{m} x {n} of {k} {dtype}"
                yield settled_calls(name, case, calls, SECONDS_PER_LINE * seconds)


def lines_of_orders(
    operations: Mapping[str, Callable[[Any], Any]], sizes: Sequence[int], seconds: float
) -> Iterator[Line]:
    """Yield the lines of sorts and order statistics, each with one compiled function for all vectors of a dtype."""
    compiler = jk.jit
    for name, operation in operations.items():
        for dtype in ("float32", "float64"):
            compiled = compiler(operation)
            for elements in sizes:
                for order, array in orders(dtype, elements):
                    calls = {"jitkernels": partial(compiled, array), "numpy": partial(operation, array)}
                    yield settled_calls(name, f"{elements} {dtype}, {order}", calls, SECONDS_PER_LINE * seconds)


def lines_of(
    operations: Mapping[str, Callable[[Any], Any]], dtypes: Sequence[str], sizes: Sequence[int], seconds: float
) -> Iterator[Line]:
    """Yield the lines of operations; each layout has its own compiled function, built at the smallest array."""
    compiler = jk.jit
    for name, operation in operations.items():
        for dtype in dtypes:
            functions: dict[str, Callable[[Any], Any]] = {}
            for elements in sizes:
                for layout, array in layouts(dtype, elements):
                    compiled = functions.setdefault(layout, compiler(operation))
                    with warnings.catch_warnings(), np.errstate(all="ignore"):
                        warnings.simplefilter("ignore")
                        try:
                            operation(array)
                        except TypeError:  # NumPy has no loop for this dtype
                            continue
                        calls = {"jitkernels": partial(compiled, array), "numpy": partial(operation, array)}
                        case = f"{elements} {dtype}, {layout}"
                        yield settled_calls(name, case, calls, SECONDS_PER_LINE * seconds)
