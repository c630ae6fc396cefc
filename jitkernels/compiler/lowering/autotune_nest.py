"""A loop nest as a kernel of its own: a schema of the registry, so that the tuner measures and records its variants.

The choice depends on the sizes of the traced call. The code serves all other sizes as well.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitkernels.attrs.fused import FusedAttr
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.attrs.schema.signature import Array as Shaped
from jitkernels.compiler.ir import builder, interpreter, symbolic_dims
from jitkernels.compiler.ir import graph as ir
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.ir.regions import symbols_in
from jitkernels.compiler.ir.strided_array import StridedArray
from jitkernels.compiler.ir.symbolic_dims import Atom, Extent, Number, Scope
from jitkernels.compiler.lowering import kernel_body
from jitkernels.compiler.lowering.build_segment import NestRequest
from jitkernels.compiler.schedule.nest import heuristics
from jitkernels.compiler.schedule.nest.nest_schedule import NestSchedule
from jitkernels.core import cpu_target, dtypes
from jitkernels.core.canonical_text import canonical_text
from jitkernels.errors import AttrError
from jitkernels.microkernels.tuning_space import STREAM_CANDIDATE_BYTES
from jitkernels.selection import select

DOMAIN = (-2.0, 2.0)
OMITTED_FROM_TITLE = frozenset({"input", "constant", "extent", "view", "cast"})
"""Operations that a nest's title omits."""


@dataclass(frozen=True)
class NestArgument:
    """An array of a nest with symbolic extents."""

    name: str
    role: Any
    dtype: str
    shape: tuple[Number, ...]
    trailing = None
    """The number of dimensions is fixed: there are no trailing ones."""

    def array(self, sizes: Mapping[str, Any]) -> Shaped:
        """The array for given values of the symbols; an output may alias an input of the same access map."""
        shape = tuple(symbolic_dims.evaluated(extent, sizes) for extent in self.shape)
        low, high = DOMAIN
        domain = (0.0 if np.dtype(self.dtype).kind in "bu" else low, high)
        return Shaped(self.name, self.role, shape, self.dtype, domain=domain)


class FusedNest:
    """What a nest computes, independent of the function that it comes from."""

    def __init__(self, graph: Graph, scope: Scope, along: str, unroll: int, cost: float) -> None:
        self.graph, self.scope, self.along, self.unroll, self._cost = graph, scope, along, unroll, cost
        self.symbols = tuple(scope.values)
        count = len(graph.inputs) - len(graph.writes)
        self.arrays = tuple(
            NestArgument(f"{'xy'[i >= count]}{i}", "out" if i >= count else "in", node.dtype, node.shape)
            for i, node in enumerate(graph.inputs)
        )
        self.text = text_of(graph)
        self.traced = ", ".join(f"{name}={value}" for name, value in scope.values.items())
        named = [node.options.get("kind", node.operation) for node in graph if node.operation not in OMITTED_FROM_TITLE]
        self.title = " ".join(named) or "copy"

    def reason_against(self, sizes: Mapping[str, int]) -> str:
        """Why the code does not serve these sizes; "" if it does."""
        small = [name for name, size in sizes.items() if size < 2]
        if small:
            return f"{small[0]}: expected at least 2, got {sizes[small[0]]}: broadcasting makes another expression"
        for guard in self.scope.guards.values():
            if not guard.holds(sizes):
                return f"expected {guard.extent} {guard.sign} 0, as for the traced sizes, got {dict(sizes)}"
        return ""

    def run(self, arrays: Sequence[AnyArray], sizes: Mapping[str, int]) -> None:
        """Evaluate node by node; in wider types than the nodes have, if the arrays have these."""
        with np.errstate(all="ignore"):
            results = interpreter.run(_in_types_of(self.graph, arrays), arrays, sizes)
        for target, value in zip(arrays[-len(results) :], results, strict=True):
            target[...] = value

    def largest(self, arrays: Sequence[AnyArray], sizes: Mapping[str, int]) -> float:
        """The largest finite intermediate value; infinite where a reduction meets an infinity or NaN.

        The order of a sum decides whether it overflows, and what a sum of infinities is.
        """
        known: dict[Node, Any] = {}
        largest = 0.0
        reduces = any(node.operation == "reduce" for node in self.graph)
        for node, array in zip(self.graph.inputs, arrays, strict=True):
            known[node] = array.astype(node.dtype)
        for node in self.graph:
            if node not in known:
                inputs = [known[operand] for operand in node.inputs]
                known[node] = interpreter.of_node(node, inputs, lambda item: symbolic_dims.evaluated(item, sizes))
            value = known[node]
            if value.dtype.kind == "f" and value.size:
                if reduces and not np.isfinite(value).all():
                    return np.inf
                largest = max(largest, float(np.nanmax(np.where(np.isfinite(value), np.abs(value), 0))))
        return largest

    def operations(self, sizes: Mapping[str, int]) -> float:
        """About how many additions the nest takes."""
        return self._cost * max(
            (symbolic_dims.evaluated(symbolic_dims.product(node.shape), sizes) for node in self.graph), default=1
        )

    def body(self, vector_bytes: int, unroll: int, stream: bool) -> str:
        """LLVM IR of the kernel body. Raises BuildError."""
        chosen = NestSchedule(vector_bytes, unroll, int(stream))
        return kernel_body.body_of(self.graph, self.scope, len(self.arrays), self.along, chosen)


def measured_schedule(request: NestRequest) -> NestSchedule | None:
    """The schedule of a nest that measured best for the traced sizes; None where nothing was measured."""
    if select.tuning_mode() == "off":
        return None
    own_kernel = fused_nest(request)
    return None if own_kernel is None else best_schedule(own_kernel)


