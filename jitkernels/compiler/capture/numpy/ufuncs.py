"""Universal functions of traced operands: NumPy's loop selection, casts and outputs."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced, fresh, known_array, result, scalar_node, traced
from jitkernels.compiler.capture.ints import int_cast_checks
from jitkernels.compiler.capture.numpy import scipy_special
from jitkernels.compiler.capture.override_registry import SERVICES, TABLE, serves
from jitkernels.compiler.capture.symint import SymInt
from jitkernels.compiler.capture.trace_context import Tracer, unsupported_operand
from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.elementwise_ops import BY_UFUNC, PLANES, SCALARS, is_known
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import Extent

CLASSES = (int, float, complex, bool)


def kind_of(value: Any) -> Any:
    """The promotion kind of an operand: a dtype name, or int, float, complex or bool for Python numbers."""
    if type(value) is Traced:
        return value.python or value.node.dtype
    if type(value) is SymInt or isinstance(value, Extent):
        return int
    if type(value) in CLASSES:
        return type(value)
    if isinstance(value, np.ndarray | np.generic):
        if not is_known(value.dtype):
            raise UnsupportedError(f"an operand of dtype {value.dtype}")
        return value.dtype.name
    raise unsupported_operand(value)


def cast_to(tracer: Tracer, value: Any, dtype: str) -> Node:
    """An operand as a node of a dtype."""
    if type(value) is Traced:
        if value.python is int:
            int_cast_checks.check(tracer, value.node, dtype)
        elif value.python is float:
            int_cast_checks.check_float(tracer, value.node, dtype)
        return builder.cast(value.node, dtype)
    if type(value) is SymInt:
        return value.cast(dtype, np.dtype(dtype))
    if isinstance(value, Extent):
        return builder.cast(builder.extent(value), dtype)
    if isinstance(value, np.ndarray):
        return builder.cast(known_array(tracer, value), dtype)
    if isinstance(value, np.generic):
        return builder.cast(scalar_node(value), dtype)
    int_cast_checks.check_constant(value, dtype)
    return builder.constant(value, dtype)


def operand(tracer: Tracer, value: Any) -> Any:
    """Normalize an operand for `kind_of` and `cast_to`."""
    if type(value) in (Traced, SymInt, int, float, complex, bool) or isinstance(
        value, np.ndarray | np.generic | Extent
    ):
        return value
    if isinstance(value, list | tuple):
        return traced(tracer, value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, complex):
        return complex(value)
    raise unsupported_operand(value)


def common(left: Any, right: Any) -> Any:
    """The result type of two kinds: dtype names, int, float, complex or bool."""
    order = (bool, int, float, complex)
    if left in order and right in order:
        return left if order.index(left) >= order.index(right) else right
    return builder.promoted((left, right))


def settled(kind: Any) -> str:
    """The dtype of a Python number that meets no other operand."""
    return {int: "int64", float: "float64", complex: "complex128", bool: "bool"}.get(kind) or str(kind)


def apply(tracer: Tracer, name: str, *operands: Any) -> Node:
    """An elementwise operation by name, of any operands."""
    scalar = SCALARS[name]
    if isinstance(scalar.numpy, np.ufunc):
        return elementwise(tracer, scalar.numpy, operands)[0]
    loop = builder.loop_of(name, tuple(map(kind_of, operands)))
    nodes = [cast_to(tracer, operand, kind) for operand, kind in zip(operands, loop, strict=False)]
    return Node(name, nodes, loop[-1], builder.broadcast_shapes([node.shape for node in nodes]))


def elementwise(
    tracer: Tracer, ufunc: Any, operands: Sequence[Any], dtype: str | None = None, casting: str = "same_kind"
) -> list[Node]:
    """The results of a universal function, one node each."""
    loop = builder.ufunc_loop(ufunc, tuple(map(kind_of, operands)), dtype, casting)
    if ufunc in int_cast_checks.COMPARISONS:
        loop = int_cast_checks.comparison_dtypes(tracer, operands, loop)
    nodes = [cast_to(tracer, operand, kind) for operand, kind in zip(operands, loop, strict=False)]
    shape = builder.broadcast_shapes([node.shape for node in nodes])
    if ufunc in COMPOSED:
        return COMPOSED[ufunc](nodes, shape)  # type: ignore[no-any-return]
    name = BY_UFUNC.get(ufunc)
    if name is not None and _is_compiled(name, nodes, loop[: ufunc.nin]):
        return [Node(name, nodes, loop[-1], shape)]
    composed = None if name is not None else scipy_special.composition(ufunc, loop)
    if composed is not None:
        node = composed(nodes)
        tracer.note_masked_operations([node], nodes)  # SciPy warns of nothing
        return [node]
    tracer.note(f"numpy.{ufunc.__name__} of {', '.join(loop[: ufunc.nin])} is computed by NumPy")
    if ufunc.nout == 1:
        return [Node("call", nodes, loop[-1], shape, {"function": ufunc})]
    return [
        Node("call", nodes, kind, shape, {"function": UfuncResult(ufunc, i)})
        for i, kind in enumerate(loop[ufunc.nin :])
    ]


LEAST_EXPONENT_BY_LOG = 100
"""From here on NumPy takes powers of complex numbers by logarithms."""


def _is_compiled(name: str, nodes: Sequence[Node], loop: tuple[str, ...]) -> bool:
    if name == "power" and np.dtype(loop[1]).kind == "i":  # NumPy raises for negative exponents
        exponent = nodes[1].options["value"] if nodes[1].operation == "constant" else -1
        return bool(exponent >= 0)
    if name == "power" and loop[1] in PLANES:  # NumPy multiplies
        value = nodes[1].options["value"] if nodes[1].operation == "constant" else 1j
        return bool(value == int(value.real) and abs(value) < LEAST_EXPONENT_BY_LOG)
    return SCALARS[name].takes(loop[: len(nodes)])


class UfuncResult:
    """One result of a function that returns several."""

    def __init__(self, function: Any, index: int) -> None:
        self.function, self.index = function, index
        self.__name__ = f"{getattr(function, '__name__', 'function')}[{index}]"

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)[self.index]


def _times(factor: float) -> Any:
    def scaled(nodes: list[Node], shape: Any) -> list[Node]:
        return [builder.elementwise("multiply", nodes[0], builder.constant(factor, nodes[0].dtype))]

    return scaled


def _both(nodes: list[Node], shape: Any) -> list[Node]:
    return [_by_name(name, nodes, shape) for name in ("floor_divide", "remainder")]


def _by_name(name: str, nodes: list[Node], shape: Any) -> Node:
    """An operation of operands of its dtypes; NumPy's where there is no scalar code for it."""
    scalar, dtype = SCALARS[name], nodes[0].dtype
    if scalar.takes(tuple(node.dtype for node in nodes)):
        return Node(name, nodes, dtype, shape)
    return Node("call", nodes, dtype, shape, {"function": scalar.numpy})


