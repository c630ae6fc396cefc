"""The loop nest of a recurrent layer: all steps of some rows of the batch, from packed weights that stay in caches.

Hidden units go in blocks of a vector. Of each block, the weights of its gates lie side by side in one panel, so that
the register tile of `jitkernels.loops.tile` gives all gates of the block, and what a step makes of them is done as
soon as they are there. The inputs of many steps are multiplied together, before the first of these steps.

Where there is but one row, each step reads the weights of the state once. They may as well stay where they are then:
packing them takes as long as some steps, of which each is a little faster for it.
"""

from typing import Any

import numpy as np

from jitkernels import dtypes
from jitkernels.loops.dot_rows import dot_rows
from jitkernels.loops.matmul_packed import ir_function
from jitkernels.loops.pack import PACK_ARGUMENTS, transpose_panel
from jitkernels.loops.rounds import are_open, ends, give_way, takes
from jitkernels.loops.tile import TILE_ARGUMENTS, Tile
from jitkernels.machine import Target
from jitkernels.maths.sigmoid import sigmoid_float32, sigmoid_float64
from jitkernels.maths.tanh import tanh_float32, tanh_float64
from jitkernels.native.source import inlined, offset, vectors, written_by
from jitkernels.records import record

SUMS_BYTES = 1 << 19
"""Of products of inputs that wait for their step: half of a second-level cache."""
DOTS = 8
"""Rows of weights at a time where nothing is packed."""
BIASES = 4
"""Vectors of biases for each block: those of three gates are four, where one of them is not just added."""
SIGMOIDS: dict[str, Any] = {"float32": sigmoid_float32, "float64": sigmoid_float64}
TANHS: dict[str, Any] = {"float32": tanh_float32, "float64": tanh_float64}


@record
class Shape:
    """What the code is for: vectors of so many lanes, gates, and rows of the tall and of the middle tile."""

    dtype: str
    lanes: int
    gates: int
    tall: int
    middle: int

    @property
    def width(self) -> int:
        """Elements of a step of a panel."""
        return self.gates * self.lanes

    @property
    def slack(self) -> int:
        """Elements that packing may write behind the last panel."""
        return self.lanes * self.width


def shape_of(dtype: str, gates: int, target: Target, vector_bytes: int) -> Shape:
    """Tiles whose sums, a step of the panel and a number of the other factor fill the registers."""
    lanes = min(vector_bytes, target.vector_bytes) // dtypes.named(dtype).size
    tall, middle = ({4: 6, 3: 8}[gates], 4) if target.registers == 32 else ({4: 2, 3: 4}[gates], 2)
    return Shape(dtype, lanes, gates, tall, middle)


@record
class Products:
    """Functions for loop nests: of weights that are packed, of one block of units."""

    packed: Any
    tiles: Any
    dots: Any


def products_of(shape: Shape) -> Products:
    """The functions for layers of a shape."""
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
        """The panel of a block. What falls behind it is where the next one begins."""
        live = min(lanes, hidden - block * lanes)
        for gate in range(gates):
            pack(w, (gate * hidden + block * lanes) * deep, deep, panel, gate * lanes, live, deep)

    @inlined()
    def tiles(a: Any, a_stride: int, left: int, panel: Any, sums: Any, sums_stride: int, deep: int) -> int:
        """Sums of the gates of a block for the next rows; returns how many rows those are."""
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
        """Sums of the gates of a block for one row, from weights that lie where they were."""
        live = min(lanes, hidden - block * lanes)
        for gate in range(gates):
            row = gate * hidden + block * lanes
            for r in range(0, live, at_once):
                some_dots(state, w, (row + r) * hidden, hidden, tile, gate * lanes + r, hidden, live - r)

    return Products(packed, tiles, dots)


def lstm_step(shape: Shape) -> Any:
    """What a step makes of the units of one block in one row of the batch, whose cell is kept."""
    sigmoid, tanh, lanes = SIGMOIDS[shape.dtype], TANHS[shape.dtype], shape.lanes

    @inlined("contract")
    def step(sums: Any, tile: Any, bias: Any, kept: Any, state: Any, live: int) -> None:
        for j in vectors(0, live, lanes):
            i = sigmoid(sums[j] + bias[j] + tile[j])
            f = sigmoid(sums[lanes + j] + bias[lanes + j] + tile[lanes + j])
            g = tanh(sums[2 * lanes + j] + bias[2 * lanes + j] + tile[2 * lanes + j])
            o = sigmoid(sums[3 * lanes + j] + bias[3 * lanes + j] + tile[3 * lanes + j])
            c = f * kept[j] + i * g
            kept[j] = c
            state[j] = o * tanh(c)

    return step


def gru_step(shape: Shape) -> Any:
    """The same, for which the state itself is kept; the last biases are those of what the reset gate weighs."""
    sigmoid, tanh, lanes = SIGMOIDS[shape.dtype], TANHS[shape.dtype], shape.lanes

    @inlined("contract")
    def step(sums: Any, tile: Any, bias: Any, kept: Any, state: Any, live: int) -> None:
        for j in vectors(0, live, lanes):
            r = sigmoid(sums[j] + bias[j] + tile[j])
            z = sigmoid(sums[lanes + j] + bias[lanes + j] + tile[lanes + j])
            seen = tile[2 * lanes + j] + bias[3 * lanes + j]
            n = tanh(sums[2 * lanes + j] + bias[2 * lanes + j] + r * seen)
            h = n + z * (kept[j] - n)
            kept[j] = h
            state[j] = h

    return step


