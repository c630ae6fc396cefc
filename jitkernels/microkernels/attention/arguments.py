"""The arguments of attention as structs."""

from typing import Any, NamedTuple

from jitkernels.codegen.source_protocol import inlined, offset


class AttentionArrays(NamedTuple):
    """The arrays, or pointers to the first row of each for some queries; mask and padding may be None."""

    q: Any
    k: Any
    v: Any
    mask: Any
    padding: Any
    out: Any


class AttentionExtents(NamedTuple):
    """The extents of all arrays."""

    heads: int
    kv_heads: int
    queries: int
    keys: int
    d: int
    dv: int
    masks: int


class SharedKeysRun(NamedTuple):
    """Rows of the results that share keys: head and query of the first, head of its keys, and how many rows."""

    row: int
    head: int
    query: int
    key_head: int
    live: int


class Queries(NamedTuple):
    """`live` queries that share keys. visible: how many keys the first of them attends to; factor: that of scores."""

    keys: int
    d: int
    dv: int
    factor: Any
    visible: int
    live: int


@inlined()
def arrays_of(arrays: AttentionArrays, extents: AttentionExtents, run: SharedKeysRun) -> Any:
    """Return pointers to the first rows of a run."""
    keys, d, dv, queries = extents.keys, extents.d, extents.dv, extents.queries
    return AttentionArrays(
        offset(arrays.q, run.row * d), offset(arrays.k, run.key_head * keys * d),
        offset(arrays.v, run.key_head * keys * dv),
        offset(arrays.mask, (run.head % extents.masks * queries + run.query) * keys),
        offset(arrays.padding, run.head // extents.heads * keys), offset(arrays.out, run.row * dv),
    )  # fmt: skip


def runs_of(most: int, *, causal: bool, masked: bool) -> Any:
    """Return the function that gives the run of at most `most` rows that begins at a row and ends before another."""

    @inlined()
    def run_of(row: int, end: int, extents: AttentionExtents) -> Any:
        heads, kv_heads, queries = extents.heads, extents.kv_heads, extents.queries
        head, query = row // queries, row % queries
        key_head = head // heads * kv_heads + head % heads * kv_heads // heads
        shared = heads // kv_heads * queries if heads % kv_heads == 0 else queries
        stop = min(end, (row // shared + 1) * shared)
        if masked or (causal and queries > 1):
            stop = min(stop, (head + 1) * queries)
        return SharedKeysRun(row, head, query, key_head, min(stop - row, most))

    return run_of


def queries_of(*, causal: bool) -> Any:
    """Return the function that gives the queries of a run."""

    @inlined()
    def queries_of_run(extents: AttentionExtents, factor: Any, run: SharedKeysRun) -> Any:
        visible = run.query + 1 + extents.keys - extents.queries if causal else extents.keys
        return Queries(extents.keys, extents.d, extents.dv, factor, visible, run.live)

    return queries_of_run
