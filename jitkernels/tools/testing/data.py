"""Named kinds of test data, each of which exposes errors that other kinds hide.

Uniform numbers around zero alone let errors of a sum cancel, hide a lost element among many, and have no ties.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.signature import AnyArray, Array
from jitkernels.core import bfloat16

Fill = Callable[[np.random.Generator, Array], AnyArray]
TAILS = (4, 8, 16, 32, 64)
"""Vector widths and unroll factors: after their multiples, loops run an epilogue."""


def kinds(attr: KernelAttr) -> dict[str, Fill]:
    """Return all kinds of data for an attr by name; peaks are at each position that may be a boundary case."""
    result = dict(PLAIN)
    shapes = dict.fromkeys(a.shape for a in attr.signature().arrays if a.role != "out")
    for axis in (-1, 0):
        extents = sorted({shape[axis] for shape in shapes if len(shape) > (axis == 0)})
        for index in dict.fromkeys(index for extent in extents for index in positions(extent)):
            ends = index == 0 or index + 1 in extents
            for name in PEAKS if ends else [list(PEAKS)[index % len(PEAKS)]]:
                result[f"{name} at {index} of axis {axis}"] = _peak(*PEAKS[name], axis, index)
    return result


def positions(extent: int) -> list[int]:
    """Return the first, second, middle and last position, and the first of each tail and the position before it."""
    candidates = {0, 1, extent // 2, extent - 2, extent - 1}
    for width in TAILS:
        candidates |= {extent - extent % width, extent - extent % width - 1}
    return sorted(index for index in candidates if 0 <= index < extent)


def sample(attr: KernelAttr, fill: Fill, seed: int = 0) -> list[AnyArray]:
    """Return arrays for one call, the same for the same seed; outputs hold a pattern that shows unwritten elements."""
    generator = np.random.default_rng(seed)
    return [
        parameter.sample(generator) if parameter.role == "out" else fill(generator, parameter)
        for parameter in attr.signature().arrays
    ]


def special_values(dtype: str) -> AnyArray:
    """Return NaN, infinities, zeros, subnormals, the limits of the range, and where exp over- and underflows."""
    limits = bfloat16.limits(dtype)
    smallest, tiny, largest = (float(v) for v in (limits.smallest_subnormal, limits.tiny, limits.max))
    ends = [smallest, 3 * smallest, tiny - smallest, tiny, 1.0, 1.0 + float(limits.eps), largest / 2, largest]
    ends += [float(np.log(v)) for v in (tiny, largest)] + [-float(np.log(smallest)), 2 * float(np.log(largest))]
    values = [float("nan"), float("inf"), 0.0, 0.5, *ends]
    values_and_negatives = np.array([*values, *(-v for v in values)])
    return (
        bfloat16.numbers(bfloat16.stored(values_and_negatives))
        if dtype == bfloat16.BFLOAT16_NAME
        else values_and_negatives.astype(dtype)
    )


def with_special_values(attr: KernelAttr, alone: bool) -> Iterator[list[AnyArray]]:
    """Yield arrays with special values: each alone, NaN at every position; then all mixed."""
    signature = attr.signature()
    indices = [i for i, p in enumerate(signature.arrays) if p.role != "out" and p.is_float]
    indices = [i for i in indices if signature.arrays[i].nbytes]
    for i in indices if alone else ():
        classes = positions(math.prod(signature.arrays[i].shape))
        for number, value in enumerate(special_values(signature.arrays[i].dtype)):
            here = classes if np.isnan(value) else [classes[(7 * number) % len(classes)]]
            for index in here:
                arrays = signature.sample(number)
                arrays[i].reshape(-1)[index] = signature.arrays[i].stored(value)
                yield arrays
    for shift in range(8):
        arrays = signature.sample()
        for turn, i in enumerate(indices):
            values = special_values(signature.arrays[i].dtype)
            mixed = np.resize(np.roll(values, shift * turn + shift), arrays[i].shape)
            arrays[i][...] = signature.arrays[i].stored(mixed)
        yield arrays


def _uniform(low: float, high: float) -> Fill:
    """Return a generator of uniform numbers between two parts of the domain: 0 lower end or middle, 1 upper end."""

    def fill(generator: np.random.Generator, parameter: Array) -> AnyArray:
        if not parameter.is_float:
            return parameter.sample(generator)
        bottom, top = (_part(parameter, part) for part in (low, high))
        return parameter.stored(generator.uniform(min(bottom, top), max(bottom, top), parameter.shape))

    return fill


def _part(parameter: Array, part: float) -> float:
    """Return a fraction of the domain's upper end, or, if negative, of its lower end; domains may begin at 0."""
    low, high = parameter.domain
    return high * part if part >= 0 else low * -part


