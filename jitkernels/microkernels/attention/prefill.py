"""Attention for many queries (prefill): a panel of queries at a time, transposed so that vectors run along queries.

Scores are the product of keys, read in place, with the panel; the sums are that of values, read in place, with the
weights: of all arrays the code copies only the queries, and transposes the results back. Both products and the online
softmax between them stay in the first two cache levels, a block of keys at a time.
"""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import IRFunction, Written, inlined, offset, written_by
from jitkernels.core import dtypes
from jitkernels.core.frozen_dataclass import record
from jitkernels.microkernels.attention.online_softmax import (
    ADD_ARGUMENTS,
    HIDE_ARGUMENTS,
    STORE_ARGUMENTS,
    WEIGH_ARGUMENTS,
    Panel,
)
from jitkernels.microkernels.gemm.microkernel import TILE_ARGUMENTS, Tile
from jitkernels.microkernels.gemm.packing import PACK_ARGUMENTS, packing_slack, transpose_panel

DEPTH = 512
"""Block size along d of the panel, and along the columns of values of the sums."""


@record
class Sizes:
    """Register tiles of keys by queries and of values by queries, and keys per block."""

    vectors: int
    key_rows: int
    value_rows: int
    block: int


@record
class Room:
    """Offsets of the parts of the workspace, in elements."""

    panel: int
    scores: int
    mask: int
    sums: int
    state: int
    end: int


