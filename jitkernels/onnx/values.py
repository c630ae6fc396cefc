"""Values of model inputs, constants and sizes, as operators see them.

A value is a traced array, or, where nothing is traced, NumPy's array; a constant, whose type `Frozen` tells the tracer
so; sizes, which are constants of dtype object that hold symbolic ints; a list for a sequence; None for what is absent.
Operators are plain NumPy over all of these, and run outside of a trace too.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced, traced
from jitkernels.compiler.capture.numpy_namespace_proxy import FunctionProxy
from jitkernels.compiler.capture.override_registry import SERVICES
from jitkernels.compiler.capture.static_arrays import Frozen
from jitkernels.compiler.capture.symint import SymInt
from jitkernels.compiler.capture.trace_context import current
from jitkernels.errors import ModelError

MAX_MODEL_ELEMENTS = 2**31
"""Most elements of an array whose shape a model computes: a few bytes of a model must not exhaust the memory."""


class NotServedError(Exception):
    """An operator cannot serve a node with these values, attributes or types; NumPy or `onnx.reference` may."""


class TooLargeError(ModelError):
    """A model computes an array that no model needs."""


def is_traced(value: Any) -> bool:
    return type(value) is Traced


def is_sizes(value: Any) -> bool:
    """Whether a value is an array of symbolic ints."""
    return type(value) is Frozen and value.dtype == object


def is_constant(value: Any) -> bool:
    """Whether the elements of an array are known while a function is traced."""
    return not is_traced(value) and not is_sizes(value)


def constant(value: Any, dtype: Any = None) -> Any:
    """A concrete array as a constant of the trace."""
    return np.asarray(value, dtype).view(Frozen)


def in_trace(value: Any, *others: Any) -> Any:
    """A constant as an array of the trace where any other value is one: for functions that look at one operand only."""
    tracer = current()
    return (
        traced(tracer, value) if tracer is not None and not is_traced(value) and any(map(is_traced, others)) else value
    )


def like(value: Any, other: Any) -> Any:
    """A number of the dtype of another value."""
    return other.dtype.type(value)


def numbers(count: Any) -> Any:
    """The ints below a number, which may be symbolic."""
    limit((count,))
    return FunctionProxy(np.arange)(count) if type(count) is SymInt else constant(np.arange(int(count)))


def sizes(values: Sequence[Any]) -> Any:
    """Ints, symbolic or not, as a one-dimensional array."""
    if all(type(one) is int or isinstance(one, np.integer) for one in values):
        return constant([int(one) for one in values], np.int64)
    result = np.empty(len(values), object)
    for i, one in enumerate(values):
        result[i] = one
    return result.view(Frozen)


def ints(value: Any) -> tuple[Any, ...]:
    """The elements of a constant, or of sizes, as ints of Python, symbolic ones among them."""
    if is_traced(value):
        raise NotServedError("a shape, an axis or the like depends on the elements of an array")
    return tuple(one if type(one) is SymInt else int(one) for one in np.asarray(value).ravel().tolist())


def concrete_ints(value: Any) -> tuple[int, ...]:
    """The elements of a constant or of sizes; code is specialized to symbolic ones."""
    return tuple(int(one) for one in ints(value))


def number(value: Any) -> Any:
    """The only element of a constant, as a number of Python."""
    return concrete_array(value).reshape(-1)[0].item()


def concrete_array(value: Any) -> Any:
    """A constant as an array; sizes become the ints of this call, to which code is specialized."""
    if is_traced(value):
        raise NotServedError("a parameter depends on the elements of an array")
    return constant([int(one) for one in value.ravel()], np.int64).reshape(value.shape) if is_sizes(value) else value


def materialized(value: Any) -> Any:
    """Sizes as an array of int64; other values unchanged."""
    if not is_sizes(value):
        return value
    elements = value.ravel().tolist()
    if not any(type(one) is SymInt for one in elements):
        return constant([int(one) for one in elements], np.int64).reshape(value.shape)
    return np.reshape(SERVICES["stacked"](current(), elements), value.shape)


def settled(value: Any) -> Any:
    """The result of an operator as a value: NumPy's arrays and numbers become constants of the trace."""
    if value is None or is_traced(value) or type(value) is Frozen:
        return value
    if type(value) is SymInt:
        return sizes([value]).reshape(())
    if isinstance(value, list):
        return [settled(one) for one in value]
    return constant(value) if current() is not None else np.asarray(value)


def created(function: Any, shape: Sequence[Any], *rest: Any) -> Any:
    """``function(shape, *rest)`` of `numpy.zeros` and the like, for sizes too. Raises TooLargeError for huge arrays."""
    limit(shape)
    return settled(FunctionProxy(function)(tuple(shape), *rest) if has_symbols(shape) else function(shape, *rest))


def broadcast(value: Any, shape: Sequence[Any]) -> Any:
    """A value in a shape that it broadcasts to; a constant stays one."""
    result = np.broadcast_to(value, tuple(shape))
    return result if is_traced(result) else result.view(Frozen)


def has_symbols(shape: Sequence[Any]) -> bool:
    return any(type(one) is SymInt for one in shape)


def limit(shape: Sequence[Any]) -> None:
    """Raise TooLargeError for the shape of an array that no model needs."""
    elements = 1
    for extent in shape:
        size = extent.value if type(extent) is SymInt else int(extent)
        if size < 0:
            raise TooLargeError(f"an array of shape {list(map(_text, shape))}")
        elements *= size
    if elements > MAX_MODEL_ELEMENTS:
        raise TooLargeError(f"an array of {elements} elements: expected at most {MAX_MODEL_ELEMENTS}")


def _text(extent: Any) -> int:
    return int(extent.value if type(extent) is SymInt else extent)


def axis_of(axis: Any, dimensions: int) -> int:
    """An axis counted from the front. Raises ModelError for one that is not there."""
    axis = int(axis)
    if not -dimensions <= axis < max(dimensions, 1):
        raise ModelError(f"axis {axis} of an array of {dimensions} dimensions")
    return axis % dimensions if dimensions else 0


def is_float(value: Any) -> bool:
    """Whether the elements are floating-point numbers, those of other libraries included."""
    return np.dtype(value.dtype).kind == "f" or "float" in np.dtype(value.dtype).name
