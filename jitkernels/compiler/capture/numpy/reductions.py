"""Reductions and running sums of traced arrays, in the types that NumPy adds and multiplies in."""

import operator
from typing import Any

import numpy as np

from jitkernels.frontends.tables import COMPOSED, METHODS, implements, serves
from jitkernels.frontends.traced import Traced, fresh, result, traced
from jitkernels.frontends.tracer import Tracer, current
from jitkernels.frontends.universal import apply, cast_mask, cast_to, loop_of, operand, stored
from jitkernels.graph import construct, extents
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.ir import Node
from jitkernels.graph.scalars import is_known

KINDS = {
    np.add: "sum", np.multiply: "prod", np.minimum: "min", np.maximum: "max", np.logical_or: "any",
    np.logical_and: "all",
}  # fmt: skip
UFUNCS = {kind: ufunc for ufunc, kind in KINDS.items()}
NOTHING = type(np._NoValue)  # what NumPy's dispatch passes for arguments that were not given


def tracer_of() -> Tracer:
    """The trace of this thread; there is one wherever traced arrays are."""
    tracer = current()
    if tracer is None:
        raise UnknownError("no trace is open")
    return tracer


def is_given(value: Any) -> bool:
    """Whether an argument of one of NumPy's functions was given."""
    return value is not None and not isinstance(value, NOTHING)


def dtype_name(dtype: Any) -> str:
    """A dtype argument's name."""
    if type(dtype) is Traced:
        raise UnknownError("a number or an array as a dtype")  # though they have one
    kind = np.dtype(dtype)
    if not is_known(kind):
        raise UnknownError(f"dtype {kind}")
    return str(kind.name)


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """An axis argument as axes from 0 on."""
    if axis is None:
        return tuple(range(ndim))
    if isinstance(axis, tuple | list):
        return construct.normalized([operator.index(one) for one in axis], ndim)
    return construct.normalized([operator.index(axis)], ndim)


def accumulator(kind: str, dtype: str) -> str:
    """The type that NumPy reduces a type in."""
    if kind in ("any", "all"):
        return "bool"
    if kind in ("sum", "prod"):
        whole = np.dtype(dtype)
        if whole.kind == "b" or (whole.kind == "i" and whole.itemsize < 8):
            return "int64"
        if whole.kind == "u" and whole.itemsize < 8:
            return "uint64"
    return dtype


def _identity(kind: str, dtype: str) -> Any:
    return {"sum": 0, "prod": 1, "any": False, "all": True}.get(kind)


@serves("ufunc.reduce")
def reduce_ufunc(
    tracer: Tracer,
    ufunc: Any,
    array: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = np._NoValue,
    where: Any = True,
) -> Any:
    """``ufunc.reduce``."""
    given = traced(tracer, array)
    kind = KINDS.get(ufunc)
    target = out[0] if isinstance(out, tuple) else out
    if kind is None:
        composed = COMPOSED.get(ufunc.reduce) if tracer.differentiates else None
        if composed is not None and not is_given(initial) and where is True and dtype is target is None:
            return composed(given, axis, keepdims=bool(keepdims))
        return _other(tracer, ufunc, given, axis, dtype, target, keepdims, initial, where)
    if given.ndim == 0 and isinstance(axis, int) and axis in (0, -1):
        axis = ()
    return reduced(tracer, kind, given, axis, dtype, target, bool(keepdims), initial, where)


