"""`loops` of a compiled function: its steps in order, and each fused loop nest as the loops that run for it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from jitkernels.compiler.diagnostics.explain import described
from jitkernels.compiler.diagnostics.loop_printer import INDENT, LoopPrinter
from jitkernels.compiler.diagnostics.source_printer import compiled_for
from jitkernels.compiler.dispatch.specialization import Specialization
from jitkernels.compiler.ir.config import JitConfig
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.region_memory import Flow, is_control_flow
from jitkernels.compiler.ir.regions import regions_of, walk_nodes
from jitkernels.compiler.lowering import backends, lower_graph
from jitkernels.compiler.schedule import gemm_epilogue
from jitkernels.compiler.schedule.loop_nest import LoopNest
from jitkernels.compiler.schedule.loop_tree.lower_nest import lower_nest
from jitkernels.compiler.schedule.nest.loop_order import Loops
from jitkernels.compiler.schedule.region_stages import NestGroup


def loops(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """The loops of a call, or of all calls so far, as pseudo-code. Raises NotUsableError where there is no code."""
    compiled, names = compiled_for(function, args, kwargs)
    config = replace(function.config, backend="native", profile=False)
    return "\n\n".join(
        "\n".join(_Report(function.__name__, specialization, names, config).lines) for specialization in compiled
    )


class _Report:
    """The report of one specialization."""

    def __init__(self, name: str, specialization: Specialization, names: Sequence[str], config: JitConfig) -> None:
        assert specialization.graph is not None, "compiled"
        self.nests: dict[int, Loops] = {}
        self.count = 0
        program = lower_graph.compile_graph(
            specialization.graph, specialization.scope, config, backends.measured_schedule, loops=self.nests
        )
        self.words = program.words
        symbols = ", ".join(f"{symbol}={value}" for symbol, value in specialization.scope.values.items())
        self.lines = [f"{name} for {symbols}" if symbols else name]
        arrays: dict[int, str] = {}
        for node, argument in zip(program.graph.inputs, names, strict=False):
            self._name(arrays, program.words[node], argument, node)
        for number, node in enumerate(program.graph.inputs[len(names) :]):
            self._name(arrays, program.words[node], f"constant{number}", node)
        outputs = program.graph.outputs
        for number, node in enumerate(outputs):
            if node in program.words:
                self._name(arrays, program.words[node], f"result{number}" if len(outputs) > 1 else "result", node)
        for step in program.steps:
            if isinstance(step, Node):
                self.count += 1
                self.lines.append(f"{self.count}: NumPy computes {step.operation}")
                continue
            for nest in step.nests:
                self._step(nest, arrays, "")

    def _name(self, arrays: dict[int, str], word: int, name: str, node: Node) -> None:
        """Name an array; one that is stored over another keeps the name of that."""
        if word not in arrays:
            arrays[word] = name
            self.lines.append(f"{INDENT}{name}: {described(node)}")

    def _step(self, step: Any, arrays: Mapping[int, str], indent: str) -> None:
        self.count += 1
        head = f"{indent}{self.count}: {gemm_epilogue.kind_of(step)}"
        if isinstance(step, LoopNest):
            if id(step) not in self.nests or step.schedule is None:
                self.lines.append(f"{head}, by a kernel that transposes")
                return
            self.lines.append(head + (", the epilogue of the product" if step.product is not None else ""))
            tree = lower_nest(self.nests[id(step)], step.schedule)
            self.lines += [f"{indent}{INDENT}{line}" for line in LoopPrinter(arrays).lines(tree)]
        elif isinstance(step, Flow):
            self.lines.append(f"{indent}{self.count}: {step.node.operation}")
            names = _names_of_parameters(
                step.node, {node: arrays[word] for node, word in self.words.items() if word in arrays}
            )
            for body in step.bodies.values():
                for group in body.groups:
                    own = _names_inside(group, arrays, names)
                    for inner in group.steps:
                        self._step(inner, own, indent + INDENT)
        else:
            operands = ", ".join(described(node) for node in step.node.inputs)
            self.lines.append(f"{head} of {operands}" if operands else head)


def _names_inside(group: NestGroup, arrays: Mapping[int, str], names: Mapping[Node, str]) -> dict[int, str]:
    """The names of arrays in a loop or branch, by their words there; `names`: those of its parameters."""
    words = group.program.words
    own = {words[node]: arrays.get(outer, f"t{outer}") for node, outer in group.words.items() if node in words}
    for number, (node, captured) in enumerate(zip(group.program.graph.inputs, group.captured, strict=True)):
        own.setdefault(words[node], _name_of(captured, names) or f"x{number}")
    return own


def _names_of_parameters(flow: Node, names: Mapping[Node, str]) -> dict[Node, str]:
    """The names of the parameters of a loop's or branch's regions, and of those inside: of what they begin as."""
    result = {**names}
    if flow.operation == "loop":
        first, skipped = (3, 1) if flow.options["counts"] else (0, 0)
        operands = flow.inputs[first:]
    else:
        operands, skipped = flow.inputs[1:], 0
    for region in regions_of(flow):
        for parameter, operand in zip(region.inputs[skipped:], operands, strict=False):
            name = _name_of(operand, result)
            result |= {parameter: name} if name else {}
        for node in walk_nodes(region):
            if is_control_flow(node):
                result |= _names_of_parameters(node, result)
    return result


def _name_of(node: Node, names: Mapping[Node, str]) -> str | None:
    """The name of a value; that of the array for one with other elements, or after a loop."""
    while node not in names:
        if node.operation == "item":
            loop, number = node.inputs[0], node.options["index"]
            if loop.operation != "loop":
                return None
            node = loop.inputs[number + (3 if loop.options["counts"] else 0)]
        elif node.operation == "scatter":
            node = node.inputs[0]
        else:
            return None
    return names[node]
