"""Emit a loop or branch region as one LLVM function: scalars in registers, arrays updated in place.

Scalars live in allocas that LLVM promotes to registers. The order of a region's nodes guarantees that each version of
an array is read before the next version overwrites it.
"""

from collections import ChainMap
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from jitkernels.codegen.python.types import NUMBERS, constant
from jitkernels.compiler.codegen.control_flow import (
    branch_to_select,
    deferred_checks,
    hoisted_bounds_checks,
    parallel_loop,
    signal_polls,
)
from jitkernels.compiler.codegen.control_flow.poll_interval import PollCountdown
from jitkernels.compiler.codegen.control_flow.reassociated_sums import INSTRUCTIONS, Addends
from jitkernels.compiler.codegen.control_flow.region_evaluator import StridedPointer, Values
from jitkernels.compiler.codegen.control_flow.rotated_loop import RotatedLoop
from jitkernels.compiler.codegen.control_flow.scalar_emitter import FlowFunction
from jitkernels.compiler.codegen.control_flow.signal_polls import FULL, REFUSED
from jitkernels.compiler.codegen.control_flow.split_loop import SplitLoop
from jitkernels.compiler.codegen.core.fma_contraction import ANY_ORDER_FLAG
from jitkernels.compiler.codegen.core.ir_builder import Register, llvm_type
from jitkernels.compiler.ir.graph import Graph, Node, frozen, has_value
from jitkernels.compiler.ir.region_memory import Flow
from jitkernels.compiler.ir.symbolic_dims import Number, is_loop_variant, product
from jitkernels.compiler.transforms import early_exits
from jitkernels.compiler.transforms.parallel_int_reductions import IntReduction


