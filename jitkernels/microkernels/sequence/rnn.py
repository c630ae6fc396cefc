"""LSTM and GRU layers: the loop nest over all steps of some rows of the batch, with packed weights in caches.

Hidden units form blocks of one vector. The weights of all gates of a block share one panel, so that the register tile
of `jitkernels.microkernels.gemm.microkernel` computes all gates of the block, and the epilogue of the step follows at
once. The products of the inputs of many steps are computed together, before the first of these steps.

With a batch of one row, each step reads the weights of the state once. They may stay unpacked then: packing takes as
long as some steps, and speeds up each step only a little.
"""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import inlined, offset, vectors, written_by
from jitkernels.core import dtypes
from jitkernels.core.cpu_target import Target
from jitkernels.core.frozen_dataclass import record
from jitkernels.microkernels.gemm.microkernel import TILE_ARGUMENTS, Tile
from jitkernels.microkernels.gemm.packed_panels import ir_function
from jitkernels.microkernels.gemm.packing import PACK_ARGUMENTS, transpose_panel
from jitkernels.microkernels.gemv.multirow_dot import dot_rows
from jitkernels.microkernels.maths.sigmoid import sigmoid_float32, sigmoid_float64
from jitkernels.microkernels.maths.tanh import tanh_float32, tanh_float64
from jitkernels.microkernels.team_barrier import claim_share, finish_share, shares_pending, yield_core

SUMS_BYTES = 1 << 19
"""Bytes of products of inputs computed ahead of their steps: half of a second-level cache."""
DOTS = 8
"""Rows of weights per pass where nothing is packed."""
BIASES = 4
"""Vectors of biases per block: a GRU's three gates take four, as its reset gate scales one of them."""
SIGMOIDS: dict[str, Any] = {"float32": sigmoid_float32, "float64": sigmoid_float64}
TANHS: dict[str, Any] = {"float32": tanh_float32, "float64": tanh_float64}


@record
class Shape:
    """Parameters of the code: lanes of a vector, gates, and rows of the tall and of the middle tile."""

    dtype: str
    lanes: int
    gates: int
    tall: int
    middle: int

    @property
    def width(self) -> int:
        """Elements of one step along k of a panel."""
        return self.gates * self.lanes

    @property
    def slack(self) -> int:
        """Elements that packing may write behind the last panel."""
        return self.lanes * self.width


def shape_of(dtype: str, gates: int, target: Target, vector_bytes: int) -> Shape:
    """Return tiles whose sums, a step of the panel and an element of the other operand fill the registers."""
    lanes = min(vector_bytes, target.vector_bytes) // dtypes.named(dtype).size
    tall, middle = ({4: 6, 3: 8}[gates], 4) if target.registers == 32 else ({4: 2, 3: 4}[gates], 2)
    return Shape(dtype, lanes, gates, tall, middle)


@record
class Products:
    """Functions for loop nests: packing of weights, and products of one block of units."""

    packed: Any
    tiles: Any
    dots: Any


