"""MATMUL by oneDNN's ``dnnl_sgemm``, which asks for no primitive of the shape."""

from typing import Any

import numpy as np

from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.loops.gemm import TRANSPOSED, gemm_nest, variants
from jitkernels.more.onednn.library import external, failed, one_thread, set_threads, usable
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import inlined
from jitkernels.registry import implements

sgemm = external(
    "dnnl_sgemm",
    "int32",
    *("int32", "int32", "int64", "int64", "int64"),
    *("float", "float*", "int64", "float*", "int64", "float", "float*", "int64"),
)
PLAIN_LETTER, TRANSPOSED_LETTER = ord("N"), ord("T")


@inlined()
def gemm(
    order: int, turn_a: int, turn_b: int, rows: int, columns: int, depth: int, alpha: Any, a: Any,
    a_stride: int, b: Any, b_stride: int, beta: Any, c: Any, c_stride: int,
) -> Any:  # fmt: skip
    """As ``cblas_sgemm``; matrices are in the order of rows, as everywhere in oneDNN.

    Where there is nothing to add up it leaves c alone.
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
