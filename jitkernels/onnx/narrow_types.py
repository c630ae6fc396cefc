"""Elements that NumPy lacks: bfloat16, floats of 8 and 4 bits, ints of 4 and 2 bits.

Compiled code sees their bits, in arrays of bytes or of 16-bit words. An operator gets them widened to float32 or to
8-bit ints, and results whose type is that of such an operand are rounded back. Floats are taken apart by arithmetic: a
number is a count of steps, and the step, a power of two, is NumPy's spacing of its neighbours.
"""

from typing import Any, NamedTuple

import numpy as np

from jitkernels.onnx.values import constant, is_traced, like

MANTISSA = 23
"""Bits of the mantissa of float32."""


class FloatForm(NamedTuple):
    """A format of floats: its bits, those of the mantissa, the bias of exponents, and special codes.

    `largest`: the code of the largest finite number; `infinity`: that of infinity, 0 without one; `nan`: that of NaN,
    0 without one. `unsigned_zero`: there is no negative zero, whose code is NaN.
    """

    bits: int
    mantissa: int
    bias: int
    largest: int
    infinity: int = 0
    nan: int = 0
    unsigned_zero: bool = False


FLOATS = {
    "bfloat16": FloatForm(16, 7, 127, 0x7F7F, 0x7F80, 0x7FC0),
    "float8_e4m3fn": FloatForm(8, 3, 7, 0x7E, 0, 0x7F),
    "float8_e4m3fnuz": FloatForm(8, 3, 8, 0x7F, 0, 0x80, True),
    "float8_e5m2": FloatForm(8, 2, 15, 0x7B, 0x7C, 0x7E),
    "float8_e5m2fnuz": FloatForm(8, 2, 16, 0x7F, 0, 0x80, True),
    "float4_e2m1fn": FloatForm(4, 1, 1, 0x7, 0, 0x8),
}
INTS = {"int4": (4, True), "uint4": (4, False), "int2": (2, True), "uint2": (2, False)}
"""Their bits, and whether they are signed."""


class NarrowArray:
    """An array of such elements in a trace: its bits, and its dtype."""

    def __init__(self, bits: Any, dtype: Any) -> None:
        self.bits, self.dtype = bits, np.dtype(dtype)

    @property
    def shape(self) -> tuple[Any, ...]:
        return self.bits.shape  # type: ignore[no-any-return]

    @property
    def ndim(self) -> int:
        return self.bits.ndim  # type: ignore[no-any-return]


def is_narrow(dtype: Any) -> bool:
    """Whether a dtype is one of these."""
    return np.dtype(dtype).name in FLOATS or np.dtype(dtype).name in INTS


def bits_type(dtype: Any) -> Any:
    """The dtype of the bits of elements."""
    return np.dtype(np.uint16 if np.dtype(dtype).itemsize == 2 else np.uint8)


def has_narrow(value: Any) -> bool:
    """Whether a value is an array of such elements."""
    return type(value) is NarrowArray or (
        isinstance(value, np.ndarray) and not is_traced(value) and is_narrow(value.dtype)
    )


def widened(value: Any) -> Any:
    """Such an array in float32, or in 8-bit ints; other values unchanged."""
    if type(value) is not NarrowArray:
        if not has_narrow(value):
            return value
        return value.astype(
            np.float32 if value.dtype.name in FLOATS else np.int8 if value.dtype.name[0] == "i" else np.uint8
        )
    name = value.dtype.name
    if name in FLOATS:
        return _float_of(value.bits.astype(np.int32), FLOATS[name])
    width, signed = INTS[name]
    low = value.bits & value.bits.dtype.type((1 << width) - 1)
    if not signed:
        return low
    half = np.int8(1 << (width - 1))
    return (low.astype(np.int8) ^ half) - half


def narrowed(value: Any, dtype: Any, *, saturate: bool = True) -> Any:
    """An array rounded to the nearest such elements; what is too large becomes the largest one, or infinity or NaN."""
    dtype = np.dtype(dtype)
    name = dtype.name
    if name in FLOATS:
        form = FLOATS[name]
        wide = value.astype(np.float32) if value.dtype != np.float32 else value
        limited = (saturate or form.bits == 4) and name != "bfloat16"
        bits = _bits_of(wide, form, limited).astype(bits_type(dtype))
    else:
        whole = value.astype(np.int32) if value.dtype.kind != "f" else np.trunc(value).astype(np.int32)
        bits = (whole & np.int32((1 << INTS[name][0]) - 1)).astype(np.uint8)
    if is_traced(bits):
        return NarrowArray(bits, dtype)
    return constant(np.ascontiguousarray(bits).view(dtype).reshape(np.shape(bits)))


def _bits_of(x: Any, form: FloatForm, saturate: bool) -> Any:
    """The codes of float32 numbers in a format."""
    lowest = 1 - form.bias - form.mantissa
    finite = np.isfinite(x)
    size = np.where(finite, np.absolute(x), like(1, x))
    step = np.maximum(np.spacing(size) * like(2.0 ** (MANTISSA - form.mantissa), x), like(2.0**lowest, x))
    exponent = np.rint(np.log2(step)).astype(np.int32) - np.int32(lowest)
    code = exponent * np.int32(1 << form.mantissa) + np.rint(size / step).astype(np.int32)
    over = form.largest if saturate or not (form.infinity or form.nan) else form.infinity or form.nan
    code = np.where(finite & (code <= np.int32(form.largest)), code, np.int32(over))
    sign = np.int32(1 << (form.bits - 1))
    negative = np.signbit(x)
    if form.unsigned_zero:
        negative = negative & (code != np.int32(0))
    code = np.where(negative, code | sign, code)
    return np.where(np.isnan(x), np.int32(form.nan), code)


def _float_of(code: Any, form: FloatForm) -> Any:
    """The float32 numbers of codes in a format."""
    sign = np.int32(1 << (form.bits - 1))
    size = code & (sign - np.int32(1))
    exponent = size >> np.int32(form.mantissa)
    hidden = np.where(exponent > np.int32(0), np.int32(1 << form.mantissa), np.int32(0))
    steps = (size & np.int32((1 << form.mantissa) - 1)) + hidden
    scale = np.maximum(exponent, np.int32(1)) - np.int32(form.bias + form.mantissa)
    value = np.ldexp(steps.astype(np.float32), scale)
    value = np.where((code & sign) != np.int32(0), -value, value)
    if form.unsigned_zero:
        return np.where(code == np.int32(form.nan), np.float32(np.nan), value)
    if form.infinity:
        infinite = np.where((code & sign) != np.int32(0), np.float32(-np.inf), np.float32(np.inf))
        value = np.where(size == np.int32(form.infinity), infinite, value)
        return np.where(size > np.int32(form.infinity), np.float32(np.nan), value)
    return np.where(size > np.int32(form.largest), np.float32(np.nan), value) if form.nan else value
