"""Bias and activation of one row in vectors, as LLVM IR text: LLVM does not vectorize functions with lookup tables."""

from __future__ import annotations

from typing import Any

from jitkernels.microkernels.epilogue.activations import activation_of
from jitkernels.microkernels.gemm.microkernel import element_size, element_type
from jitkernels.microkernels.maths.pow import pow_float32, pow_float64

ROW_ARGUMENTS = (("ptr", "c"), ("ptr", "bias"), ("i64", "n"))


def activated_row(symbol: str, activation: str, dtype: str, lanes: int, biased: bool) -> str:
    """IR of ``c[j] = activation(c[j] + bias[j])`` for j < n; without a bias, `bias` is not read."""
    return _row(symbol, activation_of(activation, dtype), dtype, lanes, ("c", "bias") if biased else ("c",))


def raised_row(symbol: str, dtype: str, lanes: int) -> str:
    """IR of ``c[j] = c[j] ** bias[j]`` for j < n."""
    function = pow_float32 if dtype == "float32" else pow_float64
    return _row(symbol, function, dtype, lanes, ("c", "bias"), adds=False)


def _row(symbol: str, scalar: Any, dtype: str, lanes: int, read: tuple[str, ...], *, adds: bool = True) -> str:
    """IR of a function of the elements of rows: of their sum with the bias, or of both."""
    from jitkernels.codegen.python.simd_library import Library

    number, size, library = element_type(dtype), element_size(dtype), Library()
    vector, mask, kind = f"<{lanes} x {number}>", f"<{lanes} x i1>", f"v{lanes}f{8 * size}"
    biased = adds and len(read) > 1
    operands = read[:1] if adds else read
    function, _ = library.called(scalar, [dtype] * len(operands), lanes)

    def step(at: str, is_part: bool) -> str:
        lines = [f"%{at}.{name}.at = getelementptr {number}, ptr %{name}, i64 %{at}" for name in read]
        if is_part:
            lines.append(f"%{at}.on = call {mask} @llvm.get.active.lane.mask.v{lanes}i1.i64(i64 %{at}, i64 %n)")
        lines += [
            f"%{at}.{name} = call {vector} @llvm.masked.load.{kind}.p0(ptr %{at}.{name}.at, i32 {size}, "
            f"{mask} %{at}.on, {vector} zeroinitializer)"
            if is_part
            else f"%{at}.{name} = load {vector}, ptr %{at}.{name}.at, align {size}"
            for name in read
        ]
        arguments = ", ".join(f"{vector} %{at}.{name}" for name in operands)
        if biased:
            lines.append(f"%{at}.sum = fadd {vector} %{at}.c, %{at}.bias")
            arguments = f"{vector} %{at}.sum"
        lines.append(f"%{at}.z = call {vector} {function}({arguments})")
        lines.append(
            f"call void @llvm.masked.store.{kind}.p0({vector} %{at}.z, ptr %{at}.c.at, i32 {size}, {mask} %{at}.on)"
            if is_part
            else f"store {vector} %{at}.z, ptr %{at}.c.at, align {size}"
        )
        return "\n".join(f"  {line}" for line in lines)

    return f"""declare {vector} @llvm.masked.load.{kind}.p0(ptr, i32, {mask}, {vector})
declare void @llvm.masked.store.{kind}.p0({vector}, ptr, i32, {mask})
declare {mask} @llvm.get.active.lane.mask.v{lanes}i1.i64(i64, i64)
{library.text}
define void @{symbol}(ptr %c, ptr %bias, i64 %n) alwaysinline nounwind {{
entry:
  %end = and i64 %n, {-lanes}
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %i.next, %whole ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %whole, label %tail
whole:
{step("i", False)}
  %i.next = add nsw i64 %i, {lanes}
  br label %head
tail:
  %is.part = icmp slt i64 %end, %n
  br i1 %is.part, label %last, label %done
last:
{step("end", True)}
  br label %done
done:
  ret void
}}
"""
