"""In which order dimensions lie in memory: as NumPy has new arrays lie like those that they are computed from.

An order has the dimensions from the outermost in memory on; None is that of C. Where it depends on how far steps go,
and that differs between calls, code is for those calls alone.
"""

from collections.abc import Sequence

from jitkernels.graph.extents import Extent, Number, same

Order = tuple[int, ...]
Steps = Sequence[Number]
"""How far apart elements of an array lie along each dimension, forwards or backwards; 0 where they are repeated."""


def order_of_computed(count: int, known: Sequence[Steps]) -> Order | None:
    """The order of what is computed element by element from arrays with these steps."""
    order: list[int] = []  # from the innermost on
    for new in reversed(range(count)):
        position = len(order)
        for i in reversed(range(len(order))):
            is_inside = _is_inside(known, new, order[i])
            if is_inside:
                position = i
            elif is_inside is not None:
                break
        order.insert(position, new)
    return _order([*reversed(order)])


def order_of_joined(count: int, known: Sequence[tuple[Sequence[Number], Steps]]) -> Order | None:
    """The order of what is joined of arrays with these shapes and steps: that of C where any has it."""
    order = [*range(count)]
    for new in range(count):
        position = new
        for i in reversed(range(new)):
            further = [
                is_larger(steps[new], steps[order[i]])
                for shape, steps in known
                if not same(shape[new], 1) and not same(shape[order[i]], 1)
            ]
            if further and all(further):
                position = i
            elif further:
                break
        order.insert(position, order.pop(new))
    return _order(order)


def order_like(shape: Sequence[Number], steps: Steps) -> Order | None:
    """The order of a new array like one with these steps, in which what is repeated is innermost."""
    order: list[int] = []
    for new in range(len(shape)):
        position = len(order)
        while position and not same(shape[new], 1) and is_larger(steps[new], steps[order[position - 1]]):
            position -= 1
        order.insert(position, new)
    return _order(order)


def _order(order: list[int]) -> Order | None:
    return None if order == sorted(order) else tuple(order)


def _is_inside(known: Sequence[Steps], one: int, other: int) -> bool | None:
    """Whether a dimension has smaller steps than a later one wherever both have some; None where they never do."""
    compared = [
        is_larger(steps[other], steps[one])
        for steps in known
        if not same(steps[one], 0) and not same(steps[other], 0)
    ]
    return all(compared) if compared else None


def is_larger(one: Number, other: Number) -> bool:
    """Whether a step goes farther than another, in whatever direction."""
    if same(one, 0) or same(other, 0):
        return not same(one, 0)
    one, other = abs(one), abs(other)
    if same(one, other) or _divides(one, other):
        return False
    return _divides(other, one) or bool(one > other)


def _divides(one: Number, other: Number) -> bool:
    """Whether a product of extents is some of the factors of another one, and all others are 1 at least."""
    terms = [found.terms if isinstance(found, Extent) else {(): int(found)} for found in (one, other)]
    if any(len(found) != 1 for found in terms):
        return False
    ((few, count), (many, whole)) = (next(iter(found.items())) for found in terms)
    rest = [*many]
    if any(atom.operation or atom.text[0] == "s" for atom in rest):
        return False  # strides may be anything
    for atom in few:
        if atom not in rest:
            return False
        rest.remove(atom)
    return count > 0 and whole % count == 0
