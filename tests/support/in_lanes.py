"""Call scalar functions in vector lanes, for tests of their results."""

import ctypes
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from translated import Function

from jitkernels.codegen.ir_source import IRSource
from jitkernels.codegen.python.outlined import externals
from jitkernels.codegen.python.simd_library import Definition, Library
from jitkernels.codegen.python.types import NUMBERS, register
from jitkernels.core import dtypes
from jitkernels.runtime.loading import loader

Array = np.ndarray[Any, Any]
LANES = (1, 4, 8, 16, 32)
_built = itertools.count()


def mapped(symbol: str, function: str, kinds: Sequence[str], result: str, lanes: int) -> str:
    """Write the IR of a C function that maps a function over arrays in vectors: results, arguments, count."""
    names = [f"%p{i}" for i in range(len(kinds) + result.count(",") + 1)]
    outs, ins = names[: -len(kinds)], names[-len(kinds) :]
    results = [NUMBERS[name] for name in result.strip("()").split(", ")]
    lines = []

    def at(kind: Any, pointer: str) -> tuple[str, str]:
        lines.append(f"  {pointer}.at = getelementptr {kind.memory}, ptr {pointer}, i64 %i")
        return kind.memory if lanes == 1 else f"<{lanes} x {kind.memory}>", f"ptr {pointer}.at, align 1"

    passed = []
    for kind, base in zip((NUMBERS[name] for name in kinds), ins, strict=True):
        memory, where = at(kind, base)
        lines.append(f"  {base}.v = load {memory}, {where}")
        if kind.kind == "bool":
            zero = "0" if lanes == 1 else "zeroinitializer"
            lines.append(f"  {base}.b = icmp ne {memory} {base}.v, {zero}")
        passed.append(f"{register(kind, lanes)} {base}.{'b' if kind.kind == 'bool' else 'v'}")
    vector = register(results[0], lanes)
    if len(results) > 1:
        vector = "{ " + ", ".join(register(kind, lanes) for kind in results) + " }"
    lines.append(f"  %r = call {vector} {function}({', '.join(passed)})")
    for i, (kind, base) in enumerate(zip(results, outs, strict=True)):
        scalar = "%r"
        if len(results) > 1:
            scalar = f"%r{i}"
            lines.append(f"  {scalar} = extractvalue {vector} %r, {i}")
        memory, where = at(kind, base)
        if kind.kind == "bool":
            lines.append(f"  {base}.w = zext {register(kind, lanes)} {scalar} to {memory}")
            scalar = f"{base}.w"
        lines.append(f"  store {memory} {scalar}, {where}")
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
    """Return by lanes the results of a function for arrays, whose lengths are multiples of all lane counts."""
    library, number = Library(alone=alone), next(_built)
    kinds = [argument.dtype.name for argument in arguments]
    called = {count: library.called(function, kinds, count) for count in lanes}
    texts = [mapped(f"in_{n}_{number}", *called[n][:1], kinds, called[n][1], n) for n in lanes]
    text = "\n".join([library.text, *texts, "define void @entry() {\n  ret void\n}"])
    source = IRSource(f"lanes_{number}", text, externals(library))
    by_lanes = {}
    for count, (name, address) in zip(
        lanes, loader.functions_of(source, tuple(f"in_{n}_{number}" for n in lanes)).items(), strict=True
    ):
        assert name.startswith("in_")
        outs = [np.empty(arguments[0].size, kind) for kind in called[count][1].strip("()").split(", ")]
        pointers = [array.ctypes.data for array in (*outs, *arguments)]
        kernel = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(pointers), ctypes.c_int64)(address)
        kernel(*pointers, arguments[0].size)
        by_lanes[count] = outs
    return by_lanes


def numbers(dtype: str, seed: int = 0) -> Array:
    """Return special values, then random ones of every magnitude, then random ones near 1."""
    random = np.random.default_rng(seed)
    if dtype == "bool":
        return random.integers(0, 2, 1024).astype(bool)
    if not dtypes.TABLE[dtype].is_float:
        limits = np.iinfo(dtype)
        special = np.array([0, 1, 2, 3, 7, 8, 31, 63, limits.max, limits.min, limits.max - 1, limits.min + 1], dtype)
        ints = random.integers(limits.min, limits.max, 512, dtype, endpoint=True)
        small = random.integers(0, 70, 500).astype(dtype)
        return np.concatenate([special, ints, small])
    info = np.finfo(dtype)
    special = np.array([0, 1, 2, 0.5, np.inf, np.nan, info.max, info.tiny, info.smallest_subnormal, 1e-5, 20, 88.8])
    signed = np.concatenate([special, -special])
    bits = random.integers(0, 256, 500 * info.dtype.itemsize, np.uint8).view(dtype)
    parts = [signed.astype(dtype), bits, random.normal(0, 5, 500).astype(dtype)]
    values: Array = np.concatenate(parts)
    return values
