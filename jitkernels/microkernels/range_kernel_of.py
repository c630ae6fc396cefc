"""The range kernel of an attr: it takes the attr's arguments, by name."""

from typing import Any

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.codegen.range_kernel import RangeKernel


def range_kernel_of(attr: KernelAttr, name: str, body: Any, *, extent: str, **options: Any) -> RangeKernel:
    """The range kernel of `attr`; `extent`: the name of the extent whose range it divides.

    `options`: the other fields of `RangeKernel`; `names` among them renames arguments.
    """
    signature = attr.signature()
    options = {"names": signature.names, **options}
    return RangeKernel(name, signature.c_arguments, body, signature.index(extent), **options)
