"""Loops whose rounds threads share: what they need is put into words of memory, and a function does some of the rounds.

The words: the frame, the thread that calls, whether it has been interrupted, then what the loop is given, its first
count, and the bytes of what nests compute in a round, for which each thread that does rounds has memory of its own.
"""

from collections.abc import Container, Mapping
from typing import Any

from jitkernels.graph.bodies import Body, Group
from jitkernels.graph.carried import ZEROED, Joined
from jitkernels.graph.emit import polls
from jitkernels.graph.emit.blocks import Register, llvm_type
from jitkernels.graph.emit.elements import Elements, Place
from jitkernels.graph.extents import Extent, Number
from jitkernels.graph.independent import independent
from jitkernels.graph.ir import Node
from jitkernels.graph.regions import nodes_within, regions_of
from jitkernels.graph.rounds import work_of
from jitkernels.native import arenas, c_api, openmp
from jitkernels.native.sharing import WORK
from jitkernels.native.source import External

SCALAR = 4
"""How many times longer an operation of single numbers takes than one of those that work is counted in."""
FRAME, CALLER, STOPPED, FIRST = range(4)
SHORT = 1
"""The status of rounds for which there was no memory."""


def groups_of(loop: Node, bodies: Mapping[int, Body]) -> list[Group]:
    """What nests compute in the rounds of a loop."""
    inside = [
        loop.options["body"],
        *(one for node in nodes_within(loop.options["body"]) for one in regions_of(node)),
    ]
    return [group for one in inside for _, group in bodies[id(one)].stages if group]


def work(
    loop: Node, bodies: Mapping[int, Body], moving: Container[str], *, is_outermost: bool
) -> tuple[Number, dict[int, Joined]] | None:
    """The work of a loop that threads may share, and what joins ints; None where it is sure not to be worth it."""
    if loop.operation != "loop":
        return None
    groups = groups_of(loop, bodies)
    has_loops = any(node.operation == "loop" for node in nodes_within(loop.options["body"]))
    if not has_loops and not groups and not is_outermost:
        return None
    # Times would be added up by several threads at once, and a limit holds for one.
    if any(one.program.profile is not None or one.program.config.memory_limit is not None for one in groups):
        return None
    found = work_of(loop) * (SCALAR if has_loops and not groups else 1)
    if not isinstance(found, Extent) and found < 2 * WORK:
        return None
    joined = independent(loop, moving)
    return None if joined is None else (found, joined)


