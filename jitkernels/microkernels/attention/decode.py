"""Attention of a few queries, as in decoding: keys and values are read once, in long runs, as fast as memory is.

A block of keys at a time: dot products along d, the weights of each query, and the sum of the values' rows in place.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from jitkernels.loops.attention_many import ir_function_of
from jitkernels.loops.dot_tile import DotTile
from jitkernels.loops.matmul_across import rows_across
from jitkernels.loops.tile import TILE_ARGUMENTS
from jitkernels.machine import Target
from jitkernels.maths.exp import exp_float32, exp_float64
from jitkernels.maths.row_maximum import row_maximum_float32, row_maximum_float64
from jitkernels.native.source import inlined, offset, written_by

FEW = 6
"""Queries up to which a panel of them would be empty for the most part."""
BLOCK = 256
"""Keys at a time: their rows are still in the second-level cache when another query wants them."""
TOGETHER = 8
"""Keys that are read at once."""
ROOM = FEW * BLOCK + 2 * FEW
"""Elements of the workspace: the scores of a block, and for each query the largest score and the total."""


@dataclass(frozen=True)
class FewQueries:
    """Functions for queries that share keys, whose pointers are to the first row of each.

    ``all_keys(q, k, v, mask, out, keys, d, dv, factor, sees, live, workspace)``, where `sees` is how many keys the
    first query sees. ``part(q, k, v, mask, out, state, keys, first, last, d, ...)`` sees keys ``first..last`` alone,
    and leaves the largest score and the total of each query in `state`, by which nothing is divided yet.
    """

    all_keys: Any
    part: Any


def few_queries(dtype: str, target: Target, *, causal: bool, masked: bool) -> FewQueries:
    """The functions for what a row is."""
    lanes, number = target.lanes(dtype), np.dtype(dtype).type
    zero, one, nothing = number(0), number(1), number(-np.inf)
    exp = exp_float32 if dtype == "float32" else exp_float64
    row_maximum = row_maximum_float32 if dtype == "float32" else row_maximum_float64
    across = rows_across(dtype, target, 0.0, by_column=False)

    def along(columns: int) -> Any:
        symbol = f"attention_along_{columns}"
        tile = DotTile(symbol, dtype, lanes, 1, columns, 0.0, streams_a=False)
        return ir_function_of(dtype, symbol, TILE_ARGUMENTS, written_by(DotTile.text, tile))

    together, alone = along(TOGETHER), along(1)

    @inlined()
    def score(q: Any, k: Any, at: int, some: int, d: int, scores: Any) -> None:
        j = 0
        while some - j >= TOGETHER:
            together(q, 0, d, k, at + j * d, d, scores, j, BLOCK, d, 1, 1, TOGETHER)
            j += TOGETHER
        while j < some:
            alone(q, 0, d, k, at + j * d, d, scores, j, BLOCK, d, 1, 1, 1)
            j += 1

    @inlined("reassoc", "contract")
    def total_of(scores: Any, some: int) -> Any:
        total = zero
        for j in range(some):
            total += scores[j]
        return total

    @inlined("contract")
    def weigh(scores: Any, some: int, largest: Any) -> None:
        for j in range(some):
            scores[j] = exp(scores[j] - largest)

    @inlined("contract")
    def scale(row: Any, count: int, factor: Any) -> None:
        for r in range(count):
            row[r] = row[r] * factor

    @inlined("contract")
    def add(scores: Any, mask: Any, some: int, factor: Any) -> None:
        for j in range(some):
            scores[j] = scores[j] * factor + mask[j]

    @inlined()
    def settle(scores: Any, shown: int, state: Any, out: Any, kept: int) -> None:
        """The weights of one query for a block, and what its larger score makes of the sums before."""
        found = row_maximum(scores, 0, shown)
        before = state[0]
        largest = found if found > before else before
        base = zero if largest == nothing else largest
        change = exp(before - base)
        weigh(scores, shown, base)
        state[0] = largest
        state[1] = state[1] * change + total_of(scores, shown)
        scale(out, kept, change)

    @inlined()
    def part(
        q: Any, k: Any, v: Any, mask: Any, out: Any, state: Any, keys: int, first: int, last: int, d: int, dv: int,
        factor: Any, sees: int, live: int, workspace: Any,
    ) -> None:  # fmt: skip
        for i in range(live):
            state[2 * i] = nothing
            state[2 * i + 1] = zero
        last = min(last, sees + live - 1) if causal else last
        if last <= first:
            for r in range(live * dv):
                out[r] = zero
        for key in range(first, last, BLOCK):
            some = min(BLOCK, last - key)
            for i in range(live):
                scores = offset(workspace, i * BLOCK)
                score(offset(q, i * d), k, key * d, some, d, scores)
                if masked:
                    add(scores, offset(mask, i * keys + key), some, factor)
                else:
                    scale(scores, some, factor)
                shown = min(max(sees + i - key, 0), some) if causal else some
                if shown > 0:
                    settle(scores, shown, offset(state, 2 * i), offset(out, i * dv), dv if key > first else 0)
                for j in range(shown, some):
                    scores[j] = zero
            across(
                workspace, 0, BLOCK, v, key * dv, dv, out, 0, dv, live, some, 1 if key == first else 0, 0, dv
            )

    @inlined()
    def few(
        q: Any, k: Any, v: Any, mask: Any, out: Any, keys: int, d: int, dv: int, factor: Any, sees: int, live: int,
        workspace: Any,
    ) -> None:  # fmt: skip
        state = offset(workspace, FEW * BLOCK)
        part(q, k, v, mask, out, state, keys, 0, keys, d, dv, factor, sees, live, workspace)
        for i in range(live):
            scale(offset(out, i * dv), dv, one / state[2 * i + 1])

    return FewQueries(few, part)
