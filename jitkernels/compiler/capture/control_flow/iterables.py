"""What loops go along: ranges, arrays, ``enumerate`` and ``zip`` of these, whose length only the running code knows."""

import builtins
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from jitkernels.frontends.flow import ranges
from jitkernels.frontends.flow.growing import Listed, is_grown
from jitkernels.frontends.flow.ints import as_int, plain
from jitkernels.frontends.standin import CALLED
from jitkernels.frontends.traced import Traced
from jitkernels.frontends.whole import Whole, as_extent, as_whole
from jitkernels.graph.construct import elementwise
from jitkernels.graph.extents import Number


class Count(NamedTuple):
    """The limits of a range: Python ints, of the trace or plain. The step is a plain one."""

    begin: Any
    end: Any
    step: int

    @property
    def rounds(self) -> int | None:
        """How many there are; None where that depends on the call."""
        plain = type(self.begin) is int and type(self.end) is int
        return len(range(*self)) if plain else None

    @property
    def now(self) -> range | None:
        """The range of the call that is traced; None where its values decide."""
        if any(type(one) is Traced for one in self):
            return None
        return range(*(one.value if type(one) is Whole else one for one in self))

    @property
    def extent(self) -> Number | None:
        """How many rounds there are, as an extent; None where that is not known."""
        begin, end, step = self
        if Traced in (type(begin), type(end)):
            return None
        found = as_extent(end - begin) if step > 0 else as_extent(begin - end)
        if not ranges.guarded_at_least_zero(found):
            return None
        return found if abs(step) == 1 else (found + (abs(step) - 1)) // abs(step)

    def rank(self, count: Any) -> Any:
        """How many rounds there have been before one."""
        found = count - self.begin if self.step > 0 else self.begin - count
        return found if abs(self.step) == 1 else found // abs(self.step)


class Along:
    """Something to go along: its `count`, what is given `at` each place, and `arrays` whose elements that are."""

    def __init__(self, count: Count, at: Callable[[Any], Any], arrays: Sequence[Any] = ()) -> None:
        self.count, self.at, self.arrays = count, at, tuple(arrays)

    def __iter__(self) -> Iterator[Any]:
        """As Python has it, where code is made for these limits alone."""
        return map(self.at, range(*self.count))


def range_(function: Any, *limits: Any, **options: Any) -> Any:
    """``range(...)``."""
    if options or function is not builtins.range or not any(type(one) in (Whole, Traced) for one in limits):
        return function(*limits, **options)
    step = limits[2] if len(limits) == 3 else 1
    limits = tuple(as_python_int(one) for one in limits)
    if len(limits) == 3 and type(limits[2]) is Traced and all(map(_is_int, limits)):
        return _in_steps(*limits)
    if type(step) is not int or step == 0 or not 1 <= len(limits) <= 3 or not all(map(_is_int, limits)):
        return function(*limits)
    return Along(
        Count(0, limits[0], 1) if len(limits) == 1 else Count(limits[0], limits[1], step), lambda i: i
    )


