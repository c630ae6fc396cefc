"""Calls of native functions in a trace: nodes ``native_call`` of scalars, in the order of the program.

They are neither shared nor moved nor left out, as a C function may have side effects. A call that bails out after some
of them runs the plain function, which calls them again. The address is an operand, read from a constant array of the
process: stored code holds none.
"""

import weakref
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.callee_monitor import monitor_suspended
from jitkernels.compiler.capture.control_flow.loop_state import as_number
from jitkernels.compiler.capture.native.intrinsics import compiled_intrinsic
from jitkernels.compiler.capture.native.native_functions import (
    NativeFunction,
    is_intrinsic,
    is_library,
    native_function,
)
from jitkernels.compiler.capture.native.single_call import single_call
from jitkernels.compiler.capture.numpy.numpy_callouts import traced_copy
from jitkernels.compiler.capture.numpy.ufuncs import cast_to
from jitkernels.compiler.capture.override_registry import serves
from jitkernels.compiler.capture.symint import SymInt
from jitkernels.compiler.capture.trace_context import Tracer, current
from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import UnsupportedError, elementwise
from jitkernels.compiler.ir.graph import Node
from jitkernels.core.aligned_memory import aligned_empty

PYTHON: dict[str, type] = {"f": float, "i": int, "u": int, "b": bool}
"""Python's number types by the kinds of dtypes."""
EXACT = {"float64": float, "int64": int, "bool": bool}
"""Dtypes that numba treats as Python's numbers."""


@serves("native")
def stand_in(value: Any) -> Any:
    """The proxy of a native function, a library of them, or an intrinsic."""
    if is_library(value):
        return LibraryProxy(value)
    return IntrinsicProxy(value) if is_intrinsic(value) else NativeProxy(value)


class LibraryProxy:
    """Proxy of a library of ctypes or cffi."""

    def __init__(self, library: Any) -> None:
        self._library = library

    def __getattr__(self, name: str) -> Any:
        with monitor_suspended():  # the library may read the function's declaration now
            value = getattr(self._library, name)
        return NativeProxy(value) if callable(value) else value


class NativeProxy:
    """Proxy of a native function."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __call__(self, *arguments: Any) -> Any:
        tracer = current()
        with monitor_suspended():  # methods of the value say its signature
            function = native_function(self._value)
        if tracer is None or function is None:
            return self._value(*arguments)
        return traced_call(tracer, function, arguments)


class IntrinsicProxy:
    """Proxy of a numba intrinsic: numba compiles a native function of it for the types of the arguments."""

    def __init__(self, intrinsic: Any) -> None:
        self._intrinsic = intrinsic

    def __call__(self, *arguments: Any) -> Any:
        tracer = current()
        assert tracer is not None, "called in a trace"
        dtypes = tuple(_dtype_of(value) for value in arguments)
        with monitor_suspended():
            function = compiled_intrinsic(self._intrinsic, dtypes)
        return traced_call(tracer, function, arguments)


def traced_call(tracer: Tracer, function: NativeFunction, arguments: tuple[Any, ...]) -> Any:
    """A call as a node. Raises UnsupportedError for other arguments than the numbers of its signature."""
    count = len(function.signature.parameters)
    if len(arguments) != count:
        raise UnsupportedError(f"the native function {function.name!r} takes {count} arguments, got {len(arguments)}")
    pairs = zip(arguments, function.signature.parameters, strict=True)
    nodes = [_argument(tracer, function, value, dtype) for value, dtype in pairs]

    def call() -> Any:
        return _call(tracer, function, nodes)

    if tracer.depth:
        return call()
    kind = _kind(function)
    zero = None if kind is None else kind(0) if isinstance(kind, type) else np.dtype(kind).type(0)
    return traced_copy(single_call)(call, zero)


def _kind(function: NativeFunction) -> Any:
    """What the result is: a number type of Python, a dtype, or None for nothing."""
    dtype = function.signature.result
    if not dtype:
        return None
    return PYTHON[np.dtype(dtype).kind] if function.is_python else EXACT.get(dtype, dtype)


def _dtype_of(value: Any) -> str:
    """The dtype of a number among the arguments."""
    if type(value) is SymInt:
        return "int64"
    if type(value) is Traced and not value.ndim:
        return value.node.dtype
    if isinstance(value, bool | int | float | np.number | np.bool_):
        return str(np.asarray(value).dtype)
    raise UnsupportedError(f"a native function of a {type(value).__name__}: expected numbers, elements of arrays")


def _argument(tracer: Tracer, function: NativeFunction, value: Any, dtype: str) -> Node:
    """An argument as a node of the parameter's dtype."""
    own, kind = np.dtype(_dtype_of(value)), np.dtype(dtype).kind
    if own.kind == "c" or (own.kind == "f" and kind in "iu"):
        raise UnsupportedError(f"the native function {function.name!r} with a {own} for a parameter of type {dtype}")
    if kind not in "iu" or own == dtype:
        return cast_to(tracer, value, dtype)
    node = cast_to(tracer, value, own.name)
    if function.checks_ints:
        limits, own_limits = np.iinfo(dtype), np.iinfo("int64" if own.kind == "b" else own)
        for comparison, limit in (("less", limits.min), ("greater", limits.max)):
            if own.kind != "b" and own_limits.min <= limit <= own_limits.max:
                tracer.checks.append(elementwise(comparison, node, builder.constant(int(limit), own.name)))
    return builder.cast(node, dtype)


def _call(tracer: Tracer, function: NativeFunction, arguments: list[Node]) -> Any:
    """The node of a call in a loop or branch, and its result."""
    signature, order = function.signature, tracer.call_order
    order.is_read = True
    address = Node("gather", (_address(tracer, function), builder.constant(0, "int64")), "int64", (), {"axis": 0})
    operands = (address, order.node, *arguments)
    node = tracer.placed(Node("native_call", operands, signature.result or "bool", (), {"signature": signature}))
    following = Node("item", (node,), "bool", (), {"index": 1})
    order.change(following)
    tracer.checks.append(following)  # never true: keeps the call alive
    kind = _kind(function)
    if kind is None:
        return None
    result = Node("item", (node,), node.dtype, (), {"index": 0})
    if kind is int:
        if node.dtype == "uint64":  # an int beyond int64 is Python's alone
            tracer.checks.append(elementwise("greater", result, builder.constant(2**63 - 1, "uint64")))
        result = builder.cast(result, "int64")
    elif kind is float:
        result = builder.cast(result, "float64")
    return as_number(tracer, result, kind)


def _address(tracer: Tracer, function: NativeFunction) -> Node:
    """A constant array with the address, which keeps the function alive as long as the compiled code."""
    if function.address not in tracer.addresses:
        array = aligned_empty((1,), np.dtype(np.int64))
        array[0] = function.address
        weakref.finalize(array, _release, function.owner).atexit = False
        tracer.addresses[function.address] = tracer.packed_constant(array)
    return tracer.addresses[function.address]


def _release(owner: Any) -> None:
    """Let go of a function: nothing calls it any more."""
    del owner
