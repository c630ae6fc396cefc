"""Attention of few queries over many keys, split among threads in chunks (split-KV), with a final reduction.

Every chunk of keys yields sums relative to its own maximum, which a factor makes relative to the global one (Dao et al.
2023, "Flash-Decoding"). Chunks are the same for any number of threads, and so are the results.
"""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import inlined, offset
from jitkernels.microkernels.attention.decode import ROOM, DecodeQueries
from jitkernels.microkernels.maths.exp import exp_float32, exp_float64
from jitkernels.microkernels.team_barrier import claim_share, finish_share, shares_pending, yield_core

CHUNK = 1024
"""Keys per chunk."""


@inlined()
def chunks_of(keys: int) -> int:
    return (keys + CHUNK - 1) // CHUNK


@inlined()
def split_kv_workspace(keys: int, dv: int, team_size: int, rows: int) -> int:
    """Return the elements of the workspace: scores of each thread, then sums and state of each row and chunk."""
    return team_size * ROOM + rows * chunks_of(keys) * (dv + 2)


def split_queries(dtype: str, run_of: Any, few: DecodeQueries, *, causal: bool, masked: bool) -> Any:
    """Return the function of all arrays and extents for rows ``begin..end`` of the results, for a team of threads.

    `run_of` returns which rows share keys, as in the serial nest.
    """
    number = np.dtype(dtype).type
    zero, one, minus_infinity = number(0), number(1), number(-np.inf)
    exp = exp_float32 if dtype == "float32" else exp_float64
    part = few.part

    @inlined("contract")
    def add(part: Any, count: int, factor: Any, out: Any) -> None:
        for r in range(count):
            out[r] = out[r] + part[r] * factor

    @inlined("contract")
    def join(parts: Any, chunks: int, live: int, dv: int, i: int, out: Any) -> None:
        """Join row i of a run from its parts of all chunks."""
        step = live * (dv + 2)
        states = offset(parts, live * dv + 2 * i)
        largest = minus_infinity
        for c in range(chunks):
            maximum = states[c * step]
            largest = maximum if maximum > largest else largest
        base = zero if largest == minus_infinity else largest
        total = zero
        for c in range(chunks):
            total += states[c * step + 1] * exp(states[c * step] - base)
        for r in range(dv):
            out[r] = zero
        for c in range(chunks):
            share = exp(states[c * step] - base) * (one / total)
            add(offset(parts, c * step + i * dv), dv, share, out)

    @inlined()
    def split(
        q: Any, k: Any, v: Any, mask: Any, out: Any, heads: int, kv_heads: int, queries: int, keys: int, d: int,
        dv: int, masks: int, factor: Any, workspace: Any, begin: int, end: int, words: Any, thread: int, team_size: int,
    ) -> None:  # fmt: skip
        chunks, parts = chunks_of(keys), offset(workspace, team_size * ROOM)
        for phase in range(2):
            for turn in range(team_size):
                share = (thread + turn) % team_size
                if claim_share(words, team_size, share, phase) == 0:
                    continue
                low, high = share * chunks // team_size, (share + 1) * chunks // team_size
                row = begin
                while row < end:
                    head, query, key_head, live = run_of(row, end, heads, kv_heads, queries)
                    row_parts = offset(parts, (row - begin) * chunks * (dv + 2))
                    if phase == 0:
                        own = offset(mask, (head % masks * queries + query) * keys) if masked else mask
                        visible = query + 1 + keys - queries if causal else keys
                        for c in range(low, high):
                            part(
                                offset(q, row * d), offset(k, key_head * keys * d), offset(v, key_head * keys * dv),
                                own,
                                offset(row_parts, c * live * (dv + 2)), offset(row_parts, (c * (dv + 2) + dv) * live),
                                keys, c * CHUNK, min((c + 1) * CHUNK, keys), d, dv, factor, visible, live,
                                offset(workspace, share * ROOM),
                            )  # fmt: skip
                    elif share == 0:
                        for i in range(live):
                            join(row_parts, chunks, live, dv, i, offset(out, (row + i) * dv))
                    row += live
                finish_share(words, team_size)
            while shares_pending(words, team_size, phase) != 0:
                yield_core()

    return split
