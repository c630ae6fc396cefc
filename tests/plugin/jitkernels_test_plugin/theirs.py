"""VMUL, one of our rows, by another implementation; for lengths up to a million only."""

from typing import Any

import jitkernels as jk
from jitkernels.codegen.range_kernel import RangeKernel

MOST = 1 << 20


def usable(attr: Any) -> bool | str:
    """Short vectors only."""
    return attr.n <= MOST or f"it takes up to {MOST} elements"


@jk.implements(jk.VMulAttr, name="theirs", can_be_used=usable)
def vmul(attr: Any) -> RangeKernel:
    def body(x: Any, y: Any, z: Any, n: int, begin: int, end: int) -> None:
        for i in range(begin, end):
            z[i] = y[i] * x[i]

    signature = attr.signature()
    return RangeKernel(f"theirs_{attr.dtype}", signature.c_arguments, body, extent=signature.index("n"))
