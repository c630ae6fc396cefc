"""Memory-aware scheduling: reorder units to reduce the peak of live bytes, by ending lifetimes early.

Gradients of weights, for instance, need a layer's input and the gradient of its output. Run as soon as both exist,
they free the memory of both for the layers before it.

Units keep their order where one writes what the other reads or writes. Loops, branches, NumPy calls and checks stay
behind all that precedes them. List scheduling takes the ready unit that leaves the fewest live bytes, once forwards
and once backwards from the end. It runs small units early, also those that nothing waits for, such as the transposed
filters that gradients need: these sink to their first reader. The original order is kept if none of these is better.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from jitkernels.compiler.memory.arena import Buffer, bound_of
from jitkernels.compiler.memory.lifetimes import Use, spans_of


def order_units(uses: Sequence[Use], stays: Sequence[bool], buffers: Sequence[Buffer]) -> list[int]:
    """Return an order of units whose peak of live bytes is at most that of the given order."""
    original, dependences = list(range(len(uses))), _dependences(uses, stays)
    size = {buffer.word: buffer.traced_bytes for buffer in buffers}
    found = (original, _list_schedule(uses, dependences, size), _reverse_list_schedule(uses, dependences, size))
    orders = [*found, *(_sink(order, uses, dependences, size) for order in found)]
    return min(orders, key=lambda order: bound_of(buffers_in_order(order, uses, buffers)))


def _reverse_list_schedule(uses: Sequence[Use], dependences: Sequence[set[int]], size: Mapping[int, int]) -> list[int]:
    """List scheduling from the last unit to the first, so that definitions come late."""
    last = len(uses) - 1
    followers: list[set[int]] = [set() for _ in uses]
    for number, predecessors in enumerate(dependences):
        for predecessor in predecessors:
            followers[last - predecessor].add(last - number)
    return [last - number for number in reversed(_list_schedule(uses[::-1], followers, size))]


def _sink(
    order: Sequence[int], uses: Sequence[Use], dependences: Sequence[set[int]], size: Mapping[int, int]
) -> list[int]:
    """Move units down to the first one that waits for them, where they allocate more than they free."""
    followers: list[list[int]] = [[] for _ in uses]
    for number, predecessors in enumerate(dependences):
        for predecessor in predecessors:
            followers[predecessor].append(number)
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for number in order:
        for word in uses[number].reads | uses[number].writes:
            first.setdefault(word, number)
            last[word] = number
    place = {number: position for position, number in enumerate(order)}
    sunk = dict(place)
    for number in reversed(order):
        words = (uses[number].reads | uses[number].writes) & size.keys()
        allocated = sum(size[word] for word in words if first[word] == number)
        freed = sum(size[word] for word in words if last[word] == number)
        if followers[number] and allocated > freed:
            sunk[number] = min(sunk[follower] for follower in followers[number])
    return sorted(order, key=lambda number: (sunk[number], place[number]))


def buffers_in_order(order: Sequence[int], uses: Sequence[Use], buffers: Sequence[Buffer]) -> list[Buffer]:
    """The buffers with their live ranges in another order of units."""
    spans = spans_of(order, uses)
    return [replace(buffer, spans=tuple(spans[buffer.word])) for buffer in buffers]


def _dependences(uses: Sequence[Use], stays: Sequence[bool]) -> list[set[int]]:
    """For each unit, the units that must run before it."""
    results: list[set[int]] = []
    writer: dict[int, int] = {}
    readers: dict[int, list[int]] = {}
    barrier = -1
    for number, use in enumerate(uses):
        predecessors = {barrier} - {-1}
        for word in use.reads | use.writes:
            predecessors |= {writer[word]} if word in writer else set()
            if word in use.writes:
                predecessors.update(readers.pop(word, ()))
                writer[word] = number
            else:
                readers.setdefault(word, []).append(number)
        if stays[number]:
            predecessors, barrier = set(range(number)), number
        results.append(predecessors)
    return results


def _list_schedule(uses: Sequence[Use], dependences: Sequence[set[int]], size: Mapping[int, int]) -> list[int]:
    """List scheduling: run the ready unit that increases the live bytes least."""
    touched = [(use.reads | use.writes) & size.keys() for use in uses]
    uses_left: dict[int, int] = {}
    for words in touched:
        for word in words:
            uses_left[word] = uses_left.get(word, 0) + 1
    pending, followers = [len(wait) for wait in dependences], [list[int]() for _ in uses]
    for number, predecessors in enumerate(dependences):
        for predecessor in predecessors:
            followers[predecessor].append(number)
    ready = [number for number, count in enumerate(pending) if not count]
    live: set[int] = set()
    order: list[int] = []

    def live_increase(number: int) -> tuple[int, int]:
        allocated = sum(size[word] for word in touched[number] - live)
        freed = sum(size[word] for word in touched[number] if uses_left[word] == 1)
        return allocated - freed, number

    while ready:
        chosen = min(ready, key=live_increase)
        ready.remove(chosen)
        order.append(chosen)
        live |= touched[chosen]
        for word in touched[chosen]:
            uses_left[word] -= 1
        for predecessor in followers[chosen]:
            pending[predecessor] -= 1
            if not pending[predecessor]:
                ready.append(predecessor)
    return order
