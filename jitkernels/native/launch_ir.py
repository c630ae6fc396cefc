"""LLVM IR of the launcher, as text: see `jitkernels.native.launch` for what it does and why."""

from string import Template
from typing import NamedTuple

from jitkernels.native.layout import (
    ALIGNED,
    CONTIGUOUS,
    RECORD_WORDS,
    WRITEABLE,
    Context,
    Offset,
    Record,
    constants,
)

_DECLARATIONS = """
@jk_ndarray = external global i8
@jk_none = external global i8
@jk_bypass = global i64 0
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyArray_Empty(i32, ptr, ptr, i32)

define internal ptr @context_of(ptr %self) alwaysinline {
  %holder = getelementptr i8, ptr %self, i64 $SLOT
  %array = load ptr, ptr %holder
  %words.p = getelementptr i8, ptr %array, i64 $OFFSET_ARRAY_DATA
  %words = load ptr, ptr %words.p
  ret ptr %words
}
"""

_LAUNCH = """
define ptr @jk_launch(ptr %self, ptr %objects, i64 %given) {
  %context = call ptr @context_of(ptr %self)
  %count.p = getelementptr i64, ptr %context, i64 $CONTEXT_COUNT
  %count = load i64, ptr %count.p
  %slow.p = getelementptr i64, ptr %context, i64 $CONTEXT_SLOW
  %slow.function = load ptr, ptr %slow.p
  %as.many = icmp eq i64 %given, %count
  br i1 %as.many, label %try, label %slow, !prof !0
try:
  %call.p = getelementptr i64, ptr %context, i64 $CONTEXT_CALL
  %call = load ptr, ptr %call.p
  %python.p = getelementptr i64, ptr %context, i64 $CONTEXT_PYTHON
  %python = load ptr, ptr %python.p
  %status = call i64 %call(ptr %context, ptr %objects)
  %fine = icmp eq i64 %status, 0
  br i1 %fine, label %kind, label %slow, !prof !0
kind:
  %native = icmp eq ptr %python, @jk_none
  br i1 %native, label %done, label %interpreted, !prof !0
done:
  call void @Py_IncRef(ptr @jk_none)
  ret ptr @jk_none
interpreted:
  %returned = tail call ptr @PyObject_Vectorcall(ptr %python, ptr %objects, i64 %given, ptr null)
  ret ptr %returned
slow:
  %refused = tail call ptr @PyObject_Vectorcall(ptr %slow.function, ptr %objects, i64 %given, ptr null)
  ret ptr %refused
}

define ptr @jk_everyday(ptr %self, ptr %objects, i64 %given, ptr %names) {
start:
  %all = alloca [$MOST_WORDS x ptr]
  %table = call ptr @context_of(ptr %self)
  %table.slow.p = getelementptr i64, ptr %table, i64 $TABLE_SLOW
  %slow.function = load ptr, ptr %table.slow.p
  %most.p = getelementptr i64, ptr %table, i64 $TABLE_INPUTS
  %most = load i64, ptr %most.p
  %bypass = load atomic i64, ptr @jk_bypass monotonic, align 8
  %pinned = icmp ne i64 %bypass, 0
  br i1 %pinned, label %slow, label %arity
arity:
  %unnamed = icmp eq ptr %names, null
  br i1 %unnamed, label %positional, label %keyword
positional:
  %bare = icmp ule i64 %given, %most
  br i1 %bare, label %hash, label %positional.out
positional.out:
  %one.more = add i64 %most, 1
  %has.out = icmp eq i64 %given, %one.more
  %follows.p = getelementptr i64, ptr %table, i64 $TABLE_OUT_FOLLOWS
  %follows = load i64, ptr %follows.p
  %may.follow = icmp ne i64 %follows, 0
  %takes = and i1 %has.out, %may.follow
  br i1 %takes, label %given.out, label %slow
keyword:
  %keywords.p = getelementptr i8, ptr %names, i64 $OFFSET_TUPLE_SIZE
  %keywords = load i64, ptr %keywords.p
  %one.keyword = icmp eq i64 %keywords, 1
  %enough = icmp ule i64 %given, %most
  %right = and i1 %one.keyword, %enough
  br i1 %right, label %keyword.name, label %slow
keyword.name:
  %name.p = getelementptr i8, ptr %names, i64 $OFFSET_TUPLE_ITEMS
  %name = load i64, ptr %name.p
  %out.name.p = getelementptr i64, ptr %table, i64 $TABLE_OUT_NAME
  %out.name = load i64, ptr %out.name.p
  %is.out = icmp eq i64 %name, %out.name
  br i1 %is.out, label %given.out, label %slow
given.out:
  %before.out = phi i64 [ %most, %positional.out ], [ %given, %keyword.name ]
  %out.p = getelementptr ptr, ptr %objects, i64 %before.out
  %out.given = load ptr, ptr %out.p
  %out.none = icmp eq ptr %out.given, @jk_none
  %out.some = select i1 %out.none, ptr null, ptr %out.given
  br label %hash
hash:
  %out = phi ptr [ null, %positional ], [ %out.some, %given.out ]
  %inputs = phi i64 [ %given, %positional ], [ %before.out, %given.out ]
  br label %next.input
next.input:
  %i = phi i64 [ 0, %hash ], [ %i.next, %hashed ]
  %sum = phi i64 [ 0, %hash ], [ %sum.dims, %hashed ]
  %i.more = icmp ult i64 %i, %inputs
  br i1 %i.more, label %input, label %find
input:
  %object.p = getelementptr ptr, ptr %objects, i64 %i
  %object = load ptr, ptr %object.p
  %slot = getelementptr ptr, ptr %all, i64 %i
  store ptr %object, ptr %slot
  %type.p = getelementptr i8, ptr %object, i64 $OFFSET_TYPE
  %type = load ptr, ptr %type.p
  %is.array = icmp eq ptr %type, @jk_ndarray
  br i1 %is.array, label %mix, label %slow
mix:
  %descr.p = getelementptr i8, ptr %object, i64 $OFFSET_ARRAY_DTYPE
  %descr = load i64, ptr %descr.p
  %descr.bits = lshr i64 %descr, 4
  %scaled = mul i64 %sum, 31
  %sum.descr = add i64 %scaled, %descr.bits
  %ndim.p = getelementptr i8, ptr %object, i64 $OFFSET_ARRAY_DIMENSIONS
  %ndim32 = load i32, ptr %ndim.p
  %ndim = zext i32 %ndim32 to i64
  %dims.p = getelementptr i8, ptr %object, i64 $OFFSET_ARRAY_EXTENTS
  %dims = load ptr, ptr %dims.p
  br label %next.dim
next.dim:
  %d = phi i64 [ 0, %mix ], [ %d.next, %dim ]
  %sum.dims = phi i64 [ %sum.descr, %mix ], [ %sum.dim, %dim ]
  %d.more = icmp ult i64 %d, %ndim
  br i1 %d.more, label %dim, label %hashed
dim:
  %dim.p = getelementptr i64, ptr %dims, i64 %d
  %dim.value = load i64, ptr %dim.p
  %dim.scaled = mul i64 %sum.dims, 31
  %sum.dim = add i64 %dim.scaled, %dim.value
  %d.next = add i64 %d, 1
  br label %next.dim
hashed:
  %i.next = add i64 %i, 1
  br label %next.input
find:
  %high = lshr i64 %sum, 12
  %folded = xor i64 %sum, %high
  %bucket = and i64 %folded, $TABLE_MASK
  %place = add i64 %bucket, $TABLE_CONTEXTS
  %context.p = getelementptr ptr, ptr %table, i64 %place
  %context = load ptr, ptr %context.p
  %unknown = icmp eq ptr %context, null
  br i1 %unknown, label %slow, label %known
known:
  %count.p = getelementptr i64, ptr %context, i64 $CONTEXT_COUNT
  %count = load i64, ptr %count.p
  %matches = add i64 %inputs, 1
  %same.count = icmp eq i64 %count, %matches
  br i1 %same.count, label %target, label %slow
target:
  %absent = icmp eq ptr %out, null
  br i1 %absent, label %allocate, label %keep
keep:
  call void @Py_IncRef(ptr %out)
  br label %complete
allocate:
  %o.at = mul i64 %inputs, $RECORD_WORDS
  %o.position = add i64 %o.at, $CONTEXT_RECORDS
  %o.record = getelementptr i64, ptr %context, i64 %o.position
  %o.descr.p = getelementptr i64, ptr %o.record, i64 $RECORD_DTYPE
  %o.descr = load ptr, ptr %o.descr.p
  %o.ndim.p = getelementptr i64, ptr %o.record, i64 $RECORD_DIMENSIONS
  %o.ndim = load i64, ptr %o.ndim.p
  %o.ndim32 = trunc i64 %o.ndim to i32
  %o.dims = getelementptr i64, ptr %o.record, i64 $RECORD_EXTENTS
  call void @Py_IncRef(ptr %o.descr)
  %fresh = call ptr @PyArray_Empty(i32 %o.ndim32, ptr %o.dims, ptr %o.descr, i32 0)
  %no.memory = icmp eq ptr %fresh, null
  br i1 %no.memory, label %error, label %complete
error:
  ret ptr null
complete:
  %result = phi ptr [ %out, %keep ], [ %fresh, %allocate ]
  %last = getelementptr ptr, ptr %all, i64 %inputs
  store ptr %result, ptr %last
  %python.p = getelementptr i64, ptr %context, i64 $CONTEXT_PYTHON
  %python = load ptr, ptr %python.p
  %native = icmp eq ptr %python, @jk_none
  br i1 %native, label %try, label %drop
try:
  %call.p = getelementptr i64, ptr %context, i64 $CONTEXT_CALL
  %call = load ptr, ptr %call.p
  %status = call i64 %call(ptr %context, ptr %all)
  %fine = icmp eq i64 %status, 0
  br i1 %fine, label %done, label %drop
done:
  ret ptr %result
drop:
  call void @Py_DecRef(ptr %result)
  br label %slow
slow:
  %answer = call ptr @PyObject_Vectorcall(ptr %slow.function, ptr %objects, i64 %given, ptr %names)
  ret ptr %answer
}
"""


