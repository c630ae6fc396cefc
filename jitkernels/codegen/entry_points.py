"""LLVM IR of a range kernel's entry points: the C entry, its range function, parallel region, workspace, status.

Written as text and not with a builder because it is part of the cache key that every warm start computes.
"""

from typing import NamedTuple

from jitkernels.codegen.workspace_memory import SIZED, integers, part
from jitkernels.core import dtypes

STACK_BITS = 23
"""Stacks are usually 8 MB apart."""
MAX_MEMBERS = 64
"""The most threads of a team kernel."""


class RangeExtent(NamedTuple):
    """The extent of a range: the product of some integer arguments, by their indices, times `splits`."""

    arguments: tuple[int, ...]
    splits: int = 1

    def value(self) -> tuple[str, list[str]]:
        """The extent as an IR value, and the instructions that compute it."""
        value, *factors = [f"%a{i}" for i in self.arguments] + [str(self.splits)] * (self.splits > 1)
        lines = []
        for number, factor in enumerate(factors):
            lines.append(f"  %product{number} = mul nsw i64 {value}, {factor}")
            value = f"%product{number}"
        return value, lines


class Blocks(NamedTuple):
    """How threads share a range out: in blocks of `least` elements, or larger ones where more than `most` would be."""

    least: int
    most: int = 0

    def size(self, extent: str) -> tuple[str, str, str, list[str]]:
        """The elements of a block, twice that and one less, as IR values, and the instructions that compute them."""
        least, most = self
        if not most:
            return str(least), str(2 * least), str(least - 1), []
        lines = [
            f"  %rounded = add i64 {extent}, {most - 1}",
            f"  %share = sdiv i64 %rounded, {most}",
            f"  %block = call i64 @llvm.smax.i64(i64 %share, i64 {least})",
            "  %double = add i64 %block, %block",
            "  %less_one = add i64 %block, -1",
        ]
        return "%block", "%double", "%less_one", lines


def types_of(arguments: tuple[str, ...]) -> list[str]:
    """LLVM types of C arguments."""
    return [dtypes.c_type(argument).llvm for argument in arguments]


def ir(
    arguments: tuple[str, ...],
    *,
    extent: RangeExtent,
    blocks: Blocks | None,
    workspace: int,
    no_memory: int,
    check: bool,
    together: bool = False,
) -> str:
    """Return the visible functions around ``@body`` (and ``@check``), which return a status.

    ``i64 @entry(arguments)`` is the kernel: it checks, forks threads if they pay, and runs the whole range. ``i64
    @entry_range(arguments, begin, end)`` runs a part on the calling thread, for other generated code. It checks
    nothing: ``i64 @entry_check(arguments)`` does, for callers of ranges of a kernel with a check. `blocks` are those of
    threads, which share the range out; None if there is one thread. `workspace` is in bytes, or `SIZED`. For team
    kernels (`together`), ``i64 @members(integer arguments, begin, end)`` returns how many threads pay; `_group`
    documents their arguments.
    """
    kinds = types_of(arguments)
    names = [f"{kind} %a{i}" for i, kind in enumerate(kinds)]
    whole, product = extent.value()
    passed = ", ".join(names)
    scratch = ["ptr"] if workspace else []
    group = ["ptr", "i64", "i64"] if together else []
    lines = [f"declare i64 @body({', '.join([*kinds, *scratch, 'i64', 'i64', *group])})"]
    if workspace == SIZED:
        lines += [f"declare i64 @needed({', '.join([*integers(kinds), 'i64', 'i64', *group[2:]])})"]
    if check:
        lines += [f"declare i64 @check({', '.join(kinds)})", *_visible_check(names)]
    lines += [f"define i64 @entry({passed}) {{", "start:", *_call_check(passed, check), "run:", *product]
    if blocks is not None:
        lines += _team(kinds, names, whole, blocks)
    if together:
        lines += [
            f"  %worth = call i64 @members({', '.join([*integers(names), 'i64 0', f'i64 {whole}'])})",
            f"  %wanted = call i64 @llvm.smin.i64(i64 %worth, i64 {MAX_MEMBERS})",
            "  %team = call i64 @jk_team(i64 %wanted)",
            f"  %done = tail call i64 @together({passed}, i64 0, i64 {whole}, i64 %team)",
        ]
    else:
        lines += [f"  %done = tail call i64 @entry_range({passed}, i64 0, i64 {whole})"]
    lines += ["  ret i64 %done", "}"]
    if together:
        lines += _range(names, workspace, together=True)
        lines += part([*names, "i64 %team"], workspace, no_memory, "@group")
        lines += _group(kinds, names, scratch)
    elif workspace:
        lines += [*_range(names, workspace, together=False), *part(names, workspace, no_memory, "@body")]
    else:
        lines += _plain_range(passed)
    if blocks is not None:
        work = f"@part({passed}, i64 %begin, i64 %end, i64 %number)"
        lines += _region(kinds, extent, blocks, work if workspace else f"@entry_range({passed}, i64 %begin, i64 %end)")
    return "\n".join(lines)


