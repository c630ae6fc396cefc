"""LSTM and GRU layers: the range kernel over all steps of some rows of the batch, with packed weights in caches.

Hidden units form blocks of one vector. The weights of all gates of a block share one panel, so that the register tile
of `jitkernels.microkernels.gemm.microkernel` computes all gates of the block, and the epilogue of the step follows at
once. The products of the inputs of many steps are computed together, before the first of these steps.

With a batch of one row, each step reads the weights of the state once. They may stay unpacked then: packing takes as
long as some steps, and speeds up each step only a little. Constant weights are packed beforehand.
"""

from collections.abc import Callable
from typing import Any

from jitkernels.codegen.source_protocol import inlined, offset, written_by
from jitkernels.core import dtypes
from jitkernels.core.cpu_target import Target
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.microkernels.gemm.gemm_arguments import ir_function
from jitkernels.microkernels.gemm.microkernel import TILE_ARGUMENTS, Tile
from jitkernels.microkernels.gemm.packing import PACK_ARGUMENTS, transpose_panel
from jitkernels.microkernels.gemv.multirow_dot import dot_rows
from jitkernels.microkernels.sequence.gate_vectors import GATE_ARGUMENTS, gru_gates, lstm_gates

SUMS_BYTES = 1 << 19
"""Bytes of products of inputs computed ahead of their steps: half of a second-level cache."""
DOTS = 8
"""Rows of weights per pass where nothing is packed."""
BIASES = 4
"""Vectors of biases per block: a GRU's three gates take four, as its reset gate scales one of them."""


@frozen_dataclass
class Shape:
    """Parameters of the code: lanes of a vector, gates, and rows of the tall and of the middle tile.

    panel_units: the units of a panel of weights that were packed beforehand, a multiple of the lanes; 0 where the layer
    packs them, a panel for each block.
    """

    dtype: str
    lanes: int
    gates: int
    tall: int
    middle: int
    panel_units: int = 0

    @property
    def width(self) -> int:
        """The sums of a block."""
        return self.gates * self.lanes

    @property
    def panel_row(self) -> int:
        """Elements of one step along k of a panel."""
        return self.gates * (self.panel_units or self.lanes)

    @property
    def has_pairs(self) -> bool:
        """Whether two neighbouring blocks have neighbouring panels."""
        return self.panel_units in (0, self.lanes)

    @property
    def bias_elements(self) -> int:
        return BIASES * self.lanes

    @property
    def slack(self) -> int:
        """Elements that packing may write behind the last panel."""
        return self.lanes * self.width


def shape_of(dtype: str, gates: int, target: Target, vector_bytes: int, panel_units: int = 0) -> Shape:
    """Return tiles whose sums, a step of the panel and an element of the other operand fill the registers."""
    lanes = min(vector_bytes, target.vector_bytes) // dtypes.named(dtype).size
    tall, middle = ({4: 6, 3: 8}[gates], 4) if target.registers == 32 else ({4: 2, 3: 4}[gates], 2)
    return Shape(dtype, lanes, gates, tall, middle, panel_units)


@frozen_dataclass
class Products:
    """Functions for range kernels: packing of weights, the panel of a block, and products of one or two blocks."""

    packed: Any
    panel_of: Any
    tiles: Any
    pair: Any
    dots: Any


def pair_of(shape: Shape) -> Any:
    """Return the function for the products of two blocks of units, for a single row."""
    dtype, lanes, gates, width = shape.dtype, shape.lanes, shape.gates, shape.width

    def pair_function(name: str, *, descending: bool) -> Any:
        symbol = f"recurrence_pair_{name}"
        tile = Tile(
            symbol, dtype, lanes, 1, 2 * gates, 0.0, a_by_column=False, b_stride=width, panel_vectors=gates,
            descending=descending,
        )  # fmt: skip
        return ir_function(symbol, dtype, TILE_ARGUMENTS, written_by(Tile.text, tile))

    upwards, downwards = pair_function("upwards", descending=False), pair_function("downwards", descending=True)

    @inlined()
    def pair(a: Any, panel: Any, sums: Any, deep: int, descending: bool) -> None:
        """Compute the sums of the gates of two blocks: the row is read once for both."""
        if descending:
            downwards(a, 0, 0, panel, 0, deep * width, sums, 0, 0, deep, 1, 1, 2 * width)
        else:
            upwards(a, 0, 0, panel, 0, deep * width, sums, 0, 0, deep, 1, 1, 2 * width)

    return pair


