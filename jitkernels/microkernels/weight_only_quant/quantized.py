"""The arguments of range kernels over quantized weights, as structs with the same fields for all formats."""

from typing import Any, NamedTuple

from jitkernels.attrs.quantized_weights import QuantizedWeightsAttr


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


def names_of(attr: QuantizedWeightsAttr) -> tuple[str, ...]:
    """The names of the arguments; those of 4-bit weights are called like those of 8-bit weights."""
    return tuple({"packed": "q", "half": "size"}.get(name, name) for name in attr.signature().names)
