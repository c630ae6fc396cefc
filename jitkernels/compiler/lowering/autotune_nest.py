"""A loop nest as a kernel of its own: a row of the registry, so that its variants are measured and remembered.

What is chosen hangs on the sizes of the call that is traced. The code serves all others as well.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitkernels import choosing, dtypes, machine
from jitkernels.attrs.fused import FusedAttr
from jitkernels.checksums import sha256
from jitkernels.errors import AttrError
from jitkernels.graph import construct, extents, interpreter, ir, kernels
from jitkernels.graph.emit.memory import Array
from jitkernels.graph.emit.targets import Variant
from jitkernels.graph.extents import Atom, Extent, Number, Scope
from jitkernels.graph.ir import Graph, Node
from jitkernels.graph.nests import Nest
from jitkernels.loops.variants import STREAM_BYTES
from jitkernels.signature import AnyArray
from jitkernels.signature import Array as Shaped

DOMAIN = (-2.0, 2.0)
SILENT = frozenset({"input", "constant", "extent", "view", "cast"})
"""Operations that no title names."""


@dataclass(frozen=True)
class Argument:
    """An array of a nest, whose extents are expressions."""

    name: str
    role: Any
    dtype: str
    shape: tuple[Number, ...]
    trailing = None
    """It has as many dimensions as its shape, never more."""

    def array(self, sizes: Mapping[str, Any]) -> Shaped:
        """For given values of the symbols; what is written may be what is read at the same place."""
        shape = tuple(extents.evaluated(extent, sizes) for extent in self.shape)
        low, high = DOMAIN
        domain = (0.0 if np.dtype(self.dtype).kind in "bu" else low, high)
        return Shaped(self.name, self.role, shape, self.dtype, domain=domain)


class FusedNest:
    """What a nest computes, apart from the function that it was met in."""

    def __init__(self, graph: Graph, scope: Scope, along: str, unroll: int, cost: float) -> None:
        self.graph, self.scope, self.along, self.unroll, self._cost = graph, scope, along, unroll, cost
        self.symbols = tuple(scope.values)
        results = len(graph.writes)
        count = len(graph.inputs) - results
        self.arrays = tuple(
            Argument(f"{'xy'[i >= count]}{i}", "out" if i >= count else "in", node.dtype, node.shape)
            for i, node in enumerate(graph.inputs)
        )
        self.text = text_of(graph)
        self.traced = ", ".join(f"{name}={value}" for name, value in scope.values.items())
        named = [node.options.get("kind", node.operation) for node in graph if node.operation not in SILENT]
        self.title = " ".join(named) or "copy"

    def reason_against(self, sizes: Mapping[str, int]) -> str:
        """Why the code is not for these sizes; empty if it is."""
        small = [name for name, size in sizes.items() if size < 2]
        if small:
            return f"{small[0]}: expected at least 2, got {sizes[small[0]]}: what is broadcast is another expression"
        for guard in self.scope.guards.values():
            if not guard.holds(sizes):
                return f"expected {guard.extent} {guard.sign} 0, as of the sizes that were traced, got {dict(sizes)}"
        return ""

    def run(self, arrays: Sequence[AnyArray], sizes: Mapping[str, int]) -> None:
        """Node by node; in wider types than the nodes have, if arrays of these are given."""
        with np.errstate(all="ignore"):
            found = interpreter.run(_in_types_of(self.graph, arrays), arrays, sizes)
        for target, value in zip(arrays[-len(found) :], found, strict=True):
            target[...] = value

    def largest(self, arrays: Sequence[AnyArray], sizes: Mapping[str, int]) -> float:
        """The largest finite number that is met on the way; infinite where a reduction meets another.

        What a sum of infinities is, and whether it overflows, hangs on its order.
        """
        known: dict[int, Any] = {}
        largest = 0.0
        reduces = any(node.operation == "reduce" for node in self.graph)
        for node, array in zip(self.graph.inputs, arrays, strict=True):
            known[id(node)] = array.astype(node.dtype)
        for node in self.graph:
            if id(node) not in known:
                inputs = [known[id(one)] for one in node.inputs]
                known[id(node)] = interpreter.of_node(node, inputs, lambda one: extents.evaluated(one, sizes))
            found = known[id(node)]
            if found.dtype.kind == "f" and found.size:
                if reduces and not np.isfinite(found).all():
                    return np.inf
                largest = max(largest, float(np.nanmax(np.where(np.isfinite(found), np.abs(found), 0))))
        return largest

    def operations(self, sizes: Mapping[str, int]) -> float:
        """Additions, about."""
        return self._cost * max(
            (extents.evaluated(extents.product(node.shape), sizes) for node in self.graph), default=1
        )

    def body(self, vector_bytes: int, unroll: int, stream: bool) -> str:
        """LLVM IR. Raises BuildError."""
        variant = Variant(vector_bytes, unroll, stream, fetches=stream)
        return kernels.body_of(self.graph, self.scope, len(self.arrays), self.along, variant)


def measured(
    nest: Nest, arrays: Mapping[int, Array], scope: Scope, cost: float, unroll: int
) -> Variant | None:
    """The variant of a nest that measured best for the sizes that are traced; None where nothing was measured."""
    if choosing.tuning_mode() == "off":
        return None
    found = fused_nest(nest, arrays, scope, cost, unroll)
    return None if found is None else measured_variant(found)


class Collector:
    """Takes the nests of a program while it is compiled, those that can be measured."""

    def __init__(self) -> None:
        self.nests: list[FusedNest] = []

    def __call__(
        self, nest: Nest, arrays: Mapping[int, Array], scope: Scope, cost: float, unroll: int
    ) -> Variant | None:
        found = fused_nest(nest, arrays, scope, cost, unroll)
        if found is not None:
            self.nests.append(found)
        return None


def fused_nest(
    nest: Nest, arrays: Mapping[int, Array], scope: Scope, cost: float, unroll: int
) -> FusedNest | None:
    """A nest by itself; None where it is more than a loop over arrays without gaps that a kernel may take."""
    if any(store.region is not None for store in nest.stores):
        return None
    operations = {node.operation for cone in nest.cones for node in cone.nodes}
    if "gather" in operations or ("scan" in operations and not nest.rows):
        return None  # it reads where data says, which others have looked at; or has no parts
    leaves = {key: leaf for cone in nest.cones for key, leaf in cone.leaves.items()}
    roots = {id(store.cone.root): store.cone.root for store in nest.stores}
    if leaves.keys() & roots.keys() or not all(
        _is_plain(node, arrays[key])
        for key, node in (leaves | {id(s.target): s.target for s in nest.stores}).items()
    ):
        return None
    outermost = (*nest.rows, *nest.columns)[0] if nest.rows or nest.columns else 1
    names = [name for name in scope.values if extents.same(Extent({(Atom(name),): 1}, scope), outermost)]
    if not names:
        return None
    new: dict[int, Node] = {}
    inputs: list[Node] = []
    for node in (*leaves.values(), *roots.values()):
        options = {"index": len(inputs), "strides": construct.contiguous(node.shape)}
        inputs.append(Node("input", (), node.dtype, node.shape, options))
        if id(node) in leaves:
            new[id(node)] = inputs[-1]
    for cone in nest.cones:
        for node in cone.nodes:
            if id(node) not in new:
                new[id(node)] = node.with_inputs([_known(new, one) for one in node.inputs])
    writes = tuple(zip(inputs[len(leaves) :], [new[key] for key in roots], strict=True))
    used = _symbols(ir.sorted_nodes([*inputs, *(value for _, value in writes)]))
    guards = {
        key: guard
        for key, guard in scope.guards.items()
        if not guard.is_choice and _symbols_of([guard.extent]) <= used
    }
    own = Scope({name: value for name, value in scope.values.items() if name in used}, guards)
    return FusedNest(Graph(tuple(inputs), (), writes), own, names[0], unroll, cost)


def _in_types_of(graph: Graph, arrays: Sequence[AnyArray]) -> Graph:
    """The graph with nodes of the types of arrays where these are not its inputs' own."""
    wider = {
        node.dtype: array.dtype.name
        for node, array in zip(graph.inputs, arrays, strict=True)
        if array.dtype != node.dtype
    }
    if not wider:
        return graph
    new: dict[int, Node] = {}
    for node in ir.sorted_nodes([*graph.inputs, *graph.roots]):
        given = [new[id(one)] for one in node.inputs]
        new[id(node)] = Node(
            node.operation, given, wider.get(node.dtype, node.dtype), node.shape, node.options
        )
    writes = tuple((new[id(target)], new[id(value)]) for target, value in graph.writes)
    return Graph(tuple(new[id(node)] for node in graph.inputs), (), writes)


