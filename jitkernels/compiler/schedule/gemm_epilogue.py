"""What follows a matrix product: a loop nest that takes its rows while they are in the cache.

Bias, activation and residual are such nests, and so is whatever else needs no more of the product than the row that it
computes, such as a softmax. The kernel hands each band of its rows on (see
`jitkernels.microkernels.epilogue.tile_consumer`). A product that
nothing else reads lies in the memory of what is made of it.
"""

from collections.abc import Container, Sequence
from itertools import pairwise

from jitkernels.codegen.python.types import NUMBERS
from jitkernels.compiler.ir import access_map, symbolic_dims
from jitkernels.compiler.ir.dim_bounds import product_now
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.ir.region_memory import Flow
from jitkernels.compiler.schedule.fusion import Single
from jitkernels.compiler.schedule.kernel_step import KernelCall
from jitkernels.compiler.schedule.loop_nest import Nest
from jitkernels.compiler.schedule.matmul_step import Product, operands
from jitkernels.compiler.schedule.numpy_step import NumpyCall

Step = Nest | Single | Product | Flow | KernelCall | NumpyCall
LARGE = 1 << 18
"""Bytes from which on a product lies in the memory of what is made of it. In the cache it is better apart: vectors at
the end of one row and at the begin of the next overlap, and loads would wait for stores. A guess from the traced
call."""


def brought_together(steps: Sequence[Step], shared: Container[int]) -> list[Step]:
    """Steps in which products stand before the first nest that reads them, behind others that change nothing."""
    found = list(steps)
    for step in steps:
        if not isinstance(step, Product):
            continue
        at = found.index(step)
        end = at + 1
        while end < len(found) and _lets_by(found[end], step, shared):
            end += 1
        if end < len(found) and isinstance(found[end], Nest) and id(step.node) in read_by(found[end]):
            found.insert(end - 1, found.pop(at))
    return found


def _lets_by(step: Step, product: Product, shared: Container[int]) -> bool:
    """Whether a product may as well come behind a step: a nest whose results are new."""
    if not isinstance(step, Nest) or id(product.node) in read_by(step):
        return False
    return all(
        store.region is None and store.target.operation != "input" and id(store.target) not in shared
        for store in step.stores
    )


def read_by(step: Step) -> set[int]:
    """The arrays in memory that a step reads, by their ids."""
    if isinstance(step, Nest):
        return {key for cone in step.cones for key in (*cone.leaves, *cone.gathered_ids)}
    read = operands(step.node)[0] if step.node.operation == "matmul" else step.node.inputs
    return set(map(id, (*read, *step.node.inputs)))


def written_by(step: Step) -> list[Node]:
    """The nodes that a step stores; of a loop or branch, itself as well."""
    if isinstance(step, Nest):
        return [store.target for store in step.stores]
    return [step.node, *step.items] if isinstance(step, Flow | KernelCall | NumpyCall) else [step.node]


def taken_over(steps: Sequence[Step], graph: Graph, shared: Container[int]) -> dict[int, Node]:
    """By the ids of roots: products that are stored in their memory, where each element is read in its place alone."""
    kept = {id(node) for node in (*graph.inputs, *graph.roots, *graph.checks)}
    found: dict[int, Node] = {}
    for product, nest in pairwise(steps):
        if not isinstance(product, Product) or not isinstance(nest, Nest) or id(product.node) in kept:
            continue
        if _bytes(product.node) < LARGE:
            continue
        if [step for step in steps if id(product.node) in read_by(step)] != [nest]:
            continue
        where = {access_map.key_of(access_map.identity(product.node.ndim))}
        if any(cone.reductions or {*cone.places.get(id(product.node), where)} != where for cone in nest.cones):
            continue
        for store in nest.stores:
            root = store.cone.root
            is_alike = root.dtype == product.node.dtype and _has_shape(root, product.node)
            if is_alike and root is store.target and store.region is None and id(root) not in shared:
                found[id(root)] = product.node
                break
    return found


def _bytes(node: Node) -> int:
    return product_now(node.shape) * NUMBERS[node.dtype].size


def _has_shape(node: Node, other: Node) -> bool:
    return symbolic_dims.key_of_shape(node.shape) == symbolic_dims.key_of_shape(other.shape)
