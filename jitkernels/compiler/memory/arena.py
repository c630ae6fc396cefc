"""Where the arrays between the steps of a program lie: in one arena, in which those not needed at once share memory.

Lifetimes are known when code is made, sizes are not. So what is planned is who lies above whom: an order of places is
looked for with the sizes of the traced call, and each array begins where the highest of those ends that it must not
overlap and that were put below it. That holds for all sizes, and for those of the traced call it is what was found.

Looking for places is a packing problem: arrays are put one after another into the lowest gap that fits, in several
orders (largest first, longest first, as they come), and if the best is above the bound, which is the most that is
needed at once, the arrays at the top are moved to the front of the order, again and again.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jitkernels.graph import extents
from jitkernels.graph.extents import Number

MOST_TRIES, MANY = 200, 1000
"""How often an order is changed, and of how many arrays at most."""


@dataclass
class Buffer:
    """An array between steps: its word in the frame, its bytes, and from which to which times it is needed.

    `within`: of what is needed at one time alone, while a loop or branch runs, from which to which of its steps.
    """

    word: int
    nbytes: Number
    spans: tuple[tuple[int, int], ...]
    within: tuple[int, int] | None = None

    @property
    def first(self) -> int:
        return self.spans[0][0]

    @property
    def last(self) -> int:
        return max(last for _, last in self.spans)

    @property
    def now(self) -> int:
        """The bytes in the call that was traced."""
        return int(extents.value_of(self.nbytes))

    def meets(self, other: "Buffer") -> bool:
        """Whether both are needed at once."""
        if self.within is not None and other.within is not None and self.spans == other.spans:
            return _overlap(self.within, other.within)
        return any(_overlap(one, span) for one in self.spans for span in other.spans)


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


@dataclass
class Arena:
    """Buffers from the lowest to the highest, and for each the numbers of those that it has to lie above.

    `limit`: bytes in all that it is for; calls that need more have another one.
    """

    buffers: list[Buffer] = field(default_factory=list)
    above: list[tuple[int, ...]] = field(default_factory=list)
    limit: int | None = None

    def places(self, value: Callable[[Number], int]) -> tuple[list[int], int]:
        """Where each buffer begins, and the bytes of the arena."""
        begins: list[int] = []
        ends: list[int] = []
        for buffer, lower in zip(self.buffers, self.above, strict=True):
            begins.append(max((ends[i] for i in lower), default=0))
            ends.append(begins[-1] + value(buffer.nbytes))
        return begins, max(ends, default=0)

    @property
    def bound(self) -> int:
        """The most bytes that are needed at once, in the call that was traced: no arena is smaller."""
        return bound_of(self.buffers)

    @property
    def now(self) -> int:
        """The bytes of the arena, in the call that was traced."""
        return self.places(extents.value_of)[1]


def bound_of(buffers: Iterable[Buffer]) -> int:
    """The most bytes that are needed at once."""
    return max(needed_at(buffers).values(), default=0)


def needed_at(buffers: Iterable[Buffer]) -> dict[int, int]:
    """By times at which that changes: the bytes that are needed from then on."""
    changes: dict[int, int] = {}
    inside: dict[int, list[Buffer]] = {}
    for buffer in buffers:
        if buffer.within is None:
            _add(changes, buffer.spans, buffer.now)
        else:
            inside.setdefault(buffer.first, []).append(buffer)
    for time, own in inside.items():
        steps: dict[int, int] = {}
        for buffer in own:
            _add(steps, [buffer.within or (0, 0)], buffer.now)
        _add(changes, [(time, time)], max(_sums(steps).values()))
    return _sums(changes)


def _add(changes: dict[int, int], spans: Iterable[tuple[int, int]], nbytes: int) -> None:
    """Note of something when it is needed and when no longer; spans may overlap."""
    reached = -1
    for first, last in spans:
        begin = max(first, reached + 1)
        if begin <= last:
            changes[begin] = changes.get(begin, 0) + nbytes
            changes[last + 1] = changes.get(last + 1, 0) - nbytes
            reached = last


def _sums(changes: dict[int, int]) -> dict[int, int]:
    """What changes have come to at each time."""
    return dict(
        zip(sorted(changes), itertools.accumulate(changes[time] for time in sorted(changes)), strict=True)
    )


def planned(buffers: Sequence[Buffer]) -> Arena:
    """An arena for some buffers."""
    if not buffers:
        return Arena()
    meeting = _meetings(buffers)
    begins = _placed(buffers, meeting)
    order = sorted(range(len(buffers)), key=lambda i: (begins[i], buffers[i].first))
    number = {i: place for place, i in enumerate(order)}
    above: list[tuple[int, ...]] = []
    beneath: list[int] = []  # bits of all that a buffer lies above, of others or at once
    for place, i in enumerate(order):
        direct: list[int] = []
        reached = 0
        lower = [j for j in meeting[i] if number[j] < place]
        for j in sorted(lower, key=lambda j: (-begins[j], number[j])):
            if not reached >> number[j] & 1:
                direct.append(number[j])
                reached |= beneath[number[j]] | 1 << number[j]
        above.append(tuple(direct))
        beneath.append(reached)
    return Arena([buffers[i] for i in order], above)


def _placed(buffers: Sequence[Buffer], meeting: Sequence[Sequence[int]]) -> list[int]:
    """Where each buffer begins, by the sizes of now, in as little memory as is found."""
    count, bound = len(buffers), bound_of(buffers)
    size = [one.now for one in buffers]
    keys: list[Callable[[int], Any]] = [
        lambda i: (-size[i], buffers[i].first),
        lambda i: (-size[i] * (buffers[i].last - buffers[i].first + 1), buffers[i].first),
        lambda i: (buffers[i].first, -size[i]),
        lambda i: (buffers[i].first - buffers[i].last, -size[i]),
    ]
    best: tuple[int, list[int], list[int]] | None = None
    for key in keys:
        order = sorted(range(count), key=key)
        total, begins = _put(order, size, meeting)
        if best is None or total < best[0]:
            best = total, begins, order
        if total == bound:
            return begins
    assert best is not None, "there are orders"
    total, begins, order = best
    tries = MOST_TRIES if count <= MANY else 0
    random = np.random.default_rng(0)
    for _ in range(tries):
        if total == bound:
            break
        top = [i for i in order if begins[i] + size[i] == total]
        moved = top[0] if random.random() < 0.7 else int(random.integers(count))
        place = int(random.integers(order.index(moved) + 1))
        tried = [i for i in order if i != moved]
        tried.insert(place, moved)
        found, places = _put(tried, size, meeting)
        if found <= total:
            total, begins, order = found, places, tried
    return begins


def _meetings(buffers: Sequence[Buffer]) -> list[list[int]]:
    """For each buffer, those that are needed at a time when it is."""
    found: list[list[int]] = [[] for _ in buffers]
    alive: list[int] = []
    for i in sorted(range(len(buffers)), key=lambda i: buffers[i].first):
        alive = [j for j in alive if buffers[j].last >= buffers[i].first]
        for j in alive:
            if buffers[i].meets(buffers[j]):
                found[i].append(j)
                found[j].append(i)
        alive.append(i)
    return found


def _put(
    order: Sequence[int], size: Sequence[int], meeting: Sequence[Sequence[int]]
) -> tuple[int, list[int]]:
    """The bytes in all and the places, if each buffer in turn gets the lowest gap in which it fits."""
    begins = [-1] * len(size)
    most = 0
    for i in order:
        at = 0
        for begin, end in sorted((begins[j], begins[j] + size[j]) for j in meeting[i] if begins[j] >= 0):
            if begin - at >= size[i]:
                break
            at = max(at, end)
        begins[i] = at
        most = max(most, at + size[i])
    return most, begins
