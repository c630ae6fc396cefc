"""Reductions and scans (cumulative reductions) of traced arrays, with NumPy's accumulator dtypes."""

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced, fresh, result, traced
from jitkernels.compiler.capture.numpy.ufuncs import apply, cast_mask, cast_to, operand, stored, stored_or_new
from jitkernels.compiler.capture.override_registry import DECOMPOSITIONS, METHODS, overrides, serves
from jitkernels.compiler.capture.trace_context import Tracer, current
from jitkernels.compiler.ir import builder, dim_bounds, symbolic_dims
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.elementwise_ops import PLANES, is_known
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
        raise UnsupportedError("no trace is open")
    return tracer


def is_given(value: Any) -> bool:
    """Whether an optional argument of a NumPy function is present."""
    return value is not None and not isinstance(value, NOTHING)


def dtype_name(dtype: Any) -> str:
    """A dtype argument's name."""
    if type(dtype) is Traced:
        raise UnsupportedError("a number or an array as a dtype")  # although they have a dtype
    kind = np.dtype(dtype)
    if not is_known(kind):
        raise UnsupportedError(f"dtype {kind}")
    return str(kind.name)


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """An axis argument as a tuple of nonnegative axes."""
    if axis is None:
        return tuple(range(ndim))
    given = axis if isinstance(axis, tuple | list) else [axis]
    if any(isinstance(one, bool) or (type(one) is Traced and one.python is bool) for one in given):
        raise UnsupportedError("a bool as an axis")  # some functions of NumPy take it
    return builder.normalized([operator.index(one) for one in given], ndim)


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


IDENTITIES = {"sum": 0, "prod": 1, "any": False, "all": True}


class ReductionOptions(NamedTuple):
    """The arguments of a NumPy reduction beside the array."""

    axis: Any = None
    dtype: Any = None
    out: Any = None
    keepdims: Any = False
    initial: Any = np._NoValue
    where: Any = True

    @property
    def keeps_dims(self) -> bool:
        return is_given(self.keepdims) and bool(self.keepdims)


def guard_nonempty(tracer: Tracer, counts: Sequence[Number]) -> None:
    """Guard that loop-variant extents are not zero, where NumPy would raise or warn for an empty operand.

    Intervals may prove it; otherwise the compiled code tests it.
    """
    for count in counts:
        if symbolic_dims.is_loop_variant(count) and not dim_bounds.is_surely(count, ">"):
            tracer.checks.append(builder.elementwise("less", builder.extent(count), 1))


@serves("ufunc.reduce")
def reduce_ufunc(tracer: Tracer, ufunc: Any, array: Any, axis: Any = 0, *arguments: Any, **keywords: Any) -> Any:
    options = ReductionOptions(axis, *arguments, **keywords)
    if isinstance(options.out, tuple):
        options = options._replace(out=options.out[0])
    operand_array = traced(tracer, array)
    kind = KINDS.get(ufunc)
    if kind is None:
        composed = DECOMPOSITIONS.get(ufunc.reduce) if tracer.differentiates else None
        is_plain = not is_given(options.initial) and options.where is True and options.dtype is options.out is None
        if composed is not None and is_plain:
            return composed(operand_array, axis, keepdims=bool(options.keepdims))
        return _reduce_by_numpy(ufunc, operand_array, options)
    if operand_array.ndim == 0 and isinstance(axis, int) and axis in (0, -1):
        options = options._replace(axis=())
    return reduced(kind, operand_array, options)


