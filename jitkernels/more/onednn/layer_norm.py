"""LAYER_NORM by primitives of oneDNN."""

from typing import Any, NamedTuple

from jitkernels.attrs.layer_norm import LayerNormAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import offset
from jitkernels.microkernels.chunking import grain, threads
from jitkernels.microkernels.range_kernel_of import range_kernel_of
from jitkernels.more.onednn.primitives import LAYER_NORM, LAYER_NORM_PLAIN, primitives, usable


class LayerNormTensors(NamedTuple):
    """The arrays; scale and bias may be absent."""

    x: Any
    scale: Any
    bias: Any
    y: Any


def variants(attr: LayerNormAttr) -> list[Variant]:
    return threads(attr.rows // grain(attr.n))


def can_be_used(attr: LayerNormAttr) -> bool | str:
    return "its primitive returns no mean and variance at inference" if attr.stats else usable(attr)


@implements(LayerNormAttr, can_be_used=can_be_used, variants=variants)
def layer_norm(attr: LayerNormAttr, parallel: bool = False) -> RangeKernel:
    kind = LAYER_NORM if attr.affine else LAYER_NORM_PLAIN

    def body(arrays: LayerNormTensors, n: int, eps: Any, begin: int, end: int) -> Any:
        first, result = offset(arrays.x, begin * n), offset(arrays.y, begin * n)
        scale, bias = (first, first) if arrays.scale is None else (arrays.scale, arrays.bias)
        return primitives(kind, first, scale, bias, result, end - begin, n, eps[0])

    return range_kernel_of(
        attr, "layer_norm_onednn", body, extent="rows", block=grain(attr.n) if parallel else 1, parallel=parallel
    )
