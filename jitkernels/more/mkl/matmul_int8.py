"""MATMUL_INT8 by MKL's ``cblas_gemm_s8u8s32``: in row-major order its A is uint8 and its B int8."""

import functools
from typing import Any

import numpy as np

from jitkernels.attrs.matmul_int8 import MatMulInt8Attr
from jitkernels.attrs.schema.registry import implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.gemm.blas_gemm import NOT_TRANSPOSED, ROW_MAJOR, TRANSPOSED, variants
from jitkernels.microkernels.gemm.blas_gemm_int8 import int8_nest, is_exact, reason_against
from jitkernels.microkernels.gemm.gemm_arguments import GemmExtents, MatrixPart
from jitkernels.more.mkl.library import demanded, external, one_thread, set_threads, usable

CBLAS_GEMM_S8U8S32 = "cblas_gemm_s8u8s32_64"
ONE_OFFSET = 173
"""The offset of C is one number."""
gemm = external(CBLAS_GEMM_S8U8S32)


@functools.cache
def _exact() -> bool:
    library = demanded()
    offset = library.ffi.new("int *")

    def one(a: int, b: int, c: int, k: int) -> None:
        left, right, result = (library.ffi.cast(kind, at) for kind, at in (("void *", a), ("void *", b), ("int *", c)))
        library.functions.cblas_gemm_s8u8s32_64(
            ROW_MAJOR, NOT_TRANSPOSED, TRANSPOSED, ONE_OFFSET, 1, 1, k, 1.0, left, k, b"\0", right, k, b"\0", 0.0,
            result, 1, offset,
        )  # fmt: skip

    return is_exact(one)


def usable_for(attr: MatMulInt8Attr) -> bool | str:
    """`can_be_used`: integers, where MKL's sums are exact."""
    why = reason_against(attr)
    if why:
        return why
    support = usable(attr)
    if support is not True:
        return support
    return _exact() or "MKL adds up pairs of products in 16 bits on this processor, where not all of them fit"


@implements(MatMulInt8Attr, can_be_used=usable_for, variants=variants)
def matmul_int8(attr: MatMulInt8Attr, parallel: bool = False) -> RangeKernel:
    flips = attr.a_dtype == "int8"
    turn_b = TRANSPOSED if attr.trans_b else NOT_TRANSPOSED
    less = np.int32(-128 if flips else 0)
    one, nothing = np.float32(1), np.float32(0)

    @inlined()
    def call(extents: GemmExtents, a: Any, b: MatrixPart, c: MatrixPart, zero: Any) -> Any:
        gemm(
            ROW_MAJOR, NOT_TRANSPOSED, turn_b, ONE_OFFSET, extents.m, extents.n, extents.k, one, a, extents.k, less,
            b.data, b.stride, np.int32(0), nothing, c.data, c.stride, zero,
        )  # fmt: skip
        return np.int64(0)

    return int8_nest(attr, call, one_thread, set_threads, parallel, name=f"mkl_{attr.a_dtype}", flips=flips)
