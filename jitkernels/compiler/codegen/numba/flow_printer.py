"""Loops and branches as one Python function: numbers are variables, arrays are written where they lie.

What a region computes at once, loop nests inside of loops, stands where it is computed. A function returns 0, or the
status of a bailout: what Python's own function has to compute again.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from jitkernels.codegen.numba_functions import PythonFunction
from jitkernels.compiler.codegen.control_flow.region_evaluator import StridedPointer, Values
from jitkernels.compiler.codegen.core.ir_builder import Block, FunctionBuilder, Register
from jitkernels.compiler.codegen.numba.nest_printer import NestPrinter
from jitkernels.compiler.codegen.numba.number_printer import NumberPrinter
from jitkernels.compiler.codegen.numba.python_call import INDENT, append_nested, calling_text, python_function
from jitkernels.compiler.codegen.numba.python_expressions import parenthesize, symbol
from jitkernels.compiler.codegen.numba.python_values import ValuePrinter
from jitkernels.compiler.ir.graph import Node, has_value
from jitkernels.compiler.ir.region_memory import Flow, targets_of
from jitkernels.compiler.ir.regions import regions_of, walk_nodes
from jitkernels.compiler.schedule import gemm_epilogue
from jitkernels.compiler.schedule.loop_nest import LoopNest
from jitkernels.compiler.schedule.nest.choose_schedule import choose_schedule
from jitkernels.compiler.schedule.nest.loop_order import Loops
from jitkernels.compiler.schedule.nest.nest_schedule import NestSchedule
from jitkernels.compiler.schedule.region_stages import NestGroup

SYMBOL = re.compile(r" *(\w+) = [ci]\d+")
"""A line that gives a symbol the value of a loop's variable."""


def unprintable(flow: Flow) -> str:
    """Why the LLVM generator writes a loop or branch; empty where Python can say it."""
    inside = [flow.node, *(node for region in regions_of(flow.node) for node in walk_nodes(region))]
    for node in inside:
        if node.operation == "native_call":
            return "a native function is called in a loop or branch"
        if node.operation == "loop":
            first = 3 if node.options["counts"] else 0
            shift = 1 if node.options["counts"] else 0
            if any(position != i + shift for i, position in targets_of(node).items()):
                return f"arrays change places in a loop of {node.options['carried']} values from input {first} on"
    for body in flow.bodies.values():
        for group in body.groups:
            for step in group.steps:
                if not isinstance(step, LoopNest):
                    return f"{gemm_epilogue.kind_of(step)} in a loop or branch"
    return ""