def products_of(shape: Shape) -> Products:
    """Return the functions for layers of a shape."""
    dtype, lanes, gates, width = shape.dtype, shape.lanes, shape.gates, shape.width
    tall, middle, twice, at_once = shape.tall, shape.middle, 2 * shape.middle, min(DOTS, lanes)

    def tile_function(rows: int) -> Any:
        symbol = f"recurrence_tile{rows}"
        tile = Tile(
            symbol, dtype, lanes, rows, gates, 0.0, a_by_column=False, b_stride=width, clamp_rows=rows > 1
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

    return Products(packed, tiles, dots)


def lstm_step(shape: Shape) -> Any:
    """Return the LSTM epilogue of one block in one row of the batch; the cell state is loop-carried."""
    sigmoid, tanh, lanes = SIGMOIDS[shape.dtype], TANHS[shape.dtype], shape.lanes

    @inlined("contract")
    def step(sums: Any, tile: Any, bias: Any, cell_state: Any, state: Any, live: int) -> None:
        for j in vectors(0, live, lanes):
            i = sigmoid(sums[j] + bias[j] + tile[j])
            f = sigmoid(sums[lanes + j] + bias[lanes + j] + tile[lanes + j])
            g = tanh(sums[2 * lanes + j] + bias[2 * lanes + j] + tile[2 * lanes + j])
            o = sigmoid(sums[3 * lanes + j] + bias[3 * lanes + j] + tile[3 * lanes + j])
            c = f * cell_state[j] + i * g
            cell_state[j] = c
            state[j] = o * tanh(c)

    return step


def gru_step(shape: Shape) -> Any:
    """Return the GRU epilogue; the state is loop-carried, and the last biases are those that the reset gate scales."""
    sigmoid, tanh, lanes = SIGMOIDS[shape.dtype], TANHS[shape.dtype], shape.lanes

    @inlined("contract")
    def step(sums: Any, tile: Any, bias: Any, carried_state: Any, state: Any, live: int) -> None:
        for j in vectors(0, live, lanes):
            r = sigmoid(sums[j] + bias[j] + tile[j])
            z = sigmoid(sums[lanes + j] + bias[lanes + j] + tile[lanes + j])
            new_input = tile[2 * lanes + j] + bias[3 * lanes + j]
            n = tanh(sums[2 * lanes + j] + bias[2 * lanes + j] + r * new_input)
            h = n + z * (carried_state[j] - n)
            carried_state[j] = h
            state[j] = h

    return step


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


@record
class Layer:
    """The layer as a function of all arrays (null where absent), and its workspace."""

    function: Any
    bytes_of: Any


def layer_of(shape: Shape, step: Any, *, biased: bool, initial: bool, packs: bool) -> Layer:
    """Return the layer; one that `packs` packs the weights of the state even for one row.

    Threads of a team share the blocks of units, with a barrier per step (`jitkernels.microkernels.team_barrier`). The
    workspace holds weights of inputs and of the state, biases, for each thread the sums of one tile, and sums of
    inputs.
    """
    products, put_biases = products_of(shape), put_biases_of(shape)
    packed, tiles, dots = products.packed, products.tiles, products.dots
    lanes, width, tall, slack = shape.lanes, shape.width, shape.tall, shape.slack
    size = dtypes.named(shape.dtype).size
    bias_elements, sums_elements = BIASES * lanes, SUMS_BYTES // size
    zero = np.dtype(shape.dtype).type(0)

    @inlined()
    def chunk_of(steps: int, rows: int, blocks: int, team_size: int) -> int:
        """Return how many steps' inputs are multiplied together."""
        return max(min(steps, sums_elements * team_size // max(rows * blocks * width, 1)), 1)

    @inlined()
    def panels_of(steps: int, rows: int, blocks: int, team_size: int) -> int:
        """Return how many panels of input weights are kept: each is used once if all steps are computed together."""
        return team_size if chunk_of(steps, rows, blocks, team_size) >= steps else blocks

    @inlined()
    def panels_offset(rows: int, hidden: int, blocks: int, team_size: int) -> int:
        """Return the offset of the packed input weights, behind those of the state, which are packed first."""
        return blocks * hidden * width + team_size * slack if packs or rows > 1 else 0

    @inlined()
    def bias_offset(steps: int, rows: int, inputs: int, hidden: int, blocks: int, team_size: int) -> int:
        panels = panels_of(steps, rows, blocks, team_size) * inputs * width
        return panels_offset(rows, hidden, blocks, team_size) + panels + team_size * slack

    def bytes_of(steps: int, batch: int, inputs: int, hidden: int, team_size: int, begin: int, end: int) -> int:
        rows, blocks = end - begin, (hidden + lanes - 1) // lanes
        sums = (chunk_of(steps, rows, blocks, team_size) * rows + tall) * blocks * width
        biases = bias_offset(steps, rows, inputs, hidden, blocks, team_size)
        return (biases + blocks * bias_elements + team_size * tall * width + sums) * size

    @inlined()
    def multiply(x: Any, rows: int, inputs: int, blocks: int, block: int, panel: Any, sums: Any) -> None:
        """Compute the products of rows of inputs with the gates of a block."""
        row = 0
        while row < rows:
            to = offset(sums, (row * blocks + block) * width)
            row += tiles(offset(x, row * inputs), inputs, rows - row, panel, to, blocks * width, inputs)

    @inlined()
    def layer(
        x: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, h0: Any, kept0: Any, y: Any, h_n: Any, kept: Any,
        steps: int, batch: int, inputs: int, hidden: int, workspace: Any, begin: int, end: int, words: Any,
        thread: int, team_size: int,
    ) -> None:  # fmt: skip
        rows, blocks = end - begin, (hidden + lanes - 1) // lanes
        chunk, panel = chunk_of(steps, rows, blocks, team_size), inputs * width
        panels = offset(workspace, panels_offset(rows, hidden, blocks, team_size))
        biases = offset(workspace, bias_offset(steps, rows, inputs, hidden, blocks, team_size))
        tile_sums = offset(biases, blocks * bias_elements)
        sums = offset(tile_sums, team_size * tall * width)
        for t in range(max(steps, 1)):
            first = t // chunk * chunk
            for turn in range(team_size):
                share = (thread + turn) % team_size
                if claim_share(words, team_size, share, t) == 0:
                    continue
                low, high = share * blocks // team_size, (share + 1) * blocks // team_size
                # Packing writes past the end of its panel, where the next panel of the same thread begins.
                of_state, of_inputs = offset(workspace, share * slack), offset(panels, share * slack)
                tile = offset(tile_sums, share * tall * width)
                if t == 0:
                    for k in range(tall * width):
                        tile[k] = zero
                    for block in range(low, high):
                        if packs or rows > 1:
                            packed(w_hh, hidden, hidden, block, offset(of_state, block * hidden * width))
                        if chunk < steps:
                            packed(w_ih, inputs, hidden, block, offset(of_inputs, block * panel))
                        for k in range(block * bias_elements, (block + 1) * bias_elements):
                            biases[k] = zero
                        if biased:
                            put_biases(b_ih, b_hh, hidden, block, offset(biases, block * bias_elements))
                    for row in range(begin, end):
                        for k in range(row * hidden + low * lanes, row * hidden + min(high * lanes, hidden)):
                            kept[k] = kept0[k] if initial else zero
                if t == first:
                    last = min(first + chunk, steps)
                    for block in range(low, high):
                        own_panel = offset(of_inputs, (block if chunk < steps else share) * panel)
                        if chunk >= steps:
                            packed(w_ih, inputs, hidden, block, own_panel)
                        if rows == batch:
                            from_x = offset(x, first * batch * inputs)
                            multiply(from_x, (last - first) * rows, inputs, blocks, block, own_panel, sums)
                        else:
                            for s in range(first, last):
                                from_x = offset(x, (s * batch + begin) * inputs)
                                to = offset(sums, (s - first) * rows * blocks * width)
                                multiply(from_x, rows, inputs, blocks, block, own_panel, to)
                before = offset(y, ((t - 1) * batch + begin) * hidden)
                if initial and t == 0:
                    before = offset(h0, begin * hidden)
                for done in range(high - low if steps > 0 else 0):
                    # Serpentine order: the panels read last are still in the cache, where not all fit.
                    block = low + done if t % 2 == 0 else high - 1 - done
                    live = min(lanes, hidden - block * lanes)
                    row = 0
                    while row < rows:
                        count = min(tall, rows - row)
                        if (initial or t > 0) and not packs and rows == 1:
                            dots(before, w_hh, hidden, block, tile)
                        elif initial or t > 0:
                            count = tiles(
                                offset(before, row * hidden), hidden, rows - row,
                                offset(of_state, block * hidden * width), tile, width, hidden,
                            )  # fmt: skip
                        for r in range(row, row + count):
                            at = begin + r
                            step(
                                offset(sums, (((t - first) * rows + r) * blocks + block) * width),
                                offset(tile, (r - row) * width), offset(biases, block * bias_elements),
                                offset(kept, at * hidden + block * lanes),
                                offset(y, (t * batch + at) * hidden + block * lanes), live,
                            )  # fmt: skip
                        row += count
                if t >= steps - 1:
                    for row in range(begin, end):
                        for k in range(row * hidden + low * lanes, row * hidden + min(high * lanes, hidden)):
                            if steps > 0:
                                h_n[k] = y[(steps - 1) * batch * hidden + k]
                            else:
                                h_n[k] = h0[k] if initial else zero
                finish_share(words, team_size)
            while shares_pending(words, team_size, t) != 0:
                yield_core()

    return Layer(layer, bytes_of)
