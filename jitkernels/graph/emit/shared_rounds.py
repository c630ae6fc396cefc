"""Loops whose rounds threads share: what they need is put into words of memory, and a function does some of the rounds.

The words: the frame, the thread that calls, whether it has been interrupted, and then what the loop is given.
"""

from typing import Any

from jitkernels.graph.emit import polls
from jitkernels.graph.emit.blocks import Register, llvm_type
from jitkernels.graph.emit.elements import Elements, Place
from jitkernels.graph.extents import Extent, Number
from jitkernels.graph.independent import is_independent
from jitkernels.graph.ir import Node
from jitkernels.graph.regions import nodes_within
from jitkernels.graph.rounds import work_of
from jitkernels.native import c_api, openmp
from jitkernels.native.sharing import MOST_PARTS, PART, WORK
from jitkernels.native.source import External

SCALAR = 4
"""How many times longer an operation of single numbers takes than one of those that work is counted in."""
FRAME, CALLER, STOPPED, FIRST = range(4)


def work(loop: Node, bodies: dict[int, Any], *, is_outermost: bool) -> Number | None:
    """The work of a loop that threads may share; None where they cannot, or it is sure not to be worth it."""
    if loop.operation != "loop":
        return None
    has_loops = any(node.operation == "loop" for node in nodes_within(loop.options["body"]))
    if not has_loops and not is_outermost:
        return None
    found = work_of(loop) * (SCALAR if has_loops else 1)
    if not isinstance(found, Extent) and found < 2 * WORK:
        return None
    return found if is_independent(loop, bodies) else None


class SharedRounds:
    """One such loop, in the function of a flow. `name` is that of the function that does some of the rounds."""

    def __init__(self, emitter: Elements, node: Node, given: list[Any], name: str) -> None:
        self.emitter, self.node, self.name = emitter, node, name
        begin, end, _ = given[:3]
        self.begin, self.end, self.step = begin, end, given[2]
        self.values = given[3:]
        self.moving = sorted(emitter.function.variables)

    def inside(self) -> tuple[list[Any], list[str]]:
        """What the loop is given in the function, and its parameters."""
        values: list[Any] = [Register("%first", "int64"), Register("%last", "int64"), self.step]
        parameters = []
        for i, one in enumerate(self.values):
            if isinstance(one, Place):
                values.append(Place(f"%given{i}", one.strides, one.dtype))
                parameters.append(f"ptr noalias %given{i}")
            elif one.text.startswith("%"):
                values.append(Register(f"%given{i}", one.dtype))
                parameters.append(f"{llvm_type(one.dtype)} %given{i}")
            else:
                values.append(one)
        parameters += [f"i64 %symbol{i}" for i in range(len(self.moving))]
        return values, parameters

    def _passed(self) -> list[tuple[str, str]]:
        """Types and texts of what is put into words, in the order of the parameters."""
        found = []
        for one in self.values:
            if isinstance(one, Place):
                found.append(("ptr", one.pointer))
            elif one.text.startswith("%"):
                found.append((llvm_type(one.dtype), one.text))
        return [*found, *(("i64", self.emitter.function.current(one)) for one in self.moving)]

    def call(self, work: Number) -> str:
        """Share the rounds; the status of all."""
        emitter, function = self.emitter, self.emitter.function
        passed = self._passed()
        self.kinds = [kind for kind, _ in passed]
        words = function.variable(f"[{FIRST + len(passed) + 1} x i64]")
        stored = [(FRAME, "ptr", "%frame"), *((FIRST + i, *one) for i, one in enumerate(passed))]
        stored.append((FIRST + len(passed), "i64", self.begin.text))
        for word, kind, text in stored:
            at = function.new(emitter.block, f"getelementptr i64, ptr {words}, i64 {word}")
            emitter.block.lines.append(f"  store {kind} {text}, ptr {at}")
        rounds = function.new(emitter.block, f"sub i64 {self.end.text}, {self.begin.text}")
        for name in ("llvm.smax.i64", "llvm.smin.i64"):
            function.library.declare(name, "i64", ["i64", "i64"])
        some = function.new(emitter.block, f"call i64 @llvm.smax.i64(i64 {rounds}, i64 0)")
        size = function.extent(work)
        given = f"ptr {words}, ptr @{self.name}, i64 {some}, i64 {size}"
        return function.new(emitter.block, f"call i64 @jk_rounds({given})")

    def texts(self, body: str, *, polls_inside: bool) -> list[str]:
        """The function that finds all in words, and the one that is told that arrays do not overlap."""
        _, parameters = self.inside()
        listed = ", ".join(
            ["ptr noalias readonly %frame", "ptr %words", "i64 %first", "i64 %last", *parameters]
        )
        found, passed = [], []
        for i, kind in enumerate(self.kinds):
            found.append(f"  %at{i} = getelementptr i64, ptr %words, i64 {FIRST + i}")
            found.append(f"  %value{i} = load {kind}, ptr %at{i}")
            passed.append(f"{kind} %value{i}")
        interrupted = f"interrupted:\n  ret i64 {polls.INTERRUPTED}\n" if polls_inside else ""
        head = f"define internal i64 @{self.name}.inside({listed}) noinline nounwind {{\n"
        return [
            f"{head}{body}\n  ret i64 0\nrefused:\n  ret i64 {polls.REFUSED}\n{interrupted}}}",
            f"define internal i64 @{self.name}(ptr %words, i64 %begin, i64 %end) nounwind {{\n"
            + "\n".join(found)
            + f"""
  %frame = load ptr, ptr %words
  %place = getelementptr i64, ptr %words, i64 {FIRST + len(self.kinds)}
  %zeroth = load i64, ptr %place
  %first = add i64 %zeroth, %begin
  %last = add i64 %zeroth, %end
  %status = call i64 @{self.name}.inside({", ".join(["ptr %frame", "ptr %words", "i64 %first", "i64 %last", *passed])})
  ret i64 %status
}}""",
        ]


