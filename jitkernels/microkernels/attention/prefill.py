"""Attention of many queries: a panel of them at a time, turned round so that vectors run along queries.

Scores are the product of keys, read where they lie, with the panel; the sums are that of values, read where they lie,
with the weights: of all arrays only the queries are copied, and the results turned back. Both products and what happens
between them stay in the first two levels of caches, a block of keys at a time.
"""

from typing import Any

import numpy as np

from jitkernels import dtypes
from jitkernels.loops.attention_panel import (
    ADD_ARGUMENTS,
    HIDE_ARGUMENTS,
    STORE_ARGUMENTS,
    WEIGH_ARGUMENTS,
    Panel,
)
from jitkernels.loops.pack import PACK_ARGUMENTS, packing_slack, transpose_panel
from jitkernels.loops.tile import TILE_ARGUMENTS, Tile
from jitkernels.native.source import IRFunction, Written, inlined, offset, written_by
from jitkernels.records import record

DEPTH = 512
"""Steps along d whose panel is kept, and columns of values whose sums are; more are done after these."""


@record
class Sizes:
    """Tiles of keys by queries and of values by queries, in registers, and the keys of a block."""

    vectors: int
    key_rows: int
    value_rows: int
    block: int


@record
class Room:
    """Where the parts of the workspace lie, in elements."""

    panel: int
    scores: int
    mask: int
    sums: int
    state: int
    end: int


