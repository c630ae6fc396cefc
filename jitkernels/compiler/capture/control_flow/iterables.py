"""Iterables of loops: ranges, arrays, ``enumerate`` and ``zip``, with lengths that only the compiled code knows."""

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.control_flow.carried_trees import COMPOSITES, Composite
from jitkernels.compiler.capture.control_flow.growing_list import GrowableList, is_array_backed
from jitkernels.compiler.capture.control_flow.loop_state import as_number
from jitkernels.compiler.capture.ints import intervals
from jitkernels.compiler.capture.ints.int64_arithmetic import as_int
from jitkernels.compiler.capture.numpy_namespace_proxy import CALLED
from jitkernels.compiler.capture.symint import SymInt, as_extent, as_symint, known_extent
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir.builder import UnsupportedError, elementwise
from jitkernels.compiler.ir.symbolic_dims import Number, is_at_least


class LoopRange(NamedTuple):
    """The limits of a range: Python ints, traced or concrete. The step is concrete."""

    begin: Any
    end: Any
    step: int = 1

    @property
    def trip_count(self) -> int | None:
        """The trip count; None where it depends on the call."""
        return len(range(*self)) if type(self.begin) is int and type(self.end) is int else None

    @property
    def concrete_range(self) -> range | None:
        """The range of the traced call; None where values of arrays decide it."""
        if not self.is_decided:
            return None
        return range(*(limit.value if type(limit) is SymInt else limit for limit in self))

    @property
    def extent(self) -> Number | None:
        """The trip count as an extent; None where it is not known."""
        if not self.is_decided:
            return None
        distance = as_extent(self.end - self.begin if self.step > 0 else self.begin - self.end)
        return self._steps_in(distance, rounds_up=True) if intervals.guarded_at_least_zero(distance) else None

    def iteration_number(self, induction_value: Any) -> Any:
        """The number of iterations before the one with this induction variable."""
        return self._steps_in(induction_value - self.begin if self.step > 0 else self.begin - induction_value)

    def _steps_in(self, distance: Any, *, rounds_up: bool = False) -> Any:
        stride = abs(self.step)
        return distance if stride == 1 else (distance + (stride - 1 if rounds_up else 0)) // stride

    # Whether the loop runs at all, for variables that it binds or whose arrays it replaces

    @property
    def is_decided(self) -> bool:
        """Whether the call's integers decide the trip count, so that guards can specialize the code."""
        return Traced not in map(type, self)

    def is_nonempty(self) -> bool:
        """Whether the loop runs in this call; becomes a guard of the code."""
        return bool(self.begin < self.end if self.step > 0 else self.begin > self.end)

    def is_empty(self) -> bool:
        """Whether the trip count is zero in this call; the code is specialized to such calls."""
        return self.is_decided and not self.concrete_range and not self.is_nonempty()

    def is_surely_nonempty(self, tracer: Tracer) -> bool:
        """Whether the intervals of the limits imply at least one iteration."""
        limits = (self.begin, self.end) if self.step > 0 else (self.end, self.begin)
        low, high = (intervals.interval(tracer, limit) for limit in limits)
        return low is not None and high is not None and is_at_least(high[0] - low[1], 1)

    def guard_nonempty(self, tracer: Tracer) -> None:
        """Guard that the loop runs."""
        if not self.is_surely_nonempty(tracer):
            first, last = as_int(tracer, self.begin), as_int(tracer, self.end)
            tracer.checks.append(elementwise("greater_equal" if self.step > 0 else "less_equal", first, last))


class LoopIterable:
    """An iterable of a loop: its range, the element `at` each index, and the `arrays` that are iterated over.

    `python_object` makes the object of Python's own function of the same arguments, for code that needs that.
    `is_ours`: no loop of the user's code, so none that tracing may unroll.
    """

    def __init__(self, loop_range: LoopRange, at: Callable[[Any], Any], arrays: Sequence[Any] = ()) -> None:
        self.range, self.at, self.arrays = loop_range, at, tuple(arrays)
        self.python_object: Callable[[], Any] | None = None
        self.is_ours = False

    def __iter__(self) -> Iterator[Any]:
        """Iterate as Python does, where code is specialized to these limits."""
        return map(self.at, range(*self.range))


class RunTimeIterable:
    """An object over whose elements loops iterate, and Python cannot while it traces.

    `length`: a traced int. `stands_for`: the type that the function sees.
    """

    length: Any
    stands_for: ClassVar[type] = np.ndarray

    def loop_iterable(self) -> LoopIterable:
        """The iterable of a loop."""
        raise NotImplementedError


