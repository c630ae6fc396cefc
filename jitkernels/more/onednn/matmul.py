"""MATMUL by oneDNN's ``dnnl_sgemm``, which needs no primitive per shape."""

from typing import Any

import numpy as np

from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.codegen.range_kernel import LoopNest
from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.gemm.blas_gemm import TRANSPOSED, gemm_nest, variants
from jitkernels.more.onednn.library import external, failed, one_thread, set_threads, usable

sgemm = external("dnnl_sgemm")
PLAIN_LETTER, TRANSPOSED_LETTER = ord("N"), ord("T")


@inlined()
def gemm(
    order: int, turn_a: int, turn_b: int, rows: int, columns: int, depth: int, alpha: Any, a: Any,
    a_stride: int, b: Any, b_stride: int, beta: Any, c: Any, c_stride: int,
) -> Any:  # fmt: skip
    """Adapt ``cblas_sgemm``'s arguments; matrices are row-major, as everywhere in oneDNN.

    With an empty k it leaves c unchanged.
    """
    if depth == 0:
        for i in range(rows):
            for j in range(columns):
                c[i * c_stride + j] = beta * c[i * c_stride + j] if beta != 0 else np.float32(0)
        return np.int64(0)
    letter_a = TRANSPOSED_LETTER if turn_a == TRANSPOSED else PLAIN_LETTER
    letter_b = TRANSPOSED_LETTER if turn_b == TRANSPOSED else PLAIN_LETTER
    status = sgemm(
        np.int32(letter_a), np.int32(letter_b), rows, columns, depth, alpha, a, a_stride, b, b_stride,
        beta, c, c_stride,
    )  # fmt: skip
    return failed(status)


@implements(MatMulAttr, can_be_used=usable, variants=variants)
def matmul(attr: MatMulAttr, parallel: bool = False) -> LoopNest:
    return gemm_nest(attr, gemm, one_thread, set_threads, parallel, name=sgemm.symbol)