COMPOSED: dict[Any, Any] = {
    np.deg2rad: _times(np.pi / 180), np.radians: _times(np.pi / 180),
    np.rad2deg: _times(180 / np.pi), np.degrees: _times(180 / np.pi),
    np.conjugate: lambda nodes, shape: nodes if nodes[0].dtype not in PLANES else [_by_name("conjugate", nodes, shape)],
    np.divmod: _both,
    np.float_power: lambda nodes, shape: [_by_name("power", nodes, shape)],
}  # fmt: skip
"""Universal functions composed of other operations."""
NOT_ELEMENTWISE = {np.matmul, np.vecdot} | {getattr(np, name) for name in ("matvec", "vecmat") if hasattr(np, name)}


def _scalar_compared(value: Any) -> Any:
    """An operand of a comparison: NumPy makes an array of its own scalars there, if they are on the left."""
    return value[()] if type(value) is np.ndarray and not value.ndim else value


@serves("ufunc")
def call_ufunc(tracer: Tracer, ufunc: Any, way: str, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Implementation of `__array_ufunc__`."""
    if way != "__call__":
        return SERVICES[f"ufunc.{way}"](tracer, ufunc, *inputs, **keywords)
    if ufunc in NOT_ELEMENTWISE:
        return TABLE[ufunc](*inputs, **keywords)
    if ufunc.signature is not None or not all(name in KEYWORDS for name in keywords):
        raise UnsupportedError(f"numpy.{ufunc.__name__} with {', '.join(keywords) or 'these operands'}")
    out, where = keywords.get("out"), keywords.get("where", True)
    outputs = (out if isinstance(out, tuple) else (out,)) if out is not None else (None,) * ufunc.nout
    if where is not True and "out" not in keywords:
        raise UnsupportedError(f"numpy.{ufunc.__name__} with where= and no out=")  # NumPy warns of it
    casting = keywords.get("casting", "same_kind")
    dtype = _dtype_of(ufunc, keywords)
    if ufunc in int_cast_checks.COMPARISONS:
        inputs = tuple(map(_scalar_compared, inputs))
    operands = [operand(tracer, value) for value in inputs]
    taken = _zero_masked_gradients(tracer, operands, where) if tracer.differentiates and where is not True else operands
    nodes = elementwise(tracer, ufunc, taken, dtype, casting)
    for node in nodes:
        tracer.failures.evaluate(node, is_masked=where is not True)
    laid_out = [operand for operand in operands if type(operand) is Traced]
    if where is not True:
        tracer.note_masked_operations(nodes, [value.node for value in laid_out])
    results = [
        stored(tracer, node, array, where, casting, ufunc)
        if array is not None or where is not True
        else result(tracer, node, *laid_out)
        for node, array in zip(nodes, outputs, strict=True)
    ]
    return results[0] if len(results) == 1 else tuple(results)


def _zero_masked_gradients(tracer: Tracer, operands: Sequence[Any], where: Any) -> list[Any]:
    """Operands whose derivatives are zero at masked-off elements, which may have none there."""
    mask = cast_mask(tracer, where)
    floats = [operand for operand in operands if type(operand) is Traced and operand.dtype.kind == "f"]
    wide = [value.dtype for value in floats if not value.is_weak] or [np.dtype(np.float64)]
    widest, result = max(wide, key=lambda dtype: dtype.itemsize).name, list(operands)
    for index, value in enumerate(operands):
        if any(value is other for other in floats):
            node = builder.cast(value.node, widest if value.is_weak else value.node.dtype)
            result[index] = fresh(tracer, builder.chosen(mask, node))
    return result


KEYWORDS = ("out", "where", "dtype", "casting", "order", "subok", "signature")


def _dtype_of(ufunc: Any, keywords: dict[str, Any]) -> str | None:
    if keywords.get("order", "K") != "K" or keywords.get("signature") is not None:
        raise UnsupportedError("order= or signature= of a universal function")
    dtype = keywords.get("dtype")
    if dtype is None:
        return None
    kind = np.dtype(dtype)
    if not is_known(kind):
        raise UnsupportedError(f"numpy.{ufunc.__name__} with dtype={kind}")
    return str(kind.name)


def stored(
    tracer: Tracer, node: Node, out: Any, where: Any = True, casting: Any = "same_kind", ufunc: Any = None
) -> Traced:
    """Write a result to the output, under the mask `where`."""
    if out is None:
        mask = cast_mask(tracer, where)
        shape = builder.broadcast_shapes([node.shape, mask.shape])
        nothing = builder.constant(0, node.dtype)
        return fresh(tracer, Node("where", (mask, node, nothing), node.dtype, shape), is_scalar=True)
    if type(out) is not Traced or out.is_scalar or out.is_weak:
        raise UnsupportedError("an output that is not an array of the trace")
    if not np.can_cast(node.dtype, out.node.dtype, casting):
        name = getattr(ufunc, "__name__", "function")
        raise TypeError(
            f"Cannot cast ufunc '{name}' output from {np.dtype(node.dtype)!r} to {out.dtype!r} with casting rule "
            f"{casting!r}"
        )
    if ufunc is None and not builder.shapes_agree(node.shape, out.extents):
        raise UnsupportedError("an output of another shape, to which only universal functions broadcast")
    value = builder.cast(node, out.node.dtype)
    if where is not True:
        mask = cast_mask(tracer, where)
        shape = builder.broadcast_shapes([value.shape, mask.shape])
        value = Node("where", (mask, value, out.node), value.dtype, builder.broadcast_shapes([shape, out.extents]))
    full = builder.broadcast_shapes([value.shape, out.extents])
    if not builder.shapes_agree(full, out.extents):
        raise ValueError("non-broadcastable output operand")
    out.view.write(builder.broadcast_to(value, out.extents))
    return out


def stored_or_new(tracer: Tracer, node: Node, out: Any, *operands: Any) -> Traced:
    """A result written to `out`, or as a new array in the memory order of the operands."""
    return stored(tracer, node, out) if out is not None else result(tracer, node, *operands)


def cast_mask(tracer: Tracer, where: Any) -> Node:
    mask = operand(tracer, where)
    if kind_of(mask) not in (bool, "bool"):
        raise TypeError("Cannot cast array data to dtype('bool') according to the rule 'safe'")
    return cast_to(tracer, mask, "bool")


@serves("weak")
def weak(tracer: Tracer, value: Any) -> Traced:
    """A Python number as a traced Python float."""
    result = fresh(tracer, cast_to(tracer, value, "float64"), is_scalar=True)
    result.is_weak = True
    return result


@serves("operate")
def operate(tracer: Tracer, ufunc: Any, left: Any, right: Any) -> Any:
    """An operator: the universal function, except for Python floats among themselves, and squares."""
    if _is_of_sequence(ufunc, left, right) or _is_of_sequence(ufunc, right, left):
        return NotImplemented
    left_operand, right_operand = operand_or_none(tracer, left), operand_or_none(tracer, right)
    if left_operand is None or right_operand is None:
        return NotImplemented
    if _is_python(left_operand) and _is_python(right_operand):
        if complex in (kind_of(left_operand), kind_of(right_operand)):
            return SERVICES["complex numbers"](tracer, ufunc, left_operand, right_operand)
        return SERVICES["floats"](tracer, ufunc, left_operand, right_operand)
    if (
        ufunc is np.power
        and type(left_operand) is Traced
        and (type(right_operand) in CLASSES or _is_decided_by(left_operand, right_operand))
    ):
        quick = _power_by_simpler_ufunc(left_operand, right_operand)
        if quick is not None:
            return call_ufunc(tracer, quick, "__call__", (left_operand,), {})
    return call_ufunc(tracer, ufunc, "__call__", (left_operand, right_operand), {})


def _is_of_sequence(ufunc: Any, number: Any, other: Any) -> bool:
    """Whether Python gives an operator of a number and a list or tuple its meaning: repetition, or an error.

    Numbers of NumPy take lists and tuples as arrays, except as factors.
    """
    is_of_python = type(number) is SymInt or (type(number) is Traced and number.is_weak)
    is_factor = ufunc is np.multiply and type(number) is Traced and number.is_scalar
    return (is_of_python or is_factor) and isinstance(other, list | tuple)


def operand_or_none(tracer: Tracer, value: Any) -> Any:
    if value is None or isinstance(value, str | bytes | dict):
        raise unsupported_operand(value)
    return operand(tracer, value)


def _is_decided_by(base: Traced, exponent: Any) -> bool:
    """Whether a power has another type where an int is 2, so that code is made for either."""
    number: Any = exponent
    return type(exponent) is SymInt and base.dtype.kind == "b" and bool(number == 2)


def _power_by_simpler_ufunc(base: Traced, exponent: Any) -> Any:
    """NumPy's own quick ways, which the operator has and the function lacks."""
    if exponent is True or exponent is False:
        return None
    kind = base.dtype.kind
    if kind == "b" and base.is_scalar:
        return None
    if (
        exponent == 2
        and type(exponent) is not complex
        and (kind in "fc" or (kind in "iub" and type(exponent) in (int, SymInt)))
    ):
        return np.square
    if kind in "fc" and type(exponent) is not complex:
        return {1: np.positive, -1: np.reciprocal, 0.5: np.sqrt}.get(exponent)
    return None


def _is_python(value: Any) -> bool:
    return (type(value) is Traced and value.is_weak) or type(value) in (SymInt, *CLASSES)


@serves("sign")
def sign(value: Traced, ufunc: Any) -> Any:
    """A sign operator: Python floats keep their type."""
    if value.python in (int, bool):
        return SERVICES["sign of int"](value.tracer, value, ufunc)
    if value.python is complex and ufunc is np.absolute:
        return SERVICES["size of complex"](value)
    result = call_ufunc(value.tracer, ufunc, "__call__", (value,), {})
    result.is_weak = value.is_weak
    return result
