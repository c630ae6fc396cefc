"""The function between Python and a segment: ``ptr @call(ptr context, ptr objects, ptr out)``.

It looks whether the arguments are what the code was made for, reads extents and strides from them, makes the results or
takes those given as ``out``, lends the memory between nests, calls the segment, and returns the result. A null pointer
means that the arguments are of another kind (nothing has happened then), or that an exception is set;
`call_table.FOR_PLAIN` that they are for the plain function: what is written overlaps others in memory, or the segment
has refused them, before anything was written.

What is computed has no part in its text: expressions of the same arguments and results share one, which takes LLVM as
long as a segment. So three words of the context are the segment's (see `SEGMENT`).
"""

from jitkernels.graph.emit import call_objects, objects
from jitkernels.graph.emit.call_arguments import TakenArguments
from jitkernels.graph.emit.call_results import GivenResults
from jitkernels.graph.emit.polls import FULL, INTERRUPTED, REFUSED
from jitkernels.native import arenas
from jitkernels.native.call_table import FOR_PLAIN
from jitkernels.native.later import MISSING

LONG = 400_000
"""Additions from which on other Python threads may run meanwhile: about 20 us."""
SEGMENT, MOST, LENT = 0, 1, 2
"""Words of the context, from the segment's first one on: its address, the largest work that is not long, and the most
bytes that were lent to a call."""