def _around(offset: float) -> Fill:
    """Return a generator of numbers shifted far from zero, where differences cancel."""

    def fill(generator: np.random.Generator, parameter: Array) -> AnyArray:
        array = parameter.sample(generator)
        return array if not parameter.is_float else parameter.stored(parameter.numbers(array) + offset)

    return fill


def _scaled(dtype_limit: Callable[[str], float]) -> Fill:
    def fill(generator: np.random.Generator, parameter: Array) -> AnyArray:
        array = parameter.sample(generator)
        if not parameter.is_float:
            return array
        return parameter.stored(parameter.numbers(array).astype(np.float64) * dtype_limit(parameter.dtype))

    return fill


def _constant(value: float | None) -> Fill:
    """Return a generator of a constant, or of 0.95 of the upper end: sums of it are always rounded the same way."""

    def fill(generator: np.random.Generator, parameter: Array) -> AnyArray:
        low, high = parameter.domain
        if not parameter.is_float:
            return np.full(parameter.shape, max(int(high) - 1, int(low)), parameter.dtype)
        return parameter.stored(np.full(parameter.shape, 0.95 * high if value is None else value))

    return fill


def _ties(generator: np.random.Generator, parameter: Array) -> AnyArray:
    """Draw from three different numbers, both ends of the domain among them."""
    low, high = parameter.domain
    if not parameter.is_float:
        high = max(high - 1, low)
    few = parameter.stored(np.array([low, (low + high) / 4, high]))
    return generator.choice(few, parameter.shape)


def _columns(generator: np.random.Generator, parameter: Array) -> AnyArray:
    """Draw a different constant for each column."""
    array = parameter.sample(generator)
    array[...] = array[:1] if array.size else array
    return array


def _peak(base: Fill, top: float, axis: int, index: int) -> Fill:
    """Return a generator of arrays with a far larger (smaller) number at an index of an axis."""

    def fill(generator: np.random.Generator, parameter: Array) -> AnyArray:
        array = base(generator, parameter)
        if not parameter.is_float or array.ndim <= (axis == 0) or array.shape[axis] <= index:
            return array
        high = parameter.domain[1] if np.isnan(top) else top
        np.moveaxis(array, axis, 0)[index] = parameter.stored(high if parameter.domain[0] < 0 else abs(high))
        return array

    return fill


def _subnormal(dtype: str) -> float:
    return 4 * float(bfloat16.limits(dtype).tiny)


def _huge(dtype: str) -> float:
    return math.sqrt(float(bfloat16.limits(dtype).max)) / 2**10


PLAIN: dict[str, Fill] = {
    "random": lambda generator, parameter: parameter.sample(generator),
    "positive": _uniform(0.5, 1.0),
    "negative": _uniform(-0.5, -1.0),
    "around 100.1": _around(100.1),
    "around 10000": _around(1e4),
    "constant": _constant(None),
    "constant 100.1": _constant(100.1),
    "constant 0": _constant(0.0),
    "columns": _columns,
    "ties": _ties,
    "tiny": _scaled(_subnormal),
    "huge": _scaled(_huge),
}
PEAKS: dict[str, tuple[Fill, float]] = {
    "peak": (_uniform(-1.0, -1.0), float("nan")),
    "tower": (PLAIN["random"], 2000.0),
    "pit": (PLAIN["random"], -2000.0),
}
"""A peak at the upper end of the domain over the lower one, and numbers that overflow an exponential."""
