"""Tiled transpose of a part of a matrix in registers, with the dispatcher's loops, for range kernels to call."""

from jitkernels.codegen.source_protocol import IRFunction
from jitkernels.core import dtypes
from jitkernels.core.cpu_target import CACHE_LINE_BYTES
from jitkernels.runtime import copy_transpose

PARAMETERS = "ptr %to, i64 %to.step, ptr %from, i64 %from.step, i64 %rows, i64 %columns"


def transpose_tiles(dtype: str) -> IRFunction:
    """``(to, to_step, start, start_step, rows, columns)``: row strides in elements, at least 8 rows and columns."""
    element = dtypes.named(dtype)
    symbol, bytes_ = f"transpose_{dtype}", element.size
    words = ("target", "target.step", "source", "source.step", "rows", "columns")
    parameters = ", ".join(f"i64 %{word}" for word in words)
    return IRFunction(
        symbol,
        "void",
        (f"{element.c}*", "int64", f"{element.c}*", "int64", "int64", "int64"),
        f"""{copy_transpose.provided()["transpose"]}
define void @{symbol}({PARAMETERS}) alwaysinline nounwind {{
  %target = ptrtoint ptr %to to i64
  %source = ptrtoint ptr %from to i64
  %target.step = mul i64 %to.step, {bytes_}
  %source.step = mul i64 %from.step, {bytes_}
  %done = call i64 @transpose(i64 {bytes_}, {parameters})
  ret void
}}
""",
    )


def transpose_cache_lines(dtype: str) -> IRFunction:
    """``(to, to_step, start, start_step)``: a square of a cache line's elements per side, with streaming stores.

    Each step interleaves every vector of the first half with one of the second.
    """
    element = dtypes.named(dtype)
    lanes, bits = CACHE_LINE_BYTES // element.size, 8 * element.size
    symbol, vector = f"transpose_lines_{dtype}", f"<{CACHE_LINE_BYTES // element.size} x i{8 * element.size}>"
    lines = []
    for i in range(lanes):
        lines += [
            f"  %from.{i} = mul i64 %from.step, {i}",
            f"  %from.{i}.at = getelementptr i{bits}, ptr %from, i64 %from.{i}",
            f"  %r0.{i} = load {vector}, ptr %from.{i}.at, align {element.size}",
        ]
    stages = lanes.bit_length() - 1
    for number in range(stages):
        for i in range(lanes // 2):
            for half in range(2):
                first = half * lanes // 2
                order = ", ".join(f"i32 {first + k}, i32 {lanes + first + k}" for k in range(lanes // 2))
                lines.append(
                    f"  %r{number + 1}.{2 * i + half} = shufflevector {vector} %r{number}.{i}, "
                    f"{vector} %r{number}.{i + lanes // 2}, <{lanes} x i32> <{order}>"
                )
    for i in range(lanes):
        lines += [
            f"  %to.{i} = mul i64 %to.step, {i}",
            f"  %to.{i}.at = getelementptr i{bits}, ptr %to, i64 %to.{i}",
            f"  store {vector} %r{stages}.{i}, ptr %to.{i}.at, align {CACHE_LINE_BYTES}, !nontemporal !0",
        ]
    body = "\n".join(lines)
    return IRFunction(
        symbol,
        "void",
        (f"{element.c}*", "int64", f"{element.c}*", "int64"),
        f"""define void @{symbol}(ptr %to, i64 %to.step, ptr %from, i64 %from.step) alwaysinline nounwind {{
{body}
  ret void
}}
!0 = !{{i32 1}}
""",
    )
