"""VMIDDLE under a name that is not ours, and no ``gen`` beside it."""

from typing import Any

from jitkernels.attrs.schema.registry import implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels_test_plugin.middle import VMiddleAttr


@implements(VMiddleAttr, name="handmade")
def vmiddle(attr: VMiddleAttr) -> RangeKernel:
    def body(x: Any, y: Any, z: Any, n: int, begin: int, end: int) -> None:
        for i in range(begin, end):
            z[i] = x[i] / 2 + y[i] / 2

    # Without flags: half the sum may overflow where the sum of the halves does not.
    signature = attr.signature()
    return RangeKernel(f"vmiddle_{attr.dtype}", signature.c_arguments, body, extent=signature.index("n"), flags=())
