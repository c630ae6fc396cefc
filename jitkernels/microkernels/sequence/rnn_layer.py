"""The range kernel of an LSTM or GRU layer: shares of units of all steps, in the order of the recurrence."""

from typing import Any, NamedTuple

import numpy as np

from jitkernels.codegen.source_protocol import Range, inlined, offset
from jitkernels.core import dtypes
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.microkernels.sequence.rnn import SUMS_BYTES, Products, Shape, products_of, put_biases_of
from jitkernels.microkernels.team_barrier import Team, claim_share, finish_share, shares_pending, yield_core


class LayerArrays(NamedTuple):
    """The arrays of a layer but for the state that is carried; biases and the first state may be None."""

    x: Any
    w_ih: Any
    w_hh: Any
    b_ih: Any
    b_hh: Any
    h0: Any
    y: Any
    h_n: Any


class CarriedState(NamedTuple):
    """The state that the epilogue carries, c of an LSTM or h of a GRU: the first one, or None, and the last one."""

    first: Any
    last: Any


class LayerSizes(NamedTuple):
    """The extents of a layer."""

    steps: int
    batch: int
    input: int
    hidden: int


class LayerPlan(NamedTuple):
    """How a call is computed: rows of the batch, blocks of units, and steps whose inputs are multiplied together."""

    rows: int
    blocks: int
    chunk: int


class Buffers(NamedTuple):
    """The workspace: weights of the state and of inputs, biases, sums of each thread's tile, and sums of inputs."""

    weights: Any
    panels: Any
    biases: Any
    tiles: Any
    sums: Any


class LayerCall(NamedTuple):
    """A call of the layer."""

    arrays: LayerArrays
    state: CarriedState
    sizes: LayerSizes
    part: Range
    plan: LayerPlan
    buffers: Buffers


class UnitsShare(NamedTuple):
    """A thread's blocks of units, and its parts of the workspace."""

    number: int
    low: int
    high: int
    weights: Any
    panels: Any
    tile: Any


@frozen_dataclass
class WorkspaceLayout:
    """How much of the workspace is what: functions of extents, in elements."""

    shape: Shape
    plan_of: Any
    panels_offset: Any
    bias_offset: Any


def layout_of(shape: Shape, *, packs: bool) -> WorkspaceLayout:
    """Return the layout of the workspace; weights of the state are packed for one row only if the layer `packs`."""
    sums_elements = SUMS_BYTES // dtypes.named(shape.dtype).size

    @inlined()
    def plan_of(sizes: LayerSizes, part: Range, team_size: int) -> Any:
        rows, blocks = part.end - part.begin, (sizes.hidden + shape.lanes - 1) // shape.lanes
        at_once = sums_elements * team_size // max(rows * blocks * shape.width, 1)
        return LayerPlan(rows, blocks, max(min(sizes.steps, at_once), 1))

    @inlined()
    def panels_offset(sizes: LayerSizes, plan: LayerPlan, team_size: int) -> int:
        """Return the offset of the packed input weights, behind those of the state, which are packed first."""
        if shape.panel_units:
            return 0
        weights = plan.blocks * sizes.hidden * shape.width + team_size * shape.slack
        return weights if packs or plan.rows > 1 else 0

    @inlined()
    def bias_offset(sizes: LayerSizes, plan: LayerPlan, team_size: int) -> Any:
        """Return the offset of the biases. Each panel is used once if all steps are computed together."""
        if shape.panel_units:
            return 0
        panels = team_size if plan.chunk >= sizes.steps else plan.blocks
        elements = panels * sizes.input * shape.width + team_size * shape.slack
        return panels_offset(sizes, plan, team_size) + elements

    return WorkspaceLayout(shape, plan_of, panels_offset, bias_offset)


def workspace_of(layout: WorkspaceLayout) -> Any:
    """Return the function that gives the bytes of the workspace."""
    shape, size = layout.shape, dtypes.named(layout.shape.dtype).size

    def bytes_of(sizes: LayerSizes, part: Range, team_size: int) -> Any:
        plan = layout.plan_of(sizes, part, team_size)
        sums = (plan.chunk * plan.rows + shape.tall) * plan.blocks * shape.width
        biases = layout.bias_offset(sizes, plan, team_size) + plan.blocks * shape.bias_elements
        return (biases + team_size * shape.tall * shape.width + sums) * size

    return bytes_of


