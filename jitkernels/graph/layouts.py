"""In which order dimensions lie in memory: as NumPy has new arrays lie like those that they are computed from."""

from collections.abc import Mapping, Sequence

from jitkernels.graph.extents import Extent, Number, same, symbols_of, value_of


def sorted_dimensions(count: int, known: Sequence[Mapping[int, Number]]) -> tuple[int, ...] | None:
    """Dimensions from the outermost in memory on, None for C order. `known`: the steps of arrays along dimensions."""
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
    order.reverse()
    return None if order == list(range(count)) else tuple(order)


def order_like(shape: Sequence[Number], strides: Sequence[Number]) -> tuple[int, ...] | None:
    """The order of a new array like one with these strides, in which what is repeated is innermost."""
    order: list[int] = []
    for new in range(len(shape)):
        position = len(order)
        while position and not same(shape[new], 1) and _is_larger(strides[new], strides[order[position - 1]]):
            position -= 1
        order.insert(position, new)
    return None if order == sorted(order) else tuple(order)


def _is_inside(known: Sequence[Mapping[int, Number]], one: int, other: int) -> bool | None:
    """Whether a dimension has smaller steps than a later one wherever both have some; None where they never do."""
    compared = [
        _is_larger(steps[other], steps[one])
        for steps in known
        if not same(steps.get(one, 0), 0) and not same(steps.get(other, 0), 0)
    ]
    return all(compared) if compared else None


def _is_larger(one: Number, other: Number) -> bool:
    """Whether a step goes farther than another; the code is for such arrays, where that is not always so."""
    one, other = (step if value_of(step) >= 0 else -step for step in (one, other))
    apart = one - other
    holds = value_of(apart) > 0
    if any(name.startswith("s") for name in symbols_of(one) | symbols_of(other)):  # steps of arrays with gaps
        for step, sign in ((one, ">="), (other, ">="), (apart, ">") if holds else (-apart, ">=")):
            if isinstance(step, Extent):
                step.guard(step, sign)
    return holds
