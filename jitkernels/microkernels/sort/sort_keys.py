"""Sort keys of elements: signed integers in the same order.

Of floats NaN is above all, whatever its sign, and -0.0 below 0.0. Integers are their own keys, but for unsigned ones,
of which the first bit is flipped.
"""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import inlined
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.microkernels.maths.formats import FORMATS, FloatFormat


@frozen_dataclass
class SortKeys:
    """The functions of one dtype: `key` of an element, `element_of` a key, and `rank`, equal for equal ones and NaN."""

    key: Any
    element_of: Any
    rank: Any


def _of_floats(form: FloatFormat) -> SortKeys:
    number, integer = form.number, form.integer
    lower, infinity, zero = ~form.sign, number(np.inf).view(integer), integer(0)
    sign_bit = integer(8 * zero.itemsize - 1)

    @inlined()
    def key(x: Any) -> Any:
        bits = x.view(integer)
        size = bits & lower
        ordered = bits ^ ((bits >> sign_bit) & lower)
        return size if size > infinity else ordered

    @inlined()
    def element_of(key: Any) -> Any:
        return (key ^ ((key >> sign_bit) & lower)).view(number)

    @inlined()
    def rank(x: Any) -> Any:
        bits = x.view(integer)
        size = bits & lower
        ordered = size if bits >= zero else zero - size
        return lower if size > infinity else ordered

    return SortKeys(key, element_of, rank)


@inlined()
def _same(x: Any) -> Any:
    return x


def _of_unsigned(number: Any, integer: Any) -> SortKeys:
    top = number(1 << 8 * np.dtype(number).itemsize - 1)

    @inlined()
    def key(x: Any) -> Any:
        return (x ^ top).view(integer)

    @inlined()
    def element_of(key: Any) -> Any:
        return key.view(number) ^ top

    return SortKeys(key, element_of, key)


SORT_KEYS = {
    **{dtype: _of_floats(form) for dtype, form in FORMATS.items()},
    **dict.fromkeys(("int32", "int64"), SortKeys(_same, _same, _same)),
    "uint64": _of_unsigned(np.uint64, np.int64),
}
KEY = {dtype: keys.key for dtype, keys in SORT_KEYS.items()}
ELEMENT_OF = {dtype: keys.element_of for dtype, keys in SORT_KEYS.items()}
RANK = {dtype: keys.rank for dtype, keys in SORT_KEYS.items()}
INTEGER = {dtype: f"int{8 * np.dtype(dtype).itemsize}" for dtype in SORT_KEYS}
"""The dtypes of keys."""
