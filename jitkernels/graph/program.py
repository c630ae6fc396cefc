"""A graph made ready to run: segments of compiled nests, and between them what NumPy or a kernel computes."""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any

import numpy as np

from jitkernels import machine
from jitkernels.errors import WorkspaceError
from jitkernels.graph import cones, construct, extents, interpreter, products
from jitkernels.graph.cones import Cone
from jitkernels.graph.config import JitConfig
from jitkernels.graph.emit import calls, interface, programs
from jitkernels.graph.emit.blocks import Function
from jitkernels.graph.emit.nests import Emitter
from jitkernels.graph.emit.targets import Variant
from jitkernels.graph.emit.values import Array
from jitkernels.graph.extents import Extent, Guard, Number, Scope
from jitkernels.graph.ir import Graph, Node
from jitkernels.graph.passes import optimised
from jitkernels.graph.products import Product
from jitkernels.graph.schedule import Nest, Schedule, Single, scheduled
from jitkernels.graph.unrolling import unrolled
from jitkernels.native import load, vectorcall
from jitkernels.native.language.lanes import Library
from jitkernels.native.source import External


@dataclass
class Segment:
    """Nests that run one after another as one compiled function."""

    nests: list[Nest | Product] = field(repr=False)
    source: programs.Fused
    work: Number
    _entry: Any = field(default=None, repr=False)

    def run(self, frame: "np.ndarray[Any, np.dtype[np.int64]]") -> None:
        if self._entry is None:
            kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
            self._entry = kind(load.address_of(self.source))
        if self._entry(frame.ctypes.data):
            raise WorkspaceError("a kernel of a compiled function has no memory for its workspace")


@dataclass
class Program:
    """A compiled graph. `words`: the frame's word of each array that is kept; `symbols`: those of the symbols."""

    graph: Graph = field(repr=False)
    config: JitConfig
    steps: list[Segment | Node] = field(default_factory=list, repr=False)
    words: dict[int, int] = field(default_factory=dict, repr=False)
    symbols: dict[str, int] = field(default_factory=dict, repr=False)
    made: list[Node] = field(default_factory=list, repr=False)
    orders: dict[int, tuple[int, ...]] = field(default_factory=dict, repr=False)
    shared: dict[int, Node] = field(default_factory=dict, repr=False)

    def empty(self, node: Node, value: Callable[[Number], int]) -> Any:
        """A new array for a kept node, whose dimensions lie in the node's order."""
        shape = tuple(map(value, node.shape))
        order = self.orders.get(id(node))
        if order is None:
            return np.empty(shape, node.dtype)
        return np.empty([shape[i] for i in order], node.dtype).transpose(np.argsort(order))

    def run(
        self, arrays: Sequence[Any], values: Mapping[str, int], out: Sequence[Any] | None = None
    ) -> list[Any]:
        """The outputs, for arrays of the inputs and values of all symbols; what the graph writes is written then.

        `out` are arrays to take the outputs, which overlap no input.
        """
        known: dict[int, Any] = {
            id(node): array if isinstance(array, np.ndarray) else np.asarray(array, node.dtype)
            for node, array in zip(self.graph.inputs, arrays, strict=True)
        }

        def value(extent: Number) -> int:
            return extents.evaluated(extent, values)

        if out is not None:
            known |= {
                id(node): array
                for node, array in zip(self.graph.outputs, out, strict=True)
                if id(node) not in known and array is not None
            }
        for node in self.made:
            if id(node) not in known:
                known[id(node)] = self.empty(node, value)
        frame = np.zeros(len(self.words) + len(self.symbols) + 1, np.int64)
        for name, word in self.symbols.items():
            frame[word] = values[name]
        for step in self.steps:
            if isinstance(step, Node):
                given = [known[id(one)] for one in step.inputs]
                found = interpreter.of_node(step, given, value)
                if step.operation == "reshape" and (step in self.graph.outputs or self.graph.writes):
                    found = np.array(
                        found
                    )  # it may be a view of what belongs to the caller, or is written later
                if id(step) in known:
                    known[id(step)][...] = found
                else:
                    if isinstance(found, np.generic):
                        found = np.asarray(found)  # nests read memory
                    elif isinstance(found, np.ndarray) and found.ndim:
                        found = np.ascontiguousarray(found)
                    known[id(step)] = found
                continue
            for key, word in self.words.items():
                if key in known and isinstance(known[key], np.ndarray):
                    frame[word] = known[key].ctypes.data
            step.run(frame)
            for key, base in self.shared.items():
                if key not in known and id(base) in known:
                    known[key] = known[id(base)]
        results = [known[id(node)] for node in self.graph.outputs]
        if out is not None:
            for array, result in zip(out, results, strict=True):
                if array is not None and array is not result:
                    np.copyto(array, result)
        return results

    def caller(
        self,
        guards: Sequence[Guard],
        sources: Sequence[tuple[int, str]],
        reach: interface.Reach,
        *,
        is_tuple: bool,
    ) -> "programs.Fused | None":
        """The source of the function that Python calls may begin with; None where there is work for Python.

        `sources` says of each input which step of `reach` gives it, and its type if it is a number (see
        `interface.Argument`); results are the outputs, in a tuple if `is_tuple`.
        """
        if len(self.steps) != 1 or not isinstance(self.steps[0], Segment):
            return None
        given = {id(node) for node in self.graph.inputs}
        results = []
        for node in self.graph.outputs:
            order = self.orders.get(id(node))
            if id(node) in given or order not in (None, (1, 0)):
                return None
            size = np.dtype(node.dtype).itemsize
            results.append(
                interface.Result(self.words[id(node)], node.dtype, size, node.shape, order is not None)
            )
        if len({one.word for one in results}) < len(results) or not (is_tuple or len(results) <= 1):
            return None
        outputs = {id(node) for node in self.graph.outputs}
        kept = [
            interface.Kept(self.words[id(node)], np.dtype(node.dtype).itemsize, node.shape)
            for node in self.made
            if id(node) not in outputs
        ]
        segment = self.steps[0]
        arguments = [
            replace(self._argument(node, segment), source=source, number=number)
            for node, (source, number) in zip(self.graph.inputs, sources, strict=True)
        ]
        if any(one.is_written and not one.contiguous for one in arguments):
            return None
        caller = calls.Caller(
            arguments, results, kept, guards, self.symbols, len(self.words) + len(self.symbols) + 1, segment.work,
            is_tuple, reach,
        )  # fmt: skip
        own = caller.text()
        text = segment.source.text.replace("define i64 @entry(", "define internal i64 @segment(")
        declared = [line for line in own.splitlines() if line.startswith("declare ")]
        text = "\n".join(line for line in text.splitlines() if line not in declared)
        found = (*segment.source.externals, *vectorcall.externals())
        return programs.Fused("call", f"{own}{text}\n", segment.source.vector_bytes, found)

    def _argument(self, node: Node, segment: "Segment") -> interface.Argument:
        strides = node.options.get("strides") or construct.contiguous(node.shape)
        whole = extents.key_of_shape(strides) == extents.key_of_shape(construct.contiguous(node.shape))
        nests = [nest for nest in segment.nests if isinstance(nest, Nest)]
        alone = len(segment.nests) == 1 and len(nests) == 1 and not nests[0].rows and not self.orders
        same_place = all(
            id(node) not in cone.places
            or (
                extents.key_of_shape(cone.root.shape) == extents.key_of_shape(node.shape)
                and list(cone.places[id(node)]) == [cones.key_of(cones.identity(node.ndim))]
            )
            for nest in nests
            for cone in nest.cones
        )
        size = np.dtype(node.dtype).itemsize
        return interface.Argument(
            self.words[id(node)],
            node.dtype,
            size,
            node.shape,
            tuple(strides),
            whole,
            whole and alone and same_place,
            is_written=any(target is node for target, _ in self.graph.writes),
        )

    @property
    def kernels(self) -> int:
        """How many loop nests there are."""
        return sum(len(step.nests) for step in self.steps if isinstance(step, Segment))


