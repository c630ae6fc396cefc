"""Generated LAYER_NORM, by hand: mean, variance about the mean, and the result, row by row.

What the reference makes takes two to three times as long, as that computes in the next wider type, which is not there
for float64.

Rows that lie far from zero for their spread, or whose squares leave the range of the type, are gone through
again, with the mean corrected by the mean distance from it and the row scaled by a power of two.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from jitkernels import machine
from jitkernels.attrs.layer_norm import LayerNormAttr
from jitkernels.loops.row_reduction import row_squares, row_sum
from jitkernels.loops.variants import widths_and_threads
from jitkernels.maths.exact import distance, lost_in, plus, settled, times, times_plus
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import apart, inlined, offset, vectors
from jitkernels.registry import Variant, implements

BLOCK_ELEMENTS = 8192
"""Elements that a thread gets at least."""
SUMMED = 4096
"""Elements of a row that are added up before they are joined to the sum."""
SHORT_BYTES = 96
"""Rows up to this size are done in vectors of 32 bytes, whose lanes are added up sooner."""
SPREAD = 16.0
"""A mean whose square is more than so many variances is corrected: its rounding would show in the result."""


@dataclass(frozen=True)
class Limits:
    """Sums of squares that lost nothing to underflow or overflow, and what brings a row of others there."""

    smallest: float
    largest: float
    unit: float


LIMITS = {
    "float32": Limits(2.0**-90, 2.0**120, 2.0**84),
    "float64": Limits(2.0**-900, 2.0**1000, 2.0**530),
}


def variants(attr: LayerNormAttr) -> list[Variant]:
    return widths_and_threads(attr.rows // _block(attr))


def _block(attr: LayerNormAttr) -> int:
    """Rows per block, a power of two so that few objects serve all shapes."""
    return 1 << max(0, (BLOCK_ELEMENTS // max(attr.n, 1)).bit_length() - 1)


@implements(LayerNormAttr, variants=variants)
def layer_norm(attr: LayerNormAttr, **variant: Any) -> LoopNest:
    number = np.dtype(attr.dtype).type
    limits = LIMITS[attr.dtype]
    zero, one, spread = number(0), number(1), number(SPREAD)
    smallest, largest, near = number(limits.smallest), number(limits.largest), number(limits.smallest**0.5)
    tiny = np.finfo(attr.dtype).tiny
    up, down = number(limits.unit), number(1 / limits.unit)

    @apart("reassoc", "contract")
    def measures_with_care(x: Any, first: int, n: int, eps: Any) -> Any:
        last, count = first + n, number(n)
        share = count / spread
        mean, unit, passes = zero, one, 3
        while True:
            total, total_lost, squares, squares_lost = zero, zero, zero, zero
            for start in range(first, last, SUMMED):
                part, part_squares = zero, zero
                for i in range(start, min(start + SUMMED, last)):
                    from_mean = distance(x[i], unit, mean)
                    part += from_mean
                    part_squares += from_mean * from_mean
                total_lost += lost_in(total, part)
                total = plus(total, part)
                squares_lost += lost_in(squares, part_squares)
                squares = plus(squares, part_squares)
            total = settled(total, total_lost)
            mean = plus(mean, total / count)
            squares = settled(squares, squares_lost) - total / count * total
            passes -= 1
            if passes == 2:
                continue  # the squares were not about the mean
            if (squares - mean * mean * share >= smallest) & (squares <= largest):
                return unit, mean, one / np.sqrt(squares / count + eps)
            if unit == one and not squares <= largest:
                # An eps that is not zero stays so: of a constant row there is nothing else.
                eps = max(times(times(eps, down), down), tiny) if eps > zero else zero
                mean, unit, passes = zero, down, 3
            elif unit == one and (squares < smallest) & (abs(mean) < near) & (eps < near * near):
                mean, unit, eps, passes = zero, up, times(times(eps, up), up), 3
            elif passes == 0:
                return unit, mean, one / np.sqrt(squares / count + eps)

    def rows_in_vectors(width: int) -> Any:
        """The loop over rows in vectors of so many bytes."""
        lanes = machine.target().masked_lanes(attr.dtype, width)
        sum_of, squares_of = row_sum(attr.dtype, width), row_squares(attr.dtype, width)

        @inlined("reassoc", "contract")
        def measures(x: Any, n: int, eps: Any) -> Any:
            """What a row is multiplied by, what is then subtracted, and by what the distances are multiplied."""
            if n <= SUMMED:
                share = one / number(n)
                mean = times(sum_of(x, n), share)
                squares = squares_of(x, n, mean)
                is_near = squares - mean * mean * (number(n) / spread) >= smallest
                if is_near & (squares <= largest) | (n == 1):  # the mean of one element is exact
                    return one, mean, one / np.sqrt(times(squares, share) + eps)
            return measures_with_care(x, 0, n, eps)

        # By `times`, as LLVM would divide every element by the root if it saw that the factor is one over it.
        @inlined()
        def plain(x: Any, y: Any, n: int, eps: Any, begin: int, end: int) -> None:
            for row in range(begin, end):
                xs, ys = offset(x, row * n), offset(y, row * n)
                unit, mean, factor = measures(xs, n, eps)
                for i in vectors(0, n, lanes):
                    ys[i] = times(distance(xs[i], unit, mean), factor)

        @inlined()
        def affine(x: Any, scale: Any, bias: Any, y: Any, n: int, eps: Any, begin: int, end: int) -> None:
            for row in range(begin, end):
                xs, ys = offset(x, row * n), offset(y, row * n)
                unit, mean, factor = measures(xs, n, eps)
                for i in vectors(0, n, lanes):
                    ys[i] = times_plus(times(distance(xs[i], unit, mean), factor), scale[i], bias[i])

        return affine if attr.affine else plain

    width = min(variant.get("vector_bytes", 64), machine.target().vector_bytes)
    wide, narrow = rows_in_vectors(width), rows_in_vectors(min(width, 32))
    is_narrow, short = width <= 32, SHORT_BYTES // number(0).itemsize

    def plain(x: Any, y: Any, rows: int, n: int, eps: Any, begin: int, end: int) -> None:
        if is_narrow or n <= short:
            narrow(x, y, n, number(eps[0]), begin, end)
        else:
            wide(x, y, n, number(eps[0]), begin, end)

    def affine(
        x: Any, scale: Any, bias: Any, y: Any, rows: int, n: int, eps: Any, begin: int, end: int
    ) -> None:
        if is_narrow or n <= short:
            narrow(x, scale, bias, y, n, number(eps[0]), begin, end)
        else:
            wide(x, scale, bias, y, n, number(eps[0]), begin, end)

    signature = attr.signature()
    return LoopNest(
        f"layer_norm_{attr.dtype}",
        signature.c_arguments,
        affine if attr.affine else plain,
        extent=signature.index("rows"),
        block=_block(attr) if variant.get("parallel") else 1,
        reads_first=True,
        **variant,
    )
