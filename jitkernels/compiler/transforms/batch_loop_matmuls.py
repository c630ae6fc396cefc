"""Products of a loop that hang on nothing but its count: computed for many rounds at once, before these.

``for t in range(n): z = w @ x[t] + u @ h`` needs no ``h`` for ``w @ x[t]``: one product of matrices, ``x @ w.T``, reads
w once where n products with a vector read it n times. A loop around the loop takes `BLOCK` rounds at a time, so that
memory for what is computed ahead does not grow with the rounds:

1. What is made of the count, of what the loop takes from around, and of such values, is one array with a further
   dimension, the rounds, in front. It ends where a round needs it: there a round takes its row.
2. A product of a vector with a matrix that is the same in all rounds is computed so, if the matrix is not tiny; and
   element by element what is made of it alone, as a bias that is added.
3. A product that is the same in all rounds is computed before them, once.

Sums may have another order than those of a product with a vector, as in any product.
"""

from collections.abc import Sequence

from jitkernels.attrs.base import FLOATS
from jitkernels.graph import construct, extents
from jitkernels.graph.cloning import region, symbols_in
from jitkernels.graph.construct import elementwise
from jitkernels.graph.extents import Atom, Extent, Number, Scope, same
from jitkernels.graph.flows import is_flow
from jitkernels.graph.ir import Graph, Node, readers, transformed
from jitkernels.graph.limits import least
from jitkernels.graph.looping import TRUE, Parts
from jitkernels.graph.matrices import product, turned
from jitkernels.graph.operations import OPERATIONS
from jitkernels.graph.regions import REGIONS, items, parameter, regions_of
from jitkernels.records import record

BLOCK = 64
"""Rounds that are computed ahead: rows enough for a product of matrices, few enough to stay in the caches."""
LEAST_ROUNDS = 8
LEAST_ELEMENTS, LEAST_BESIDE = 256, 2048
"""Of a matrix before a vector, and behind one: a product with less takes no longer than reading what it gave. That of
a vector and a matrix needs no sums of lanes, and is quick by itself."""


def computed_ahead(graph: Graph, scope: Scope) -> Graph:
    """The graph with loops, also those inside of loops and branches, that find such products made."""

    def rule(node: Node) -> Node:
        inner = {name: node.options[name] for name in REGIONS if name in node.options}
        new = {name: computed_ahead(one, scope) for name, one in inner.items()}
        if any(new[name] is not inner[name] for name in inner):
            node = Node(node.operation, node.inputs, node.dtype, node.shape, {**node.options, **new})
        return _of_loop(node, scope) if node.operation == "loop" else node

    return transformed(graph, rule) if any(map(regions_of, graph)) else graph


@record
class Block:
    """Rounds one after another: the first count, the step of the count, and how many they are."""

    begin: Number
    step: int
    rounds: Number


