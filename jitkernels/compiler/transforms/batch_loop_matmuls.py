"""Hoist and batch products of a loop: a product that depends on the induction variable only runs for many iterations.

``for t in range(n): z = w @ x[t] + u @ h`` needs no ``h`` for ``w @ x[t]``: one matrix product, ``x @ w.T``, reads w
once where n matrix-vector products read it n times. The loop is strip-mined into `BLOCK_ITERATIONS`-long blocks,
so that the memory for batched results does not grow with the trip count:

1. A value computed from the induction variable, loop invariants, and such values becomes one array with a leading
   dimension, the iterations of a block. An iteration takes its row of it.
2. A product of a vector with a loop-invariant matrix is batched, if the matrix is not tiny; and so are elementwise
   functions of the product alone, as an added bias.
3. A loop-invariant product is hoisted out of the loop.

Sums may have another order than in a matrix-vector product, as in any product.
"""

from collections.abc import Sequence

from jitkernels.attrs.schema.base import FLOATS
from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.builder import elementwise
from jitkernels.compiler.ir.dim_bounds import least
from jitkernels.compiler.ir.dim_proofs import linear
from jitkernels.compiler.ir.graph import Graph, Node, number_of, readers, transformed
from jitkernels.compiler.ir.matrix_ops import matmul, matrix_transpose
from jitkernels.compiler.ir.ops import OPERATIONS
from jitkernels.compiler.ir.region_memory import is_control_flow
from jitkernels.compiler.ir.regions import (
    REGIONS,
    TRUE,
    LoopParts,
    clone_region,
    items,
    parameter,
    regions_of,
    symbols_in,
)
from jitkernels.compiler.ir.symbolic_dims import Atom, Extent, Number, Scope, same
from jitkernels.core.frozen_dataclass import frozen_dataclass

BLOCK_ITERATIONS = 64
"""Iterations of a block: rows enough for a matrix product, few enough to stay in the caches."""
MIN_BATCHED_TRIP_COUNT = 8
MIN_ELEMENTS, MIN_BESIDE = 256, 2048
"""The least elements of a matrix in matrix-vector and in vector-matrix products: smaller products take no longer than
loading their result. A vector-matrix product needs no horizontal sums, and is fast by itself."""


def batch_loop_products(graph: Graph, scope: Scope) -> Graph:
    """Hoist and batch products of all loops in a graph, also nested ones."""

    def rule(node: Node) -> Node:
        inner = {name: node.options[name] for name in REGIONS if name in node.options}
        new = {name: batch_loop_products(one, scope) for name, one in inner.items()}
        if any(new[name] is not inner[name] for name in inner):
            node = Node(node.operation, node.inputs, node.dtype, node.shape, {**node.options, **new})
        return _batch_loop(node, scope) if node.operation == "loop" else node

    return transformed(graph, rule) if any(map(regions_of, graph)) else graph


@frozen_dataclass
class IterationBlock:
    """Consecutive iterations: the first value of the induction variable, its step, and the trip count."""

    begin: Number
    step: int
    trip_count: Number


