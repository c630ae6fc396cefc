"""Trace the reference of a kernel (NumPy code that writes to its output arrays) into a graph, once for all sizes."""

import inspect
import linecache
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from types import FrameType, SimpleNamespace
from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import Argument, DeclaredExtent
from jitkernels.compiler.capture import register_overrides  # noqa: F401  # fills the override registry
from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.functionalization import Storage, View
from jitkernels.compiler.capture.pytree import result_spec  # the tables of what traced arrays do
from jitkernels.compiler.capture.symint import SymInt
from jitkernels.compiler.capture.trace_context import Tracer, ValueGuard, pop, push
from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.ir.symbolic_dims import Guard, Number, Scope
from jitkernels.core import operand_forms

SIZES = (11, 7, 13, 5, 17, 19, 23, 29)
"""Sizes in the traced call of a reference. The graph must not depend on them."""


def graph_of(
    reference: Callable[..., None],
    arguments: Sequence[Argument],
    dtypes: Sequence[str],
    fields: Mapping[str, Any],
    floats: Sequence[str],
    ones: Collection[str] = (),
) -> tuple[Graph, Scope]:
    """The graph of a reference for arrays of these dtypes, which may differ from the declared ones.

    Its inputs are the arrays, then the `floats`; its symbols are the int `fields`, of which `ones` are fixed to 1.
    UnsupportedError names the guard and the line where the graph would be right for some sizes only.
    """
    tracer = Tracer()
    file = getattr(getattr(inspect.unwrap(reference), "__code__", None), "co_filename", "")
    tracer.guards, tracer.scope.guards = _Located(file), _Located(file)
    symbols: dict[str, Number] = {}
    for name, value in fields.items():
        if type(value) is int:
            symbol = tracer.scope.symbol(name, SIZES[len(symbols) % len(SIZES)])
            symbols[name] = 1 if name in ones else symbol
    push(tracer)
    try:
        arrays = [
            _array(tracer, argument, dtype, fields, symbols) for argument, dtype in zip(arguments, dtypes, strict=True)
        ]
        numbers = {name: _number(tracer, float(fields[name])) for name in floats}
        ints = {name: SymInt(tracer, extent) for name, extent in symbols.items()}
        reference(SimpleNamespace(**{**fields, **numbers, **ints}), *arrays)
        graph, _ = result_spec.plan_result(tracer, None, arrays)
    finally:
        pop()
    if tracer.guards or tracer.scope.guards:
        inputs = [*(argument.name for argument in arguments), *floats]
        raise UnsupportedError(_why_not_for_all([tracer.scope.guards, tracer.guards], inputs))
    if tracer.constants:
        raise UnsupportedError("the reference uses a constant array")
    return graph, tracer.scope


class _Located(dict[Any, Any]):
    """Guards by key, with the line of a file that each comes from."""

    def __init__(self, file: str) -> None:
        super().__init__()
        self.file = file
        self.lines: dict[Any, int] = {}

    def __setitem__(self, key: Any, value: Any) -> None:
        self._locate(key)
        super().__setitem__(key, value)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        self._locate(key)
        return super().setdefault(key, default)

    def _locate(self, key: Any) -> None:
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename != self.file:
            frame = frame.f_back
        self.lines.setdefault(key, 0 if frame is None else frame.f_lineno)

    def line_of(self, key: Any) -> str:
        """The source of a guard: file, line and text; empty where it is unknown."""
        line = self.lines.get(key, 0)
        text = linecache.getline(self.file, line).strip() if line else ""
        return f" ({self.file}:{line}: `{text}`)" if line else ""


MAX_NAMED_GUARDS = 4
"""Upper limit of guards that a message names."""
OPPOSITES = {"<": ">=", "<=": ">", "==": "!=", "is": "is not"}


def _why_not_for_all(tables: Sequence[dict[Any, Any]], inputs: Sequence[str]) -> str:
    """A message with the guards of a reference, each with its line."""
    texts = [_shown(guards, key, inputs) for guards in tables for key in guards]
    more = f", and {len(texts) - MAX_NAMED_GUARDS} more" if len(texts) > MAX_NAMED_GUARDS else ""
    listed = ", ".join(texts[:MAX_NAMED_GUARDS]) + more
    return f"the reference depends on sizes or numbers: its trace is right only where {listed}"


def _shown(guards: dict[Any, Any], key: Any, inputs: Sequence[str]) -> str:
    """A guard as a comparison, with its source."""
    where = guards.line_of(key) if isinstance(guards, _Located) else ""
    if isinstance(key, ValueGuard):
        operation = key.operation if key.truth else OPPOSITES[key.operation]
        return f"{inputs[key.leaf]} {operation} {key.bound!r}{where}"
    guard: Guard = guards[key]
    return f"{guard.extent} {guard.sign} 0{where}"


def _array(
    tracer: Tracer, argument: Argument, name: str, fields: Mapping[str, Any], symbols: Mapping[str, Number]
) -> Traced:
    """The proxy of an array argument: of a dtype, or of a form, see `core.operand_forms`."""
    dtype = operand_forms.dtype_of(name)
    if operand_forms.is_number(name):
        return Traced(tracer, View(Storage(_input(tracer, dtype, (), np.ones((), dtype))), ()))
    shape = [_extent(extent, symbols) for extent in argument.extents]
    if argument.transposed is not None and fields[argument.transposed]:
        shape[-2:] = reversed(shape[-2:])
    strides = tuple(step * operand_forms.stride_of_form(name) for step in builder.contiguous(shape))
    node = _input(
        tracer,
        dtype,
        shape,
        np.ones([symbolic_dims.value_of(extent_of_dimension) for extent_of_dimension in shape], dtype),
        strides,
    )
    storage = Storage(node, node.options["index"], is_c=operand_forms.stride_of_form(name) == 1)
    storage.strides = strides
    declared = argument.dtype_in(fields)
    if dtype != declared:
        storage = Storage(builder.cast(node, declared))
    return Traced(tracer, View(storage, shape))


def _number(tracer: Tracer, value: float) -> Traced:
    node = _input(tracer, "float64", (), value)
    return Traced(tracer, View(Storage(node), ()), is_scalar=True, is_weak=True)


def _input(tracer: Tracer, dtype: str, shape: Sequence[Number], leaf: Any, strides: Sequence[Number] = ()) -> Node:
    options = {"index": len(tracer.inputs), "strides": tuple(strides) or builder.contiguous(shape)}
    node = Node("input", (), dtype, tuple(shape), options)
    tracer.inputs.append(node)
    tracer.leaves.append(leaf)
    return node


def _extent(extent: DeclaredExtent, symbols: Mapping[str, Number]) -> Number:
    product: Number = extent.factor
    for symbol in extent.symbols:
        product = product * symbols[symbol]
    return product
