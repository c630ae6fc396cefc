"""In which order the dimensions of a result lie in memory: as NumPy chooses it, by how what it is made of lies."""

from collections.abc import Mapping, Sequence

from jitkernels.graph import cones, construct, epilogues, extents
from jitkernels.graph.cones import Cone
from jitkernels.graph.construct import IndexMap
from jitkernels.graph.emit.memory import Array
from jitkernels.graph.extents import Extent, Number, same
from jitkernels.graph.nests import Nest, Store

Order = tuple[int, ...]
"""Dimensions from the outermost in memory on."""


def order_of_store(
    store: Store, steps: Sequence[epilogues.Step], arrays: Mapping[int, Array]
) -> Order | None:
    """The order of a root, or of what is joined of several; None for C order."""
    if store.region is None:
        return order_of(store.cone, arrays)
    if store.target.operation != "concatenate":
        return None
    parts = [one for step in steps if isinstance(step, Nest) for one in step.stores]
    named = store.target.options.get("named", False)
    # A new array that is filled lies as the array that it is filled with, whatever else is put into it.
    cones_of = [one.cone for one in parts if one.target is store.target and (one.cone.leaves or not named)]
    order = _order_of_joined(cones_of, arrays) if cones_of else None
    return None if named and order != (*reversed(range(store.target.ndim)),) else order


def _order_of_joined(parts: Sequence[Cone], arrays: Mapping[int, Array]) -> Order | None:
    """That of all parts that have steps along two dimensions; that of C where any part says so."""
    known = [(cone.root.shape, _steps_of(cone, arrays)) for cone in parts]
    dimensions = range(parts[0].root.ndim)
    order = [*dimensions]
    for new in dimensions:
        position = new
        for i in reversed(range(new)):
            further = [
                _exceeds(steps[new], steps[order[i]])
                for shape, steps in known
                if not same(shape[new], 1) and not same(shape[order[i]], 1)
            ]
            if further and all(further):
                position = i
            elif further:
                break
        order.insert(position, order.pop(new))
    return None if order == [*dimensions] else tuple(order)


def _steps_of(cone: Cone, arrays: Mapping[int, Array]) -> list[Number]:
    """How far apart elements of a part lie: in what it is a view of, or, where it is computed, as its result would."""
    shape = cone.root.shape
    (leaf, *others) = cone.leaves or (0,)
    is_view = leaf in arrays and all(node.operation in ("view", "cast") for node in cone.nodes)
    if others or not is_view or len(cone.places[leaf]) != 1:
        return [*construct.contiguous(shape, order_of(cone, arrays))]
    (place,) = cone.places[leaf].values()
    return _distances(arrays[leaf].strides, place, len(shape))


def _distances(strides: Sequence[Number], place: IndexMap, dimensions: int) -> list[Number]:
    """How far each dimension of a root goes in an array, forwards or backwards."""
    steps: list[Number] = [0] * dimensions
    for stride, (_, moves) in zip(strides, place, strict=True):
        for loop, step in moves:
            if loop < cones.INNER:
                steps[loop] = steps[loop] + stride * step
    return [-step if extents.value_of(step) < 0 else step for step in steps]


def _exceeds(one: Number, other: Number) -> bool:
    """Whether a step is larger than another one. Where that is not so for all calls, code is for those alone."""
    if same(other, 0):
        return not same(one, 0)
    if same(one, other) or same(one, 0) or _divides(one, other):
        return False
    return _divides(other, one) or bool(one > other)


def _divides(one: Number, other: Number) -> bool:
    """Whether a product of symbols, which are 2 at least, is some of the factors of another one."""
    terms = [found.terms if isinstance(found, Extent) else {(): int(found)} for found in (one, other)]
    if any(len(found) != 1 for found in terms):
        return False
    ((few, count), (many, whole)) = (next(iter(found.items())) for found in terms)
    rest = [*many]
    for atom in few:
        if atom not in rest:
            return False
        rest.remove(atom)
    return count > 0 and whole % count == 0 and not any(atom.operation for atom in rest)


def order_of(cone: Cone, arrays: Mapping[int, Array]) -> Order | None:
    """The dimensions of an elementwise root from the outermost in memory on, as in what it reads; None for C order.

    So does NumPy choose the layout of a result: what is computed from transposed arrays lies as they do.
    """
    if cone.root.ndim < 2 or any(node.options["kind"] in ("argmin", "argmax") for node in cone.reductions):
        return None
    known: list[list[Number]] = []
    # What is picked is new, in C order; the numbers that pick it say nothing of the result.
    read = [(id(node), construct.contiguous(node.shape)) for node in cone.nodes if node.operation == "gather"]
    read += [(key, arrays[key].strides) for key in cone.leaves if key in arrays]
    for key, strides in read:
        for place in cone.places[key].values():
            if cones.ANYWHERE in cones.loops_of(place):
                continue
            steps = _distances(strides, place, cone.root.ndim)
            steps = [
                0 if same(extent, 1) else step for extent, step in zip(cone.root.shape, steps, strict=True)
            ]
            known.append(steps)
    dimensions = range(cone.root.ndim)
    order: list[int] = []  # from the innermost on
    for new in reversed(dimensions):
        position = len(order)
        for i in reversed(range(len(order))):
            is_inside = _is_inside(known, new, order[i])
            if is_inside:
                position = i
            elif is_inside is not None:
                break
        order.insert(position, new)
    order.reverse()
    return None if order == list(dimensions) else tuple(order)


def _is_inside(known: Sequence[Sequence[Number]], one: int, other: int) -> bool | None:
    """Whether a dimension has smaller steps than a later one wherever both have some; None where they never do."""
    compared = [
        _exceeds(steps[other], steps[one])
        for steps in known
        if not (same(steps[one], 0) or same(steps[other], 0))
    ]
    return all(compared) if compared else None
