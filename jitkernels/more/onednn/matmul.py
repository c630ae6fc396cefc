"""MATMUL by oneDNN's ``dnnl_sgemm``, which needs no primitive per shape."""

from typing import Any

import numpy as np

from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import inlined, offset
from jitkernels.microkernels.gemm.blas_gemm import TRANSPOSED, CblasLayout, gemm_kernel, variants
from jitkernels.microkernels.gemm.gemm_arguments import GemmExtents, MatrixPart
from jitkernels.more.onednn.library import external, failed, one_thread, set_threads, usable

sgemm = external("dnnl_sgemm")
PLAIN_LETTER, TRANSPOSED_LETTER = ord("N"), ord("T")


@inlined()
def gemm(
    layout: CblasLayout, extents: GemmExtents, alpha: Any, a: MatrixPart, b: MatrixPart, beta: Any, c: MatrixPart
) -> Any:
    """Adapt ``cblas_sgemm``'s arguments; matrices are row-major, as everywhere in oneDNN.

    With an empty k it leaves c unchanged.
    """
    result = offset(c.data, c.at)
    if extents.k == 0:
        for i in range(extents.m):
            for j in range(extents.n):
                at = i * c.stride + j
                result[at] = beta * result[at] if beta != 0 else np.float32(0)
        return np.int64(0)
    letter_a = TRANSPOSED_LETTER if layout.a == TRANSPOSED else PLAIN_LETTER
    letter_b = TRANSPOSED_LETTER if layout.b == TRANSPOSED else PLAIN_LETTER
    status = sgemm(
        np.int32(letter_a), np.int32(letter_b), extents.m, extents.n, extents.k, alpha, offset(a.data, a.at), a.stride,
        offset(b.data, b.at), b.stride, beta, result, c.stride,
    )  # fmt: skip
    return failed(status)


@implements(MatMulAttr, can_be_used=usable, variants=variants)
def matmul(attr: MatMulAttr, parallel: bool = False) -> RangeKernel:
    return gemm_kernel(attr, gemm, one_thread, set_threads, parallel, name=sgemm.symbol)
