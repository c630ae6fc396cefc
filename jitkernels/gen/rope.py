"""Generated ROPE: the kernel loads both elements of a pair before it stores either, so that y may be x.

A compiled reference would write y twice, in loops of their own.
"""

from typing import Any, NamedTuple

from jitkernels.attrs.rope import RopeAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import inlined, offset
from jitkernels.microkernels.chunking import grain
from jitkernels.microkernels.range_kernel_of import range_kernel_of
from jitkernels.microkernels.tuning_space import widths_and_threads

ROPE_THREAD_ELEMENTS = 16384
"""Least number of elements per thread."""


def variants(attr: RopeAttr) -> list[Variant]:
    return widths_and_threads(attr.positions // grain(2 * attr.rows * attr.half, ROPE_THREAD_ELEMENTS))


@inlined("contract")
def rotated(first: Any, second: Any, cos: Any, sin: Any) -> Any:
    return first * cos - second * sin, second * cos + first * sin


class RopeArrays(NamedTuple):
    """The arrays."""

    x: Any
    cos: Any
    sin: Any
    y: Any


@implements(RopeAttr, variants=variants)
def rope(attr: RopeAttr, **variant: Any) -> RangeKernel:
    step, apart_by_half = (2, False) if attr.interleaved else (1, True)

    def body(arrays: RopeArrays, rows: int, positions: int, half: int, begin: int, end: int) -> None:
        x, cos, sin, y = arrays.x, arrays.cos, arrays.sin, arrays.y
        for row in range(rows):
            for position in range(begin, end):
                at = (row * positions + position) * 2 * half
                source, target = offset(x, at), offset(y, at)
                cosines, sines = offset(cos, position * half), offset(sin, position * half)
                distance = half if apart_by_half else 1
                for i in range(half):
                    first, two = rotated(source[step * i], source[step * i + distance], cosines[i], sines[i])
                    target[step * i] = first
                    target[step * i + distance] = two

    return range_kernel_of(
        attr,
        f"rope_{'interleaved' if attr.interleaved else 'halves'}_{attr.dtype}",
        body,
        extent="positions",
        block=grain(2 * attr.rows * attr.half, ROPE_THREAD_ELEMENTS) if variant.get("parallel") else 1,
        flags=("contract",),
        reads_first=True,
        **variant,
    )