def _known(new: dict[int, Node], node: Node) -> Node:
    """A node that a cone has no place for is a constant."""
    return new.setdefault(id(node), node)


def _is_plain(node: Node, array: Array) -> bool:
    contiguous = extents.key_of_shape(construct.contiguous(node.shape))
    lies = extents.key_of_shape(array.strides) == contiguous and extents.same(array.first, 0)
    return lies and node.dtype in dtypes.TABLE


def _symbols(nodes: Sequence[Node]) -> set[str]:
    return _symbols_of([value for node in nodes for value in (node.shape, *node.options.values())])


def _symbols_of(values: Iterable[Any]) -> set[str]:
    """The symbols in extents, wherever these stand."""
    found: set[str] = set()
    stack: list[Any] = [*values]
    while stack:
        one = stack.pop()
        if isinstance(one, tuple | list):
            stack += one
        elif isinstance(one, Extent):
            stack += [atom for monomial in one.terms for atom in monomial]
        elif isinstance(one, Atom):
            if one.operation:
                stack += [one.left, one.right]
            else:
                found.add(one.text)
    return found


def text_of(graph: Graph) -> str:
    """What a graph computes, node by node, the same for graphs of which the same code is made."""
    numbers: dict[int, int] = {}
    lines: list[str] = []
    for node in ir.sorted_nodes([*graph.inputs, *graph.roots]):
        numbers[id(node)] = len(numbers)
        options = node.options if node.operation != "input" else {}
        given = [f"%{numbers[id(one)]}" for one in node.inputs]
        given += [f"{name}={_shown(value)}" for name, value in sorted(options.items())]
        lines.append(f"%{len(lines)} = {node.operation}({', '.join(given)}) {node.dtype}{_shown(node.shape)}")
    written = ", ".join(f"%{numbers[id(value)]}" for value in graph.roots)
    return "\n".join([*lines, f"return {written}"])