def _in_steps(begin: Any, end: Any, step: Any) -> Along:
    """``range(begin, end, step)`` where the running code alone knows it: no call is served where that is below 1."""
    tracer = step.tracer
    first, last, known = (ranges.interval(tracer, one) for one in (begin, end, step))
    if known is None or not ranges.is_at_least(known[0], 1):
        tracer.checks.append(elementwise("less", step.node, 1))
    nodes = [as_int(tracer, one) for one in (begin, step)]

    def at(i: Any) -> Any:
        """No sum or product of these is beyond what is between the limits."""
        place = elementwise("add", nodes[0], elementwise("multiply", as_int(tracer, i), nodes[1]))
        ranges.note(tracer, place, ranges.counted(first, last, 1))
        return plain(tracer, place)

    return Along(Count(0, (end - begin + (step - 1)) // step, 1), at)


def as_python_int(value: Any) -> Any:
    """What ``range`` makes of one of NumPy's ints that only the running code knows; others as they are."""
    if type(value) is not Traced or value.is_weak or not value.is_scalar or value.dtype.kind not in "iu":
        return value
    if value.tracer.is_known(value.node) or value.dtype == "uint64":
        return value
    return plain(value.tracer, as_int(value.tracer, value))


def _is_int(value: Any) -> bool:
    return type(value) in (int, Whole) or (type(value) is Traced and value.python is int)


def enumerate_(function: Any, values: Any, start: Any = 0) -> Any:
    """``enumerate(values, start)``."""
    inner = along(values) if function is builtins.enumerate and _is_int(start) else None
    if inner is None or inner.count.step not in (1, -1):
        return function(values, start)
    begin, _, step = inner.count
    return Along(
        inner.count, lambda i: ((i - begin if step == 1 else begin - i) + start, inner.at(i)), inner.arrays
    )


def zip_(function: Any, *values: Any, **options: Any) -> Any:
    """``zip(...)`` of as many."""
    inner = [along(one) for one in values] if function is builtins.zip else []
    found = [one for one in inner if one is not None]
    if not found or len(found) < len(values) or not _are_alike([one.count for one in found]):
        return function(*values, **options)
    arrays = [array for one in found for array in one.arrays]
    return Along(found[0].count, lambda i: tuple([one.at(i) for one in found]), arrays)


def reversed_(function: Any, values: Any) -> Any:
    """``reversed(values)``."""
    inner = along(values) if function is builtins.reversed else None
    if inner is None or inner.count.step not in (1, -1):
        return function(values)
    begin, end, step = inner.count
    return Along(Count(end - step, begin - step, -step), inner.at, inner.arrays)


def places(
    shape: Sequence[Any], at: Callable[[tuple[Any, ...]], Any], arrays: Sequence[Any] = ()
) -> Along | None:
    """All places of arrays of a shape, the last index first; None for a shape that is known, or a number."""
    sizes = [*shape]
    tracers = [one.tracer for one in sizes if type(one) is Whole]
    if not tracers or not all(map(_is_int, sizes)) or Traced in map(type, sizes):
        return None

    def place(i: Any) -> Any:
        found: list[Any] = []
        for number, size in reversed([*enumerate(sizes)]):
            one = i % size if number else i
            if type(one) is Traced:
                ranges.note(one.tracer, one.node, (0, as_extent(size) - 1))
            found.insert(0, one)
            i = i // size
        return at(tuple(found))

    return Along(Count(0, math.prod(sizes), 1), place, arrays)


def _ndindex(*shape: Any) -> Any:
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
    return places(sizes, lambda place: place) or np.ndindex(*shape)


def _ndenumerate(array: Any) -> Any:
    found = (
        places(array.shape, lambda place: (place, array[place]), (array,)) if type(array) is Traced else None
    )
    return found or np.ndenumerate(array)


CALLED.update({np.ndindex: _ndindex, np.ndenumerate: _ndenumerate})


def product_(function: Any, *values: Any, repeat: Any = 1, **options: Any) -> Any:
    """``itertools.product`` of ranges and arrays that begin with 0; others are written out round by round."""
    if function is not itertools.product or type(repeat) is not int or options:
        known = [range(*one.count) if type(one) is Along else one for one in values]
        return function(*known, **({} if repeat == 1 else {"repeat": repeat}), **options)
    inner = [along(one) for one in values] * repeat
    found = [one for one in inner if one is not None and (one.count.begin, one.count.step) == (0, 1)]
    sizes = [one.count.end for one in found]
    if (
        len(found) < len(inner)
        or not any(type(one) is Whole for one in sizes)
        or not all(
            type(one) in (int, Whole) and ranges.guarded_at_least_zero(as_extent(one)) for one in sizes
        )
    ):
        return itertools.product(*values, repeat=repeat)

    def at(place: tuple[Any, ...]) -> Any:
        return tuple([one.at(i) for one, i in zip(found, place, strict=True)])

    return places(sizes, at, [array for one in found for array in one.arrays])


def _are_alike(counts: Sequence[Count]) -> bool:
    return all(one.begin == 0 and one.step == 1 and bool(one.end == counts[0].end) for one in counts)


def along(values: Any) -> Along | None:
    """What a loop goes along; None for what Python goes along while tracing."""
    if type(values) is Along:
        return values
    if type(values) is range:
        return Along(Count(values.start, values.stop, values.step), lambda i: i)
    if type(values) is Listed and is_grown(values) and not values.is_growing:
        return Along(Count(0, values.length, 1), values.item)
    if type(values) is Traced and values.ndim:
        return Along(Count(0, as_whole(values.tracer, values.extents[0]), 1), lambda i: values[i], (values,))
    return None