@dataclass
class FlowEmitter(SplitLoop, PollCountdown):
    """Emits the function of one loop or branch."""

    flow: Flow
    name: str

    def __post_init__(self) -> None:
        super().__post_init__()
        self.swaps = self.can_fill = self.shares = False
        self.depth = 0
        self.exits: dict[Node, tuple[Node, list[str], str]] = {}
        self.functions: list[str] = []
        self.proven: set[Node] = set()
        self.unordered: set[Node] = set()
        self.addends: Addends = {}
        self.failed = ""
        self.known: ChainMap[Hashable, Register] = ChainMap()

    def text(self) -> str:
        """Return the functions: the entry, which loads the array addresses, and the body with noalias parameters."""
        self._emit_flow()
        body = "\n".join([*self.function.memory, *self.function.block.lines, *self.block.lines])
        arguments = "".join(f", ptr noalias %array{word}" for word in self.pointers)
        loads, passed = [], ""
        for word in self.pointers:
            loads.append(f"  %at{word} = getelementptr i64, ptr %frame, i64 {word}")
            loads.append(f"  %array{word} = load ptr, ptr %at{word}")
            passed += f", ptr %array{word}"
        return "\n".join(
            [
                *self.functions,
                f"define internal i64 @{self.name}.inside(ptr noalias readonly %frame{arguments}) noinline nounwind {{",
                body,
                "  ret i64 0\nrefused:",
                f"  ret i64 {REFUSED}",
                *([f"full:\n  ret i64 {FULL}"] if self.can_fill else []),
                *([f"short:\n  ret i64 {parallel_loop.NO_MEMORY}"] if self.shares else []),
                *([f"interrupted:\n  ret i64 {signal_polls.INTERRUPTED}"] if self.countdown or self.shares else []),
                "}",
                f"define internal i64 @{self.name}(ptr noalias readonly %frame, i64 %begin, i64 %end) nounwind {{",
                *loads,
                f"  %status = call i64 @{self.name}.inside(ptr %frame{passed})",
                "  ret i64 %status\n}",
            ]
        )

    def _region(self, graph: Graph, arguments: Sequence[Any], known: Values | None = None) -> list[Any]:
        """Emit a region; what it computes, nothing else but the regions in it finds computed."""
        self.known = self.known.new_child()
        results = super()._region(graph, arguments, known)
        self.known = self.known.parents
        return results

    def _once(self, key: Hashable, emit: Callable[[], Register]) -> Register:
        """Emit what has this key, unless that was done where control has come by."""
        if key not in self.known:
            self.known[key] = emit()
        return self.known[key]

    def _bounded(self, node: Node, index: Register) -> Register:
        """Check an index, unless it was checked before: LLVM joins equal numbers, but no checks that leave a loop."""
        if node in self.proven:
            return index
        self.can_fill = self.can_fill or "grows" in node.options
        emit = partial(super()._bounded, node, index)
        if "grows" in node.options or is_loop_variant(node.options["extent"]):
            return emit()
        return self._once(("bounded", index.text, frozen(node.options["extent"]), node.options["counts_back"]), emit)

    def _check(self, node: Node, condition: Register) -> None:
        """Bail out if a check is true; in a loop that defers it, behind the loop."""
        if not self.failed or not deferred_checks.is_of_floats(node):
            super()._check(node, condition)
        elif condition.text != "false":
            before = self._get(self.failed, "bool")
            self._set(self.failed, Register(self._new(f"or i1 {before.text}, {condition.text}"), "bool"))

    def _applied(self, node: Node, operands: list[Register]) -> Register:
        if node.operation == "less" and node.inputs[0].operation == "bounded" and has_value(node.inputs[1], 0):
            return Register("false", "bool")
        if node in self.unordered:
            left, right = (self._cast(operand, node.dtype) for operand in operands)
            return self._unordered(INSTRUCTIONS[node.operation], left, right)
        emit = partial(super()._applied, node, operands)
        if node.dtype != "int64":
            return emit()
        return self._once((node.operation, *((operand.text, operand.dtype) for operand in operands)), emit)

    def _unordered(self, instruction: str, left: Register, right: Register) -> Register:
        text = f"{instruction}{ANY_ORDER_FLAG}{llvm_type(left.dtype)} {left.text}, {right.text}"
        return Register(self._new(text), left.dtype)

    def _flow_loop(self, node: Node, operands: list[Any]) -> list[Any]:
        if self.part is None:
            is_outermost = not self.depth
            work = parallel_loop.work(node, self.flow.bodies, self.function.loop_variant, is_outermost=is_outermost)
            if work is not None and not is_outermost and parallel_loop.has_own_version(node, self.flow.bodies, *work):
                return self._loop_of_any_length(node, operands, work[0])
            if work is not None:
                return self._parallel_loop(node, operands, *work)
        return self._loop_here(node, operands)

    def _loop_here(self, node: Node, operands: list[Any]) -> list[Any]:
        """Emit a loop in this function."""
        self.depth += 1
        results = RotatedLoop(self, node, operands).emit()
        self.depth -= 1
        return results

    def _loop_of_any_length(self, node: Node, operands: list[Any], work: Number) -> list[Any]:
        """Emit a loop that runs on the thread pool only where it is long."""
        size = self.function.extent(work)
        is_long = self._new(f"icmp sge i64 {size}, {parallel_loop.LEAST_WORK}")
        shared, here, after = (self.function.label() for _ in range(3))
        self.block.lines += [f"  br i1 {is_long}, label %{shared}, label %{here}, !prof !4", f"{shared}:"]
        results = self._parallel_loop(node, operands, work, {})
        self.block.lines += [f"  br label %{after}", f"{here}:"]
        self._loop_here(node, operands)
        self.block.lines += [f"  br label %{after}", f"{after}:"]
        return results

    def _parallel_loop(
        self, node: Node, operands: list[Any], work: Number, reductions: Mapping[int, IntReduction]
    ) -> list[Any]:
        """Emit a loop whose iterations run on the thread pool."""
        name = f"{self.name}.part{len(self.functions)}"
        groups = parallel_loop.groups_of(node, self.flow.bodies)
        parallel = parallel_loop.ParallelLoop(self, operands, name, groups, reductions)
        values, _ = parallel.inside()
        function = FlowFunction(self.function.library, self.function.symbol_slots, self.function.loop_variant)
        part = FlowEmitter(self.arrays, function, self.flow, name, part=node)
        parallel.place_workspace(part)
        for number, symbol in enumerate(parallel.loop_variant):
            function.let(symbol, f"%symbol{number}")
        parallel.combine(part, RotatedLoop(part, node, values).emit())
        body = "\n".join([*function.memory, *function.block.lines, *part.block.lines])
        status = parallel.call(work)
        self.functions += parallel.texts(body, polls_inside=bool(part.countdown))
        self.shares = True
        self._check_status(status)
        carried = operands[3 : 3 + node.options["carried"]]
        results = [
            self._number(output) if isinstance(value, Register) and output.operation == "constant" else value
            for value, output in zip(carried, node.options["body"].outputs, strict=True)
        ]
        for number, value in parallel.load_reductions().items():
            results[number] = value
        return results

    def _check_status(self, status: str) -> None:
        """Leave the function if outlined iterations bailed out, were interrupted, or had no memory."""
        failed, resume = self.function.label(), self.function.label()
        is_ok = self._new(f"icmp eq i64 {status}, 0")
        self.block.lines += [f"  br i1 {is_ok}, label %{resume}, label %{failed}, !prof !7", f"{failed}:"]
        for bit, label in ((signal_polls.INTERRUPTED, "interrupted"), (parallel_loop.NO_MEMORY, "short")):
            masked, otherwise = self._new(f"and i64 {status}, {bit}"), self.function.label()
            is_set = self._new(f"icmp ne i64 {masked}, 0")
            self.block.lines += [f"  br i1 {is_set}, label %{label}, label %{otherwise}", f"{otherwise}:"]
        self.block.lines += ["  br label %refused", f"{resume}:"]

    def _store_carried(self, slots: Sequence[str], values: Sequence[Any]) -> None:
        """Store loop-carried values to their slots; arrays without one stay in their buffers."""
        for slot, value in zip(slots, values, strict=True):
            if slot and isinstance(value, StridedPointer):
                self.block.lines.append(f"  store ptr {value.pointer}, ptr {slot}")
            elif slot:
                self._set(slot, value)

    def _unchecked_version(
        self, indices: list[hoisted_bounds_checks.AffineIndex], node: Node, operands: list[Any]
    ) -> tuple[str, str]:
        """Begin the loop version without bounds checks; return the labels of the checked version and behind both."""
        begin, end, step = (operand.text for operand in operands[:3])
        is_up = not step.startswith("-")
        last = self._new(f"{'sub' if is_up else 'add'} i64 {end}, 1")
        distance = self._new(f"sub i64 {last if is_up else begin}, {begin if is_up else last}")
        fits = self._new(f"icmp sge i64 {distance}, 0")
        inputs = dict(zip(node.options["body"].inputs[1:], operands[3:], strict=True))
        for index in indices:
            total = self._sum_of(index.terms, inputs)
            extent = self.function.extent(index.node.options["extent"])
            for count in (begin, last):
                position = self._new(f"{'add' if index.sign > 0 else 'sub'} i64 {total}, {count}")
                inside = self._new(f"icmp ult i64 {position}, {extent}")
                fits = self._new(f"and i1 {fits}, {inside}")
        unchecked, checked, after = (self.function.label() for _ in range(3))
        self.block.lines.append(f"  br i1 {fits}, label %{unchecked}, label %{checked}, !prof !7")
        self.block.lines.append(f"{unchecked}:")
        self.proven |= {index.node for index in indices}
        return checked, after

    def _swap_home(self, slots: Sequence[str], arrays: Sequence[StridedPointer], node: Node, swapped: set[int]) -> None:
        """Swap the contents of arrays whose buffers a loop swapped back to their home buffers."""
        if not slots:
            return
        self.swaps = True
        first = 3 if node.options["counts"] else 0
        for number, (slot, array) in enumerate(zip(slots, arrays, strict=True)):
            shape = node.inputs[first + sorted(swapped)[number]].shape
            size = self.function.extent(product(shape) * NUMBERS[array.dtype].size)
            here = self._new(f"load ptr, ptr {slot}")
            self.block.lines.append(f"  call void @jk_swapped(ptr {here}, ptr {array.pointer}, i64 {size})")
            for other in slots[number + 1 :]:
                there = self._new(f"load ptr, ptr {other}")
                is_same = self._new(f"icmp eq ptr {there}, {array.pointer}")
                now = self._new(f"select i1 {is_same}, ptr {here}, ptr {there}")
                self.block.lines.append(f"  store ptr {now}, ptr {other}")

    def _early_exit(self, branch: Node, name: str, results: list[Any], values: Values) -> bool:
        """Leave the loop if this side of the branch does: set all loop-carried values, and jump behind it."""
        if branch not in self.exits:
            return False
        loop, slots, after = self.exits[branch]
        if not early_exits.leaves_loop(loop, branch, name):
            return False
        for slot, output in zip(slots, loop.options["body"].outputs, strict=True):
            if output.operation == "item":
                source = output.inputs[0]
                value = (results if source is branch else values[source])[output.options["index"]]
            else:
                value = self._number(output) if output.operation in ("constant", "extent") else values[output]
            self._store_carried([slot], [value])
        self.block.lines.append(f"  br label %{after}")
        return True

    def _branch(self, node: Node, operands: list[Any], values: Values) -> list[Any]:
        """Emit a branch; to sums that it may add to in any order, what it adds is added behind it."""
        sums = self.addends.get(node, ())
        inside = [*operands]
        for position, _ in sums:
            total = operands[position + 1]
            inside[position + 1] = Register(constant(NUMBERS[total.dtype], -0.0), total.dtype)
        results = self._sides(node, inside, values)
        for position, index in sums:
            results[index] = self._unordered("fadd", operands[position + 1], results[index])
        return results

    def _sides(self, node: Node, operands: list[Any], values: Values) -> list[Any]:
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
            if not self._early_exit(node, name, results, values):
                self._store_carried(slots, results)
                self.block.lines.append(f"  br label %{labels[2]}")
        self.block.lines.append(f"{labels[2]}:")
        pairs = zip(slots, results, strict=True)
        return [self._get(slot, result.dtype) if slot else result for slot, result in pairs]

    def _chosen(self, condition: Register, yes: Register, no: Register) -> Register:
        kind = llvm_type(yes.dtype)
        text = f"select i1 {condition.text}, {kind} {yes.text}, {kind} {no.text}"
        return Register(self._new(text), yes.dtype)
