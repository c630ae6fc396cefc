"""Nests that convert what they read: one pass over inputs of other dtypes in place of a pass for each and the kernel's.

So it is with numbers beside arrays, and with elements that have gaps between them (`jitkernels.layouts`). Nests are the
kernel's own code but for what they read, so that results are the same bits.
"""

from collections.abc import Sequence

from jitkernels import dtypes, layouts
from jitkernels.attrs.base import Tolerance
from jitkernels.disk import say_once
from jitkernels.errors import BuildError
from jitkernels.kernel import Kernel
from jitkernels.native import load
from jitkernels.native.code import Code, code_of
from jitkernels.registry import find_implementation, implementation


def nest_of(kernel: Kernel, names: Sequence[str]) -> Code | None:
    """The code of a kernel for inputs of these dtypes and forms, or None where only bringing together will do.

    Where all implementations must give the same bits, any but a pinned one may lend its nest.
    """
    attr = kernel.attr
    found = implementation(type(attr), kernel.implementation)
    if kernel.rule != "pinned" and attr.tolerance() == Tolerance(ulp=0):
        found = find_implementation(type(attr), "gen") or found
    variant = dict(found.variants(attr)[0])  # what measured best did so without converting
    if "stream" in variant and found.name == kernel.implementation:
        variant["stream"] = kernel.variant.get("stream", False)
    source = found.source(attr, variant)
    names = [layouts.in_dtype(name, attr.fields()["dtype"]) for name in names]
    known = all(layouts.dtype_of(name) in dtypes.TABLE for name in names)
    if not getattr(source, "converts", False) or not known:
        return None
    nest = code_of(source.reading(names))
    return nest if load.can_be_had(nest.source) else None


def address_of(nest: Code) -> int:
    """Of its entry; 0 where it cannot be built, which is said."""
    try:
        return nest.address
    except BuildError as error:
        say_once(
            f"build {nest.source.name}", f"{nest.source.name} cannot be built, converting first: {error}"
        )
        return 0
