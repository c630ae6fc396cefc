"""Reductions of everything: in blocks that threads share, each of which leaves what it came to; joined in order then.

How many blocks there are follows from the number of elements alone, so that a result has the same bits whatever the
number of threads. Every phase is a function of its own, ``i64 @name(ptr context, i64 begin, i64 end)`` for a range of
blocks. A context is the frame, where blocks leave what they come to, elements in a block along the outermost loop, and
what earlier phases came to.
"""

from jitkernels.graph import extents
from jitkernels.graph.emit.blocks import Block, Function, Register, memory_type
from jitkernels.graph.emit.nests import Emitter
from jitkernels.graph.emit.reductions import Accumulator, all_decided
from jitkernels.graph.emit.targets import Target
from jitkernels.graph.extents import Extent
from jitkernels.native.language.types import NUMBERS

BLOCK, MOST_BLOCKS = 16384, 64
"""Elements of four bytes of a block at least, and how many blocks there are at most."""
ALIGNED = 1024
"""Steps of which blocks have a multiple along lanes."""
FRAME, PARTIALS, STEP, EARLIER = range(4)


def least_block(emitter: Emitter) -> int:
    """Elements of a block at least: of narrow ones more, as they take no longer."""
    sizes = [NUMBERS[leaf.dtype].size for cone in emitter.nest.cones for leaf in cone.leaves.values()]
    return BLOCK * max(4 // max(sizes, default=4), 1)


def serves(emitter: Emitter) -> bool:
    """Whether a nest reduces everything, and may have more than one block."""
    found = [target for target in emitter.targets if target.loops]
    sizes = [extents.product(emitter.extents[loop] for loop in target.loops) for target in found]
    is_large = any(isinstance(size, Extent) or size >= 2 * least_block(emitter) for size in sizes)
    return is_large and not emitter.order and not emitter.scanned and all(one.reduction for one in found)


class BlockwiseEmitter(Emitter):
    """Writes a nest that reduces everything, and a function for each of its phases."""

    def text(self) -> str:
        self.parts: list[str] = []
        own = super().text()
        return "\n".join([*self.parts, own])

    def _phase(self, block: Block, loops: list[int], targets: list[Target]) -> None:
        function, new = self.function, self.function.new
        name = f"{self.name}.part{len(self.parts)}"
        part = Part(self.nest, self.arrays, Function(function.library, function.places), self.variant, name)
        part.begin(self)
        accumulators = self._begun(block, targets, 1, is_long=True)
        slots = [slot for one in accumulators for slot in _slots(one)]
        self.parts.append(part.part_text(loops, [self.targets.index(one) for one in targets], len(slots)))

        context = function.variable(f"[{EARLIER + len(self.values.reduced)} x i64]")
        partials = function.variable(f"[{MOST_BLOCKS * len(slots)} x i64]")
        count_at = function.variable("i64")
        for number, value in ((FRAME, "%frame"), (PARTIALS, partials)):
            block.lines.append(f"  store ptr {value}, ptr {_word(function, block, context, number)}")
        for number, (_, register) in enumerate(self.values.reduced.values()):
            _store(function, block, register, _word(function, block, context, EARLIER + number))
        step_place = _word(function, block, context, STEP)
        whole, size = (
            function.extent(self.extents[loops[0]]),
            function.extent(extents.product(self.extents[loop] for loop in loops)),
        )
        blocks, small, go = function.label(), function.label(), function.label()
        is_large = new(block, f"icmp sge i64 {size}, {2 * least_block(self)}")
        block.lines += [f"  br i1 {is_large}, label %{blocks}, label %{small}", f"{small}:"]
        block.lines += [f"  store i64 {whole}, ptr {step_place}", f"  store i64 1, ptr {count_at}"]
        new(block, f"call i64 @{name}(ptr {context}, i64 0, i64 1)")
        block.lines += [f"  br label %{go}", f"{blocks}:"]
        step, count = self._divided(block, loops[0], whole, size)
        block.lines += [f"  store i64 {step}, ptr {step_place}", f"  store i64 {count}, ptr {count_at}"]
        work = new(block, f"mul i64 {size}, {self.nest.work_of_step}")
        new(block, f"call i64 @jk_share(ptr {context}, ptr @{name}, i64 {count}, i64 1, i64 {work})")
        block.lines += [f"  br label %{go}", f"{go}:"]

        def joined(inside: Block) -> None:
            first = new(inside, f"mul nsw i64 {inside.index}, {len(slots)}")
            at = new(inside, f"getelementptr i64, ptr {partials}, i64 {first}")
            number = 0
            for one in accumulators:
                one.next_part(inside)
                found = []
                for dtype in _slots(one):
                    found.append(self._load(inside, dtype, _word(function, inside, at, number)))
                    number += 1
                one.take(inside, found[0], "", found[1].text if len(found) > 1 else "")

        self.counted(block, None, "0", new(block, f"load i64, ptr {count_at}"), 1, 1, joined)
        for target, accumulator in zip(targets, accumulators, strict=True):
            assert target.reduction is not None, "of a nest that reduces everything"
            self.values.reduced[self.values.key(*target.reduction)] = block, accumulator.result(block)

    def _divided(self, block: Block, loop: int, whole: str, size: str) -> tuple[str, str]:
        """Steps of the outermost loop that make one block, and how many blocks that gives."""
        new = self.function.new
        self.function.library.declare("llvm.smin.i64", "i64", ["i64", "i64"])
        wanted = new(block, f"sdiv i64 {size}, {least_block(self)}")
        wanted = new(block, f"call i64 @llvm.smin.i64(i64 {wanted}, i64 {MOST_BLOCKS})")
        unit = ALIGNED if loop == self.lane_loop else 1
        parts = new(block, f"mul i64 {wanted}, {unit}")
        more = new(block, f"add i64 {whole}, {new(block, f'sub i64 {parts}, 1')}")
        step = new(block, f"mul i64 {new(block, f'sdiv i64 {more}, {parts}')}, {unit}")
        last = new(block, f"add i64 {whole}, {new(block, f'sub i64 {step}, 1')}")
        return step, new(block, f"sdiv i64 {last}, {step}")

    def _load(self, block: Block, dtype: str, place: str) -> Register:
        text = self.function.new(block, f"load {memory_type(dtype)}, ptr {place}")
        return self.values.from_memory(block, text, dtype, 1)


class Part(BlockwiseEmitter):
    """Writes the function of one phase."""

    def begin(self, whole: BlockwiseEmitter) -> None:
        """Know what is in the context."""
        self.limits: dict[int, tuple[str, str]] = {}
        function = self.function
        block = function.block
        block.lines.append("  %frame = load ptr, ptr %context")
        for number, (key, (_, register)) in enumerate(whole.values.reduced.items()):
            place = _word(function, block, "%context", EARLIER + number)
            self.values.reduced[key] = block, self._load(block, register.dtype, place)

    def part_text(self, loops: list[int], numbers: list[int], words: int) -> str:
        """The function: for each of its blocks, what the phase's reductions come to."""
        function, new = self.function, self.function.new
        block, outer = function.block, loops[0]
        targets = [self.targets[number] for number in numbers]
        partials = new(block, f"load ptr, ptr {_word(function, block, '%context', PARTIALS)}")
        step = new(block, f"load i64, ptr {_word(function, block, '%context', STEP)}")
        whole = function.extent(self.extents[outer])
        function.library.declare("llvm.smin.i64", "i64", ["i64", "i64"])
        decided = function.variable("i1")
        block.lines.append(f"  store i1 false, ptr {decided}")

        def one_block(inside: Block) -> None:
            begin = new(inside, f"mul nsw i64 {inside.index}, {step}")
            ahead = new(inside, f"add nsw i64 {begin}, {step}")
            end = new(inside, f"call i64 @llvm.smin.i64(i64 {ahead}, i64 {whole})")
            # Of blocks behind the one that decides, nothing counts.
            done = new(inside, f"load i1, ptr {decided}")
            end = new(inside, f"select i1 {done}, i64 {begin}, i64 {end}")
            self.limits = {outer: (begin, end)}
            self.accumulate(inside, loops, targets)
            first = new(inside, f"mul nsw i64 {inside.index}, {words}")
            at = new(inside, f"getelementptr i64, ptr {partials}, i64 {first}")
            if all(one.decides for one in self.accumulators):
                all_done = new(inside, f"or i1 {done}, {all_decided(inside, self.accumulators)}")
                inside.lines.append(f"  store i1 {all_done}, ptr {decided}")
            found = [register for one in self.accumulators for register in one.partial(inside)]
            for number, register in enumerate(found):
                _store(function, inside, register, _word(function, inside, at, number))

        self.counted(block, None, "%begin", "%end", 1, 1, one_block)
        body = "\n".join([*function.memory, *block.lines])
        return (
            f"define internal i64 @{self.name}(ptr noalias readonly %context, i64 %begin, i64 %end)"
            f" noinline nounwind {{\n{body}\n  ret i64 0\n}}"
        )

    def _limits(self, loop: int) -> tuple[str, str]:
        return self.limits[loop] if loop in self.limits else super()._limits(loop)


def _slots(accumulator: Accumulator) -> list[str]:
    """The dtypes of what a block leaves of an accumulator."""
    return [accumulator.inner, *(["int64"] if accumulator.is_index else [])]


def _word(function: Function, block: Block, base: str, number: int) -> str:
    return function.new(block, f"getelementptr i64, ptr {base}, i64 {number}")


def _store(function: Function, block: Block, register: Register, place: str) -> None:
    text = register.text
    if register.dtype == "bool":
        text = function.new(block, f"zext i1 {text} to i8")
    block.lines.append(f"  store {memory_type(register.dtype)} {text}, ptr {place}")