def reduced(
    tracer: Tracer, kind: str, given: Traced, axis: Any = None, dtype: Any = None, out: Any = None,
    keepdims: bool = False, initial: Any = None, where: Any = True,
) -> Any:  # fmt: skip
    """A reduction by NumPy's rules."""
    own = given.dtype.name
    if is_given(dtype):
        name = dtype_name(dtype)
    elif out is not None and kind in ("sum", "prod", "min", "max"):
        name = out.dtype.name
    else:
        name = accumulator(kind, own)
    if kind in ("any", "all"):
        if name != "bool":
            raise UnknownError(f"{kind} with dtype {name}")
        node = given.node if own == "bool" else construct.elementwise("not_equal", given.node, 0)
    else:
        if not np.can_cast(own, name, "same_kind"):
            raise TypeError(f"Cannot cast ufunc '{UFUNCS[kind].__name__}' input from {own} to {name}")
        node = construct.cast(given.node, name)
    over = axes_of(axis, given.ndim)
    if kind in ("min", "max") and name == "bool":
        if any(extents.same(given.extents[i], 0) for i in over):
            raise UnknownError(f"{kind} of nothing")
        kind = "all" if kind == "min" else "any"
    elif name == "bool" and kind not in ("any", "all"):
        raise UnknownError(f"{kind} of bool")
    if where is not True and is_given(where):
        nothing = _identity(kind, name)
        if nothing is None:
            if not is_given(initial):
                raise ValueError(f"reduction operation '{UFUNCS[kind].__name__}' does not have an identity")
            nothing = initial
        mask = construct.broadcast_to(cast_mask(tracer, operand(tracer, where)), node.shape)
        node = Node("where", (mask, node, cast_to(tracer, operand(tracer, nothing), name)), name, node.shape)
    if kind in ("min", "max") and is_given(initial) and any(extents.same(node.shape[i], 0) for i in over):
        shape = [1 if i in over else one for i, one in enumerate(node.shape)]
        node = construct.broadcast_to(cast_to(tracer, operand(tracer, initial), name), shape)
    found = construct.reduce(kind, node, over, keepdims=keepdims)
    if is_given(initial):
        if kind == "sum" and np.dtype(name).kind == "f" and bool(initial == 0):
            raise UnknownError("a sum that begins with a zero, which has a sign")
        found = apply(
            tracer,
            UFUNCS[kind].__name__,
            fresh(tracer, found),
            fresh(tracer, cast_to(tracer, operand(tracer, initial), name)),
        )
    if out is not None:
        if type(out) is Traced and not (
            out.ndim == found.ndim
            and all(one == other for one, other in zip(out.extents, found.shape, strict=True))
        ):
            raise UnknownError("an output of another shape than a reduction's result")  # which NumPy refuses
        return stored(tracer, found, out, casting="unsafe" if kind in ("any", "all") else "same_kind")
    return _laid_out(tracer, found, given)


def _laid_out(tracer: Tracer, node: Node, given: Traced) -> Traced:
    return result(tracer, node, given)


def _other(
    tracer: Tracer,
    ufunc: Any,
    given: Traced,
    axis: Any,
    dtype: Any,
    out: Any,
    keepdims: Any,
    initial: Any,
    where: Any,
) -> Any:
    """Reductions by functions that graphs do not reduce by: NumPy does."""
    if is_given(dtype) or is_given(initial) or where is not True or ufunc.nin != 2 or ufunc.nout != 1:
        raise UnknownError(f"numpy.{ufunc.__name__}.reduce with these options")
    over = axes_of(axis, given.ndim)
    if any(extents.same(given.extents[i], 0) for i in over):
        raise UnknownError(f"numpy.{ufunc.__name__}.reduce of nothing")
    name = loop_of(ufunc, (given.node.dtype,) * 2, None)[-1]
    shape = [one for i, one in enumerate(given.extents) if i not in over]
    tracer.note(f"numpy.{ufunc.__name__}.reduce is computed by NumPy")
    node = Node("call", (given.node,), name, shape, {"function": Reduction(ufunc, over)})
    if keepdims:
        node = construct.expand_dims(node, over)
    return stored(tracer, node, out) if out is not None else _laid_out(tracer, node, given)


class Reduction:
    """A reduction by NumPy over some axes."""

    def __init__(self, ufunc: Any, axes: tuple[int, ...]) -> None:
        self.ufunc, self.axes = ufunc, axes
        self.__name__ = f"{ufunc.__name__}.reduce"

    def __call__(self, array: Any) -> Any:
        return self.ufunc.reduce(array, axis=self.axes)


@serves("ufunc.accumulate")
def accumulate_ufunc(
    tracer: Tracer, ufunc: Any, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None
) -> Any:
    """``ufunc.accumulate``."""
    kind = KINDS.get(ufunc)
    given = traced(tracer, array)
    if kind not in ("sum", "prod", "min", "max") or not given.ndim:
        raise UnknownError(f"numpy.{ufunc.__name__}.accumulate")
    return scanned(tracer, kind, given, axis, dtype, out[0] if isinstance(out, tuple) else out)


