"""Reductions and scans (cumulative reductions) of traced arrays, with NumPy's accumulator dtypes."""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced, fresh, result, traced
from jitkernels.compiler.capture.numpy.ufuncs import apply, cast_mask, cast_to, loop_of, operand, stored
from jitkernels.compiler.capture.override_registry import COMPOSED, METHODS, implements, serves
from jitkernels.compiler.capture.trace_context import Tracer, current
from jitkernels.compiler.ir import builder, dim_bounds, symbolic_dims
from jitkernels.compiler.ir.builder import UnknownError
from jitkernels.compiler.ir.elementwise_ops import is_known
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import Number

KINDS = {
    np.add: "sum", np.multiply: "prod", np.minimum: "min", np.maximum: "max", np.logical_or: "any",
    np.logical_and: "all",
}  # fmt: skip
UFUNCS = {kind: ufunc for ufunc, kind in KINDS.items()}
NOTHING = type(np._NoValue)  # the default of omitted arguments in NumPy's signatures


def tracer_of() -> Tracer:
    """The trace of this thread; traced arrays exist only while there is one."""
    tracer = current()
    if tracer is None:
        raise UnknownError("no trace is open")
    return tracer


def is_given(value: Any) -> bool:
    """Whether an optional argument of a NumPy function is present."""
    return value is not None and not isinstance(value, NOTHING)


def dtype_name(dtype: Any) -> str:
    """A dtype argument's name."""
    if type(dtype) is Traced:
        raise UnknownError("a number or an array as a dtype")  # although they have a dtype
    kind = np.dtype(dtype)
    if not is_known(kind):
        raise UnknownError(f"dtype {kind}")
    return str(kind.name)


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """An axis argument as a tuple of nonnegative axes."""
    if axis is None:
        return tuple(range(ndim))
    if isinstance(axis, tuple | list):
        return builder.normalized([operator.index(dimension) for dimension in axis], ndim)
    return builder.normalized([operator.index(axis)], ndim)


def accumulator(kind: str, dtype: str) -> str:
    """The accumulator dtype of a NumPy reduction."""
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


def guard_nonempty(tracer: Tracer, counts: Sequence[Number]) -> None:
    """Guard that loop-variant extents are not zero, where NumPy would raise or warn for an empty operand.

    Intervals may prove it; otherwise the compiled code tests it.
    """
    for count in counts:
        if symbolic_dims.is_moving(count) and not dim_bounds.is_surely(count, ">"):
            tracer.checks.append(builder.elementwise("less", builder.extent(count), 1))


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
    operand_array = traced(tracer, array)
    kind = KINDS.get(ufunc)
    target = out[0] if isinstance(out, tuple) else out
    if kind is None:
        composed = COMPOSED.get(ufunc.reduce) if tracer.differentiates else None
        if composed is not None and not is_given(initial) and where is True and dtype is target is None:
            return composed(operand_array, axis, keepdims=bool(keepdims))
        return _other(tracer, ufunc, operand_array, axis, dtype, target, keepdims, initial, where)
    if operand_array.ndim == 0 and isinstance(axis, int) and axis in (0, -1):
        axis = ()
    return reduced(tracer, kind, operand_array, axis, dtype, target, bool(keepdims), initial, where)


