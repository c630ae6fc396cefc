"""In which order the dimensions of a result lie in memory: as NumPy chooses it, by how what it is made of lies."""

from collections.abc import Mapping, Sequence

from jitkernels.graph import cones, construct, epilogues
from jitkernels.graph.cones import Cone
from jitkernels.graph.construct import IndexMap
from jitkernels.graph.emit.memory import Array
from jitkernels.graph.extents import Number, same
from jitkernels.graph.layouts import Order, order_of_computed, order_of_joined
from jitkernels.graph.nests import Nest, Store


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
    found = [one.cone for one in parts if one.target is store.target and (one.cone.leaves or not named)]
    known = [(cone.root.shape, _steps_of(cone, arrays)) for cone in found]
    order = order_of_joined(store.target.ndim, known)
    return None if named and order != (*reversed(range(store.target.ndim)),) else order


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
    return steps


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
    return order_of_computed(cone.root.ndim, known)