def put_biases_of(shape: Shape) -> Any:
    """The biases of a block, both added up where the gate looks at their sum alone."""
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
    """The layer as a function of all arrays, of which those that are not there are not looked at; and its workspace."""

    function: Any
    bytes_of: Any


def layer_of(shape: Shape, step: Any, *, biased: bool, initial: bool, packs: bool) -> Layer:
    """A layer that `packs` does so with the weights of the state even for one row.

    Members of a group share the blocks of units, each step being a round (`jitkernels.loops.rounds`). The workspace has
    weights of inputs and of the state, biases, for each member the sums of one tile, and sums of inputs.
    """
    made, put_biases = products_of(shape), put_biases_of(shape)
    packed, tiles, dots = made.packed, made.tiles, made.dots
    lanes, width, tall, slack = shape.lanes, shape.width, shape.tall, shape.slack
    size = dtypes.named(shape.dtype).size
    own, room = BIASES * lanes, SUMS_BYTES // size
    zero = np.dtype(shape.dtype).type(0)

    @inlined()
    def chunk_of(steps: int, rows: int, blocks: int, members: int) -> int:
        """How many steps' inputs are multiplied together."""
        return max(min(steps, room * members // max(rows * blocks * width, 1)), 1)

    @inlined()
    def panels_of(steps: int, rows: int, blocks: int, members: int) -> int:
        """How many panels of the weights of inputs are kept: each is used once if all steps come together."""
        return members if chunk_of(steps, rows, blocks, members) >= steps else blocks

    @inlined()
    def place_of_panels(rows: int, hidden: int, blocks: int, members: int) -> int:
        """Of the weights of inputs, behind those of the state, which are packed before."""
        return blocks * hidden * width + members * slack if packs or rows > 1 else 0

    @inlined()
    def place_of_bias(steps: int, rows: int, inputs: int, hidden: int, blocks: int, members: int) -> int:
        panels = panels_of(steps, rows, blocks, members) * inputs * width
        return place_of_panels(rows, hidden, blocks, members) + panels + members * slack

    def bytes_of(steps: int, batch: int, inputs: int, hidden: int, members: int, begin: int, end: int) -> int:
        rows, blocks = end - begin, (hidden + lanes - 1) // lanes
        sums = (chunk_of(steps, rows, blocks, members) * rows + tall) * blocks * width
        biases = place_of_bias(steps, rows, inputs, hidden, blocks, members)
        return (biases + blocks * own + members * tall * width + sums) * size

    @inlined()
    def multiply(x: Any, rows: int, inputs: int, blocks: int, block: int, panel: Any, sums: Any) -> None:
        """The products of rows of inputs with the gates of a block."""
        row = 0
        while row < rows:
            to = offset(sums, (row * blocks + block) * width)
            row += tiles(offset(x, row * inputs), inputs, rows - row, panel, to, blocks * width, inputs)

    @inlined()
    def layer(
        x: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, h0: Any, kept0: Any, y: Any, h_n: Any, kept: Any,
        steps: int, batch: int, inputs: int, hidden: int, workspace: Any, begin: int, end: int, words: Any,
        member: int, members: int,
    ) -> None:  # fmt: skip
        rows, blocks = end - begin, (hidden + lanes - 1) // lanes
        chunk, panel = chunk_of(steps, rows, blocks, members), inputs * width
        panels = offset(workspace, place_of_panels(rows, hidden, blocks, members))
        biases = offset(workspace, place_of_bias(steps, rows, inputs, hidden, blocks, members))
        tile_sums = offset(biases, blocks * own)
        sums = offset(tile_sums, members * tall * width)
        for t in range(max(steps, 1)):
            first = t // chunk * chunk
            for turn in range(members):
                share = (member + turn) % members
                if takes(words, members, share, t) == 0:
                    continue
                low, high = share * blocks // members, (share + 1) * blocks // members
                # What is packed falls over the edge of its panel, where the next one of the same share begins.
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
                        for k in range(block * own, (block + 1) * own):
                            biases[k] = zero
                        if biased:
                            put_biases(b_ih, b_hh, hidden, block, offset(biases, block * own))
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
                    # There and back: what was read last is in the cache yet, where all does not fit.
                    block = low + done if t % 2 == 0 else high - 1 - done
                    live = min(lanes, hidden - block * lanes)
                    row = 0
                    while row < rows:
                        some = min(tall, rows - row)
                        if (initial or t > 0) and not packs and rows == 1:
                            dots(before, w_hh, hidden, block, tile)
                        elif initial or t > 0:
                            some = tiles(
                                offset(before, row * hidden), hidden, rows - row,
                                offset(of_state, block * hidden * width), tile, width, hidden,
                            )  # fmt: skip
                        for r in range(row, row + some):
                            at = begin + r
                            step(
                                offset(sums, (((t - first) * rows + r) * blocks + block) * width),
                                offset(tile, (r - row) * width), offset(biases, block * own),
                                offset(kept, at * hidden + block * lanes),
                                offset(y, (t * batch + at) * hidden + block * lanes), live,
                            )  # fmt: skip
                        row += some
                if t >= steps - 1:
                    for row in range(begin, end):
                        for k in range(row * hidden + low * lanes, row * hidden + min(high * lanes, hidden)):
                            if steps > 0:
                                h_n[k] = y[(steps - 1) * batch * hidden + k]
                            else:
                                h_n[k] = h0[k] if initial else zero
                ends(words, members)
            while are_open(words, members, t) != 0:
                give_way()

    return Layer(layer, bytes_of)
