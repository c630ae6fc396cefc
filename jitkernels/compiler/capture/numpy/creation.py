"""Array creation in a trace: constants, iota (``arange``), ``linspace``, masks of triangles, conversions."""

import operator
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced, fresh, traced
from jitkernels.compiler.capture.numpy.concatenate import stacked
from jitkernels.compiler.capture.numpy.reductions import dtype_name, is_given
from jitkernels.compiler.capture.numpy.shape_ops import (
    copied,
    expand_dims,
    extents_of,
    known_order,
    of_array,
    transpose,
)
from jitkernels.compiler.capture.numpy.ufuncs import apply, cast_to, kind_of, operand, settled
from jitkernels.compiler.capture.numpy_namespace_proxy import creates, has_traced
from jitkernels.compiler.capture.override_registry import SERVICES, overrides, serves
from jitkernels.compiler.capture.symint import SymInt, as_extent
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder, pytree, symbolic_dims
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.elementwise_ops import is_known
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import Number


@serves("full")
def filled(tracer: Tracer, shape: Any, value: Any, dtype: Any, order: Any = "C") -> Any:
    """An array filled with one number."""
    if is_given(dtype) and isinstance(dtype, np.dtype) and dtype.names is not None:
        return SERVICES["structured"](dtype, lambda kind: filled(tracer, shape, value, kind, order))
    if order == "F" and isinstance(shape, tuple | list):
        backwards = shape[::-1]
        return transpose(filled(tracer, backwards, value, dtype))
    computed = SERVICES["filled dynamic"](tracer, shape, lambda known: filled(tracer, known, value, dtype))
    if computed is not None:
        return computed
    wanted = extents_of(shape)
    if any(wanted_extent < 0 for wanted_extent in wanted):
        raise ValueError("negative dimensions are not allowed")
    array = operand(tracer, value)
    name = dtype_name(dtype) if is_given(dtype) else _own_type(array)
    node = builder.broadcast_to(cast_to(tracer, array, name), wanted)
    return fresh(tracer, node)


def _own_type(value: Any) -> str:
    return settled(kind_of(value))


def _maker(value: Any) -> Any:
    def make(
        tracer: Tracer, shape: Any, dtype: Any = float, order: str = "C", *, device: Any = None, like: Any = None
    ) -> Any:
        return filled(tracer, shape, value, float if dtype is None else dtype, order)

    return make


creates(np.zeros, np.empty)(_maker(0))
creates(np.ones)(_maker(1))


@creates(np.full)
def full(
    tracer: Tracer, shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", *, device: Any = None,
    like: Any = None,
) -> Any:  # fmt: skip
    return filled(tracer, shape, fill_value, dtype, order)


@serves("zeros")
def zeros(tracer: Tracer, shape: Any, dtype: Any) -> Any:
    """``numpy.zeros(shape, dtype)``."""
    return filled(tracer, shape, 0, dtype)


def _like(value: Any) -> Any:
    def make(
        a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
    ) -> Any:
        array = of_array(a)
        order = known_order(array, order)
        result = filled(
            array.tracer, array.shape if shape is None else shape, value, dtype if is_given(dtype) else array.dtype
        )
        if order != "C" and result.ndim > 1 and (order == "F" or result.ndim == array.ndim):
            result.view.storage.set_layout_like(range(1, result.ndim + 1) if order == "F" else array.view.strides())
        return result

    return make


overrides(np.zeros_like, np.empty_like)(_like(0))
overrides(np.ones_like)(_like(1))


@overrides(np.full_like)
def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *,
    device: Any = None,
) -> Any:  # fmt: skip
    return _like(fill_value)(a, dtype, order, subok, shape)


def iota(count: Number, dtype: str = "int64") -> Node:
    """``arange(count)``."""
    return Node("iota", (), dtype, (count,), {"axis": 0})


@creates(np.arange)
def arange(
    tracer: Tracer, start: Any, stop: Any = None, step: Any = None, dtype: Any = None, *, device: Any = None,
    like: Any = None,
) -> Any:  # fmt: skip
    if stop is None:
        start, stop = 0, start
    if stop is None:
        raise UnsupportedError("arange without a stop")  # NumPy raises
    if step is None and type(start) is int and start == 0 and not is_given(dtype):
        computed = SERVICES["filled dynamic"](tracer, stop, lambda known: fresh(tracer, iota(as_extent(known[0]))))
        if computed is not None:
            return computed
    parts = (start, stop, 1 if step is None else step)
    if not all(type(part) in (int, SymInt) for part in parts):
        return _concrete(tracer, np.arange, (*parts,), {"dtype": dtype})
    first, last, by = (as_extent(part) for part in parts)
    by = operator.index(by)
    if by == 0:
        raise ZeroDivisionError("division by zero")
    distance = last - first if by > 0 else first - last
    count: Number = 0
    if distance > 0:
        count = distance if abs(by) == 1 else (distance + (abs(by) - 1)) // abs(by)
        count = 1 if type(count) is not int and count == 1 else count
    name = dtype_name(dtype) if is_given(dtype) else "int64"
    if name == "bool":
        raise UnsupportedError("arange of bool")
    whole = iota(count)
    if by != 1:
        whole = builder.elementwise("multiply", whole, builder.constant(by, "int64"))
    if not symbolic_dims.same(first, 0):
        whole = builder.elementwise("add", whole, builder.extent(first))
    return fresh(tracer, builder.cast(whole, name))


