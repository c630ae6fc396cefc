"""Generated ATTENTION: panels of queries where there are many, and rows of dot products where there are few."""

from typing import Any

import numpy as np

from jitkernels import machine
from jitkernels.attrs.attention import AttentionAttr
from jitkernels.loops.attention_few import FEW, ROOM, few_queries
from jitkernels.loops.attention_many import DEPTH, Sizes, many_queries, room_of
from jitkernels.loops.attention_split import CHUNK, chunks_of, room_of_parts, split_queries
from jitkernels.loops.tile import element_size
from jitkernels.machine import Target
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import inlined, offset
from jitkernels.registry import Variant, implements

PARALLEL_WORK = 1 << 18
"""Operations that are done before a second thread has helped."""
MOST_SPLIT = 64
"""Rows of results up to which keys are shared among threads: more rows are shared themselves."""
SHARE = 1 << 17
"""Products that a thread gets at least."""


def sizes_of(target: Target) -> Sizes:
    """Tiles that fill the registers; as fast as tiles of 12 keys, and what is usual can be divided by 8."""
    if target.registers == 32:
        return Sizes(vectors=2, key_rows=8, value_rows=8, block=240)
    return Sizes(vectors=2, key_rows=4, value_rows=4, block=240)


def variants(attr: AttentionAttr) -> list[Variant]:
    """On one thread first, then with threads that share rows of the results, or the keys of a few."""
    rows = attr.batch * attr.heads * attr.queries
    found: list[Variant] = [{"parallel": False}]
    if attr.operations() >= PARALLEL_WORK:
        found += [{"parallel": True}] if rows >= 4 else []
        found += [{"parallel": True, "split": True}] if rows <= MOST_SPLIT and attr.keys >= 2 * CHUNK else []
    return found


@inlined()
def fits(kv_heads: int, keys: int, d: int, masks: int, results: int) -> int:
    """0, unless there are results of nothing."""
    return 1 if results != 0 and (kv_heads == 0 or keys == 0 or d == 0 or masks == 0) else 0


