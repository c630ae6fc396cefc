"""Buffers of loops and branches: which arrays their regions update in place, and the copies that this requires."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jitkernels.compiler.ir import builder, numpy_call_spec
from jitkernels.compiler.ir.graph import Graph, Node, readers, rebuild_roots, sorted_nodes
from jitkernels.compiler.ir.ops import OPERATIONS
from jitkernels.compiler.ir.regions import LoopParts, regions_of, walk_nodes, with_regions

FLOWS = frozenset({"loop", "branch"})
LOOP_NEST_OPERATIONS = frozenset({
    "cast", "concatenate", "constant", "extent", "gather", "iota", "matmul", "reduce", "reshape", "scan", "scatter",
    "update", "view",
})  # fmt: skip
"""Operations that loop nests and kernels of a region compute, beside elementwise ones."""
VIEWS = frozenset({"view", "reshape"})
SCALAR_OPERATIONS = frozenset(
    {"constant", "extent", "cast", "bounded", "overflows", "parameter", "item", "native_call"}
)


@dataclass
class Flow:
    """A loop or branch with those of its results that are used, and its scheduled regions by their ids."""

    node: Node
    items: list[Node] = field(default_factory=list)
    bodies: dict[int, Any] = field(default_factory=dict)


def is_control_flow(node: Node) -> bool:
    return node.operation in FLOWS


def is_result(node: Node) -> bool:
    """Whether a node is a result of a loop or branch."""
    return node.operation == "item" and is_control_flow(node.inputs[0])


def is_kernel_result(node: Node) -> bool:
    """Whether a node is a result of a kernel, or of a NumPy function, that compiled code calls."""
    return node.operation == "item" and is_called(node.inputs[0])


def is_called(node: Node) -> bool:
    """Whether a node is a kernel, or a NumPy function that compiled code can call."""
    return node.operation == "kernel" or numpy_call_spec.is_callable_from_code(node)


def is_direct(node: Node) -> bool:
    """Whether a region computes a node as scalar code or control flow, not as a loop nest."""
    if node.operation == "item":
        return not is_kernel_result(node)
    if is_control_flow(node) or node.operation == "parameter":
        return True
    if node.operation in ("gather", "scatter"):
        array, count = node.inputs[0], 1 if node.operation == "gather" else 2
        return len(node.inputs) - count == array.ndim and not any(operand.ndim for operand in node.inputs[count:])
    return not node.ndim and (node.operation in SCALAR_OPERATIONS or OPERATIONS[node.operation].is_elementwise)


def element_writes(parameter: Node, output: Node) -> list[Node]:
    """The scatters to single elements by which an iteration changes an array, if it does nothing else to it; else none.

    `parameter`: the array before the iteration; `output`: the one after it.
    """
    writes = []
    while output is not parameter:
        if output.operation != "scatter" or not is_direct(output):
            return []
        writes.append(output)
        output = output.inputs[0]
    return writes


def unsupported(graph: Graph) -> str:
    """The first operation of a region that code generation does not support; "" if there is none."""
    for node in graph:
        for region in regions_of(node):
            operation = unsupported(region)
            if operation:
                return operation
        if (
            is_direct(node)
            or is_kernel_result(node)
            or is_called(node)
            or node.operation in LOOP_NEST_OPERATIONS
            or OPERATIONS[node.operation].is_elementwise
        ):
            continue
        return node.operation
    return ""


def may_bail_out(flow: Node) -> bool:
    """Whether a loop or branch may bail out: it has checks, or kernels whose workspace allocation may fail."""
    inside = [node for region in regions_of(flow) for node in walk_nodes(region)]
    return any(region.checks for node in (flow, *inside) for region in regions_of(node)) or any(
        node.operation in ("matmul", "kernel", "call") or "grows" in node.options for node in inside
    )


def base_of(node: Node) -> Node:
    """The array in whose memory an updated array is."""
    while True:
        if node.operation in ("scatter", "update"):
            node = node.inputs[0]
        elif is_result(node):
            index = home_operand_index(node)
            if index is None:
                return node
            node = node.inputs[0].inputs[index]
        else:
            return node


def home_array(node: Node, first: Node | None = None) -> Node:
    """The array in whose memory loops, branches and scalar stores have left a node; `first` if it is on the way."""
    while node is not first and is_direct(node) and (node.operation == "scatter" or (is_result(node) and node.ndim)):
        index = home_operand_index(node) if node.operation == "item" else 0
        if index is None:
            return node
        node = node.inputs[0] if node.operation == "scatter" else node.inputs[0].inputs[index]
    return node


def copy_to_home(node: Node, home: Node) -> Node:
    """The value as region code can store it to its home buffer: a copy where it lies in another parameter's memory."""
    if not node.ndim or home_array(node, home) is home:
        return node
    is_of_another = base_of(node) is not home and base_of(node).operation == "parameter"
    return builder.copy(node) if is_direct(node) or is_of_another else node


