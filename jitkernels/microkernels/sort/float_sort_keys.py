"""Integer sort keys of floats, in the same order: NaN above all, whatever its sign, and -0.0 below 0.0."""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import inlined
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.microkernels.maths.formats import FORMATS, FloatFormat


@frozen_dataclass
class SortKeys:
    """The functions for one format: `key` of a float, `float_of` a key, and `rank`, equal for equal numbers and NaN."""

    key: Any
    float_of: Any
    rank: Any


def _sort_keys(form: FloatFormat) -> SortKeys:
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
    def float_of(key: Any) -> Any:
        return (key ^ ((key >> sign_bit) & lower)).view(number)

    @inlined()
    def rank(x: Any) -> Any:
        bits = x.view(integer)
        size = bits & lower
        ordered = size if bits >= zero else zero - size
        return lower if size > infinity else ordered

    return SortKeys(key, float_of, rank)


SORT_KEYS = {dtype: _sort_keys(form) for dtype, form in FORMATS.items()}
KEY = {dtype: keys.key for dtype, keys in SORT_KEYS.items()}
FLOAT_OF = {dtype: keys.float_of for dtype, keys in SORT_KEYS.items()}
RANK = {dtype: keys.rank for dtype, keys in SORT_KEYS.items()}
INTEGER = {"float32": "int32", "float64": "int64"}
