"""GEMM epilogues: a loop nest that runs on rows of a matrix product while they are in the cache.

Bias, activation and residual are such nests, and so is whatever else needs no more of the product than the row that it
computes, such as a softmax. The kernel calls it for each finished band of rows (see
`jitkernels.microkernels.epilogue.tile_consumer`). A product that nothing else reads shares the memory of the output.
"""

from collections.abc import Container, Sequence
from itertools import pairwise

from jitkernels.codegen.python.types import NUMBERS
from jitkernels.compiler.ir import access_map, symbolic_dims
from jitkernels.compiler.ir.dim_bounds import traced_product
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.ir.region_memory import Flow
from jitkernels.compiler.schedule.fusion import UnfusedStep
from jitkernels.compiler.schedule.kernel_step import KernelCall
from jitkernels.compiler.schedule.loop_nest import LoopNest
from jitkernels.compiler.schedule.matmul_step import MatMulStep, operands
from jitkernels.compiler.schedule.numpy_step import NumpyCall

Step = LoopNest | UnfusedStep | MatMulStep | Flow | KernelCall | NumpyCall
MIN_SHARED_OUTPUT_BYTES = 1 << 18
"""Bytes from which on a product shares the memory of its output. In the cache separate memory is faster: vectors at the
end of one row and at the begin of the next overlap, and loads would wait for stores. A heuristic, by traced sizes."""


def move_products_to_readers(steps: Sequence[Step], shared: Container[Node]) -> list[Step]:
    """Move products to just before the first nest that reads them, behind other steps that change nothing."""
    results = list(steps)
    for step in steps:
        if not isinstance(step, MatMulStep):
            continue
        at = results.index(step)
        end = at + 1
        while end < len(results) and _may_precede(results[end], step, shared):
            end += 1
        if end < len(results) and isinstance(results[end], LoopNest) and step.node in read_by(results[end]):
            results.insert(end - 1, results.pop(at))
    return results


def _may_precede(step: Step, product: MatMulStep, shared: Container[Node]) -> bool:
    """Return whether a step may run before a product: a nest that does not read it, and whose results are new."""
    if not isinstance(step, LoopNest) or product.node in read_by(step):
        return False
    return all(
        store.target_map is None and store.target.operation != "input" and store.target not in shared
        for store in step.stores
    )


def kind_of(step: Step) -> str:
    """The word for a step in printed code."""
    words = {LoopNest: "loop nest", MatMulStep: "product", KernelCall: "kernel", NumpyCall: "NumPy"}
    return words.get(type(step), type(step).__name__.lower())


def read_by(step: Step) -> set[Node]:
    """The arrays in memory that a step reads."""
    if isinstance(step, LoopNest):
        return {node for region in step.regions for node in (*region.leaves, *region.gathered)}
    read = operands(step.node)[0] if step.node.operation == "matmul" else step.node.inputs
    return {*read, *step.node.inputs}


def written_by(step: Step) -> list[Node]:
    """The nodes that a step stores; of a loop or branch, itself as well."""
    if isinstance(step, LoopNest):
        return [store.target for store in step.stores]
    return [step.node, *step.items] if isinstance(step, Flow | KernelCall | NumpyCall) else [step.node]


def products_in_output_memory(steps: Sequence[Step], graph: Graph, shared: Container[Node]) -> dict[Node, Node]:
    """By root: the product that is stored in its memory, as the nest reads each element where it stores one."""
    kept = {*graph.inputs, *graph.roots, *graph.checks}
    result: dict[Node, Node] = {}
    for product, nest in pairwise(steps):
        if not isinstance(product, MatMulStep) or not isinstance(nest, LoopNest) or product.node in kept:
            continue
        node = product.node
        if _bytes(node) < MIN_SHARED_OUTPUT_BYTES or [step for step in steps if node in read_by(step)] != [nest]:
            continue
        identity = {access_map.key_of(access_map.identity(node.ndim))}
        if any(region.reductions or {*region.access_maps.get(node, identity)} != identity for region in nest.regions):
            continue
        for store in nest.stores:
            root = store.region.root
            is_congruent = root.dtype == node.dtype and _has_shape(root, node)
            if is_congruent and root is store.target and store.target_map is None and root not in shared:
                result[root] = node
                break
    return result


def _bytes(node: Node) -> int:
    return traced_product(node.shape) * NUMBERS[node.dtype].size


def _has_shape(node: Node, other: Node) -> bool:
    return symbolic_dims.key_of_shape(node.shape) == symbolic_dims.key_of_shape(other.shape)