def _call_check(passed: str, check: bool) -> list[str]:
    """Return the instructions before ``run``: a status of the check other than 0 is returned."""
    if not check:
        return ["  br label %run"]
    return [
        f"  %status = call i64 @check({passed})",
        "  %fine = icmp eq i64 %status, 0",
        "  br i1 %fine, label %run, label %refuse",
        "refuse:",
        "  ret i64 %status",
    ]


def _visible_check(names: list[str]) -> list[str]:
    passed = ", ".join(names)
    return [f"define i64 @entry_check({passed}) {{", f"  %status = call i64 @check({passed})", "  ret i64 %status", "}"]


def _plain_range(passed: str) -> list[str]:
    """``@entry_range`` of a kernel without a workspace: the body alone, as each call more is a nanosecond."""
    return [
        f"define i64 @entry_range({passed}, i64 %begin, i64 %end) {{",
        f"  %status = call i64 @body({passed}, i64 %begin, i64 %end)",
        "  ret i64 %status",
        "}",
    ]


def _range(names: list[str], workspace: int, *, together: bool) -> list[str]:
    """``@entry_range``: one thread's part, whose workspace slot is its stack address.

    For team kernels it is ``@together`` with a team of one.
    """
    passed, team = ", ".join(names), ", i64 %team" if together else ""
    symbol = "define internal i64 @together" if together else "define i64 @entry_range"
    lines = [f"{symbol}({passed}, i64 %begin, i64 %end{team}) {{"]
    slot = "0"
    if workspace:
        slot = "%stack"
        lines = ["declare ptr @llvm.frameaddress.p0(i32 immarg)", *lines]
        lines += ["  %frame = call ptr @llvm.frameaddress.p0(i32 0)", "  %address = ptrtoint ptr %frame to i64"]
        lines += [f"  %stack = lshr i64 %address, {STACK_BITS}"]
    lines += [
        f"  %done = tail call i64 @part({passed}{team}, i64 %begin, i64 %end, i64 {slot})",
        "  ret i64 %done",
        "}",
    ]
    if together:
        lines += [
            f"define i64 @entry_range({passed}, i64 %begin, i64 %end) {{",
            f"  %done = tail call i64 @together({passed}, i64 %begin, i64 %end, i64 1)",
            "  ret i64 %done",
            "}",
        ]
    return lines


def _group(kinds: list[str], names: list[str], scratch: list[str]) -> list[str]:
    """``@group``: run the body once per thread of a team, concurrently as far as threads arrive.

    All threads get the same range and workspace, and zeroed progress words: one cache line for all, and one for each
    (`jitkernels.microkernels.team_barrier`). They are numbered.
    """
    own = [*names, "i64 %team", *(f"{kind} %area" for kind in scratch), "i64 %begin", "i64 %end"]
    arguments = [*names, *own[len(names) + 1 :]]  # all but the team
    fields = [kind.split()[0] for kind in arguments] + ["ptr", "i64"]
    structure = "{ " + ", ".join(fields) + " }"
    store, load = [], []
    for i, name in enumerate([*arguments, "ptr %words"]):
        at = f"getelementptr {structure}, ptr %shared, i32 0, i32 {i}"
        store += [f"  %to{i} = {at}", f"  store {name}, ptr %to{i}"]
        kind, value = name.split()
        load += [f"  %from{i} = {at}", f"  {value} = load {kind}, ptr %from{i}"]
    last = f"getelementptr {structure}, ptr %shared, i32 0, i32 {len(fields) - 1}"
    passed = ", ".join([*arguments, "ptr %words"])
    return f"""declare i64 @llvm.smin.i64(i64, i64)
declare i64 @jk_team(i64)
declare void @jk_parallel(ptr, ptr, i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i64 @members({", ".join([*integers(kinds), "i64", "i64"])})
define internal i64 @group({", ".join(own)}) {{
start:
  %words = alloca [{8 * (1 + MAX_MEMBERS)} x i64], align 64
  %shared = alloca {structure}
  %several = icmp sgt i64 %team, 1
  br i1 %several, label %fork, label %alone
alone:
  %status = call i64 @body({passed}, i64 0, i64 1)
  ret i64 %status
fork:
  %lines = add i64 %team, 1
  %bytes = shl i64 %lines, 6
  call void @llvm.memset.p0.i64(ptr align 64 %words, i8 0, i64 %bytes, i1 false)
{chr(10).join(store)}
  %outcome = {last}
  store i64 0, ptr %outcome
  call void @jk_parallel(ptr @member, ptr %shared, i64 %team, i64 %team)
  %joined = load i64, ptr %outcome
  ret i64 %joined
}}
define internal void @member(ptr %shared, i64 %number, i64 %members) {{
start:
{chr(10).join(load)}
  %status = call i64 @body({passed}, i64 %number, i64 %members)
  %bad = icmp ne i64 %status, 0
  br i1 %bad, label %report, label %done
report:
  %outcome = {last}
  store atomic i64 %status, ptr %outcome monotonic, align 8
  br label %done
done:
  ret void
}}""".splitlines()


