"""Functions of numbers called in many lanes, for tests of what they give there."""

import ctypes
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from translated import Function

from jitkernels import dtypes
from jitkernels.native import load
from jitkernels.native.ir import IRSource
from jitkernels.native.language.alone import externals
from jitkernels.native.language.lanes import Definition, Library
from jitkernels.native.language.types import NUMBERS, register

Array = np.ndarray[Any, Any]
LANES = (1, 4, 8, 16, 32)
_built = itertools.count()


def mapped(symbol: str, function: str, kinds: Sequence[str], result: str, lanes: int) -> str:
    """IR of a C function that calls a function for vector after vector of arrays: results, arguments, count."""
    names = [f"%p{i}" for i in range(len(kinds) + result.count(",") + 1)]
    outs, ins = names[: -len(kinds)], names[-len(kinds) :]
    results = [NUMBERS[name] for name in result.strip("()").split(", ")]
    lines = []

    def at(kind: Any, place: str) -> tuple[str, str]:
        lines.append(f"  {place}.at = getelementptr {kind.memory}, ptr {place}, i64 %i")
        return kind.memory if lanes == 1 else f"<{lanes} x {kind.memory}>", f"ptr {place}.at, align 1"

    passed = []
    for kind, place in zip((NUMBERS[name] for name in kinds), ins, strict=True):
        memory, where = at(kind, place)
        lines.append(f"  {place}.v = load {memory}, {where}")
        if kind.kind == "bool":
            zero = "0" if lanes == 1 else "zeroinitializer"
            lines.append(f"  {place}.b = icmp ne {memory} {place}.v, {zero}")
        passed.append(f"{register(kind, lanes)} {place}.{'b' if kind.kind == 'bool' else 'v'}")
    whole = register(results[0], lanes)
    if len(results) > 1:
        whole = "{ " + ", ".join(register(kind, lanes) for kind in results) + " }"
    lines.append(f"  %r = call {whole} {function}({', '.join(passed)})")
    for i, (kind, place) in enumerate(zip(results, outs, strict=True)):
        one = "%r"
        if len(results) > 1:
            one = f"%r{i}"
            lines.append(f"  {one} = extractvalue {whole} %r, {i}")
        memory, where = at(kind, place)
        if kind.kind == "bool":
            lines.append(f"  {place}.w = zext {register(kind, lanes)} {one} to {memory}")
            one = f"{place}.w"
        lines.append(f"  store {memory} {one}, {where}")
    body = "\n".join(lines)
    return f"""define void @{symbol}({", ".join(f"ptr {name}" for name in names)}, i64 %n) {{
  br label %head
head:
  %i = phi i64 [ 0, %0 ], [ %next, %step ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %step, label %end
step:
{body}
  %next = add i64 %i, {lanes}
  br label %head
end:
  ret void
}}
"""


def results(
    function: Function,
    arguments: Sequence[Array],
    lanes: Sequence[int] = LANES,
    alone: dict[str, Definition] | None = None,
) -> dict[int, list[Array]]:
    """What a function gives for the elements of arrays, whose lengths are multiples of all lanes, by lanes."""
    library, number = Library(alone=alone), next(_built)
    kinds = [argument.dtype.name for argument in arguments]
    called = {count: library.called(function, kinds, count) for count in lanes}
    texts = [mapped(f"in_{n}_{number}", *called[n][:1], kinds, called[n][1], n) for n in lanes]
    text = "\n".join([library.text, *texts, "define void @entry() {\n  ret void\n}"])
    source = IRSource(f"lanes_{number}", text, externals(library))
    found = {}
    for count, (name, address) in zip(
        lanes, load.functions_of(source, tuple(f"in_{n}_{number}" for n in lanes)).items(), strict=True
    ):
        assert name.startswith("in_")
        outs = [np.empty(arguments[0].size, kind) for kind in called[count][1].strip("()").split(", ")]
        pointers = [array.ctypes.data for array in (*outs, *arguments)]
        kernel = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(pointers), ctypes.c_int64)(address)
        kernel(*pointers, arguments[0].size)
        found[count] = outs
    return found


def numbers(dtype: str, seed: int = 0) -> Array:
    """Special values, then random ones of every size, then random ones near 1."""
    random = np.random.default_rng(seed)
    if dtype == "bool":
        return random.integers(0, 2, 1024).astype(bool)
    if not dtypes.TABLE[dtype].is_float:
        limits = np.iinfo(dtype)
        special = np.array(
            [0, 1, 2, 3, 7, 8, 31, 63, limits.max, limits.min, limits.max - 1, limits.min + 1], dtype
        )
        ints = random.integers(limits.min, limits.max, 512, dtype, endpoint=True)
        small = random.integers(0, 70, 500).astype(dtype)
        return np.concatenate([special, ints, small])
    info = np.finfo(dtype)
    special = np.array(
        [0, 1, 2, 0.5, np.inf, np.nan, info.max, info.tiny, info.smallest_subnormal, 1e-5, 20, 88.8]
    )
    signed = np.concatenate([special, -special])
    bits = random.integers(0, 256, 500 * info.dtype.itemsize, np.uint8).view(dtype)
    parts = [signed.astype(dtype), bits, random.normal(0, 5, 500).astype(dtype)]
    found: Array = np.concatenate(parts)
    return found
