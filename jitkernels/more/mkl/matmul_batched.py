"""MATMUL_BATCHED by MKL's ``cblas_?gemm_batch_strided``."""

import numpy as np

from jitkernels.attrs.matmul_batched import MatMulBatchedAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import offset
from jitkernels.microkernels.gemm.blas_gemm import NOT_TRANSPOSED, ROW_MAJOR, TRANSPOSED
from jitkernels.microkernels.gemm.gemm_arguments import Operands
from jitkernels.more.mkl.library import external, one_thread, set_threads, usable


@implements(MatMulBatchedAttr, can_be_used=usable)
def matmul_batched(attr: MatMulBatchedAttr) -> RangeKernel:
    single = attr.dtype == "float32"
    gemm = external("cblas_sgemm_batch_strided_64" if single else "cblas_dgemm_batch_strided_64")
    number = np.dtype(attr.dtype).type
    one, zero = number(1), number(0)
    trans_a, trans_b = attr.trans_a, attr.trans_b
    turn_a, turn_b = TRANSPOSED if trans_a else NOT_TRANSPOSED, TRANSPOSED if trans_b else NOT_TRANSPOSED

    def body(operands: Operands, m: int, n: int, k: int, begin: int, end: int) -> None:
        a, b, c = operands.a, operands.b, operands.c
        if m == 0 or n == 0 or end <= begin:
            return
        if k == 0:
            for i in range(begin * m * n, end * m * n):
                c[i] = zero
            return
        token = one_thread()
        gemm(
            ROW_MAJOR, turn_a, turn_b, m, n, k, one, offset(a, begin * m * k), m if trans_a else k, m * k,
            offset(b, begin * k * n), k if trans_b else n, k * n, zero, offset(c, begin * m * n), n, m * n,
            end - begin,
        )  # fmt: skip
        set_threads(token)

    signature = attr.signature()
    name, arguments = f"matmul_batched_{gemm.symbol}", signature.c_arguments
    return RangeKernel(name, arguments, body, extent=signature.index("batch"), names=signature.names)
