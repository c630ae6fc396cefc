"""Loop vectorization: a loop with independent iterations becomes a dimension of the loop nests in its body.

``for i in range(n): out[:, i] = np.sum(x[:, i : i + k] * w, axis=1)`` is one nest over i, not n short ones. Inner
loops go first, so that a convolution by windows ends as one reduction over all pixels:

1. A value that differs between iterations becomes an array with a leading dimension, the iterations.
2. A view of an array whose start is affine in the induction variable becomes a view with a step for the iterations.
3. The induction variable itself becomes the sequence of its values.
4. An assignment to a part of a loop-carried array becomes an assignment of the parts of all iterations. So loops are
   distributed: the first assignment of all iterations comes before the second one of any.
5. For that, iterations must be independent: all that reads or writes a loop-carried array has in one of its dimensions
   indices that no other iteration has, ``factor * i + c`` for c from a range shorter than the distance of iterations.
6. A loop stays as it is where one iteration computes much: a nest of its own costs little then, and its operands are
   in the caches; and where it computes only scalars, for which loops have code of their own, unless these go through
   functions such as ``cos``: nests have vector code for them, loops call them for one number after another.
"""

from collections.abc import Collection, Sequence
from types import MappingProxyType
from typing import NamedTuple

from jitkernels.compiler.ir import access_map, builder, symbolic_dims
from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.dim_bounds import is_product_at_most_now, traced_product
from jitkernels.compiler.ir.dim_proofs import EXTREMES, Factored, factored, outermost, substituted
from jitkernels.compiler.ir.elementwise_ops import FLOATS
from jitkernels.compiler.ir.graph import Graph, Node, readers, transformed
from jitkernels.compiler.ir.matrix_ops import matmul, matrix_transpose
from jitkernels.compiler.ir.ops import OPERATIONS
from jitkernels.compiler.ir.region_memory import is_direct
from jitkernels.compiler.ir.regions import REGIONS, LoopParts, regions_of, symbols_in
from jitkernels.compiler.ir.symbolic_dims import Extent, Number, Scope, is_at_least, same
from jitkernels.compiler.transforms.batch_loop_matmuls import broadcastable
from jitkernels.compiler.transforms.loop_ints import Ints, int_of, ints_inside
from jitkernels.compiler.transforms.loop_iterations import Iterations, forget, iterations_of, normalized

MAX_ITERATION_ELEMENTS = 1 << 12
"""The most elements that an iteration stores, or that one of its reductions or products has."""
MIN_FUNCTION_COST = 10.0
"""In additions: the cost from which on a function is worth a nest of its own."""
MAX_BATCHED_ELEMENTS = 1 << 22
"""The most elements of a batched value that may need memory of its own."""

STAYING = frozenset({"loop", "branch", "item", "call", "kernel", "bounded", "overflows", "native_call"})
"""Operations that keep their loop."""


def vectorize_loops(graph: Graph, scope: Scope, ints: Ints = MappingProxyType({})) -> Graph:
    """Turn the loops of a graph with independent iterations into dimensions of what they compute, inner loops first."""
    if not any(map(regions_of, graph)):
        return graph
    results: dict[Node, list[Node]] = {}

    def rule(node: Node) -> Node:
        if node.operation == "item" and node.inputs[0] in results:
            index: int = node.options["index"]
            return results[node.inputs[0]][index]
        regions = {name: node.options[name] for name in REGIONS if name in node.options}
        inner = {
            name: vectorize_loops(region, scope, ints_inside(node, region, ints, scope))
            for name, region in regions.items()
        }
        if any(inner[name] is not region for name, region in regions.items()):
            node = Node(node.operation, node.inputs, node.dtype, node.shape, {**node.options, **inner})
        vectorized = vectorized_results(node, scope, ints) if node.operation == "loop" else None
        if vectorized is not None:
            results[node] = vectorized
        return node

    return transformed(graph, rule)


def vectorized_results(loop: Node, scope: Scope, ints: Ints) -> list[Node] | None:
    """The results of a loop as nodes without it; None where it stays a loop."""
    parts = LoopParts(loop)
    if not parts.counts or parts.condition.checks or parts.body.checks or not parts.induction[0].options.get("symbol"):
        return None
    iterations = iterations_of(parts, ints)
    if iterations is None:
        return None
    is_scalar = all(is_direct(node) for node in parts.body)
    if is_scalar and not any(map(has_vector_code, parts.body)):
        return None
    trip_count = iterations.trip_count
    if symbolic_dims.is_loop_variant(trip_count) or symbolic_dims.value_of(trip_count) < 1:
        return None
    batch = batched_iterations(parts, iterations, scope, ints)
    if batch is None or not _are_own(parts, batch):
        return None
    if not is_at_least(trip_count, 1) and not symbolic_dims.is_at_least_now(trip_count, 1):
        return None
    scope.has_scalar_loops |= is_scalar
    return [batch.known[output] for output in parts.body.outputs]


