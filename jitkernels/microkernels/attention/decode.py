"""Attention for few queries (decode): keys and values are read once, in long runs, at memory bandwidth.

A block of keys at a time: dot products along d, the softmax weights of each query, and the weighted sum of rows of the
values, read in place.
"""

from typing import Any, NamedTuple

import numpy as np

from jitkernels.codegen.source_protocol import Range, inlined, offset, written_by
from jitkernels.core.cpu_target import Target
from jitkernels.microkernels.attention.arguments import AttentionArrays, Queries
from jitkernels.microkernels.attention.prefill import ir_function_of
from jitkernels.microkernels.gemm.dot_microkernel import DotTile
from jitkernels.microkernels.gemm.gemm_arguments import MatrixPart
from jitkernels.microkernels.gemm.microkernel import TILE_ARGUMENTS
from jitkernels.microkernels.gemm.skinny_direct import rows_across
from jitkernels.microkernels.maths.exp import exp_float32, exp_float64
from jitkernels.microkernels.maths.row_maximum import row_maximum_float32, row_maximum_float64

MAX_UNPACKED_QUERIES = 6
"""Up to so many queries, a panel of them would be mostly padding."""
BLOCK_KEYS = 256
"""Keys per block: their rows are still in the second-level cache for the next query."""
TILE_KEYS = 8
"""Keys per dot-product tile."""
ROOM = MAX_UNPACKED_QUERIES * BLOCK_KEYS + 2 * MAX_UNPACKED_QUERIES
"""Elements of the workspace: the scores of a block, and for each query its maximum and its sum of exponentials."""


class DecodeQueries(NamedTuple):
    """Functions for queries that share keys.

    ``all_keys(arrays, queries, workspace)``. ``some_keys(arrays, queries, part, state, workspace)`` attends to some
    keys alone, and stores the maximum and the sum of exponentials of each query in `state`; its result is not
    normalized.
    """

    all_keys: Any
    some_keys: Any


def scoring_of(dtype: str, lanes: int) -> Any:
    """Return the function that computes the dot products of a query with some keys."""

    def along(columns: int) -> Any:
        symbol = f"attention_along_{columns}"
        tile = DotTile(symbol, dtype, lanes, 1, columns, 0.0, streams_a=False)
        return ir_function_of(dtype, symbol, TILE_ARGUMENTS, written_by(DotTile.text, tile))

    together, alone = along(TILE_KEYS), along(1)

    @inlined()
    def score(q: Any, k: Any, at: int, count: int, d: int, scores: Any) -> None:
        j = 0
        while count - j >= TILE_KEYS:
            together(q, 0, d, k, at + j * d, d, scores, j, BLOCK_KEYS, d, 1, 1, TILE_KEYS)
            j += TILE_KEYS
        while j < count:
            alone(q, 0, d, k, at + j * d, d, scores, j, BLOCK_KEYS, d, 1, 1, 1)
            j += 1

    return score


@inlined("contract")
def scale(row: Any, count: int, factor: Any) -> None:
    for r in range(count):
        row[r] = row[r] * factor


@inlined("contract")
def add(scores: Any, mask: Any, count: int, factor: Any) -> None:
    for j in range(count):
        scores[j] = scores[j] * factor + mask[j]


def filling_of(dtype: str) -> Any:
    """Return `add` whose scores are replaced by negative numbers of the mask."""
    zero = np.dtype(dtype).type(0)

    @inlined("contract")
    def fill(scores: Any, mask: Any, count: int, factor: Any) -> None:
        for j in range(count):
            scores[j] = mask[j] if mask[j] < zero else scores[j] * factor + mask[j]

    return fill


def settling_of(dtype: str) -> Any:
    """Return the function of the online softmax of one query."""
    number = np.dtype(dtype).type
    zero, minus_infinity = number(0), number(-np.inf)
    exp = exp_float32 if dtype == "float32" else exp_float64
    row_maximum = row_maximum_float32 if dtype == "float32" else row_maximum_float64

    @inlined("reassoc", "contract")
    def total_of(scores: Any, count: int) -> Any:
        total = zero
        for j in range(count):
            total += scores[j]
        return total

    @inlined("contract")
    def weigh(scores: Any, count: int, largest: Any) -> None:
        for j in range(count):
            scores[j] = exp(scores[j] - largest)

    @inlined()
    def settle(scores: Any, visible_keys: int, state: Any, out: Any, carried_sums: int) -> None:
        """Compute the weights of one query for a block, and rescale the running sums by the new maximum."""
        block_maximum = row_maximum(scores, 0, visible_keys)
        before = state[0]
        largest = block_maximum if block_maximum > before else before
        base = zero if largest == minus_infinity else largest
        change = exp(before - base)
        weigh(scores, visible_keys, base)
        state[0] = largest
        state[1] = state[1] * change + total_of(scores, visible_keys)
        scale(out, carried_sums, change)

    return settle


def decode_queries(dtype: str, target: Target, *, causal: bool, fills: bool) -> DecodeQueries:
    """Return the functions for a dtype and a target."""
    number = np.dtype(dtype).type
    zero, one, minus_infinity = number(0), number(1), number(-np.inf)
    score, settle = scoring_of(dtype, target.lanes(dtype)), settling_of(dtype)
    across = rows_across(dtype, target, 0.0, by_column=False)
    mask_scores = filling_of(dtype) if fills else add

    @inlined()
    def some_keys(arrays: AttentionArrays, queries: Queries, part: Range, state: Any, workspace: Any) -> None:
        d, dv, live, out = queries.d, queries.dv, queries.live, arrays.out
        for i in range(live):
            state[2 * i] = minus_infinity
            state[2 * i + 1] = zero
        first = part.begin
        last = min(part.end, queries.visible + live - 1) if causal else part.end
        if last <= first:
            for r in range(live * dv):
                out[r] = zero
        for key in range(first, last, BLOCK_KEYS):
            count = min(BLOCK_KEYS, last - key)
            for i in range(live):
                scores = offset(workspace, i * BLOCK_KEYS)
                score(offset(arrays.q, i * d), arrays.k, key * d, count, d, scores)
                if arrays.mask is not None:
                    mask_scores(scores, offset(arrays.mask, i * queries.keys + key), count, queries.factor)
                    if arrays.padding is not None:
                        mask_scores(scores, offset(arrays.padding, key), count, one)
                elif arrays.padding is not None:
                    mask_scores(scores, offset(arrays.padding, key), count, queries.factor)
                else:
                    scale(scores, count, queries.factor)
                visible_keys = min(max(queries.visible + i - key, 0), count) if causal else count
                if visible_keys > 0:
                    settle(scores, visible_keys, offset(state, 2 * i), offset(out, i * dv), dv if key > first else 0)
                for j in range(visible_keys, count):
                    scores[j] = zero
            is_first = 1 if key == first else 0
            weights, values = MatrixPart(workspace, 0, BLOCK_KEYS), MatrixPart(arrays.v, key * dv, dv)
            across(weights, values, MatrixPart(out, 0, dv), live, count, is_first, Range(0, dv))

    @inlined()
    def all_keys(arrays: AttentionArrays, queries: Queries, workspace: Any) -> None:
        state = offset(workspace, MAX_UNPACKED_QUERIES * BLOCK_KEYS)
        some_keys(arrays, queries, Range(0, queries.keys), state, workspace)
        for i in range(queries.live):
            scale(offset(arrays.out, i * queries.dv), queries.dv, one / state[2 * i + 1])

    return DecodeQueries(all_keys, some_keys)
