"""Functions that make arrays of nothing, or of a shape: counted dimensions and constants in a trace."""

import operator
from typing import Any

import numpy as np

from jitkernels.frontends.joining import stacked
from jitkernels.frontends.reductions import dtype_name, is_given
from jitkernels.frontends.shaping import copied, expand_dims, extents_of, known_order, of_array, transpose
from jitkernels.frontends.standin import creates
from jitkernels.frontends.tables import SERVICES, implements, serves
from jitkernels.frontends.traced import Traced, fresh, traced
from jitkernels.frontends.tracer import Tracer
from jitkernels.frontends.universal import apply, cast_to, kind_of, operand, settled
from jitkernels.frontends.whole import Whole, as_extent
from jitkernels.graph import construct, extents
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.extents import Number
from jitkernels.graph.ir import Node
from jitkernels.graph.scalars import is_known


def filled(tracer: Tracer, shape: Any, value: Any, dtype: Any, order: Any = "C") -> Traced:
    """An array of one number."""
    if order == "F":
        backwards = shape[::-1] if isinstance(shape, tuple | list) else shape
        return transpose(filled(tracer, backwards, value, dtype))  # type: ignore[no-any-return]
    wanted = extents_of(shape)
    if any(one < 0 for one in wanted):
        raise ValueError("negative dimensions are not allowed")
    given = operand(tracer, value)
    name = dtype_name(dtype) if is_given(dtype) else _own_type(given)
    node = construct.broadcast_to(cast_to(tracer, given, name), wanted)
    return fresh(tracer, node)


def _own_type(value: Any) -> str:
    return settled(kind_of(value))


def _maker(value: Any) -> Any:
    def make(
        tracer: Tracer,
        shape: Any,
        dtype: Any = float,
        order: str = "C",
        *,
        device: Any = None,
        like: Any = None,
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


def _like(value: Any) -> Any:
    def make(
        a: Any,
        dtype: Any = None,
        order: str = "K",
        subok: bool = True,
        shape: Any = None,
        *,
        device: Any = None,
    ) -> Any:
        given = of_array(a)
        order = known_order(given, order)
        made = filled(
            given.tracer,
            given.shape if shape is None else shape,
            value,
            dtype if is_given(dtype) else given.dtype,
        )
        if order != "C" and made.ndim > 1 and (order == "F" or made.ndim == given.ndim):
            made.view.storage.lie_like(range(1, made.ndim + 1) if order == "F" else given.view.strides())
        return made

    return make


implements(np.zeros_like, np.empty_like)(_like(0))
implements(np.ones_like)(_like(1))


@implements(np.full_like)
def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *,
    device: Any = None,
) -> Any:  # fmt: skip
    return _like(fill_value)(a, dtype, order, subok, shape)


def counted(count: Number, dtype: str = "int64") -> Node:
    """0, 1, 2 and so on."""
    return Node("iota", (), dtype, (count,), {"axis": 0})


@creates(np.arange)
def arange(
    tracer: Tracer, start: Any, stop: Any = None, step: Any = None, dtype: Any = None, *, device: Any = None,
    like: Any = None,
) -> Any:  # fmt: skip
    if stop is None:
        start, stop = 0, start
    if stop is None:
        raise UnknownError("arange of nothing")  # which NumPy refuses
    parts = (start, stop, 1 if step is None else step)
    if not all(type(one) in (int, Whole) for one in parts):
        return _concrete(tracer, np.arange, (*parts,), {"dtype": dtype})
    first, last, by = (as_extent(one) for one in parts)
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
        raise UnknownError("arange of bool")
    whole = counted(count)
    if by != 1:
        whole = construct.elementwise("multiply", whole, construct.constant(by, "int64"))
    if not extents.same(first, 0):
        whole = construct.elementwise("add", whole, construct.extent(first))
    return fresh(tracer, construct.cast(whole, name))


