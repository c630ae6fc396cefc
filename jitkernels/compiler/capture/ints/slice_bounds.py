"""Slice bounds by NumPy's rules, clamped to the extent; inside loops both may be loop-variant."""

import operator
from typing import Any

from jitkernels.compiler.capture.ints import induction_symbols
from jitkernels.compiler.ir import dim_bounds, symbolic_dims
from jitkernels.compiler.ir.dim_proofs import from_end, larger, smaller
from jitkernels.compiler.ir.symbolic_dims import Extent, Number


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