def reduced(
    tracer: Tracer, kind: str, array: Traced, axis: Any = None, dtype: Any = None, out: Any = None,
    keepdims: bool = False, initial: Any = None, where: Any = True,
) -> Any:  # fmt: skip
    """A reduction by NumPy's rules."""
    own = array.dtype.name
    if is_given(dtype):
        name = dtype_name(dtype)
    elif out is not None and kind in ("sum", "prod", "min", "max"):
        name = out.dtype.name
    else:
        name = accumulator(kind, own)
    if kind in ("any", "all"):
        if name != "bool":
            raise UnknownError(f"{kind} with dtype {name}")
        node = array.node if own == "bool" else builder.elementwise("not_equal", array.node, 0)
    else:
        if not np.can_cast(own, name, "same_kind"):
            raise TypeError(f"Cannot cast ufunc '{UFUNCS[kind].__name__}' input from {own} to {name}")
        node = builder.cast(array.node, name)
    over = axes_of(axis, array.ndim)
    if kind in ("min", "max") and name == "bool":
        if any(symbolic_dims.same(array.extents[i], 0) for i in over):
            raise UnknownError(f"{kind} of an empty array")
        guard_nonempty(tracer, [array.extents[i] for i in over])
        kind = "all" if kind == "min" else "any"
    elif name == "bool" and kind not in ("any", "all"):
        raise UnknownError(f"{kind} of bool")
    if where is not True and is_given(where):
        nothing = _identity(kind, name)
        if nothing is None:
            if not is_given(initial):
                raise ValueError(f"reduction operation '{UFUNCS[kind].__name__}' does not have an identity")
            nothing = initial
        mask = builder.broadcast_to(cast_mask(tracer, operand(tracer, where)), node.shape)
        node = Node("where", (mask, node, cast_to(tracer, operand(tracer, nothing), name)), name, node.shape)
    if kind in ("min", "max") and is_given(initial) and any(symbolic_dims.same(node.shape[i], 0) for i in over):
        shape = [1 if i in over else extent for i, extent in enumerate(node.shape)]
        node = builder.broadcast_to(cast_to(tracer, operand(tracer, initial), name), shape)
    if kind in ("min", "max"):
        guard_nonempty(tracer, [node.shape[i] for i in over])
    result = builder.reduce(kind, node, over, keepdims=keepdims, is_tested=True)
    if is_given(initial):
        if kind == "sum" and np.dtype(name).kind == "f" and bool(initial == 0):
            raise UnknownError("a sum with initial=0, whose sign matters")
        result = apply(
            tracer,
            UFUNCS[kind].__name__,
            fresh(tracer, result),
            fresh(tracer, cast_to(tracer, operand(tracer, initial), name)),
        )
    if out is not None:
        if type(out) is Traced and not (
            out.ndim == result.ndim
            and all(extent == other for extent, other in zip(out.extents, result.shape, strict=True))
        ):
            raise UnknownError("an output of another shape than a reduction's result")  # NumPy raises
        return stored(tracer, result, out, casting="unsafe" if kind in ("any", "all") else "same_kind")
    return _laid_out(tracer, result, array)


def _laid_out(tracer: Tracer, node: Node, array: Traced) -> Traced:
    return result(tracer, node, array)


def _other(
    tracer: Tracer, ufunc: Any, array: Traced, axis: Any, dtype: Any, out: Any, keepdims: Any, initial: Any, where: Any
) -> Any:
    """Reductions by ufuncs without a graph operation: NumPy computes them."""
    if is_given(dtype) or is_given(initial) or where is not True or ufunc.nin != 2 or ufunc.nout != 1:
        raise UnknownError(f"numpy.{ufunc.__name__}.reduce with these options")
    over = axes_of(axis, array.ndim)
    if any(symbolic_dims.same(array.extents[i], 0) for i in over):
        raise UnknownError(f"numpy.{ufunc.__name__}.reduce of an empty array")
    name = loop_of(ufunc, (array.node.dtype,) * 2, None)[-1]
    shape = [extent for i, extent in enumerate(array.extents) if i not in over]
    tracer.note(f"numpy.{ufunc.__name__}.reduce is computed by NumPy")
    node = Node("call", (array.node,), name, shape, {"function": Reduction(ufunc, over)})
    if keepdims:
        node = builder.expand_dims(node, over)
    return stored(tracer, node, out) if out is not None else _laid_out(tracer, node, array)


