"""Attention of a few queries over many keys, which threads share: each has some chunks, and the parts are joined.

Of every chunk of keys there are sums relative to its own largest score, which a factor makes relative to the largest of
all (Dao et al. 2023, "Flash-Decoding"). Chunks are the same for any number of threads, and so are the results.
"""

from typing import Any

import numpy as np

from jitkernels.loops.attention_few import ROOM, FewQueries
from jitkernels.loops.rounds import are_open, ends, give_way, takes
from jitkernels.maths.exp import exp_float32, exp_float64
from jitkernels.native.source import inlined, offset

CHUNK = 1024
"""Keys of a part."""


@inlined()
def chunks_of(keys: int) -> int:
    return (keys + CHUNK - 1) // CHUNK


@inlined()
def room_of_parts(keys: int, dv: int, members: int, rows: int) -> int:
    """Elements of the workspace: scores of each member, then of each row and chunk the sums and its state."""
    return members * ROOM + rows * chunks_of(keys) * (dv + 2)


def split_queries(dtype: str, run_of: Any, few: FewQueries, *, causal: bool, masked: bool) -> Any:
    """The function of all arrays and extents for rows ``begin..end`` of the results, for members of a group.

    `run_of` says which rows are done together, as where there is one thread.
    """
    number = np.dtype(dtype).type
    zero, one, nothing = number(0), number(1), number(-np.inf)
    exp = exp_float32 if dtype == "float32" else exp_float64
    part = few.part

    @inlined("contract")
    def add(part: Any, count: int, factor: Any, out: Any) -> None:
        for r in range(count):
            out[r] = out[r] + part[r] * factor

    @inlined("contract")
    def join(parts: Any, chunks: int, live: int, dv: int, i: int, out: Any) -> None:
        """Row i of a run, from its parts of all chunks."""
        step = live * (dv + 2)
        states = offset(parts, live * dv + 2 * i)
        largest = nothing
        for c in range(chunks):
            found = states[c * step]
            largest = found if found > largest else largest
        base = zero if largest == nothing else largest
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
        dv: int, masks: int, factor: Any, workspace: Any, begin: int, end: int, words: Any, member: int, members: int,
    ) -> None:  # fmt: skip
        chunks, parts = chunks_of(keys), offset(workspace, members * ROOM)
        for number_of_round in range(2):
            for turn in range(members):
                share = (member + turn) % members
                if takes(words, members, share, number_of_round) == 0:
                    continue
                low, high = share * chunks // members, (share + 1) * chunks // members
                row = begin
                while row < end:
                    head, query, lender, live = run_of(row, end, heads, kv_heads, queries)
                    here = offset(parts, (row - begin) * chunks * (dv + 2))
                    if number_of_round == 0:
                        own = offset(mask, (head % masks * queries + query) * keys) if masked else mask
                        sees = query + 1 + keys - queries if causal else keys
                        for c in range(low, high):
                            part(
                                offset(q, row * d), offset(k, lender * keys * d), offset(v, lender * keys * dv), own,
                                offset(here, c * live * (dv + 2)), offset(here, (c * (dv + 2) + dv) * live),
                                keys, c * CHUNK, min((c + 1) * CHUNK, keys), d, dv, factor, sees, live,
                                offset(workspace, share * ROOM),
                            )  # fmt: skip
                    elif share == 0:
                        for i in range(live):
                            join(here, chunks, live, dv, i, offset(out, (row + i) * dv))
                    row += live
                ends(words, members)
            while are_open(words, members, number_of_round) != 0:
                give_way()

    return split