def start_of(shape: Shape, products: Products, *, packs: bool) -> Any:
    """Return the function that packs the weights of a share, and stores its biases and first state."""
    put_biases, zero = put_biases_of(shape), np.dtype(shape.dtype).type(0)

    @inlined()
    def start(call: LayerCall, share: UnitsShare) -> None:
        arrays = call.arrays
        sizes = call.sizes
        hidden, inputs, biases = sizes.hidden, sizes.input, call.buffers.biases
        for k in range(shape.tall * shape.width):
            share.tile[k] = zero
        for block in range(share.low, share.high):
            if shape.panel_units == 0 and (packs or call.plan.rows > 1):
                products.packed(arrays.w_hh, hidden, hidden, block, products.panel_of(share.weights, hidden, block))
            if shape.panel_units == 0 and call.plan.chunk < sizes.steps:
                products.packed(arrays.w_ih, inputs, hidden, block, products.panel_of(share.panels, inputs, block))
            for k in range(block * shape.bias_elements, (block + 1) * shape.bias_elements):
                biases[k] = zero
            if arrays.b_ih is not None:
                put_biases(arrays.b_ih, arrays.b_hh, hidden, block, offset(biases, block * shape.bias_elements))
        for row in range(call.part.begin, call.part.end):
            first = row * hidden
            for k in range(first + share.low * shape.lanes, first + min(share.high * shape.lanes, hidden)):
                call.state.last[k] = zero if call.state.first is None else call.state.first[k]

    return start


def inputs_of(shape: Shape, products: Products) -> Any:
    """Return the function that multiplies the inputs of the next steps by the weights of a share."""
    width = shape.width

    @inlined()
    def multiply(x: Any, rows: int, inputs: int, blocks: int, block: int, panel: Any, sums: Any) -> None:
        """Compute the products of rows of inputs with the gates of a block."""
        row = 0
        while row < rows:
            to = offset(sums, (row * blocks + block) * width)
            row += products.tiles(offset(x, row * inputs), inputs, rows - row, panel, to, blocks * width, inputs)

    @inlined()
    def multiply_inputs(call: LayerCall, share: UnitsShare, first: int) -> None:
        x, w_ih, sums = call.arrays.x, call.arrays.w_ih, call.buffers.sums
        batch, inputs = call.sizes.batch, call.sizes.input
        rows, blocks, chunk = call.plan.rows, call.plan.blocks, call.plan.chunk
        last = min(first + chunk, call.sizes.steps)
        for block in range(share.low, share.high):
            is_packed = shape.panel_units > 0 or chunk < call.sizes.steps
            panel = products.panel_of(share.panels, inputs, block if is_packed else share.number)
            if not is_packed:
                products.packed(w_ih, inputs, call.sizes.hidden, block, panel)
            if rows == batch:
                from_x = offset(x, first * batch * inputs)
                multiply(from_x, (last - first) * rows, inputs, blocks, block, panel, sums)
            else:
                for s in range(first, last):
                    from_x = offset(x, (s * batch + call.part.begin) * inputs)
                    to = offset(sums, (s - first) * rows * blocks * width)
                    multiply(from_x, rows, inputs, blocks, block, panel, to)

    return multiply_inputs


def row_finisher_of(shape: Shape, step: Any) -> Any:
    """Return the function that computes the epilogue of a block in a row."""
    lanes, width, bias_elements = shape.lanes, shape.width, shape.bias_elements

    @inlined()
    def finish_row(call: LayerCall, block: int, t: int, r: int, tile: Any) -> None:
        hidden, plan = call.sizes.hidden, call.plan
        at, first = call.part.begin + r, t // plan.chunk * plan.chunk
        step(
            offset(call.buffers.sums, (((t - first) * plan.rows + r) * plan.blocks + block) * width),
            tile,
            offset(call.buffers.biases, block * bias_elements),
            offset(call.state.last, at * hidden + block * lanes),
            offset(call.arrays.y, (t * call.sizes.batch + at) * hidden + block * lanes),
            min(lanes, hidden - block * lanes),
        )

    return finish_row


