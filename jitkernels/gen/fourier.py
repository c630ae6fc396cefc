"""Generated FFT_C2C, FFT_R2C and FFT_C2R: one kernel for all lengths, which plans a length when it meets it."""

from typing import Any, NamedTuple

import numpy as np

from jitkernels.attrs.fourier import FftC2CAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen import error_status
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import offset
from jitkernels.core import cpu_target
from jitkernels.microkernels.chunking import grain
from jitkernels.microkernels.fft.columns import columns_of
from jitkernels.microkernels.fft.convolution import rows_of
from jitkernels.microkernels.fft.factors import limits_of
from jitkernels.microkernels.fft.transform import Scales, scratch_of
from jitkernels.microkernels.heap_scratch import is_null
from jitkernels.microkernels.range_kernel_of import range_kernel_of

FFT_THREAD_ELEMENTS = 1 << 14
"""Least number of elements per thread."""


def variants(attr: FftC2CAttr) -> list[Variant]:
    is_shared = attr.rows >= 4 * grain(attr.n * attr.columns, FFT_THREAD_ELEMENTS)
    return [{}, {"parallel": True}] if is_shared else [{}]


class Arrays(NamedTuple):
    """The arrays, and the factor of results."""

    x: Any
    y: Any
    scale: Any


class Rows(NamedTuple):
    """The rows of a thread, of n rows of so many columns."""

    n: int
    columns: int
    begin: int
    end: int


@implements(FftC2CAttr, variants=variants)
def fft_c2c(attr: FftC2CAttr, **variant: Any) -> RangeKernel:
    dtype, limits = attr.dtype, limits_of(attr.dtype, cpu_target.target().vector_bytes)
    number, scratch = np.dtype(dtype).type, scratch_of(limits)
    rows, of_columns, size = rows_of(dtype, limits), columns_of(dtype, limits), np.dtype(dtype).itemsize
    sign, no_memory = number(-1 if attr.inverse else 1), np.int64(error_status.no_memory_for(f"fft_c2c_{dtype}"))

    def body(arrays: Arrays, part: Rows, workspace: Any) -> Any:
        x, y, n, columns = arrays.x, arrays.y, part.n, part.columns
        factor = number(arrays.scale[0])
        scales = Scales(sign, factor, sign * factor)
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

    def needed(n: int, columns: int) -> int:
        return scratch(n, columns > 1) * size

    return range_kernel_of(
        attr,
        f"fft_c2c_{'inverse' if attr.inverse else 'forward'}_{dtype}",
        body,
        extent="rows",
        block=grain(attr.n * attr.columns, FFT_THREAD_ELEMENTS) if variant.get("parallel") else 1,
        workspace=needed,
        workspace_dtype=dtype,
        flags=(),
        reads_first=True,
        straight=False,
        **variant,
    )