class Caller(TakenArguments, GivenResults):
    """Writes the function."""

    def text(self) -> str:
        """LLVM IR of the function, and of what it declares."""
        self.none = self.variable("ptr")
        self._answer(0)
        self.reached = objects.reached(self, self.reach.steps)
        self.given = [self._object(argument) for argument in self.arguments]
        self.numbers = [
            self._number(argument, found) if argument.number else ""
            for argument, found in zip(self.arguments, self.given, strict=True)
        ]
        for whole in self.reach.wholes:
            self._whole(whole)
        for bound in self.reach.bounds:
            self._bound(bound)
        self._arrays()
        for guard in self.guards:
            self._guard(guard)
        if any(one.is_written for one in self.arguments):
            self.settle()
            self._answer(FOR_PLAIN)
            self._written_apart()
            self.settle()
            self._answer(0)
        within = None if self.arena.limit is None else self._places()
        if within is not None:
            self.expect(self.new(f"icmp ule i64 {within[1]}, {self.arena.limit}"))
        outs = self._outs()
        self._lent()
        self._run()
        self._given(outs)
        body = "\n".join([*self.function.memory, *self.block.lines])
        named = [
            *(f"jk_dtype_{name}" for name in sorted(self.dtypes)),
            *(f"jk_type_{name}" for name in sorted(self.types)),
        ]
        body = (
            f"define ptr @entry(ptr %context, ptr %objects, ptr %out) nounwind {{\n"
            f"  %frame = alloca [{self.words} x i64], align 64\n{body}\n{self._undone()}\nno:\n"
            f"  %none = load ptr, ptr {self.none}\n  ret ptr %none\n}}\n"
        )
        inside = body
        for name, text in reversed(objects.FUNCTIONS.items()):
            if f"@{name}(" in inside:
                inside = text + inside
        declared = [
            *(f"@{name} = external global i8" for name in (*named, *KNOWN)),
            *(
                f"declare {text}"
                for text in DECLARED
                if text[text.index("@") : text.index("(") + 1] in inside
            ),
        ]
        weights = '!8 = !{!"branch_weights", i32 1, i32 1000}\n!9 = !{!"branch_weights", i32 1000, i32 1}'
        return "\n".join([*declared, inside + weights, ""])

    def _answer(self, address: int) -> None:
        """What is returned where there is no result."""
        self.line(f"  store ptr inttoptr (i64 {address} to ptr), ptr {self.none}")

    def _lent(self) -> None:
        """Memory for arrays between nests, in one piece: on the stack if that is small, else lent."""
        self.memory = ""
        begins, total = self._places()
        if total == 0:
            return
        if isinstance(total, int) and total <= arenas.ON_STACK:
            at = self.new(f"ptrtoint ptr {self.variable(f'[{total} x i8], align 64')} to i64")
        else:
            at = self._lent_bytes(total)
        for buffer, begin in zip(self.arena.buffers, begins, strict=True):
            self.keep(buffer.word, "i64", self.new(f"add i64 {at}, {begin}"))

    def _lent_bytes(self, total: int | str) -> str:
        """The address of so many bytes, at the begin of a line. What is given back then is in a variable."""
        self.memory = self.variable("ptr")
        little, much, go, lent = (self.function.label() for _ in range(4))
        self.settle()
        self.line(f"  store ptr null, ptr {self.memory}")
        small = self.new(f"icmp ule i64 {total}, {arenas.ON_STACK}")
        self.line(f"  br i1 {small}, label %{little}, label %{much}\n{little}:")
        stack = self.new(f"alloca i8, i64 {total}, align 64")
        self.line(f"  br label %{go}\n{much}:")
        found = self.new(f"call ptr @{arenas.LENT}(i64 {self.new(f'add i64 {total}, {arenas.HEAD}')})")
        self.require(self.new(f"icmp ne ptr {found}, null"), "undo")
        self.line(f"  store ptr {found}, ptr {self.memory}")
        most = self.new(f"getelementptr i64, ptr %context, i64 {self.word + LENT}")
        before = self.new(f"load i64, ptr {most}")
        more = self.new(f"icmp ugt i64 {total}, {before}")
        self.line(f"  store i64 {self.new(f'select i1 {more}, i64 {total}, i64 {before}')}, ptr {most}")
        aligned = self.new(f"getelementptr i8, ptr {found}, i64 {arenas.HEAD}")
        self.line(f"  br label %{lent}\n{lent}:\n  br label %{go}\n{go}:")
        begin = self.new(f"phi ptr [ {stack}, %{little} ], [ {aligned}, %{lent} ]")
        return self.new(f"ptrtoint ptr {begin} to i64")

    def _places(self) -> "tuple[list[int | str], int | str]":
        """Where each buffer of the arena begins, and its bytes: numbers, or instructions where extents tell."""
        begins: list[int | str] = []
        ends: list[int | str] = []
        for buffer, lower in zip(self.arena.buffers, self.arena.above, strict=True):
            begin = self._most([ends[i] for i in lower])
            size = self.here(buffer.nbytes)
            begins.append(begin)
            if isinstance(begin, int) and size.isdecimal():
                ends.append(begin + int(size))
            else:
                ends.append(self.new(f"add i64 {begin}, {size}") if begin else size)
        return begins, self._most(ends)

    def _most(self, numbers: "list[int | str]") -> "int | str":
        """The largest of some numbers that are not negative; 0 of none."""
        known = max((one for one in numbers if isinstance(one, int)), default=0)
        most: int | str = known
        for one in dict.fromkeys(one for one in numbers if isinstance(one, str)):
            if most == 0:
                most = one
                continue
            larger = self.new(f"icmp ugt i64 {one}, {most}")
            most = self.new(f"select i1 {larger}, i64 {one}, i64 {most}")
        return most

    def _run(self) -> None:
        """Call the segment; while it is long, without the interpreter's lock."""
        segment = self.load("ptr", "%context", 8 * (self.word + SEGMENT))
        most = self.load("i64", "%context", 8 * (self.word + MOST))
        long = self.new(f"icmp sgt i64 {self.here(self.work)}, {most}")
        apart, go, back, after = (self.function.label() for _ in range(4))
        state = self.variable("ptr")
        held = [one for one, given in zip(self.given, self.arguments, strict=True) if not given.is_own]
        hold = [f"  call void @Py_IncRef(ptr {one})" for one in held]
        let_go = [f"  call void @Py_DecRef(ptr {one})" for one in held]
        self.block.lines += [
            *(hold if self.polls else []),
            f"  store ptr null, ptr {state}",
            f"  br i1 {long}, label %{apart}, label %{go}",
            f"{apart}:",
            # What holds the arguments may let go of them meanwhile.
            *([] if self.polls else hold),
            "  %saved = call ptr @PyEval_SaveThread()",
            f"  store ptr %saved, ptr {state}",
            f"  br label %{go}",
            f"{go}:",
            f"  %status = call i64 {segment}(ptr %frame)",
            f"  %state = load ptr, ptr {state}",
            "  %held = icmp eq ptr %state, null",
            f"  br i1 %held, label %{after}, label %{back}",
            f"{back}:",
            "  call void @PyEval_RestoreThread(ptr %state)",
            *([] if self.polls else let_go),
            f"  br label %{after}",
            f"{after}:",
            *(let_go if self.polls else []),
        ]
        if self.memory:
            self._give_back()
        # A kernel without memory for its workspace: no other code may go on with what is written in part.
        fine, failed, short_of = (self.function.label() for _ in range(3))
        self.block.lines += [
            "  %worked = icmp eq i64 %status, 0",
            f"  br i1 %worked, label %{fine}, label %{failed}, !prof !9",
            f"{failed}:",
            f"  %asks = icmp eq i64 %status, {REFUSED}",
            f"  %asked = select i1 %asks, ptr inttoptr (i64 {FOR_PLAIN} to ptr), ptr null",
            f"  store ptr %asked, ptr {self.none}",
            f"  %without = and i64 %status, {~(FULL ^ REFUSED | MISSING ^ REFUSED)}",
            f"  %refused = icmp eq i64 %without, {REFUSED}",
            f"  %interrupted = icmp eq i64 %status, {INTERRUPTED}",  # for which Python has an exception
            "  %told = or i1 %refused, %interrupted",
            f"  br i1 %told, label %undo, label %{short_of}",
            f"{short_of}:",
            "  call void @PyErr_SetObject(ptr @jk_workspace_error, ptr @jk_workspace_text)",
            "  br label %undo",
            f"{fine}:",
        ]

    def _give_back(self) -> None:
        """What was lent, if anything was."""
        back, done = self.function.label(), self.function.label()
        lent = self.new(f"load ptr, ptr {self.memory}")
        none = self.new(f"icmp eq ptr {lent}, null")
        self.line(f"  br i1 {none}, label %{done}, label %{back}\n{back}:")
        self.line(f"  call void @{arenas.GIVEN_BACK}(ptr {lent})\n  br label %{done}\n{done}:")


DECLARED = (
    "ptr @PyArray_NewFromDescr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)",
    f"ptr @{arenas.EMPTY}(i32, ptr, ptr, i32)", "ptr @PyArray_Return(ptr)", "void @Py_IncRef(ptr)",
    "void @Py_DecRef(ptr)", "ptr @PyTuple_New(i64)", "ptr @PyEval_SaveThread()", "void @PyEval_RestoreThread(ptr)",
    "i64 @llvm.abs.i64(i64, i1)", f"ptr @{arenas.LENT}(i64)", f"void @{arenas.GIVEN_BACK}(ptr)",
    "void @PyErr_SetObject(ptr, ptr)", "ptr @PyLong_FromLong(i64)", "ptr @PyFloat_FromDouble(double)",
    "ptr @PyBool_FromLong(i64)", "ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)",
    *call_objects.OBJECTS, *objects.DECLARED,
)  # fmt: skip
"""What the function may call."""
KNOWN = (
    "jk_ndarray", "jk_tuple", "jk_none", "jk_workspace_error", "jk_workspace_text",
)  # fmt: skip
"""Objects that the function may refer to, by their addresses."""