def room_of(dtype: str, lanes: int, sizes: Sizes, *, masked: bool) -> Room:
    """Return the offsets of the panel of queries, the scores of a block, their mask, the sums, maxima and totals."""
    width = sizes.vectors * lanes
    slack = -(-packing_slack(lanes, width) // 64) * 64
    panel = 0
    scores = panel + DEPTH * width + slack
    mask = scores + (sizes.block + sizes.key_rows) * width
    sums = mask + (sizes.block * width + slack if masked else 0)
    state = sums + (DEPTH + sizes.value_rows) * width
    return Room(panel, scores, mask, sums, state, state + 2 * width)


def prefill_queries(dtype: str, lanes: int, sizes: Sizes, *, causal: bool, masked: bool) -> Any:
    """Return the function for a panel of queries, or fewer, and a head of keys and values.

    ``(q, k, v, mask, out, keys, d, dv, factor, visible, live, first_column, wide, workspace)``: pointers to the first
    row of each, how many keys the first query attends to (`visible`), how many queries there are (`live`), and the
    first column of the values and the number of columns.
    """
    number = np.dtype(dtype).type
    zero, one, minus_infinity = number(0), number(1), number(-np.inf)
    width, block, key_rows, value_rows = sizes.vectors * lanes, sizes.block, sizes.key_rows, sizes.value_rows
    offsets, panel = room_of(dtype, lanes, sizes, masked=masked), Panel(dtype, lanes, sizes.vectors)
    turn = ir_function_of(
        dtype, "attention_turn", PACK_ARGUMENTS, written_by(transpose_panel, "attention_turn", dtype, lanes, width)
    )
    online_softmax = ir_function_of(
        dtype, "attention_weigh", WEIGH_ARGUMENTS, written_by(Panel.weigh, panel, "attention_weigh")
    )
    causal_mask = ir_function_of(
        dtype, "attention_hide", HIDE_ARGUMENTS, written_by(Panel.hide, panel, "attention_hide")
    )
    add = ir_function_of(dtype, "attention_add", ADD_ARGUMENTS, written_by(Panel.add, panel, "attention_add"))
    store = ir_function_of(dtype, "attention_store", STORE_ARGUMENTS, written_by(Panel.store, panel, "attention_store"))

    at_panel, at_scores, at_mask, at_sums, at_state = (
        offsets.panel,
        offsets.scores,
        offsets.mask,
        offsets.sums,
        offsets.state,
    )

    def tiles(name: str, rows: int, by_column: bool) -> tuple[Any, Any]:
        functions = []
        for symbol, edge in ((f"attention_{name}", False), (f"attention_{name}_edge", True)):
            tile = Tile(
                symbol, dtype, lanes, rows, sizes.vectors, 0.0, a_by_column=by_column, b_stride=width,
                guard_rows=edge, clamp_rows=edge,
            )  # fmt: skip
            functions.append(ir_function_of(dtype, symbol, TILE_ARGUMENTS, written_by(Tile.text, tile)))
        return functions[0], functions[1]

    key_tile, key_edge = tiles("keys", key_rows, by_column=False)
    value_tile, value_edge = tiles("values", value_rows, by_column=True)

    @inlined()
    def score(k: Any, key: int, count: int, p: int, deep: int, d: int, workspace: Any) -> None:
        first = 1 if p == 0 else 0
        for i in range(0, count, key_rows):
            at, to = (key + i) * d + p, at_scores + i * width
            if count - i >= key_rows:
                key_tile(k, at, d, workspace, 0, 0, workspace, to, width, deep, first, key_rows, width)
            else:
                key_edge(k, at, d, workspace, 0, 0, workspace, to, width, deep, first, count - i, width)

    @inlined()
    def gather(v: Any, at: int, count: int, dv: int, wide: int, first: int, workspace: Any) -> None:
        for r in range(0, wide, value_rows):
            to = at_sums + r * width
            if wide - r >= value_rows:
                value_tile(
                    v, at + r, dv, workspace, at_scores, 0, workspace, to, width, count, first, value_rows, width
                )
            else:
                value_edge(v, at + r, dv, workspace, at_scores, 0, workspace, to, width, count, first, wide - r, width)

    @inlined("contract")
    def multiply(scores: Any, count: int, factor: Any) -> None:
        for w in range(count):
            scores[w] = scores[w] * factor

    @inlined()
    def columns(
        q: Any, k: Any, v: Any, mask: Any, out: Any, keys: int, d: int, dv: int, factor: Any, visible: int, live: int,
        first_column: int, wide: int, workspace: Any,
    ) -> None:  # fmt: skip
        scores, sums, state = (
            offset(workspace, at_scores), offset(workspace, at_sums), offset(workspace, at_state),
        )  # fmt: skip
        for w in range(width):
            state[w] = minus_infinity
        for w in range(width):
            state[width + w] = zero
        last = min(keys, visible + live - 1) if causal else keys
        if last <= 0:
            for r in range(wide * width):
                sums[r] = zero
        if d <= DEPTH:
            turn(q, 0, d, workspace, at_panel, live, d)
        for key in range(0, last, block):
            count = min(block, last - key)
            for p in range(0, max(d, 1), DEPTH):
                deep = min(DEPTH, d - p)
                if d > DEPTH:
                    turn(q, p, d, workspace, at_panel, live, deep)
                score(k, key, count, p, deep, d, workspace)
            by = factor
            if masked:
                turn(mask, key, keys, workspace, at_mask, live, count)
                add(scores, offset(workspace, at_mask), count, factor)
                by = one
            if causal:
                visible_keys = max(visible - key, 0)
                if visible_keys < count:
                    if (
                        not masked
                    ):  # before the causal mask: minus infinity times the factor depends on the factor's sign
                        multiply(scores, count * width, factor)
                        by = one
                    causal_mask(
                        offset(scores, visible_keys * width), count - visible_keys, key + visible_keys - visible + 1
                    )
            online_softmax(scores, count, by, state, sums, wide if key > 0 else 0)
            gather(v, key * dv + first_column, count, dv, wide, 1 if key == 0 else 0, workspace)
        store(offset(workspace, at_sums), state, offset(out, first_column), dv, live, wide)

    return columns


def ir_function_of(dtype: str, symbol: str, arguments: tuple[tuple[str, str], ...], text: str | Written) -> Any:
    """Make an LLVM IR function whose pointers and numbers have the dtype."""
    number = dtypes.named(dtype).c
    kinds = {"ptr": f"{number}*", "number": number, "i64": "int64"}
    return IRFunction(symbol, "void", tuple(kinds[kind] for kind, _ in arguments), text)