@creates(np.linspace)
def linspace(
    tracer: Tracer, start: Any, stop: Any, num: Any = 50, endpoint: Any = True, retstep: Any = False, dtype: Any = None,
    axis: Any = 0, *, device: Any = None,
) -> Any:  # fmt: skip
    parts = (start, stop)
    if all(type(part) in (int, float) for part in parts) and type(num) is int:
        return _concrete(tracer, np.linspace, (start, stop, num, endpoint, retstep, dtype, axis), {})
    if retstep or axis != 0 or not all(type(part) in (int, float, SymInt) or _is_number(part) for part in parts):
        raise UnsupportedError("linspace with these arguments")
    count = as_extent(num)
    intervals = count - 1 if endpoint else count
    if intervals <= 0:
        raise UnsupportedError("linspace of less than two numbers")
    ends = [operand(tracer, part) for part in parts]
    computed = _float_type(ends)
    name = dtype_name(dtype) if is_given(dtype) else computed
    if np.dtype(name).kind != "f":
        raise UnsupportedError("linspace of ints")
    first, last = (fresh(tracer, cast_to(tracer, end, computed)) for end in ends)
    steps = fresh(tracer, builder.cast(iota(count, "float64"), computed))
    step = apply(tracer, "divide", last - first, fresh(tracer, cast_to(tracer, intervals, computed)))
    values = steps * fresh(tracer, step) + first
    if endpoint:
        values[-1] = last
    return fresh(tracer, builder.cast(values.node, name))


def _float_type(ends: list[Any]) -> str:
    """The dtype of ``linspace`` between numbers of these kinds: that which NumPy chooses."""
    kinds = [kind_of(end) for end in ends]
    first, last = (kind(0) if type(kind) is type else np.zeros((), kind)[()] for kind in kinds)
    return str(np.linspace(first, last, 2).dtype)


def _is_number(value: Any) -> bool:
    return type(value) is Traced and value.ndim == 0


@creates(np.eye)
def eye(
    tracer: Tracer, N: Any, M: Any = None, k: Any = 0, dtype: Any = float, order: str = "C", *,  # noqa: N803
    device: Any = None, like: Any = None,
) -> Any:  # fmt: skip
    rows, columns = as_extent(N), as_extent(N if M is None else M)
    return fresh(tracer, builder.cast(_on_diagonal(rows, columns, as_extent(k), "equal"), dtype_name(dtype)))


@creates(np.identity)
def identity(tracer: Tracer, n: Any, dtype: Any = None, *, like: Any = None) -> Any:
    return eye(tracer, n, dtype=float if dtype is None else dtype)


def _on_diagonal(rows: Number, columns: Number, shift: Number, compared: str) -> Node:
    """The mask ``column <compared> row + shift``."""
    row = Node("iota", (), "int64", (rows, columns), {"axis": 0})
    column = Node("iota", (), "int64", (rows, columns), {"axis": 1})
    far = builder.elementwise("add", row, builder.extent(shift)) if not symbolic_dims.same(shift, 0) else row
    return builder.elementwise(compared, column, far)


@creates(np.tri)
def tri(tracer: Tracer, N: Any, M: Any = None, k: Any = 0, dtype: Any = float, *, like: Any = None) -> Any:  # noqa: N803
    rows, columns = as_extent(N), as_extent(N if M is None else M)
    return fresh(tracer, builder.cast(_on_diagonal(rows, columns, as_extent(k), "less_equal"), dtype_name(dtype)))


def _triangle(compared: str) -> Any:
    def cut(m: Any, k: Any = 0) -> Any:
        array = of_array(m)
        if array.ndim < 2:
            raise UnsupportedError("a triangle of a vector")
        rows, columns = array.extents[-2:]
        mask = _on_diagonal(rows, columns, as_extent(k), compared)
        node = Node("where", (mask, array.node, builder.constant(0, array.node.dtype)), array.node.dtype, array.extents)
        return fresh(array.tracer, node)

    return cut


overrides(np.tril)(_triangle("less_equal"))
overrides(np.triu)(_triangle("greater_equal"))


def _array_like(default_copy: bool) -> Any:
    def make(
        tracer: Tracer, object: Any, dtype: Any = None, order: Any = "K", *, copy: Any = default_copy,  # noqa: A002
        subok: bool = False, ndmin: int = 0, ndmax: int = 0, device: Any = None, like: Any = None,
    ) -> Any:  # fmt: skip
        if type(object) is Traced and not object.is_weak:
            return _of_array(object, dtype, copy, ndmin, order)
        if not has_traced(object):
            return _concrete(tracer, np.array, (object,), {"dtype": dtype, "ndmin": ndmin, "order": order})
        name = dtype_name(dtype) if is_given(dtype) else None
        result = stacked(tracer, object, name) if isinstance(object, list | tuple) else _of_number(tracer, object, name)
        return _of_array(result, dtype, False, ndmin, order)

    return make


