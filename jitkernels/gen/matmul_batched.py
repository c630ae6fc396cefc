"""Generated MATMUL_BATCHED: the loop over pairs around the products of `gen/matmul.py`."""

from typing import Any

from jitkernels import machine
from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.attrs.matmul_batched import MatMulBatchedAttr
from jitkernels.gen import matmul as single
from jitkernels.loops.matmul_any_size import any_size_nest
from jitkernels.loops.matmul_plan import PARALLEL_WORK
from jitkernels.native import load
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import offset
from jitkernels.registry import Variant, implements

SHARE = 32**3
"""Multiply-adds that a thread gets at least."""
LARGE = 17
"""Extents of pairs from which on one code for all sizes loses little against one that is made for them."""


def pair_of(attr: MatMulBatchedAttr) -> MatMulAttr:
    """One product of the batch."""
    return MatMulAttr(
        m=attr.m, n=attr.n, k=attr.k, trans_a=attr.trans_a, trans_b=attr.trans_b, dtype=attr.dtype
    )


def variants(attr: MatMulBatchedAttr) -> list[Variant]:
    """Code for these sizes and for all; threads share out the pairs, or each pair where these are few and large."""
    work = attr.m * attr.n * attr.k
    shares: list[str] = [""]
    if attr.batch * work >= PARALLEL_WORK and attr.batch > 1:
        shares.append("pairs")
    if work >= PARALLEL_WORK:
        shares.append("each")
    found: list[Variant] = [{"algorithm": "any", "share": share} for share in shares]
    if attr.batch * work > 0 and max(attr.m, attr.n, attr.k) < LARGE:
        exact: list[Variant] = [{"algorithm": "exact", "share": share} for share in shares if share != "each"]
        return exact + found
    return found


def block_of(attr: MatMulBatchedAttr) -> int:
    """Pairs that a thread gets at least, a power of two so that few objects serve all shapes."""
    return 1 << max(SHARE // max(attr.m * attr.n * attr.k, 1), 1).bit_length() - 1


@implements(MatMulBatchedAttr, variants=variants)
def matmul_batched(attr: MatMulBatchedAttr, algorithm: str = "any", share: str = "") -> LoopNest:
    """Each pair by one call: of the first choice for its sizes, or of what chooses by them."""
    pair = pair_of(attr)
    if algorithm == "exact":
        chosen = next(v for v in single.variants(pair) if not v.get("parallel"))
        nest = single.matmul(pair, **chosen)
    else:
        nest = any_size_nest(pair, machine.target(), parallel=share == "each")
    product = load.entry_of(nest, nest.arguments)

    def body(a: Any, b: Any, c: Any, batch: int, m: int, n: int, k: int, begin: int, end: int) -> int:
        status = 0
        for i in range(begin, end):
            status = status | product(
                offset(a, i * m * k), offset(b, i * k * n), offset(c, i * m * n), m, n, k
            )
        return status

    signature = attr.signature()
    return LoopNest(
        f"matmul_batched_{attr.dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("batch"),
        block=block_of(attr) if share == "pairs" else 1,
        parallel=share == "pairs",
        exact=nest.exact,
        straight=True,
    )
