"""Generated MATMUL_BATCHED: the loop over pairs around the products of `gen/matmul.py`."""

from typing import Any

from jitkernels import machine
from jitkernels.attrs.matmul_batched import MatMulBatchedAttr
from jitkernels.gen import matmul as single
from jitkernels.loops.batched import batched_nest, pair_of
from jitkernels.loops.matmul_any_size import any_size_nest
from jitkernels.loops.matmul_plan import PARALLEL_WORK
from jitkernels.native.loop_nest import LoopNest
from jitkernels.registry import Variant, implements


def variants(attr: MatMulBatchedAttr) -> list[Variant]:
    """What one product has, and code for all sizes; threads share out the pairs, or each pair where it is large."""
    work = attr.m * attr.n * attr.k
    products: list[Variant] = []
    if attr.batch * work > 0:
        alone = [v for v in single.variants(pair_of(attr)) if not v.get("parallel")]
        products = [{key: v[key] for key in v if key != "parallel"} for v in alone if v["algorithm"] != "any"]
    products.append({"algorithm": "any"})
    threads = (False, True) if attr.batch * work >= PARALLEL_WORK and attr.batch > 1 else (False,)
    found: list[Variant] = [{**v, "share": "pairs", "parallel": p} for p in threads for v in products]
    if work >= PARALLEL_WORK:
        found.append({"algorithm": "any", "share": "each", "parallel": True})
    return found


@implements(MatMulBatchedAttr, variants=variants)
def matmul_batched(
    attr: MatMulBatchedAttr, algorithm: str = "any", share: str = "pairs", parallel: bool = False, **tile: Any
) -> LoopNest:
    """Each pair by one call: of code for its sizes, or of what chooses by them."""
    pair = pair_of(attr)
    if algorithm == "any":
        each = any_size_nest(pair, machine.target(), parallel=parallel and share == "each")
    else:
        each = single.matmul(pair, algorithm, **tile)
    return batched_nest(attr, each, parallel=parallel and share == "pairs")
