"""From a graph to a program: what is computed where, which nests are one segment, and the code of each."""

from collections.abc import Callable, Mapping, Sequence
from itertools import repeat

from jitkernels import machine
from jitkernels.attrs.base import FLOATS
from jitkernels.graph import cones, construct, extents, products
from jitkernels.graph.checks import checked
from jitkernels.graph.cones import Cone
from jitkernels.graph.config import JitConfig
from jitkernels.graph.emit import programs
from jitkernels.graph.emit.blocks import Function
from jitkernels.graph.emit.blockwise import BlockwiseEmitter, serves
from jitkernels.graph.emit.memory import Array
from jitkernels.graph.emit.nests import Emitter
from jitkernels.graph.emit.targets import Variant
from jitkernels.graph.extents import Extent, Number, Scope
from jitkernels.graph.ir import Graph, Node
from jitkernels.graph.passes import optimised
from jitkernels.graph.products import Product
from jitkernels.graph.program import Program, Segment
from jitkernels.graph.schedule import Nest, Schedule, Single, scheduled
from jitkernels.graph.unrolling import unrolled
from jitkernels.native.language.lanes import Library
from jitkernels.native.sharing import WORK
from jitkernels.native.source import External


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
    return Graph(graph.inputs, tuple(outputs), tuple(writes), graph.notes, graph.checks)


Choose = Callable[[Nest, Mapping[int, Array], Scope, float, int], Variant | None]
"""Which variant of a nest to take, of what cost for an element, by which static unrolling; None leaves it so."""


