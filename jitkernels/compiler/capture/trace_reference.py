"""The reference of a kernel as a graph: NumPy code that writes to its last arrays, traced once for all sizes."""

from collections.abc import Callable, Collection, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from jitkernels import layouts
from jitkernels.frontends import filled, outputs  # noqa: F401  # the tables of what traced arrays do
from jitkernels.frontends.storage import Storage, View, c_strides
from jitkernels.frontends.traced import Traced
from jitkernels.frontends.tracer import Tracer, pop, push
from jitkernels.frontends.whole import Whole
from jitkernels.graph import construct, extents
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.extents import Number, Scope
from jitkernels.graph.ir import Graph, Node
from jitkernels.signature import Argument, Extent

SIZES = (11, 7, 13, 5, 17, 19, 23, 29)
"""What sizes are while a reference is traced. Nothing may hang on them."""


def graph_of(
    reference: Callable[..., None],
    arguments: Sequence[Argument],
    dtypes: Sequence[str],
    fields: Mapping[str, Any],
    floats: Sequence[str],
    ones: Collection[str] = (),
) -> tuple[Graph, Scope]:
    """What a reference computes, for arrays of these dtypes, which may differ from those that it is written for.

    Its inputs are the arrays, then the `floats`; its symbols are those `fields` that are ints, of which `ones` are
    taken for 1. Raises UnknownError where the code would be right for some sizes alone.
    """
    tracer = Tracer(())
    symbols: dict[str, Number] = {}
    for name, value in fields.items():
        if type(value) is int:
            symbol = tracer.scope.symbol(name, SIZES[len(symbols) % len(SIZES)])
            symbols[name] = 1 if name in ones else symbol
    push(tracer)
    try:
        given = [
            _array(tracer, argument, dtype, fields, symbols)
            for argument, dtype in zip(arguments, dtypes, strict=True)
        ]
        numbers = {name: _number(tracer, float(fields[name])) for name in floats}
        whole = {name: Whole(tracer, extent) for name, extent in symbols.items()}
        reference(SimpleNamespace(**{**fields, **numbers, **whole}), *given)
        graph, _ = outputs.planned(tracer, None, given)
    finally:
        pop()
    if tracer.guards or tracer.scope.guards:
        raise UnknownError("the reference does for some sizes what it does not do for others")
    if tracer.constants:
        raise UnknownError("the reference has an array of its own")
    return graph, tracer.scope


def _array(
    tracer: Tracer, argument: Argument, name: str, fields: Mapping[str, Any], symbols: Mapping[str, Number]
) -> Traced:
    """What stands for an array, for the row's reference: of a dtype, or of a form, see `jitkernels.layouts`."""
    dtype = layouts.dtype_of(name)
    if layouts.is_number(name):
        return Traced(tracer, View(Storage(_input(tracer, dtype, (), np.ones((), dtype))), ()))
    shape = [_extent(extent, symbols) for extent in argument.extents]
    if argument.turned is not None and fields[argument.turned]:
        shape[-2:] = reversed(shape[-2:])
    strides = tuple(step * layouts.apart_of(name) for step in c_strides(shape))
    node = _input(tracer, dtype, shape, np.ones([extents.value_of(one) for one in shape], dtype), strides)
    storage = Storage(node, node.options["index"], is_c=layouts.apart_of(name) == 1)
    storage.strides = strides
    own = argument.dtype_in(fields)
    if dtype != own:
        storage = Storage(construct.cast(node, own))
    return Traced(tracer, View(storage, shape))


def _number(tracer: Tracer, value: float) -> Traced:
    node = _input(tracer, "float64", (), value)
    return Traced(tracer, View(Storage(node), ()), is_scalar=True, is_weak=True)


def _input(
    tracer: Tracer, dtype: str, shape: Sequence[Number], leaf: Any, strides: Sequence[Number] = ()
) -> Node:
    options = {"index": len(tracer.inputs), "strides": tuple(strides) or c_strides(shape)}
    node = Node("input", (), dtype, tuple(shape), options)
    tracer.inputs.append(node)
    tracer.leaves.append(leaf)
    return node


def _extent(extent: Extent, symbols: Mapping[str, Number]) -> Number:
    found: Number = extent.factor
    for symbol in extent.symbols:
        found = found * symbols[symbol]
    return found
