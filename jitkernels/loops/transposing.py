"""A part of a matrix turned, square by square in registers: the dispatcher's own loops, for loop nests to call."""

from jitkernels import dtypes
from jitkernels.native import moving
from jitkernels.native.source import IRFunction

PARAMETERS = "ptr %to, i64 %to.step, ptr %from, i64 %from.step, i64 %rows, i64 %columns"


def transposed_tiles(dtype: str) -> IRFunction:
    """``(to, to_step, start, start_step, rows, columns)``: steps from row to row in elements, 8 of both at least."""
    element = dtypes.named(dtype)
    symbol, bytes_ = f"transposed_{dtype}", element.size
    words = ("target", "target.step", "source", "source.step", "rows", "columns")
    given = ", ".join(f"i64 %{word}" for word in words)
    return IRFunction(
        symbol,
        "void",
        (f"{element.c}*", "int64", f"{element.c}*", "int64", "int64", "int64"),
        f"""{moving.provided()["transpose"]}
define void @{symbol}({PARAMETERS}) alwaysinline nounwind {{
  %target = ptrtoint ptr %to to i64
  %source = ptrtoint ptr %from to i64
  %target.step = mul i64 %to.step, {bytes_}
  %source.step = mul i64 %from.step, {bytes_}
  %done = call i64 @transpose(i64 {bytes_}, {given})
  ret void
}}
""",
    )
