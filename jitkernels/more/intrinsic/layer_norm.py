"""LAYER_NORM in C with intrinsics."""

from typing import Any, NamedTuple

from jitkernels.attrs.layer_norm import LayerNormAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.c_source import CSource
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import offset
from jitkernels.microkernels.chunking import grain, threads
from jitkernels.microkernels.range_kernel_of import range_kernel_of
from jitkernels.more.intrinsic.source import external, source, usable


class AffineArrays(NamedTuple):
    """The arrays; scale and bias may be absent."""

    x: Any
    scale: Any
    bias: Any
    y: Any


def variants(attr: LayerNormAttr) -> list[Variant]:
    return threads(attr.rows // grain(attr.n))


def can_be_used(attr: LayerNormAttr) -> bool | str:
    return "it returns no mean and variance" if attr.stats else usable(attr)


@implements(LayerNormAttr, can_be_used=can_be_used, variants=variants)
def layer_norm(attr: LayerNormAttr, parallel: bool = False) -> CSource | RangeKernel:
    signature = attr.signature()
    function = "layer_norm" if attr.affine else "layer_norm_plain"
    built = source("layer_norm", function, attr.dtype, signature.c_arguments)
    if not parallel:
        return built
    normalize = external(built)

    def body(arrays: AffineArrays, n: int, eps: Any, begin: int, end: int) -> Any:
        x, y = offset(arrays.x, begin * n), offset(arrays.y, begin * n)
        if arrays.scale is None:
            status = normalize(x, y, end - begin, n, eps)
        else:
            status = normalize(x, arrays.scale, arrays.bias, y, end - begin, n, eps)
        return status

    return range_kernel_of(attr, built.name, body, extent="rows", block=grain(attr.n), parallel=True)
