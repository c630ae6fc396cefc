"""Generated ATTENTION: prefill by panels of queries, decode by rows of dot products."""

from typing import Any

import numpy as np

from jitkernels.attrs.attention import AttentionAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range, inlined
from jitkernels.core import cpu_target
from jitkernels.core.cpu_target import Target
from jitkernels.microkernels.attention.arguments import (
    AttentionArrays,
    AttentionExtents,
    arrays_of,
    queries_of,
    runs_of,
)
from jitkernels.microkernels.attention.decode import MAX_UNPACKED_QUERIES, ROOM, decode_queries
from jitkernels.microkernels.attention.prefill import BLOCK_DEPTH, PanelSizes, PrefillPanel, prefill_queries, room_of
from jitkernels.microkernels.attention.split_kv import KEYS_PER_CHUNK, chunks_of, split_kv_workspace, split_queries
from jitkernels.microkernels.gemm.microkernel import element_size
from jitkernels.microkernels.team_barrier import Team

MIN_PARALLEL_OPERATIONS = 1 << 18
"""Fewer operations end before a second thread has helped."""
MAX_SPLIT = 64
"""Up to so many rows of results, threads split the keys; more rows are split themselves."""
THREAD_MULTIPLY_ADDS = 1 << 17
"""Least multiply-adds per thread."""


def sizes_of(target: Target) -> PanelSizes:
    """Return tiles that fill the registers; as fast as tiles of 12 keys, and common key counts are divisible by 8."""
    if target.registers == 32:
        return PanelSizes(vectors=2, key_rows=8, value_rows=8, block=240)
    return PanelSizes(vectors=2, key_rows=4, value_rows=4, block=240)


def variants(attr: AttentionAttr) -> list[Variant]:
    """List the variants: serial first, then threads that split the rows of the results, or the keys of a few."""
    rows = attr.batch * attr.heads * attr.queries
    result: list[Variant] = [{"parallel": False}]
    if attr.operations() >= MIN_PARALLEL_OPERATIONS:
        result += [{"parallel": True}] if rows >= 4 else []
        result += [{"parallel": True, "split": True}] if rows <= MAX_SPLIT and attr.keys >= 2 * KEYS_PER_CHUNK else []
    return result


def check(batch: int, mask: Any, extents: AttentionExtents) -> int:
    """Check the extents: 0, unless there are results without keys."""
    results = batch * extents.heads * extents.queries * extents.dv
    lacks_keys = extents.kv_heads == 0 or extents.keys == 0 or extents.d == 0
    return 1 if results != 0 and (lacks_keys or (mask is not None and extents.masks == 0)) else 0


def threads(keys: int, d: int, dv: int, begin: int, end: int) -> int:
    return min(chunks_of(keys), (end - begin) * keys * (d + dv) // THREAD_MULTIPLY_ADDS)


@implements(AttentionAttr, variants=variants)
def attention(attr: AttentionAttr, parallel: bool = False, split: bool = False) -> RangeKernel:
    return _split_nest(attr) if split else _serial_nest(attr, parallel)


def _factor_of(dtype: str) -> Any:
    """Return the function that gives the factor of scores."""
    number = np.dtype(dtype).type

    @inlined()
    def factor_of(scale: Any, d: int) -> Any:
        return number(1) / np.sqrt(number(max(d, 1))) if scale[0] == 0.0 else number(scale[0])

    return factor_of


def _serial_nest(attr: AttentionAttr, parallel: bool) -> RangeKernel:
    target, dtype, causal = cpu_target.target(), attr.dtype, attr.causal
    lanes, sizes = target.lanes(dtype), sizes_of(target)
    panel = PrefillPanel(dtype, lanes, sizes, room_of(dtype, lanes, sizes, masked=attr.masked))
    many = prefill_queries(panel, causal=causal, fills=attr.masked_fill)
    few = decode_queries(dtype, target, causal=causal, fills=attr.masked_fill).all_keys
    run_of, factor_of = runs_of(panel.width, causal=causal, masked=attr.masked), _factor_of(dtype)
    queries_of_run = queries_of(causal=causal)

    def body(arrays: AttentionArrays, extents: AttentionExtents, scale: Any, workspace: Any, part: Range) -> None:
        if extents.dv == 0:  # there may be no key heads then
            return
        factor, row = factor_of(scale, extents.d), part.begin
        while row < part.end:
            run = run_of(row, part.end, extents)
            queries, own = queries_of_run(extents, factor, run), arrays_of(arrays, extents, run)
            if run.live <= MAX_UNPACKED_QUERIES:
                few(own, queries, workspace)
            else:
                for first_column in range(0, extents.dv, BLOCK_DEPTH):
                    many(own, queries, first_column, min(BLOCK_DEPTH, extents.dv - first_column), workspace)
            row += run.live

    elements = max(panel.room.end, ROOM)
    return _nest(
        attr, "attention", body, workspace=elements * element_size(dtype),
        block=_block(attr, panel.width) if parallel else 1, parallel=parallel,
    )  # fmt: skip


def _split_nest(attr: AttentionAttr) -> RangeKernel:
    dtype, causal, size = attr.dtype, attr.causal, element_size(attr.dtype)
    run_of, factor_of = runs_of(MAX_UNPACKED_QUERIES, causal=causal, masked=attr.masked), _factor_of(dtype)
    some_keys = decode_queries(dtype, cpu_target.target(), causal=causal, fills=attr.masked_fill).some_keys
    split_keys = split_queries(dtype, run_of, some_keys, causal=causal)

    def body(
        arrays: AttentionArrays, extents: AttentionExtents, scale: Any, workspace: Any, part: Range, team: Team
    ) -> None:
        if extents.dv > 0:
            split_keys(arrays, extents, factor_of(scale, extents.d), workspace, part, team)

    def needed(keys: int, dv: int, team_size: int, begin: int, end: int) -> int:
        return split_kv_workspace(keys, dv, team_size, end - begin) * size

    return _nest(attr, "attention_split", body, workspace=needed, together=threads)


def _nest(attr: AttentionAttr, name: str, body: Any, **options: Any) -> RangeKernel:
    signature, size = attr.signature(), element_size(attr.dtype)
    words = [word for word in ("causal", "masked", "padded", "masked_fill") if getattr(attr, word)]
    return RangeKernel(
        "_".join([name, *words, attr.dtype]),
        signature.c_arguments,
        body,
        extent=tuple(signature.index(extent) for extent in ("batch", "heads", "queries")),
        workspace_dtype=attr.dtype,
        check=check,
        flags=("contract",),
        vector_bytes=cpu_target.target().lanes(attr.dtype) * size,
        names=signature.names,
        **options,
    )


def _block(attr: AttentionAttr, width: int) -> int:
    """Return the least rows of the results per thread: a panel, or those that share keys, at most a power of two."""
    return (
        width
        if attr.queries >= width
        else 1 << max(attr.heads // max(attr.kv_heads, 1) * attr.queries, 1).bit_length() - 1
    )
