"""LAYER_NORM by primitives of oneDNN."""

from typing import Any

from jitkernels.attrs.layer_norm import LayerNormAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.range_kernel import LoopNest
from jitkernels.codegen.source_protocol import offset
from jitkernels.microkernels.chunking import grain, threads
from jitkernels.more.onednn.primitives import LAYER_NORM, LAYER_NORM_PLAIN, primitives, usable


def variants(attr: LayerNormAttr) -> list[Variant]:
    return threads(attr.rows // grain(attr.n))


def can_be_used(attr: LayerNormAttr) -> bool | str:
    return "its primitive returns no mean and variance at inference" if attr.stats else usable(attr)


@implements(LayerNormAttr, can_be_used=can_be_used, variants=variants)
def layer_norm(attr: LayerNormAttr, parallel: bool = False) -> LoopNest:
    def affine(x: Any, scale: Any, bias: Any, y: Any, rows: int, n: int, eps: Any, begin: int, end: int) -> Any:
        first, result = offset(x, begin * n), offset(y, begin * n)
        return primitives(LAYER_NORM, first, scale, bias, result, end - begin, n, eps[0])

    def plain(x: Any, y: Any, rows: int, n: int, eps: Any, begin: int, end: int) -> Any:
        first, result = offset(x, begin * n), offset(y, begin * n)
        return primitives(LAYER_NORM_PLAIN, first, first, first, result, end - begin, n, eps[0])

    signature = attr.signature()
    return LoopNest(
        "layer_norm_onednn",
        signature.c_arguments,
        affine if attr.affine else plain,
        extent=signature.index("rows"),
        block=grain(attr.n) if parallel else 1,
        parallel=parallel,
    )
