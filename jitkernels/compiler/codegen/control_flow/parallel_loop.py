"""Parallel loops: an outlined function runs a range of iterations, with its arguments in a block of words.

The words: the frame, the calling thread, its interrupted flag, then the captured values, the first value of the
induction variable, and the workspace bytes of the loop nests of an iteration: each thread has a workspace of its own.
"""

from collections.abc import Container, Mapping, Sequence
from typing import Any

from jitkernels.codegen.source_protocol import External
from jitkernels.compiler.codegen.control_flow import signal_polls
from jitkernels.compiler.codegen.control_flow.region_evaluator import StridedPointer
from jitkernels.compiler.codegen.control_flow.scalar_emitter import ScalarEmitter
from jitkernels.compiler.codegen.core.ir_builder import Register, llvm_type
from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.regions import regions_of, walk_nodes
from jitkernels.compiler.ir.symbolic_dims import Extent, Number
from jitkernels.compiler.memory.arena import Arena, Buffer, assign_offsets
from jitkernels.compiler.schedule.region_stages import Body, NestGroup
from jitkernels.compiler.transforms.loop_parallelism import parallel_reductions_of
from jitkernels.compiler.transforms.parallel_int_reductions import ZEROED, IntReduction
from jitkernels.compiler.transforms.trip_count import work_of
from jitkernels.runtime import c_api, workspace_allocator
from jitkernels.runtime.threads import team_size
from jitkernels.runtime.threads.parallel_for import MIN_THREAD_WORK

SCALAR = 4
"""Cost of a scalar operation, in units of the vectorized operations that `MIN_THREAD_WORK` counts."""
LEAST_WORK = 2 * MIN_THREAD_WORK
"""The least work that two threads share."""
FRAME, CALLER, STOPPED, FIRST = range(4)
NO_MEMORY = 1
"""The status of iterations whose thread could not allocate its workspace."""


def groups_of(loop: Node, bodies: Mapping[int, Body]) -> list[NestGroup]:
    """The groups of loop nests that the iterations of a loop run."""
    nested = [
        loop.options["body"],
        *(region for node in walk_nodes(loop.options["body"]) for region in regions_of(node)),
    ]
    return [group for region in nested for group in bodies[id(region)].groups]


def work(
    loop: Node, bodies: Mapping[int, Body], loop_variant: Container[str], *, is_outermost: bool
) -> tuple[Number, dict[int, IntReduction]] | None:
    """Return the work of a loop that may run in parallel, and its int reductions.

    None if the loop is too short to pay or has dependences between its iterations.
    """
    if loop.operation != "loop":
        return None
    groups = groups_of(loop, bodies)
    has_loops = any(node.operation == "loop" for node in walk_nodes(loop.options["body"]))
    if not has_loops and not groups and not is_outermost:
        return None
    # Profile counters are not atomic, and a memory limit holds for one thread.
    if any(group.program.profile is not None or group.program.config.memory_limit is not None for group in groups):
        return None
    result = work_of(loop) * (SCALAR if has_loops and not groups else 1)
    if not isinstance(result, Extent) and result < LEAST_WORK:
        return None
    reductions = parallel_reductions_of(loop, loop_variant)
    return None if reductions is None else (result, reductions)


def has_own_version(
    loop: Node, bodies: Mapping[int, Body], work: Number, reductions: Mapping[int, IntReduction]
) -> bool:
    """Whether a loop inside of another one is emitted a second time, to run in the calling thread without a call.

    That is where it was short in the traced call: to share iterations would take longer than the iterations.
    """
    is_short = isinstance(work, Extent) and symbolic_dims.value_of(work) < LEAST_WORK
    return is_short and not reductions and not groups_of(loop, bodies)


def _workspace_of(groups: Sequence[NestGroup]) -> Arena:
    """The arrays that an iteration computes, packed: those that it needs at different times share memory."""
    buffers = [
        Buffer(word, size, ((0, 0),), group.sharing.get(word)) for group in groups for word, size in group.sizes.items()
    ]
    return assign_offsets(buffers)


def _sum(emitter: ScalarEmitter, left: str, right: str) -> str:
    """The sum of two i64, folded if both are constants."""
    is_known = left.isdigit() and right.isdigit()
    function = emitter.function
    return str(int(left) + int(right)) if is_known else function.new(function.block, f"add i64 {left}, {right}")


def _largest(emitter: ScalarEmitter, numbers: Sequence[str]) -> str:
    """The largest of nonnegative i64, 0 if there are none."""
    function = emitter.function
    result = str(max([int(number) for number in numbers if number.isdigit()], default=0))
    function.library.declare("llvm.smax.i64", "i64", ["i64", "i64"])
    for number in numbers:
        if not number.isdigit():
            result = function.new(function.block, f"call i64 @llvm.smax.i64(i64 {result}, i64 {number})")
    return result