@implements(AttentionAttr, variants=variants)
def attention(attr: AttentionAttr, parallel: bool = False, split: bool = False) -> LoopNest:
    target, dtype, causal, masked = machine.target(), attr.dtype, attr.causal, attr.masked
    lanes, number, sizes = target.lanes(dtype), np.dtype(dtype).type, sizes_of(target)
    size = element_size(dtype)
    width, room = sizes.vectors * lanes, room_of(dtype, lanes, sizes, masked=masked)
    many = many_queries(dtype, lanes, sizes, causal=causal, masked=masked)
    few = few_queries(dtype, target, causal=causal, masked=masked)
    most, all_keys = FEW if split else width, few.all_keys

    @inlined()
    def factor_of(scale: Any, d: int) -> Any:
        factor = number(scale[0])
        return number(1) / np.sqrt(number(max(d, 1))) if factor == number(0) else factor

    @inlined()
    def run_of(row: int, end: int, heads: int, kv_heads: int, queries: int) -> tuple[int, int, int, int]:
        """The head, the query and the lender of keys of a row, and how many rows go with it."""
        head, query = row // queries, row % queries
        lender = head // heads * kv_heads + head % heads * kv_heads // heads
        shared = heads // kv_heads * queries if heads % kv_heads == 0 else queries
        stop = min(end, (row // shared + 1) * shared)
        if masked or (causal and queries > 1):
            stop = min(stop, (head + 1) * queries)
        return head, query, lender, min(stop - row, most)

    @inlined()
    def part(
        q: Any, k: Any, v: Any, mask: Any, out: Any, heads: int, kv_heads: int, queries: int, keys: int, d: int,
        dv: int, masks: int, scale: Any, workspace: Any, begin: int, end: int,
    ) -> None:  # fmt: skip
        if dv == 0:  # there may be no heads of keys then
            return
        factor, row = factor_of(scale, d), begin
        while row < end:
            head, query, lender, live = run_of(row, end, heads, kv_heads, queries)
            sees = query + 1 + keys - queries if causal else keys
            own = offset(mask, (head % masks * queries + query) * keys) if masked else mask
            qs, ks, vs = offset(q, row * d), offset(k, lender * keys * d), offset(v, lender * keys * dv)
            results = offset(out, row * dv)
            if live <= FEW:
                all_keys(qs, ks, vs, own, results, keys, d, dv, factor, sees, live, workspace)
            else:
                for left in range(0, dv, DEPTH):
                    wide = min(DEPTH, dv - left)
                    many(
                        qs, ks, vs, own, results, keys, d, dv, factor, sees, live, left, wide, workspace
                    )  # fmt: skip
            row += live

    keys_shared: Any = split_queries(dtype, run_of, few, causal=causal, masked=masked) if split else None

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

    def split_plain(
        q: Any, k: Any, v: Any, out: Any, batch: int, heads: int, kv_heads: int, queries: int, keys: int, d: int,
        dv: int, masks: int, scale: Any, workspace: Any, begin: int, end: int, words: Any, member: int, members: int,
    ) -> None:  # fmt: skip
        if dv > 0:
            keys_shared(
                q, k, v, q, out, heads, kv_heads, queries, keys, d, dv, masks, factor_of(scale, d), workspace,
                begin, end, words, member, members,
            )  # fmt: skip

    def split_with_mask(
        q: Any, k: Any, v: Any, mask: Any, out: Any, batch: int, heads: int, kv_heads: int, queries: int, keys: int,
        d: int, dv: int, masks: int, scale: Any, workspace: Any, begin: int, end: int, words: Any, member: int,
        members: int,
    ) -> None:  # fmt: skip
        if dv > 0:
            keys_shared(
                q, k, v, mask, out, heads, kv_heads, queries, keys, d, dv, masks, factor_of(scale, d), workspace,
                begin, end, words, member, members,
            )  # fmt: skip

    def threads(
        batch: int, heads: int, kv_heads: int, queries: int, keys: int, d: int, dv: int, masks: int, begin: int,
        end: int,
    ) -> int:  # fmt: skip
        return min(chunks_of(keys), (end - begin) * keys * (d + dv) // SHARE)

    def bytes_of(
        batch: int, heads: int, kv_heads: int, queries: int, keys: int, d: int, dv: int, masks: int, members: int,
        begin: int, end: int,
    ) -> int:  # fmt: skip
        return room_of_parts(keys, dv, members, end - begin) * size

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
    if split:
        return LoopNest(
            f"attention_split{'_causal' if causal else ''}{'_masked' if masked else ''}_{dtype}",
            signature.c_arguments,
            split_with_mask if masked else split_plain,
            extent=tuple(signature.index(name) for name in ("batch", "heads", "queries")),
            together=threads,
            workspace=bytes_of,
            workspace_dtype=dtype,
            check=check_with_mask if masked else check_plain,
            flags=("contract",),
            vector_bytes=lanes * size,
        )
    return LoopNest(
        f"attention{'_causal' if causal else ''}{'_masked' if masked else ''}_{dtype}",
        signature.c_arguments,
        with_mask if masked else plain,
        extent=tuple(signature.index(name) for name in ("batch", "heads", "queries")),
        block=_block(attr, width) if parallel else 1,
        parallel=parallel,
        workspace=max(room.end, ROOM) * size,
        workspace_dtype=dtype,
        check=check_with_mask if masked else check_plain,
        flags=("contract",),
        vector_bytes=lanes * size,
    )


def _block(attr: AttentionAttr, width: int) -> int:
    """Rows of the results that a thread gets at least: a panel, or those that share keys, at most a power of two."""
    return (
        width
        if attr.queries >= width
        else 1 << max(attr.heads // max(attr.kv_heads, 1) * attr.queries, 1).bit_length() - 1
    )
