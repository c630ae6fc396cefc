"""What loops go along: ranges, arrays, ``enumerate`` and ``zip`` of these, whose length only the running code knows."""

import builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from jitkernels.frontends.traced import Traced
from jitkernels.frontends.whole import Whole, as_whole


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


class Along:
    """Something to go along: its `count`, and what is given `at` each place."""

    def __init__(self, count: Count, at: Callable[[Any], Any]) -> None:
        self.count, self.at = count, at

    def __iter__(self) -> Iterator[Any]:
        """As Python has it, where code is made for these limits alone."""
        return map(self.at, range(*self.count))


def range_(function: Any, *limits: Any, **options: Any) -> Any:
    """``range(...)``."""
    if options or function is not builtins.range or not any(type(one) in (Whole, Traced) for one in limits):
        return function(*limits, **options)
    step = limits[2] if len(limits) == 3 else 1
    if type(step) is not int or step == 0 or not 1 <= len(limits) <= 3 or not all(map(_is_int, limits)):
        return function(*limits)
    return Along(
        Count(0, limits[0], 1) if len(limits) == 1 else Count(limits[0], limits[1], step), lambda i: i
    )


def _is_int(value: Any) -> bool:
    return type(value) in (int, Whole) or (type(value) is Traced and value.python is int)


def enumerate_(function: Any, values: Any, start: Any = 0) -> Any:
    """``enumerate(values, start)``."""
    inner = along(values) if function is builtins.enumerate and _is_int(start) else None
    if inner is None:
        return function(values, start)
    return Along(inner.count, lambda i: (i + start, inner.at(i)))


def zip_(function: Any, *values: Any, **options: Any) -> Any:
    """``zip(...)`` of as many."""
    inner = [along(one) for one in values] if function is builtins.zip else []
    found = [one for one in inner if one is not None]
    if not found or len(found) < len(values) or not _are_alike([one.count for one in found]):
        return function(*values, **options)
    return Along(found[0].count, lambda i: tuple([one.at(i) for one in found]))


def _are_alike(counts: Sequence[Count]) -> bool:
    return all(one.begin == 0 and one.step == 1 and bool(one.end == counts[0].end) for one in counts)


def along(values: Any) -> Along | None:
    """What a loop goes along; None for what Python goes along while tracing."""
    if type(values) is Along:
        return values
    if type(values) is range:
        return Along(Count(values.start, values.stop, values.step), lambda i: i)
    if type(values) is Traced and values.ndim:
        return Along(Count(0, as_whole(values.tracer, values.extents[0]), 1), lambda i: values[i])
    return None