def _shown(value: Any) -> str:
    """An option; equal text for equal values alone."""
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, Graph):
        return f"{{{text_of(value)}}}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape} {sha256(value.tobytes()).hexdigest()}"
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return str(value) if isinstance(value, Extent) else repr(value)


_rows: dict[tuple[str, str], type[FusedAttr]] = {}
"""By what they compute, and the sizes that were traced: which loop is that of lanes is guessed from these."""


def attr_of(nest: FusedNest, sizes: Mapping[str, int]) -> FusedAttr:
    """The attr of a nest for some values of its symbols. Raises AttrError where they are too large."""
    row = _rows.get((nest.text, nest.traced))
    if row is None:
        row = _rows[nest.text, nest.traced] = FusedAttr.row(nest)
    return row(expression=nest.text, **{name: sizes[name] for name in nest.symbols})


def measured_variant(nest: FusedNest) -> Variant | None:
    """The variant that measured best for the sizes that were traced; None where nothing was measured."""
    try:
        attr = attr_of(nest, nest.scope.values)
    except AttrError:  # nothing is measured for such sizes
        return None
    record = choosing.known_record(attr)
    if record is None:
        return None
    best = next((one for one in record.candidates if one.implementation == "gen" and one.error is None), None)
    if best is None or best.variant.get("unroll") is None:
        return None
    chosen = best.variant
    width = min(chosen["vector_bytes"], machine.target().vector_bytes)
    streams = chosen.get("stream", False)
    return Variant(width, chosen["unroll"], STREAM_BYTES if streams else 0, fetches=streams)
