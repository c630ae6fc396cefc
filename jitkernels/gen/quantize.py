"""Generated QUANTIZE: products with the reciprocal of the scale, and divisions where these might round otherwise.

A division takes as long as all else. The quotient lies between the products with two numbers a little below and above
the reciprocal: where these differ as integers, and for NaN, whole blocks are divided, at once where the block before
had many uncertain results. Adding a number with no fraction bits rounds a product to an integer.
"""

from typing import Any

import numpy as np

from jitkernels.attrs.quantize import QuantizeAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range, inlined, offset
from jitkernels.microkernels.chunking import grain
from jitkernels.microkernels.range_kernel_of import range_kernel_of
from jitkernels.microkernels.tuning_space import widths_and_threads

DIVIDED_ELEMENTS = 512
"""Elements per block that is divided as a whole."""
UNSURE = 8
"""From so many uncertain in a block on, the next block is expected to have some, too."""
WORK = 1 << 15
"""Least number of elements per thread."""


def variants(attr: QuantizeAttr) -> list[Variant]:
    return widths_and_threads(attr.rows // grain(attr.n, WORK))


def rows_of(attr: QuantizeAttr) -> Any:
    """Return the function that quantizes a row: by products, and by quotients where a product is uncertain."""
    number, whole = np.dtype(attr.dtype).type, np.dtype(attr.q_dtype).type
    ends = np.iinfo(attr.q_dtype)
    low, high = number(ends.min), number(ends.max)
    size = np.dtype(attr.dtype).itemsize
    bits, unsigned = {4: (np.int32, np.uint32), 8: (np.int64, np.uint64)}[size]
    digits = np.finfo(attr.dtype).nmant
    # A product below 384 that lies closer to the middle of two integers may round the other way.
    sure, most = number(0.5 - 384 * 2.0 ** (1 - digits)), number(2.0 ** (np.finfo(attr.dtype).maxexp - 2))
    zero, one = number(0), number(1)
    # Five roundings separate the quotient from either product, each a factor of at most 1 + 2**(-1 - digits).
    beside = number(6 * 2.0 ** (-1 - digits))
    whole_part = number(1.5 * 2.0**digits)  # the last bits of a sum with it are an integer
    least, largest = whole_part + low, whole_part + high
    infinity = number(np.inf).view(unsigned)

    @inlined("contract")
    def integer(nearest: Any, start: Any) -> Any:
        return whole(min(max(nearest + start, low), high))

    @inlined("contract")
    def multiplied(x: Any, q: Any, n: int, inverse: Any, start: Any) -> Any:
        """Return whether all results are certain."""
        below, above, added = inverse * (one - beside), inverse * (one + beside), whole_part + start
        differing, highest = bits(0), unsigned(0)
        for i in range(n):
            result = x[i] * above + added
            differing |= result.view(bits) ^ (x[i] * below + added).view(bits)
            highest = max(highest, result.view(unsigned))  # not below infinity: NaN, or far below any result
            q[i] = whole(min(max(result, least), largest).view(bits))
        return (differing == bits(0)) & (highest <= infinity)

    @inlined("contract")
    def divided(x: Any, q: Any, n: int, scale: Any, start: Any) -> Any:
        """Divide, and count the results for which a product is uncertain."""
        uncertain = np.int32(0)
        for i in range(n):
            quotient = x[i] / scale
            nearest = np.rint(quotient)
            uncertain += np.int32(0) if abs(quotient - nearest) < sure else np.int32(1)
            q[i] = integer(nearest if nearest == nearest else zero, start)
        return uncertain

    @inlined("contract")
    def of_row(x: Any, q: Any, n: int, scale: Any, start: Any) -> None:
        size = abs(scale)
        is_plain = (size > one / most) & (size < most)
        inverse = one / (scale if is_plain else one)
        divides = not is_plain
        for first in range(0, n, DIVIDED_ELEMENTS):
            count = min(DIVIDED_ELEMENTS, n - first)
            is_sure = False
            if not divides:
                is_sure = multiplied(offset(x, first), offset(q, first), count, inverse, start)
            if not is_sure:
                divides = (divided(offset(x, first), offset(q, first), count, scale, start) > UNSURE) | (not is_plain)

    return of_row


@implements(QuantizeAttr, variants=variants)
def quantize(attr: QuantizeAttr, **variant: Any) -> RangeKernel:
    number, quantize_row = np.dtype(attr.dtype).type, rows_of(attr)

    def body(x: Any, scale: Any, zero: Any, q: Any, n: int, part: Range) -> None:
        for row in range(part.begin, part.end):
            start = number(0 if zero is None else zero[row])
            quantize_row(offset(x, row * n), offset(q, row * n), n, scale[row], start)

    return range_kernel_of(
        attr,
        f"quantize_{attr.dtype}_{attr.q_dtype}",
        body,
        extent="rows",
        block=grain(attr.n, WORK) if variant.get("parallel") else 1,
        flags=(),
        **variant,
    )