def compiled(
    graph: Graph,
    scope: Scope,
    config: JitConfig,
    choose: Choose | None = None,
    units: list[programs.Unit] | None = None,
) -> Program:
    """The program of a graph. What is emitted for its segments is added to `units`."""
    graph = products.lowered(optimised(graph, config))
    if abs(config.opt_level) >= 3:
        graph = products.lowered(
            optimised(unrolled(graph), config)
        )  # passes take its copies for what changes nothing
    graph = checked(_with_own_results(graph))
    program = Program(graph, config)
    program.symbols = dict.fromkeys(scope.values, 0)
    schedule = scheduled(
        graph,
        fuse=abs(config.opt_level) >= 3,
        fuse_reduce=config.fuse_reduce,
        largest=config.max_fusion_size,
        most_inputs=config.max_inputs,
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
        if isinstance(step, Single) and id(step.node) in program.reshaped:
            continue
        if group:
            program.steps.append(_segment(group, arrays, program, scope, choose, units))
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
    read_by_numpy = {
        id(one) for step in schedule.steps if isinstance(step, Single) for one in step.node.inputs
    }
    for step in schedule.steps:
        if isinstance(step, Single):
            node = step.node
            if id(node) not in read_by_numpy and _is_reshaped_input(node, graph):
                arrays[id(node)] = Array(
                    program.words[id(node.inputs[0])], construct.contiguous(node.shape), node.dtype
                )
                program.reshaped[id(node)] = node.inputs[0]
            else:
                arrays[id(node)] = _array(program, node, construct.contiguous(node.shape))
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
            if node not in graph.checks:
                program.made.append(node)
            if order is not None:
                program.orders[id(node)] = order
    return arrays


def _is_reshaped_input(node: Node, graph: Graph) -> bool:
    """Whether a node is an argument without gaps in another shape, which its memory is as well."""
    if node.operation != "reshape" or graph.writes or node in graph.outputs:
        return False
    (base,) = node.inputs
    strides = base.options.get("strides") if base.operation == "input" else ()
    whole = extents.key_of_shape(construct.contiguous(base.shape))
    return base.operation == "input" and (strides is None or extents.key_of_shape(strides) == whole)


def order_of(cone: Cone, arrays: Mapping[int, Array]) -> tuple[int, ...] | None:
    """The dimensions of an elementwise root from the outermost in memory on, as in what it reads; None for C order.

    So does NumPy choose the layout of a result: what is computed from transposed arrays lies as they do.
    """
    if cone.reductions or cone.root.ndim < 2:
        return None
    known: list[dict[int, int]] = []
    # What is picked is new, in C order; the numbers that pick it say nothing of the result.
    read = [(id(node), construct.contiguous(node.shape)) for node in cone.nodes if node.operation == "gather"]
    read += [(key, arrays[key].strides) for key in cone.leaves]
    for key, strides in read:
        for place in cone.places[key].values():
            if cones.ANYWHERE in cones.loops_of(place):
                continue
            steps: dict[int, int] = {}
            for stride, (_, moves) in zip(strides, place, strict=True):
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


def _segment(
    nests: list[Nest | Product],
    arrays: dict[int, Array],
    program: Program,
    scope: Scope,
    choose: Choose | None,
    units: list[programs.Unit] | None,
) -> Segment:
    # What the body of a kernel calls is part of it: its externals are told before it is made.
    library = Library(alone={} if units is None else None)
    target = machine.target()
    texts, made, shares = [], [], False
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
        found_best = choose(nest, arrays, scope, nest.cost, _unroll(nest)) if choose else None
        variant = found_best or Variant(min(64, target.vector_bytes), _unroll(nest), _stream(nest))
        variant = Variant(
            variant.vector_bytes,
            variant.unroll,
            variant.stream,
            is_delicate=units is None and _is_delicate(nest, program),
            any_size=units is not None,
        )
        nest.variant = f"{variant.unroll} x {variant.vector_bytes} bytes" + (
            ", measured" if found_best else ""
        )
        emitter = Emitter(nest, arrays, function, variant, f"nest{number}")
        if units is None and serves(emitter):
            function, shares = Function(library, program.symbols), True
            emitter = BlockwiseEmitter(nest, arrays, function, variant, f"nest{number}")
        texts.append(emitter.text())
        loop = emitter.range_loop
        extent = None if loop is None else emitter.extents[loop]
        work = nest.work
        checks = tuple(
            arrays[id(one.target)].word for one in nest.stores if one.target in program.graph.checks
        )
        unit = emitter.lanes()[1] if loop == emitter.lane_loop else 1
        made.append(programs.Call(f"nest{number}", extent, work, unit, checks))
    parallel = shares or any(isinstance(call.work, Extent) or call.work > WORK for call in made)
    text = programs.segment_text(library, texts, made, program.symbols, parallel=parallel)
    if abs(program.config.opt_level) < 2:
        text = text.replace(
            " contract ", " "
        )  # every product is rounded before it is added to, as NumPy's are
    source = programs.fused(
        "fused", text, 64, (*programs.externals(library, parallel=parallel), *dict.fromkeys(found))
    )
    if units is not None:
        units.append(programs.Unit(library, texts, made))
    return Segment(nests, source, sum((call.work for call in made), 0), program.config.cache)


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
    if step.node.dtype not in FLOATS or made.external is None:
        return step
    program.made.append(step.node)
    return made


def _is_delicate(nest: Nest, program: Program) -> bool:
    """Whether lanes that are off might set flags of the processor, which warnings hang on.

    Of what overwrites its arguments nobody but the flags can tell.
    """
    nodes = (node for cone in nest.cones for node in cone.nodes)
    return bool(program.graph.writes) or any(map(cones.is_delicate, nodes))


STREAM_BYTES = 1 << 24
"""Results of this size go past the caches if nothing was measured: few machines keep them and what they are made of."""


def _stream(nest: Nest) -> int:
    """From how many bytes of the result on it pays to write past the caches: never, where computing takes longer."""
    return STREAM_BYTES if nest.cost < 24 else 0


LONG_ROWS = 512
"""Columns from which on it counts little what is done once for a row. A guess from the call that was traced."""


def _unroll(nest: Nest) -> int:
    is_long = bool(nest.rows) and extents.value_of(extents.product(nest.columns)) >= LONG_ROWS
    cost = nest.cost_of_columns if is_long else nest.cost
    return 4 if cost < 24 else 2 if cost < 60 else 1