def _team(kinds: list[str], names: list[str], extent: str, blocks: Blocks) -> list[str]:
    """Fork a parallel region if the runtime grants several threads and each gets two blocks."""
    structure = "{ " + ", ".join([*kinds, "i64"]) + " }"
    _, double, _, computed = blocks.size(extent)
    lines = [
        *computed,
        f"  %wanted = sdiv i64 {extent}, {double}",
        "  %team = call i64 @jk_team(i64 %wanted)",
        "  %several = icmp sgt i64 %team, 1",
        "  br i1 %several, label %fork, label %serial",
        "fork:",
        f"  %shared = alloca {structure}",
    ]
    for i, name in enumerate(names):
        lines += [
            f"  %field{i} = getelementptr {structure}, ptr %shared, i32 0, i32 {i}",
            f"  store {name}, ptr %field{i}",
        ]
    return [
        *lines,
        f"  %outcome = getelementptr {structure}, ptr %shared, i32 0, i32 {len(names)}",
        "  store i64 0, ptr %outcome",
        "  call void @jk_parallel(ptr @region, ptr %shared, i64 %team, i64 %team)",
        "  %joined = load i64, ptr %outcome",
        "  ret i64 %joined",
        "serial:",
    ]


def _region(kinds: list[str], extent: RangeExtent, blocks: Blocks, work: str) -> list[str]:
    """``@region``: one thread's part of the range, a run of whole blocks, by a call of `work`.

    The thread's number is its workspace slot.
    """
    structure = "{ " + ", ".join([*kinds, "i64"]) + " }"
    lines = ["declare i64 @jk_team(i64)", "declare void @jk_parallel(ptr, ptr, i64, i64)"]
    lines += ["define internal void @region(ptr %shared, i64 %number, i64 %parts) {", "start:"]
    for i, kind in enumerate(kinds):
        lines += [
            f"  %field{i} = getelementptr {structure}, ptr %shared, i32 0, i32 {i}",
            f"  %a{i} = load {kind}, ptr %field{i}",
        ]
    whole, product = extent.value()
    block, _, less_one, computed = blocks.size(whole)
    return [
        *lines,
        *product,
        *computed,
        f"""  %padded = add i64 {whole}, {less_one}
  %blocks = sdiv i64 %padded, {block}
  %first = mul i64 %number, %blocks
  %after = add i64 %first, %blocks
  %low = sdiv i64 %first, %parts
  %high = sdiv i64 %after, %parts
  %begin = mul i64 %low, {block}
  %stop = mul i64 %high, {block}
  %over = icmp sgt i64 %stop, {whole}
  %end = select i1 %over, i64 {whole}, i64 %stop
  %some = icmp slt i64 %begin, %end
  br i1 %some, label %work, label %done
work:
  %status = call i64 {work}
  %bad = icmp ne i64 %status, 0
  br i1 %bad, label %report, label %done
report:
  %outcome = getelementptr {structure}, ptr %shared, i32 0, i32 {len(kinds)}
  store atomic i64 %status, ptr %outcome monotonic, align 8
  br label %done
done:
  ret void
}}""",
    ]