def _with_own_results(graph: Graph) -> Graph:
    """The graph with copies where it gives back, or writes, an input as it is, or the same node twice."""
    seen = {id(node) for node in (*graph.inputs, *(value for _, value in graph.writes))}
    outputs = []
    for node in graph.outputs:
        outputs.append(construct.copy(node) if id(node) in seen else node)
        seen.add(id(node))
    given = {id(node) for node in graph.inputs}
    writes = [
        (target, construct.copy(value) if id(value) in given else value) for target, value in graph.writes
    ]
    return Graph(graph.inputs, tuple(outputs), tuple(writes), graph.notes)


def compiled(graph: Graph, scope: Scope, config: JitConfig) -> Program:
    """The program of a graph."""
    graph = products.lowered(optimised(graph, config))
    if abs(config.opt_level) >= 3:
        graph = products.lowered(
            optimised(unrolled(graph), config)
        )  # passes take its copies for what changes nothing
    graph = _with_own_results(graph)
    program = Program(graph, config)
    program.symbols = dict.fromkeys(scope.values, 0)
    schedule = scheduled(
        graph,
        fuse=abs(config.opt_level) >= 3,
        fuse_reduce=config.fuse_reduce,
        largest=config.max_fusion_size,
    )
    steps, program.shared = schedule.steps, schedule.shared
    arrays = _arrays(program, graph, schedule)
    for i, name in enumerate(program.symbols):
        program.symbols[name] = len(program.words) + i
    group: list[Nest | Product] = []
    for step in [*map(_native, steps, repeat(program)), None]:
        if isinstance(step, Nest | Product):
            group.append(step)
            continue
        if group:
            program.steps.append(_segment(group, arrays, program))
            group = []
        if isinstance(step, Single):
            program.steps.append(step.node)
    return program


