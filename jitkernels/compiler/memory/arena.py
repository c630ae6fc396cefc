"""Buffer assignment: pack the arrays between a program's steps into one arena, where disjoint lifetimes share memory.

Lifetimes are known at compile time, sizes are not. So the plan is an order: it is searched with the sizes of the
traced call, and each buffer begins where the highest of those ends that it interferes with and that lie below it.
That is correct for all sizes, and for those of the traced call it is the arena that the search found.

The search is a packing problem: buffers are put one after another into the lowest gap that fits, in several orders
(largest first, longest-lived first, by time), and if the best arena exceeds the bound, which is the most that is live
at once, buffers at the top are moved to the front of the order, repeatedly.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.symbolic_dims import Number

MAX_TRIES, MAX_REORDERED_BUFFERS = 200, 1000
"""The most changes of the order, and the most buffers for which it is changed."""


@dataclass
class Buffer:
    """An array between steps: its frame word, its bytes, and its live ranges as times of units.

    `within`: for arrays that live inside of one loop or branch, the first and last of its steps that need them.
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
    def traced_bytes(self) -> int:
        return int(symbolic_dims.value_of(self.nbytes))

    def meets(self, other: "Buffer") -> bool:
        """Return whether two buffers are live at once (interfere)."""
        if self.within is not None and other.within is not None and self.spans == other.spans:
            return _overlap(self.within, other.within)
        return any(_overlap(one, span) for one in self.spans for span in other.spans)


def _overlap(left: tuple[int, int], right: tuple[int, int]) -> bool:
    return left[0] <= right[1] and right[0] <= left[1]


@dataclass
class Arena:
    """Buffers from the lowest to the highest, and for each the indices of those that it must lie above.

    `limit`: the largest arena that this plan serves; calls that need more have another plan.
    """

    buffers: list[Buffer] = field(default_factory=list)
    above: list[tuple[int, ...]] = field(default_factory=list)
    limit: int | None = None

    def offsets(self, value: Callable[[Number], int]) -> tuple[list[int], int]:
        """Return each buffer's offset, and the bytes of the arena."""
        begins: list[int] = []
        ends: list[int] = []
        for buffer, lower in zip(self.buffers, self.above, strict=True):
            begins.append(max((ends[i] for i in lower), default=0))
            ends.append(begins[-1] + value(buffer.nbytes))
        return begins, max(ends, default=0)

    @property
    def bound(self) -> int:
        """The peak of live bytes in the traced call: no arena is smaller."""
        return bound_of(self.buffers)

    @property
    def traced_bytes(self) -> int:
        """The bytes of the arena in the traced call."""
        return self.offsets(symbolic_dims.value_of)[1]


def bound_of(buffers: Iterable[Buffer]) -> int:
    """The peak of live bytes."""
    return max(needed_at(buffers).values(), default=0)


def needed_at(buffers: Iterable[Buffer]) -> dict[int, int]:
    """The live bytes, by the times at which they change."""
    changes: dict[int, int] = {}
    inside: dict[int, list[Buffer]] = {}
    for buffer in buffers:
        if buffer.within is None:
            _add(changes, buffer.spans, buffer.traced_bytes)
        else:
            inside.setdefault(buffer.first, []).append(buffer)
    for time, own in inside.items():
        steps: dict[int, int] = {}
        for buffer in own:
            _add(steps, [buffer.within or (0, 0)], buffer.traced_bytes)
        _add(changes, [(time, time)], max(_sums(steps).values()))
    return _sums(changes)


def _add(changes: dict[int, int], spans: Iterable[tuple[int, int]], nbytes: int) -> None:
    """Add a buffer's bytes at the begin of each live range, and subtract them after its end; ranges may overlap."""
    reached = -1
    for first, last in spans:
        begin = max(first, reached + 1)
        if begin <= last:
            changes[begin] = changes.get(begin, 0) + nbytes
            changes[last + 1] = changes.get(last + 1, 0) - nbytes
            reached = last