def fused_nest(request: NestRequest) -> FusedNest | None:
    """A nest as a kernel of its own; None unless it is a loop over contiguous arrays of dtypes that kernels take."""
    nest, scope = request.nest, request.scope
    operations = {node.operation for node in nest.nodes}
    if any(store.target_map is not None for store in nest.stores) or "gather" in operations:
        return None  # data-dependent indices, which other code checks
    if "scan" in operations and not nest.rows:
        return None  # no parallel dimension
    leaves, roots = nest.leaves, [*dict.fromkeys(region.root for region in nest.regions)]
    arrays = [*leaves, *(store.target for store in nest.stores)]
    if not {*leaves}.isdisjoint(roots) or not all(_is_contiguous(node, request.arrays[node]) for node in arrays):
        return None
    outermost = (*nest.rows, *nest.columns)[0] if nest.rows or nest.columns else 1
    names = [name for name in scope.values if symbolic_dims.same(Extent({(Atom(name),): 1}, scope), outermost)]
    if not names:
        return None
    inputs = [
        Node("input", (), node.dtype, node.shape, {"index": i, "strides": builder.contiguous(node.shape)})
        for i, node in enumerate((*leaves, *roots))
    ]
    new: dict[Node, Node] = dict(zip(leaves, inputs, strict=False))
    for region in nest.regions:
        for node in region.nodes:
            if node not in new:
                # A node without a clone is a constant.
                new[node] = node.with_inputs([new.setdefault(operand, operand) for operand in node.inputs])
    writes = tuple(zip(inputs[len(leaves) :], [new[root] for root in roots], strict=True))
    used = symbols_in(ir.sorted_nodes([*inputs, *(value for _, value in writes)]))
    guards = {
        key: guard
        for key, guard in scope.guards.items()
        if not guard.is_choice and symbolic_dims.symbols_of(guard.extent) <= used
    }
    own = Scope({name: value for name, value in scope.values.items() if name in used}, guards)
    return FusedNest(
        Graph(tuple(inputs), (), writes), own, names[0], heuristics.unroll(nest, request.arrays), nest.cost
    )


def _in_types_of(graph: Graph, arrays: Sequence[AnyArray]) -> Graph:
    """The graph with its dtypes replaced by those of the arrays, where these differ from its inputs'."""
    wider = {
        node.dtype: array.dtype.name
        for node, array in zip(graph.inputs, arrays, strict=True)
        if array.dtype != node.dtype
    }
    if not wider:
        return graph
    new: dict[Node, Node] = {}
    for node in ir.sorted_nodes([*graph.inputs, *graph.roots]):
        operands = [new[operand] for operand in node.inputs]
        new[node] = Node(node.operation, operands, wider.get(node.dtype, node.dtype), node.shape, node.options)
    writes = tuple((new[target], new[value]) for target, value in graph.writes)
    return Graph(tuple(new[node] for node in graph.inputs), (), writes)


def _is_contiguous(node: Node, array: StridedArray) -> bool:
    contiguous = symbolic_dims.key_of_shape(builder.contiguous(node.shape))
    is_dense = symbolic_dims.key_of_shape(array.strides) == contiguous and symbolic_dims.same(array.first, 0)
    return is_dense and node.dtype in dtypes.TABLE


def text_of(graph: Graph) -> str:
    """A canonical text of what a graph computes: equal for graphs with equal code."""
    numbers: dict[Node, int] = {}
    lines: list[str] = []
    for node in ir.sorted_nodes([*graph.inputs, *graph.roots]):
        numbers[node] = len(numbers)
        options = node.options if node.operation != "input" else {}
        arguments = [f"%{numbers[operand]}" for operand in node.inputs]
        arguments += [f"{name}={canonical_text(value, _shown)}" for name, value in sorted(options.items())]
        shape = canonical_text(node.shape, _shown)
        lines.append(f"%{len(lines)} = {node.operation}({', '.join(arguments)}) {node.dtype}{shape}")
    written = ", ".join(f"%{numbers[value]}" for value in graph.roots)
    return "\n".join([*lines, f"return {written}"])


def _shown(value: Any) -> str:
    """The canonical text of an option that is neither a number nor made of numbers."""
    if isinstance(value, Graph):
        return f"{{{text_of(value)}}}"
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return str(value) if isinstance(value, Extent) else repr(value)


_schemas: dict[tuple[str, str], type[FusedAttr]] = {}
"""By canonical text and traced sizes: heuristics choose the vectorized loop by these sizes."""


def attr_of(nest: FusedNest, sizes: Mapping[str, int]) -> FusedAttr:
    """The attr of a nest for values of its symbols. Raises AttrError where they are too large."""
    schema = _schemas.get((nest.text, nest.traced))
    if schema is None:
        schema = _schemas[nest.text, nest.traced] = FusedAttr.schema(nest)
    return schema(expression=nest.text, **{name: sizes[name] for name in nest.symbols})


def best_schedule(nest: FusedNest) -> NestSchedule | None:
    """The schedule that measured best for the traced sizes; None where nothing was measured."""
    try:
        attr = attr_of(nest, nest.scope.values)
    except AttrError:  # too large to be measured
        return None
    record = select.known_record(attr)
    if record is None:
        return None
    generated = (one for one in record.candidates if one.implementation == "gen" and one.error is None)
    best = next(generated, None)
    if best is None or best.variant.get("unroll") is None:
        return None
    chosen = best.variant
    width = min(chosen["vector_bytes"], cpu_target.target().vector_bytes)
    return NestSchedule(width, chosen["unroll"], STREAM_CANDIDATE_BYTES if chosen.get("stream") else 0)
