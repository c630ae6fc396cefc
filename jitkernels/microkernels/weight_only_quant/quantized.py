"""The arguments of range kernels over quantized weights, as structs with the same fields for all formats."""

from typing import Any, NamedTuple

from jitkernels.attrs.quantized_weights import QuantizedWeightsAttr
from jitkernels.codegen.range_kernel import RangeKernel


class Quantized(NamedTuple):
    """Weights of n columns in groups: bytes ``[n, groups, size]``, scales and zero points; zero may be None."""

    q: Any
    scale: Any
    zero: Any


class QuantizedSizes(NamedTuple):
    """The extents of a product. size: bytes of a group."""

    m: int
    n: int
    groups: int
    size: int


HALF_MIN_THREAD_COLUMNS = 32
"""Half of the least number of columns per thread."""


def kernel_by_columns(
    attr: QuantizedWeightsAttr,
    name: str,
    body: Any,
    needed: Any,
    parallel: bool,
    vector_bytes: int = 64,
    block: int = HALF_MIN_THREAD_COLUMNS,
) -> RangeKernel:
    """Make the range kernel ``(a, q, scale, [zero,] c, m, n, groups, size)`` of a body."""
    signature = attr.signature()
    return RangeKernel(
        name,
        signature.c_arguments,
        body,
        extent=signature.index("n"),
        block=block,
        parallel=parallel,
        workspace=needed,
        workspace_dtype=attr.dtype,
        vector_bytes=vector_bytes,
        names=_names_of(attr),
    )


def _names_of(attr: QuantizedWeightsAttr) -> tuple[str, ...]:
    """The names of the arguments; those of 4-bit weights are called like those of 8-bit weights."""
    return tuple({"packed": "q", "half": "size"}.get(name, name) for name in attr.signature().names)
