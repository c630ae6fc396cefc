"""Loops and branches as one Python function: numbers are variables, arrays are written where they lie.

What a region computes at once, loop nests inside of loops, stands where it is computed. A function returns 0, or the
status of a bailout: what Python's own function has to compute again.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from jitkernels.codegen.numba_functions import PythonFunction
from jitkernels.codegen.python.types import NUMBERS
from jitkernels.compiler.codegen.core.ir_builder import Block, Function
from jitkernels.compiler.codegen.nest.phases import Variant
from jitkernels.compiler.codegen.numba.nest_printer import BLOCK, INDENT, NestPrinter
from jitkernels.compiler.codegen.numba.number_printer import NumberPrinter, Place, Scalar
from jitkernels.compiler.codegen.numba.python_expressions import enclosed, symbol
from jitkernels.compiler.codegen.numba.python_values import Values
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.ir.region_memory import Flow, targets_of
from jitkernels.compiler.ir.regions import regions_of, walk_nodes
from jitkernels.compiler.schedule.loop_nest import Nest

SYMBOL = re.compile(r" *(\w+) = [ci]\d+")
"""A line that gives a symbol the value of a loop's variable."""


def unprintable(flow: Flow) -> str:
    """Why the LLVM generator writes a loop or branch; empty where Python can say it."""
    inside = [flow.node, *(node for region in regions_of(flow.node) for node in walk_nodes(region))]
    for node in inside:
        if node.operation == "loop":
            first = 3 if node.options["counts"] else 0
            shift = 1 if node.options["counts"] else 0
            if any(place != i + shift for i, place in targets_of(node).items()):
                return f"arrays change places in a loop of {node.options['carried']} values from input {first} on"
    for body in flow.bodies.values():
        for _, group in body.stages:
            for step in group.steps if group is not None else ():
                if not isinstance(step, Nest):
                    return f"{type(step).__name__} in a loop or branch"
    return ""


