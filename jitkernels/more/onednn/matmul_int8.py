"""MATMUL_INT8 by oneDNN's ``dnnl_gemm_s8s8s32`` and ``dnnl_gemm_u8s8s32``."""

import ctypes
import functools
from typing import Any

import numpy as np

from jitkernels.attrs.matmul_int8 import MatMulInt8Attr
from jitkernels.loops.gemm import variants
from jitkernels.loops.gemm_int8 import int8_nest, is_exact, prototype, refused
from jitkernels.more.onednn.library import address, external, failed, library, one_thread, set_threads
from jitkernels.more.onednn.matmul import PLAIN_LETTER, TRANSPOSED_LETTER
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import inlined
from jitkernels.registry import implements

NAMES = {"int8": "dnnl_gemm_s8s8s32", "uint8": "dnnl_gemm_u8s8s32"}
ARGUMENTS = (
    *["int32"] * 3, *["int64"] * 3, "float", "void*", "int64", "int32", "void*", "int64", "int32", "float", "int32*",
    "int64", "void*",
)  # fmt: skip
"""A letter or an offset of 8 bits is given as 32: those above its own count for nothing."""
ONE_OFFSET = ord("F")
"""That of C is one number."""


@functools.cache
def _exact() -> bool:
    kinds = {"int32": ctypes.c_int32, "int64": ctypes.c_int64, "float": ctypes.c_float}
    function = prototype(address(NAMES["uint8"]), *(kinds.get(kind, ctypes.c_void_p) for kind in ARGUMENTS))
    offset = ctypes.c_int32(0)

    def one(a: int, b: int, c: int, k: int) -> None:
        function(
            PLAIN_LETTER, TRANSPOSED_LETTER, ONE_OFFSET, 1, 1, k, 1.0, a, k, 0, b, k, 0, 0.0, c, 1,
            ctypes.addressof(offset),
        )  # fmt: skip

    return is_exact(one)


def usable_for(attr: MatMulInt8Attr) -> bool | str:
    """What `can_be_used` answers: integers, where oneDNN adds them up exactly."""
    why = refused(attr)
    if why:
        return why
    found, reason = library()
    if found is None:
        return reason
    return (
        _exact() or "oneDNN adds up pairs of products in 16 bits on this processor, where not all of them fit"
    )


@implements(MatMulInt8Attr, can_be_used=usable_for, variants=variants)
def matmul_int8(attr: MatMulInt8Attr, parallel: bool = False) -> LoopNest:
    gemm = external(NAMES[attr.a_dtype], "int32", *ARGUMENTS)
    letter_b = np.int32(TRANSPOSED_LETTER if attr.trans_b else PLAIN_LETTER)
    letter_a, no_offset = np.int32(PLAIN_LETTER), np.int32(0)
    one, nothing = np.float32(1), np.float32(0)

    @inlined()
    def call(
        rows: int, columns: int, depth: int, a: Any, b: Any, b_stride: int, c: Any, c_stride: int, zero: Any
    ) -> Any:  # fmt: skip
        status = gemm(
            letter_a, letter_b, np.int32(ONE_OFFSET), rows, columns, depth, one, a, depth, no_offset, b, b_stride,
            no_offset, nothing, c, c_stride, zero,
        )  # fmt: skip
        return failed(status)

    return int8_nest(
        attr, call, one_thread, set_threads, parallel, name=f"onednn_{attr.a_dtype}", flips=False
    )
