"""Generated ROPE: both elements of a pair are read before either is written, so that y may be x.

What a compiler of the reference would make writes y twice, in loops of their own.
"""

from typing import Any

from jitkernels.attrs.rope import RopeAttr
from jitkernels.loops.variants import widths_and_threads
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import inlined, offset
from jitkernels.registry import Variant, implements

BLOCK_ELEMENTS = 16384
"""Elements that a thread gets at least."""


def variants(attr: RopeAttr) -> list[Variant]:
    return widths_and_threads(attr.positions // _block(attr))


def _block(attr: RopeAttr) -> int:
    """Positions per block, a power of two so that few objects serve all shapes."""
    return 1 << max(0, (BLOCK_ELEMENTS // max(2 * attr.rows * attr.half, 1)).bit_length() - 1)


@inlined("contract")
def turned(one: Any, other: Any, cos: Any, sin: Any) -> Any:
    return one * cos - other * sin, other * cos + one * sin


@implements(RopeAttr, variants=variants)
def rope(attr: RopeAttr, **variant: Any) -> LoopNest:
    step, apart_by_half = (2, False) if attr.interleaved else (1, True)

    def body(
        x: Any, cos: Any, sin: Any, y: Any, rows: int, positions: int, half: int, begin: int, end: int
    ) -> None:
        for row in range(rows):
            for position in range(begin, end):
                at = (row * positions + position) * 2 * half
                source, target = offset(x, at), offset(y, at)
                cosines, sines = offset(cos, position * half), offset(sin, position * half)
                other = half if apart_by_half else 1
                for i in range(half):
                    one, two = turned(source[step * i], source[step * i + other], cosines[i], sines[i])
                    target[step * i] = one
                    target[step * i + other] = two

    signature = attr.signature()
    return LoopNest(
        f"rope_{'interleaved' if attr.interleaved else 'halves'}_{attr.dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("positions"),
        block=_block(attr) if variant.get("parallel") else 1,
        flags=("contract",),
        reads_first=True,
        **variant,
    )