class Reduction:
    """A reduction by NumPy over some axes."""

    def __init__(self, ufunc: Any, axes: tuple[int, ...]) -> None:
        self.ufunc, self.axes = ufunc, axes
        self.__name__ = f"{ufunc.__name__}.reduce"

    def __call__(self, array: Any) -> Any:
        return self.ufunc.reduce(array, axis=self.axes)


@serves("ufunc.accumulate")
def accumulate_ufunc(tracer: Tracer, ufunc: Any, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
    """``ufunc.accumulate``."""
    kind = KINDS.get(ufunc)
    operand_array = traced(tracer, array)
    if kind not in ("sum", "prod", "min", "max") or not operand_array.ndim:
        raise UnknownError(f"numpy.{ufunc.__name__}.accumulate")
    return cumulative_reduction(tracer, kind, operand_array, axis, dtype, out[0] if isinstance(out, tuple) else out)


def cumulative_reduction(
    tracer: Tracer, kind: str, array: Traced, axis: Any, dtype: Any = None, out: Any = None
) -> Any:
    """A cumulative reduction (scan)."""
    name = (
        dtype_name(dtype)
        if is_given(dtype)
        else out.dtype.name
        if out is not None
        else accumulator(kind, array.dtype.name)
    )
    if not np.can_cast(array.dtype, name, "same_kind") or name == "bool":
        raise UnknownError(f"a cumulative {kind} of {array.dtype} in {name}")
    along = axes_of(axis, array.ndim)[0]
    options = {"kind": kind, "axis": along}
    node = Node("scan", (builder.cast(array.node, name),), name, array.extents, options)
    return stored(tracer, node, out) if out is not None else _laid_out(tracer, node, array)


@serves("ufunc.outer")
def outer_ufunc(tracer: Tracer, ufunc: Any, left: Any, right: Any, **keywords: Any) -> Any:
    """``ufunc.outer``."""
    left_array, right_array = traced(tracer, left), traced(tracer, right)
    spread = builder.expand_dims(left_array.node, range(left_array.ndim, left_array.ndim + right_array.ndim))
    return ufunc(fresh(tracer, spread), right_array, **keywords)


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

    def reduce_(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = np._NoValue) -> Any:
        return full(a, axis, None, out, keepdims, np._NoValue, where)

    return reduce_


implements(np.sum, methods="sum")(_reduction("sum"))
implements(np.prod, methods="prod")(_reduction("prod"))
implements(np.max, np.amax, methods="max")(_extreme("max"))
implements(np.min, np.amin, methods="min")(_extreme("min"))
implements(np.any, methods="any")(_decision("any"))
implements(np.all, methods="all")(_decision("all"))


def _cumulative(kind: str) -> Any:
    def scan(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        tracer = tracer_of()
        array = traced(tracer, a)
        if axis is None:
            array, axis = METHODS["ravel"](array), 0
        return cumulative_reduction(tracer, kind, array, axis, dtype, out)

    return scan


implements(np.cumsum, methods="cumsum")(_cumulative("sum"))
implements(np.cumprod, methods="cumprod")(_cumulative("prod"))


def _position(kind: str) -> Any:
    def find(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        tracer = tracer_of()
        array = traced(tracer, a)
        keep = bool(keepdims) if is_given(keepdims) else False
        if array.ndim == 0:
            raise UnknownError(f"{kind} of a number")
        flat = builder.reshape(array.node, (-1,)) if axis is None and array.ndim > 1 else array.node
        along = (0,) if axis is None else axes_of(axis, array.ndim)[:1]
        guard_nonempty(tracer, [flat.shape[i] for i in along])
        node = builder.reduce(kind, flat, along, is_tested=True)
        if keep:
            node = builder.expand_dims(node, range(array.ndim) if axis is None else along)
        return stored(tracer, node, out) if out is not None else _laid_out(tracer, node, array)

    return find


implements(np.argmax, methods="argmax")(_position("argmax"))
implements(np.argmin, methods="argmin")(_position("argmin"))
