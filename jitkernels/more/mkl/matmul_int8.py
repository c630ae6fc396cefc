"""MATMUL_INT8 by MKL's ``cblas_gemm_s8u8s32``: in the order of rows its A is uint8 and its B int8."""

import ctypes
import functools
from typing import Any

import numpy as np

from jitkernels.attrs.matmul_int8 import MatMulInt8Attr
from jitkernels.loops.gemm import PLAIN, ROW_MAJOR, TRANSPOSED, variants
from jitkernels.loops.gemm_int8 import int8_nest, is_exact, prototype, refused
from jitkernels.more.mkl.library import address, external, one_thread, set_threads, usable
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import inlined
from jitkernels.registry import implements

NAME = "cblas_gemm_s8u8s32_64"
ARGUMENTS = (
    *["int32"] * 4, *["int64"] * 3, "float", "void*", "int64", "int32", "void*", "int64", "int32", "float", "int32*",
    "int64", "void*",
)  # fmt: skip
"""An offset of 8 bits is given as 32: those above its own count for nothing."""
ONE_OFFSET = 173
"""That of C is one number."""
gemm = external(NAME, "void", *ARGUMENTS)


@functools.cache
def _exact() -> bool:
    kinds = {"int32": ctypes.c_int32, "int64": ctypes.c_int64, "float": ctypes.c_float}
    function = prototype(address(NAME), *(kinds.get(kind, ctypes.c_void_p) for kind in ARGUMENTS))
    offset = ctypes.c_int32(0)

    def one(a: int, b: int, c: int, k: int) -> None:
        function(
            ROW_MAJOR, PLAIN, TRANSPOSED, ONE_OFFSET, 1, 1, k, 1.0, a, k, 0, b, k, 0, 0.0, c, 1,
            ctypes.addressof(offset),
        )  # fmt: skip

    return is_exact(one)


def usable_for(attr: MatMulInt8Attr) -> bool | str:
    """What `can_be_used` answers: integers, where MKL adds them up exactly."""
    why = refused(attr)
    if why:
        return why
    found = usable(attr)
    if found is not True:
        return found
    return _exact() or "MKL adds up pairs of products in 16 bits on this processor, where not all of them fit"


@implements(MatMulInt8Attr, can_be_used=usable_for, variants=variants)
def matmul_int8(attr: MatMulInt8Attr, parallel: bool = False) -> LoopNest:
    flips = attr.a_dtype == "int8"
    turn_b = TRANSPOSED if attr.trans_b else PLAIN
    less = np.int32(-128 if flips else 0)
    one, nothing = np.float32(1), np.float32(0)

    @inlined()
    def call(
        rows: int, columns: int, depth: int, a: Any, b: Any, b_stride: int, c: Any, c_stride: int, zero: Any
    ) -> Any:  # fmt: skip
        gemm(
            ROW_MAJOR, PLAIN, turn_b, ONE_OFFSET, rows, columns, depth, one, a, depth, less, b, b_stride, np.int32(0),
            nothing, c, c_stride, zero,
        )  # fmt: skip
        return np.int64(0)

    return int8_nest(attr, call, one_thread, set_threads, parallel, name=f"mkl_{attr.a_dtype}", flips=flips)
