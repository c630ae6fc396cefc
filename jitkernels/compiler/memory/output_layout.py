"""The memory order of outputs: as NumPy chooses it, by the strides of the operands."""

from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

from jitkernels.compiler.ir import access_map, builder
from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.memory_order import Order, concatenation_order, elementwise_order
from jitkernels.compiler.ir.symbolic_dims import Number, same
from jitkernels.compiler.schedule import gemm_epilogue
from jitkernels.compiler.schedule.fusion_region import FusionRegion
from jitkernels.compiler.schedule.loop_nest import LoopNest, Store


class ArrayLayout(NamedTuple):
    """The strides of an array in memory, and the order of its dimensions; None for C order."""

    strides: tuple[Number, ...]
    order: Order | None = None


def layouts_of(
    inputs: Sequence[Node],
    steps: Sequence[gemm_epilogue.Step],
    shared: Mapping[Node, Node],
    dense: Container[Node],
    requested: Mapping[Node, Order],
) -> dict[Node, ArrayLayout]:
    """The layouts of all arrays in memory, before they have buffers.

    `dense`: those that must be in C order; `requested`: the orders that results must have.
    """
    result: dict[Node, ArrayLayout] = {}
    for node in inputs:
        strides = node.options.get("strides")
        result[node] = ArrayLayout(tuple(strides) if strides is not None else builder.contiguous(node.shape))
    for step in steps:
        stores = {store.target: store for store in reversed(step.stores)} if isinstance(step, LoopNest) else {}
        for node in gemm_epilogue.written_by(step):
            if node in result:
                continue
            if node in shared and shared[node] in result:
                result[node] = result[shared[node]]
                continue
            order = None
            if node in stores and node not in dense:
                order = requested.get(node) or order_of_store(stores[node], steps, result)
            result[node] = ArrayLayout(builder.contiguous(node.shape, order), order)
    return result


def order_of_store(
    store: Store, steps: Sequence[gemm_epilogue.Step], arrays: Mapping[Node, ArrayLayout]
) -> Order | None:
    """The memory order of an output, or of a concatenation of parts; None for C order."""
    if builder.is_unwritten(store.target):
        chosen: Order | None = store.target.options.get("order")
        return chosen
    if store.target_map is None:
        return order_of(store.region, arrays)
    if store.target.operation != "concatenate":
        return None
    parts = [store for step in steps if isinstance(step, LoopNest) for store in step.stores]
    named = store.target.options.get("named", False)
    # A new array that is filled has the order of the array that fills it, whatever else is stored into it.
    regions = [part.region for part in parts if part.target is store.target and (part.region.leaves or not named)]
    known = [(region.root.shape, _strides_of_part(region, arrays)) for region in regions]
    order = concatenation_order(store.target.ndim, known)
    return None if named and order != (*reversed(range(store.target.ndim)),) else order


def _strides_of_part(region: FusionRegion, arrays: Mapping[Node, ArrayLayout]) -> list[Number]:
    """The strides of a part: of the array that it is a view of, or of its result where it is computed."""
    shape = region.root.shape
    leaf = next(iter(region.leaves), None)
    is_view = leaf in arrays and all(node.operation in ("view", "cast") for node in region.nodes)
    if leaf is None or not is_view or len(region.leaves) > 1 or len(region.access_maps[leaf]) != 1:
        return [*builder.contiguous(shape, order_of(region, arrays))]
    (index_map,) = region.access_maps[leaf].values()
    return _loop_strides(arrays[leaf].strides, index_map, len(shape))


def _loop_strides(strides: Sequence[Number], index_map: IndexMap, dimensions: int) -> list[Number]:
    """The coefficient of each output dimension in an array's offset."""
    steps: list[Number] = [0] * dimensions
    for stride, (_, coefficients) in zip(strides, index_map, strict=True):
        for loop, step in coefficients:
            if loop < access_map.INNER:
                steps[loop] = steps[loop] + stride * step
    return steps


def order_of(region: FusionRegion, arrays: Mapping[Node, ArrayLayout]) -> Order | None:
    """The memory order of an elementwise output, outermost dimension first, as in its operands; None for C order.

    NumPy's rule for the layout of a result: transposed operands give a transposed result.
    """
    if region.root.ndim < 2 or any(node.options["kind"] in ("argmin", "argmax") for node in region.reductions):
        return None
    known: list[list[Number]] = []
    # A gathered array is new, in C order; the layout of indices has no influence.
    read = [(node, builder.contiguous(node.shape)) for node in region.nodes if node.operation == "gather"]
    read += [(leaf, arrays[leaf].strides) for leaf in region.leaves if leaf in arrays]
    for node, strides in read:
        for index_map in region.access_maps[node].values():
            if access_map.ANYWHERE in access_map.loops_of(index_map):
                continue
            steps = _loop_strides(strides, index_map, region.root.ndim)
            steps = [0 if same(extent, 1) else step for extent, step in zip(region.root.shape, steps, strict=True)]
            known.append(steps)
    return elementwise_order(region.root.ndim, known)
