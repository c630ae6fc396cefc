"""LLVM IR of a kernel's argument checks and call: one object per pattern of arguments."""

from typing import NamedTuple

from jitkernels.runtime.abi_layout import (
    ALIGNED,
    CONTIGUOUS,
    DESCRIPTOR_WORDS,
    DTYPE_MASK,
    DTYPE_WORD,
    WRITEABLE,
    ArrayDescriptor,
    Context,
    Offset,
)


class _CheckWriter:
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

    def require_dtype(self, actual: str, expected: str) -> None:
        """Require equal dtypes of two objects: an unpickled array has another dtype object than NumPy's own."""
        same = self.compute(f"icmp eq ptr {actual}, {expected}")
        other, go = f"o{self.count}", f"g{self.count}"
        self.lines.append(f"  br i1 {same}, label %{go}, label %{other}, !prof !0\n{other}:")
        own, words = (
            self.compute(f"and i64 {self.load('i64', dtype, DTYPE_WORD)}, {DTYPE_MASK}") for dtype in (actual, expected)
        )
        equal = self.compute(f"icmp eq i64 {own}, {words}")
        self.lines.append(f"  br i1 {equal}, label %{go}, label %no\n{go}:")


class Pattern(NamedTuple):
    """A signature without sizes: one object of compiled checks serves each pattern.

    Per array: its dimensions, whether it is an output, and whether it may alias another; then the number of words
    after the arrays, and whether there is a C function to call.
    """

    dimensions: tuple[int, ...]
    outputs: tuple[bool, ...]
    in_place: tuple[bool, ...]
    words: int
    native: bool


def pattern_text(pattern: Pattern) -> str:
    """IR of ``i64 @entry(context, objects)``: check every argument, call, return 0; 1 if Python must serve the call."""
    writer = _CheckWriter()
    arrays = [
        _check_array(writer, number, pattern.dimensions[number], pattern.outputs[number])
        for number in range(len(pattern.dimensions))
    ]
    for i, output in enumerate(pattern.outputs):
        for j in range(len(arrays)):
            if output and i != j and not (pattern.outputs[j] and j < i):
                may_be_same = pattern.in_place[i] and pattern.in_place[j] and not pattern.outputs[j]
                _check_disjoint(writer, arrays[i], arrays[j], may_be_same)
    if pattern.native:
        first = 8 * (Context.DESCRIPTORS + DESCRIPTOR_WORDS * len(arrays))
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


def _check_array(writer: _CheckWriter, number: int, dimensions: int, output: bool) -> tuple[str, str]:
    """Check one argument against its descriptor; returns the values of its address and its size in bytes."""
    descriptor = 8 * (Context.DESCRIPTORS + DESCRIPTOR_WORDS * number)
    flags = ALIGNED | CONTIGUOUS | (WRITEABLE if output else 0)
    array = writer.load("ptr", "%objects", 8 * number)
    writer.require(writer.compute(f"icmp eq ptr {writer.load('ptr', array, Offset.TYPE)}, @jk_ndarray"))
    masked = writer.compute(f"and i32 {writer.load('i32', array, Offset.ARRAY_FLAGS)}, {flags}")
    wanted = writer.load("ptr", "%context", descriptor + 8 * ArrayDescriptor.DTYPE)
    writer.require_dtype(writer.load("ptr", array, Offset.ARRAY_DTYPE), wanted)
    checks = [
        f"icmp eq i32 {masked}, {flags}",
        f"icmp eq i32 {writer.load('i32', array, Offset.ARRAY_DIMENSIONS)}, {dimensions}",
    ]
    for check in checks:
        writer.require(writer.compute(check))
    extents = writer.load("ptr", array, Offset.ARRAY_EXTENTS)
    for i in range(dimensions):
        want = writer.load("i64", "%context", descriptor + 8 * (ArrayDescriptor.EXTENTS + i))
        writer.require(writer.compute(f"icmp eq i64 {writer.load('i64', extents, 8 * i)}, {want}"))
    address = writer.load("i64", array, Offset.ARRAY_DATA)
    size = writer.load("i64", "%context", descriptor + 8 * ArrayDescriptor.BYTES)
    return address, size


def _check_disjoint(writer: _CheckWriter, first: tuple[str, str], second: tuple[str, str], may_be_same: bool) -> None:
    """Require that two arrays are disjoint, or begin at the same address where exact aliasing is allowed.

    Two ranges are disjoint when the distance between them, as an unsigned number, is at least the size of the first
    one and at most the address space less the size of the second: one subtraction, two comparisons.
    """
    distance = writer.compute(f"sub i64 {second[0]}, {first[0]}")
    back = writer.compute(f"sub i64 {first[0]}, {second[0]}")
    after = writer.compute(f"icmp uge i64 {distance}, {first[1]}")
    before = writer.compute(f"icmp uge i64 {back}, {second[1]}")
    accepted = writer.compute(f"and i1 {after}, {before}")
    if may_be_same:
        same = writer.compute(f"icmp eq i64 {distance}, 0")
        accepted = writer.compute(f"or i1 {accepted}, {same}")
    writer.require(accepted)
