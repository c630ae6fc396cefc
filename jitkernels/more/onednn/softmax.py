"""SOFTMAX along the last axis by primitives of oneDNN.

Along another axis they add sequentially, and their logarithm of a softmax is ``x - (maximum + log(sum))``, which loses
the leading digits that all elements of a row share: neither is accurate enough, so that LOG_SOFTMAX is not here.
"""

from typing import Any

from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.attrs.softmax import SoftmaxAttr
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import offset
from jitkernels.microkernels.chunking import grain, threads
from jitkernels.more.onednn.primitives import SOFTMAX, primitives, usable

MAX_TERMS = 4096
"""Most terms that oneDNN adds accurately enough: sums of some ten thousand equal terms exceed the bound several times.
"""


def usable_of_rows(attr: SoftmaxAttr) -> bool | str:
    """Return whether oneDNN is here, and the axis is the last one."""
    if attr.remain != 1:
        return "along an axis that is not the last oneDNN adds sequentially, which is not accurate enough"
    if attr.n > MAX_TERMS:
        return f"sums of more than {MAX_TERMS} exponentials exceed the error bound of the kernel"
    return usable(attr)


def variants(attr: SoftmaxAttr) -> list[Variant]:
    return threads(attr.rows // grain(attr.n))


@implements(SoftmaxAttr, can_be_used=usable_of_rows, variants=variants)
def softmax(attr: SoftmaxAttr, parallel: bool = False) -> RangeKernel:
    def body(x: Any, y: Any, rows: int, n: int, remain: int, begin: int, end: int) -> Any:
        first = offset(x, begin * n)
        return primitives(SOFTMAX, first, first, first, offset(y, begin * n), end - begin, n, 0.0)

    signature = attr.signature()
    return RangeKernel(
        "softmax_onednn",
        signature.c_arguments,
        body,
        extent=signature.index("rows"),
        block=grain(attr.n) if parallel else 1,
        parallel=parallel,
    )