def home_operand_index(item: Node) -> int | None:
    """The index of the loop or branch operand in whose memory a result is; None for scalars."""
    flow, index = item.inputs[0], item.options["index"]
    if not item.ndim:
        return None
    if flow.operation == "loop":
        return LoopParts(flow).first_operand + int(index)
    base: int = flow.options["bases"][index]
    return base + 1 if base >= 0 else None


def nest_update(output: Node) -> tuple[Node, Node] | None:
    """The update by a nest in whose memory loops, branches and stores leave an output, and its parameter."""
    update = home_array(output)
    base = update
    while base.operation == "update":
        base = base.inputs[0]
    return (update, base) if base is not update is not output and base.operation == "parameter" else None


def updated_input(region: Graph, index: int) -> int | None:
    """The index of the region input that a result updates in place; None if it is another array."""
    base = base_of(region.outputs[index])
    return next((i for i, operand in enumerate(region.inputs) if operand is base), None)


def targets_of(loop: Node) -> dict[int, int]:
    """By the index of each carried array, the body input in whose memory an iteration leaves its next value.

    It is another one than its own where a loop swaps arrays.
    """
    parts = LoopParts(loop)
    carried = range(parts.first_parameter, parts.first_parameter + parts.carried_count)
    targets: dict[int, int] = {}
    for i, node in enumerate(parts.body.outputs):
        if node.ndim:
            input_index = updated_input(parts.body, i)
            targets[i] = input_index if input_index is not None and input_index in carried else carried[i]
    return targets


def updated_operands(flow: Node) -> list[int]:
    """The indices of the operands whose memory a loop or branch updates."""
    if flow.operation == "branch":
        return [index + 1 for index in flow.options["bases"] if index >= 0]
    loop = LoopParts(flow)
    return [loop.first_operand + i for i, value in enumerate(loop.carried) if value.ndim]


def insert_copies(graph: Graph) -> Graph:
    """Insert copies of arrays that loops and branches update in place while other nodes still read them.

    Where a call may bail out halfway, updates of arguments go to copies that are written back at the end.
    """
    nodes = list(graph)
    if not any(map(is_control_flow, nodes)):
        return graph
    read = readers(nodes)
    writes_at_end = bool(graph.checks) or any(is_control_flow(node) and may_bail_out(node) for node in nodes)
    returned = {*graph.outputs, *(value for _, value in graph.writes)}
    targets = {target for target, _ in graph.writes}
    new: dict[Node, Node] = {}
    bailing = {node for node in nodes if is_control_flow(node) and may_bail_out(node)}
    for node in nodes:
        inputs = [new[operand] for operand in node.inputs]
        if node.operation == "update" and node.inputs[0] in targets and not bailing <= {*sorted_nodes(node.inputs)}:
            inputs[0] = builder.copy(inputs[0])  # as it may run before a region that bails out
        if is_control_flow(node):
            before = set(sorted_nodes(node.inputs))
            for index in updated_operands(node):
                array = node.inputs[index]
                reading = _reading(array, read, returned, node)
                others = [reader for reader in reading if reader is not node]
                is_read_once = len(reading) - len(others) == 1
                is_argument = array.operation in ("input", "reshape")  # a reshape may be one of an argument
                may_update = array in targets and not writes_at_end if is_argument else array not in returned
                if not (
                    may_update
                    and is_read_once
                    and all(reader in before and reader.operation not in VIEWS for reader in others)
                ):
                    inputs[index] = builder.copy(inputs[index])
        new[node] = _with_copies(node, inputs)
    return rebuild_roots(graph, new.__getitem__)


