"""Attention for many queries (prefill): a panel of queries at a time, transposed so that vectors run along queries.

Scores are the product of keys, read in place, with the panel; the sums are that of values, read in place, with the
weights: of all arrays the code copies only the queries, and transposes the results back. Both products and the online
softmax between them stay in the first two cache levels, a block of keys at a time.
"""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import IRFunction, Written, inlined, offset, written_by
from jitkernels.core import dtypes
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.microkernels.attention.arguments import AttentionArrays, Queries
from jitkernels.microkernels.attention.online_softmax import (
    ADD_ARGUMENTS,
    HIDE_ARGUMENTS,
    STORE_ARGUMENTS,
    WEIGH_ARGUMENTS,
    Panel,
)
from jitkernels.microkernels.gemm.microkernel import TILE_ARGUMENTS, Tile
from jitkernels.microkernels.gemm.packing import PACK_ARGUMENTS, packing_slack, transpose_panel

BLOCK_DEPTH = 512
"""Block size along d of the panel, and along the columns of values of the sums."""


@frozen_dataclass
class PanelSizes:
    """Register tiles of keys by queries and of values by queries, and keys per block."""

    vectors: int
    key_rows: int
    value_rows: int
    block: int


@frozen_dataclass
class WorkspaceOffsets:
    """Offsets of the parts of the workspace, in elements."""

    panel: int
    scores: int
    mask: int
    sums: int
    state: int
    end: int


