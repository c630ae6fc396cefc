"""Generated ATTENTION: panels of queries where there are many, and rows of dot products where there are few."""

from typing import Any

import numpy as np

from jitkernels import machine
from jitkernels.attrs.attention import AttentionAttr
from jitkernels.loops.attention_few import FEW, ROOM, few_queries
from jitkernels.loops.attention_many import DEPTH, Sizes, many_queries, room_of
from jitkernels.loops.tile import element_size
from jitkernels.machine import Target
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import inlined, offset
from jitkernels.registry import Variant, implements

PARALLEL_WORK = 1 << 18
"""Operations that are done before a second thread has helped."""


def sizes_of(target: Target) -> Sizes:
    """Tiles that fill the registers; as fast as tiles of 12 keys, and what is usual can be divided by 8."""
    if target.registers == 32:
        return Sizes(vectors=2, key_rows=8, value_rows=8, block=240)
    return Sizes(vectors=2, key_rows=4, value_rows=4, block=240)


def variants(attr: AttentionAttr) -> list[Variant]:
    """On one thread first."""
    several = attr.batch * attr.heads * attr.queries >= 4 and attr.operations() >= PARALLEL_WORK
    return [{"parallel": parallel} for parallel in ((False, True) if several else (False,))]


@inlined()
def fits(kv_heads: int, keys: int, d: int, masks: int, results: int) -> int:
    """0, unless there are results of nothing."""
    return 1 if results != 0 and (kv_heads == 0 or keys == 0 or d == 0 or masks == 0) else 0


@implements(AttentionAttr, variants=variants)
def attention(attr: AttentionAttr, parallel: bool = False) -> LoopNest:
    target, dtype, causal, masked = machine.target(), attr.dtype, attr.causal, attr.masked
    lanes, number, sizes = target.lanes(dtype), np.dtype(dtype).type, sizes_of(target)
    width, room = sizes.vectors * lanes, room_of(dtype, lanes, sizes, masked=masked)
    many = many_queries(dtype, lanes, sizes, causal=causal, masked=masked)
    few = few_queries(dtype, target, causal=causal, masked=masked)

    @inlined()
    def part(
        q: Any, k: Any, v: Any, mask: Any, out: Any, heads: int, kv_heads: int, queries: int, keys: int, d: int,
        dv: int, masks: int, scale: Any, workspace: Any, begin: int, end: int,
    ) -> None:  # fmt: skip
        factor = number(scale[0])
        if factor == number(0):
            factor = number(1) / np.sqrt(number(max(d, 1)))
        is_even, row = heads % kv_heads == 0, begin
        shared = heads // kv_heads * queries if is_even else queries
        while row < end:
            head, query = row // queries, row % queries
            lender = head // heads * kv_heads + head % heads * kv_heads // heads
            stop = min(end, (row // shared + 1) * shared)
            if masked or (causal and queries > 1):
                stop = min(stop, (head + 1) * queries)
            live, sees = min(stop - row, width), keys
            if causal:
                sees = query + 1 + keys - queries
            own = offset(mask, (head % masks * queries + query) * keys) if masked else mask
            qs, ks, vs = offset(q, row * d), offset(k, lender * keys * d), offset(v, lender * keys * dv)
            if live <= FEW:
                few(qs, ks, vs, own, offset(out, row * dv), keys, d, dv, factor, sees, live, workspace)
            else:
                for left in range(0, dv, DEPTH):
                    wide = min(DEPTH, dv - left)
                    many(
                        qs,
                        ks,
                        vs,
                        own,
                        offset(out, row * dv),
                        keys,
                        d,
                        dv,
                        factor,
                        sees,
                        live,
                        left,
                        wide,
                        workspace,
                    )
            row += live

    def plain(
        q: Any, k: Any, v: Any, out: Any, batch: int, heads: int, kv_heads: int, queries: int, keys: int, d: int,
        dv: int, masks: int, scale: Any, workspace: Any, begin: int, end: int,
    ) -> None:  # fmt: skip
        part(q, k, v, q, out, heads, kv_heads, queries, keys, d, dv, masks, scale, workspace, begin, end)

    def with_mask(
        q: Any, k: Any, v: Any, mask: Any, out: Any, batch: int, heads: int, kv_heads: int, queries: int, keys: int,
        d: int, dv: int, masks: int, scale: Any, workspace: Any, begin: int, end: int,
    ) -> None:  # fmt: skip
        part(q, k, v, mask, out, heads, kv_heads, queries, keys, d, dv, masks, scale, workspace, begin, end)

    def check_plain(
        q: Any, k: Any, v: Any, out: Any, batch: int, heads: int, kv_heads: int, queries: int, keys: int, d: int,
        dv: int, masks: int, scale: Any,
    ) -> int:  # fmt: skip
        return fits(kv_heads, keys, d, 1, batch * heads * queries * dv)

    def check_with_mask(
        q: Any, k: Any, v: Any, mask: Any, out: Any, batch: int, heads: int, kv_heads: int, queries: int, keys: int,
        d: int, dv: int, masks: int, scale: Any,
    ) -> int:  # fmt: skip
        return fits(kv_heads, keys, d, masks, batch * heads * queries * dv)

    signature = attr.signature()
    return LoopNest(
        f"attention{'_causal' if causal else ''}{'_masked' if masked else ''}_{dtype}",
        signature.c_arguments,
        with_mask if masked else plain,
        extent=tuple(signature.index(name) for name in ("batch", "heads", "queries")),
        block=_block(attr, width) if parallel else 1,
        parallel=parallel,
        workspace=max(room.end, ROOM) * element_size(dtype),
        workspace_dtype=dtype,
        check=check_with_mask if masked else check_plain,
        flags=("contract",),
        vector_bytes=lanes * element_size(dtype),
    )


def _block(attr: AttentionAttr, width: int) -> int:
    """Rows of the results that a thread gets at least: a panel, or those that share keys, at most a power of two."""
    return (
        width
        if attr.queries >= width
        else 1 << max(attr.heads // max(attr.kv_heads, 1) * attr.queries, 1).bit_length() - 1
    )
