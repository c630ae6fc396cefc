"""Outlined slow paths of vector code: functions over numbers in memory, for any number of lanes.

A slow path is a loop that is called with addresses and a mask, so that almost none of it is in the calling code.
"""

from collections.abc import Sequence

from jitkernels.codegen.python.types import BOOL, Type, register

OUTLINED_VECTOR_BYTES = 64
"""Bytes of the vectors of an outlined function, which processes more lanes in a loop."""
MASK = 64
"""Bits of the mask word, unless there are more lanes."""


def lanes_of(kinds: Sequence[Type], lanes: int) -> int:
    """The lanes that an outlined function processes at a time."""
    return min([lanes, *(OUTLINED_VECTOR_BYTES // kind.size for kind in kinds)])


def each(name: str, called: str, kinds: Sequence[Type], result: Type) -> str:
    """An outlined function of (mask, lanes, arguments, results), all addresses but lanes: one active lane at a time."""
    read, passed = _read(kinds, 1)
    return f"""define private void {name}(ptr %mask, i64 %lanes, {_pointers(kinds, result)}) noinline nounwind {{
start:
  br label %word
word:
  %first = phi i64 [ 0, %start ], [ %first.next, %after ]
  %more = icmp slt i64 %first, %lanes
  br i1 %more, label %look, label %done
look:
  %byte = lshr i64 %first, 3
  %mask.at = getelementptr i8, ptr %mask, i64 %byte
  %whole = load i64, ptr %mask.at
  br label %lane
lane:
  %bits = phi i64 [ %whole, %look ], [ %left, %some ]
  %wanted = icmp ne i64 %bits, 0
  br i1 %wanted, label %some, label %after
some:
  %place = call i64 @llvm.cttz.i64(i64 %bits, i1 true)
  %i = add i64 %first, %place
{read}
  %found = call {result.llvm} {called}({passed})
{_written(result, 1)}
  %below = add i64 %bits, -1
  %left = and i64 %bits, %below
  br label %lane
after:
  %first.next = add i64 %first, 64
  br label %word
done:
  ret void
}}"""


def in_vectors(name: str, called: str, kinds: Sequence[Type], result: Type, lanes: int) -> str:
    """The same by vectors: a vector without active lanes is skipped."""
    read, passed = _read(kinds, lanes)
    word = f"i{max(lanes, 8)}"
    return f"""define private void {name}(ptr %mask, i64 %lanes, {_pointers(kinds, result)}) noinline nounwind {{
start:
  br label %look
look:
  %i = phi i64 [ 0, %start ], [ %next, %after ]
  %byte = lshr i64 %i, 3
  %mask.at = getelementptr i8, ptr %mask, i64 %byte
  %bits = load {word}, ptr %mask.at, align 1
  %wanted = icmp ne {word} %bits, 0
  br i1 %wanted, label %some, label %after
some:
{read}
  %found = call {register(result, lanes)} {called}({passed})
{_written(result, lanes)}
  br label %after
after:
  %next = add i64 %i, {lanes}
  %more = icmp slt i64 %next, %lanes
  br i1 %more, label %look, label %done
done:
  ret void
}}"""


def memory(kind: Type, lanes: int) -> str:
    """The LLVM type of numbers in memory."""
    return kind.memory if lanes == 1 else f"<{lanes} x {kind.memory}>"


def _pointers(kinds: Sequence[Type], result: Type) -> str:
    arguments = [f"ptr %a{i}" for i in range(len(kinds))]
    return ", ".join([*arguments, *(f"ptr %r{i}" for i in range(len(result.parts or (result,))))])


def _read(kinds: Sequence[Type], lanes: int) -> tuple[str, str]:
    """Instructions that load the arguments at index %i, and their values."""
    lines, passed = [], []
    for i, kind in enumerate(kinds):
        held, wanted = memory(kind, lanes), register(kind, lanes)
        value = f"%value{i}"
        lines += [
            f"  %from{i} = getelementptr {kind.memory}, ptr %a{i}, i64 %i",
            f"  {value} = load {held}, ptr %from{i}, align {kind.size}",
        ]
        if kind == BOOL:
            lines.append(f"  {value}.bit = trunc {held} {value} to {wanted}")
            value += ".bit"
        passed.append(f"{wanted} {value}")
    return "\n".join(lines), ", ".join(passed)


def _written(result: Type, lanes: int) -> str:
    """Instructions that store %found at index %i."""
    lines = []
    for i, kind in enumerate(result.parts or (result,)):
        held, value = memory(kind, lanes), "%found"
        if result.parts:
            value = f"%part{i}"
            lines.append(f"  {value} = extractvalue {register(result, lanes)} %found, {i}")
        if kind == BOOL:
            lines.append(f"  {value}.byte{i} = zext {register(kind, lanes)} {value} to {held}")
            value += f".byte{i}"
        lines += [
            f"  %to{i} = getelementptr {kind.memory}, ptr %r{i}, i64 %i",
            f"  store {held} {value}, ptr %to{i}, align {kind.size}",
        ]
    return "\n".join(lines)
