"""What follows a matrix product: a loop nest that takes its rows while they are in the cache.

Bias, activation and residual are such nests, and so is whatever else needs no more of the product than the row that it
computes, such as a softmax. The kernel hands each band of its rows on (see `jitkernels.loops.followed`). A product that
nothing else reads lies in the memory of what is made of it.
"""

from collections.abc import Container, Mapping, Sequence
from itertools import pairwise

from jitkernels.graph import cones, extents
from jitkernels.graph.construct import IndexMap
from jitkernels.graph.emit.blocks import Function
from jitkernels.graph.emit.memory import Array
from jitkernels.graph.emit.nests import Emitter
from jitkernels.graph.extents import same
from jitkernels.graph.flows import Flow
from jitkernels.graph.ir import Graph, Node
from jitkernels.graph.kernel_calls import KernelCall
from jitkernels.graph.nests import Nest
from jitkernels.graph.numpy_calls import NumpyCall
from jitkernels.graph.products import Product, operands
from jitkernels.graph.schedule import Single
from jitkernels.native.language.types import NUMBERS

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
        return {key for cone in step.cones for key in (*cone.leaves, *cone.picked_from)}
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
        where = {cones.key_of(cones.identity(product.node.ndim))}
        if any(
            cone.reductions or {*cone.places.get(id(product.node), where)} != where for cone in nest.cones
        ):
            continue
        for store in nest.stores:
            root = store.cone.root
            is_alike = root.dtype == product.node.dtype and _has_shape(root, product.node)
            if is_alike and root is store.target and store.region is None and id(root) not in shared:
                found[id(root)] = product.node
                break
    return found


def _bytes(node: Node) -> int:
    return int(extents.value_of(extents.product(node.shape))) * NUMBERS[node.dtype].size


def _has_shape(node: Node, other: Node) -> bool:
    return extents.key_of_shape(node.shape) == extents.key_of_shape(other.shape)


def takes_rows(product: Product, emitter: Emitter, arrays: Mapping[int, Array]) -> bool:
    """Whether a nest can be run for the rows of a product that are done: it writes nothing that others are made of."""
    if emitter.range_loop is None or any(id(product.node) in cone.picked_from for cone in emitter.nest.cones):
        return False
    made_of = {arrays[id(one)].word for one in (product.left, product.right)}
    if any(arrays[id(store.target)].word in made_of for store in emitter.nest.stores):
        return False
    places = [
        place
        for target in emitter.targets
        for node, place in emitter.values.needed(target.node, target.place)
        if node is product.node
    ]
    return bool(places) and all(_is_in_own_row(place, product, emitter) for place in places)


def _is_in_own_row(place: IndexMap, product: Product, emitter: Emitter) -> bool:
    """Whether what a step of the outermost loop reads is in its own row, or is its own element."""
    loop, shape = emitter.range_loop, product.node.shape
    assert loop is not None, "asked"
    own = next((i for i, (_, moves) in enumerate(place) if loop in dict(moves)), -1)
    if own < len(shape) - 2 or not all(same(first, 0) and not moves for first, moves in place[:own]):
        return False
    first, moves = place[own]
    is_whole = same(emitter.extents[loop], extents.product(shape[: own + 1]))
    return is_whole and same(first, 0) and _steps(moves) == ((loop, 1),)


def _steps(moves: Sequence[tuple[int, extents.Number]]) -> tuple[tuple[int, int], ...]:
    """Moves along loops, of which those by one are told from others."""
    return tuple((loop, 1 if same(step, 1) else 0) for loop, step in moves)


def _is_of_elements(product: Product, emitter: Emitter) -> bool:
    """Whether the outermost loop is over all elements of a product, one behind another."""
    loop = emitter.range_loop
    return loop is not None and same(emitter.extents[loop], extents.product(product.node.shape))


def text_of_rows(product: Product, emitter: Emitter, name: str) -> str:
    """LLVM IR of the function that runs a nest for rows ``begin`` to ``end`` of a pair; see `Product.text`."""
    function = Function(emitter.function.library, emitter.function.places)
    block, new = function.block, function.new
    step = function.extent(product.node.shape[-1] if _is_of_elements(product, emitter) else 1)
    at = new(block, "getelementptr { ptr, i64 }, ptr %context, i64 0, i32 1")
    number = new(block, f"load i64, ptr {at}")
    limits = []
    for one in ("begin", "end"):
        row = new(block, f"add nsw i64 %{one}, {number}")
        limits.append(new(block, f"mul nsw i64 {row}, {step}"))
    new(block, f"call i64 @{emitter.name}(ptr %frame, i64 {limits[0]}, i64 {limits[1]})")
    body = "\n".join(["  %frame = load ptr, ptr %context", *function.memory, *block.lines])
    head = f"define internal void @{name}(ptr %context, i64 %begin, i64 %end) nounwind"
    return f"{head} {{\n{body}\n  ret void\n}}"
