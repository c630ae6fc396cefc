"""Generated ATTENTION: prefill by panels of queries, decode by rows of dot products."""

from typing import Any

import numpy as np

from jitkernels.attrs.attention import AttentionAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.range_kernel import LoopNest
from jitkernels.codegen.source_protocol import inlined, offset
from jitkernels.core import cpu_target
from jitkernels.core.cpu_target import Target
from jitkernels.microkernels.attention.decode import FEW, ROOM, decode_queries
from jitkernels.microkernels.attention.prefill import DEPTH, Sizes, prefill_queries, room_of
from jitkernels.microkernels.attention.split_kv import CHUNK, chunks_of, split_kv_workspace, split_queries
from jitkernels.microkernels.gemm.microkernel import element_size

PARALLEL_WORK = 1 << 18
"""Fewer operations end before a second thread has helped."""
MOST_SPLIT = 64
"""Up to so many rows of results, threads split the keys; more rows are split themselves."""
SHARE = 1 << 17
"""Least multiply-adds per thread."""


def sizes_of(target: Target) -> Sizes:
    """Return tiles that fill the registers; as fast as tiles of 12 keys, and common key counts are divisible by 8."""
    if target.registers == 32:
        return Sizes(vectors=2, key_rows=8, value_rows=8, block=240)
    return Sizes(vectors=2, key_rows=4, value_rows=4, block=240)


def variants(attr: AttentionAttr) -> list[Variant]:
    """List the variants: serial first, then threads that split the rows of the results, or the keys of a few."""
    rows = attr.batch * attr.heads * attr.queries
    result: list[Variant] = [{"parallel": False}]
    if attr.operations() >= PARALLEL_WORK:
        result += [{"parallel": True}] if rows >= 4 else []
        result += [{"parallel": True, "split": True}] if rows <= MOST_SPLIT and attr.keys >= 2 * CHUNK else []
    return result


@inlined()
def fits(kv_heads: int, keys: int, d: int, masks: int, results: int) -> int:
    """Check the extents: 0, unless there are results without keys."""
    return 1 if results != 0 and (kv_heads == 0 or keys == 0 or d == 0 or masks == 0) else 0


@implements(AttentionAttr, variants=variants)
def attention(attr: AttentionAttr, parallel: bool = False, split: bool = False) -> LoopNest:
    target, dtype, causal, masked = cpu_target.target(), attr.dtype, attr.causal, attr.masked
    lanes, number, sizes = target.lanes(dtype), np.dtype(dtype).type, sizes_of(target)
    size = element_size(dtype)
    width, offsets = sizes.vectors * lanes, room_of(dtype, lanes, sizes, masked=masked)
    many = prefill_queries(dtype, lanes, sizes, causal=causal, masked=masked)
    few = decode_queries(dtype, target, causal=causal, masked=masked)
    max_rows, all_keys = FEW if split else width, few.all_keys

    @inlined()
    def factor_of(scale: Any, d: int) -> Any:
        return number(1) / np.sqrt(number(max(d, 1))) if scale[0] == 0.0 else number(scale[0])

    @inlined()
    def run_of(row: int, end: int, heads: int, kv_heads: int, queries: int) -> tuple[int, int, int, int]:
        """Return head, query and key head of a row, and how many rows share them."""
        head, query = row // queries, row % queries
        key_head = head // heads * kv_heads + head % heads * kv_heads // heads
        shared = heads // kv_heads * queries if heads % kv_heads == 0 else queries
        stop = min(end, (row // shared + 1) * shared)
        if masked or (causal and queries > 1):
            stop = min(stop, (head + 1) * queries)
        return head, query, key_head, min(stop - row, max_rows)

    @inlined()
    def part(
        q: Any, k: Any, v: Any, mask: Any, out: Any, heads: int, kv_heads: int, queries: int, keys: int, d: int,
        dv: int, masks: int, scale: Any, workspace: Any, begin: int, end: int,
    ) -> None:  # fmt: skip
        if dv == 0:  # there may be no key heads then
            return
        factor, row = factor_of(scale, d), begin
        while row < end:
            head, query, key_head, live = run_of(row, end, heads, kv_heads, queries)
            visible = query + 1 + keys - queries if causal else keys
            own = offset(mask, (head % masks * queries + query) * keys) if masked else mask
            qs, ks, vs = offset(q, row * d), offset(k, key_head * keys * d), offset(v, key_head * keys * dv)
            results = offset(out, row * dv)
            if live <= FEW:
                all_keys(qs, ks, vs, own, results, keys, d, dv, factor, visible, live, workspace)
            else:
                for first_column in range(0, dv, DEPTH):
                    wide = min(DEPTH, dv - first_column)
                    many(
                        qs, ks, vs, own, results, keys, d, dv, factor, visible, live, first_column, wide, workspace
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
        dv: int, masks: int, scale: Any, workspace: Any, begin: int, end: int, words: Any, thread: int, team_size: int,
    ) -> None:  # fmt: skip
        if dv > 0:
            keys_shared(
                q, k, v, q, out, heads, kv_heads, queries, keys, d, dv, masks, factor_of(scale, d), workspace,
                begin, end, words, thread, team_size,
            )  # fmt: skip

    def split_with_mask(
        q: Any, k: Any, v: Any, mask: Any, out: Any, batch: int, heads: int, kv_heads: int, queries: int, keys: int,
        d: int, dv: int, masks: int, scale: Any, workspace: Any, begin: int, end: int, words: Any, thread: int,
        team_size: int,
    ) -> None:  # fmt: skip
        if dv > 0:
            keys_shared(
                q, k, v, mask, out, heads, kv_heads, queries, keys, d, dv, masks, factor_of(scale, d), workspace,
                begin, end, words, thread, team_size,
            )  # fmt: skip

    def threads(
        batch: int, heads: int, kv_heads: int, queries: int, keys: int, d: int, dv: int, masks: int, begin: int,
        end: int,
    ) -> int:  # fmt: skip
        return min(chunks_of(keys), (end - begin) * keys * (d + dv) // SHARE)

    def bytes_of(
        batch: int, heads: int, kv_heads: int, queries: int, keys: int, d: int, dv: int, masks: int, team_size: int,
        begin: int, end: int,
    ) -> int:  # fmt: skip
        return split_kv_workspace(keys, dv, team_size, end - begin) * size

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
        workspace=max(offsets.end, ROOM) * size,
        workspace_dtype=dtype,
        check=check_with_mask if masked else check_plain,
        flags=("contract",),
        vector_bytes=lanes * size,
    )


def _block(attr: AttentionAttr, width: int) -> int:
    """Return the least rows of the results per thread: a panel, or those that share keys, at most a power of two."""
    return (
        width
        if attr.queries >= width
        else 1 << max(attr.heads // max(attr.kv_heads, 1) * attr.queries, 1).bit_length() - 1
    )