class ParallelLoop:
    """A parallel loop in the function of a region. `name`: the outlined function that runs a range of iterations."""

    def __init__(
        self,
        emitter: ScalarEmitter,
        operands: list[Any],
        name: str,
        groups: list[NestGroup],
        reductions: Mapping[int, IntReduction],
    ) -> None:
        self.emitter, self.name, self.reductions = emitter, name, reductions
        self.arena = _workspace_of(groups)
        begin, end, _ = operands[:3]
        self.begin, self.end, self.step = begin, end, operands[2]
        self.values = operands[3:]
        self.loop_variant = sorted(emitter.function.variables)

    def inside(self) -> tuple[list[Any], list[str]]:
        """Return the values of the loop's operands inside the outlined function, and that function's parameters."""
        values: list[Any] = [Register("%first", "int64"), Register("%last", "int64"), self.step]
        parameters = []
        for i, value in enumerate(self.values):
            if i in self.reductions and self.reductions[i].operation in ZEROED:
                values.append(Register("0", value.dtype))
            elif isinstance(value, StridedPointer):
                values.append(StridedPointer(f"%captured{i}", value.strides, value.dtype))
                parameters.append(f"ptr noalias %captured{i}")
            elif value.text.startswith("%"):
                values.append(Register(f"%captured{i}", value.dtype))
                parameters.append(f"{llvm_type(value.dtype)} %captured{i}")
            else:
                values.append(value)
        self.after = FIRST + len(parameters) + len(self.loop_variant)
        parameters += [f"i64 %symbol{i}" for i in range(len(self.loop_variant))]
        return values, [*parameters, *(["ptr noalias %memory"] if self.arena.buffers else [])]

    def place_workspace(self, part: ScalarEmitter) -> None:
        """Point the arrays that nests compute into the thread's own workspace `%memory`."""
        function = part.function
        begins, _ = self._offsets(part)
        for buffer, begin in zip(self.arena.buffers, begins, strict=True):
            at = function.new(function.block, f"getelementptr i8, ptr %memory, i64 {begin}")
            part.pointers[buffer.word] = at

    def _offsets(self, emitter: ScalarEmitter) -> tuple[list[str], str]:
        """Compute the offset of each array in a thread's workspace, and the bytes of that."""
        function = emitter.function
        begins, ends = list[str](), list[str]()
        for buffer, lower in zip(self.arena.buffers, self.arena.above, strict=True):
            begins.append(_largest(emitter, [ends[i] for i in lower]))
            ends.append(_sum(emitter, begins[-1], function.extent(buffer.nbytes)))
        return begins, _largest(emitter, ends)

    def _passed(self) -> list[tuple[str, str]]:
        """Types and texts of the captured values that are stored to the argument block, in parameter order."""
        arguments = []
        for i, value in enumerate(self.values):
            if i in self.reductions and self.reductions[i].operation in ZEROED:
                continue
            if isinstance(value, StridedPointer):
                arguments.append(("ptr", value.pointer))
            elif value.text.startswith("%"):
                arguments.append((llvm_type(value.dtype), value.text))
        return [*arguments, *(("i64", self.emitter.function.current(value)) for value in self.loop_variant)]

    def combine(self, part: ScalarEmitter, results: list[Any]) -> None:
        """Combine the partial int reductions of this thread with those of the others by atomics."""
        for word, (number, reduction) in enumerate(self.reductions.items(), self.after + 2):
            at = part.function.slot(part.block, word, "%words")
            own = results[number]
            before = part._new(f"atomicrmw {reduction.operation} ptr {at}, i64 {own.text} monotonic")
            if reduction.is_checked:
                part._bail_out_if(part._overflows("add", Register(before, "int64"), own))

    def load_reductions(self) -> dict[int, Register]:
        """Load the final values of the int reductions behind the parallel loop."""
        function, block = self.emitter.function, self.emitter.block
        totals = {}
        for word, number in enumerate(self.reductions, self.after + 2):
            totals[number] = Register(function.load_slot(block, word, base=self.words), "int64")
        return totals

    def call(self, work: Number) -> str:
        """Run the iterations on the thread pool; return the combined status."""
        emitter, function = self.emitter, self.emitter.function
        passed = self._passed()
        self.kinds = [kind for kind, _ in passed]
        self.words = words = function.variable(f"[{self.after + 2 + len(self.reductions)} x i64]")
        stored = [(FRAME, "ptr", "%frame"), *((FIRST + i, *argument) for i, argument in enumerate(passed))]
        stored.append((self.after, "i64", self.begin.text))
        stored += [
            (i, "i64", self.values[reduction].text) for i, reduction in enumerate(self.reductions, self.after + 2)
        ]
        workspace_bytes = _sum(emitter, self._offsets(emitter)[1], str(workspace_allocator.HEADER_BYTES))
        stored.append((self.after + 1, "i64", workspace_bytes))
        for word, kind, text in stored:
            emitter.block.lines.append(f"  store {kind} {text}, ptr {function.slot(emitter.block, word, words)}")
        trip_count = function.new(emitter.block, f"sub i64 {self.end.text}, {self.begin.text}")
        function.library.declare("llvm.smax.i64", "i64", ["i64", "i64"])
        clamped = function.new(emitter.block, f"call i64 @llvm.smax.i64(i64 {trip_count}, i64 0)")
        size = function.extent(work)
        arguments = f"ptr {words}, ptr @{self.name}, i64 {clamped}, i64 {size}"
        return function.new(emitter.block, f"call i64 @jk_rounds({arguments})")

    def texts(self, body: str, *, polls_inside: bool) -> list[str]:
        """Return the outlined function with noalias parameters, and the entry that unpacks its argument block."""
        _, parameters = self.inside()
        listed = ", ".join(["ptr noalias readonly %frame", "ptr %words", "i64 %first", "i64 %last", *parameters])
        loads, passed = [], []
        for i, kind in enumerate(self.kinds):
            loads.append(f"  %at{i} = getelementptr i64, ptr %words, i64 {FIRST + i}")
            loads.append(f"  %value{i} = load {kind}, ptr %at{i}")
            passed.append(f"{kind} %value{i}")
        interrupted = f"interrupted:\n  ret i64 {signal_polls.INTERRUPTED}\n" if polls_inside else ""
        head = f"define internal i64 @{self.name}.inside({listed}) noinline nounwind {{\n"
        arguments = ["ptr %frame", "ptr %words", "i64 %first", "i64 %last", *passed]
        acquire, release = "", ""
        if self.arena.buffers:
            arguments.append("ptr %memory")
            acquire = f"""
  %size.at = getelementptr i64, ptr %words, i64 {self.after + 1}
  %size = load i64, ptr %size.at
  %piece = call ptr @{workspace_allocator.ALLOCATE}(i64 %size)
  %none = icmp eq ptr %piece, null
  br i1 %none, label %short, label %run
short:
  ret i64 {NO_MEMORY}
run:
  %memory = getelementptr i8, ptr %piece, i64 {workspace_allocator.HEADER_BYTES}"""
            release = f"\n  call void @{workspace_allocator.RELEASE}(ptr %piece)"
        return [
            f"{head}{body}\n  ret i64 0\nrefused:\n  ret i64 {signal_polls.REFUSED}\n{interrupted}}}",
            f"define internal i64 @{self.name}(ptr %words, i64 %begin, i64 %end) nounwind {{\n"
            + "\n".join(loads)
            + f"""
  %frame = load ptr, ptr %words
  %place = getelementptr i64, ptr %words, i64 {self.after}
  %zeroth = load i64, ptr %place
  %first = add i64 %zeroth, %begin
  %last = add i64 %zeroth, %end{acquire}
  %status = call i64 @{self.name}.inside({", ".join(arguments)}){release}
  ret i64 %status
}}""",
        ]


