"""Int reductions of parallel loops: loop-carried ints that are only added to, or whose minimum or maximum is taken.

Floats are excluded: their sums depend on the order, as do minima of NaN and of signed zeros.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.ir.region_memory import FLOWS

ATOMIC = {
    "add": "add", "subtract": "add", "bitwise_xor": "xor", "bitwise_and": "and", "bitwise_or": "or",
    "maximum": "max", "minimum": "min",
}  # fmt: skip
"""By operation of an iteration, LLVM's atomicrmw operation that combines two partial results."""
ZEROED = frozenset({"add", "xor"})
"""Reductions whose partial results begin with zero; others may begin with the initial value."""
SIDES = ("yes", "no")
LARGER, SMALLER = frozenset({"greater", "greater_equal"}), frozenset({"less", "less_equal"})


class _OtherError(Exception):
    """The value has another use."""


@dataclass
class IntReduction:
    """How partial results combine: an atomic operation, "" if the int never changes; whether sums may overflow."""

    operation: str = ""
    is_checked: bool = False


@dataclass
class _Chain:
    """The def-use chain of an int through a region, from its parameter to its output."""

    region: Graph
    parameter: Node
    joined: IntReduction
    loop_variant: Container[str]
    values: set[Node] = field(default_factory=set)
    links: set[Node] = field(default_factory=set)

    def follow(self, output: Node) -> None:
        """Find the reduction operation of the chain. Raises _OtherError if the int has any other use."""
        if self.parameter.options.get("symbol") in self.loop_variant:
            raise _OtherError  # extents depend on it
        self.leads = {self.parameter}
        for node in self.region:
            if any(operand in self.leads for operand in node.inputs):
                self.leads.add(node)
        if output not in self.leads:
            raise _OtherError
        self._from(output)
        for node in self.region:
            if node not in self.links and any(operand in self.values for operand in node.inputs):
                if node.operation != "overflows" or node.options["of"] not in ("add", "subtract"):
                    raise _OtherError
                if not any(node is check for check in self.region.checks):
                    raise _OtherError
                self.joined.is_checked = True
        other_outputs = [value for value in (*self.region.outputs, *self.region.checks) if value is not output]
        if (
            any(other in self.values for other in other_outputs)
            or sum(value is output for value in self.region.outputs) > 1
        ):
            raise _OtherError

    def _from(self, node: Node) -> None:
        while True:
            self.values.add(node)
            if node is self.parameter:
                return
            self.links.add(node)
            if node.operation == "item" and node.inputs[0].operation in FLOWS:
                self.links.add(node.inputs[0])
                node = self._through(node.inputs[0], node.options["index"])
            elif node.operation == "where":
                node = self._chosen(node)
            elif node.operation in ATOMIC and node.dtype == "int64":
                self._note(ATOMIC[node.operation])
                node = self._one(node.inputs[:1] if node.operation == "subtract" else node.inputs, node.inputs)
            else:
                raise _OtherError

    def _one(self, allowed: tuple[Node, ...], inputs: tuple[Node, ...]) -> Node:
        """The only operand that depends on the int."""
        results = [operand for operand in inputs if operand in self.leads]
        if len(results) != 1 or not any(candidate is results[0] for candidate in allowed):
            raise _OtherError
        return results[0]

    def _note(self, operation: str) -> None:
        if self.joined.operation not in ("", operation):
            raise _OtherError
        self.joined.operation = operation

    def _through(self, flow: Node, index: int) -> Node:
        """The value before a loop or branch that changes it."""
        options = flow.options
        if flow.operation == "loop":
            operand_index = (3 if options["counts"] else 0) + index
            parameter_index = operand_index - (2 if options["counts"] else 0)
            before = self._one((flow.inputs[operand_index],), flow.inputs)
            condition = options["condition"]
            if any(condition.inputs[parameter_index] in node.inputs for node in condition):
                raise _OtherError
            body = options["body"]
            _Chain(body, body.inputs[parameter_index], self.joined, self.loop_variant).follow(body.outputs[index])
            return before
        if flow.inputs[0] in self.leads:
            return self._compared(flow, index)
        before = self._one(flow.inputs[1:], flow.inputs)
        operand_index = [operand is before for operand in flow.inputs].index(True) - 1
        for name in SIDES:
            side = options[name]
            _Chain(side, side.inputs[operand_index], self.joined, self.loop_variant).follow(side.outputs[index])
        return before

    def _chosen(self, node: Node) -> Node:
        """The value before a select of the larger or smaller one of itself and another value."""
        condition, yes, no = node.inputs
        value = self._one((yes, no), (yes, no))
        self._is_extreme(condition, yes, no)
        return value

    def _is_extreme(self, condition: Node, yes: Node, no: Node) -> None:
        """Record the maximum or minimum that a comparison and a select compute."""
        pair = condition.inputs
        in_order = len(pair) == 2 and pair[0] is yes and pair[1] is no
        swapped = len(pair) == 2 and pair[0] is no and pair[1] is yes
        if yes.dtype != "int64" or no.dtype != "int64" or not (in_order or swapped):
            raise _OtherError
        if condition.operation not in LARGER | SMALLER:
            raise _OtherError
        self.links.add(condition)
        self._note("max" if (condition.operation in LARGER) == in_order else "min")

    def _compared(self, branch: Node, index: int) -> Node:
        """The value before a branch that replaces it by a larger or smaller one."""
        condition = branch.inputs[0]
        before = self._one(condition.inputs, condition.inputs)
        outer = {name: dict(zip(branch.options[name].inputs, branch.inputs[1:], strict=True)) for name in SIDES}
        chosen: list[Node] = []
        for name in SIDES:
            output = branch.options[name].outputs[index]
            chosen += [parameter for parameter in condition.inputs if _are_congruent(parameter, output, outer[name])][
                :1
            ]
            uses = [user for user in branch.options[name] if any(outer[name].get(i) is before for i in user.inputs)]
            others = [output for i, output in enumerate(branch.options[name].outputs) if i != index]
            if uses or any(outer[name].get(other) is before for other in others):
                raise _OtherError
        if len(chosen) != 2:
            raise _OtherError
        self._is_extreme(condition, *chosen)
        return before


def _are_congruent(node: Node, inside: Node, outer: Mapping[Node, Node]) -> bool:
    """Return whether a node of a branch is a captured node, or congruent to it."""
    if inside in outer:
        return outer[inside] is node
    return (
        inside.operation == node.operation
        and inside.operation not in FLOWS
        and inside.dtype == node.dtype
        and inside.options == node.options
        and len(inside.inputs) == len(node.inputs)
        and all(_are_congruent(a, b, outer) for a, b in zip(node.inputs, inside.inputs, strict=True))
    )


def int_reductions_of(loop: Node, loop_variant: Container[str]) -> dict[int, IntReduction]:
    """The int reductions of a loop, by position, and how their partial results combine.

    `moving`: the loop-variant symbols that extents depend on.
    """
    body, result = loop.options["body"], {}
    for number in range(loop.options["carried"]):
        parameter, output = body.inputs[1 + number], body.outputs[number]
        if parameter.ndim or parameter.dtype != "int64" or output is parameter:
            continue
        joined = IntReduction()
        try:
            _Chain(body, parameter, joined, loop_variant).follow(output)
        except _OtherError:
            continue
        if joined.operation:
            result[number] = joined
    return result