GIVEN = "{ ptr, ptr, i64, i64, i64, i64, i64 }"
"""The words, the function, rounds, parts; parts that are begun, and that are done; the bits of all statuses."""
WAITING = 256
"""How often the caller looks whether the others are done until it asks for signals."""


def _fields(*names: str) -> str:
    listed = ("words", "function", "extent", "parts", "begun", "done", "statuses")
    return "".join(
        f"  %{name}.at = getelementptr {GIVEN}, ptr %given, i32 0, i32 {listed.index(name)}\n"
        for name in names
    )


TEXT = f"""declare i64 @PyThread_get_thread_ident()
declare i32 @sched_yield()
declare i64 @jk_team(i64)
declare void @jk_parallel(ptr, ptr, i64, i64)
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
  %told = load atomic i64, ptr %place monotonic, align 8
  %stopped = icmp ne i64 %told, 0
  ret i1 %stopped
}}
define internal i64 @jk_rounds(ptr %words, ptr %function, i64 %extent, i64 %work) noinline nounwind {{
  %given = alloca {GIVEN}
  %caller = call i64 @PyThread_get_thread_ident()
  %caller.at = getelementptr i64, ptr %words, i64 {CALLER}
  %stopped.at = getelementptr i64, ptr %words, i64 {STOPPED}
  store i64 %caller, ptr %caller.at
  store i64 0, ptr %stopped.at
  %shares = sdiv i64 %work, {WORK}
  %wanted = call i64 @llvm.smin.i64(i64 %extent, i64 %shares)
  %few = icmp slt i64 %wanted, 2
  br i1 %few, label %alone, label %ask
ask:
  %team = call i64 @jk_team(i64 %wanted)
  %several = icmp sgt i64 %team, 1
  br i1 %several, label %fork, label %alone
alone:
  %status = call i64 %function(ptr %words, i64 0, i64 %extent)
  ret i64 %status
fork:
{_fields("words", "function", "extent", "parts", "begun", "done", "statuses")}
  %worth = sdiv i64 %work, {PART}
  %most = mul i64 %team, {MOST_PARTS}
  %fewer = call i64 @llvm.smin.i64(i64 %worth, i64 %most)
  %parts = call i64 @llvm.smin.i64(i64 %fewer, i64 %extent)
  store ptr %words, ptr %words.at
  store ptr %function, ptr %function.at
  store i64 %extent, ptr %extent.at
  store i64 %parts, ptr %parts.at
  store i64 0, ptr %begun.at
  store i64 0, ptr %done.at
  store i64 0, ptr %statuses.at
  call void @jk_parallel(ptr @jk_some_rounds, ptr %given, i64 %team, i64 %team)
  %statuses = load i64, ptr %statuses.at
  ret i64 %statuses
}}
define internal void @jk_some_rounds(ptr %given, i64 %number, i64 %team) nounwind {{
{_fields("words", "function", "extent", "parts", "begun", "done", "statuses")}
  %words = load ptr, ptr %words.at
  %function = load ptr, ptr %function.at
  %extent = load i64, ptr %extent.at
  %parts = load i64, ptr %parts.at
  %caller.at = getelementptr i64, ptr %words, i64 {CALLER}
  %caller = load i64, ptr %caller.at
  br label %next
next:
  %part = atomicrmw add ptr %begun.at, i64 1 monotonic
  %more = icmp slt i64 %part, %parts
  br i1 %more, label %look, label %over
look:  ; when one has failed, what the others do is for nothing
  %failed = load atomic i64, ptr %statuses.at monotonic, align 8
  %fine = icmp eq i64 %failed, 0
  br i1 %fine, label %run, label %end
run:
  %low = mul i64 %part, %extent
  %high = add i64 %low, %extent
  %begin = sdiv i64 %low, %parts
  %last = sdiv i64 %high, %parts
  %status = call i64 %function(ptr %words, i64 %begin, i64 %last)
  %before = atomicrmw or ptr %statuses.at, i64 %status monotonic
  br label %end
end:
  %others = atomicrmw add ptr %done.at, i64 1 acq_rel
  br label %next
over:
  %own = call i64 @PyThread_get_thread_ident()
  %is_caller = icmp eq i64 %own, %caller
  br i1 %is_caller, label %wait, label %leave
wait:  ; for parts that others have begun: somebody has to hear signals meanwhile
  %turns = phi i64 [ 0, %over ], [ %turns.next, %again ], [ 0, %signals ]
  %ended = load atomic i64, ptr %done.at acquire, align 8
  %all = icmp sge i64 %ended, %parts
  br i1 %all, label %leave, label %again
again:
  %yielded = call i32 @sched_yield()
  %turns.next = add i64 %turns, 1
  %patient = icmp slt i64 %turns.next, {WAITING}
  br i1 %patient, label %wait, label %signals
signals:
  %raised = call i1 @jk_interrupted_there(ptr %words)
  %bit = select i1 %raised, i64 {polls.INTERRUPTED}, i64 0
  %known = atomicrmw or ptr %statuses.at, i64 %bit monotonic
  br label %wait
leave:
  ret void
}}"""
"""Shares rounds among threads in parts, of which each takes the next one.

The thread that has called asks for signals; the others, which may not wait for Python, look what it has found.
"""


def externals() -> tuple[External, ...]:
    """What this links to."""
    return (*openmp.externals(), *c_api.signals(), *c_api.yielding())
