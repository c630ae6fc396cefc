"""NumPy reference of fused expressions: node by node."""

from jitkernels.attrs.fused import FusedAttr
from jitkernels.registry import implements
from jitkernels.signature import AnyArray


@implements(FusedAttr)
def fused(attr: FusedAttr, *arrays: AnyArray) -> None:
    attr.computes.run(arrays, attr.extents())