def _sums(changes: dict[int, int]) -> dict[int, int]:
    """The running sums of changes by time."""
    return dict(zip(sorted(changes), itertools.accumulate(changes[time] for time in sorted(changes)), strict=True))


def assign_offsets(buffers: Sequence[Buffer]) -> Arena:
    if not buffers:
        return Arena()
    interferences = _interferences(buffers)
    begins = _searched_offsets(buffers, interferences)
    order = sorted(range(len(buffers)), key=lambda i: (begins[i], buffers[i].first))
    position_of = {i: position for position, i in enumerate(order)}
    above: list[tuple[int, ...]] = []
    transitive: list[int] = []  # bit sets of all buffers below one, directly or transitively
    for position, i in enumerate(order):
        direct: list[int] = []
        reached = 0
        lower = [j for j in interferences[i] if position_of[j] < position]
        for j in sorted(lower, key=lambda j: (-begins[j], position_of[j])):
            if not reached >> position_of[j] & 1:
                direct.append(position_of[j])
                reached |= transitive[position_of[j]] | 1 << position_of[j]
        above.append(tuple(direct))
        transitive.append(reached)
    return Arena([buffers[i] for i in order], above)


def _searched_offsets(buffers: Sequence[Buffer], interferences: Sequence[Sequence[int]]) -> list[int]:
    """Search offsets for the sizes of the traced call, in as little memory as possible."""
    count, bound = len(buffers), bound_of(buffers)
    size = [buffer.traced_bytes for buffer in buffers]
    keys: list[Callable[[int], Any]] = [
        lambda i: (-size[i], buffers[i].first),
        lambda i: (-size[i] * (buffers[i].last - buffers[i].first + 1), buffers[i].first),
        lambda i: (buffers[i].first, -size[i]),
        lambda i: (buffers[i].first - buffers[i].last, -size[i]),
    ]
    best: tuple[int, list[int], list[int]] | None = None
    for key in keys:
        order = sorted(range(count), key=key)
        total, begins = _first_fit(order, size, interferences)
        if best is None or total < best[0]:
            best = total, begins, order
        if total == bound:
            return begins
    assert best is not None, "there are orders"
    total, begins, order = best
    tries = MAX_TRIES if count <= MAX_REORDERED_BUFFERS else 0
    random = np.random.default_rng(0)
    for _ in range(tries):
        if total == bound:
            break
        top = [i for i in order if begins[i] + size[i] == total]
        moved = top[0] if random.random() < 0.7 else int(random.integers(count))
        position = int(random.integers(order.index(moved) + 1))
        candidate = [i for i in order if i != moved]
        candidate.insert(position, moved)
        candidate_total, candidate_begins = _first_fit(candidate, size, interferences)
        if candidate_total <= total:
            total, begins, order = candidate_total, candidate_begins, candidate
    return begins


def _interferences(buffers: Sequence[Buffer]) -> list[list[int]]:
    """For each buffer, the buffers that interfere with it."""
    results: list[list[int]] = [[] for _ in buffers]
    alive: list[int] = []
    for i in sorted(range(len(buffers)), key=lambda i: buffers[i].first):
        alive = [j for j in alive if buffers[j].last >= buffers[i].first]
        for j in alive:
            if buffers[i].meets(buffers[j]):
                results[i].append(j)
                results[j].append(i)
        alive.append(i)
    return results


def _first_fit(
    order: Sequence[int], size: Sequence[int], interferences: Sequence[Sequence[int]]
) -> tuple[int, list[int]]:
    """First fit: put each buffer into the lowest gap in which it fits; return the total bytes and the offsets."""
    begins = [-1] * len(size)
    total = 0
    for i in order:
        offset = 0
        for begin, end in sorted((begins[j], begins[j] + size[j]) for j in interferences[i] if begins[j] >= 0):
            if begin - offset >= size[i]:
                break
            offset = max(offset, end)
        begins[i] = offset
        total = max(total, offset + size[i])
    return total, begins