def _arrays(program: Program, graph: Graph, schedule: Schedule) -> dict[int, Array]:
    """Where each kept node is, which gets a word of the frame."""
    arrays: dict[int, Array] = {}
    for node in graph.inputs:
        strides = node.options.get("strides")
        arrays[id(node)] = _array(
            program, node, strides if strides is not None else construct.contiguous(node.shape)
        )
    plain = {id(one) for node in graph if node.operation == "matmul" for one in products.operands(node)[0]}
    for step in schedule.steps:
        if isinstance(step, Single):
            arrays[id(step.node)] = _array(program, step.node, construct.contiguous(step.node.shape))
            continue
        for store in step.stores:
            node = store.target
            if id(node) in arrays:
                continue
            if id(node) in schedule.shared:
                arrays[id(node)] = arrays[id(schedule.shared[id(node)])]
                continue
            order = order_of(store.cone, arrays) if store.region is None and id(node) not in plain else None
            arrays[id(node)] = _array(program, node, construct.contiguous(node.shape, order))
            program.made.append(node)
            if order is not None:
                program.orders[id(node)] = order
    return arrays


def order_of(cone: Cone, arrays: Mapping[int, Array]) -> tuple[int, ...] | None:
    """The dimensions of an elementwise root from the outermost in memory on, as in what it reads; None for C order.

    So does NumPy choose the layout of a result: what is computed from transposed arrays lies as they do.
    """
    if cone.reductions or cone.root.ndim < 2:
        return None
    known: list[dict[int, int]] = []
    for key in cone.leaves:
        for place in cone.places[key].values():
            steps: dict[int, int] = {}
            for stride, (_, moves) in zip(arrays[key].strides, place, strict=True):
                for loop, step in moves:
                    steps[loop] = steps.get(loop, 0) + extents.value_of(stride * step)
            known.append(steps)
    dimensions = range(cone.root.ndim)
    order = tuple(
        sorted(dimensions, key=lambda i: ([-abs(steps.get(i, 0)) for steps in known if steps.get(i)], i))
    )
    return None if order == tuple(dimensions) else order


def _array(program: Program, node: Node, strides: Sequence[Number]) -> Array:
    word = program.words[id(node)] = len(program.words)
    return Array(word, tuple(strides), node.dtype)


def _segment(nests: list[Nest | Product], arrays: dict[int, Array], program: Program) -> Segment:
    library = Library()
    target = machine.target()
    texts, made = [], []
    found: list[External] = []
    for number, nest in enumerate(nests):
        function = Function(library, program.symbols)
        if isinstance(nest, Nest) and all(_is_empty(store.cone.root) for store in nest.stores):
            continue
        if isinstance(nest, Product):
            external = nest.external
            assert external is not None, "chosen for it"
            found.append(external)
            texts.append(nest.text(function, arrays, f"nest{number}", external))
            made.append(programs.Call(f"nest{number}", None, nest.work))
            continue
        variant = Variant(min(64, target.vector_bytes), _unroll(nest))
        emitter = Emitter(nest, arrays, function, variant, f"nest{number}")
        texts.append(emitter.text())
        loop = emitter.range_loop
        extent = None if loop is None else emitter.extents[loop]
        work = extents.product([*nest.rows, *nest.columns]) * max(round(_cost(nest)), 1)
        made.append(programs.Call(f"nest{number}", extent, work))
    parallel = any(isinstance(call.work, Extent) or call.work > programs.WORK for call in made)
    text = programs.segment_text(library, texts, made, program.symbols, parallel=parallel)
    if abs(program.config.opt_level) < 2:
        text = text.replace(
            " contract ", " "
        )  # every product is rounded before it is added to, as NumPy's are
    source = programs.Fused(
        "fused", text, 64, (*programs.externals(parallel=parallel), *dict.fromkeys(found))
    )
    return Segment(nests, source, sum((call.work for call in made), 0))


def _is_empty(node: Node) -> bool:
    return any(extents.same(extent, 0) for extent in node.shape)


def _native(step: Nest | Single, program: Program) -> Nest | Single | Product:
    """A step as a kernel's product, if that is what it is and its operands lie in memory without gaps."""
    if isinstance(step, Nest) or step.node.operation != "matmul":
        return step
    (left, right), turned = products.operands(step.node)
    made = Product(step.node, left, right, turned)
    for one in (left, right):
        strides = one.options.get("strides") if one.operation == "input" else None
        if strides is not None and extents.key_of_shape(strides) != extents.key_of_shape(
            construct.contiguous(one.shape)
        ):
            return step
    if step.node.dtype not in products.KERNELS or made.external is None:
        return step
    program.made.append(step.node)
    return made


LONG_ROWS = 512
"""Columns from which on it counts little what is done once for a row. A guess from the call that was traced."""


def _cost(nest: Nest, *, elements_alone: bool = False) -> float:
    """What a step of a nest costs, in additions; `elements_alone` leaves out what is the same for a row."""
    rows = extents.value_of(extents.product(nest.rows))
    return sum(
        min(cones.own_cost(node), 15.0)
        for node in {id(n): n for c in nest.cones for n in c.nodes}.values()
        if not elements_alone or extents.value_of(extents.product(node.shape)) != rows
    )


def _unroll(nest: Nest) -> int:
    is_long = bool(nest.rows) and extents.value_of(extents.product(nest.columns)) >= LONG_ROWS
    cost = _cost(nest, elements_alone=is_long)
    return 4 if cost < 24 else 2 if cost < 60 else 1