class TracedRange(Composite, RunTimeIterable):
    """A ``range`` whose limits only the compiled code knows, in a variable; ranges of the same step can be selected."""

    stands_for = range

    def __init__(self, limits: LoopRange) -> None:
        self.limits, self.origin = limits, ("range", limits.step)

    @classmethod
    def from_range(cls, values: range) -> "TracedRange":
        return cls(LoopRange(values.start, values.stop, values.step))

    def parts(self) -> Sequence[Any]:
        return self.limits[:2]

    def of(self, parts: Sequence[Any]) -> "TracedRange":
        begin, end = parts
        return TracedRange(LoopRange(begin, end, self.limits.step))

    def loop_iterable(self) -> LoopIterable:
        return LoopIterable(self.limits, lambda i: i)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise UnsupportedError(f"{name} of a range with limits that only the compiled code knows")

    def __len__(self) -> int:
        raise UnsupportedError("the length of a range with limits that only the compiled code knows")


COMPOSITES[range] = TracedRange.from_range


def element_loop(length: Any) -> LoopIterable:
    """A loop over the indices of elements, to compute what NumPy computes of all of them."""
    indices = LoopIterable(LoopRange(0, length), lambda index: index)
    indices.is_ours = True
    return indices


def range_(*limits: Any, **options: Any) -> Any:
    """``range(...)``."""
    if options or not any(type(limit) in (SymInt, Traced) for limit in limits):
        return range(*limits, **options)
    step = limits[2] if len(limits) == 3 else 1
    if type(step) is SymInt and Traced in map(type, limits):
        limits, step = (*limits[:2], int(step)), int(step)
    limits = tuple(as_python_int(limit) for limit in limits)
    if len(limits) == 3 and type(limits[2]) is Traced and all(map(_is_int, limits)):
        return _range_with_traced_step(*limits)
    if type(step) is not int or step == 0 or not 1 <= len(limits) <= 3 or not all(map(_is_int, limits)):
        return range(*limits)
    begin, end = (0, limits[0]) if len(limits) == 1 else limits[:2]
    return LoopIterable(LoopRange(begin, end, step), lambda i: i)


def range_in_variable(*limits: Any, **options: Any) -> Any:
    """``range(...)`` outside of the head of a loop."""
    if Traced not in map(type, limits[:2]) or len(limits) == 3 and type(limits[2]) is not int:
        return range(*limits, **options)
    result = range_(*limits, **options)
    return TracedRange(result.range) if type(result) is LoopIterable else result