class FlowPrinter(NumberPrinter):
    """Prints the function of one loop or branch."""

    def text(self) -> str:
        """LLVM IR of the function that the segment calls, and the printed function as a comment."""
        function, python = Function(self.library, self.places), self._python()
        new, block = function.new, function.block
        words = {name: word for word, name in self.pointers.items()}
        passed = ["ptr %result", "ptr %raised"]
        for name, kind in python.arguments:
            if name in words:
                at = new(block, f"getelementptr i64, ptr %frame, i64 {words[name]}")
                passed.append(f"ptr {new(block, f'load ptr, ptr {at}')}")
            elif kind.endswith("*"):
                passed.append(f"ptr {new(block, f'alloca [{BLOCK} x {NUMBERS[kind[:-1]].memory}], align 64')}")
            else:
                passed.append(f"i64 {function.extent_of(self._names[name])}")
        return "\n".join(
            [
                f"define internal i64 @{self.name}(ptr noalias readonly %frame, i64 %begin, i64 %end) nounwind {{",
                "  %result = alloca i64",
                "  %raised = alloca ptr",
                *function.memory,
                *block.lines,
                f'  %numba = call i32 @"{python.symbol}"({", ".join(passed)})',
                "  %status = load i64, ptr %result",
                "  ret i64 %status\n}",
                python.declaration(),
                python.comment(),
            ]
        )

    def _python(self) -> PythonFunction:
        from jitkernels.compiler.codegen.core import module_text

        node = self.flow.node
        values: dict[int, Any] = {id(one): self._given(one) for one in node.inputs}
        results = self._flow(node, values)
        for item in self.flow.items:
            if not item.ndim:
                value = results[item.options["index"]]
                self._store(f"{self._pointer(self.arrays[id(item)].word, item.dtype)}[0]", value)
        self.block.lines.append("return 0")
        self._names = {symbol(name): name for name in sorted(self.symbols) if name not in self.moving}
        arguments = [(name, f"{self.dtypes[name]}*") for name in self.pointers.values()]
        alone = frozenset({name for name, _ in arguments} - self.shared | {name for name, _ in self.scratch})
        arguments += [(name, f"{dtype}*") for name, dtype in self.scratch]
        arguments += [(name, "int64") for name in self._names]
        name = self.name.replace(".", "_")
        head = f"def {name}({', '.join(one for one, _ in arguments)}):"
        title = "a loop" if node.operation == "loop" else "a branch"
        lines = [f'"""{title.capitalize()}; returns 0, or the status of a bailout."""', *self.block.lines]
        text = "\n".join([head, *(f"{INDENT}{line}" for line in self._without_unread(lines))])
        definitions = module_text.unit_text(self.spelling.library, [*self.spelling.texts.values()])
        return PythonFunction(
            f"{self.name}.python", text, tuple(arguments), alone, self.spelling.functions, definitions, "int64"
        )

    @staticmethod
    def _without_unread(lines: list[str]) -> list[str]:
        """The lines without symbols of loops that nothing reads."""
        words = Counter(re.findall(r"[A-Za-z_]\w*", "\n".join(lines)))
        kept: list[str] = []
        for line, following in zip(lines, [*lines[1:], ""], strict=True):
            found = SYMBOL.fullmatch(line)
            is_alone = kept[-1:] and kept[-1].endswith(":") and _depth(following) < _depth(line)
            if found is None or words[found[1]] > 1 or is_alone:
                kept.append(line)
        return kept

    def _region(self, graph: Graph, given: Sequence[Any]) -> list[Any]:
        """What a region gives for its inputs."""
        values: dict[int, Any] = {id(one): value for one, value in zip(graph.inputs, given, strict=True)}
        checks = {id(one) for one in graph.checks}
        for nodes, group in self.flow.bodies[id(graph)].stages:
            for node in nodes:
                if id(node) not in values:
                    values[id(node)] = self._value(node, values)
                if id(node) in checks:
                    self._refuse(values[id(node)].text)
            if group is not None:
                self._nests(group, values)
        return [values[id(node)] for node in graph.outputs]

    def _value(self, node: Node, values: dict[int, Any]) -> Any:
        given = [values[id(one)] for one in node.inputs]
        match node.operation:
            case "constant" | "extent":
                return self._number(node)
            case "cast":
                return self._named(self.spelling.cast(given[0].text, given[0].dtype, node.dtype), node.dtype)
            case "item":
                return given[0][node.options["index"]]
            case "bounded":
                return self._bounded(node, given[0])
            case "overflows":
                return self._named(self._overflows(node.options["of"], *given), "bool")
            case "gather":
                return self._named(self._read(self._element(given[0], given[1:]), node.dtype), node.dtype)
            case "scatter":
                self._store(self._element(given[0], given[2:]), given[1])
                return given[0]
            case "loop" | "branch":
                return self._flow(node, values)
        if node.options.get("natural"):  # whose operands are not negative, nor the divisor zero
            sign = "//" if node.operation == "floor_divide" else "%"
            return self._named(f"{enclosed(given[0].text)} {sign} {enclosed(given[1].text)}", node.dtype)
        texts, kinds = [one.text for one in given], [one.dtype for one in given]
        return self._named(self.spelling.applied(node.operation, texts, kinds, node.dtype), node.dtype)

    def _flow(self, node: Node, values: dict[int, Any]) -> list[Any]:
        given = [values[id(one)] for one in node.inputs]
        return self._branch(node, given) if node.operation == "branch" else self._loop(node, given)

    def _loop(self, node: Node, given: list[Any]) -> list[Any]:
        """A loop: over a range where nothing else ends it, or as long as its condition holds."""
        counts, options = node.options["counts"], node.options
        first = 3 if counts else 0
        carried, captured = given[first : first + options["carried"]], given[first + options["carried"] :]
        carried = [
            Scalar(self.variable(one.text, "c"), one.dtype) if isinstance(one, Scalar) else one for one in carried
        ]
        self.count += 1
        counter = Scalar(f"i{self.count}", "int64")
        inputs = [*([counter] if counts else []), *carried, *captured]
        condition = options["condition"].outputs[0]
        is_plain = counts and condition.operation == "constant" and condition.options["value"] is True
        limits = self._limits(given[:3]) if is_plain else ""
        before, inside = self.block, Block()
        self.block = inside
        if limits:
            head = f"for {counter.text} in range({limits}):"
        else:
            head = "while True:"
            if counts:
                before.lines.append(f"{counter.text} = {given[0].text}")
                sign = ">" if given[2].text.startswith("-") else "<"
                self._break(f"not ({counter.text} {sign} {given[1].text})")
            (found,) = self._region(options["condition"], inputs)
            if found.text != "True":
                self._break(f"not {enclosed(found.text)}")
        body = options["body"]
        for one, value in zip(body.inputs, inputs, strict=True):
            if "symbol" in one.options:
                self.block.lines.append(f"{symbol(one.options['symbol'])} = {value.text}")
        self._assign(carried, self._region(body, inputs))
        if counts and not limits:
            self.block.lines.append(f"{counter.text} = {counter.text} + {enclosed(given[2].text)}")
        self._inside(head, before, inside)
        return carried

    def _limits(self, given: Sequence[Scalar]) -> str:
        """What numba's range takes, which counts in 64 bits; nothing where the distance may need more."""
        begin, end, step = (one.text for one in given)
        if begin not in self.near or (end not in self.near and (step != "1" or not begin.isdigit())):
            return ""
        if end not in self.near and begin != "0":
            end = f"max({begin}, {end})"
        if step != "1":
            return f"{begin}, {end}, {step}"
        return end if begin == "0" else f"{begin}, {end}"

    def _break(self, condition: str) -> None:
        self.block.lines += [f"if {condition}:", f"{INDENT}break"]

    def _assign(self, carried: Sequence[Any], results: Sequence[Any]) -> None:
        """Give carried numbers their values of the next iteration, all at once."""
        pairs = [
            (one.text, value.text)
            for one, value in zip(carried, results, strict=True)
            if isinstance(one, Scalar) and one.text != value.text
        ]
        if pairs:
            self.block.lines.append(f"{', '.join(one for one, _ in pairs)} = {', '.join(two for _, two in pairs)}")

    def _branch(self, node: Node, given: list[Any]) -> list[Any]:
        condition, *captured = given
        before, sides, results = self.block, [], []
        for name in ("yes", "no"):
            self.block = Block()
            results.append(self._region(node.options[name], captured))
            sides.append(self.block)
        found: list[Any] = []
        for one, other in zip(*results, strict=True):
            if not isinstance(one, Scalar):
                found.append(other)
                continue
            self.count += 1
            found.append(Scalar(f"b{self.count}", one.dtype))
        for side, values in zip(sides, results, strict=True):
            self.block = side
            self._assign(found, values)
        self._inside(f"if {condition.text}:", before, sides[0])
        if sides[1].lines:
            self._inside("else:", before, sides[1])
        self.block = before
        return found

    def _nests(self, group: Any, values: dict[int, Any]) -> None:
        """The nests of a group, one after another, with the arrays and numbers of this function."""
        program = group.program
        arrays: dict[int, str] = {}
        numbers: dict[int, str] = {}
        for node, taken in zip(program.graph.inputs, group.taken, strict=True):
            value, word = values[id(taken)], program.words[id(node)]
            (arrays if isinstance(value, Place) else numbers)[word] = value.text
        made: dict[int, Scalar] = {}
        for node in program.made:
            if node.ndim:
                outer = group.words[id(node)]
                arrays[program.words[id(node)]] = name = self._pointer(outer, node.dtype)
                self.shared |= {name} if outer in group.sharing else set()
            else:
                self.count += 1
                made[id(node)] = Scalar(f"r{self.count}", node.dtype)
                numbers[program.words[id(node)]] = made[id(node)].text
        for step in group.steps:
            if not step.is_empty:
                self._nest(step, group, arrays, numbers)
        self._results(group, values, made)

    def _nest(self, nest: Nest, group: Any, arrays: dict[int, str], numbers: dict[int, str]) -> None:
        self.count += 1
        function = Function(self.library, group.program.symbols)
        printer = NestPrinter(nest, group.arrays, function, Variant(any_size=True), f"{self.name}.{self.count}")
        own = Values(printer, self.spelling, arrays=dict(arrays), symbols=self.symbols, scalars=numbers)
        own.scratch = self.scratch
        self.block.lines += printer.inline(f"n{self.count}_", own)

    def _results(self, group: Any, values: dict[int, Any], made: Mapping[int, Scalar]) -> None:
        """What later stages find: arrays in their memory, and numbers."""
        outputs = len(group.program.graph.outputs)
        for node, given in zip(group.program.graph.outputs, group.given[:outputs], strict=True):
            if given.ndim:
                pointer = self._pointer(group.words[id(node)], node.dtype)
                values[id(given)] = Place(pointer, group.arrays[id(node)].strides, node.dtype)
            else:
                values[id(given)] = made[id(node)]
        places = {id(node): values[id(one)] for node, one in zip(group.graph.inputs, group.taken, strict=True)}
        for (target, _), given in zip(group.graph.writes, group.given[outputs:], strict=True):
            values[id(given)] = places[id(target)]


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