class BatchedValues:
    """Batched values of a loop body, for all iterations of a block. `captured`: the captured operands of the loop."""

    def __init__(self, parts: LoopParts, captured: Sequence[Node], block: IterationBlock) -> None:
        self.block = block
        self.symbol = parts.induction[0].options.get("symbol", "")
        self.carried = {one.options["symbol"] for one in parts.carried_parameters if "symbol" in one.options}
        self.known = dict(zip(parts.captured_parameters, captured, strict=True))
        self.varying: set[Node] = set()
        self.products: set[Node] = set()
        nodes = list(parts.body)
        for node in nodes:
            if all(operand in self.known for operand in node.inputs) and node.operation != "parameter":
                batched = self._batch(node)
                if batched is not None:
                    self.known[node] = batched
        read, outputs = readers(nodes), set(parts.body.roots)
        self.roots = [
            node
            for node in nodes
            if node in self.products and (node in outputs or any(one not in self.products for one in read[node]))
        ]

    def _batch(self, node: Node) -> Node | None:
        """Return the batched value of a node, the node itself if it is loop-invariant, None if it is not batched."""
        symbols = symbols_in([node])
        if is_control_flow(node) or symbols & self.carried:
            return None
        inputs = [self.known[operand] for operand in node.inputs]
        wide = [operand in self.varying for operand in node.inputs]
        counts = self.symbol in symbols
        if not any(wide) and not counts:
            self._note(node)
            return node.with_inputs(inputs) if inputs else node
        if node.operation == "view":
            batched = self._view(node, inputs[0], is_wide=wide[0])
        elif counts:
            return None
        elif node.operation == "matmul":
            batched = self._product(node, inputs, wide)
        elif node.operation == "cast" or OPERATIONS[node.operation].is_elementwise:
            operands = [
                broadcastable(operand, node.ndim) if is_wide else operand
                for operand, is_wide in zip(inputs, wide, strict=True)
            ]
            batched = Node(node.operation, operands, node.dtype, (self.block.trip_count, *node.shape), node.options)
        else:
            return None
        if batched is not None:
            self.varying.add(node)
            self._note(node)
        return batched

    def _note(self, node: Node) -> None:
        """Record a product, or an elementwise function of one with as many elements."""
        is_elementwise = node.operation in ("view", "cast") or OPERATIONS[node.operation].is_elementwise
        size = symbolic_dims.product(node.shape)
        if node.operation == "matmul" or (
            is_elementwise
            and any(
                operand in self.products and same(size, symbolic_dims.product(operand.shape)) for operand in node.inputs
            )
        ):
            self.products.add(node)

    def _view(self, node: Node, source: Node, *, is_wide: bool) -> Node | None:
        """A view for all iterations, whose start depends on the induction variable."""
        if any(self.symbol in symbolic_dims.symbols_of(extent) for extent in node.shape):
            return None
        dims: list[tuple[Number, tuple[tuple[int, Number], ...]]] = [(0, ((0, 1),))] if is_wide else []
        for start, steps in node.options["map"]:
            affine = linear(start, self.symbol)
            if affine is None or any(self.symbol in symbolic_dims.symbols_of(step) for _, step in steps):
                return None
            first, factor = affine
            iteration_dim = ((0, factor * self.block.step),) if factor else ()
            dims.append(
                (first + factor * self.block.begin, (*iteration_dim, *((loop + 1, step) for loop, step in steps)))
            )
        return builder.view(source, tuple(dims), (self.block.trip_count, *node.shape))

    def _product(self, node: Node, inputs: Sequence[Node], wide: Sequence[bool]) -> Node | None:
        """Batch a product of an iteration's vector with a loop-invariant matrix into a matrix product."""
        left, right = node.inputs
        matrix = right if wide[0] else left
        if all(wide) or left.ndim != 2 or right.ndim != 2 or node.dtype not in FLOATS:
            return None
        least_elements = MIN_BESIDE if wide[0] else MIN_ELEMENTS
        if not symbolic_dims.is_at_least_now(symbolic_dims.product(matrix.shape), least_elements):
            return None
        if wide[0] and same(left.shape[0], 1):
            result = matmul(builder.squeeze(inputs[0], [1]), inputs[1])
            return builder.expand_dims(result, [1])
        if wide[1] and same(right.shape[1], 1):
            result = matmul(builder.squeeze(inputs[1], [2]), matrix_transpose(inputs[0]))
            return builder.expand_dims(result, [2])
        return None


def broadcastable(node: Node, ndim: int) -> Node:
    """A batched value with dimensions inserted behind the iterations: it broadcasts to `ndim` in each of them."""
    missing = ndim + 1 - node.ndim
    return builder.expand_dims(node, range(1, 1 + missing)) if missing else node


def _batch_loop(node: Node, scope: Scope) -> Node:
    """Hoist loop-invariant products of a loop, and batch the rest per block."""
    if not node.options["counts"] or node.inputs[2].operation != "constant":
        return node
    parts = LoopParts(node)
    begin, end = map(number_of, parts.bounds[:2])
    if not parts.has_unit_step or begin is None or end is None:
        return node
    trip_count = (end - begin) * parts.step
    if symbolic_dims.is_loop_variant(trip_count):
        return node
    if not symbolic_dims.is_at_least(trip_count, 1) or not any(one.operation == "matmul" for one in parts.body):
        return node
    wide = BatchedValues(parts, parts.captured, IterationBlock(begin, parts.step, trip_count))
    invariants = [(root, wide.known[root]) for root in wide.roots if root not in wide.varying]
    if invariants:
        node = _with_batched_values(
            parts, parts.bounds, parts.carried, parts.captured, [(*node, ()) for node in invariants]
        )
        return _batch_loop(node, scope)
    if not wide.roots or not symbolic_dims.is_at_least_now(trip_count, MIN_BATCHED_TRIP_COUNT):
        return node
    return _strip_mined(parts, IterationBlock(begin, parts.step, trip_count), scope)