def _range_with_traced_step(begin: Any, end: Any, step: Any) -> LoopIterable:
    """``range(begin, end, step)`` with a step that only the compiled code knows; calls with a step below 1 bail out."""
    tracer = step.tracer
    first, last, steps = (intervals.interval(tracer, limit) for limit in (begin, end, step))
    if steps is None or not is_at_least(steps[0], 1):
        tracer.checks.append(elementwise("less", step.node, 1))
    nodes = [as_int(tracer, limit) for limit in (begin, step)]

    def at(i: Any) -> Any:
        """No sum or product here exceeds the limits of the range."""
        index = elementwise("add", nodes[0], elementwise("multiply", as_int(tracer, i), nodes[1]))
        intervals.note(tracer, index, intervals.range_interval(first, last, 1))
        return as_number(tracer, index, int)

    return LoopIterable(LoopRange(0, (end - begin + (step - 1)) // step), at)


def as_python_int(value: Any) -> Any:
    """The value that ``range`` derives from a traced NumPy int; other values unchanged."""
    if type(value) is not Traced or value.is_weak or not value.is_scalar or value.dtype.kind not in "iu":
        return value
    if value.tracer.is_known(value.node):
        extent = known_extent(value.tracer, value.node)
        return value if extent is None else as_symint(value.tracer, extent)
    return value if value.dtype == "uint64" else as_number(value.tracer, as_int(value.tracer, value), int)


def _is_int(value: Any) -> bool:
    return type(value) in (int, SymInt) or (type(value) is Traced and value.python is int)


def enumerate_(iterable: Any, start: Any = 0) -> Any:
    """``enumerate(iterable, start)``."""
    inner = loop_iterable(iterable) if _is_int(start) else None
    if inner is None or inner.range.step not in (1, -1):
        return enumerate(iterable, start)
    loop_range = inner.range
    return LoopIterable(loop_range, lambda i: (loop_range.iteration_number(i) + start, inner.at(i)), inner.arrays)


def zip_(*values: Any, **options: Any) -> Any:
    """``zip(...)`` of iterables of equal length, or of lengths that only the compiled code knows."""
    iterables = _loop_iterables(values)
    arrays = [array for value in iterables for array in value.arrays]
    if any(not value.range.is_decided for value in iterables) and all(value.range.step == 1 for value in iterables):
        return _zip_of_computed_lengths(iterables, arrays, is_strict=bool(options.get("strict")))
    if not iterables or not _have_same_length([value.range for value in iterables]):
        return zip(*values, **options)  # noqa: B905  # as the call says
    return LoopIterable(iterables[0].range, lambda i: tuple([value.at(i) for value in iterables]), arrays)


def _zip_of_computed_lengths(
    iterables: Sequence[LoopIterable], arrays: Sequence[Any], *, is_strict: bool
) -> LoopIterable:
    """The shortest ends the loop; where lengths differ, ``zip(..., strict=True)`` bails out, as Python raises."""
    tracer = next(limit.tracer for value in iterables for limit in value.range if type(limit) is Traced)
    lengths = []
    for begin, end, _ in (value.range for value in iterables):
        length = elementwise("subtract", as_int(tracer, end), as_int(tracer, begin))
        lengths.append(elementwise("maximum", length, 0))
    shortest = functools.reduce(lambda a, b: elementwise("minimum", a, b), lengths)
    if is_strict:
        tracer.checks += [elementwise("not_equal", length, shortest) for length in lengths]
    limits = [intervals.max_trip_count(tracer, *value.range) for value in iterables]
    intervals.note(tracer, shortest, (0, next((limit for limit in limits if limit is not None), intervals.INT64_MAX)))
    trip_count = as_number(tracer, shortest, int)

    def index_of(limits: LoopRange, i: Any) -> Any:
        """No index exceeds the limits of its range."""
        if type(limits.begin) is int and limits.begin == 0:
            return i
        node = elementwise("add", as_int(tracer, limits.begin), as_int(tracer, i))
        first, last = (intervals.interval(tracer, limit) for limit in (limits.begin, limits.end))
        intervals.note(tracer, node, intervals.range_interval(first, last, 1))
        return as_number(tracer, node, int)

    return LoopIterable(
        LoopRange(0, trip_count), lambda i: tuple([value.at(index_of(value.range, i)) for value in iterables]), arrays
    )


def _loop_iterables(values: Sequence[Any]) -> list[LoopIterable]:
    """The iterables of several values; none where one of them has none."""
    iterables = [iterable for value in values if (iterable := loop_iterable(value)) is not None]
    return iterables if len(iterables) == len(values) else []


def reversed_(values: Any) -> Any:
    """``reversed(values)``."""
    inner = loop_iterable(values)
    if inner is None or inner.range.step not in (1, -1):
        return reversed(values)
    begin, end, step = inner.range
    return LoopIterable(LoopRange(end - step, begin - step, -step), inner.at, inner.arrays)


def index_tuples(
    shape: Sequence[Any], at: Callable[[tuple[Any, ...]], Any], arrays: Sequence[Any] = ()
) -> LoopIterable | None:
    """All index tuples of a shape, last index fastest; None for a known shape, or a number."""
    sizes = [*shape]
    if SymInt not in map(type, sizes) or not all(map(_is_int, sizes)) or Traced in map(type, sizes):
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

    return LoopIterable(LoopRange(0, math.prod(sizes)), index_tuple, arrays)


def _ndindex(*shape: Any) -> Any:
    sizes: Any = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
    symbolic: list[Any] = [size for size in sizes if type(size) is SymInt]
    if any(size < 0 for size in symbolic):
        return np.ndindex(*shape)  # raises
    return index_tuples(sizes, lambda index: index) or np.ndindex(*shape)


def _ndenumerate(array: Any) -> Any:
    iterable = (
        index_tuples(array.shape, lambda index: (index, array[index]), (array,)) if type(array) is Traced else None
    )
    return iterable or np.ndenumerate(array)


CALLED.update({np.ndindex: _ndindex, np.ndenumerate: _ndenumerate})


def product_(*values: Any, repeat: Any = 1) -> Any:
    """``itertools.product`` of ranges and arrays that begin at 0; others are unrolled."""
    iterables = _loop_iterables(values) * repeat if type(repeat) is int else []
    sizes = [value.range.end for value in iterables]
    if (
        any((value.range.begin, value.range.step) != (0, 1) for value in iterables)
        or SymInt not in map(type, sizes)
        or not all(
            type(value) in (int, SymInt) and intervals.guarded_at_least_zero(as_extent(value)) for value in sizes
        )
    ):
        return itertools.product(*values, repeat=repeat)

    def at(index: tuple[Any, ...]) -> Any:
        return tuple([value.at(i) for value, i in zip(iterables, index, strict=True)])

    return index_tuples(sizes, at, [array for value in iterables for array in value.arrays])


def _have_same_length(ranges: Sequence[LoopRange]) -> bool:
    return all(limits.begin == 0 and limits.step == 1 and bool(limits.end == ranges[0].end) for limits in ranges)


def loop_iterable(values: Any) -> LoopIterable | None:
    """The iterable of a loop; None for objects that Python iterates over while tracing."""
    if type(values) is LoopIterable:
        return values
    if type(values) is range:
        return LoopIterable(LoopRange(values.start, values.stop, values.step), lambda i: i)
    if type(values) is GrowableList and is_array_backed(values) and not values.is_growing:
        return LoopIterable(LoopRange(0, values.length), values.item)
    if isinstance(values, RunTimeIterable):
        return values.loop_iterable()
    if type(values) is Traced and values.ndim:
        return LoopIterable(LoopRange(0, as_symint(values.tracer, values.extents[0])), lambda i: values[i], (values,))
    return None
