"""GEMM epilogue: bias and activation over rows of a product, applied while the rows are in the cache."""

from typing import Any

from jitkernels.attrs.matmul_epilogue import MatMulEpilogueAttr
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import External, IRFunction, inlined, offset, written_by
from jitkernels.core import cpu_target, dtypes
from jitkernels.core.cpu_target import Target
from jitkernels.microkernels.epilogue.bias_activation_row import ROW_ARGUMENTS, activated_row
from jitkernels.microkernels.gemm.gemm_arguments import Operands, ir_function
from jitkernels.microkernels.gemm.runtime_select import runtime_select_kernel
from jitkernels.microkernels.range_kernel_of import range_kernel_of
from jitkernels.runtime.loading import loader

MAX_JOINED_ROW_VECTORS = 4
"""Up to so many vectors per row, the epilogue processes several rows as one."""


def row_epilogue(activation: str, dtype: str, *, biased: bool) -> Any:
    """Return a function ``(c, bias, n)`` that applies bias and activation to a row of sums."""
    symbol = f"activated_{activation}_{dtype}{'_biased' if biased else ''}"
    text = written_by(activated_row, symbol, activation, dtype, cpu_target.target().lanes(dtype), biased)
    return ir_function(symbol, dtype, ROW_ARGUMENTS, text)


def rows_epilogue(activation: str, dtype: str, *, biased: bool) -> Any:
    """Return a function ``(c, bias, n, rows)`` that applies them to contiguous rows of sums.

    Vectors of short rows would be mostly masked: those rows get their bias first, then the activation as one long row.
    """
    finish, unbiased = row_epilogue(activation, dtype, biased=biased), row_epilogue(activation, dtype, biased=False)
    short = MAX_JOINED_ROW_VECTORS * cpu_target.target().lanes(dtype)

    @inlined("contract")
    def finished(c: Any, bias: Any, n: int, rows: int) -> None:
        if n >= short:
            for i in range(rows):
                finish(offset(c, i * n), bias, n)
            return
        if biased:
            if n == 1:
                for i in range(rows):
                    c[i] += bias[0]
            else:
                for i in range(rows):
                    for j in range(n):
                        c[i * n + j] += bias[j]
        unbiased(c, bias, rows * n)

    return finished


def epilogue_kernel(dtype: str, activation: str, *, biased: bool) -> RangeKernel:
    """Make the range kernel ``(c, bias, m, n)`` that applies the epilogue to some rows."""
    pointer = f"{dtypes.named(dtype).c}*"
    finish = rows_epilogue(activation, dtype, biased=biased)

    def body(c: Any, bias: Any, m: int, n: int, begin: int, end: int) -> None:
        finish(offset(c, begin * n), bias, n, end - begin)

    return RangeKernel(
        f"epilogue_{activation}_{dtype}",
        (f"{pointer} restrict", f"{pointer} restrict", "int64", "int64"),
        body,
        extent=2,
        flags=("contract",),
    )


def product_with_epilogue(
    attr: MatMulEpilogueAttr, pair: Any, target: Target, *, parallel: bool
) -> tuple[Any, tuple[External, ...]]:
    """Return a function ``(a, b, bias, c, m, n, k)`` in LLVM IR, and what it calls.

    The GEMM hands bands of its rows to the epilogue on the thread that computed them.
    """
    kernel = runtime_select_kernel(pair, target, parallel=parallel, followed=True)
    entry = loader.entry_of(kernel, kernel.arguments)
    epilogue = epilogue_kernel(attr.dtype, attr.activation, biased=attr.biased)
    finish = loader.range_of(epilogue, epilogue.arguments)
    pointer = f"{dtypes.named(attr.dtype).c}*"
    text = f"""declare i64 @{entry.symbol}(ptr, ptr, ptr, i64, i64, i64, i64, i64)
declare i64 @{finish.symbol}(ptr, ptr, i64, i64, i64, i64)
define internal void @product_finished(ptr %context, i64 %begin, i64 %end) nounwind {{
  %c = load ptr, ptr %context
  %at.bias = getelementptr i8, ptr %context, i64 8
  %bias = load ptr, ptr %at.bias
  %at.m = getelementptr i8, ptr %context, i64 16
  %m = load i64, ptr %at.m
  %at.n = getelementptr i8, ptr %context, i64 24
  %n = load i64, ptr %at.n
  %status = call i64 @{finish.symbol}(ptr %c, ptr %bias, i64 %m, i64 %n, i64 %begin, i64 %end)
  ret void
}}
define i64 @product_followed(ptr %a, ptr %b, ptr %bias, ptr %c, i64 %m, i64 %n, i64 %k) nounwind {{
  %context = alloca [4 x i64], align 8
  store ptr %c, ptr %context
  %at.bias = getelementptr i8, ptr %context, i64 8
  store ptr %bias, ptr %at.bias
  %at.m = getelementptr i8, ptr %context, i64 16
  store i64 %m, ptr %at.m
  %at.n = getelementptr i8, ptr %context, i64 24
  store i64 %n, ptr %at.n
  %given = ptrtoint ptr %context to i64
  %after = ptrtoint ptr @product_finished to i64
  %status = call i64 @{entry.symbol}(ptr %a, ptr %b, ptr %c, i64 %m, i64 %n, i64 %k, i64 %after, i64 %given)
  ret i64 %status
}}
"""
    function = IRFunction("product_followed", "int64", (*[pointer] * 4, *["int64"] * 3), text)
    return function, (entry, finish)


def gemm_epilogue_kernel(attr: MatMulEpilogueAttr, pair: Any, target: Target, *, parallel: bool) -> RangeKernel:
    """Make ``c = activation(op(a) @ op(b) + bias)`` for dynamic shapes."""
    product, called = product_with_epilogue(attr, pair, target, parallel=parallel)

    def body(operands: Operands, bias: Any, m: int, n: int, k: int) -> Any:
        c = operands.c
        return product(operands.a, operands.b, c if bias is None else bias, c, m, n, k)

    return _range_kernel(attr, body, calls=called)


def static_gemm_epilogue_kernel(attr: MatMulEpilogueAttr, product: RangeKernel) -> RangeKernel:
    """Make the same for a static shape, whose result stays in the first-level cache."""
    entry = loader.entry_of(product, product.arguments)
    finish = rows_epilogue(attr.activation, attr.dtype, biased=attr.biased)

    def body(operands: Operands, bias: Any, m: int, n: int, k: int) -> Any:
        c = operands.c
        status = entry(operands.a, operands.b, c, m, n, k)
        finish(c, c if bias is None else bias, n, m)
        return status

    return _range_kernel(attr, body, exact=product.exact, straight=False)


def _range_kernel(attr: MatMulEpilogueAttr, body: Any, **more: Any) -> RangeKernel:
    """Make a serial kernel: the GEMM inside splits its own work."""
    options = {"straight": True, **more}
    return range_kernel_of(
        attr,
        f"matmul_{attr.activation}_{attr.dtype}",
        body,
        extent="m",
        block=max(attr.m, 1),
        flags=("contract",),
        **options,
    )
