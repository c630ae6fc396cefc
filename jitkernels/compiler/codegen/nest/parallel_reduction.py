"""Parallel full reductions: the thread pool reduces blocks, and the partial results are combined in order.

The number of elements alone determines the blocks, so that results are bitwise reproducible for any number of
threads. Every phase is a function of its own, ``i64 @name(ptr context, i64 begin, i64 end)`` for a range of blocks. A
context is the frame, the partial results, the iterations of the outermost loop per block, and the results of earlier
phases.
"""

from jitkernels.compiler.codegen.core.ir_builder import Block, FunctionBuilder, Register, memory_type
from jitkernels.compiler.codegen.nest.accumulators import Accumulator, all_decided
from jitkernels.compiler.codegen.nest.loop_emitter import LoopSpec
from jitkernels.compiler.codegen.nest.nest_emitter import NestEmitter
from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.schedule.nest.nest_targets import NestTarget
from jitkernels.compiler.schedule.nest.phase_rules import least_block

MAX_BLOCKS = 64
"""The most blocks."""
BLOCK_MULTIPLE = 1024
"""Blocks of the lane loop have a multiple of so many iterations."""
FRAME, PARTIALS, STEP, EARLIER = range(4)


class BlockwiseEmitter(NestEmitter):
    """Emits a nest that reduces everything, and a function for each of its phases."""

    def text(self) -> str:
        self.parts: list[str] = []
        own = super().text()
        return "\n".join([*self.parts, own])

    def _phase(self, block: Block, targets: list[NestTarget]) -> None:
        function, new = self.function, self.function.new
        loops = self.schedule.phase(targets[0].phase, targets[0].loops).loops
        name = f"{self.name}.part{len(self.parts)}"
        part = PhaseEmitter(
            self.loops, self.schedule, FunctionBuilder(function.library, function.symbol_slots), name
        )  # fmt: skip
        part.begin(self)
        accumulators = self._new_accumulators(block, targets, 1, is_long=True)
        slots = [slot for accumulator in accumulators for slot in _slots(accumulator)]
        self.parts.append(part.part_text(loops[0], targets, len(slots)))

        context = function.variable(f"[{EARLIER + len(self.values.reduced)} x i64]")
        partials = function.variable(f"[{MAX_BLOCKS * len(slots)} x i64]")
        count_at = function.variable("i64")
        for number, value in ((FRAME, "%frame"), (PARTIALS, partials)):
            block.lines.append(f"  store ptr {value}, ptr {function.slot(block, number, context)}")
        for number, (_, register) in enumerate(self.values.reduced.values()):
            _store(function, block, register, function.slot(block, EARLIER + number, context))
        step_place = function.slot(block, STEP, context)
        whole, size = (
            function.extent(self.extents[loops[0]]),
            function.extent(symbolic_dims.product(self.extents[loop] for loop in loops)),
        )
        blocks, small, join_label = function.label(), function.label(), function.label()
        is_large = new(block, f"icmp sge i64 {size}, {2 * least_block(self.loops)}")
        block.lines += [f"  br i1 {is_large}, label %{blocks}, label %{small}", f"{small}:"]
        block.lines += [f"  store i64 {whole}, ptr {step_place}", f"  store i64 1, ptr {count_at}"]
        new(block, f"call i64 @{name}(ptr {context}, i64 0, i64 1)")
        block.lines += [f"  br label %{join_label}", f"{blocks}:"]
        step, count = self._divided(block, loops[0], whole, size)
        block.lines += [f"  store i64 {step}, ptr {step_place}", f"  store i64 {count}, ptr {count_at}"]
        work = new(block, f"mul i64 {size}, {self.nest.work_of_step}")
        new(block, f"call i64 @jk_share(ptr {context}, ptr @{name}, i64 {count}, i64 1, i64 {work})")
        block.lines += [f"  br label %{join_label}", f"{join_label}:"]

        def combine(inside: Block) -> None:
            first = new(inside, f"mul nsw i64 {inside.index}, {len(slots)}")
            slot_address = function.slot(inside, first, partials)
            number = 0
            for accumulator in accumulators:
                accumulator.next_part(inside)
                accumulator.next_group(inside)
                results = []
                for dtype in _slots(accumulator):
                    results.append(self._load(inside, dtype, function.slot(inside, number, slot_address)))
                    number += 1
                accumulator.accumulate_element(inside, results[0], "", results[1].text if len(results) > 1 else "")

        self.emit_loop(block, LoopSpec(None, "0", new(block, f"load i64, ptr {count_at}")), combine)
        for target, accumulator in zip(targets, accumulators, strict=True):
            self.values.reduced[self.values.key(*target.reduced)] = block, accumulator.result(block)

    def _divided(self, block: Block, loop: int, whole: str, size: str) -> tuple[str, str]:
        """Return the iterations of the outermost loop per block, and the number of blocks."""
        new = self.function.new
        self.function.library.declare("llvm.smin.i64", "i64", ["i64", "i64"])
        block_count = new(block, f"sdiv i64 {size}, {least_block(self.loops)}")
        block_count = new(block, f"call i64 @llvm.smin.i64(i64 {block_count}, i64 {MAX_BLOCKS})")
        unit = BLOCK_MULTIPLE if loop == self.lane_loop else 1
        units = new(block, f"mul i64 {block_count}, {unit}")
        rounded_up = new(block, f"add i64 {whole}, {new(block, f'sub i64 {units}, 1')}")
        step = new(block, f"mul i64 {new(block, f'sdiv i64 {rounded_up}, {units}')}, {unit}")
        last = new(block, f"add i64 {whole}, {new(block, f'sub i64 {step}, 1')}")
        return step, new(block, f"sdiv i64 {last}, {step}")

    def _load(self, block: Block, dtype: str, address: str) -> Register:
        text = self.function.new(block, f"load {memory_type(dtype)}, ptr {address}")
        return self.values.from_memory(block, text, dtype, 1)