def batched_iterations(
    parts: LoopParts, iterations: Iterations, scope: Scope, ints: Ints
) -> "BatchedIterations | None":
    """The body for all iterations at once; None where these may depend on one another. `ints`: around the loop."""
    try:
        return BatchedIterations(parts, iterations, scope, ints_inside(parts.node, parts.body, ints, scope))
    except StaysLoopError:
        return None
    finally:
        forget(parts, scope)


def has_vector_code(node: Node) -> bool:
    """Whether a number goes through a function of which vectors have faster code."""
    scalar = OPERATIONS[node.operation].scalar
    return (
        scalar is not None
        and scalar.cost >= MIN_FUNCTION_COST
        and isinstance(scalar.code.get("f"), str)
        and node.inputs[0].dtype in FLOATS
    )


def _are_own(parts: LoopParts, batch: "BatchedIterations") -> bool:
    """Whether each result is the loop-carried array at its own position, or a number that no iteration changes."""
    return all(
        output is parameter or (parameter in batch.rows and batch.home.get(output) is parameter)
        for output, parameter in zip(parts.body.outputs, parts.carried_parameters, strict=True)
    )


class StaysLoopError(Exception):
    """Iterations may depend on one another, or a value has no batched form."""


class _Row(NamedTuple):
    """The indices of one access in one dimension: ``factor * t`` in iteration t, plus those from `first` to `last`."""

    factor: Number
    first: Number
    last: Number


