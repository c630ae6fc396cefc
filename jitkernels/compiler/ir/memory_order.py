"""Memory order of dimensions: results lie in memory as NumPy lays out the results of the same operations.

An order lists the dimensions from the outermost in memory to the innermost; None is C order. Where it depends on the
magnitude of strides that differ between calls, guards specialize the code.
"""

from collections.abc import Sequence

from jitkernels.compiler.ir.symbolic_dims import Extent, Number, same

Order = tuple[int, ...]
Strides = Sequence[Number]
"""The strides of an array, of either sign; 0 for broadcast dimensions."""


def elementwise_order(count: int, known: Sequence[Strides]) -> Order | None:
    """The order of the result of an elementwise operation on arrays with these strides."""
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


def concatenation_order(count: int, known: Sequence[tuple[Sequence[Number], Strides]]) -> Order | None:
    """The order of a concatenation of arrays with these shapes and strides: C order if any of them has it."""
    order = [*range(count)]
    for new in range(count):
        position = new
        for i in reversed(range(new)):
            further = [
                is_larger(strides[new], strides[order[i]])
                for shape, strides in known
                if not same(shape[new], 1) and not same(shape[order[i]], 1)
            ]
            if further and all(further):
                position = i
            elif further:
                break
        order.insert(position, order.pop(new))
    return _order(order)


def order_like(shape: Sequence[Number], strides: Strides) -> Order | None:
    """The order of a new array like one with these strides (`K` order), broadcast dimensions innermost."""
    order: list[int] = []
    for new in range(len(shape)):
        position = len(order)
        while position and not same(shape[new], 1) and is_larger(strides[new], strides[order[position - 1]]):
            position -= 1
        order.insert(position, new)
    return _order(order)


def _order(order: list[int]) -> Order | None:
    return None if order == sorted(order) else tuple(order)


def _is_inside(known: Sequence[Strides], dimension: int, outer: int) -> bool | None:
    """Whether a dimension has smaller strides than `outer` wherever both are nonzero; None where they never are."""
    compared = [
        is_larger(strides[outer], strides[dimension])
        for strides in known
        if not same(strides[dimension], 0) and not same(strides[outer], 0)
    ]
    return all(compared) if compared else None


def is_larger(stride: Number, other_stride: Number) -> bool:
    """Whether one stride is larger than another in magnitude."""
    if same(stride, 0) or same(other_stride, 0):
        return not same(stride, 0)
    stride, other_stride = abs(stride), abs(other_stride)
    if same(stride, other_stride) or _divides(stride, other_stride):
        return False
    return _divides(other_stride, stride) or bool(stride > other_stride)


def _divides(divisor: Number, dividend: Number) -> bool:
    """Whether the factors of `divisor` are some of those of `dividend`, and the remaining factors are extents."""
    terms = [factors.terms if isinstance(factors, Extent) else {(): int(factors)} for factors in (divisor, dividend)]
    if any(len(factors) != 1 for factors in terms):
        return False
    ((divisor_factors, count), (dividend_factors, dividend_count)) = (next(iter(factors.items())) for factors in terms)
    rest = [*dividend_factors]
    if any(atom.operation or atom.text[0] == "s" for atom in rest):
        return False  # strides may be anything
    for atom in divisor_factors:
        if atom not in rest:
            return False
        rest.remove(atom)
    return count > 0 and dividend_count % count == 0