class Wide:
    """What nodes of a round are for all rounds of a block. `captured`: what the loop takes from around."""

    def __init__(self, parts: Parts, captured: Sequence[Node], block: Block) -> None:
        self.block = block
        self.symbol = parts.count[0].options.get("symbol", "")
        self.carried = {one.options["symbol"] for one in parts.own if "symbol" in one.options}
        self.known = {id(one): other for one, other in zip(parts.taken, captured, strict=True)}
        self.varying: set[int] = set()
        self.products: set[int] = set()
        nodes = list(parts.body)
        for node in nodes:
            if all(id(one) in self.known for one in node.inputs) and node.operation != "parameter":
                made = self._made(node)
                if made is not None:
                    self.known[id(node)] = made
        read, outputs = readers(nodes), {id(one) for one in parts.body.roots}
        self.roots = [
            node
            for node in nodes
            if id(node) in self.products
            and (id(node) in outputs or any(id(one) not in self.products for one in read[id(node)]))
        ]

    def _made(self, node: Node) -> Node | None:
        """A node for all rounds: itself, if it is the same in all of them; None if it is not to be computed so."""
        symbols = symbols_in([node])
        if is_flow(node) or symbols & self.carried:
            return None
        inputs = [self.known[id(one)] for one in node.inputs]
        wide = [id(one) in self.varying for one in node.inputs]
        counts = self.symbol in symbols
        if not any(wide) and not counts:
            self._note(node)
            return node.with_inputs(inputs) if inputs else node
        if node.operation == "view":
            made = self._view(node, inputs[0], is_wide=wide[0])
        elif counts:
            return None
        elif node.operation == "matmul":
            made = self._product(node, inputs, wide)
        elif node.operation == "cast" or OPERATIONS[node.operation].is_elementwise:
            given = [
                _beside(one, node.ndim) if is_wide else one for one, is_wide in zip(inputs, wide, strict=True)
            ]
            made = Node(node.operation, given, node.dtype, (self.block.rounds, *node.shape), node.options)
        else:
            return None
        if made is not None:
            self.varying.add(id(node))
            self._note(node)
        return made

    def _note(self, node: Node) -> None:
        """Remember a product, or what is made of one element by element and has no more elements."""
        is_one = node.operation in ("view", "cast") or OPERATIONS[node.operation].is_elementwise
        size = extents.product(node.shape)
        if node.operation == "matmul" or (
            is_one
            and any(
                id(one) in self.products and same(size, extents.product(one.shape)) for one in node.inputs
            )
        ):
            self.products.add(id(node))

    def _view(self, node: Node, given: Node, *, is_wide: bool) -> Node | None:
        """A view of all rounds: where it starts moves with them."""
        if any(self.symbol in extents.symbols_of(one) for one in node.shape):
            return None
        places: list[tuple[Number, tuple[tuple[int, Number], ...]]] = [(0, ((0, 1),))] if is_wide else []
        for start, steps in node.options["map"]:
            found = linear(start, self.symbol)
            if found is None or any(self.symbol in extents.symbols_of(step) for _, step in steps):
                return None
            first, factor = found
            moved = ((0, factor * self.block.step),) if factor else ()
            places.append(
                (first + factor * self.block.begin, (*moved, *((own + 1, step) for own, step in steps)))
            )
        return construct.view(given, tuple(places), (self.block.rounds, *node.shape))

    def _product(self, node: Node, inputs: Sequence[Node], wide: Sequence[bool]) -> Node | None:
        """A vector of each round with one matrix: a matrix of these vectors with it."""
        left, right = node.inputs
        matrix = right if wide[0] else left
        if all(wide) or left.ndim != 2 or right.ndim != 2 or node.dtype not in FLOATS:
            return None
        least_elements = LEAST_BESIDE if wide[0] else LEAST_ELEMENTS
        if not extents.is_at_least_now(extents.product(matrix.shape), least_elements):
            return None
        if wide[0] and same(left.shape[0], 1):
            found = product(construct.squeeze(inputs[0], [1]), inputs[1])
            return construct.expand_dims(found, [1])
        if wide[1] and same(right.shape[1], 1):
            found = product(construct.squeeze(inputs[1], [2]), turned(inputs[0]))
            return construct.expand_dims(found, [2])
        return None


def _beside(node: Node, ndim: int) -> Node:
    """A value of all rounds with as many further dimensions as those beside it have."""
    missing = ndim + 1 - node.ndim
    return construct.expand_dims(node, range(1, 1 + missing)) if missing else node


def linear(extent: Number, symbol: str) -> tuple[Number, int] | None:
    """What an extent is for 0 in place of a symbol, and by how much it grows with it; None if that is no number."""
    if symbol not in extents.symbols_of(extent):
        return extent, 0
    factor = extent.terms.get((Atom(symbol),), 0)
    rest = extent - factor * Extent({(Atom(symbol),): 1}, extent.scope)
    return None if symbol in extents.symbols_of(rest) else (rest, factor)


