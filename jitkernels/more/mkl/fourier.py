"""FFT_C2C, FFT_R2C and FFT_C2R by MKL's transforms (DFTI), through its FFTW3 interface.

The functions of DFTI take a variable number of arguments, which those of the interface do not. To make a descriptor
takes longer than a short transform, so a kernel keeps some, by length and count; each serves one call at a time.
"""

from typing import Any, NamedTuple

import numpy as np

from jitkernels.attrs.fourier import FftC2CAttr, FftC2RAttr, FftR2CAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen import error_status
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import inlined, noinline, offset
from jitkernels.microkernels.fft.plan_cache import free_words, no_words, put_plan, set_tables, tables_of, take_plan
from jitkernels.microkernels.fft.row_ranges import FftArrays, FftAttr, RowRange, block_of, threads_of
from jitkernels.microkernels.heap_scratch import is_null
from jitkernels.microkernels.range_kernel_of import range_kernel_of
from jitkernels.more.mkl import library
from jitkernels.more.mkl.library import external, one_thread, set_threads

FORWARD, BACKWARD = -1, 1
ESTIMATE, PRESERVE_INPUT = 1 << 6, 1 << 4
PLAN_FLAGS = ESTIMATE | PRESERVE_INPUT
KEY_WORD, LENGTH_WORD, COUNT_WORD, COLUMNS_WORD = 0, 2, 3, 4
DIMENSION, BATCH = 8, 11
"""Words of a plan: what it was made for; an extent and the steps of input and output, of a transform and between them.
"""
descriptor_of = tables_of("void")
prefix_of = {"float32": "fftwf", "float64": "fftw"}


def usable(attr: FftAttr) -> bool | str:
    """Whether MKL is here, with its FFTW3 interface."""
    can = library.usable(attr)
    if can is not True:
        return can
    name = f"{prefix_of[attr.dtype]}_plan_guru64_dft"
    return library.demanded().has(name) or f"MKL lacks {name}"


class Batch(NamedTuple):
    """Transforms: their length and number, how many lie beside each other (1: behind), and steps between them."""

    n: int
    number: int
    columns: int
    x_step: int
    y_step: int


def planning_of(plan: Any, destroy: Any) -> tuple[Any, Any]:
    """Return the functions ``(batch, x, y)`` that takes out a plan, null for no memory, and that puts it back.

    ``plan(dimension, batch, x, y)`` makes a descriptor, ``destroy`` frees it.
    """

    @noinline()
    def drop(words: Any) -> None:
        if is_null(descriptor_of(words)) == 0:
            destroy(descriptor_of(words))
        free_words(words)

    @noinline()
    def take(batch: Batch, x: Any, y: Any) -> Any:
        key = ((batch.n * 31 + batch.number) * 31 + batch.columns) * 2 + 1
        words = take_plan(key)
        if is_null(words):
            return words
        if (
            words[KEY_WORD] != key
            or words[LENGTH_WORD] != batch.n
            or words[COUNT_WORD] != batch.number
            or words[COLUMNS_WORD] != batch.columns
        ):
            if is_null(descriptor_of(words)) == 0:
                destroy(descriptor_of(words))
            words[LENGTH_WORD] = batch.n
            words[COUNT_WORD] = batch.number
            words[COLUMNS_WORD] = batch.columns
            words[DIMENSION] = batch.n
            words[DIMENSION + 1] = batch.columns
            words[DIMENSION + 2] = batch.columns
            words[BATCH] = batch.number
            words[BATCH + 1] = batch.x_step
            words[BATCH + 2] = batch.y_step
            made = plan(offset(words, DIMENSION), offset(words, BATCH), x, y)
            set_tables(words, made)
            words[KEY_WORD] = key
            if is_null(made):
                drop(words)
                words = no_words()
        return words

    @inlined()
    def keep(words: Any) -> None:
        replaced = put_plan(words)
        if is_null(replaced) == 0:
            drop(replaced)

    return take, keep


@inlined()
def scale_results(y: Any, count: int, scale: Any) -> None:
    """``y *= scale``."""
    if scale != 1:
        for i in range(count):
            y[i] = scale * y[i]