def _of_number(tracer: Tracer, value: Any, dtype: str | None) -> Traced:
    array = operand(tracer, value)
    return fresh(tracer, cast_to(tracer, array, dtype or _own_type(array)))


def _of_array(array: Traced, dtype: Any, copy: Any, ndmin: int, order: Any = "K") -> Any:
    name = dtype_name(dtype) if is_given(dtype) else array.dtype.name
    result = array
    order = "K" if order == "A" and name != array.dtype.name else order  # NumPy's rule
    if array.is_scalar or copy or name != array.dtype.name or not _has_order(array, order):
        result = copied(array, order, name)
    if result.ndim < ndmin:
        return expand_dims(result, tuple(range(ndmin - result.ndim)))
    return result


def _has_order(array: Traced, order: Any) -> bool:
    """Whether an array has a memory order. Raises UnsupportedError where only NumPy knows, and would skip the copy."""
    if order not in ("C", "F") or array.ndim < 1:
        return True
    lies = (transpose(array) if order == "F" else array).view.is_c()
    if lies is None:
        raise UnsupportedError(f"an array that may lie in order {order} already")
    return lies


creates(np.array)(_array_like(True))


def _converter(default_order: Any = None, ndmin: int = 0) -> Any:
    make = _array_like(False)

    def convert(tracer: Tracer, a: Any, dtype: Any = None, order: Any = default_order, **keywords: Any) -> Any:
        if keywords.get("copy") is False:
            raise UnsupportedError("asarray with copy=False")
        return make(tracer, a, dtype, order, copy=bool(keywords.get("copy")), ndmin=ndmin)

    return convert


creates(np.asarray, np.asanyarray)(_converter())
creates(np.ascontiguousarray)(_converter("C", 1))
creates(np.asfortranarray)(_converter("F", 1))


@creates(np.require)
def require(tracer: Tracer, *arguments: Any, **keywords: Any) -> Any:
    raise UnsupportedError("numpy.require")


def _concrete(tracer: Tracer, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """A constant array computed by NumPy; symbolic ints among the arguments are specialized."""
    plain = [operator.index(argument) if type(argument) is SymInt else argument for argument in arguments]
    if any(type(value) is Traced for value in plain):
        plain = [float(value) if type(value) is Traced and value.is_weak else value for value in plain]
    result = function(*plain, **{name: value for name, value in keywords.items() if value is not None})
    return constants(tracer, result)


@serves("constants")
def constants(tracer: Tracer, result: Any) -> Any:
    """Arrays that NumPy computed from concrete values, as constants of the code."""

    def constant(value: Any) -> Any:
        is_array = type(value) is np.ndarray and is_known(value.dtype)
        return fresh(tracer, tracer.constant_array(value)) if is_array else value

    return pytree.tree_map(constant, result)


@creates(np.meshgrid)
def meshgrid(tracer: Tracer, *xi: Any, copy: Any = True, sparse: Any = False, indexing: str = "xy") -> Any:
    listed = [SERVICES["raveled"](traced(tracer, array)) for array in xi]
    total = len(listed)
    results: list[Any] = []
    for i, vector in enumerate(listed):
        new = [j for j in range(total) if j != i]
        results.append(fresh(tracer, builder.expand_dims(vector.node, new)))
    if indexing == "xy" and total > 1:
        results = [np.swapaxes(part, 0, 1) for part in results]
    shape = builder.broadcast_shapes([part.extents for part in results])
    if sparse:
        return tuple(fresh(tracer, part.node) for part in results)
    return tuple(fresh(tracer, builder.broadcast_to(part.node, shape)) for part in results)


@creates(np.indices)
def indices(tracer: Tracer, dimensions: Any, dtype: Any = int, sparse: Any = False) -> Any:
    if sparse:
        raise UnsupportedError("sparse indices")
    wanted = extents_of(tuple(dimensions))
    name = dtype_name(dtype)
    listed = [fresh(tracer, Node("iota", (), name, wanted, {"axis": i})) for i in range(len(wanted))]
    return np.stack(listed)


@serves("grid")
def grid(tracer: Tracer, key: Any, *, is_open: bool) -> Any:
    """``numpy.mgrid[key]`` and ``numpy.ogrid[key]`` of slices at ints, some of which are sizes of the call."""
    parts = key if isinstance(key, tuple) else (key,)
    if not all(type(part) is slice and type(part.step) in (int, type(None)) for part in parts):
        raise UnsupportedError("numpy.mgrid of other keys than slices with steps that are constants")
    vectors = [arange(tracer, 0 if part.start is None else part.start, part.stop, part.step) for part in parts]
    if not isinstance(key, tuple):
        return vectors[0]
    axes = meshgrid(tracer, *vectors, sparse=is_open, indexing="ij")
    return axes if is_open else np.stack(axes)