class SharedRounds:
    """One such loop, in the function of a flow. `name` is that of the function that does some of the rounds."""

    def __init__(
        self,
        emitter: Elements,
        given: list[Any],
        name: str,
        groups: list[Group],
        joined: Mapping[int, Joined],
    ) -> None:
        self.emitter, self.name, self.joined = emitter, name, joined
        self.sizes = {word: size for group in groups for word, size in group.sizes.items()}
        begin, end, _ = given[:3]
        self.begin, self.end, self.step = begin, end, given[2]
        self.values = given[3:]
        self.moving = sorted(emitter.function.variables)

    def inside(self) -> tuple[list[Any], list[str]]:
        """What the loop is given in the function, and its parameters."""
        values: list[Any] = [Register("%first", "int64"), Register("%last", "int64"), self.step]
        parameters = []
        for i, one in enumerate(self.values):
            if i in self.joined and self.joined[i].operation in ZEROED:
                values.append(Register("0", one.dtype))
            elif isinstance(one, Place):
                values.append(Place(f"%given{i}", one.strides, one.dtype))
                parameters.append(f"ptr noalias %given{i}")
            elif one.text.startswith("%"):
                values.append(Register(f"%given{i}", one.dtype))
                parameters.append(f"{llvm_type(one.dtype)} %given{i}")
            else:
                values.append(one)
        self.after = FIRST + len(parameters) + len(self.moving)
        parameters += [f"i64 %symbol{i}" for i in range(len(self.moving))]
        return values, [*parameters, *(["ptr noalias %memory"] if self.sizes else [])]

    def memory(self, part: Elements) -> None:
        """Have a function that does some rounds find what nests compute in the memory that it is given."""
        function, begin = part.function, "0"
        for word, size in self.sizes.items():
            at = function.new(function.block, f"getelementptr i8, ptr %memory, i64 {begin}")
            begin = function.new(function.block, f"add i64 {begin}, {function.extent(size)}")
            part.pointers[word] = at

    def _passed(self) -> list[tuple[str, str]]:
        """Types and texts of what is put into words, in the order of the parameters."""
        found = []
        for i, one in enumerate(self.values):
            if i in self.joined and self.joined[i].operation in ZEROED:
                continue
            if isinstance(one, Place):
                found.append(("ptr", one.pointer))
            elif one.text.startswith("%"):
                found.append((llvm_type(one.dtype), one.text))
        return [*found, *(("i64", self.emitter.function.current(one)) for one in self.moving)]

    def join(self, part: Elements, results: list[Any]) -> None:
        """Have a function that has done some rounds join the ints that it has come to with those of the others."""
        for word, (number, joined) in enumerate(self.joined.items(), self.after + 2):
            at = part._new(f"getelementptr i64, ptr %words, i64 {word}")
            own = results[number]
            before = part._new(f"atomicrmw {joined.operation} ptr {at}, i64 {own.text} monotonic")
            if joined.is_checked:
                part._refuse(part._overflows("add", Register(before, "int64"), own))

    def joined_now(self) -> dict[int, Register]:
        """What ints have come to, when all is done."""
        function, block = self.emitter.function, self.emitter.block
        found = {}
        for word, number in enumerate(self.joined, self.after + 2):
            at = function.new(block, f"getelementptr i64, ptr {self.words}, i64 {word}")
            found[number] = Register(function.new(block, f"load i64, ptr {at}"), "int64")
        return found

    def call(self, work: Number) -> str:
        """Share the rounds; the status of all."""
        emitter, function = self.emitter, self.emitter.function
        passed = self._passed()
        self.kinds = [kind for kind, _ in passed]
        self.words = words = function.variable(f"[{self.after + 2 + len(self.joined)} x i64]")
        stored = [(FRAME, "ptr", "%frame"), *((FIRST + i, *one) for i, one in enumerate(passed))]
        stored.append((self.after, "i64", self.begin.text))
        stored += [(i, "i64", self.values[one].text) for i, one in enumerate(self.joined, self.after + 2)]
        lent = function.extent(sum(self.sizes.values(), arenas.HEAD))
        stored.append((self.after + 1, "i64", lent))
        for word, kind, text in stored:
            at = function.new(emitter.block, f"getelementptr i64, ptr {words}, i64 {word}")
            emitter.block.lines.append(f"  store {kind} {text}, ptr {at}")
        rounds = function.new(emitter.block, f"sub i64 {self.end.text}, {self.begin.text}")
        function.library.declare("llvm.smax.i64", "i64", ["i64", "i64"])
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
        given = ["ptr %frame", "ptr %words", "i64 %first", "i64 %last", *passed]
        lends, gives_back = "", ""
        if self.sizes:
            given.append("ptr %memory")
            lends = f"""
  %size.at = getelementptr i64, ptr %words, i64 {self.after + 1}
  %size = load i64, ptr %size.at
  %piece = call ptr @{arenas.LENT}(i64 %size)
  %none = icmp eq ptr %piece, null
  br i1 %none, label %short, label %run
short:
  ret i64 {SHORT}
run:
  %memory = getelementptr i8, ptr %piece, i64 {arenas.HEAD}"""
            gives_back = f"\n  call void @{arenas.GIVEN_BACK}(ptr %piece)"
        return [
            f"{head}{body}\n  ret i64 0\nrefused:\n  ret i64 {polls.REFUSED}\n{interrupted}}}",
            f"define internal i64 @{self.name}(ptr %words, i64 %begin, i64 %end) nounwind {{\n"
            + "\n".join(found)
            + f"""
  %frame = load ptr, ptr %words
  %place = getelementptr i64, ptr %words, i64 {self.after}
  %zeroth = load i64, ptr %place
  %first = add i64 %zeroth, %begin
  %last = add i64 %zeroth, %end{lends}
  %status = call i64 @{self.name}.inside({", ".join(given)}){gives_back}
  ret i64 %status
}}""",
        ]


TEXT = f"""declare i64 @PyThread_get_thread_ident()
declare ptr @{arenas.LENT}(i64)
declare void @{arenas.GIVEN_BACK}(ptr)
declare i64 @{openmp.SHARE_ROUNDS}(ptr, ptr, i64, i64, ptr)
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
define internal i64 @jk_asks(ptr %words) noinline nounwind cold {{
  %raised = call i1 @jk_interrupted_there(ptr %words)
  %bit = select i1 %raised, i64 {polls.INTERRUPTED}, i64 0
  ret i64 %bit
}}
define internal i64 @jk_rounds(ptr %words, ptr %function, i64 %extent, i64 %work) noinline nounwind {{
  %caller = call i64 @PyThread_get_thread_ident()
  %caller.at = getelementptr i64, ptr %words, i64 {CALLER}
  %stopped.at = getelementptr i64, ptr %words, i64 {STOPPED}
  store i64 %caller, ptr %caller.at
  store i64 0, ptr %stopped.at
  %status = call i64 @{openmp.SHARE_ROUNDS}(ptr %words, ptr %function, i64 %extent, i64 %work, ptr @jk_asks)
  ret i64 %status
}}"""
"""Shares rounds among threads.

The thread that has called asks for signals; the others, which may not wait for Python, look what it has found.
"""


def externals() -> tuple[External, ...]:
    """What this links to."""
    lending = [one for one in arenas.externals() if one.symbol in (arenas.LENT, arenas.GIVEN_BACK)]
    return (openmp.rounds_function(), *c_api.signals(), *lending)