def scanned(tracer: Tracer, kind: str, given: Traced, axis: Any, dtype: Any = None, out: Any = None) -> Any:
    """A running reduction."""
    name = (
        dtype_name(dtype)
        if is_given(dtype)
        else out.dtype.name
        if out is not None
        else accumulator(kind, given.dtype.name)
    )
    if not np.can_cast(given.dtype, name, "same_kind") or name == "bool":
        raise UnknownError(f"a running {kind} of {given.dtype} in {name}")
    along = axes_of(axis, given.ndim)[0]
    options = {"kind": kind, "axis": along}
    node = Node("scan", (construct.cast(given.node, name),), name, given.extents, options)
    return stored(tracer, node, out) if out is not None else _laid_out(tracer, node, given)


@serves("ufunc.outer")
def outer_ufunc(tracer: Tracer, ufunc: Any, left: Any, right: Any, **keywords: Any) -> Any:
    """``ufunc.outer``."""
    one, other = traced(tracer, left), traced(tracer, right)
    spread = construct.expand_dims(one.node, range(one.ndim, one.ndim + other.ndim))
    return ufunc(fresh(tracer, spread), other, **keywords)


@serves("ufunc.reduceat")
def reduceat_ufunc(tracer: Tracer, ufunc: Any, *arguments: Any, **keywords: Any) -> Any:
    """``ufunc.reduceat``."""
    raise UnknownError(f"numpy.{ufunc.__name__}.reduceat")


def _reduction(kind: str) -> Any:
    def reduce_(
        a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False,
        initial: Any = np._NoValue, where: Any = np._NoValue,
    ) -> Any:  # fmt: skip
        tracer = tracer_of()
        keep = bool(keepdims) if is_given(keepdims) else False
        mask = where if is_given(where) else True
        return reduced(tracer, kind, traced(tracer, a), axis, dtype, out, keep, initial, mask)

    return reduce_


def _extreme(kind: str) -> Any:
    full = _reduction(kind)

    def reduce_(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = False,
        initial: Any = np._NoValue, where: Any = np._NoValue,
    ) -> Any:  # fmt: skip
        return full(a, axis, None, out, keepdims, initial, where)

    return reduce_


def _decision(kind: str) -> Any:
    full = _reduction(kind)

    def reduce_(
        a: Any,
        axis: Any = None,
        out: Any = None,
        keepdims: Any = False,
        *,
        where: Any = np._NoValue,
    ) -> Any:
        return full(a, axis, None, out, keepdims, np._NoValue, where)

    return reduce_


implements(np.sum, methods="sum")(_reduction("sum"))
implements(np.prod, methods="prod")(_reduction("prod"))
implements(np.max, np.amax, methods="max")(_extreme("max"))
implements(np.min, np.amin, methods="min")(_extreme("min"))
implements(np.any, methods="any")(_decision("any"))
implements(np.all, methods="all")(_decision("all"))


def _running(kind: str) -> Any:
    def scan(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        tracer = tracer_of()
        given = traced(tracer, a)
        if axis is None:
            given, axis = METHODS["ravel"](given), 0
        return scanned(tracer, kind, given, axis, dtype, out)

    return scan


implements(np.cumsum, methods="cumsum")(_running("sum"))
implements(np.cumprod, methods="cumprod")(_running("prod"))


def _position(kind: str) -> Any:
    def find(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        tracer = tracer_of()
        given = traced(tracer, a)
        keep = bool(keepdims) if is_given(keepdims) else False
        if given.ndim == 0:
            raise UnknownError(f"{kind} of a number")
        flat = construct.reshape(given.node, (-1,)) if axis is None and given.ndim > 1 else given.node
        along = (0,) if axis is None else axes_of(axis, given.ndim)[:1]
        node = construct.reduce(kind, flat, along)
        if keep:
            node = construct.expand_dims(node, range(given.ndim) if axis is None else along)
        return stored(tracer, node, out) if out is not None else _laid_out(tracer, node, given)

    return find


implements(np.argmax, methods="argmax")(_position("argmax"))
implements(np.argmin, methods="argmin")(_position("argmin"))
