"""Loops in rotated form: the condition stands at the end, and once as a guard before the loop."""

from typing import TYPE_CHECKING, Any

from jitkernels.compiler.codegen.control_flow import bounded_while, deferred_checks, hoisted_bounds_checks, signal_polls
from jitkernels.compiler.codegen.control_flow.reassociated_sums import reassociated_sums
from jitkernels.compiler.codegen.control_flow.region_evaluator import Values
from jitkernels.compiler.codegen.control_flow.split_loop import SplitRange
from jitkernels.compiler.codegen.core.ir_builder import Register
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.region_memory import targets_of
from jitkernels.compiler.ir.regions import LoopParts
from jitkernels.compiler.transforms import early_exits
from jitkernels.compiler.transforms.loop_parallelism import has_independent_accesses

if TYPE_CHECKING:
    from jitkernels.compiler.codegen.control_flow.region_emitter import FlowEmitter


STAYS, INDEPENDENT, IN_GROUP = ", !llvm.loop !0", ", !llvm.loop !5", ", !llvm.access.group !9"
"""Metadata, as `jitkernels.compiler.codegen.core.module_text` defines it: of a loop that is neither vectorized nor
unrolled, of one whose iterations access different elements, and of the loads and stores in that."""


class RotatedLoop:
    """Emits one loop. `slots`: the allocas of loop-carried values, "" for arrays that stay in their buffers."""

    def __init__(self, emitter: "FlowEmitter", node: Node, operands: list[Any]) -> None:
        self.emitter, self.node, self.operands, self.options = emitter, node, operands, node.options
        self.counts: bool = node.options["counts"]
        first, behind_count = (3, 1) if self.counts else (0, 0)
        count = node.options["carried"]
        self.carried, self.captured = operands[first : first + count], operands[first + count :]
        self.swapped = {i for i, position in targets_of(node).items() if position != i + behind_count}
        self.slots = [
            emitter._variable(value)
            if isinstance(value, Register)
            else emitter._pointer_slot(value)
            if i in self.swapped
            else ""
            for i, value in enumerate(self.carried)
        ]
        self.counter = emitter._variable(operands[0]) if self.counts else ""
        body = emitter.flow.bodies[id(node.options["body"])]
        self.exit_branch = None if body.groups else early_exits.last_branch(node, body.stages[0][0])
        is_inner = emitter.depth > 1 or (emitter.part is not None and emitter.depth > 0)
        self.is_inner, self.weight = is_inner, signal_polls.weight(node, body, is_inner=is_inner)
        self.in_blocks = self.weight == signal_polls.LOOP_WEIGHT and signal_polls.polls_in_blocks(node)
        self.defers_checks = deferred_checks.may_defer(node, body)
        if self.exit_branch is None:
            additions, addends = reassociated_sums(node)
            emitter.unordered |= additions
            emitter.addends |= addends
        self.copies = signal_polls.copies(node) if self.weight == signal_polls.SCALAR_WEIGHT else 1

    def emit(self) -> list[Any]:
        """Emit the loop, in versions and parts; return the final loop-carried values."""
        emitter, node, lines = self.emitter, self.node, self.emitter.block.lines
        around = emitter.failed
        failed = emitter.failed = emitter._variable(Register("false", "bool")) if self.defers_checks else ""
        parts = emitter._parts(node, self.operands, self.swapped)
        self.is_split = len(parts) > 1
        indices = hoisted_bounds_checks.hoistable_indices(node, emitter.flow.bodies) if len(parts) == 1 else []
        if indices:
            checked, after = emitter._unchecked_version(indices, node, self.operands)
            self._emit_part(parts[0])
            emitter.proven -= {index.node for index in indices}
            lines += [f"  br label %{after}", f"{checked}:"]
            self._emit_part(parts[0])
            lines += [f"  br label %{after}", f"{after}:"]
        else:
            for part in parts:
                self._emit_part(part)
        emitter.failed = around
        if failed:
            emitter._bail_out_if(emitter._get(failed, "bool"))
        if not self.weight and self.is_inner:
            bound = bounded_while.monotonic_counter(node)
            if self.counts:
                emitter._charge_countdown(self.counter, self.operands[0], is_up=self._is_up)
            elif bound is not None:
                emitter._charge_countdown(self.slots[bound[0]], self.carried[bound[0]], is_up=bound[1])
        order = sorted(self.swapped)
        emitter._swap_home([self.slots[i] for i in order], [self.carried[i] for i in order], node, self.swapped)
        return [
            emitter._get(slot, value.dtype) if slot and isinstance(value, Register) else value
            for slot, value in zip(self.slots, self.carried, strict=True)
        ]

    @property
    def _is_up(self) -> bool:
        """Whether the induction variable increases."""
        return not self.operands[2].text.startswith("-")

    def _inputs(self) -> list[Any]:
        """Load the values of the body's parameters in this iteration."""
        emitter = self.emitter
        now = [emitter._now(slot, value) for slot, value in zip(self.slots, self.carried, strict=True)]
        count = [emitter._get(self.counter, "int64")] if self.counts else []
        return [*count, *now, *self.captured]

    def _latch(self, target: str, after: str, end: str, sign: str = "", metadata: str = "") -> None:
        """Jump to `target` if there is another iteration, else to `after`. `metadata`: of the loop."""
        emitter, lines = self.emitter, self.emitter.block.lines
        if self.counts:
            sign = sign or ("slt" if self._is_up else "sgt")
            here = emitter._get(self.counter, "int64")
            more = emitter._new(f"icmp {sign} i64 {here.text}, {end}")
            test = emitter.function.label()
            lines += [f"  br i1 {more}, label %{test}, label %{after}", f"{test}:"]
        (condition,) = emitter._region(self.options["condition"], self._inputs())
        lines.append(f"  br i1 {condition.text}, label %{target}, label %{after}{metadata}")

    def _iteration(self, after: str, known: Values) -> None:
        """Emit the body once; `known`: hoisted loads."""
        emitter, body = self.emitter, self.options["body"]
        now = self._inputs()
        for parameter, value in zip(body.inputs, now, strict=False):
            if "symbol" in parameter.options:
                emitter.function.let(parameter.options["symbol"], value.text)
        if self.exit_branch is not None:
            emitter.exits[self.exit_branch] = self.node, self.slots, after
        emitter._store_carried(self.slots, emitter._region(body, now, known))
        if self.counts:
            step = emitter._new(f"add nsw i64 {now[0].text}, {self.operands[2].text}")
            emitter._set(self.counter, Register(step, "int64"))

    def _emit_part(self, part: SplitRange) -> None:
        """Emit the iterations of a part."""
        end, hoisted, unwrapped, is_short = part
        emitter, lines, body = self.emitter, self.emitter.block.lines, self.options["body"]
        before, block, inside, poll, after = (emitter.function.label() for _ in range(5))
        emitter.unwrapped |= {*unwrapped}
        stopped_at = self._last_count(end)
        self._latch(before, after, end)
        lines.append(f"{before}:")
        parameters = dict(zip(body.inputs, self._inputs(), strict=True)) if hoisted else {}
        known = {load: emitter._read_before(load, parameters) for load in hoisted}
        block_end = ""
        if self.in_blocks:
            lines += [f"  br label %{block}", f"{block}:"]
            block_end = emitter._block_end(self.counter, end, int(self.operands[2].text))
        lines += [f"  br label %{inside}", f"{inside}:"]
        is_independent = not self.swapped and self.exit_branch is None and has_independent_accesses(self.node, known)
        if is_independent:
            emitter.access_group = IN_GROUP
        self._iteration(after, known)
        for _ in range(self.copies - 1):
            again = emitter.function.label()
            self._latch(again, after, end)
            lines.append(f"{again}:")
            self._iteration(after, known)
        if self.in_blocks:
            self._latch(inside, poll, block_end, "ne")
            lines.append(f"{poll}:")
        emitter._poll(self.weight * (signal_polls.MAX_UNPOLLED_ITERATIONS if self.in_blocks else self.copies))
        if is_independent:
            emitter.access_group = ""
        metadata = STAYS if is_short else INDEPENDENT if is_independent else ""
        self._latch(block if self.in_blocks else inside, after, end, metadata=metadata)
        lines.append(f"{after}:")
        if stopped_at:
            emitter._set(self.counter, Register(stopped_at, "int64"))
        emitter.unwrapped -= {*unwrapped}

    def _last_count(self, end: str) -> str:
        """The induction variable behind a part up to `end`, if it needs no loop to tell; "" otherwise.

        LLVM vectorizes the remainder of a part too, where nothing behind it reads the induction variable.
        """
        if (
            not self.is_split
            or not self.counts
            or not LoopParts(self.node).has_unit_step
            or self.exit_branch is not None
        ):
            return ""
        return self.emitter._min_or_max("sgt" if self._is_up else "slt", self._count_now(), end)

    def _count_now(self) -> str:
        return self.emitter._get(self.counter, "int64").text
