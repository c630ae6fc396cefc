"""Iterables of loops: ranges, arrays, ``enumerate`` and ``zip``, with lengths that only the compiled code knows."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.control_flow.growing_list import GrowableList, is_array_backed
from jitkernels.compiler.capture.ints import intervals
from jitkernels.compiler.capture.ints.int64_arithmetic import as_int, plain
from jitkernels.compiler.capture.numpy_namespace_proxy import CALLED
from jitkernels.compiler.capture.symint import Whole, as_extent, as_symint, known_extent
from jitkernels.compiler.ir.builder import elementwise
from jitkernels.compiler.ir.symbolic_dims import Number


class LoopRange(NamedTuple):
    """The limits of a range: Python ints, traced or concrete. The step is concrete."""

    begin: Any
    end: Any
    step: int

    @property
    def trip_count(self) -> int | None:
        """The trip count; None where it depends on the call."""
        plain = type(self.begin) is int and type(self.end) is int
        return len(range(*self)) if plain else None

    @property
    def concrete_range(self) -> range | None:
        """The range of the traced call; None where values of arrays decide it."""
        if any(type(limit) is Traced for limit in self):
            return None
        return range(*(limit.value if type(limit) is Whole else limit for limit in self))

    @property
    def extent(self) -> Number | None:
        """The trip count as an extent; None where it is not known."""
        begin, end, step = self
        if Traced in (type(begin), type(end)):
            return None
        distance = as_extent(end - begin) if step > 0 else as_extent(begin - end)
        if not intervals.guarded_at_least_zero(distance):
            return None
        return distance if abs(step) == 1 else (distance + (abs(step) - 1)) // abs(step)

    def iteration_number(self, count: Any) -> Any:
        """The number of iterations before the one with this induction variable."""
        distance = count - self.begin if self.step > 0 else self.begin - count
        return distance if abs(self.step) == 1 else distance // abs(self.step)


class LoopIterable:
    """An iterable of a loop: its range `count`, the element `at` each index, and the `arrays` that are iterated over.

    `plain` makes the object of Python's own function of the same arguments, for code that needs that.
    """

    def __init__(self, count: LoopRange, at: Callable[[Any], Any], arrays: Sequence[Any] = ()) -> None:
        self.count, self.at, self.arrays = count, at, tuple(arrays)
        self.plain: Callable[[], Any] | None = None

    def __iter__(self) -> Iterator[Any]:
        """Iterate as Python does, where code is specialized to these limits."""
        return map(self.at, range(*self.count))


def range_(*limits: Any, **options: Any) -> Any:
    """``range(...)``."""
    if options or not any(type(limit) in (Whole, Traced) for limit in limits):
        return range(*limits, **options)
    step = limits[2] if len(limits) == 3 else 1
    limits = tuple(as_python_int(limit) for limit in limits)
    if len(limits) == 3 and type(limits[2]) is Traced and all(map(_is_int, limits)):
        return _in_steps(*limits)
    if type(step) is not int or step == 0 or not 1 <= len(limits) <= 3 or not all(map(_is_int, limits)):
        return range(*limits)
    return LoopIterable(
        LoopRange(0, limits[0], 1) if len(limits) == 1 else LoopRange(limits[0], limits[1], step), lambda i: i
    )


def _in_steps(begin: Any, end: Any, step: Any) -> LoopIterable:
    """``range(begin, end, step)`` with a step that only the compiled code knows; calls with a step below 1 bail out."""
    tracer = step.tracer
    first, last, known = (intervals.interval(tracer, limit) for limit in (begin, end, step))
    if known is None or not intervals.is_at_least(known[0], 1):
        tracer.checks.append(elementwise("less", step.node, 1))
    nodes = [as_int(tracer, limit) for limit in (begin, step)]

    def at(i: Any) -> Any:
        """No sum or product here exceeds the limits of the range."""
        index = elementwise("add", nodes[0], elementwise("multiply", as_int(tracer, i), nodes[1]))
        intervals.note(tracer, index, intervals.range_interval(first, last, 1))
        return plain(tracer, index)

    return LoopIterable(LoopRange(0, (end - begin + (step - 1)) // step, 1), at)


def as_python_int(value: Any) -> Any:
    """The value that ``range`` derives from a traced NumPy int; other values unchanged."""
    if type(value) is not Traced or value.is_weak or not value.is_scalar or value.dtype.kind not in "iu":
        return value
    if value.tracer.is_known(value.node):
        extent = known_extent(value.tracer, value.node)
        return value if extent is None else as_symint(value.tracer, extent)
    if value.dtype == "uint64":
        return value
    return plain(value.tracer, as_int(value.tracer, value))


def _is_int(value: Any) -> bool:
    return type(value) in (int, Whole) or (type(value) is Traced and value.python is int)


def enumerate_(iterable: Any, start: Any = 0) -> Any:
    """``enumerate(iterable, start)``."""
    inner = along(iterable) if _is_int(start) else None
    if inner is None or inner.count.step not in (1, -1):
        return enumerate(iterable, start)
    begin, _, step = inner.count
    return LoopIterable(
        inner.count, lambda i: ((i - begin if step == 1 else begin - i) + start, inner.at(i)), inner.arrays
    )


def zip_(*values: Any, **options: Any) -> Any:
    """``zip(...)`` of iterables of equal length."""
    inner = [along(value) for value in values]
    iterables = [value for value in inner if value is not None]
    if not iterables or len(iterables) < len(values) or not _have_same_length([value.count for value in iterables]):
        return zip(*values, **options)  # noqa: B905  # as the call says
    arrays = [array for value in iterables for array in value.arrays]
    return LoopIterable(iterables[0].count, lambda i: tuple([value.at(i) for value in iterables]), arrays)


def reversed_(values: Any) -> Any:
    """``reversed(values)``."""
    inner = along(values)
    if inner is None or inner.count.step not in (1, -1):
        return reversed(values)
    begin, end, step = inner.count
    return LoopIterable(LoopRange(end - step, begin - step, -step), inner.at, inner.arrays)


def index_tuples(
    shape: Sequence[Any], at: Callable[[tuple[Any, ...]], Any], arrays: Sequence[Any] = ()
) -> LoopIterable | None:
    """All index tuples of a shape, last index fastest; None for a known shape, or a number."""
    sizes = [*shape]
    tracers = [index.tracer for index in sizes if type(index) is Whole]
    if not tracers or not all(map(_is_int, sizes)) or Traced in map(type, sizes):
        return None

    def index_tuple(i: Any) -> Any:
        indices: list[Any] = []
        for number, size in reversed([*enumerate(sizes)]):
            index = i % size if number else i
            if type(index) is Traced:
                intervals.note(index.tracer, index.node, (0, as_extent(size) - 1))
            indices.insert(0, index)
            i = i // size
        return at(tuple(indices))

    return LoopIterable(LoopRange(0, math.prod(sizes), 1), index_tuple, arrays)


def _ndindex(*shape: Any) -> Any:
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
    return index_tuples(sizes, lambda index: index) or np.ndindex(*shape)


def _ndenumerate(array: Any) -> Any:
    iterable = (
        index_tuples(array.shape, lambda index: (index, array[index]), (array,)) if type(array) is Traced else None
    )
    return iterable or np.ndenumerate(array)


CALLED.update({np.ndindex: _ndindex, np.ndenumerate: _ndenumerate})


def product_(*values: Any, repeat: Any = 1) -> Any:
    """``itertools.product`` of ranges and arrays that begin at 0; others are unrolled."""
    if type(repeat) is not int:
        return itertools.product(*values, repeat=repeat)
    inner = [along(value) for value in values] * repeat
    iterables = [value for value in inner if value is not None and (value.count.begin, value.count.step) == (0, 1)]
    sizes = [value.count.end for value in iterables]
    if (
        len(iterables) < len(inner)
        or not any(type(value) is Whole for value in sizes)
        or not all(type(value) in (int, Whole) and intervals.guarded_at_least_zero(as_extent(value)) for value in sizes)
    ):
        return itertools.product(*values, repeat=repeat)

    def at(index: tuple[Any, ...]) -> Any:
        return tuple([value.at(i) for value, i in zip(iterables, index, strict=True)])

    return index_tuples(sizes, at, [array for value in iterables for array in value.arrays])


def _have_same_length(counts: Sequence[LoopRange]) -> bool:
    return all(limits.begin == 0 and limits.step == 1 and bool(limits.end == counts[0].end) for limits in counts)


def along(values: Any) -> LoopIterable | None:
    """The iterable of a loop; None for objects that Python iterates over while tracing."""
    if type(values) is LoopIterable:
        return values
    if type(values) is range:
        return LoopIterable(LoopRange(values.start, values.stop, values.step), lambda i: i)
    if type(values) is GrowableList and is_array_backed(values) and not values.is_growing:
        return LoopIterable(LoopRange(0, values.length, 1), values.item)
    if type(values) is Traced and values.ndim:
        return LoopIterable(
            LoopRange(0, as_symint(values.tracer, values.extents[0]), 1), lambda i: values[i], (values,)
        )
    return None
