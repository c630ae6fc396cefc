"""LLVM IR of ``@part``, which runs the body of a range kernel with its workspace: on the stack, or cached in slots."""

from jitkernels.codegen import heap_memory

SLOTS = 64
"""Workspaces that an object caches. A part finds its slot by its number or by its stack address."""
STACK_BYTES = 40960
"""Bytes of the largest workspace on the stack, which costs nothing and cannot fail."""
SIZED = -1
"""A workspace of dynamic size, which ``i64 @needed(integer arguments, begin, end)`` returns."""


def part(names: list[str], workspace: int, no_memory: int, body: str) -> list[str]:
    """``@part``: run the body on begin..end with workspace `slot`.

    A small workspace lies on the stack. A large one is taken from its slot by an atomic exchange, so that two Python
    threads inside one entry never share it: the second finds null and allocates its own, and the later one to finish
    frees.
    """
    passed = ", ".join(names)
    if not workspace:
        return [
            f"define internal i64 @part({passed}, i64 %begin, i64 %end, i64 %slot) {{",
            f"  %status = call i64 {body}({passed}, i64 %begin, i64 %end)",
            "  ret i64 %status",
            "}",
        ]
    if workspace == SIZED or workspace > heap_memory.LARGE_BYTES:
        needed = f"call i64 @needed({', '.join([*integers(names), 'i64 %begin', 'i64 %end'])})"
        return _sized_part(passed, needed if workspace == SIZED else f"add i64 {workspace}, 0", no_memory, body)
    if workspace <= STACK_BYTES:
        return [
            f"define internal i64 @part({passed}, i64 %begin, i64 %end, i64 %slot) {{",
            f"  %area = alloca [{workspace} x i8], align 64",
            f"  %status = call i64 {body}({passed}, ptr %area, i64 %begin, i64 %end)",
            "  ret i64 %status",
            "}",
        ]
    return f"""@slots = internal global [{SLOTS} x ptr] zeroinitializer
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
define internal i64 @part({passed}, i64 %begin, i64 %end, i64 %slot) {{
start:
  %wrapped = urem i64 %slot, {SLOTS}
  %place = getelementptr ptr, ptr @slots, i64 %wrapped
  %kept = atomicrmw xchg ptr %place, ptr null acq_rel
  %missing = icmp eq ptr %kept, null
  br i1 %missing, label %allocate, label %use
allocate:
  %fresh = call ptr @aligned_alloc(i64 64, i64 {-(-workspace // 64) * 64})
  %failed = icmp eq ptr %fresh, null
  br i1 %failed, label %refuse, label %use
refuse:
  ret i64 {no_memory}
use:
  %area = phi ptr [ %kept, %start ], [ %fresh, %allocate ]
  %status = call i64 {body}({passed}, ptr %area, i64 %begin, i64 %end)
  %other = atomicrmw xchg ptr %place, ptr %area acq_rel
  %alone = icmp eq ptr %other, null
  br i1 %alone, label %done, label %drop
drop:
  call void @free(ptr %other)
  br label %done
done:
  ret i64 %status
}}""".splitlines()


def integers(arguments: list[str]) -> list[str]:
    return [argument for argument in arguments if argument.startswith("i64")]


def _sized_part(passed: str, needed: str, no_memory: int, body: str) -> list[str]:
    """The same of a size that is `needed`: a block too small is replaced, and a large one is not cached here."""
    return f"""@slots = internal global [{SLOTS} x ptr] zeroinitializer
{heap_memory.TEXT}define internal i64 @part({passed}, i64 %begin, i64 %end, i64 %slot) {{
start:
  %wanted = {needed}
  %padded = add i64 %wanted, {heap_memory.HEADER_BYTES + 63}
  %bytes = and i64 %padded, -64
  %wrapped = urem i64 %slot, {SLOTS}
  %place = getelementptr ptr, ptr @slots, i64 %wrapped
  %kept = atomicrmw xchg ptr %place, ptr null acq_rel
  %missing = icmp eq ptr %kept, null
  br i1 %missing, label %allocate, label %measure
measure:
  %room = load i64, ptr %kept
  %fits = icmp sge i64 %room, %bytes
  br i1 %fits, label %use, label %exchange
exchange:
  call void @jk_heap_release(ptr %kept)
  br label %allocate
allocate:
  %fresh = call ptr @jk_heap_block(i64 %bytes)
  %failed = icmp eq ptr %fresh, null
  br i1 %failed, label %refuse, label %use
refuse:
  ret i64 {no_memory}
use:
  %whole = phi ptr [ %kept, %measure ], [ %fresh, %allocate ]
  %area = getelementptr i8, ptr %whole, i64 {heap_memory.HEADER_BYTES}
  %status = call i64 {body}({passed}, ptr %area, i64 %begin, i64 %end)
  %size = load i64, ptr %whole
  %large = icmp sgt i64 %size, {heap_memory.LARGE_BYTES}
  br i1 %large, label %drop, label %keep
keep:
  %other = atomicrmw xchg ptr %place, ptr %whole acq_rel
  %alone = icmp eq ptr %other, null
  br i1 %alone, label %done, label %drop
drop:
  %dropped = phi ptr [ %whole, %use ], [ %other, %keep ]
  call void @jk_heap_release(ptr %dropped)
  br label %done
done:
  ret i64 %status
}}""".splitlines()