def reduced(kind: str, array: Traced, options: ReductionOptions) -> Any:
    """A reduction by NumPy's rules."""
    tracer, own, out = array.tracer, array.dtype.name, options.out
    if is_given(options.dtype):
        name = dtype_name(options.dtype)
    elif out is not None and kind in ("sum", "prod", "min", "max"):
        name = out.dtype.name
    else:
        name = accumulator(kind, own)
    if name in PLANES and kind in UFUNCS and kind != "sum":
        return _reduce_by_numpy(UFUNCS[kind], array, options)
    node = _accumulated(kind, array, name)
    over = axes_of(options.axis, array.ndim)
    is_masked = options.where is not True and is_given(options.where)
    if is_masked and IDENTITIES.get(kind) is None and not is_given(options.initial):
        raise ValueError(
            f"reduction operation '{UFUNCS[kind].__name__}' does not have an identity, "
            "so to use a where mask one has to specify 'initial'"
        )
    if kind in ("min", "max") and name == "bool":
        if any(symbolic_dims.same(array.extents[i], 0) for i in over):
            raise UnsupportedError(f"{kind} of an empty array")
        guard_nonempty(tracer, [array.extents[i] for i in over])
        kind = "all" if kind == "min" else "any"
    elif name == "bool" and kind not in ("any", "all"):
        raise UnsupportedError(f"{kind} of bool")
    if is_masked:
        node = _masked(kind, tracer, node, options)
    if kind in ("min", "max"):
        if is_given(options.initial) and any(symbolic_dims.same(node.shape[i], 0) for i in over):
            shape = [1 if i in over else extent for i, extent in enumerate(node.shape)]
            node = builder.broadcast_to(cast_to(tracer, operand(tracer, options.initial), name), shape)
        guard_nonempty(tracer, [node.shape[i] for i in over])
    result_node = builder.reduce(kind, node, over, keepdims=options.keeps_dims, is_tested=True)
    if is_given(options.initial):
        if kind == "sum" and np.dtype(name).kind == "f" and bool(options.initial == 0):
            raise UnsupportedError("a sum with initial=0, whose sign matters")
        initial = fresh(tracer, cast_to(tracer, operand(tracer, options.initial), name))
        result_node = apply(tracer, UFUNCS[kind].__name__, fresh(tracer, result_node), initial)
    if type(out) is Traced and not (
        out.ndim == result_node.ndim
        and all(extent == other for extent, other in zip(out.extents, result_node.shape, strict=True))
    ):
        raise UnsupportedError("an output of another shape than a reduction's result")  # NumPy raises
    if out is not None:
        return stored(tracer, result_node, out, casting="unsafe" if kind in ("any", "all") else "same_kind")
    return result(tracer, result_node, array)


def _accumulated(kind: str, array: Traced, dtype: str) -> Node:
    """The elements in the accumulator dtype."""
    own = array.dtype.name
    if kind in ("any", "all"):
        if dtype != "bool":
            raise UnsupportedError(f"{kind} with dtype {dtype}")
        return array.node if own == "bool" else builder.elementwise("not_equal", array.node, 0)
    if not np.can_cast(own, dtype, "same_kind"):
        raise TypeError(f"Cannot cast ufunc '{UFUNCS[kind].__name__}' input from {own} to {dtype}")
    return builder.cast(array.node, dtype)


def _masked(kind: str, tracer: Tracer, node: Node, options: ReductionOptions) -> Node:
    """The elements with the identity of the reduction, or the initial value, at masked-off ones."""
    identity = IDENTITIES.get(kind)
    if identity is None:
        identity = options.initial
    mask = builder.broadcast_to(cast_mask(tracer, operand(tracer, options.where)), node.shape)
    filled = cast_to(tracer, operand(tracer, identity), node.dtype)
    return Node("where", (mask, node, filled), node.dtype, node.shape)


def _reduce_by_numpy(ufunc: Any, array: Traced, options: ReductionOptions) -> Any:
    """Reductions by ufuncs without a graph operation: NumPy computes them."""
    is_plain = not is_given(options.dtype) and not is_given(options.initial) and options.where is True
    if not is_plain or ufunc.nin != 2 or ufunc.nout != 1:
        raise UnsupportedError(f"numpy.{ufunc.__name__}.reduce with these options")
    over = axes_of(options.axis, array.ndim)
    if any(symbolic_dims.same(array.extents[i], 0) for i in over):
        raise UnsupportedError(f"numpy.{ufunc.__name__}.reduce of an empty array")
    name = builder.ufunc_loop(ufunc, (array.node.dtype,) * 2)[-1]
    shape = [extent for i, extent in enumerate(array.extents) if i not in over]
    array.tracer.note(f"numpy.{ufunc.__name__}.reduce is computed by NumPy")
    node = Node("call", (array.node,), name, shape, {"function": UfuncReduction(ufunc, over)})
    if options.keepdims:
        node = builder.expand_dims(node, over)
    return stored_or_new(array.tracer, node, options.out, array)


class UfuncReduction:
    """A reduction by NumPy over some axes."""

    def __init__(self, ufunc: Any, axes: tuple[int, ...]) -> None:
        self.ufunc, self.axes = ufunc, axes
        self.__name__ = f"{ufunc.__name__}.reduce"

    def __call__(self, array: Any) -> Any:
        return self.ufunc.reduce(array, axis=self.axes)