def _of_loop(node: Node, scope: Scope) -> Node:
    """A loop as one that takes what is the same in all rounds from around, and has the rest made before each block."""
    if not node.options["counts"] or node.inputs[2].operation != "constant":
        return node
    parts = Parts(node)
    begin, end = map(_known, parts.limits[:2])
    if not parts.is_plain or begin is None or end is None:
        return node
    rounds = (end - begin) * parts.step
    if extents.is_moving(rounds):
        return node
    if (extents.least_of(rounds) or 0) < 1 or not any(one.operation == "matmul" for one in parts.body):
        return node
    wide = Wide(parts, parts.captured, Block(begin, parts.step, rounds))
    fixed = [(one, wide.known[id(one)]) for one in wide.roots if id(one) not in wide.varying]
    if fixed:
        node = _remade(parts, parts.limits, parts.carried, parts.captured, [(*one, ()) for one in fixed])
        return _of_loop(node, scope)
    if not wide.roots or not extents.is_at_least_now(rounds, LEAST_ROUNDS):
        return node
    return _in_blocks(parts, Block(begin, parts.step, rounds), scope)


def _known(node: Node) -> Number | None:
    if node.operation == "constant":
        return int(node.options["value"])
    return node.options["extent"] if node.operation == "extent" else None


def _in_blocks(parts: Parts, whole: Block, scope: Scope) -> Node:
    """A loop over blocks, with the loop over the rounds of one in it."""
    count = parts.count[0].options["symbol"]
    blocks = (whole.rounds + BLOCK - 1) // BLOCK
    number = _symbol(scope, f"{count}b", 0, blocks - 1)
    rounds = _symbol(scope, f"{count}r", 1, BLOCK)
    scope.few[f"{count}r"] = least(whole.rounds, BLOCK), whole.rounds - BLOCK * (blocks - 1)
    own, taken = ([parameter(one.dtype, one.shape, 0) for one in given] for given in (parts.own, parts.taken))
    many = parameter("int64", (), 0, f"{count}r")
    block = Block(whole.begin + whole.step * BLOCK * number, whole.step, rounds)
    wide = Wide(parts, taken, block)
    now = Extent({(Atom(count),): 1}, scope)
    at = (now - block.begin) * block.step
    limits = [
        construct.extent(block.begin),
        construct.extent(block.begin + block.step * rounds),
        parts.limits[2],
    ]
    inner = _remade(parts, limits, own, taken, [(one, wide.known[id(one)], (at,)) for one in wide.roots])
    left = elementwise(
        "minimum",
        construct.constant(BLOCK, "int64"),
        construct.extent(whole.rounds - BLOCK * (number + 1)),
    )
    given = [parameter("int64", (), 0, f"{count}b"), *own, many, *taken]
    options = {
        "counts": True,
        "carried": len(own) + 1,
        "condition": region(given, [TRUE]),
        "body": region(given, [*items(inner, own), left]),
    }
    limits = [construct.constant(0, "int64"), construct.extent(blocks), construct.constant(1, "int64")]
    first = construct.extent(least(whole.rounds, BLOCK))
    return Node("loop", [*limits, *parts.carried, first, *parts.captured], "int64", (), options)


def _symbol(scope: Scope, name: str, low: Number, high: Number) -> Extent:
    """A symbol that moves between bounds."""
    scope.moving[name] = low, high
    return scope.symbol(name, max(extents.value_of(high), 2))


def _remade(
    parts: Parts,
    limits: Sequence[Node],
    carried: Sequence[Node],
    captured: Sequence[Node],
    found: Sequence[tuple[Node, Node, tuple[Number, ...]]],
) -> Node:
    """A loop that finds some values of its rounds computed: nodes, what holds them, and at which place of that."""
    more = [parameter(holder.dtype, holder.shape, 0) for _, holder, _ in found]
    replaced = {
        id(node): construct.view(
            one, (*((at, ()) for at in place), *construct.identity_map(node.ndim)), node.shape
        )
        for one, (node, _, place) in zip(more, found, strict=True)
    }
    given = [*parts.count, *parts.own, *parts.taken, *more]
    body, condition = parts.body, parts.node.options["condition"]
    options = {
        **parts.node.options,
        "condition": region([*condition.inputs, *more], condition.outputs, condition.checks),
        "body": region(given, body.outputs, body.checks, replaced),
    }
    holders = [holder for _, holder, _ in found]
    return Node("loop", [*limits, *carried, *captured, *holders], "int64", (), options)