def _with_copies(node: Node, inputs: list[Node]) -> Node:
    """A node with new operands, and copies in its regions."""
    if not is_control_flow(node):
        return node.replace_inputs(inputs)
    updated, targets = _updated_parameters(node), _targets_by_region(node)

    def change(region: Graph) -> Graph:
        return _with_copies_inside(_without_copies_home(region, targets.get(region, {})), updated)

    return with_regions(node, inputs, change)


def _targets_by_region(flow: Node) -> dict[Graph, dict[int, int]]:
    """By the number of each array that a region leaves in the memory of an input, the index of that input."""
    if flow.operation == "loop":
        return {flow.options["body"]: targets_of(flow)}
    bases = {i: position for i, position in enumerate(flow.options["bases"]) if position >= 0}
    return {flow.options[name]: bases for name in ("yes", "no")}


def _updated_parameters(flow: Node) -> set[int]:
    """The indices of the region inputs whose memory a loop or branch updates: those that it carries."""
    if flow.operation == "branch":
        return {index for index in flow.options["bases"] if index >= 0}
    loop = LoopParts(flow)
    return set(range(loop.first_parameter, loop.first_parameter + loop.carried_count))


def _without_copies_home(region: Graph, targets: Mapping[int, int]) -> Graph:
    """Remove copies of results that are in their parameter's memory already, where a nest updates it before.

    `targets`: by the number of a result, the index of the parameter in whose memory it is. All else that reads the
    parameter has to come before the update.
    """
    region = _written_over_at_home(region, targets)
    outputs = list(region.outputs)
    read = readers(region)
    for index, position in targets.items():
        copied = outputs[index]
        if not _is_copy(copied):
            continue
        node, parameter = copied.inputs[0], region.inputs[position]
        found = nest_update(node) if is_direct(node) else None
        if found is None or found[1] is not parameter or len(read[node]) > 1 or node in region.roots:
            continue
        before = sorted_nodes([found[0]])
        versions = [parameter, *(one for one in before if one.operation == "update" and base_of(one) is parameter)]
        if not any(one in region.roots for one in versions) and {*before}.issuperset(read[parameter]):
            outputs[index] = node
    return region if outputs == list(region.outputs) else region.remade(outputs, region.writes, region.checks)


def _written_over_at_home(region: Graph, targets: Mapping[int, int]) -> Graph:
    """Let what replaces an array, unread, before stores to elements change it, take the array's memory.

    As in ``for i in range(n): count[:] = 0; for k in range(m): count[x[i, k]] += 1``: without a copy back.
    """
    read = readers(region)
    firsts: dict[tuple[Node, int], Node] = {}
    outputs = list(region.outputs)
    for index, position in targets.items():
        copied, parameter = outputs[index], region.inputs[position]
        if not _is_copy(copied) or read.get(parameter) or parameter in region.roots:
            continue
        place = _first_change(copied.inputs[0])
        if place is None or place in firsts:
            continue
        value = place[0].inputs[place[1]]
        if is_direct(value) or (value.dtype, value.shape) != (parameter.dtype, parameter.shape):
            continue
        firsts[place] = parameter
        outputs[index] = copied.inputs[0]
    if not firsts:
        return region
    new: dict[Node, Node] = {}
    for node in region.remade(outputs, region.writes, region.checks):
        inputs = [new[operand] for operand in node.inputs]
        for (changing, position), parameter in firsts.items():
            if changing is node:
                options = {"map": tuple(builder.identity_map(parameter.ndim)), "extents": parameter.shape}
                inputs[position] = Node(
                    "update", (parameter, inputs[position]), parameter.dtype, parameter.shape, options
                )
        new[node] = node.replace_inputs(inputs)
    return rebuild_roots(region.remade(outputs, region.writes, region.checks), new.__getitem__)


