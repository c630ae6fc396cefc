"""LAYER_NORM in C with intrinsics."""

from typing import Any

from jitkernels.attrs.layer_norm import LayerNormAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.c_source import CSource
from jitkernels.codegen.range_kernel import LoopNest
from jitkernels.codegen.source_protocol import offset
from jitkernels.microkernels.chunking import grain, threads
from jitkernels.more.intrinsic.source import external, source, usable


def variants(attr: LayerNormAttr) -> list[Variant]:
    return threads(attr.rows // grain(attr.n))


def can_be_used(attr: LayerNormAttr) -> bool | str:
    return "it returns no mean and variance" if attr.stats else usable(attr)


@implements(LayerNormAttr, can_be_used=can_be_used, variants=variants)
def layer_norm(attr: LayerNormAttr, parallel: bool = False) -> CSource | LoopNest:
    signature = attr.signature()
    function = "layer_norm" if attr.affine else "layer_norm_plain"
    built = source("layer_norm", function, attr.dtype, signature.c_arguments)
    if not parallel:
        return built
    normalise = external(built)

    def affine(x: Any, scale: Any, bias: Any, y: Any, rows: int, n: int, eps: Any, begin: int, end: int) -> Any:
        return normalise(offset(x, begin * n), scale, bias, offset(y, begin * n), end - begin, n, eps)

    def plain(x: Any, y: Any, rows: int, n: int, eps: Any, begin: int, end: int) -> Any:
        return normalise(offset(x, begin * n), offset(y, begin * n), end - begin, n, eps)

    return LoopNest(
        built.name,
        signature.c_arguments,
        affine if attr.affine else plain,
        extent=signature.index("rows"),
        block=grain(attr.n),
        parallel=True,
    )
