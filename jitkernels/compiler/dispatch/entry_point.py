"""LLVM IR of a compiled entry, the function between CPython and a segment: ``ptr @entry(ptr context, objects, out)``.

The entry checks the guards, loads extents and strides, allocates the results or takes the ``out`` arrays, allocates the
workspace, calls the segment, and returns the result. It returns null where a guard fails (without side effects) or an
exception is set, and `inline_cache.BAILOUT` where the call falls back to the plain function: a written argument
aliases another one, or the segment bailed out before its first write.

The text does not depend on what the segment computes: all segments with the same arguments and results share one entry,
which takes LLVM as long to compile as a segment. Three context slots hold what is the segment's (see `SEGMENT`).
"""

from jitkernels.compiler.codegen.control_flow.signal_polls import FULL, INTERRUPTED, REFUSED
from jitkernels.compiler.dispatch import object_access, result_objects
from jitkernels.compiler.dispatch.argument_checks import ArgumentGuards
from jitkernels.compiler.dispatch.result_allocation import ResultAllocation
from jitkernels.runtime import fp_status, workspace_allocator
from jitkernels.runtime.inline_cache import BAILOUT
from jitkernels.runtime.loading.lazy_link import MISSING

GIL_RELEASE_WORK = 400_000
"""Work, in additions, from which on the entry releases the GIL: about 20 us."""
SEGMENT, MAX_WORK, MAX_WORKSPACE = 0, 1, 2
"""Context slots, relative to the segment's first: its address, the largest work that runs with the GIL held, and the
largest workspace that a call has used, in bytes."""