def _first_change(node: Node) -> tuple[Node, int] | None:
    """The first loop, branch or store of those that changed an array, and its operand; None if nothing did."""
    place = None
    while is_direct(node) and (node.operation == "scatter" or (is_result(node) and node.ndim)):
        index = home_operand_index(node) if node.operation == "item" else 0
        if index is None:
            return None
        changing = node if node.operation == "scatter" else node.inputs[0]
        place, node = (changing, index), changing.inputs[index]
    return place


def _is_copy(node: Node) -> bool:
    """Whether a node copies an array."""
    return node.operation == "view" and builder.is_identity(node.inputs[0].shape, node.options["map"], node.shape)


def _with_copies_inside(region: Graph, updated: set[int]) -> Graph:
    """Insert copies in a region of captured arrays that it would update in place."""
    nodes = list(region)
    captured = {operand for index, operand in enumerate(region.inputs) if index not in updated}
    read = readers(nodes)
    new: dict[Node, Node] = {}
    for node in nodes:
        inputs = [new[operand] for operand in node.inputs]
        for index in _updated_by(node):
            array = node.inputs[index]
            is_captured = (viewed_array(array) if array.operation == "reshape" else array) in captured
            if is_captured or _is_needed_later(array, node, read):
                inputs[index] = builder.copy(inputs[index])
        new[node] = _with_copies(node, inputs)
    if all(new[node] is node for node in nodes):
        return region
    return rebuild_roots(region, new.__getitem__)


def _is_needed_later(array: Node, writer: Node, read: Mapping[Node, list[Node]]) -> bool:
    """Whether an array that a region computes has readers behind the node that updates it, or that update it too.

    Equal arrays, such as two that are filled with zeros, are one node.
    """
    if is_direct(array) or base_of(array).operation == "parameter" or len(read[array]) < 2:
        return False
    if sum(operand is array for operand in writer.inputs) > 1:
        return True
    others = [reader for reader in read[array] if reader is not writer]
    updating = [reader for reader in others if array in [reader.inputs[i] for i in _updated_by(reader)]]
    return bool(updating) or any(writer in sorted_nodes([reader]) for reader in others)


def _updated_by(node: Node) -> list[int]:
    """The indices of the operands in whose memory a scalar store, a loop or a branch leaves its results."""
    if node.operation == "scatter" and is_direct(node):
        return [0]
    return updated_operands(node) if is_control_flow(node) else []


def _reading(array: Node, read: Mapping[Node, list[Node]], returned: set[Node], flow: Node) -> list[Node]:
    """The nodes that read an array, directly or through views, including views that are results.

    An element passed to the loop or branch is a scalar: it is loaded before.
    """
    reading: list[Node] = []
    for user in read[array]:
        if user.operation in VIEWS:
            reading += [other for other in _reading(user, read, returned, flow) if user.ndim or other is not flow]
        if user.operation not in VIEWS or user in returned:
            reading.append(user)
    return reading


def viewed_array(node: Node) -> Node:
    """The array that a chain of views shows."""
    while node.operation in VIEWS:
        node = node.inputs[0]
    return node


def in_place(nodes: Iterable[Node]) -> dict[Node, Node]:
    """By each array result of a loop or branch, the operand in whose memory it is."""
    bases: dict[Node, Node] = {}
    for node in nodes:
        if is_result(node):
            index = home_operand_index(node)
            if index is not None:
                bases[node] = node.inputs[0].inputs[index]
    return bases