def _strip_mined(parts: LoopParts, whole: IterationBlock, scope: Scope) -> Node:
    """Strip-mine a loop: an outer loop over blocks, which computes batched products, and the loop over one block."""
    count = parts.induction[0].options["symbol"]
    blocks = (whole.trip_count + BLOCK_ITERATIONS - 1) // BLOCK_ITERATIONS
    number = _symbol(scope, f"{count}b", 0, blocks - 1)
    done = scope.values.get(count, 0) - symbolic_dims.value_of(whole.begin)
    scope.values[f"{count}b"] = max(done // symbolic_dims.value_of(whole.step * BLOCK_ITERATIONS), 0)
    block_length = _symbol(scope, f"{count}r", 1, BLOCK_ITERATIONS)
    scope.few[f"{count}r"] = (
        least(whole.trip_count, BLOCK_ITERATIONS),
        whole.trip_count - BLOCK_ITERATIONS * (blocks - 1),
    )
    carried, captured = (
        [parameter(argument.dtype, argument.shape, 0) for argument in parameters]
        for parameters in (parts.carried_parameters, parts.captured_parameters)
    )
    block_length_parameter = parameter("int64", (), 0, f"{count}r")
    block = IterationBlock(whole.begin + whole.step * BLOCK_ITERATIONS * number, whole.step, block_length)
    wide = BatchedValues(parts, captured, block)
    induction = Extent({(Atom(count),): 1}, scope)
    row = (induction - block.begin) * block.step
    limits = [builder.extent(block.begin), builder.extent(block.begin + block.step * block_length), parts.bounds[2]]
    inner = _with_batched_values(
        parts, limits, carried, captured, [(root, wide.known[root], (row,)) for root in wide.roots]
    )
    left = elementwise(
        "minimum",
        builder.constant(BLOCK_ITERATIONS, "int64"),
        builder.extent(whole.trip_count - BLOCK_ITERATIONS * (number + 1)),
    )
    parameters = [parameter("int64", (), 0, f"{count}b"), *carried, block_length_parameter, *captured]
    options = {
        "counts": True,
        "carried": len(carried) + 1,
        "condition": clone_region(parameters, [TRUE]),
        "body": clone_region(parameters, [*items(inner, carried), left]),
    }
    limits = [builder.constant(0, "int64"), builder.extent(blocks), builder.constant(1, "int64")]
    first = builder.extent(least(whole.trip_count, BLOCK_ITERATIONS))
    return Node("loop", [*limits, *parts.carried, first, *parts.captured], "int64", (), options)


def _symbol(scope: Scope, name: str, low: Number, high: Number) -> Extent:
    """A loop-variant symbol with bounds."""
    scope.loop_variant[name] = low, high
    return scope.symbol(name, max(symbolic_dims.value_of(high), 2))


def _with_batched_values(
    parts: LoopParts,
    limits: Sequence[Node],
    carried: Sequence[Node],
    captured: Sequence[Node],
    batched: Sequence[tuple[Node, Node, tuple[Number, ...]]],
) -> Node:
    """Rebuild a loop with batched values: for each, the node it replaces, the holder, and the holder's row."""
    holder_parameters = [parameter(holder.dtype, holder.shape, 0) for _, holder, _ in batched]
    replaced = {
        node: builder.view(
            holder_parameter, (*((at, ()) for at in place), *builder.identity_map(node.ndim)), node.shape
        )
        for holder_parameter, (node, _, place) in zip(holder_parameters, batched, strict=True)
    }
    parameters = [*parts.induction, *parts.carried_parameters, *parts.captured_parameters, *holder_parameters]
    body, condition = parts.body, parts.node.options["condition"]
    options = {
        **parts.node.options,
        "condition": clone_region([*condition.inputs, *holder_parameters], condition.outputs, condition.checks),
        "body": clone_region(parameters, body.outputs, body.checks, replaced),
    }
    holders = [holder for _, holder, _ in batched]
    return Node("loop", [*limits, *carried, *captured, *holders], "int64", (), options)
