"""QUANTIZE by numba."""

from typing import Any

import numpy as np

from jitkernels.attrs.quantize import QuantizeAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.more.numba.numba_kernel import maximum, minimum, numba_kernel, real, rint, threads_along, usable


@implements(QuantizeAttr, can_be_used=usable, variants=threads_along("rows"))
def quantize(attr: QuantizeAttr, parallel: bool = False) -> RangeKernel:
    low, high = (0, 255) if attr.q_dtype == "uint8" else (-128, 127)
    small: Any = np.uint8 if attr.q_dtype == "uint8" else np.int8

    def plain(x: Any, scale: Any, q: Any, n: int, begin: int, end: int) -> None:
        for row in range(begin, end):
            for i in range(row * n, (row + 1) * n):
                whole = rint(x[i] / scale[row])
                whole = whole if whole == whole else real(0)
                q[i] = small(minimum(maximum(whole, real(low)), real(high)))

    def shifted(x: Any, scale: Any, zero: Any, q: Any, n: int, begin: int, end: int) -> None:
        for row in range(begin, end):
            shift = real(zero[row])
            for i in range(row * n, (row + 1) * n):
                whole = rint(x[i] / scale[row])
                whole = (whole if whole == whole else real(0)) + shift
                q[i] = small(minimum(maximum(whole, real(low)), real(high)))

    return numba_kernel(attr, shifted if attr.shifted else plain, "rows", parallel=parallel)
