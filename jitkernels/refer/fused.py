"""NumPy reference of fused expressions: node by node."""

from jitkernels.attrs.fused import FusedAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray


@implements(FusedAttr)
def fused(attr: FusedAttr, *arrays: AnyArray) -> None:
    attr.computes.run(arrays, attr.extents())
