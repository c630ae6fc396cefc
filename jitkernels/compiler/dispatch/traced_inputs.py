"""The inputs of a trace: a traced array or number for each leaf of the arguments, with symbolic extents and strides."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.functionalization import Storage, View
from jitkernels.compiler.capture.pytree.flatten import short_extents, strides_of
from jitkernels.compiler.capture.symint import Whole
from jitkernels.compiler.capture.trace_context import Binding, Tracer
from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.graph import Node


def traced_inputs(tracer: Tracer, *, exact: bool) -> list[Any]:
    """A traced value for each leaf; with `exact`, extents are constants and the code serves these sizes only."""
    symbols: dict[int, Any] = {one: one for one in short_extents(tracer.leaves)}
    given: list[Any] = []
    for i, leaf in enumerate(tracer.leaves):
        if type(leaf) is not np.ndarray:
            kind = np.asarray(leaf).dtype.name
            node = Node("input", (), kind, (), {"index": i, "strides": ()})
            tracer.inputs.append(node)
            if type(leaf) is int:
                given.append(Whole(tracer, leaf=i))
            else:
                weak = type(leaf) is float
                given.append(Traced(tracer, View(Storage(node), ()), is_scalar=True, is_weak=weak))
            continue
        shape = [_extent(tracer, symbols, i, d) for d in range(leaf.ndim)]
        shape = [*map(int, shape)] if exact else shape
        is_c = leaf.flags.c_contiguous
        strides = builder.contiguous(shape) if is_c else _strides(tracer, i, leaf, shape)
        node = Node("input", (), leaf.dtype.name, shape, {"index": i, "strides": strides})
        tracer.inputs.append(node)
        storage = Storage(node, i, is_c=True if is_c else None)
        storage.strides, storage.is_frozen = strides, not leaf.flags.writeable
        given.append(Traced(tracer, View(storage, shape)))
    if exact:  # the guards stay, but no extent refers to these symbols any more
        for binding in tracer.bindings:
            tracer.scope.values.pop(binding.symbol if binding.kind == "extent" else "", None)
    return given


def _extent(tracer: Tracer, symbols: dict[int, Any], leaf: int, dimension: int) -> Any:
    value = tracer.leaves[leaf].shape[dimension]
    if value < 2:
        return value
    if value not in symbols:
        name = f"n{len(symbols)}"
        symbols[value] = tracer.scope.symbol(name, value)
        tracer.bindings.append(Binding(name, leaf, "extent", dimension))
    return symbols[value]


def _strides(tracer: Tracer, leaf: int, array: Any, shape: Sequence[Any]) -> tuple[Any, ...]:
    if array.flags.f_contiguous:
        columns = builder.contiguous(shape[::-1])[::-1]
        return tuple(0 if extent == 1 else step for extent, step in zip(array.shape, columns, strict=True))
    result: list[Any] = []
    for dimension, pattern in enumerate(strides_of(array)):
        if pattern is not None:
            result.append(pattern)
            continue
        name = f"s{leaf}_{dimension}"
        result.append(tracer.scope.symbol(name, array.strides[dimension] // array.itemsize))
        tracer.bindings.append(Binding(name, leaf, "stride", dimension))
    return tuple(result)
