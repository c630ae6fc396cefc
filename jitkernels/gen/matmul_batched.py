"""Generated MATMUL_BATCHED: the loop over the batch around the algorithms of `gen/matmul.py`."""

from typing import Any

from jitkernels.attrs.matmul_batched import MatMulBatchedAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.core import cpu_target
from jitkernels.gen import matmul as single
from jitkernels.microkernels.gemm.batched import batched_kernel, pair_of
from jitkernels.microkernels.gemm.runtime_select import runtime_select_kernel
from jitkernels.microkernels.gemm.thresholds import MIN_PARALLEL_STATIC_MULTIPLY_ADDS


def variants(attr: MatMulBatchedAttr) -> list[Variant]:
    """List the variants of one product, and code for dynamic shapes; threads split the batch, or each large product."""
    work = attr.m * attr.n * attr.k
    products: list[Variant] = []
    if attr.batch * work > 0:
        alone = [v for v in single.variants(pair_of(attr)) if not v.get("parallel")]
        products = [{key: v[key] for key in v if key != "parallel"} for v in alone if v["algorithm"] != "any"]
    products.append({"algorithm": "any"})
    threads = (False, True) if attr.batch * work >= MIN_PARALLEL_STATIC_MULTIPLY_ADDS and attr.batch > 1 else (False,)
    result: list[Variant] = [{**v, "share": "pairs", "parallel": p} for p in threads for v in products]
    if work >= MIN_PARALLEL_STATIC_MULTIPLY_ADDS:
        result.append({"algorithm": "any", "share": "each", "parallel": True})
    return result


@implements(MatMulBatchedAttr, variants=variants)
def matmul_batched(
    attr: MatMulBatchedAttr, algorithm: str = "any", share: str = "pairs", parallel: bool = False, **tile: Any
) -> RangeKernel:
    """Call one kernel per pair: code for the static shape, or the one that selects by the extents."""
    pair = pair_of(attr)
    if algorithm == "any":
        pair_kernel = runtime_select_kernel(pair, cpu_target.target(), parallel=parallel and share == "each")
    else:
        pair_kernel = single.matmul(pair, algorithm, **tile)
    return batched_kernel(attr, pair_kernel, parallel=parallel and share == "pairs")
