"""In which order units are done, so that little memory is needed at once: what ends the need for arrays comes early.

Gradients of weights, for instance, need what a layer was given and what comes back to it. Done as soon as both are
there, they leave the memory of both to the layers before it.

Units keep their order where one writes what the other reads or writes. Loops, branches, NumPy's operations and what
looks for mistakes stay behind all that they come behind. Among those that can be done, that is taken which leaves the
least memory in need, from the first unit on or from the last one back; and where that is no better in all, everything
stays as it was.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from jitkernels.graph.arena import Buffer, bound_of
from jitkernels.graph.lifetimes import Use, spans_of


def ordered(uses: Sequence[Use], stays: Sequence[bool], buffers: Sequence[Buffer]) -> list[int]:
    """The numbers of units in an order for which no more is needed at once than for the one that they have."""
    before, waits = list(range(len(uses))), _waits(uses, stays)
    size = {one.word: one.now for one in buffers}
    orders = before, _by_need(uses, waits, size), _from_the_end(uses, waits, size)
    return min(orders, key=lambda order: bound_of(needed_in(order, uses, buffers)))


def _from_the_end(uses: Sequence[Use], waits: Sequence[set[int]], size: Mapping[int, int]) -> list[int]:
    """The same from the last unit to the first, so that what is made comes late."""
    last = len(uses) - 1
    followers: list[set[int]] = [set() for _ in uses]
    for number, own in enumerate(waits):
        for one in own:
            followers[last - one].add(last - number)
    return [last - number for number in reversed(_by_need(uses[::-1], followers, size))]


def needed_in(order: Sequence[int], uses: Sequence[Use], buffers: Sequence[Buffer]) -> list[Buffer]:
    """The same arrays, which are needed when units are done in some order."""
    spans = spans_of(order, uses)
    return [replace(one, spans=tuple(spans[one.word])) for one in buffers]


def _waits(uses: Sequence[Use], stays: Sequence[bool]) -> list[set[int]]:
    """For each unit, those that have to be done before."""
    found: list[set[int]] = []
    writer: dict[int, int] = {}
    readers: dict[int, list[int]] = {}
    barrier = -1
    for number, use in enumerate(uses):
        own = {barrier} - {-1}
        for word in use.reads | use.writes:
            own |= {writer[word]} if word in writer else set()
            if word in use.writes:
                own.update(readers.pop(word, ()))
                writer[word] = number
            else:
                readers.setdefault(word, []).append(number)
        if stays[number]:
            own, barrier = set(range(number)), number
        found.append(own)
    return found


def _by_need(uses: Sequence[Use], waits: Sequence[set[int]], size: Mapping[int, int]) -> list[int]:
    """Each time what leaves the least in need, of those that need not wait."""
    touched = [(use.reads | use.writes) & size.keys() for use in uses]
    left: dict[int, int] = {}
    for words in touched:
        for word in words:
            left[word] = left.get(word, 0) + 1
    open_, followers = [len(one) for one in waits], [list[int]() for _ in uses]
    for number, own in enumerate(waits):
        for one in own:
            followers[one].append(number)
    ready = [number for number, count in enumerate(open_) if not count]
    there: set[int] = set()
    order: list[int] = []

    def more(number: int) -> tuple[int, int]:
        new = sum(size[word] for word in touched[number] - there)
        gone = sum(size[word] for word in touched[number] if left[word] == 1)
        return new - gone, number

    while ready:
        chosen = min(ready, key=more)
        ready.remove(chosen)
        order.append(chosen)
        there |= touched[chosen]
        for word in touched[chosen]:
            left[word] -= 1
        for one in followers[chosen]:
            open_[one] -= 1
            if not open_[one]:
                ready.append(one)
    return order
