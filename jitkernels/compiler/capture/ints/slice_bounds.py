"""Slice bounds by NumPy's rules, clamped to the extent; inside loops both may be loop-variant."""

import operator
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.control_flow.loop_state import as_number
from jitkernels.compiler.capture.ints import induction_symbols, intervals
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder, dim_bounds, symbolic_dims
from jitkernels.compiler.ir.builder import elementwise
from jitkernels.compiler.ir.dim_proofs import from_end, larger, smaller
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import Extent, Number


def with_signed_ints(key: Any) -> Any:
    """A key with int64 in place of uint64 indices and bounds of slices, of which loops know no extents."""
    if type(key) is tuple:
        return tuple([with_signed_ints(part) for part in key])
    if type(key) is not slice:
        return _signed(key)
    return slice(_signed(key.start), _signed(key.stop), key.step)


def _signed(bound: Any) -> Any:
    if not (type(bound) is Traced and bound.tracer.depth and not bound.ndim and bound.dtype == np.uint64):
        return bound
    return as_number(bound.tracer, _int64(bound.tracer, bound.node), int)


def _int64(tracer: Tracer, node: Node) -> Node:
    """A uint64 as an int64, sums and all; calls bail out where it, or a part of it, does not fit."""
    if node.operation == "add":
        node = elementwise("add", *(_int64(tracer, operand) for operand in node.inputs))
    else:
        is_cast = node.operation == "cast" and node.inputs[0].dtype == "int64"
        node = node.inputs[0] if is_cast else builder.cast(node, "int64")
    if not intervals.is_natural(intervals.interval(tracer, node)):
        tracer.checks.append(elementwise("less", node, 0))
    return node


def slice_extents(key: slice, extent: Number) -> tuple[Number, Number, Number]:
    """Start, step and number of elements of a slice, as `slice.indices` with symbolic extents."""
    step = 1 if key.step is None else operator.index(key.step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    if step > 0:
        start = _bound(key.start, extent, 0, extent) if key.start is not None else 0
        stop = _bound(key.stop, extent, 0, extent) if key.stop is not None else extent
        distance = stop - start
    else:
        start = _bound(key.start, extent, -1, extent - 1) if key.start is not None else extent - 1
        stop = _bound(key.stop, extent, -1, extent - 1) if key.stop is not None else -1
        distance = start - stop
    if symbolic_dims.is_loop_variant(distance):
        if dim_bounds.is_surely(distance, ">=") is False:
            return 0, step, 0
        distance = clamp_below(distance, 0)
    elif distance <= 0:
        return 0, step, 0
    count = distance if abs(step) == 1 else (distance + (abs(step) - 1)) // abs(step)
    return start, step, _specialize_unit(count)


def _specialize_unit(count: Number) -> Number:
    """A number of elements; 1 becomes a constant, as NumPy treats unit dimensions specially."""
    if not isinstance(count, Extent):
        return count
    if symbolic_dims.is_loop_variant(count):
        at_least, at_most = (dim_bounds.is_surely_at_least(extent, 0) for extent in (count - 1, 1 - count))
        return 1 if at_least and at_most else count
    return 1 if count == 1 else count


def _bound(value: Any, extent: Number, lowest: Number, highest: Number) -> Number:
    bound = induction_symbols.extent_of(value)
    if not symbolic_dims.is_loop_variant(bound - extent):
        if bound < 0:
            bound = bound + extent
            return lowest if bound < lowest else bound
        return highest if bound > highest else bound
    is_natural = dim_bounds.is_surely(bound, ">=")
    if is_natural:
        return clamp_above(bound, highest)
    if is_natural is None:
        return clamp_above(clamp_below(from_end(bound, extent), lowest), highest)
    return clamp_below(bound + extent, lowest)


def clamp_above(bound: Number, highest: Number) -> Number:
    """``min(bound, highest)``, resolved where intervals (or this call's guards) decide it."""
    is_inside = dim_bounds.is_surely(highest - bound, ">=")
    return smaller(bound, highest) if is_inside is None else bound if is_inside else highest


def clamp_below(bound: Number, lowest: Number) -> Number:
    """``max(bound, lowest)``, resolved likewise."""
    is_inside = dim_bounds.is_surely(bound - lowest, ">=")
    return larger(bound, lowest) if is_inside is None else bound if is_inside else lowest