def recurrent_of(shape: Shape, products: Products, step: Any, *, packs: bool) -> Any:
    """Return the function that computes a step of a share: products of the state, and the epilogue."""
    width, tall, finish_row = shape.width, shape.tall, row_finisher_of(shape, step)

    @inlined()
    def compute_pair(call: LayerCall, share: UnitsShare, block: int, t: int, before: Any) -> None:
        """Compute a step of two blocks of units for a single row."""
        hidden = call.sizes.hidden
        if call.arrays.h0 is not None or t > 0:
            weights = products.panel_of(share.weights, hidden, block)
            products.pair(before, weights, share.tile, hidden, t % 2 == 0)
        for k in range(2):
            finish_row(call, block + k, t, 0, offset(share.tile, k * width))

    @inlined()
    def compute_block(call: LayerCall, share: UnitsShare, block: int, t: int, before: Any) -> None:
        """Compute a step of a block of units; before: the state of the step before."""
        hidden, rows = call.sizes.hidden, call.plan.rows
        is_first = call.arrays.h0 is None and t == 0
        row = 0
        while row < rows:
            count = min(tall, rows - row)
            if not is_first and not packs and rows == 1:
                products.dots(before, call.arrays.w_hh, hidden, block, share.tile)
            elif not is_first:
                weights = products.panel_of(share.weights, hidden, block)
                count = products.tiles(
                    offset(before, row * hidden), hidden, rows - row, weights, share.tile, width, hidden
                )
            for r in range(row, row + count):
                finish_row(call, block, t, r, offset(share.tile, (r - row) * width))
            row += count

    @inlined()
    def compute_step(call: LayerCall, share: UnitsShare, t: int) -> None:
        before = offset(call.arrays.y, ((t - 1) * call.sizes.batch + call.part.begin) * call.sizes.hidden)
        if call.arrays.h0 is not None and t == 0:
            before = offset(call.arrays.h0, call.part.begin * call.sizes.hidden)
        blocks = share.high - share.low if call.sizes.steps > 0 else 0
        done = 0
        while done < blocks:
            count = 2 if packs and shape.has_pairs and call.plan.rows == 1 and blocks - done > 1 else 1
            # Serpentine order: what was read last is still in the cache, where not all fits. Products of pairs end with
            # the units that were computed last.
            block = share.low + done if t % 2 == 0 else share.high - count - done
            if count == 2:
                compute_pair(call, share, block, t, before)
            else:
                compute_block(call, share, block, t, before)
            done += count

    return compute_step


def last_state_of(shape: Shape) -> Any:
    """Return the function that stores the last hidden state of a share."""
    zero = np.dtype(shape.dtype).type(0)

    @inlined()
    def store_last_state(call: LayerCall, share: UnitsShare) -> None:
        arrays = call.arrays
        sizes = call.sizes
        hidden, lanes = sizes.hidden, shape.lanes
        for row in range(call.part.begin, call.part.end):
            for k in range(row * hidden + share.low * lanes, row * hidden + min(share.high * lanes, hidden)):
                if sizes.steps > 0:
                    arrays.h_n[k] = arrays.y[(sizes.steps - 1) * sizes.batch * hidden + k]
                else:
                    arrays.h_n[k] = zero if arrays.h0 is None else arrays.h0[k]

    return store_last_state


def layer_of(layout: WorkspaceLayout, step: Any, *, packs: bool) -> Any:
    """Return the layer ``(arrays, state, sizes, workspace, part, team)``.

    Threads of a team share the blocks of units, with a barrier per step (`jitkernels.microkernels.team_barrier`).
    """
    shape = layout.shape
    products, width, slack = products_of(shape), shape.width, shape.slack
    start, multiply_inputs = start_of(shape, products, packs=packs), inputs_of(shape, products)
    compute_step, store_last_state = recurrent_of(shape, products, step, packs=packs), last_state_of(shape)

    @inlined()
    def buffers_of(sizes: LayerSizes, plan: LayerPlan, workspace: Any, team_size: int) -> Any:
        biases = offset(workspace, layout.bias_offset(sizes, plan, team_size))
        tiles = offset(biases, plan.blocks * shape.bias_elements)
        panels = offset(workspace, layout.panels_offset(sizes, plan, team_size))
        return Buffers(workspace, panels, biases, tiles, offset(tiles, team_size * shape.tall * width))

    @inlined()
    def share_of(call: LayerCall, number: int, team_size: int) -> Any:
        blocks = call.plan.blocks
        buffers = call.buffers
        low, high = number * blocks // team_size, (number + 1) * blocks // team_size
        tile = offset(buffers.tiles, number * shape.tall * width)
        if shape.panel_units:
            return UnitsShare(number, low, high, call.arrays.w_hh, call.arrays.w_ih, tile)
        # Packing writes past the end of its panel, where the next panel of the same thread begins.
        weights, panels = offset(buffers.weights, number * slack), offset(buffers.panels, number * slack)
        return UnitsShare(number, low, high, weights, panels, tile)

    @inlined()
    def layer(
        arrays: LayerArrays, state: CarriedState, sizes: LayerSizes, workspace: Any, part: Range, team: Team
    ) -> None:
        plan = layout.plan_of(sizes, part, team.team_size)
        call = LayerCall(arrays, state, sizes, part, plan, buffers_of(sizes, plan, workspace, team.team_size))
        for t in range(max(sizes.steps, 1)):
            for turn in range(team.team_size):
                number = (team.thread + turn) % team.team_size
                if claim_share(team, number, t) == 0:
                    continue
                share = share_of(call, number, team.team_size)
                if t == 0:
                    start(call, share)
                if t % plan.chunk == 0:
                    multiply_inputs(call, share, t)
                compute_step(call, share, t)
                if t >= sizes.steps - 1:
                    store_last_state(call, share)
                finish_share(team)
            while shares_pending(team, t) != 0:
                yield_core()

    return layer
