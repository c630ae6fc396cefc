"""What the arrays of a call may hold: named kinds of data, each of which shows mistakes that others hide.

Uniform numbers around zero alone let errors of a sum cancel, hide a lost element among many, and have no ties.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np

from jitkernels import bfloat16
from jitkernels.attrs.base import KernelAttr
from jitkernels.signature import AnyArray, Array

Fill = Callable[[np.random.Generator, Array], AnyArray]
TAILS = (4, 8, 16, 32, 64)
"""Vector widths and unrollings behind whose multiples a loop handles the rest."""


def kinds(attr: KernelAttr) -> dict[str, Fill]:
    """All kinds of data for an attr by name; those with a peak have it at each position that may be special."""
    found = dict(PLAIN)
    shapes = dict.fromkeys(a.shape for a in attr.signature().arrays if a.role != "out")
    for axis in (-1, 0):
        extents = sorted({shape[axis] for shape in shapes if len(shape) > (axis == 0)})
        for place in dict.fromkeys(place for extent in extents for place in positions(extent)):
            ends = place == 0 or place + 1 in extents
            for name in PEAKS if ends else [list(PEAKS)[place % len(PEAKS)]]:
                found[f"{name} at {place} of axis {axis}"] = _peak(*PEAKS[name], axis, place)
    return found


def positions(extent: int) -> list[int]:
    """First, second, middle and last, and the first of each tail and the last before it."""
    found = {0, 1, extent // 2, extent - 2, extent - 1}
    for width in TAILS:
        found |= {extent - extent % width, extent - extent % width - 1}
    return sorted(place for place in found if 0 <= place < extent)


def sample(attr: KernelAttr, fill: Fill, seed: int = 0) -> list[AnyArray]:
    """Arrays for one call, the same for the same seed; outputs show what was not written."""
    generator = np.random.default_rng(seed)
    return [
        parameter.sample(generator) if parameter.role == "out" else fill(generator, parameter)
        for parameter in attr.signature().arrays
    ]


def special_values(dtype: str) -> AnyArray:
    """NaN, infinities, zeros, subnormals, the ends of the range, and where exp over- and underflows."""
    limits = bfloat16.limits(dtype)
    smallest, tiny, largest = (float(v) for v in (limits.smallest_subnormal, limits.tiny, limits.max))
    ends = [smallest, 3 * smallest, tiny - smallest, tiny, 1.0, 1.0 + float(limits.eps), largest / 2, largest]
    ends += [float(np.log(v)) for v in (tiny, largest)] + [
        -float(np.log(smallest)),
        2 * float(np.log(largest)),
    ]
    values = [float("nan"), float("inf"), 0.0, 0.5, *ends]
    found = np.array([*values, *(-v for v in values)])
    return bfloat16.numbers(bfloat16.stored(found)) if dtype == bfloat16.NAME else found.astype(dtype)


def with_special_values(attr: KernelAttr, alone: bool) -> Iterator[list[AnyArray]]:
    """Arrays with special values: each alone, NaN at every position; then all mixed."""
    signature = attr.signature()
    places = [i for i, p in enumerate(signature.arrays) if p.role != "out" and p.is_float]
    places = [i for i in places if signature.arrays[i].nbytes]
    for i in places if alone else ():
        classes = positions(math.prod(signature.arrays[i].shape))
        for number, value in enumerate(special_values(signature.arrays[i].dtype)):
            here = classes if np.isnan(value) else [classes[(7 * number) % len(classes)]]
            for place in here:
                arrays = signature.sample(number)
                arrays[i].reshape(-1)[place] = signature.arrays[i].stored(value)
                yield arrays
    for shift in range(8):
        arrays = signature.sample()
        for turn, i in enumerate(places):
            values = special_values(signature.arrays[i].dtype)
            mixed = np.resize(np.roll(values, shift * turn + shift), arrays[i].shape)
            arrays[i][...] = signature.arrays[i].stored(mixed)
        yield arrays


def _uniform(low: float, high: float) -> Fill:
    """Numbers between two parts of the domain, of which 0 is the lower end or the middle, and 1 the upper end."""

    def fill(generator: np.random.Generator, parameter: Array) -> AnyArray:
        if not parameter.is_float:
            return parameter.sample(generator)
        bottom, top = (_part(parameter, part) for part in (low, high))
        return parameter.stored(generator.uniform(min(bottom, top), max(bottom, top), parameter.shape))

    return fill


def _part(parameter: Array, part: float) -> float:
    """A part of the upper end of the domain, or, if negative, of the lower one; domains may begin at 0."""
    low, high = parameter.domain
    return high * part if part >= 0 else low * -part


def _around(offset: float) -> Fill:
    """The domain moved far away from zero, where differences cancel."""

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
    """One number, or 0.95 of the upper end: every sum of it is rounded the same way at every step."""

    def fill(generator: np.random.Generator, parameter: Array) -> AnyArray:
        low, high = parameter.domain
        if not parameter.is_float:
            return np.full(parameter.shape, max(int(high) - 1, int(low)), parameter.dtype)
        return parameter.stored(np.full(parameter.shape, 0.95 * high if value is None else value))

    return fill


def _ties(generator: np.random.Generator, parameter: Array) -> AnyArray:
    """Three different numbers, both ends of the domain among them."""
    low, high = parameter.domain
    if not parameter.is_float:
        high = max(high - 1, low)
    few = parameter.stored(np.array([low, (low + high) / 4, high]))
    return generator.choice(few, parameter.shape)


def _columns(generator: np.random.Generator, parameter: Array) -> AnyArray:
    """Every column constant, each of another number."""
    array = parameter.sample(generator)
    array[...] = array[:1] if array.size else array
    return array


def _peak(base: Fill, top: float, axis: int, place: int) -> Fill:
    """Numbers with a far larger (smaller) one at a place of an axis, in every array that has the place."""

    def fill(generator: np.random.Generator, parameter: Array) -> AnyArray:
        array = base(generator, parameter)
        if not parameter.is_float or array.ndim <= (axis == 0) or array.shape[axis] <= place:
            return array
        high = parameter.domain[1] if np.isnan(top) else top
        np.moveaxis(array, axis, 0)[place] = parameter.stored(high if parameter.domain[0] < 0 else abs(high))
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
"""A peak at the upper end of the domain over its lower one, and numbers that overflow an exponential."""
