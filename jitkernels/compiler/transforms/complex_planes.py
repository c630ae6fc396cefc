"""Complex numbers in graphs: in memory as NumPy lays them out, in computation as two real planes.

Traces compute with complex nodes like with others. This transform runs once, after the trace, and leaves three
operations of complex numbers: ``real`` and ``imag`` of arrays in memory, and ``complex``, which interleaves two planes
for memory. All else is computed on the planes, by the operations that reals have: fusion, passes, reductions, products
and the code of loops need no others. Scalars that loops carry are two numbers; arrays stay whole.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.elementwise_ops import PLANES
from jitkernels.compiler.ir.graph import Graph, Node, sorted_nodes
from jitkernels.compiler.ir.node_operators import Term
from jitkernels.compiler.ir.regions import LoopParts, merged_nodes, parameter, regions_of, walk_nodes
from jitkernels.compiler.transforms.complex_arithmetic import ARITHMETIC, Pair
from jitkernels.compiler.transforms.complex_functions import FUNCTIONS, power_by_int

IN_MEMORY = frozenset({"input", "gather", "scatter", "update", "concatenate", "reshape", "call", "item"})
"""Operations whose complex results are arrays in memory: they move numbers, or others compute them."""
BY_PLANE = frozenset({"view", "scan", "reduce"})
"""Operations of one operand that do to each plane what they do to complex numbers: sums, of reductions and scans."""


def is_complex(node: Node) -> bool:
    return node.dtype in PLANES


def plane(name: str, whole: Node) -> Node:
    """The real or imaginary plane (``real``, ``imag``) of a complex array in memory."""
    if whole.operation == "complex":
        return whole.inputs[name == "imag"]
    return Node(name, (whole,), PLANES[whole.dtype], whole.shape)


def interleaved(pair: Pair, dtype: str, shape: Iterable[Any]) -> Node:
    """The complex array of two planes."""
    return Node("complex", (pair.re.node, pair.im.node), dtype, shape)


def joined(planes: Sequence[Node], like: Sequence[Node]) -> list[Node]:
    """Planes in order as nodes like others: two of them as a complex node."""
    parts = iter(planes)
    return [
        Node("complex", (next(parts), next(parts)), node.dtype, node.shape) if is_complex(node) else next(parts)
        for node in like
    ]


def conjugates(nodes: Iterable[Node]) -> list[Node]:
    """The complex ones among the nodes conjugated."""
    return [Node("conjugate", (node,), node.dtype, node.shape) if is_complex(node) else node for node in nodes]


def planes_of(nodes: Iterable[Node]) -> list[Node]:
    """The planes of complex nodes, and the others, in order."""
    results: list[Node] = []
    for node in nodes:
        results += [plane(name, node) for name in ("real", "imag")] if is_complex(node) else [node]
    return results


def has_complex(graph: Graph) -> bool:
    """Whether a graph or a region in it computes with complex numbers."""
    return any(map(is_complex, (*graph.inputs, *walk_nodes(graph))))


def _with_regions(node: Node) -> Iterable[Node]:
    """A node, and those of its regions."""
    return (node, *(inner for region in regions_of(node) for inner in walk_nodes(region)))


def split_complex(graph: Graph) -> Graph:
    """The graph with all computation on planes. Raises UnsupportedError for operations without such a form."""
    if not has_complex(graph):
        return graph
    splitter = Splitter()
    for node in graph.inputs:
        splitter.whole[node] = node
    splitter.add(graph)
    outputs = [splitter.one(node) for node in graph.outputs]
    writes = [(target, splitter.one(value)) for target, value in graph.writes]
    return graph.remade(outputs, writes, [splitter.one(node) for node in graph.checks])


def split_between(variables: Sequence[Node], outputs: Sequence[Node]) -> tuple[list[Node], list[Node]]:
    """The planes of variables as new variables, and those of the outputs as they follow from these.

    Reals are one node each. What does not depend on the variables stays as it is. Derivatives are those of planes.
    """
    if not any(is_complex(inner) for node in sorted_nodes([*outputs, *variables]) for inner in _with_regions(node)):
        return [*variables], [*outputs]
    new = merged_nodes([*outputs, *variables])
    splitter, planes, dependent = Splitter(), list[Node](), {new[node] for node in variables}
    for node in variables:
        planes += splitter.variables(new[node])
    for node in sorted_nodes([new[node] for node in outputs]):
        if node in splitter.whole or node in splitter.pairs:
            continue
        if dependent.isdisjoint(node.inputs):
            splitter.whole[node] = node
        else:
            dependent.add(node)
            splitter.add([node])
    results: list[Node] = []
    for node in outputs:
        results += [p.node for p in splitter.pair(new[node])] if is_complex(node) else [splitter.one(new[node])]
    return planes, results


class Splitter:
    """The new form of each node: `whole` nodes, of reals and complex arrays in memory, and `pairs` of planes."""

    def __init__(self) -> None:
        self.whole: dict[Node, Node] = {}
        self.pairs: dict[Node, Pair] = {}
        self.results: dict[Node, list[Node | Pair]] = {}

    def variables(self, node: Node) -> list[Node]:
        """The planes of a complex variable, each as a variable of its own; of a real one, itself."""
        if not is_complex(node):
            self.whole[node] = node
            return [node]
        planes = [builder.elementwise("positive", plane(name, node.inputs[0])) for name in ("real", "imag")]
        self.pairs[node] = Pair(*map(Term, planes))
        return planes

    def add(self, nodes: Iterable[Node]) -> None:
        """Split nodes in topological order."""
        for node in nodes:
            if node not in self.whole and node not in self.pairs:
                self._add(node)

    def one(self, node: Node) -> Node:
        """The node as one array: a real one, or complex numbers in memory."""
        if node not in self.whole:
            self.whole[node] = interleaved(self.pairs[node], node.dtype, node.shape)
        return self.whole[node]

    def pair(self, node: Node) -> Pair:
        """The planes of a complex node, or of a real one."""
        if node not in self.pairs:
            whole = self.whole[node]
            if is_complex(node):
                self.pairs[node] = Pair(Term(plane("real", whole)), Term(plane("imag", whole)))
            else:
                raise UnsupportedError(f"{node.dtype} beside complex numbers in {node.operation}")
        return self.pairs[node]

    def _add(self, node: Node) -> None:
        if any(map(has_complex, regions_of(node))):
            self._flow(node)
        elif node.operation == "item" and node.inputs[0] in self.results:
            self._keep(node, self.results[node.inputs[0]][node.options["index"]])
        elif not is_complex(node) and not any(map(is_complex, node.inputs)):
            self.whole[node] = node.replace_inputs([self.whole[operand] for operand in node.inputs])
        else:
            self._keep(node, self._split(node))

    def _keep(self, node: Node, result: Node | Pair | Term) -> None:
        if isinstance(result, Pair):
            self.pairs[node] = Pair(*(Term(builder.broadcast_to(part.node, node.shape)) for part in result))
        else:
            whole = result.node if isinstance(result, Term) else result
            self.whole[node] = builder.broadcast_to(whole, node.shape) if not is_complex(node) else whole

    def _split(self, node: Node) -> Node | Pair | Term:
        operation, inputs = node.operation, node.inputs
        if operation in ("real", "imag"):
            return self.pair(inputs[0])[operation == "imag"]
        if operation == "complex":
            return Pair(*(Term(self.whole[operand]) for operand in inputs))
        if operation == "where":
            condition, *others = inputs
            yes, no = map(self.pair, others)
            mask = self.whole[condition]
            return Pair(
                *(Term(builder.elementwise("where", mask, a.node, b.node)) for a, b in zip(yes, no, strict=True))
            )
        if operation in ARITHMETIC:
            return ARITHMETIC[operation](*map(self.pair, inputs))
        if operation in FUNCTIONS:
            return FUNCTIONS[operation](self.pair(inputs[0]))
        if operation == "power":
            return power_by_int(self.pair(inputs[0]), int(inputs[1].options["value"].real))
        if operation == "constant":
            return self._constant(node)
        if operation in ("extent", "iota"):
            real = Node(operation, (), PLANES[node.dtype], node.shape, node.options)
            return Pair(Term(real), Term(builder.constant(0.0, real.dtype)))
        if operation == "cast":
            return self._cast(node)
        if operation == "matmul":
            return self._product(node)
        if operation == "view" and inputs[0] in self.whole:
            return node.with_inputs([self.whole[inputs[0]]])
        if operation in BY_PLANE and (operation == "view" or node.options["kind"] == "sum"):
            parts = self.pair(inputs[0])
            return Pair(*(Term(Node(operation, (p.node,), p.node.dtype, node.shape, node.options)) for p in parts))
        if operation == "scatter" and node.options.get("adds"):
            raise UnsupportedError("numpy.add.at of complex numbers")
        if operation in IN_MEMORY:
            return node.with_inputs([self.one(operand) for operand in inputs])
        raise UnsupportedError(f"{operation} of complex numbers")

    def _constant(self, node: Node) -> Node | Pair:
        if "unwritten" in node.options:
            return node
        value = complex(node.options["value"])
        return Pair(*(Term(builder.constant(part, PLANES[node.dtype])) for part in (value.real, value.imag)))

    def _cast(self, node: Node) -> Node | Pair | Term:
        (operand,) = node.inputs
        if node.dtype in PLANES and not is_complex(operand):
            real = builder.cast(self.whole[operand], PLANES[node.dtype])
            return Pair(Term(real), Term(builder.constant(0.0, real.dtype)))
        parts = self.pair(operand)
        if is_complex(node):
            return Pair(*(Term(builder.cast(part.node, PLANES[node.dtype])) for part in parts))
        if node.dtype == "bool":
            return ARITHMETIC["logical_or"](parts, parts)
        return builder.cast(parts.re.node, node.dtype)

    def _product(self, node: Node) -> Pair:
        """Four real products, each of which reads both planes of an operand once."""
        left, right = map(self.pair, node.inputs)

        def product(a: Term, b: Term) -> Term:
            return Term(Node("matmul", (a.node, b.node), a.node.dtype, node.shape, node.options))

        return Pair(
            product(left.re, right.re) - product(left.im, right.im),
            product(left.re, right.im) + product(left.im, right.re),
        )

    # Loops and branches

    def _operands(self, nodes: Sequence[Node]) -> list[Node]:
        """What loops and branches take: the planes of complex numbers, all else as one array."""
        operands: list[Node] = []
        for node in nodes:
            operands += self._parts(node)
        return operands

    def _parts(self, node: Node) -> list[Node]:
        return [part.node for part in self.pair(node)] if _is_number(node) else [self.one(node)]

    def _flow(self, node: Node) -> None:
        captured = self._operands(node.inputs)
        regions = {name: _region(graph) for name, graph in node.options.items() if isinstance(graph, Graph)}
        options = {**node.options, **regions}
        if node.operation == "loop":
            loop = LoopParts(node)
            like: Sequence[Node] = loop.carried_parameters
            options["carried"] = sum(1 + _is_number(one) for one in like)
        else:
            like = node.options["yes"].outputs
        if "bases" in options:
            options["bases"] = _moved_bases(node, like)
        new = Node(node.operation, captured, node.dtype, node.shape, options)
        self.whole[node] = new
        results, index = [], 0
        for one in like:
            kinds = [PLANES[one.dtype]] * 2 if _is_number(one) else [one.dtype]
            parts = [Node("item", (new,), kind, one.shape, {"index": index + i}) for i, kind in enumerate(kinds)]
            index += len(parts)
            results.append(Pair(*map(Term, parts)) if len(parts) > 1 else parts[0])
        self.results[node] = results


def _is_number(node: Node) -> bool:
    return is_complex(node) and not node.shape


def _moved_bases(node: Node, results: Sequence[Node]) -> tuple[int, ...]:
    """The operands in whose memory the results of a branch are, numbered as the new operands."""
    begins, count = [], 0
    for operand in node.inputs[1:]:
        begins.append(count)
        count += 1 + _is_number(operand)
    bases: list[int] = []
    for base, result in zip(node.options["bases"], results, strict=True):
        bases += [begins[base] if base >= 0 else base] * (1 + _is_number(result))
    return tuple(bases)


def _region(graph: Graph) -> Graph:
    """A region whose complex parameters and results are pairs of numbers."""
    splitter = Splitter()
    inputs: list[Node] = []
    for node in graph.inputs:
        if _is_number(node):
            parts = [parameter(PLANES[node.dtype], (), len(inputs) + i) for i in range(2)]
            splitter.pairs[node] = Pair(*map(Term, parts))
        else:
            parts = [Node("parameter", (), node.dtype, node.shape, {**node.options, "index": len(inputs)})]
            splitter.whole[node] = parts[0]
        inputs += parts
    splitter.add(graph)
    outputs: list[Node] = []
    for node in graph.outputs:
        outputs += splitter._parts(node)
    return Graph(tuple(inputs), tuple(outputs), checks=tuple(splitter.one(node) for node in graph.checks))