def room_of(dtype: str, lanes: int, sizes: Sizes, *, masked: bool) -> Room:
    """Places of the panel of queries, the scores of a block, their mask, the sums, the largest scores and totals."""
    width = sizes.vectors * lanes
    slack = -(-packing_slack(lanes, width) // 64) * 64
    panel = 0
    scores = panel + DEPTH * width + slack
    mask = scores + (sizes.block + sizes.key_rows) * width
    sums = mask + (sizes.block * width + slack if masked else 0)
    state = sums + (DEPTH + sizes.value_rows) * width
    return Room(panel, scores, mask, sums, state, state + 2 * width)


def many_queries(dtype: str, lanes: int, sizes: Sizes, *, causal: bool, masked: bool) -> Any:
    """The function for a panel of queries, or fewer, and a head of keys and values.

    ``(q, k, v, mask, out, keys, d, dv, factor, sees, live, left, wide, workspace)``: pointers to the first row of each,
    how many keys the first query sees, how many queries there are, and which columns of the values are meant.
    """
    number = np.dtype(dtype).type
    zero, one, nothing = number(0), number(1), number(-np.inf)
    width, block, key_rows, value_rows = sizes.vectors * lanes, sizes.block, sizes.key_rows, sizes.value_rows
    room, panel = room_of(dtype, lanes, sizes, masked=masked), Panel(dtype, lanes, sizes.vectors)
    turn = ir_function_of(
        dtype,
        "attention_turn",
        PACK_ARGUMENTS,
        written_by(transpose_panel, "attention_turn", dtype, lanes, width),
    )
    weigh = ir_function_of(
        dtype, "attention_weigh", WEIGH_ARGUMENTS, written_by(Panel.weigh, panel, "attention_weigh")
    )
    hide = ir_function_of(
        dtype, "attention_hide", HIDE_ARGUMENTS, written_by(Panel.hide, panel, "attention_hide")
    )
    add = ir_function_of(dtype, "attention_add", ADD_ARGUMENTS, written_by(Panel.add, panel, "attention_add"))
    store = ir_function_of(
        dtype, "attention_store", STORE_ARGUMENTS, written_by(Panel.store, panel, "attention_store")
    )

    at_panel, at_scores, at_mask, at_sums, at_state = (
        room.panel,
        room.scores,
        room.mask,
        room.sums,
        room.state,
    )

    def tiles(name: str, rows: int, by_column: bool) -> tuple[Any, Any]:
        made = []
        for symbol, edge in ((f"attention_{name}", False), (f"attention_{name}_edge", True)):
            tile = Tile(
                symbol, dtype, lanes, rows, sizes.vectors, 0.0, a_by_column=by_column, b_stride=width,
                guard_rows=edge, clamp_rows=edge,
            )  # fmt: skip
            made.append(ir_function_of(dtype, symbol, TILE_ARGUMENTS, written_by(Tile.text, tile)))
        return made[0], made[1]

    key_tile, key_edge = tiles("keys", key_rows, by_column=False)
    value_tile, value_edge = tiles("values", value_rows, by_column=True)

    @inlined()
    def score(k: Any, key: int, some: int, p: int, deep: int, d: int, workspace: Any) -> None:
        first = 1 if p == 0 else 0
        for i in range(0, some, key_rows):
            at, to = (key + i) * d + p, at_scores + i * width
            if some - i >= key_rows:
                key_tile(k, at, d, workspace, 0, 0, workspace, to, width, deep, first, key_rows, width)
            else:
                key_edge(k, at, d, workspace, 0, 0, workspace, to, width, deep, first, some - i, width)

    @inlined()
    def gather(v: Any, at: int, some: int, dv: int, wide: int, first: int, workspace: Any) -> None:
        for r in range(0, wide, value_rows):
            to = at_sums + r * width
            if wide - r >= value_rows:
                value_tile(
                    v,
                    at + r,
                    dv,
                    workspace,
                    at_scores,
                    0,
                    workspace,
                    to,
                    width,
                    some,
                    first,
                    value_rows,
                    width,
                )
            else:
                value_edge(
                    v,
                    at + r,
                    dv,
                    workspace,
                    at_scores,
                    0,
                    workspace,
                    to,
                    width,
                    some,
                    first,
                    wide - r,
                    width,
                )

    @inlined("contract")
    def multiply(scores: Any, count: int, factor: Any) -> None:
        for w in range(count):
            scores[w] = scores[w] * factor

    @inlined()
    def columns(
        q: Any, k: Any, v: Any, mask: Any, out: Any, keys: int, d: int, dv: int, factor: Any, sees: int, live: int,
        left: int, wide: int, workspace: Any,
    ) -> None:  # fmt: skip
        scores, sums, state = (
            offset(workspace, at_scores), offset(workspace, at_sums), offset(workspace, at_state),
        )  # fmt: skip
        for w in range(width):
            state[w] = nothing
        for w in range(width):
            state[width + w] = zero
        last = min(keys, sees + live - 1) if causal else keys
        if last <= 0:
            for r in range(wide * width):
                sums[r] = zero
        if d <= DEPTH:
            turn(q, 0, d, workspace, at_panel, live, d)
        for key in range(0, last, block):
            some = min(block, last - key)
            for p in range(0, max(d, 1), DEPTH):
                deep = min(DEPTH, d - p)
                if d > DEPTH:
                    turn(q, p, d, workspace, at_panel, live, deep)
                score(k, key, some, p, deep, d, workspace)
            by = factor
            if masked:
                turn(mask, key, keys, workspace, at_mask, live, some)
                add(scores, offset(workspace, at_mask), some, factor)
                by = one
            if causal:
                shown = max(sees - key, 0)
                if shown < some:
                    if (
                        not masked
                    ):  # before they are hidden: what minus infinity becomes hangs on the factor's sign
                        multiply(scores, some * width, factor)
                        by = one
                    hide(offset(scores, shown * width), some - shown, key + shown - sees + 1)
            weigh(scores, some, by, state, sums, wide if key > 0 else 0)
            gather(v, key * dv + left, some, dv, wide, 1 if key == 0 else 0, workspace)
        store(offset(workspace, at_sums), state, offset(out, left), dv, live, wide)

    return columns


def ir_function_of(
    dtype: str, symbol: str, arguments: tuple[tuple[str, str], ...], made: str | Written
) -> Any:
    """A function in LLVM IR whose pointers point to, and whose numbers are, of the dtype."""
    number = dtypes.named(dtype).c
    kinds = {"ptr": f"{number}*", "number": number, "i64": "int64"}
    return IRFunction(symbol, "void", tuple(kinds[kind] for kind, _ in arguments), made)
