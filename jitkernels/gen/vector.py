"""Generated elementwise kernels: one loop, vectorised by LLVM, serial or in parallel."""

from collections.abc import Callable
from typing import Any

from jitkernels.attrs.vector import VectorAttr, VMulAttr
from jitkernels.native.loop_nest import LoopNest
from jitkernels.registry import Variant, implements

BLOCK = 4096
"""Elements that a thread gets at least: less is done before another thread has woken up."""


def variants(attr: VectorAttr) -> list[Variant]:
    """Serial first; in parallel as well once there are two blocks for two threads."""
    return [{"parallel": False}, {"parallel": True}] if attr.n >= 4 * BLOCK else [{"parallel": False}]


def elementwise(attr: VectorAttr, body: Callable[..., None], parallel: bool) -> LoopNest:
    """The loop nest of an elementwise kernel; one object serves every n."""
    signature = attr.signature()
    return LoopNest(
        f"{attr.name}_{attr.dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("n"),
        block=BLOCK,
        parallel=parallel,
    )


@implements(VMulAttr, variants=variants)
def vmul(attr: VMulAttr, parallel: bool = False) -> LoopNest:
    def body(x: Any, y: Any, z: Any, n: int, begin: int, end: int) -> None:
        for i in range(begin, end):
            z[i] = x[i] * y[i]

    return elementwise(attr, body, parallel)
