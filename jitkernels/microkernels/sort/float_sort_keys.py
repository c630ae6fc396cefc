"""Integer sort keys of floats, in the same order: NaN above all, whatever its sign, and -0.0 below 0.0."""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import inlined

LOWER_32, LOWER_64 = np.int32(0x7FFFFFFF), np.int64(0x7FFFFFFFFFFFFFFF)
INFINITY_32, INFINITY_64 = np.int32(0x7F800000), np.int64(0x7FF0000000000000)
ZERO_32, ZERO_64 = np.int32(0), np.int64(0)
SIGN_32, SIGN_64 = np.int32(31), np.int64(63)


@inlined()
def key_float32(x: Any) -> Any:
    bits = x.view(np.int32)
    size = bits & LOWER_32
    ordered = bits ^ ((bits >> SIGN_32) & LOWER_32)
    return size if size > INFINITY_32 else ordered


@inlined()
def key_float64(x: Any) -> Any:
    bits = x.view(np.int64)
    size = bits & LOWER_64
    ordered = bits ^ ((bits >> SIGN_64) & LOWER_64)
    return size if size > INFINITY_64 else ordered


@inlined()
def float_of_int32(key: Any) -> Any:
    return (key ^ ((key >> SIGN_32) & LOWER_32)).view(np.float32)


@inlined()
def float_of_int64(key: Any) -> Any:
    return (key ^ ((key >> SIGN_64) & LOWER_64)).view(np.float64)


@inlined()
def rank_float32(x: Any) -> Any:
    """Return the key, with equal zeros and equal NaN."""
    bits = x.view(np.int32)
    size = bits & LOWER_32
    ordered = size if bits >= ZERO_32 else ZERO_32 - size
    return LOWER_32 if size > INFINITY_32 else ordered


@inlined()
def rank_float64(x: Any) -> Any:
    """Return the key, with equal zeros and equal NaN."""
    bits = x.view(np.int64)
    size = bits & LOWER_64
    ordered = size if bits >= ZERO_64 else ZERO_64 - size
    return LOWER_64 if size > INFINITY_64 else ordered


KEY = {"float32": key_float32, "float64": key_float64}
FLOAT_OF = {"float32": float_of_int32, "float64": float_of_int64}
RANK = {"float32": rank_float32, "float64": rank_float64}
INTEGER = {"float32": "int32", "float64": "int64"}