@creates(np.linspace)
def linspace(
    tracer: Tracer, start: Any, stop: Any, num: Any = 50, endpoint: Any = True, retstep: Any = False, dtype: Any = None,
    axis: Any = 0, *, device: Any = None,
) -> Any:  # fmt: skip
    parts = (start, stop)
    if all(type(one) in (int, float) for one in parts) and type(num) is int:
        return _concrete(tracer, np.linspace, (start, stop, num, endpoint, retstep, dtype, axis), {})
    if retstep or axis != 0 or not all(type(one) in (int, float, Whole) or _is_number(one) for one in parts):
        raise UnknownError("linspace with these arguments")
    count = as_extent(num)
    intervals = count - 1 if endpoint else count
    if intervals <= 0:
        raise UnknownError("linspace of less than two numbers")
    name = dtype_name(dtype) if is_given(dtype) else "float64"
    if np.dtype(name).kind != "f":
        raise UnknownError("linspace of ints")
    first, last = (fresh(tracer, cast_to(tracer, operand(tracer, one), "float64")) for one in parts)
    steps = fresh(tracer, counted(count, "float64"))
    step = apply(tracer, "divide", last - first, fresh(tracer, cast_to(tracer, intervals, "float64")))
    values = steps * fresh(tracer, step) + first
    if endpoint:
        values[-1] = last
    return fresh(tracer, construct.cast(values.node, name))


def _is_number(value: Any) -> bool:
    return type(value) is Traced and value.ndim == 0


@creates(np.eye)
def eye(
    tracer: Tracer, N: Any, M: Any = None, k: Any = 0, dtype: Any = float, order: str = "C", *,  # noqa: N803
    device: Any = None, like: Any = None,
) -> Any:  # fmt: skip
    rows, columns = as_extent(N), as_extent(N if M is None else M)
    return fresh(
        tracer, construct.cast(_on_diagonal(rows, columns, as_extent(k), "equal"), dtype_name(dtype))
    )


@creates(np.identity)
def identity(tracer: Tracer, n: Any, dtype: Any = None, *, like: Any = None) -> Any:
    return eye(tracer, n, dtype=float if dtype is None else dtype)


def _on_diagonal(rows: Number, columns: Number, shift: Number, compared: str) -> Node:
    """Where ``column - row`` compares with a number."""
    row = Node("iota", (), "int64", (rows, columns), {"axis": 0})
    column = Node("iota", (), "int64", (rows, columns), {"axis": 1})
    far = construct.elementwise("add", row, construct.extent(shift)) if not extents.same(shift, 0) else row
    return construct.elementwise(compared, column, far)


@creates(np.tri)
def tri(tracer: Tracer, N: Any, M: Any = None, k: Any = 0, dtype: Any = float, *, like: Any = None) -> Any:  # noqa: N803
    rows, columns = as_extent(N), as_extent(N if M is None else M)
    return fresh(
        tracer, construct.cast(_on_diagonal(rows, columns, as_extent(k), "less_equal"), dtype_name(dtype))
    )


def _triangle(compared: str) -> Any:
    def cut(m: Any, k: Any = 0) -> Any:
        given = of_array(m)
        if given.ndim < 2:
            raise UnknownError("a triangle of a vector")
        rows, columns = given.extents[-2:]
        mask = _on_diagonal(rows, columns, as_extent(k), compared)
        node = Node(
            "where",
            (mask, given.node, construct.constant(0, given.node.dtype)),
            given.node.dtype,
            given.extents,
        )
        return fresh(given.tracer, node)

    return cut


implements(np.tril)(_triangle("less_equal"))
implements(np.triu)(_triangle("greater_equal"))


def _array_like(default_copy: bool) -> Any:
    def make(
        tracer: Tracer, object: Any, dtype: Any = None, order: Any = "K", *, copy: Any = default_copy,  # noqa: A002
        subok: bool = False, ndmin: int = 0, ndmax: int = 0, device: Any = None, like: Any = None,
    ) -> Any:  # fmt: skip
        if type(object) is Traced and not object.is_weak:
            return _of_array(object, dtype, copy, ndmin, order)
        if not _has_traced(object):
            return _concrete(tracer, np.array, (object,), {"dtype": dtype, "ndmin": ndmin, "order": order})
        made = stacked(tracer, object) if isinstance(object, list | tuple) else _of_number(tracer, object)
        return _of_array(made, dtype, False, ndmin, order)

    return make


