"""Generated LSTM and GRU, and their forms with packed weights."""

from typing import Any

from jitkernels.attrs.recurrence import PANEL_UNITS, GRUAttr, GRUPackedAttr, LSTMAttr, LSTMPackedAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range
from jitkernels.core import cpu_target, dtypes
from jitkernels.microkernels.sequence import rnn
from jitkernels.microkernels.sequence.rnn_layer import (
    CarriedState,
    LayerArrays,
    LayerSizes,
    WorkspaceLayout,
    layer_of,
    layout_of,
    workspace_of,
)
from jitkernels.microkernels.team_barrier import Team

MIN_THREAD_BLOCKS, STEP_MULTIPLY_ADDS = 2, 1 << 15
"""Least blocks of units per thread, and least multiply-adds of a step with the weights of the state."""
MAX_UNPACKED_STEPS, MAX_UNPACKED_STEPS_OF_MANY_UNITS = 8, 24
"""Steps up to which nothing is packed, and up to which packing does not pay where units are many."""
MANY_UNITS, UNITS_BEYOND_CACHES = 128, 300
"""Hidden units that count as many, and those whose weights exceed the caches, packed or not."""


def variants(attr: LSTMAttr | GRUAttr) -> list[Variant]:
    """List the variants: vector width, weights of the state packed or not for one row, threads by hidden units."""
    several = attr.batch * attr.gates * attr.hidden**2 >= 2 * STEP_MULTIPLY_ADDS
    packs = [True]
    if attr.batch == 1:
        pays = (
            attr.steps >= (MAX_UNPACKED_STEPS if attr.hidden < MANY_UNITS else MAX_UNPACKED_STEPS_OF_MANY_UNITS)
            and attr.hidden < UNITS_BEYOND_CACHES
        )
        packs = [True, False] if pays else [False, True]
    return [
        {"vector_bytes": width, "packs": is_packed, "parallel": parallel}
        for parallel in ((False, True) if several else (False,))
        for width in cpu_target.target().widths
        for is_packed in packs
    ]


def packed_variants(attr: LSTMPackedAttr | GRUPackedAttr) -> list[Variant]:
    """List the variants: vector width, threads by hidden units."""
    found = [{name: value for name, value in one.items() if name != "packs"} for one in variants(attr)]
    return [one for i, one in enumerate(found) if one not in found[:i]]


@implements(LSTMAttr, variants=variants)
def lstm(attr: LSTMAttr, vector_bytes: int = 64, packs: bool = True, parallel: bool = False) -> RangeKernel:
    return _lstm(attr, rnn.shape_of(attr.dtype, 4, cpu_target.target(), vector_bytes), packs, parallel)


@implements(LSTMPackedAttr, variants=packed_variants)
def lstm_packed(attr: LSTMPackedAttr, vector_bytes: int = 64, parallel: bool = False) -> RangeKernel:
    shape = rnn.shape_of(attr.dtype, 4, cpu_target.target(), vector_bytes, PANEL_UNITS)
    return _lstm(attr, shape, True, parallel)


@implements(GRUAttr, variants=variants)
def gru(attr: GRUAttr, vector_bytes: int = 64, packs: bool = True, parallel: bool = False) -> RangeKernel:
    return _gru(attr, rnn.shape_of(attr.dtype, 3, cpu_target.target(), vector_bytes), packs, parallel)


@implements(GRUPackedAttr, variants=packed_variants)
def gru_packed(attr: GRUPackedAttr, vector_bytes: int = 64, parallel: bool = False) -> RangeKernel:
    shape = rnn.shape_of(attr.dtype, 3, cpu_target.target(), vector_bytes, PANEL_UNITS)
    return _gru(attr, shape, True, parallel)


def _lstm(attr: LSTMAttr, shape: rnn.Shape, packs: bool, parallel: bool) -> RangeKernel:
    step = rnn.lstm_step(shape)
    layout = layout_of(shape, packs=packs)
    layer = layer_of(layout, step, packs=packs)

    def body(
        arrays: LayerArrays, c0: Any, c_n: Any, sizes: LayerSizes, workspace: Any, part: Range, team: Team
    ) -> None:
        layer(arrays, CarriedState(c0, c_n), sizes, workspace, part, team)

    return _nest(attr, body, layout, parallel)


def _gru(attr: GRUAttr, shape: rnn.Shape, packs: bool, parallel: bool) -> RangeKernel:
    step = rnn.gru_step(shape)
    layout = layout_of(shape, packs=packs)
    layer = layer_of(layout, step, packs=packs)

    def body(arrays: LayerArrays, sizes: LayerSizes, workspace: Any, part: Range, team: Team) -> None:
        layer(arrays, CarriedState(arrays.h0, arrays.h_n), sizes, workspace, part, team)

    return _nest(attr, body, layout, parallel)


def _nest(attr: Any, body: Any, layout: WorkspaceLayout, parallel: bool) -> RangeKernel:
    signature, shape = attr.signature(), layout.shape

    def threads(hidden: int, begin: int, end: int) -> int:
        if not parallel:
            return 1
        return min(
            hidden // (MIN_THREAD_BLOCKS * shape.lanes),
            (end - begin) * shape.gates * hidden * hidden // STEP_MULTIPLY_ADDS,
        )

    return RangeKernel(
        f"{attr.name}_{attr.dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("batch"),
        together=threads,
        workspace=workspace_of(layout),
        workspace_dtype=attr.dtype,
        vector_bytes=shape.lanes * dtypes.named(attr.dtype).size,
        flags=("contract",),
        straight=True,
        names=signature.names,
    )