class FlowPrinter(NumberPrinter):
    """Prints the function of one loop or branch."""

    def text(self) -> str:
        """LLVM IR of the function that the segment calls, and the printed function as a comment."""
        function, python = FunctionBuilder(self.library, self.symbol_slots), self._python()
        words = {name: word for word, name in self.pointers.items()}
        return calling_text(function, self.name, python, words, self._symbols)

    def _python(self) -> PythonFunction:
        self._emit_flow()
        self.block.lines.append("return 0")
        self._symbols = {symbol(name): name for name in sorted(self.symbols) if name not in self.loop_variant}
        arguments = [(name, f"{self.dtypes[name]}*") for name in self.pointers.values()]
        noalias = frozenset({name for name, _ in arguments} - self.shared | {name for name, _ in self.scratch})
        arguments += [(name, f"{dtype}*") for name, dtype in self.scratch]
        arguments += [(name, "int64") for name in self._symbols]
        title = "A loop" if self.flow.node.operation == "loop" else "A branch"
        lines = [f'"""{title}; returns 0, or the status of a bailout."""', *self.block.lines]
        return python_function(self.name, arguments, _without_unread(lines), noalias, self.spelling, "int64")

    def _flow_loop(self, node: Node, operands: list[Any]) -> list[Any]:
        """A loop: over a range where nothing else ends it, or as long as its condition holds."""
        counts, options = node.options["counts"], node.options
        first = 3 if counts else 0
        carried, captured = operands[first : first + options["carried"]], operands[first + options["carried"] :]
        carried = [
            Register(self.variable(value.text, "c"), value.dtype) if isinstance(value, Register) else value
            for value in carried
        ]
        counter = Register(self.new_name("i"), "int64")
        inputs = [*([counter] if counts else []), *carried, *captured]
        condition = options["condition"].outputs[0]
        is_plain = counts and has_value(condition, True)
        limits = self._range_limits(operands[:3]) if is_plain else ""
        before, inside = self.block, Block()
        self.block = inside
        head = f"for {counter.text} in range({limits}):" if limits else "while True:"
        if not limits:
            if counts:
                before.lines.append(f"{counter.text} = {operands[0].text}")
                sign = ">" if operands[2].text.startswith("-") else "<"
                self._break(f"not ({counter.text} {sign} {operands[1].text})")
            (continues,) = self._region(options["condition"], inputs)
            if continues.text != "True":
                self._break(f"not {parenthesize(continues.text)}")
        body = options["body"]
        for parameter, value in zip(body.inputs, inputs, strict=True):
            if "symbol" in parameter.options:
                self.block.lines.append(f"{symbol(parameter.options['symbol'])} = {value.text}")
        self._assign(carried, self._region(body, inputs))
        if counts and not limits:
            self.block.lines.append(f"{counter.text} = {counter.text} + {parenthesize(operands[2].text)}")
        append_nested(before.lines, head, inside.lines)
        self.block = before
        return carried

    def _range_limits(self, limits: Sequence[Register]) -> str:
        """The arguments of numba's range, which counts in 64 bits; "" where the distance may need more."""
        begin, end, step = (limit.text for limit in limits)
        if begin not in self.near or (end not in self.near and (step != "1" or not begin.isdigit())):
            return ""
        if end not in self.near and begin != "0":
            end = f"max({begin}, {end})"
        if step != "1":
            return f"{begin}, {end}, {step}"
        return end if begin == "0" else f"{begin}, {end}"

    def _break(self, condition: str) -> None:
        self.block.lines += [f"if {condition}:", f"{INDENT}break"]

    def _assign(self, variables: Sequence[Any], values: Sequence[Any]) -> None:
        """Assign loop-carried numbers, all at once."""
        pairs = [
            (variable.text, value.text)
            for variable, value in zip(variables, values, strict=True)
            if isinstance(variable, Register) and variable.text != value.text
        ]
        if pairs:
            self.block.lines.append(
                f"{', '.join(target for target, _ in pairs)} = {', '.join(value for _, value in pairs)}"
            )

    def _branch(self, node: Node, operands: list[Any], values: Values) -> list[Any]:  # noqa: ARG002
        condition, *captured = operands
        before, sides, results = self.block, list[Block](), list[list[Any]]()
        for name in ("yes", "no"):
            self.block = Block()
            results.append(self._region(node.options[name], captured))
            sides.append(self.block)
        joined = [
            Register(self.new_name("b"), of_body.dtype) if isinstance(of_body, Register) else of_else
            for of_body, of_else in zip(*results, strict=True)
        ]
        for side, outputs in zip(sides, results, strict=True):
            self.block = side
            self._assign(joined, outputs)
        self.block = before
        append_nested(before.lines, f"if {condition.text}:", sides[0].lines)
        if sides[1].lines:
            append_nested(before.lines, "else:", sides[1].lines)
        return joined

    def _call_nests(self, group: NestGroup, values: Values) -> None:
        """Print the nests of a group, one after another, with the arrays and numbers of this function."""
        program = group.program
        arrays: dict[int, str] = {}
        numbers: dict[int, str] = {}
        for node, captured in zip(program.graph.inputs, group.captured, strict=True):
            value, word = values[captured], program.words[node]
            if isinstance(value, StridedPointer):
                arrays[word] = value.pointer
            else:
                numbers[word] = value.text
        registers: dict[Node, Register] = {}
        for node in program.allocated:
            word = program.words[node]
            if node.ndim:
                outer = group.words[node]
                arrays[word] = self._pointer(outer, node.dtype)
                self.shared |= {arrays[word]} if outer in group.sharing else set()
            else:
                registers[node] = Register(self.new_name("r"), node.dtype)
                numbers[word] = registers[node].text
        for step in group.steps:
            if not step.is_empty:
                self._nest(step, group, arrays, numbers)
        self._set_results(group, values, registers.__getitem__)

    def _nest(self, nest: LoopNest, group: NestGroup, arrays: dict[int, str], numbers: dict[int, str]) -> None:
        self.count += 1
        function = FunctionBuilder(self.library, group.program.symbols)
        name = f"{self.name}.{self.count}"
        loops = Loops(nest, group.arrays, NestSchedule(), any_size=True)
        printer = NestPrinter(loops, choose_schedule(loops), function, name)
        own = ValuePrinter(printer, self.spelling, arrays=dict(arrays), symbols=self.symbols, scalars=numbers)
        own.scratch = self.scratch
        self.block.lines += printer.inline(f"n{self.count}_", own)


def _without_unread(lines: list[str]) -> list[str]:
    """The lines without symbols of loops that nothing reads."""
    words = Counter(re.findall(r"[A-Za-z_]\w*", "\n".join(lines)))
    kept: list[str] = []
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        match = SYMBOL.fullmatch(line)
        is_alone = kept[-1:] and kept[-1].endswith(":") and _depth(following) < _depth(line)
        if match is None or words[match[1]] > 1 or is_alone:
            kept.append(line)
    return kept


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
