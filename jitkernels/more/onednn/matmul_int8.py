"""MATMUL_INT8 by oneDNN's ``dnnl_gemm_s8s8s32`` and ``dnnl_gemm_u8s8s32``."""

import functools
from typing import Any

import numpy as np

from jitkernels.attrs.matmul_int8 import MatMulInt8Attr
from jitkernels.attrs.schema.registry import implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.gemm.blas_gemm import variants
from jitkernels.microkernels.gemm.blas_gemm_int8 import int8_nest, is_exact, reason_against
from jitkernels.microkernels.gemm.gemm_arguments import GemmExtents, MatrixPart
from jitkernels.more.onednn.library import demanded, external, failed, library, one_thread, set_threads
from jitkernels.more.onednn.matmul import PLAIN_LETTER, TRANSPOSED_LETTER

NAMES = {"int8": "dnnl_gemm_s8s8s32", "uint8": "dnnl_gemm_u8s8s32"}
ONE_OFFSET = ord("F")
"""The offset of C is one number."""


@functools.cache
def _exact() -> bool:
    library = demanded()
    offset = library.ffi.new("int32_t *")

    def one(a: int, b: int, c: int, k: int) -> None:
        kinds = (("uint8_t *", a), ("int8_t *", b), ("int32_t *", c))
        left, right, result = (library.ffi.cast(kind, at) for kind, at in kinds)
        library.functions.dnnl_gemm_u8s8s32(
            b"N", b"T", bytes([ONE_OFFSET]), 1, 1, k, 1.0, left, k, 0, right, k, 0, 0.0, result, 1, offset
        )

    return is_exact(one)


def usable_for(attr: MatMulInt8Attr) -> bool | str:
    """`can_be_used`: integers, where oneDNN's sums are exact."""
    why = reason_against(attr)
    if why:
        return why
    handle, reason = library()
    if handle is None:
        return reason
    return _exact() or "oneDNN adds up pairs of products in 16 bits on this processor, where not all of them fit"


@implements(MatMulInt8Attr, can_be_used=usable_for, variants=variants)
def matmul_int8(attr: MatMulInt8Attr, parallel: bool = False) -> RangeKernel:
    gemm = external(NAMES[attr.a_dtype])
    letter_b = np.int32(TRANSPOSED_LETTER if attr.trans_b else PLAIN_LETTER)
    letter_a, no_offset = np.int32(PLAIN_LETTER), np.int32(0)
    one, nothing = np.float32(1), np.float32(0)

    @inlined()
    def call(extents: GemmExtents, a: Any, b: MatrixPart, c: MatrixPart, zero: Any) -> Any:
        status = gemm(
            letter_a, letter_b, np.int32(ONE_OFFSET), extents.m, extents.n, extents.k, one, a, extents.k, no_offset,
            b.data, b.stride, no_offset, nothing, c.data, c.stride, zero,
        )  # fmt: skip
        return failed(status)

    return int8_nest(attr, call, one_thread, set_threads, parallel, name=f"onednn_{attr.a_dtype}", flips=False)
