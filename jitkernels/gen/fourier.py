"""Generated FFT_C2C, FFT_R2C and FFT_C2R: one kernel for all lengths, which plans a length when it meets it."""

from typing import Any, NamedTuple

import numpy as np

from jitkernels.attrs.fourier import FftC2CAttr, FftC2RAttr, FftR2CAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen import error_status
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import offset
from jitkernels.core import cpu_target
from jitkernels.microkernels.chunking import grain
from jitkernels.microkernels.fft.bluestein import rows_of
from jitkernels.microkernels.fft.columns import columns_of
from jitkernels.microkernels.fft.factors import limits_of
from jitkernels.microkernels.fft.real_rows import complex_length, forward_of, inverse_of, scratch_of_real
from jitkernels.microkernels.fft.transform import FftScales, scratch_of
from jitkernels.microkernels.heap_scratch import is_null
from jitkernels.microkernels.range_kernel_of import range_kernel_of

FFT_THREAD_ELEMENTS = 1 << 14
"""Least number of elements per thread."""
Attr = FftC2CAttr | FftR2CAttr | FftC2RAttr


def block_of(attr: Attr) -> int:
    """RowRange of a thread's least part."""
    row = sum(array.nbytes for array in attr.signature().arrays) // max(attr.rows, 1)
    return grain(row // (2 * np.dtype(attr.dtype).itemsize), FFT_THREAD_ELEMENTS)


def variants(attr: Attr) -> list[Variant]:
    return [{}, {"parallel": True}] if attr.rows >= 4 * block_of(attr) else [{}]


class Arrays(NamedTuple):
    """The arrays, and the factor of results."""

    x: Any
    y: Any
    scale: Any


class RowRange(NamedTuple):
    """The rows of a thread."""

    begin: int
    end: int


@implements(FftC2CAttr, variants=variants)
def fft_c2c(attr: FftC2CAttr, **variant: Any) -> RangeKernel:
    dtype, limits = attr.dtype, limits_of(attr.dtype, cpu_target.target().vector_bytes)
    number, size, scratch = np.dtype(dtype).type, np.dtype(dtype).itemsize, scratch_of(limits)
    rows, of_columns = rows_of(dtype, limits), columns_of(dtype, limits)
    sign, no_memory = number(-1 if attr.inverse else 1), np.int64(error_status.no_memory_for(f"fft_c2c_{dtype}"))

    def body(arrays: Arrays, n: int, columns: int, part: RowRange, workspace: Any) -> Any:
        x, y, factor = arrays.x, arrays.y, number(arrays.scale[0])
        scales = FftScales(sign, factor, sign * factor)
        if n == 0 or columns == 0:
            return 0
        words = rows.take(n, columns > 1, False, workspace)
        if is_null(words):
            return no_memory
        for row in range(part.begin, part.end):
            at = 2 * row * n * columns
            if columns == 1:
                rows.transform(words, n, offset(x, at), offset(y, at), workspace, scales)
            else:
                of_columns(words, n, columns, offset(x, at), offset(y, at), workspace, scales)
        rows.keep(words)
        return 0

    def needed(n: int, columns: int) -> Any:
        return scratch(n, columns > 1) * size

    return _kernel(attr, f"fft_c2c_{'inverse' if attr.inverse else 'forward'}_{dtype}", body, needed, variant)


@implements(FftR2CAttr, variants=variants)
def fft_r2c(attr: FftR2CAttr, **variant: Any) -> RangeKernel:
    dtype, limits = attr.dtype, limits_of(attr.dtype, cpu_target.target().vector_bytes)
    number, size, scratch = np.dtype(dtype).type, np.dtype(dtype).itemsize, scratch_of_real(limits)
    rows, no_memory = rows_of(dtype, limits), np.int64(error_status.no_memory_for(f"fft_r2c_{dtype}"))
    forward = forward_of(dtype, limits, rows)

    def body(arrays: Arrays, n: int, part: RowRange, workspace: Any) -> Any:
        x, y, factor = arrays.x, arrays.y, number(arrays.scale[0])
        if n == 0:
            for i in range(2 * part.begin, 2 * part.end):
                y[i] = number(0)
            return 0
        words = rows.take(complex_length(n), False, n % 2 == 0, workspace)
        if is_null(words):
            return no_memory
        for row in range(part.begin, part.end):
            forward(words, n, offset(x, row * n), offset(y, 2 * row * (n // 2 + 1)), workspace, factor)
        rows.keep(words)
        return 0

    def needed(n: int) -> Any:
        return scratch(n) * size

    return _kernel(attr, f"fft_r2c_{dtype}", body, needed, variant)


@implements(FftC2RAttr, variants=variants)
def fft_c2r(attr: FftC2RAttr, **variant: Any) -> RangeKernel:
    dtype, limits = attr.dtype, limits_of(attr.dtype, cpu_target.target().vector_bytes)
    number, size, scratch = np.dtype(dtype).type, np.dtype(dtype).itemsize, scratch_of_real(limits)
    rows, no_memory = rows_of(dtype, limits), np.int64(error_status.no_memory_for(f"fft_c2r_{dtype}"))
    inverse = inverse_of(dtype, limits, rows)

    def body(arrays: Arrays, n: int, part: RowRange, workspace: Any) -> Any:
        x, y, factor = arrays.x, arrays.y, number(arrays.scale[0])
        if n == 0:
            return 0
        words = rows.take(complex_length(n), False, n % 2 == 0, workspace)
        if is_null(words):
            return no_memory
        for row in range(part.begin, part.end):
            inverse(words, n, offset(x, 2 * row * (n // 2 + 1)), offset(y, row * n), workspace, factor)
        rows.keep(words)
        return 0

    def needed(n: int) -> Any:
        return scratch(n) * size

    return _kernel(attr, f"fft_c2r_{dtype}", body, needed, variant)


def _kernel(attr: Attr, name: str, body: Any, needed: Any, variant: Variant) -> RangeKernel:
    return range_kernel_of(
        attr,
        name,
        body,
        extent="rows",
        block=block_of(attr) if variant.get("parallel") else 1,
        workspace=needed,
        workspace_dtype=attr.dtype,
        flags=(),
        reads_first=True,
        **variant,
    )