class _Writer:
    """Straight-line IR with a branch to ``%no`` at each check."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.count = 0

    def load(self, kind: str, base: str, offset: int) -> str:
        """A value at a byte offset from a pointer."""
        self.count += 1
        n = self.count
        self.lines.append(f"  %p{n} = getelementptr i8, ptr {base}, i64 {int(offset)}")
        self.lines.append(f"  %v{n} = load {kind}, ptr %p{n}")
        return f"%v{n}"

    def compute(self, expression: str) -> str:
        self.count += 1
        self.lines.append(f"  %v{self.count} = {expression}")
        return f"%v{self.count}"

    def require(self, condition: str) -> None:
        self.count += 1
        self.lines.append(f"  br i1 {condition}, label %b{self.count}, label %no, !prof !0")
        self.lines.append(f"b{self.count}:")


class Pattern(NamedTuple):
    """What the checks of a signature look like, whatever its sizes: one object serves each pattern.

    Per array its dimensions, whether it is an output, and whether it may be the same memory as another;
    then the number of words after the arrays, and whether there is a C function to call at all.
    """

    dimensions: tuple[int, ...]
    outputs: tuple[bool, ...]
    in_place: tuple[bool, ...]
    words: int
    native: bool


def pattern_text(pattern: Pattern) -> str:
    """``i64 @entry(context, objects)``: check every argument, call, return 0; anything else is for Python."""
    writer = _Writer()
    arrays = [
        _check_array(writer, number, pattern.dimensions[number], pattern.outputs[number])
        for number in range(len(pattern.dimensions))
    ]
    for i, output in enumerate(pattern.outputs):
        for j in range(len(arrays)):
            if output and i != j and not (pattern.outputs[j] and j < i):
                _check_apart(writer, arrays[i], arrays[j], pattern.in_place[i] and pattern.in_place[j])
    if pattern.native:
        first = 8 * (Context.RECORDS + RECORD_WORDS * len(arrays))
        words = [writer.load("i64", "%context", first + 8 * i) for i in range(pattern.words)]
        passed = ", ".join(f"i64 {value}" for value in [*(address for address, _ in arrays), *words])
        entry = writer.load("ptr", "%context", 8 * Context.ENTRY)
        held = writer.compute(f"icmp eq i64 {writer.load('i64', '%context', 8 * Context.LONG)}, 0")
        writer.lines += [
            f"  br i1 {held}, label %short, label %long, !prof !0",
            "short:",
            f"  %quick = tail call i64 {entry}({passed})",
            "  ret i64 %quick",
            "long:",
            "  %state = call ptr @PyEval_SaveThread()",
            f"  %status = call i64 {entry}({passed})",
            "  call void @PyEval_RestoreThread(ptr %state)",
            "  ret i64 %status",
        ]
    else:
        writer.lines.append("  ret i64 0")
    body = "\n".join(writer.lines)
    return f"""@jk_ndarray = external global i8
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
define i64 @entry(ptr %context, ptr %objects) {{
start:
{body}
no:
  ret i64 1
}}
!0 = !{{!"branch_weights", i32 1000, i32 1}}
"""


def _check_array(writer: _Writer, number: int, dimensions: int, output: bool) -> tuple[str, str]:
    """Check one argument against its record; returns the values of its address and its size in bytes."""
    record = 8 * (Context.RECORDS + RECORD_WORDS * number)
    flags = ALIGNED | CONTIGUOUS | (WRITEABLE if output else 0)
    array = writer.load("ptr", "%objects", 8 * number)
    writer.require(writer.compute(f"icmp eq ptr {writer.load('ptr', array, Offset.TYPE)}, @jk_ndarray"))
    masked = writer.compute(f"and i32 {writer.load('i32', array, Offset.ARRAY_FLAGS)}, {flags}")
    wanted = writer.load("i64", "%context", record + 8 * Record.DTYPE)
    checks = [
        f"icmp eq i64 {writer.load('i64', array, Offset.ARRAY_DTYPE)}, {wanted}",
        f"icmp eq i32 {masked}, {flags}",
        f"icmp eq i32 {writer.load('i32', array, Offset.ARRAY_DIMENSIONS)}, {dimensions}",
    ]
    for check in checks:
        writer.require(writer.compute(check))
    extents = writer.load("ptr", array, Offset.ARRAY_EXTENTS)
    for i in range(dimensions):
        want = writer.load("i64", "%context", record + 8 * (Record.EXTENTS + i))
        writer.require(writer.compute(f"icmp eq i64 {writer.load('i64', extents, 8 * i)}, {want}"))
    return writer.load("i64", array, Offset.ARRAY_DATA), writer.load(
        "i64", "%context", record + 8 * Record.BYTES
    )


def _check_apart(writer: _Writer, one: tuple[str, str], other: tuple[str, str], may_be_same: bool) -> None:
    """Require that two arrays do not overlap, unless they begin together where that is allowed.

    Two ranges are apart when the distance between them, as an unsigned number, is at least the size of the
    first one and at most the address space less the size of the second: one subtraction, two comparisons.
    """
    distance = writer.compute(f"sub i64 {other[0]}, {one[0]}")
    back = writer.compute(f"sub i64 {one[0]}, {other[0]}")
    after = writer.compute(f"icmp uge i64 {distance}, {one[1]}")
    before = writer.compute(f"icmp uge i64 {back}, {other[1]}")
    accepted = writer.compute(f"and i1 {after}, {before}")
    if may_be_same:
        same = writer.compute(f"icmp eq i64 {distance}, 0")
        accepted = writer.compute(f"or i1 {accepted}, {same}")
    writer.require(accepted)


def text(slot: int) -> str:
    """The module of ``jk_launch`` and ``jk_everyday``; `slot` is the offset of the context in a Holder."""
    module = _DECLARATIONS + _LAUNCH + "\ndefine i64 @entry() {\n  ret i64 0\n}\n"
    module += '!0 = !{!"branch_weights", i32 1000, i32 1}\n'
    return Template(module).substitute(constants(), SLOT=slot)
