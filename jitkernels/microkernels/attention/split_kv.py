"""Attention of few queries over many keys, split among threads in chunks (split-KV), with a final reduction.

Every chunk of keys yields sums relative to its own maximum, which a factor makes relative to the global one (Dao et al.
2023, "Flash-Decoding"). Chunks are the same for any number of threads, and so are the results.
"""

from typing import Any, NamedTuple

import numpy as np

from jitkernels.codegen.source_protocol import Range, inlined, offset
from jitkernels.microkernels.attention.arguments import (
    AttentionArrays,
    AttentionExtents,
    Queries,
    arrays_of,
    queries_of,
)
from jitkernels.microkernels.attention.decode import ROOM
from jitkernels.microkernels.maths.exp import exp_float32, exp_float64
from jitkernels.microkernels.team_barrier import Team, claim_share, finish_share, shares_pending, yield_core

KEYS_PER_CHUNK = 1024
"""Keys per chunk."""


@inlined()
def chunks_of(keys: int) -> int:
    return (keys + KEYS_PER_CHUNK - 1) // KEYS_PER_CHUNK


@inlined()
def split_kv_workspace(keys: int, dv: int, team_size: int, rows: int) -> int:
    """Return the elements of the workspace: scores of each thread, then sums and state of each row and chunk."""
    return team_size * ROOM + rows * chunks_of(keys) * (dv + 2)


def joining_of(dtype: str) -> Any:
    """Return the function that joins row i of a run from its parts of all chunks."""
    number = np.dtype(dtype).type
    zero, one, minus_infinity = number(0), number(1), number(-np.inf)
    exp = exp_float32 if dtype == "float32" else exp_float64

    @inlined("contract")
    def add(part: Any, count: int, factor: Any, out: Any) -> None:
        for r in range(count):
            out[r] = out[r] + part[r] * factor

    @inlined("contract")
    def join(parts: Any, chunks: int, live: int, dv: int, i: int, out: Any) -> None:
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

    return join


class KeysShare(NamedTuple):
    """A thread's chunks of keys, and its scores."""

    low: int
    high: int
    scores: Any


def split_queries(dtype: str, run_of: Any, some_keys: Any, *, causal: bool) -> Any:
    """Return the function ``(arrays, extents, factor, workspace, part, team)`` for some rows of the results.

    `run_of` returns which rows share keys, as in the serial kernel.
    """
    join, queries_of_run = joining_of(dtype), queries_of(causal=causal)

    @inlined()
    def attend(arrays: AttentionArrays, queries: Queries, share: KeysShare, row_parts: Any) -> None:
        """Attend to the keys of a share."""
        live, dv = queries.live, queries.dv
        for c in range(share.low, share.high):
            part, state = offset(row_parts, c * live * (dv + 2)), offset(row_parts, (c * (dv + 2) + dv) * live)
            to = AttentionArrays(arrays.q, arrays.k, arrays.v, arrays.mask, arrays.padding, part)
            some_keys(
                to, queries, Range(c * KEYS_PER_CHUNK, min((c + 1) * KEYS_PER_CHUNK, queries.keys)), state, share.scores
            )

    @inlined()
    def split(
        arrays: AttentionArrays, extents: AttentionExtents, factor: Any, workspace: Any, part: Range, team: Team
    ) -> None:
        dv, chunks, parts = extents.dv, chunks_of(extents.keys), offset(workspace, team.team_size * ROOM)
        for phase in range(2):
            for turn in range(team.team_size):
                number = (team.thread + turn) % team.team_size
                if claim_share(team, number, phase) == 0:
                    continue
                low, high = number * chunks // team.team_size, (number + 1) * chunks // team.team_size
                share = KeysShare(low, high, offset(workspace, number * ROOM))
                row = part.begin
                while row < part.end:
                    run = run_of(row, part.end, extents)
                    row_parts = offset(parts, (row - part.begin) * chunks * (dv + 2))
                    if phase == 0:
                        queries = queries_of_run(extents, factor, run)
                        attend(arrays_of(arrays, extents, run), queries, share, row_parts)
                    elif number == 0:
                        for i in range(run.live):
                            join(row_parts, chunks, run.live, dv, i, offset(arrays.out, (row + i) * dv))
                    row += run.live
                finish_share(team)
            while shares_pending(team, phase) != 0:
                yield_core()

    return split