class PhaseEmitter(BlockwiseEmitter):
    """Emits the function of one phase."""

    def begin(self, whole: BlockwiseEmitter) -> None:
        """Load the results of earlier phases from the context."""
        self.limits: dict[int, tuple[str, str]] = {}
        function = self.function
        block = function.block
        block.lines.append("  %frame = load ptr, ptr %context")
        for number, (key, (_, register)) in enumerate(whole.values.reduced.items()):
            address = function.slot(block, EARLIER + number, "%context")
            self.values.reduced[key] = block, self._load(block, register.dtype, address)

    def part_text(self, outer: int, targets: list[NestTarget], words: int) -> str:
        """Return the function: the partial results of the phase's reductions for each block."""
        function, new = self.function, self.function.new
        block = function.block
        partials = function.load_slot(block, PARTIALS, "ptr", "%context")
        step = function.load_slot(block, STEP, base="%context")
        whole = function.extent(self.extents[outer])
        function.library.declare("llvm.smin.i64", "i64", ["i64", "i64"])
        decided = function.variable("i1")
        block.lines.append(f"  store i1 false, ptr {decided}")

        def one_block(inside: Block) -> None:
            begin = new(inside, f"mul nsw i64 {inside.index}, {step}")
            ahead = new(inside, f"add nsw i64 {begin}, {step}")
            end = new(inside, f"call i64 @llvm.smin.i64(i64 {ahead}, i64 {whole})")
            # Blocks behind a deciding one do not matter.
            done = new(inside, f"load i1, ptr {decided}")
            end = new(inside, f"select i1 {done}, i64 {begin}, i64 {end}")
            self.limits = {outer: (begin, end)}
            self.accumulate(inside, targets)
            first = new(inside, f"mul nsw i64 {inside.index}, {words}")
            at = function.slot(inside, first, partials)
            if all(accumulator.decides for accumulator in self.accumulators):
                all_done = new(inside, f"or i1 {done}, {all_decided(inside, self.accumulators)}")
                inside.lines.append(f"  store i1 {all_done}, ptr {decided}")
            results = [register for accumulator in self.accumulators for register in accumulator.partial(inside)]
            for number, register in enumerate(results):
                _store(function, inside, register, function.slot(inside, number, at))

        self.emit_loop(block, LoopSpec(None, "%begin", "%end"), one_block)
        body = "\n".join([*function.memory, *block.lines])
        return (
            f"define internal i64 @{self.name}(ptr noalias readonly %context, i64 %begin, i64 %end)"
            f" noinline nounwind {{\n{body}\n  ret i64 0\n}}"
        )

    def _limits(self, loop: int) -> tuple[str, str]:
        return self.limits[loop] if loop in self.limits else super()._limits(loop)


def _slots(accumulator: Accumulator) -> list[str]:
    """The dtypes of an accumulator's partial result."""
    return [accumulator.inner, *(["int64"] if accumulator.is_index else [])]


def _store(function: FunctionBuilder, block: Block, register: Register, address: str) -> None:
    text = register.text
    if register.dtype == "bool":
        text = function.new(block, f"zext i1 {text} to i8")
    block.lines.append(f"  store {memory_type(register.dtype)} {text}, ptr {address}")