def products_of(shape: Shape) -> Products:
    """Return the functions for layers of a shape."""
    dtype, lanes, gates, width = shape.dtype, shape.lanes, shape.gates, shape.width
    tall, middle, twice, at_once = shape.tall, shape.middle, 2 * shape.middle, min(DOTS, lanes)

    def tile_function(rows: int) -> Any:
        symbol = f"recurrence_tile{rows}"
        tile = Tile(
            symbol, dtype, lanes, rows, gates, 0.0, a_by_column=False, b_stride=shape.panel_row,
            panel_vectors=1 if shape.panel_units else 0, panel_stride=shape.panel_units, clamp_rows=rows > 1,
        )  # fmt: skip
        return ir_function(symbol, dtype, TILE_ARGUMENTS, written_by(Tile.text, tile))

    tall_tile, middle_tile, low_tile = tile_function(tall), tile_function(middle), tile_function(1)

    some_dots = dot_rows("recurrence_dots", dtype, lanes, at_once)
    pack = ir_function(
        "recurrence_pack",
        dtype,
        PACK_ARGUMENTS,
        written_by(transpose_panel, "recurrence_pack", dtype, lanes, lanes, width),
    )

    @inlined()
    def packed(w: Any, deep: int, hidden: int, block: int, panel: Any) -> None:
        """Pack the panel of a block. The surplus lands where the next panel begins."""
        live = min(lanes, hidden - block * lanes)
        for gate in range(gates):
            pack(w, (gate * hidden + block * lanes) * deep, deep, panel, gate * lanes, live, deep)

    @inlined()
    def panel_of(weights: Any, deep: int, block: int) -> Any:
        """Return the panel of a block, or the block's part of it."""
        if shape.panel_units == 0:
            return offset(weights, block * deep * width)
        unit = block * lanes
        return offset(weights, unit // shape.panel_units * (deep * shape.panel_row) + unit % shape.panel_units)

    @inlined()
    def tiles(a: Any, a_stride: int, left: int, panel: Any, sums: Any, sums_stride: int, deep: int) -> int:
        """Compute the sums of the gates of a block for the next rows; return how many rows those are."""
        if left > middle and left != twice:
            tall_tile(a, 0, a_stride, panel, 0, width, sums, 0, sums_stride, deep, 1, left, width)
            return min(left, tall)
        if left > 1:
            middle_tile(a, 0, a_stride, panel, 0, width, sums, 0, sums_stride, deep, 1, left, width)
            return min(left, middle)
        low_tile(a, 0, a_stride, panel, 0, width, sums, 0, sums_stride, deep, 1, left, width)
        return 1

    @inlined()
    def dots(state: Any, w: Any, hidden: int, block: int, tile: Any) -> None:
        """Compute the sums of the gates of a block for one row, from unpacked weights."""
        live = min(lanes, hidden - block * lanes)
        for gate in range(gates):
            row = gate * hidden + block * lanes
            for r in range(0, live, at_once):
                some_dots(state, w, (row + r) * hidden, hidden, tile, gate * lanes + r, hidden, live - r)

    return Products(packed, panel_of, tiles, pair_of(shape), dots)


def lstm_step(shape: Shape) -> Any:
    """Return the LSTM epilogue of one block in one row of the batch; the cell state is loop-carried."""
    return _gates(lstm_gates, "recurrence_lstm_gates", shape)


def gru_step(shape: Shape) -> Any:
    """Return the GRU epilogue; the state is loop-carried, and the last biases are those that the reset gate scales."""
    return _gates(gru_gates, "recurrence_gru_gates", shape)


def _gates(text: Callable[..., str], symbol: str, shape: Shape) -> Any:
    return ir_function(symbol, shape.dtype, GATE_ARGUMENTS, written_by(text, symbol, shape.dtype, shape.lanes))


def put_biases_of(shape: Shape) -> Any:
    """Return the function that stores the biases of a block; it adds those that a gate uses as a sum."""
    lanes, gates = shape.lanes, shape.gates
    together = gates if gates == BIASES else gates - 1

    @inlined()
    def put_biases(b_ih: Any, b_hh: Any, hidden: int, block: int, bias: Any) -> None:
        for j in range(min(lanes, hidden - block * lanes)):
            at = block * lanes + j
            for gate in range(gates):
                row = gate * hidden + at
                bias[gate * lanes + j] = b_ih[row] + b_hh[row] if gate < together else b_ih[row]
            if together < gates:
                bias[gates * lanes + j] = b_hh[together * hidden + at]

    return put_biases