@serves("ufunc.accumulate")
def accumulate_ufunc(tracer: Tracer, ufunc: Any, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
    kind = KINDS.get(ufunc)
    operand_array = traced(tracer, array)
    if kind not in ("sum", "prod", "min", "max") or not operand_array.ndim:
        raise UnsupportedError(f"numpy.{ufunc.__name__}.accumulate")
    return cumulative_reduction(tracer, kind, operand_array, axis, dtype, out[0] if isinstance(out, tuple) else out)


def cumulative_reduction(
    tracer: Tracer, kind: str, array: Traced, axis: Any, dtype: Any = None, out: Any = None
) -> Any:
    """A cumulative reduction (scan)."""
    if array.dtype.name in PLANES and kind != "sum":
        raise UnsupportedError(f"a cumulative {kind} of complex numbers")
    name = (
        dtype_name(dtype)
        if is_given(dtype)
        else out.dtype.name
        if out is not None
        else accumulator(kind, array.dtype.name)
    )
    if not np.can_cast(array.dtype, name, "same_kind") or name == "bool":
        raise UnsupportedError(f"a cumulative {kind} of {array.dtype} in {name}")
    along = axes_of((axis,), array.ndim)[0]
    options = {"kind": kind, "axis": along}
    node = Node("scan", (builder.cast(array.node, name),), name, array.extents, options)
    return stored_or_new(tracer, node, out, array)


@serves("ufunc.outer")
def outer_ufunc(tracer: Tracer, ufunc: Any, left: Any, right: Any, **keywords: Any) -> Any:
    left_array, right_array = traced(tracer, left), traced(tracer, right)
    spread = builder.expand_dims(left_array.node, range(left_array.ndim, left_array.ndim + right_array.ndim))
    return ufunc(fresh(tracer, spread), right_array, **keywords)


def _reduction(kind: str) -> Any:
    def reduce_(
        a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False,
        initial: Any = np._NoValue, where: Any = np._NoValue,
    ) -> Any:  # fmt: skip
        return reduced(kind, traced(tracer_of(), a), ReductionOptions(axis, dtype, out, keepdims, initial, where))

    return reduce_


def _extreme(kind: str) -> Any:
    def reduce_(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = False,
        initial: Any = np._NoValue, where: Any = np._NoValue,
    ) -> Any:  # fmt: skip
        return reduced(kind, traced(tracer_of(), a), ReductionOptions(axis, None, out, keepdims, initial, where))

    return reduce_


def _decision(kind: str) -> Any:
    def reduce_(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = np._NoValue) -> Any:
        return reduced(kind, traced(tracer_of(), a), ReductionOptions(axis, None, out, keepdims, where=where))

    return reduce_


overrides(np.sum, methods="sum")(_reduction("sum"))
overrides(np.prod, methods="prod")(_reduction("prod"))
overrides(np.max, np.amax, methods="max")(_extreme("max"))
overrides(np.min, np.amin, methods="min")(_extreme("min"))
overrides(np.any, methods="any")(_decision("any"))
overrides(np.all, methods="all")(_decision("all"))


def _cumulative(kind: str) -> Any:
    def scan(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        tracer = tracer_of()
        array = traced(tracer, a)
        if axis is None:
            array, axis = METHODS["ravel"](array), 0
        return cumulative_reduction(tracer, kind, array, axis, dtype, out)

    return scan


overrides(np.cumsum, methods="cumsum")(_cumulative("sum"))
overrides(np.cumprod, methods="cumprod")(_cumulative("prod"))


def _position(kind: str) -> Any:
    def find(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        tracer = tracer_of()
        array = traced(tracer, a)
        if array.ndim == 0:
            raise UnsupportedError(f"{kind} of a number")
        flat = builder.reshape(array.node, (-1,)) if axis is None and array.ndim > 1 else array.node
        along = (0,) if axis is None else axes_of((axis,), array.ndim)
        guard_nonempty(tracer, [flat.shape[i] for i in along])
        if flat.dtype in PLANES:
            raise UnsupportedError(f"{kind} of complex numbers")
        node = builder.reduce(kind, flat, along, is_tested=True)
        if is_given(keepdims) and keepdims:
            node = builder.expand_dims(node, range(array.ndim) if axis is None else along)
        return stored_or_new(tracer, node, out, array)

    return find


overrides(np.argmax, methods="argmax")(_position("argmax"))
overrides(np.argmin, methods="argmin")(_position("argmin"))