@implements(FftC2CAttr, can_be_used=usable, variants=threads_of)
def fft_c2c(attr: FftC2CAttr, **variant: Any) -> RangeKernel:
    number, prefix = np.dtype(attr.dtype).type, prefix_of[attr.dtype]
    make, execute = external(f"{prefix}_plan_guru64_dft"), external(f"{prefix}_execute_dft")
    sign, no_memory = BACKWARD if attr.inverse else FORWARD, np.int64(error_status.no_memory_for("fft_c2c_mkl"))

    @inlined()
    def plan(dimension: Any, batch: Any, x: Any, y: Any) -> Any:
        return make(1, dimension, 1, batch, x, y, sign, PLAN_FLAGS)

    take, keep = planning_of(plan, external(f"{prefix}_destroy_plan"))

    def body(arrays: FftArrays, n: int, columns: int, part: RowRange) -> Any:
        x, y, row = arrays.x, arrays.y, 2 * n * columns
        if row == 0 or part.end == part.begin:
            return 0
        count = part.end - part.begin if columns == 1 else columns
        step = n if columns == 1 else 1
        token = one_thread()
        words = take(Batch(n, count, columns, step, step), offset(x, part.begin * row), offset(y, part.begin * row))
        if is_null(words) == 0:
            for r in range(part.begin, part.begin + 1 if columns == 1 else part.end):
                execute(descriptor_of(words), offset(x, r * row), offset(y, r * row))
            keep(words)
        set_threads(token)
        if is_null(words):
            return no_memory
        scale_results(offset(y, part.begin * row), (part.end - part.begin) * row, number(arrays.scale[0]))
        return 0

    return _kernel(attr, f"fft_c2c_{'inverse' if attr.inverse else 'forward'}", body, variant)


@implements(FftR2CAttr, can_be_used=usable, variants=threads_of)
def fft_r2c(attr: FftR2CAttr, **variant: Any) -> RangeKernel:
    return _of_real(attr, "r2c", variant)


@implements(FftC2RAttr, can_be_used=usable, variants=threads_of)
def fft_c2r(attr: FftC2RAttr, **variant: Any) -> RangeKernel:
    return _of_real(attr, "c2r", variant)


def _of_real(attr: FftR2CAttr | FftC2RAttr, way: str, variant: Variant) -> RangeKernel:
    number, prefix, is_forward = np.dtype(attr.dtype).type, prefix_of[attr.dtype], way == "r2c"
    make, execute = external(f"{prefix}_plan_guru64_dft_{way}"), external(f"{prefix}_execute_dft_{way}")
    no_memory, zero = np.int64(error_status.no_memory_for(f"fft_{way}_mkl")), number(0)

    @inlined()
    def plan(dimension: Any, batch: Any, x: Any, y: Any) -> Any:
        return make(1, dimension, 1, batch, x, y, PLAN_FLAGS)

    take, keep = planning_of(plan, external(f"{prefix}_destroy_plan"))

    def body(arrays: FftArrays, n: int, bins: int, part: RowRange) -> Any:
        x_row = n if is_forward else 2 * bins
        y_row = 2 * bins if is_forward else n
        count, first = part.end - part.begin, offset(arrays.y, part.begin * y_row)
        if n == 0 or count == 0:
            for i in range(count * y_row):
                first[i] = zero
            return 0
        source, token = offset(arrays.x, part.begin * x_row), one_thread()
        words = take(Batch(n, count, 1, n if is_forward else bins, bins if is_forward else n), source, first)
        if is_null(words) == 0:
            execute(descriptor_of(words), source, first)
            keep(words)
        set_threads(token)
        if is_null(words):
            return no_memory
        scale_results(first, count * y_row, number(arrays.scale[0]))
        return 0

    return _kernel(attr, f"fft_{way}", body, variant)


def _kernel(attr: FftAttr, name: str, body: Any, variant: Variant) -> RangeKernel:
    block = block_of(attr) if variant.get("parallel") else 1
    return range_kernel_of(attr, f"{name}_{attr.dtype}_mkl", body, extent="rows", block=block, **variant)