class EntryEmitter(ArgumentGuards, ResultAllocation):
    """Emits the LLVM IR of an entry."""

    def text(self) -> str:
        """LLVM IR of the entry and of its declarations."""
        self.bailout_slot = self.variable("ptr")
        self._set_bailout(0)
        self.step_objects = object_access.reached(self, self.reach.steps)
        self.leaf_objects = [self._object(argument) for argument in self.arguments]
        self.number_addresses = [
            self._number(argument, found) if argument.number else ""
            for argument, found in zip(self.arguments, self.leaf_objects, strict=True)
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
            self._set_bailout(BAILOUT)
            self._check_written_disjoint()
            self.settle()
            self._set_bailout(0)
        within = None if self.arena.limit is None else self._buffer_offsets()
        if within is not None:
            self.expect(self.new(f"icmp ule i64 {within[1]}, {self.arena.limit}"))
        outs = self._take_results()
        self._allocate_workspace()
        self._call_segment()
        self._raise_flags()
        self._return_results(outs)
        body = "\n".join([*self.function.memory, *self.block.lines, *self.cold])
        named = [
            *(f"jk_dtype_{name}" for name in sorted(self.dtypes)),
            *(f"jk_type_{name}" for name in sorted(self.types)),
        ]
        body = (
            f"define ptr @entry(ptr %context, ptr %objects, ptr %out) nounwind {{\n"
            f"  %frame = alloca [{self.words} x i64], align 64\n{body}\n{self._cleanup()}\nno:\n"
            f"  %none = load ptr, ptr {self.bailout_slot}\n  ret ptr %none\n}}\n"
        )
        inside = body
        for name, text in reversed(object_access.FUNCTIONS.items()):
            if f"@{name}(" in inside:
                inside = text + inside
        if self.raised is not None:
            inside = fp_status.text() + inside
        declared = [
            *(f"@{name} = external global i8" for name in (*named, *KNOWN)),
            *(f"declare {text}" for text in DECLARED if text[text.index("@") : text.index("(") + 1] in inside),
        ]
        weights = '!8 = !{!"branch_weights", i32 1, i32 1000}\n!9 = !{!"branch_weights", i32 1000, i32 1}'
        return "\n".join([*declared, inside + weights, ""])

    def _set_bailout(self, address: int) -> None:
        """Set the pointer that a bailout returns from here on."""
        self.line(f"  store ptr inttoptr (i64 {address} to ptr), ptr {self.bailout_slot}")

    def _allocate_workspace(self) -> None:
        """Allocate the workspace of the segment in one piece: on the stack where small, else from the pool."""
        self.pooled_slot = ""
        begins, total = self._buffer_offsets()
        if total == 0:
            return
        if isinstance(total, int) and total <= workspace_allocator.ON_STACK:
            workspace = self.new(f"ptrtoint ptr {self.variable(f'[{total} x i8], align 64')} to i64")
        else:
            workspace = self._pool_memory(total)
        for buffer, begin in zip(self.arena.buffers, begins, strict=True):
            self.keep(buffer.word, "i64", self.new(f"add i64 {workspace}, {begin}"))

    def _pool_memory(self, total: int | str) -> str:
        """The cache-line-aligned address of `total` bytes; `pooled_slot` holds the pooled block to release, or null."""
        self.pooled_slot = self.variable("ptr")
        on_stack, pooled, resume, allocated = (self.function.label() for _ in range(4))
        self.settle()
        self.line(f"  store ptr null, ptr {self.pooled_slot}")
        small = self.new(f"icmp ule i64 {total}, {workspace_allocator.ON_STACK}")
        self.line(f"  br i1 {small}, label %{on_stack}, label %{pooled}\n{on_stack}:")
        stack = self.new(f"alloca i8, i64 {total}, align 64")
        self.line(f"  br label %{resume}\n{pooled}:")
        with_header = self.new(f"add i64 {total}, {workspace_allocator.HEADER_BYTES}")
        block = self.new(f"call ptr @{workspace_allocator.ALLOCATE}(i64 {with_header})")
        self.require(self.new(f"icmp ne ptr {block}, null"), "undo")
        self.line(f"  store ptr {block}, ptr {self.pooled_slot}")
        most = self.new(f"getelementptr i64, ptr %context, i64 {self.word + MAX_WORKSPACE}")
        before = self.new(f"load i64, ptr {most}")
        more = self.new(f"icmp ugt i64 {total}, {before}")
        self.line(f"  store i64 {self.new(f'select i1 {more}, i64 {total}, i64 {before}')}, ptr {most}")
        aligned = self.new(f"getelementptr i8, ptr {block}, i64 {workspace_allocator.HEADER_BYTES}")
        self.line(f"  br label %{allocated}\n{allocated}:\n  br label %{resume}\n{resume}:")
        begin = self.new(f"phi ptr [ {stack}, %{on_stack} ], [ {aligned}, %{allocated} ]")
        return self.new(f"ptrtoint ptr {begin} to i64")

    def _buffer_offsets(self) -> "tuple[list[int | str], int | str]":
        """The offset of each arena buffer, and the arena's size: constants, or values computed from extents."""
        begins: list[int | str] = []
        ends: list[int | str] = []
        for buffer, lower in zip(self.arena.buffers, self.arena.above, strict=True):
            begin = self._maximum([ends[i] for i in lower])
            size = self.here(buffer.nbytes)
            begins.append(begin)
            if isinstance(begin, int) and size.isdecimal():
                ends.append(begin + int(size))
            else:
                ends.append(self.new(f"add i64 {begin}, {size}") if begin else size)
        return begins, self._maximum(ends)

    def _maximum(self, numbers: "list[int | str]") -> "int | str":
        """The maximum of non-negative numbers; 0 if there are none."""
        known = max((number for number in numbers if isinstance(number, int)), default=0)
        most: int | str = known
        for number in dict.fromkeys(number for number in numbers if isinstance(number, str)):
            if most == 0:
                most = number
                continue
            larger = self.new(f"icmp ugt i64 {number}, {most}")
            most = self.new(f"select i1 {larger}, i64 {number}, i64 {most}")
        return most

    def _call_segment(self) -> None:
        """Call the segment, with the GIL released where its work is long."""
        segment = self.load("ptr", "%context", 8 * (self.word + SEGMENT))
        most = self.load("i64", "%context", 8 * (self.word + MAX_WORK))
        long = self.new(f"icmp sgt i64 {self.here(self.work)}, {most}")
        release, go, restore, after = (self.function.label() for _ in range(4))
        self.after_segment = after
        state, status = self.variable("ptr"), self.variable("i64")
        locks, locked = self._acquire_locks()
        holds = self.polls or bool(locks)
        held = [value for value, argument in zip(self.leaf_objects, self.arguments, strict=True) if not argument.is_own]
        hold = [f"  call void @Py_IncRef(ptr {value})" for value in held]
        let_go = [f"  call void @Py_DecRef(ptr {value})" for value in held]
        self.block.lines += [
            *(hold if holds else []),
            f"  store ptr null, ptr {state}",
            f"  store i64 {REFUSED}, ptr {status}",
            *locked,
            f"  br i1 {long}, label %{release}, label %{go}",
            f"{release}:",
            # Without the GIL the owners of the arguments may drop their references.
            *([] if holds else hold),
            "  %saved = call ptr @PyEval_SaveThread()",
            f"  store ptr %saved, ptr {state}",
            f"  br label %{go}",
            f"{go}:",
            f"  %ended = call i64 {segment}(ptr %frame)",
            f"  store i64 %ended, ptr {status}",
            f"  %state = load ptr, ptr {state}",
            "  %held = icmp eq ptr %state, null",
            f"  br i1 %held, label %{after}, label %{restore}",
            f"{restore}:",
            "  call void @PyEval_RestoreThread(ptr %state)",
            *([] if holds else let_go),
            f"  br label %{after}",
            f"{after}:",
            f"  %status = load i64, ptr {status}",
            *locks,
            *(let_go if holds else []),
        ]
        if self.pooled_slot:
            self._release_workspace()
        self._leave_failed_segment()

    def _leave_failed_segment(self) -> None:
        """Bail out, or raise, where the segment ended early."""
        # A kernel failed to allocate its workspace: raise, as other code must not continue on partial writes.
        fine, failed, short_of = (self.function.label() for _ in range(3))
        self.block.lines += [
            "  %worked = icmp eq i64 %status, 0",
            f"  br i1 %worked, label %{fine}, label %{failed}, !prof !9",
            f"{failed}:",
            f"  %is.bailout = icmp eq i64 %status, {REFUSED}",
            f"  %bailout = select i1 %is.bailout, ptr inttoptr (i64 {BAILOUT} to ptr), ptr null",
            f"  store ptr %bailout, ptr {self.bailout_slot}",
            f"  %without = and i64 %status, {~(FULL ^ REFUSED | MISSING ^ REFUSED)}",
            f"  %refused = icmp eq i64 %without, {REFUSED}",
            f"  %interrupted = icmp eq i64 %status, {INTERRUPTED}",  # for which Python has an exception
            "  %has.exception = or i1 %refused, %interrupted",
            f"  br i1 %has.exception, label %undo, label %{short_of}",
            f"{short_of}:",
            "  call void @PyErr_SetObject(ptr @jk_workspace_error, ptr @jk_workspace_text)",
            "  br label %undo",
            f"{fine}:",
        ]

    def _acquire_locks(self) -> tuple[list[str], list[str]]:
        """What releases the locks of the arguments, and what acquires them; a lock that is not free is a bailout.

        Nothing waits for a lock: calls that hold several would wait for each other.
        """
        steps = self.reach.locks
        if not steps:
            return [], []
        locks, onwards = self.variable(f"[{len(steps)} x ptr]"), self.label()
        stores = [
            f"  %lock{i} = getelementptr ptr, ptr {locks}, i64 {i}\n  store ptr {self.step_objects[step]}, ptr %lock{i}"
            for i, step in enumerate(steps)
        ]
        acquire = [
            *stores,
            f"  %locked = call i1 @jk_acquire(ptr {locks}, i64 {len(steps)})",
            f"  %locks = select i1 %locked, i64 {len(steps)}, i64 0",
            f"  br i1 %locked, label %{onwards}, label %{self.after_segment}, !prof !9",
            f"{onwards}:",
        ]
        return [f"  call void @jk_release(ptr {locks}, i64 %locks)"], acquire

    def _raise_flags(self) -> None:
        """Raise the floating-point flags of failed constants: constant folding leaves no flags at run time."""
        if self.raised is None:
            return
        flags, are_only = str(self.raised[0]), self.raised[1]
        if not are_only:
            flags = self.new(f"or i32 {self.new('call i32 @flags_now()')}, {flags}")
        self.line(f"  call void @flags_become(i32 {flags})")

    def _release_workspace(self) -> None:
        """Return the workspace to the pool, if the call took one."""
        back, done = self.function.label(), self.function.label()
        piece = self.new(f"load ptr, ptr {self.pooled_slot}")
        none = self.new(f"icmp eq ptr {piece}, null")
        self.line(f"  br i1 {none}, label %{done}, label %{back}\n{back}:")
        self.line(f"  call void @{workspace_allocator.RELEASE}(ptr {piece})\n  br label %{done}\n{done}:")


DECLARED = (
    "ptr @PyArray_NewFromDescr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)",
    f"ptr @{workspace_allocator.EMPTY_ARRAY}(i32, ptr, ptr, i32)", "ptr @PyArray_Return(ptr)", "void @Py_IncRef(ptr)",
    "void @Py_DecRef(ptr)", "ptr @PyTuple_New(i64)", "ptr @PyEval_SaveThread()", "void @PyEval_RestoreThread(ptr)",
    "i64 @llvm.abs.i64(i64, i1)", f"ptr @{workspace_allocator.ALLOCATE}(i64)",
    f"void @{workspace_allocator.RELEASE}(ptr)",
    "void @PyErr_SetObject(ptr, ptr)", "ptr @PyLong_FromLong(i64)", "ptr @PyFloat_FromDouble(double)",
    "ptr @PyComplex_FromDoubles(double, double)",
    "ptr @PyBool_FromLong(i64)", "ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)",
    *result_objects.OBJECTS, *object_access.DECLARED,
)  # fmt: skip
"""Functions that an entry may call."""
KNOWN = (
    "jk_ndarray", "jk_tuple", "jk_none", "jk_workspace_error", "jk_workspace_text",
)  # fmt: skip
"""Objects that an entry may refer to by address."""