TEXT = f"""declare i64 @PyThread_get_thread_ident()
declare ptr @{workspace_allocator.ALLOCATE}(i64)
declare void @{workspace_allocator.RELEASE}(ptr)
declare i64 @{team_size.SHARE_ROUNDS}(ptr, ptr, i64, i64, ptr)
define internal i1 @jk_interrupted_there(ptr %words) noinline nounwind cold {{
  %at = getelementptr i64, ptr %words, i64 {CALLER}
  %caller = load i64, ptr %at
  %own = call i64 @PyThread_get_thread_ident()
  %is_caller = icmp eq i64 %own, %caller
  %place = getelementptr i64, ptr %words, i64 {STOPPED}
  br i1 %is_caller, label %ask, label %look
ask:
  %raised = call i1 @jk_interrupted()
  %word = zext i1 %raised to i64
  %kept = atomicrmw or ptr %place, i64 %word monotonic
  ret i1 %raised
look:
  %flag = load atomic i64, ptr %place monotonic, align 8
  %stopped = icmp ne i64 %flag, 0
  ret i1 %stopped
}}
define internal i64 @jk_asks(ptr %words) noinline nounwind cold {{
  %raised = call i1 @jk_interrupted_there(ptr %words)
  %bit = select i1 %raised, i64 {signal_polls.INTERRUPTED}, i64 0
  ret i64 %bit
}}
define internal i64 @jk_rounds(ptr %words, ptr %function, i64 %extent, i64 %work) noinline nounwind {{
  %caller = call i64 @PyThread_get_thread_ident()
  %caller.at = getelementptr i64, ptr %words, i64 {CALLER}
  %stopped.at = getelementptr i64, ptr %words, i64 {STOPPED}
  store i64 %caller, ptr %caller.at
  store i64 0, ptr %stopped.at
  %status = call i64 @{team_size.SHARE_ROUNDS}(ptr %words, ptr %function, i64 %extent, i64 %work, ptr @jk_asks)
  ret i64 %status
}}"""
"""Runs iterations on the thread pool.

The calling thread polls for signals; the others, which must not wait for the GIL, read the flag that it sets.
"""


def externals() -> tuple[External, ...]:
    """The external functions that parallel loops link to."""
    return (team_size.parallel_loop_function(), *c_api.signals(), *workspace_allocator.memory())