def room_of(dtype: str, lanes: int, sizes: PanelSizes, *, masked: bool) -> WorkspaceOffsets:
    """Return the offsets of the panel of queries, the scores of a block, their mask, the sums, maxima and totals."""
    width = sizes.vectors * lanes
    slack = -(-packing_slack(lanes, width) // 64) * 64
    panel = 0
    scores = panel + BLOCK_DEPTH * width + slack
    mask = scores + (sizes.block + sizes.key_rows) * width
    sums = mask + (sizes.block * width + slack if masked else 0)
    state = sums + (BLOCK_DEPTH + sizes.value_rows) * width
    return WorkspaceOffsets(panel, scores, mask, sums, state, state + 2 * width)


@frozen_dataclass
class PrefillPanel:
    """Panels of queries: dtype, lanes, register tiles, and offsets in the workspace."""

    dtype: str
    lanes: int
    sizes: PanelSizes
    room: WorkspaceOffsets

    @property
    def width(self) -> int:
        return self.sizes.vectors * self.lanes

    def function(self, name: str, arguments: tuple[tuple[str, str], ...], writer: Any) -> Any:
        """A function of the online softmax."""
        panel = Panel(self.dtype, self.lanes, self.sizes.vectors)
        return ir_function_of(
            self.dtype, f"attention_{name}", arguments, written_by(writer, panel, f"attention_{name}")
        )

    def tiles(self, name: str, rows: int, *, by_column: bool) -> tuple[Any, Any]:
        """The register tiles of whole rows, and of rows at the edge."""
        functions = []
        for symbol, edge in ((f"attention_{name}", False), (f"attention_{name}_edge", True)):
            tile = Tile(
                symbol, self.dtype, self.lanes, rows, self.sizes.vectors, 0.0, a_by_column=by_column,
                b_stride=self.width, guard_rows=edge, clamp_rows=edge,
            )  # fmt: skip
            functions.append(ir_function_of(self.dtype, symbol, TILE_ARGUMENTS, written_by(Tile.text, tile)))
        return functions[0], functions[1]


def key_products(panel: PrefillPanel) -> Any:
    """Return the function that multiplies a block of keys with a panel of queries."""
    width, rows, at_scores = panel.width, panel.sizes.key_rows, panel.room.scores
    tile, edge = panel.tiles("keys", rows, by_column=False)

    @inlined()
    def score(k: Any, key: int, count: int, p: int, deep: int, d: int, workspace: Any) -> None:
        first = 1 if p == 0 else 0
        for i in range(0, count, rows):
            at, to = (key + i) * d + p, at_scores + i * width
            if count - i >= rows:
                tile(k, at, d, workspace, 0, 0, workspace, to, width, deep, first, rows, width)
            else:
                edge(k, at, d, workspace, 0, 0, workspace, to, width, deep, first, count - i, width)

    return score


def value_products(panel: PrefillPanel) -> Any:
    """Return the function that adds the products of a block of values and weights to the sums."""
    width, rows, room = panel.width, panel.sizes.value_rows, panel.room
    tile, edge = panel.tiles("values", rows, by_column=True)

    @inlined()
    def gather(v: Any, at: int, count: int, dv: int, wide: int, first: int, workspace: Any) -> None:
        for r in range(0, wide, rows):
            to = room.sums + r * width
            if wide - r >= rows:
                tile(v, at + r, dv, workspace, room.scores, 0, workspace, to, width, count, first, rows, width)
            else:
                edge(v, at + r, dv, workspace, room.scores, 0, workspace, to, width, count, first, wide - r, width)

    return gather


def masking_of(panel: PrefillPanel, turn: Any, *, causal: bool, fills: bool) -> Any:
    """Return the function that applies masks to a block of scores; it returns the factor that they still need."""
    width, at_mask, one = panel.width, panel.room.mask, np.dtype(panel.dtype).type(1)
    causal_mask = panel.function("hide", HIDE_ARGUMENTS, Panel.hide)
    add = panel.function("add", ADD_ARGUMENTS, Panel.fill if fills else Panel.add)
    add_row = panel.function("add_row", ADD_ARGUMENTS, Panel.fill_row if fills else Panel.add_row)

    @inlined("contract")
    def multiply(scores: Any, count: int, factor: Any) -> None:
        for w in range(count):
            scores[w] = scores[w] * factor

    @inlined()
    def apply_masks(
        arrays: AttentionArrays, queries: Queries, key: int, count: int, scores: Any, workspace: Any
    ) -> Any:
        by = queries.factor
        if arrays.mask is not None:
            turn(arrays.mask, key, queries.keys, workspace, at_mask, queries.live, count)
            add(scores, offset(workspace, at_mask), count, by)
            by = one
        if arrays.padding is not None:
            add_row(scores, offset(arrays.padding, key), count, by)
            by = one
        if causal:
            visible_keys = max(queries.visible - key, 0)
            if visible_keys < count:
                if (
                    arrays.mask is None and arrays.padding is None
                ):  # before: minus infinity times the factor depends on the factor's sign
                    multiply(scores, count * width, by)
                    by = one
                hidden, behind = count - visible_keys, key + visible_keys - queries.visible + 1
                causal_mask(offset(scores, visible_keys * width), hidden, behind)
        return by

    return apply_masks


def prefill_queries(panel: PrefillPanel, *, causal: bool, fills: bool) -> Any:
    """Return the function ``(arrays, queries, first_column, wide, workspace)`` for a panel of queries, or fewer.

    It computes `wide` columns of the results.
    """
    dtype, width, block, room = panel.dtype, panel.width, panel.sizes.block, panel.room
    zero, minus_infinity = np.dtype(dtype).type(0), np.dtype(dtype).type(-np.inf)
    transposing = written_by(transpose_panel, "attention_turn", dtype, panel.lanes, width)
    turn = ir_function_of(dtype, "attention_turn", PACK_ARGUMENTS, transposing)
    online_softmax = panel.function("weigh", WEIGH_ARGUMENTS, Panel.weigh)
    store = panel.function("store", STORE_ARGUMENTS, Panel.store)
    score, gather = key_products(panel), value_products(panel)
    apply_masks = masking_of(panel, turn, causal=causal, fills=fills)

    @inlined()
    def columns(arrays: AttentionArrays, queries: Queries, first_column: int, wide: int, workspace: Any) -> None:
        keys, d, dv, live = queries.keys, queries.d, queries.dv, queries.live
        sums, state = offset(workspace, room.sums), offset(workspace, room.state)
        for w in range(width):
            state[w] = minus_infinity
        for w in range(width):
            state[width + w] = zero
        last = min(keys, queries.visible + live - 1) if causal else keys
        if last <= 0:
            for r in range(wide * width):
                sums[r] = zero
        if d <= BLOCK_DEPTH:
            turn(arrays.q, 0, d, workspace, room.panel, live, d)
        for key in range(0, last, block):
            count, scores = min(block, last - key), offset(workspace, room.scores)
            for p in range(0, max(d, 1), BLOCK_DEPTH):
                deep = min(BLOCK_DEPTH, d - p)
                if d > BLOCK_DEPTH:
                    turn(arrays.q, p, d, workspace, room.panel, live, deep)
                score(arrays.k, key, count, p, deep, d, workspace)
            by = apply_masks(arrays, queries, key, count, scores, workspace)
            online_softmax(scores, count, by, state, sums, wide if key > 0 else 0)
            gather(arrays.v, key * dv + first_column, count, dv, wide, 1 if key == 0 else 0, workspace)
        store(sums, state, offset(arrays.out, first_column), dv, live, wide)

    return columns


def ir_function_of(dtype: str, symbol: str, arguments: tuple[tuple[str, str], ...], text: str | Written) -> Any:
    """Make an LLVM IR function whose pointers and numbers have the dtype."""
    number = dtypes.named(dtype).c
    kinds = {"ptr": f"{number}*", "number": number, "i64": "int64"}
    return IRFunction(symbol, "void", tuple(kinds[kind] for kind, _ in arguments), text)
