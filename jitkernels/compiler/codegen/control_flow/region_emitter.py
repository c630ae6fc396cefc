"""Emit a loop or branch region as one LLVM function: scalars in registers, arrays updated in place.

Scalars live in allocas that LLVM promotes to registers. The order of a region's nodes guarantees that each version of
an array is read before the next version overwrites it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jitkernels.codegen.python.types import NUMBERS
from jitkernels.compiler.codegen.control_flow import (
    bounded_while,
    branch_to_select,
    hoisted_bounds_checks,
    parallel_loop,
    signal_polls,
)
from jitkernels.compiler.codegen.control_flow.nest_calls import Values
from jitkernels.compiler.codegen.control_flow.poll_interval import PollCountdown
from jitkernels.compiler.codegen.control_flow.scalar_emitter import FlowFunction, Place
from jitkernels.compiler.codegen.control_flow.signal_polls import FULL, REFUSED
from jitkernels.compiler.codegen.control_flow.split_loop import SplitLoop
from jitkernels.compiler.codegen.core.casts import converted
from jitkernels.compiler.codegen.core.ir_builder import Register, llvm_type
from jitkernels.compiler.codegen.core.scalar_calls import applied
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.ir.region_memory import Flow, targets_of
from jitkernels.compiler.ir.symbolic_dims import Number, product
from jitkernels.compiler.transforms import early_exits
from jitkernels.compiler.transforms.parallel_int_reductions import Joined


@dataclass
class FlowEmitter(SplitLoop, PollCountdown):
    """Emits the function of one loop or branch."""

    flow: Flow
    name: str

    def __post_init__(self) -> None:
        super().__post_init__()
        self.swaps = self.can_fill = self.shares = False
        self.depth = 0
        self.exits: dict[int, Any] = {}
        self.parts: list[str] = []
        self.proven: set[int] = set()

    def text(self) -> str:
        """Return the functions: the entry, which loads the array addresses, and the body with noalias parameters."""
        node = self.flow.node
        values: Values = {}
        for operand in node.inputs:
            values[id(operand)] = self._given(operand)
        results = self._flow(node, values)
        for item in self.flow.items:
            if not item.ndim:
                pointer = self._pointer(self.arrays[id(item)].word)
                self._stored(pointer, results[item.options["index"]])
        body = "\n".join([*self.function.memory, *self.function.block.lines, *self.block.lines])
        arguments = "".join(f", ptr noalias %array{word}" for word in self.pointers)
        loads, passed = [], ""
        for word in self.pointers:
            loads.append(f"  %at{word} = getelementptr i64, ptr %frame, i64 {word}")
            loads.append(f"  %array{word} = load ptr, ptr %at{word}")
            passed += f", ptr %array{word}"
        return "\n".join(
            [
                *self.parts,
                f"define internal i64 @{self.name}.inside(ptr noalias readonly %frame{arguments}) noinline nounwind {{",
                body,
                "  ret i64 0\nrefused:",
                f"  ret i64 {REFUSED}",
                *([f"full:\n  ret i64 {FULL}"] if self.can_fill else []),
                *([f"short:\n  ret i64 {parallel_loop.SHORT}"] if self.shares else []),
                *([f"interrupted:\n  ret i64 {signal_polls.INTERRUPTED}"] if self.patience or self.shares else []),
                "}",
                f"define internal i64 @{self.name}(ptr noalias readonly %frame, i64 %begin, i64 %end) nounwind {{",
                *loads,
                f"  %status = call i64 @{self.name}.inside(ptr %frame{passed})",
                "  ret i64 %status\n}",
            ]
        )

    def _region(self, graph: Graph, arguments: Sequence[Any], known: Values | None = None) -> list[Any]:
        """Emit a region for the values of its parameters; return its outputs. `known`: values computed before."""
        values: Values = {id(parameter): value for parameter, value in zip(graph.inputs, arguments, strict=True)}
        values.update(known or {})
        checks = {id(check) for check in graph.checks}
        for nodes, group in self.flow.bodies[id(graph)].stages:
            for node in nodes:
                if id(node) not in values:
                    values[id(node)] = self._value(node, values)
                if id(node) in checks:
                    self._refuse(values[id(node)])
            if group is not None:
                self._call_nests(group, values)
        return [values[id(node)] for node in graph.outputs]

    def _value(self, node: Node, values: Values) -> Any:
        operands = [values[id(operand)] for operand in node.inputs]
        match node.operation:
            case "constant" | "extent":
                return self._number(node)
            case "cast":
                return converted(self.function, self.block, operands[0], node.dtype)
            case "item":
                return operands[0][node.options["index"]]
            case "bounded" if id(node) in self.proven:
                return operands[0]
            case "bounded":
                self.can_fill = self.can_fill or "grows" in node.options
                return self._bounded(node, operands[0])
            case "overflows":
                return self._overflows(node.options["of"], *operands)
            case "gather":
                return self._loaded(self._element(operands[0], operands[1:]), node.dtype)
            case "scatter":
                self._stored(self._element(operands[0], operands[2:]), operands[1])
                return operands[0]
            case "loop" | "branch":
                return self._flow(node, values)
            case "less" if node.inputs[0].operation == "bounded" and _is_zero(node.inputs[1]):
                return Register("false", "bool")
        if node.options.get("natural"):  # the operands are nonnegative and the divisor is not zero
            name = "udiv" if node.operation == "floor_divide" else "urem"
            return Register(self._new(f"{name} i64 {operands[0].text}, {operands[1].text}"), node.dtype)
        return applied(self.function, self.block, node.operation, operands, node.dtype)

    def _flow(self, node: Node, values: Values) -> list[Any]:
        operands = [values[id(operand)] for operand in node.inputs]
        if node.operation == "branch":
            return self._branch(node, operands, values)
        bodies, work = self.flow.bodies, None
        if self.part is None:
            moving = self.function.moving
            work = parallel_loop.work(node, bodies, moving, is_outermost=not self.depth)
        if work is not None:
            return self._parallel_loop(node, operands, *work)
        self.depth += 1
        result = self._loop(node, operands)
        self.depth -= 1
        return result

    def _parallel_loop(self, node: Node, operands: list[Any], work: Number, joined: Mapping[int, Joined]) -> list[Any]:
        """Emit a loop whose iterations run on the thread pool."""
        name = f"{self.name}.part{len(self.parts)}"
        groups = parallel_loop.groups_of(node, self.flow.bodies)
        parallel = parallel_loop.ParallelLoop(self, operands, name, groups, joined)
        values, _ = parallel.inside()
        function = FlowFunction(self.function.library, self.function.places, self.function.moving)
        part = FlowEmitter(self.arrays, function, self.flow, name, part=node)
        parallel.memory(part)
        for number, symbol in enumerate(parallel.moving):
            function.let(symbol, f"%symbol{number}")
        parallel.join(part, part._loop(node, values))
        body = "\n".join([*function.memory, *function.block.lines, *part.block.lines])
        status = parallel.call(work)
        self.parts += parallel.texts(body, polls_inside=bool(part.patience))
        self.shares = True
        self._check_status(status)
        carried = operands[3 : 3 + node.options["carried"]]
        outputs = node.options["body"].outputs
        results = [
            self._number(output) if isinstance(value, Register) and output.operation == "constant" else value
            for value, output in zip(carried, outputs, strict=True)
        ]
        for number, value in parallel.load_reductions().items():
            results[number] = value
        return results

    def _check_status(self, status: str) -> None:
        """Leave the function if outlined iterations bailed out, were interrupted, or had no memory."""
        failed, resume = self.function.label(), self.function.label()
        is_ok = self._new(f"icmp eq i64 {status}, 0")
        self.block.lines += [f"  br i1 {is_ok}, label %{resume}, label %{failed}, !prof !7", f"{failed}:"]
        for bit, label in ((signal_polls.INTERRUPTED, "interrupted"), (parallel_loop.SHORT, "short")):
            masked, otherwise = self._new(f"and i64 {status}, {bit}"), self.function.label()
            is_set = self._new(f"icmp ne i64 {masked}, 0")
            self.block.lines += [f"  br i1 {is_set}, label %{label}, label %{otherwise}", f"{otherwise}:"]
        self.block.lines += ["  br label %refused", f"{resume}:"]

    def _loop(self, node: Node, given: list[Any]) -> list[Any]:
        """Emit a loop in rotated form: the condition stands at the end, and once as a guard before the loop."""
        counts, options = node.options["counts"], node.options
        first = 3 if counts else 0
        carried, captured = (given[first : first + options["carried"]], given[first + options["carried"] :])
        shift = 1 if counts else 0
        swapped = {i for i, place in targets_of(node).items() if place != i + shift}
        slots = [
            self._variable(value) if isinstance(value, Register) else self._held(value) if i in swapped else ""
            for i, value in enumerate(carried)
        ]
        counter = self._variable(given[0]) if counts else ""

        def inputs() -> list[Any]:
            now = [self._now(at, value) for at, value in zip(slots, carried, strict=True)]
            count = [self._get(counter, "int64")] if counts else []
            return [*count, *now, *captured]

        def latch(target: str, after: str, end: str, sign: str = "") -> None:
            if counts:
                sign = sign or ("sgt" if given[2].text.startswith("-") else "slt")
                here = self._get(counter, "int64")
                more = self._new(f"icmp {sign} i64 {here.text}, {end}")
                test = self.function.label()
                self.block.lines += [f"  br i1 {more}, label %{test}, label %{after}", f"{test}:"]
            (bound,) = self._region(options["condition"], inputs())
            self.block.lines.append(f"  br i1 {bound.text}, label %{target}, label %{after}")

        body = options["body"]
        stages = self.flow.bodies[id(body)].stages
        last = None if any(group for _, group in stages) else early_exits.last_branch(node, stages[0][0])
        is_inner = self.depth > 1 or (self.part is not None and self.depth > 0)
        weight = signal_polls.weight(node, self.flow.bodies[id(body)], is_inner=is_inner)
        in_blocks = weight == signal_polls.LOOP_WEIGHT and signal_polls.polls_in_blocks(node)
        copies = signal_polls.copies(node) if weight == signal_polls.SCALAR_WEIGHT else 1

        def iteration(after: str, read: Values) -> None:
            now = inputs()
            for one, value in zip(body.inputs, now, strict=False):
                if "symbol" in one.options:
                    self.function.let(one.options["symbol"], value.text)
            if last is not None:
                self.exits[id(last)] = node, slots, after
            results = self._region(body, now, read)
            for at, one in zip(slots, results, strict=True):
                if at and isinstance(one, Place):
                    self.block.lines.append(f"  store ptr {one.pointer}, ptr {at}")
                elif at:
                    self._set(at, one)
            if counts:
                self._set(counter, Register(self._new(f"add nsw i64 {now[0].text}, {given[2].text}"), "int64"))

        def emit_loop(end: str, reads: Sequence[Node]) -> None:
            before, block, inside, asks, after = (self.function.label() for _ in range(5))
            latch(before, after, end)
            self.block.lines.append(f"{before}:")
            known = dict(zip(map(id, body.inputs), inputs(), strict=True)) if reads else {}
            read = {id(read_node): self._read_before(read_node, known) for read_node in reads}
            block_end = ""
            if in_blocks:
                self.block.lines += [f"  br label %{block}", f"{block}:"]
                block_end = self._block_end(counter, end, int(given[2].text))
            self.block.lines += [f"  br label %{inside}", f"{inside}:"]
            iteration(after, read)
            for _ in range(copies - 1):
                again = self.function.label()
                latch(again, after, end)
                self.block.lines.append(f"{again}:")
                iteration(after, read)
            if in_blocks:
                latch(inside, asks, block_end, "ne")
                self.block.lines.append(f"{asks}:")
            self._poll(weight * (signal_polls.BLOCK if in_blocks else copies))
            latch(block if in_blocks else inside, after, end)
            self.block.lines.append(f"{after}:")

        parts = self._parts(node, given, swapped)
        indices = hoisted_bounds_checks.hoistable_indices(node, self.flow.bodies) if len(parts) == 1 else []
        if indices:
            tested, onwards = self._unchecked_version(indices, node, given)
            emit_loop(*parts[0])
            self.proven -= {id(index.node) for index in indices}
            self.block.lines += [f"  br label %{onwards}", f"{tested}:"]
            emit_loop(*parts[0])
            self.block.lines += [f"  br label %{onwards}", f"{onwards}:"]
        else:
            for end, reads in parts:
                emit_loop(end, reads)
        if not weight and is_inner:
            bound = bounded_while.moved(node)
            if counts:
                self._charge_countdown(counter, given[0], is_up=not given[2].text.startswith("-"))
            elif bound is not None:
                self._charge_countdown(slots[bound[0]], carried[bound[0]], is_up=bound[1])
        order = sorted(swapped)
        self._swap_home([slots[i] for i in order], [carried[i] for i in order], node, swapped)
        return [
            self._get(at, value.dtype) if at and isinstance(value, Register) else value
            for at, value in zip(slots, carried, strict=True)
        ]

    def _unchecked_version(
        self, indices: list[hoisted_bounds_checks.Moving], node: Node, operands: list[Any]
    ) -> tuple[str, str]:
        """Begin the loop version without bounds checks; return the labels of the checked version and behind both."""
        begin, end, step = (operand.text for operand in operands[:3])
        is_up = not step.startswith("-")
        last = self._new(f"{'sub' if is_up else 'add'} i64 {end}, 1")
        distance = self._new(f"sub i64 {last if is_up else begin}, {begin if is_up else last}")
        fits = self._new(f"icmp sge i64 {distance}, 0")
        inputs = {
            id(parameter): value for parameter, value in zip(node.options["body"].inputs[1:], operands[3:], strict=True)
        }
        for one in indices:
            total = "0"
            for sign, term in one.terms:
                text = (inputs[id(term)] if id(term) in inputs else self._number(term)).text
                total = self._new(f"{'add' if sign > 0 else 'sub'} i64 {total}, {text}")
            extent = self.function.extent(one.node.options["extent"])
            for count in (begin, last):
                index = self._new(f"{'add' if one.sign > 0 else 'sub'} i64 {total}, {count}")
                inside = self._new(f"icmp ult i64 {index}, {extent}")
                fits = self._new(f"and i1 {fits}, {inside}")
        unchecked, checked, after = (self.function.label() for _ in range(3))
        self.block.lines.append(f"  br i1 {fits}, label %{unchecked}, label %{checked}, !prof !7")
        self.block.lines.append(f"{unchecked}:")
        self.proven |= {id(index.node) for index in indices}
        return checked, after

    def _swap_home(self, held: Sequence[str], arrays: Sequence[Place], node: Node, swapped: set[int]) -> None:
        """Swap the contents of arrays whose buffers a loop swapped back to their home buffers."""
        if not held:
            return
        self.swaps = True
        first = 3 if node.options["counts"] else 0
        for number, (at, array) in enumerate(zip(held, arrays, strict=True)):
            shape = node.inputs[first + sorted(swapped)[number]].shape
            size = self.function.extent(product(shape) * NUMBERS[array.dtype].size)
            here = self._new(f"load ptr, ptr {at}")
            self.block.lines.append(f"  call void @jk_swapped(ptr {here}, ptr {array.pointer}, i64 {size})")
            for other in held[number + 1 :]:
                there = self._new(f"load ptr, ptr {other}")
                same_one = self._new(f"icmp eq ptr {there}, {array.pointer}")
                now = self._new(f"select i1 {same_one}, ptr {here}, ptr {there}")
                self.block.lines.append(f"  store ptr {now}, ptr {other}")

    def _early_exit(self, branch: Node, name: str, results: list[Any], values: Values) -> bool:
        """Leave the loop if this side of the branch does: set all loop-carried values, and jump behind it."""
        if id(branch) not in self.exits:
            return False
        loop, slots, after = self.exits[id(branch)]
        if not early_exits.is_left(loop, branch, name):
            return False
        for at, output in zip(slots, loop.options["body"].outputs, strict=True):
            if output.operation == "item":
                source = output.inputs[0]
                value = (results if source is branch else values[id(source)])[output.options["index"]]
            else:
                value = self._number(output) if output.operation in ("constant", "extent") else values[id(output)]
            if at and isinstance(value, Place):
                self.block.lines.append(f"  store ptr {value.pointer}, ptr {at}")
            elif at:
                self._set(at, value)
        self.block.lines.append(f"  br label %{after}")
        return True

    def _branch(self, node: Node, operands: list[Any], values: Values) -> list[Any]:
        condition, *captured = operands
        if branch_to_select.is_speculatable(node):
            sides = [self._region(node.options[name], captured) for name in ("yes", "no")]
            return [self._chosen(condition, *both) for both in zip(*sides, strict=True)]
        labels = [self.function.label() for _ in range(3)]
        self.block.lines.append(f"  br i1 {condition.text}, label %{labels[0]}, label %{labels[1]}")
        slots: list[str] = []
        results: list[Any] = []
        for name, label in zip(("yes", "no"), labels, strict=False):
            self.block.lines.append(f"{label}:")
            results = self._region(node.options[name], captured)
            if not slots:
                slots = [
                    self.function.variable(llvm_type(result.dtype)) if isinstance(result, Register) else ""
                    for result in results
                ]
            if self._early_exit(node, name, results, values):
                continue
            for at, one in zip(slots, results, strict=True):
                if at:
                    self._set(at, one)
            self.block.lines.append(f"  br label %{labels[2]}")
        self.block.lines.append(f"{labels[2]}:")
        pairs = zip(slots, results, strict=True)
        return [self._get(at, result.dtype) if at else result for at, result in pairs]

    def _chosen(self, condition: Register, yes: Register, no: Register) -> Register:
        kind = llvm_type(yes.dtype)
        text = f"select i1 {condition.text}, {kind} {yes.text}, {kind} {no.text}"
        return Register(self._new(text), yes.dtype)


def _is_zero(node: Node) -> bool:
    return node.operation == "constant" and node.options["value"] == 0
