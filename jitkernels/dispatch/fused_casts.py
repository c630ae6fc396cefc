"""Kernels with fused casts: one pass over inputs of other dtypes instead of one pass per cast and one for the kernel.

They also read scalars beside arrays, and strided arrays (`jitkernels.core.operand_forms`). The code differs from the
kernel's only in its loads, so that results are the same bits.
"""

from collections.abc import Sequence

from jitkernels.attrs.schema.base import Tolerance
from jitkernels.attrs.schema.registry import find_implementation, implementation
from jitkernels.core import dtypes, operand_forms
from jitkernels.core.atomic_files import warn_once
from jitkernels.dispatch.kernel import Kernel
from jitkernels.errors import BuildError
from jitkernels.runtime.loading import loader
from jitkernels.runtime.loading.compiled_code import Code, code_of


def nest_of(kernel: Kernel, names: Sequence[str]) -> Code | None:
    """The code of a kernel for inputs of these dtypes and forms, or None if only separate casts can serve them.

    Where all implementations must return the same bits, the nest of any but a pinned one may be used.
    """
    attr = kernel.attr
    provider = implementation(type(attr), kernel.implementation)
    if kernel.rule != "pinned" and attr.tolerance() == Tolerance(ulp=0):
        provider = find_implementation(type(attr), "gen") or provider
    variant = dict(provider.variants(attr)[0])  # the measured variant was measured without casts
    if "stream" in variant and provider.name == kernel.implementation:
        variant["stream"] = kernel.variant.get("stream", False)
    source = provider.source(attr, variant)
    names = [operand_forms.in_dtype(name, attr.fields()["dtype"]) for name in names]
    known = all(operand_forms.dtype_of(name) in dtypes.TABLE for name in names)
    if not getattr(source, "converts", False) or not known:
        return None
    nest = code_of(source.reading(names))
    return nest if loader.is_loadable(nest.source) else None


def address_of(nest: Code) -> int:
    """The address of a nest's entry; 0, with a warning, if it cannot be built."""
    try:
        return nest.address
    except BuildError as error:
        warn_once(
            f"build {nest.source.name}", f"{nest.source.name} cannot be built, falling back to separate casts: {error}"
        )
        return 0