def _of_number(tracer: Tracer, value: Any) -> Traced:
    given = operand(tracer, value)
    return fresh(tracer, cast_to(tracer, given, _own_type(given)))


def _of_array(given: Traced, dtype: Any, copy: Any, ndmin: int, order: Any = "K") -> Any:
    name = dtype_name(dtype) if is_given(dtype) else given.dtype.name
    made = given
    order = "K" if order == "A" and name != given.dtype.name else order  # as NumPy has it
    if given.is_scalar or copy or name != given.dtype.name or not _lies_in(given, order):
        made = copied(given, order, name)
    if made.ndim < ndmin:
        return expand_dims(made, tuple(range(ndmin - made.ndim)))
    return made


def _lies_in(given: Traced, order: Any) -> bool:
    """Whether an array lies in an order. Raises UnknownError where only NumPy knows, which then makes no copy."""
    if order not in ("C", "F") or given.ndim < 1:
        return True
    lies = (transpose(given) if order == "F" else given).view.is_c()
    if lies is None:
        raise UnknownError(f"an array that may lie in order {order} already")
    return lies


def _has_traced(value: Any) -> bool:
    if type(value) in (Traced, Whole):
        return True
    return isinstance(value, list | tuple) and any(map(_has_traced, value))


creates(np.array)(_array_like(True))


def _converter(order_asked: Any = None, ndmin: int = 0) -> Any:
    make = _array_like(False)

    def convert(tracer: Tracer, a: Any, dtype: Any = None, order: Any = order_asked, **keywords: Any) -> Any:
        if keywords.get("copy") is False:
            raise UnknownError("asarray with copy=False")
        return make(tracer, a, dtype, order, copy=bool(keywords.get("copy")), ndmin=ndmin)

    return convert


creates(np.asarray, np.asanyarray)(_converter())
creates(np.ascontiguousarray)(_converter("C", 1))
creates(np.asfortranarray)(_converter("F", 1))


@creates(np.require)
def require(tracer: Tracer, *arguments: Any, **keywords: Any) -> Any:
    raise UnknownError("numpy.require")


def _concrete(tracer: Tracer, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """An array of plain numbers, which becomes a constant; ints that stand for extents are then part of the code."""
    plain = [operator.index(one) if type(one) is Whole else one for one in arguments]
    if any(type(one) is Traced for one in plain):
        plain = [float(one) if type(one) is Traced and one.is_weak else one for one in plain]
    found = function(*plain, **{name: one for name, one in keywords.items() if one is not None})
    return constants(tracer, found)


@serves("constants")
def constants(tracer: Tracer, found: Any) -> Any:
    """Arrays that NumPy made of plain numbers, as constants of the code."""
    if type(found) in (tuple, list):
        return type(found)(constants(tracer, one) for one in found)
    if type(found) is not np.ndarray or not is_known(found.dtype):
        return found
    return fresh(tracer, tracer.constant_array(found))


@creates(np.meshgrid)
def meshgrid(tracer: Tracer, *xi: Any, copy: Any = True, sparse: Any = False, indexing: str = "xy") -> Any:
    listed = [SERVICES["raveled"](traced(tracer, one)) for one in xi]
    total = len(listed)
    made: list[Any] = []
    for i, one in enumerate(listed):
        new = [j for j in range(total) if j != i]
        made.append(fresh(tracer, construct.expand_dims(one.node, new)))
    if indexing == "xy" and total > 1:
        made = [np.swapaxes(one, 0, 1) for one in made]
    shape = construct.broadcast_shapes([one.extents for one in made])
    if sparse:
        return tuple(fresh(tracer, one.node) for one in made)
    return tuple(fresh(tracer, construct.broadcast_to(one.node, shape)) for one in made)


@creates(np.indices)
def indices(tracer: Tracer, dimensions: Any, dtype: Any = int, sparse: Any = False) -> Any:
    if sparse:
        raise UnknownError("sparse indices")
    wanted = extents_of(tuple(dimensions))
    name = dtype_name(dtype)
    listed = [fresh(tracer, Node("iota", (), name, wanted, {"axis": i})) for i in range(len(wanted))]
    return np.stack(listed)
