"""Generated FFT_C2C, FFT_R2C and FFT_C2R: one kernel for all lengths, which plans a length when it meets it."""

from typing import Any

import numpy as np

from jitkernels.attrs.fourier import FftC2CAttr, FftC2RAttr, FftR2CAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen import error_status
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.core import cpu_target
from jitkernels.microkernels.fft.factors import limits_of
from jitkernels.microkernels.fft.pass_parts import pass_links
from jitkernels.microkernels.fft.real_batches import missing_of_real_batches, real_batches_of, scratch_of_real_batches
from jitkernels.microkernels.fft.row_batches import FftMatrices, batches_of, missing_of_batches, scratch_of_batches
from jitkernels.microkernels.fft.row_ranges import FftArrays, FftAttr, RowRange, block_of, threads_of
from jitkernels.microkernels.fft.transform import FftScales
from jitkernels.microkernels.range_kernel_of import range_kernel_of


@implements(FftC2CAttr, variants=threads_of)
def fft_c2c(attr: FftC2CAttr, **variant: Any) -> RangeKernel:
    dtype, limits = attr.dtype, limits_of(attr.dtype, cpu_target.target().vector_bytes)
    number, size, scratch = np.dtype(dtype).type, np.dtype(dtype).itemsize, scratch_of_batches(limits)
    transform = batches_of(dtype, limits)
    sign, no_memory = number(-1 if attr.inverse else 1), np.int64(error_status.no_memory_for(f"fft_c2c_{dtype}"))

    def body(arrays: FftArrays, n: int, columns: int, part: RowRange, workspace: Any) -> Any:
        x, y, factor = arrays.x, arrays.y, number(arrays.scale[0])
        if n == 0 or columns == 0:
            return 0
        done = transform(FftMatrices(x, y, n, columns), part, workspace, FftScales(sign, factor, sign * factor))
        return 0 if done else no_memory

    def needed(n: int, columns: int) -> Any:
        return scratch(n, columns) * size

    name = f"fft_c2c_{'inverse' if attr.inverse else 'forward'}_{dtype}"
    return _kernel(attr, name, body, needed, missing_of_batches(dtype, limits), variant)


@implements(FftR2CAttr, variants=threads_of)
def fft_r2c(attr: FftR2CAttr, **variant: Any) -> RangeKernel:
    return _of_real(attr, "fft_r2c", variant)


@implements(FftC2RAttr, variants=threads_of)
def fft_c2r(attr: FftC2RAttr, **variant: Any) -> RangeKernel:
    return _of_real(attr, "fft_c2r", variant)


def _of_real(attr: FftR2CAttr | FftC2RAttr, name: str, variant: Variant) -> RangeKernel:
    """The kernel of real rows."""
    dtype, limits = attr.dtype, limits_of(attr.dtype, cpu_target.target().vector_bytes)
    is_forward = isinstance(attr, FftR2CAttr)
    number, size, scratch = np.dtype(dtype).type, np.dtype(dtype).itemsize, scratch_of_real_batches(limits)
    transform = real_batches_of(dtype, limits, is_forward=is_forward)
    no_memory = np.int64(error_status.no_memory_for(f"{name}_{dtype}"))

    def body(arrays: FftArrays, n: int, bins: int, part: RowRange, workspace: Any) -> Any:
        x, y = arrays.x, arrays.y
        if n == 0:
            y_row = 2 * bins if is_forward else n
            for i in range(y_row * part.begin, y_row * part.end):
                y[i] = number(0)
            return 0
        done = transform(n, part, x, y, workspace, number(arrays.scale[0]))
        return 0 if done else no_memory

    def needed(n: int) -> Any:
        return scratch(n) * size

    return _kernel(attr, f"{name}_{dtype}", body, needed, missing_of_real_batches(dtype, limits), variant)


def _kernel(attr: FftAttr, name: str, body: Any, needed: Any, missing: Any, variant: Variant) -> RangeKernel:
    """The range kernel; `missing` requests the passes of a call."""
    return range_kernel_of(
        attr,
        name,
        body,
        extent="rows",
        block=block_of(attr) if variant.get("parallel") else 1,
        workspace=needed,
        workspace_dtype=attr.dtype,
        check=missing,
        parts=pass_links(attr.dtype, limits_of(attr.dtype, cpu_target.target().vector_bytes).lanes),
        flags=(),
        reads_first=True,
        straight=True,
        **variant,
    )