class BatchedIterations:
    """The nodes of a loop body for all iterations at once.

    `known`: the new node of each node; `varying`: those with the leading dimension. `home`: the parameter of the
    loop-carried array whose memory a node is; `rows`: by such a parameter and dimension, the indices of its accesses.
    `folded`: carried numbers and what accumulates in them, which have no batched form.
    """

    def __init__(
        self, parts: LoopParts, iterations: Iterations, scope: Scope, ints: Ints, folded: Collection[Node] = ()
    ) -> None:
        self.induction, self.trip_count = parts.induction[0], iterations.trip_count
        self.symbol: str = self.induction.options["symbol"]
        self.number, self.value = normalized(self.symbol, iterations, scope)
        self.ints = ints
        written = {
            parameter
            for parameter, output in zip(parts.carried_parameters, parts.body.outputs, strict=True)
            if output is not parameter and parameter not in folded
        }
        if any(not parameter.ndim for parameter in written):
            raise StaysLoopError
        self.home: dict[Node, Node] = {parameter: parameter for parameter in written}
        self.rows: dict[Node, dict[int, list[_Row]] | None] = dict.fromkeys(written)
        parameters = (*parts.carried_parameters, *parts.captured_parameters)
        self.known: dict[Node, Node] = dict(zip(parameters, (*parts.carried, *parts.captured), strict=True))
        self.varying: set[Node] = set()
        self.readers = readers(parts.body)
        for one in folded:
            self.known.pop(one, None)
        for node in parts.body:
            if node not in self.known and node not in folded:
                self.known[node] = self._batched(node)

    def _affine(self, number: Number) -> Factored:
        """An extent as ``rest + factor * t`` in iteration t. Raises where it is none."""
        if self.symbol not in symbolic_dims.symbols_of(number):
            return Factored(number, 0)
        number = number if self.number is self.value else substituted(number, self.symbol, self.value)
        if not isinstance(number, Extent):
            return Factored(number, 0)
        ((atom,),) = self.number.terms
        affine = factored(number, atom)
        if affine is None or atom.text in symbolic_dims.symbols_of(affine.rest) | symbolic_dims.symbols_of(
            affine.factor
        ):
            raise StaysLoopError
        return affine

    def _batched(self, node: Node) -> Node:
        """The node for all iterations."""
        if node is self.induction:
            return self._varying(node, self._sequence(self.ints[self.induction]))
        if not all(operand in self.known for operand in node.inputs):
            raise StaysLoopError
        operands = [self.known[operand] for operand in node.inputs]
        varies = [operand in self.varying for operand in node.inputs]
        has_symbol = self.symbol in symbols_in([node])
        if any(operand in self.home for operand in node.inputs):
            return self._access(node, operands)
        if not any(varies) and not has_symbol:
            if node.operation in STAYING:
                raise StaysLoopError
            return node.replace_inputs(operands)
        if node.operation == "extent":
            return self._varying(node, builder.cast(self._sequence(node.options["extent"]), node.dtype))
        if any(self.symbol in symbolic_dims.symbols_of(extent) for extent in node.shape):
            raise StaysLoopError
        if node.operation == "view" or (node.operation == "gather" and is_direct(node)):
            index_map = self._map(self._index_map(node), is_wide=varies[0])
            return self._varying(node, builder.view(operands[0], index_map, (self.trip_count, *node.shape)))
        if has_symbol:
            raise StaysLoopError
        self._check_size(node)
        return self._varying(node, self._operation(node, operands, varies))

    def _varying(self, node: Node, batched: Node) -> Node:
        self.varying.add(node)
        return batched

    def _sequence(self, number: Number) -> Node:
        """The values of an int in all iterations."""
        atom = outermost(number, EXTREMES) if self.symbol in symbolic_dims.symbols_of(number) else None
        if atom is not None:
            parts = factored(number, atom)
            if parts is None or self.symbol in symbolic_dims.symbols_of(parts.factor):
                raise StaysLoopError
            sides = [self._sequence(side) for side in (atom.left, atom.right)]
            clamped = builder.elementwise({"max": "maximum", "min": "minimum"}[atom.operation], *sides)
            scaled = builder.elementwise("multiply", clamped, builder.extent(parts.factor))
            return builder.elementwise("add", scaled, self._sequence(parts.rest))
        affine = self._affine(number)
        numbers = Node("iota", (), "int64", (self.trip_count,), {"axis": 0})
        scaled = builder.elementwise("multiply", numbers, builder.extent(affine.factor))
        return builder.elementwise("add", scaled, builder.extent(affine.rest))

    def _map(self, index_map: IndexMap, *, is_wide: bool) -> IndexMap:
        """An index map with a leading dimension for the iterations, also of the array if that is wide."""
        dims: list[tuple[Number, tuple[tuple[int, Number], ...]]] = [(0, ((0, 1),))] if is_wide else []
        for start, steps in index_map:
            if any(self.symbol in symbolic_dims.symbols_of(step) for _, step in steps):
                raise StaysLoopError
            rest, factor = self._affine(start)
            own = () if same(factor, 0) else ((0, factor),)
            dims.append((rest, (*own, *((loop + 1, step) for loop, step in steps))))
        return tuple(dims)

    def _check_size(self, node: Node) -> None:
        """Raise where a nest for one iteration costs little, as it computes much, or all iterations take much memory.

        What loop nests compute needs no memory where it is elementwise and used once.
        """
        is_elementwise = node.operation == "cast" or OPERATIONS[node.operation].is_elementwise
        stored = [node.inputs] if node.operation == "matmul" else []
        if not is_elementwise or len(self.readers[node]) > 1:
            stored.append((node,))
        shapes = [(self.trip_count, *one.shape) for nodes in stored for one in nodes]
        if not is_elementwise and traced_product(node.shape) > MAX_ITERATION_ELEMENTS:
            raise StaysLoopError
        if not all(is_product_at_most_now(shape, MAX_BATCHED_ELEMENTS) for shape in shapes):
            raise StaysLoopError

    def _operation(self, node: Node, operands: Sequence[Node], varies: Sequence[bool]) -> Node:
        """A node of which operands vary."""
        shape = (self.trip_count, *node.shape)
        if node.operation == "cast" or OPERATIONS[node.operation].is_elementwise:
            pairs = zip(operands, varies, strict=True)
            inputs = [broadcastable(operand, node.ndim) if is_wide else operand for operand, is_wide in pairs]
            return Node(node.operation, inputs, node.dtype, shape, node.options)
        match node.operation:
            case "reduce":
                axes = tuple(axis + 1 for axis in node.options["axes"])
                return Node("reduce", operands, node.dtype, shape, {**node.options, "axes": axes})
            case "scan":
                return Node("scan", operands, node.dtype, shape, {**node.options, "axis": node.options["axis"] + 1})
            case "reshape":
                return builder.reshape(operands[0], shape)
            case "concatenate":
                wide = [
                    operand if is_wide else builder.broadcast_to(operand, (self.trip_count, *operand.shape))
                    for operand, is_wide in zip(operands, varies, strict=True)
                ]
                axis = node.options["axis"] + 1
                return Node("concatenate", wide, node.dtype, shape, {**node.options, "axis": axis})
            case "matmul":
                return self._product(node, operands, varies)
            case "update" | "scatter":
                return self._assign_in_each(node, operands, is_wide=varies[0])
        raise StaysLoopError

    def _product(self, node: Node, operands: Sequence[Node], varies: Sequence[bool]) -> Node:
        """A product of matrices: with an invariant matrix, one product of the rows of all iterations."""
        left, right = operands
        shape = (self.trip_count, *node.shape)
        if "is_packed" in node.options or any(operand.ndim != 2 for operand in node.inputs):
            raise StaysLoopError
        if varies[0] and not varies[1]:
            rows = builder.reshape(left, (self.trip_count * left.shape[1], left.shape[2]))
            return builder.reshape(matmul(rows, right), shape)
        if varies[1] and not varies[0] and same(node.shape[1], 1):
            rows = builder.squeeze(right, [2])
            return builder.expand_dims(matmul(rows, matrix_transpose(left)), [2])
        return matmul(left, right)

    def _access(self, node: Node, operands: Sequence[Node]) -> Node:
        """A view of a loop-carried array, or an assignment to a part of it."""
        home = self.home.get(node.inputs[0])
        if home is None or any(operand in self.home for operand in node.inputs[1:]):
            raise StaysLoopError
        index_map, extents = self._index_map(node), node.options.get("extents", ())
        if node.operation in ("view", "gather"):
            self._note(home, index_map, node.shape)
            shape = (self.trip_count, *node.shape)
            return self._varying(node, builder.view(operands[0], self._map(index_map, is_wide=False), shape))
        if traced_product(extents) > MAX_ITERATION_ELEMENTS:
            raise StaysLoopError
        self._note(home, index_map, extents)
        self.home[node] = home
        shape = (self.trip_count, *extents)
        return _assigned(operands[0], self._value(node, operands[1]), self._map(index_map, is_wide=False), shape)

    def _assign_in_each(self, node: Node, operands: Sequence[Node], *, is_wide: bool) -> Node:
        """An assignment to a part of an array that each iteration has for itself."""
        array, extents = operands[0], node.options.get("extents", ())
        if not is_wide:
            array = builder.broadcast_to(array, (self.trip_count, *node.shape))
        index_map = self._map(self._index_map(node), is_wide=True)
        if any(dimension == 0 for _, steps in index_map[1:] for dimension, _ in steps):
            raise StaysLoopError
        return _assigned(array, self._value(node, operands[1]), index_map, (self.trip_count, *extents))

    def _value(self, node: Node, value: Node) -> Node:
        """The assigned value of all iterations."""
        return broadcastable(value, len(node.options.get("extents", ()))) if node.inputs[1] in self.varying else value

    def _index_map(self, node: Node) -> IndexMap:
        """The part of an array that a node shows or assigns to. Raises for other operations."""
        if node.operation in ("view", "update"):
            index_map: IndexMap = node.options["map"]
            return index_map
        if not is_direct(node) or node.operation not in ("gather", "scatter") or node.options.get("adds"):
            raise StaysLoopError
        return tuple((self._index(index), ()) for index in node.inputs[1 if node.operation == "gather" else 2 :])

    def _index(self, node: Node) -> Number:
        """An index of an element as an extent. Raises where it is none."""
        number = int_of(node, self.ints)
        if number is None:
            raise StaysLoopError
        return number

    def _note(self, home: Node, index_map: IndexMap, extents: Sequence[Number]) -> None:
        """Note an access to a loop-carried array. Raises where another iteration may access the same elements."""
        if any(self.symbol in symbolic_dims.symbols_of(extent) for extent in extents):
            raise StaysLoopError
        found: dict[int, _Row] = {}
        for dimension, (start, steps) in enumerate(index_map):
            affine = self._affine(start)
            limits = access_map.index_range((affine.rest, steps), extents)
            if limits is not None and not same(affine.factor, 0):
                found[dimension] = _Row(affine.factor, *limits)
        before = self.rows[home]
        known = {dimension: [] for dimension in found} if before is None else before
        rows = {
            dimension: [*others, found[dimension]]
            for dimension, others in known.items()
            if dimension in found and all(_is_apart(row, found[dimension]) for row in (*others, found[dimension]))
        }
        if not rows:
            raise StaysLoopError
        self.rows[home] = rows


def _is_apart(left: _Row, right: _Row) -> bool:
    """Whether one access has no index that another one has in another iteration."""
    distance = left.factor if is_at_least(left.factor, 1) else -left.factor
    return same(left.factor, right.factor) and all(
        is_at_least(distance - 1 - (one.last - other.first), 0) for one, other in ((left, right), (right, left))
    )


def _assigned(array: Node, value: Node, index_map: IndexMap, extents: Sequence[Number]) -> Node:
    """An assignment to a part of an array, with the dimensions of the part in the order of the array's."""
    wide = builder.broadcast_to(value, extents)
    order = [dimension for _, steps in index_map for dimension, _ in steps]
    if len(order) != len(set(order)):
        raise StaysLoopError
    order += [dimension for dimension in range(len(extents)) if dimension not in order]
    sorted_map = tuple(
        (start, tuple((order.index(dimension), step) for dimension, step in steps)) for start, steps in index_map
    )
    shape = [extents[dimension] for dimension in order]
    options = {"map": sorted_map, "extents": tuple(shape)}
    return Node("update", (array, builder.transpose(wide, order)), array.dtype, array.shape, options)
