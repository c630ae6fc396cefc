"""NumPy's universal functions with traced operands: loops, casts and outputs as NumPy has them."""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels.frontends.flow import fitting
from jitkernels.frontends.tables import SERVICES, TABLE, serves
from jitkernels.frontends.traced import Traced, fresh, known_array, result, scalar_node, traced
from jitkernels.frontends.tracer import Tracer, no_operand
from jitkernels.frontends.whole import Whole
from jitkernels.graph import construct
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.extents import Extent
from jitkernels.graph.ir import Node
from jitkernels.graph.scalars import BY_UFUNC, DTYPES, SCALARS, is_known

CLASSES = (int, float, bool)


@functools.lru_cache(maxsize=4096)
def loop_of(
    ufunc: Any, given: tuple[Any, ...], dtype: str | None, casting: str = "same_kind"
) -> tuple[str, ...]:
    """Dtypes of operands and results of the loop that NumPy takes."""
    asked = tuple(
        np.dtype(bool) if one is bool else one if one in (int, float) else np.dtype(one) for one in given
    )
    if casting == "equiv" and any(one in (int, float) for one in given):
        # NumPy's search for a loop ends the process where Python's numbers cannot be cast to its type.
        raise UnknownError(f"{ufunc.__name__} of Python's numbers with casting=equiv")
    options: dict[str, Any] = {"casting": casting}
    if dtype is not None:
        options["signature"] = (None,) * ufunc.nin + (np.dtype(dtype),) * ufunc.nout
    found = ufunc.resolve_dtypes((*asked, *[None] * ufunc.nout), **options)
    names = tuple(one.name for one in found)
    if any(one not in DTYPES for one in names):
        raise UnknownError(f"{ufunc.__name__} of {', '.join(map(str, given))}")
    return names


def kind_of(value: Any) -> Any:
    """What an operand is for promotion: a dtype, or int, float or bool for Python's numbers."""
    if type(value) is Traced:
        return value.python or value.node.dtype
    if type(value) is Whole or isinstance(value, Extent):
        return int
    if type(value) in CLASSES:
        return type(value)
    if isinstance(value, np.ndarray | np.generic):
        if not is_known(value.dtype):
            raise UnknownError(f"an operand of dtype {value.dtype}")
        return value.dtype.name
    raise no_operand(value)


def cast_to(tracer: Tracer, value: Any, dtype: str) -> Node:
    """An operand as a node of a dtype."""
    if type(value) is Traced:
        if value.python is int:
            fitting.check(tracer, value.node, dtype)
        return construct.cast(value.node, dtype)
    if type(value) is Whole:
        return value.cast(dtype, np.dtype(dtype))
    if isinstance(value, Extent):
        return construct.cast(construct.extent(value), dtype)
    if isinstance(value, np.ndarray):
        return construct.cast(known_array(tracer, value), dtype)
    if isinstance(value, np.generic):
        return construct.cast(scalar_node(value), dtype)
    return construct.constant(value, dtype)


def operand(tracer: Tracer, value: Any) -> Any:
    """An operand in a form that `kind_of` and `cast_to` know."""
    if type(value) in (Traced, Whole, int, float, bool) or isinstance(
        value, np.ndarray | np.generic | Extent
    ):
        return value
    if isinstance(value, list | tuple):
        return traced(tracer, value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, int):
        return int(value)
    raise no_operand(value)


def common(one: Any, other: Any) -> Any:
    """The type in which two operands meet, of dtypes and int, float and bool."""
    stand = {int: 1, float: 1.0, bool: True}
    if one in stand and other in stand:
        order = (bool, int, float)
        return one if order.index(one) >= order.index(other) else other
    given = [stand[kind] if kind in stand else np.dtype(kind) for kind in (one, other)]
    return np.result_type(*given).name


def settled(kind: Any) -> str:
    """The dtype of Python's numbers where nothing else decides."""
    return {int: "int64", float: "float64", bool: "bool"}.get(kind) or str(kind)


def apply(tracer: Tracer, name: str, *operands: Any) -> Node:
    """An operation of the table by name, of anything that may be an operand."""
    scalar = SCALARS[name]
    if isinstance(scalar.numpy, np.ufunc):
        return elementwise(tracer, scalar.numpy, operands)[0]
    loop = construct.loop_of(name, tuple(map(kind_of, operands)))
    nodes = [cast_to(tracer, one, kind) for one, kind in zip(operands, loop, strict=False)]
    return Node(name, nodes, loop[-1], construct.broadcast_shapes([one.shape for one in nodes]))


def elementwise(
    tracer: Tracer, ufunc: Any, operands: Sequence[Any], dtype: str | None = None, casting: str = "same_kind"
) -> list[Node]:
    """The results of a universal function, each a node."""
    loop = loop_of(ufunc, tuple(map(kind_of, operands)), dtype, casting)
    if ufunc in fitting.COMPARISONS:
        loop = fitting.compared(tracer, operands, loop)
    nodes = [cast_to(tracer, one, kind) for one, kind in zip(operands, loop, strict=False)]
    shape = construct.broadcast_shapes([one.shape for one in nodes])
    if ufunc in COMPOSED:
        return COMPOSED[ufunc](nodes, shape)  # type: ignore[no-any-return]
    name = BY_UFUNC.get(ufunc)
    if name is not None and _is_compiled(name, nodes, loop[: ufunc.nin]):
        return [Node(name, nodes, loop[-1], shape)]
    tracer.note(f"numpy.{ufunc.__name__} of {', '.join(loop[: ufunc.nin])} is computed by NumPy")
    if ufunc.nout == 1:
        return [Node("call", nodes, loop[-1], shape, {"function": ufunc})]
    return [
        Node("call", nodes, kind, shape, {"function": Part(ufunc, i)})
        for i, kind in enumerate(loop[ufunc.nin :])
    ]


def _is_compiled(name: str, nodes: Sequence[Node], loop: tuple[str, ...]) -> bool:
    if name == "power" and np.dtype(loop[1]).kind == "i":  # NumPy refuses negative exponents
        exponent = nodes[1].options["value"] if nodes[1].operation == "constant" else -1
        return bool(exponent >= 0)
    return SCALARS[name].function(loop) is not None


class Part:
    """One result of a function that gives several."""

    def __init__(self, function: Any, index: int) -> None:
        self.function, self.index = function, index
        self.__name__ = f"{getattr(function, '__name__', 'function')}[{index}]"

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)[self.index]


def _times(factor: float) -> Any:
    def scaled(nodes: list[Node], shape: Any) -> list[Node]:
        return [construct.elementwise("multiply", nodes[0], construct.constant(factor, nodes[0].dtype))]

    return scaled


def _both(nodes: list[Node], shape: Any) -> list[Node]:
    return [_by_name(name, nodes, shape) for name in ("floor_divide", "remainder")]


def _by_name(name: str, nodes: list[Node], shape: Any) -> Node:
    """An operation of operands that have its types; NumPy's, where there is no scalar code of it."""
    scalar, dtype = SCALARS[name], nodes[0].dtype
    if scalar.function(tuple(node.dtype for node in nodes)) is not None:
        return Node(name, nodes, dtype, shape)
    return Node("call", nodes, dtype, shape, {"function": scalar.numpy})


COMPOSED: dict[Any, Any] = {
    np.deg2rad: _times(np.pi / 180), np.radians: _times(np.pi / 180),
    np.rad2deg: _times(180 / np.pi), np.degrees: _times(180 / np.pi),
    np.conjugate: lambda nodes, _: nodes, np.divmod: _both,
    np.float_power: lambda nodes, shape: [_by_name("power", nodes, shape)],
}  # fmt: skip
"""Functions made of others."""
NOT_ELEMENTWISE = {np.matmul, np.vecdot} | {
    getattr(np, name) for name in ("matvec", "vecmat") if hasattr(np, name)
}


@serves("ufunc")
def call_ufunc(
    tracer: Tracer, ufunc: Any, way: str, inputs: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    """What `__array_ufunc__` is asked for."""
    if way != "__call__":
        return SERVICES[f"ufunc.{way}"](tracer, ufunc, *inputs, **keywords)
    if ufunc in NOT_ELEMENTWISE:
        return TABLE[ufunc](*inputs, **keywords)
    if ufunc.signature is not None or not all(name in KEYWORDS for name in keywords):
        raise UnknownError(f"numpy.{ufunc.__name__} with {', '.join(keywords) or 'these operands'}")
    out, where = keywords.get("out"), keywords.get("where", True)
    outputs = (out if isinstance(out, tuple) else (out,)) if out is not None else (None,) * ufunc.nout
    if where is not True and "out" not in keywords:
        raise UnknownError(f"numpy.{ufunc.__name__} with where= and no out=")  # of which NumPy warns
    casting = keywords.get("casting", "same_kind")
    dtype = _dtype_of(ufunc, keywords)
    operands = [operand(tracer, one) for one in inputs]
    taken = (
        _where_chosen(tracer, operands, where) if tracer.differentiates and where is not True else operands
    )
    nodes = elementwise(tracer, ufunc, taken, dtype, casting)
    laid_out = [one for one in operands if type(one) is Traced]
    if where is not True:
        tracer.computes_in_part(nodes, [one.node for one in laid_out])
    results = [
        stored(tracer, node, given, where, casting, ufunc)
        if given is not None or where is not True
        else result(tracer, node, *laid_out)
        for node, given in zip(nodes, outputs, strict=True)
    ]
    return results[0] if len(results) == 1 else tuple(results)


def _where_chosen(tracer: Tracer, operands: Sequence[Any], where: Any) -> list[Any]:
    """Operands of which derivatives are by what is computed alone: others may have none."""
    mask = cast_mask(tracer, where)
    floats = [one for one in operands if type(one) is Traced and one.dtype.kind == "f"]
    wide = [one.dtype for one in floats if not one.is_weak] or [np.dtype(np.float64)]
    widest, found = max(wide, key=lambda dtype: dtype.itemsize).name, list(operands)
    for place, one in enumerate(operands):
        if any(one is other for other in floats):
            node = construct.cast(one.node, widest if one.is_weak else one.node.dtype)
            found[place] = fresh(tracer, construct.chosen(mask, node))
    return found


KEYWORDS = ("out", "where", "dtype", "casting", "order", "subok", "signature")


def _dtype_of(ufunc: Any, keywords: dict[str, Any]) -> str | None:
    if keywords.get("order", "K") != "K" or keywords.get("signature") is not None:
        raise UnknownError("order= or signature= of a universal function")
    dtype = keywords.get("dtype")
    if dtype is None:
        return None
    kind = np.dtype(dtype)
    if not is_known(kind):
        raise UnknownError(f"numpy.{ufunc.__name__} with dtype={kind}")
    return str(kind.name)


def stored(
    tracer: Tracer, node: Node, out: Any, where: Any = True, casting: Any = "same_kind", ufunc: Any = None
) -> Traced:
    """Let an output have a result where it is to."""
    if out is None:
        mask = cast_mask(tracer, where)
        shape = construct.broadcast_shapes([node.shape, mask.shape])
        nothing = construct.constant(0, node.dtype)
        return fresh(tracer, Node("where", (mask, node, nothing), node.dtype, shape), is_scalar=True)
    if type(out) is not Traced or out.is_scalar or out.is_weak:
        raise UnknownError("an output that is no array of the function")
    if not np.can_cast(node.dtype, out.node.dtype, casting):
        name = getattr(ufunc, "__name__", "function")
        raise TypeError(
            f"Cannot cast ufunc '{name}' output from {np.dtype(node.dtype)!r} to {out.dtype!r} with casting rule "
            f"{casting!r}"
        )
    if ufunc is None and not construct.shapes_agree(node.shape, out.extents):
        raise UnknownError(
            "an output of another shape, which universal functions alone spread their results over"
        )
    value = construct.cast(node, out.node.dtype)
    if where is not True:
        mask = cast_mask(tracer, where)
        shape = construct.broadcast_shapes([value.shape, mask.shape])
        value = Node(
            "where", (mask, value, out.node), value.dtype, construct.broadcast_shapes([shape, out.extents])
        )
    full = construct.broadcast_shapes([value.shape, out.extents])
    if not construct.shapes_agree(full, out.extents):
        raise ValueError("non-broadcastable output operand")
    out.view.write(construct.broadcast_to(value, out.extents))
    return out


def cast_mask(tracer: Tracer, where: Any) -> Node:
    """A mask as a node."""
    mask = operand(tracer, where)
    if kind_of(mask) not in (bool, "bool"):
        raise TypeError("Cannot cast array data to dtype('bool') according to the rule 'safe'")
    return cast_to(tracer, mask, "bool")


@serves("weak")
def weak(tracer: Tracer, value: Any) -> Traced:
    """A Python number as a Python float of the trace."""
    made = fresh(tracer, cast_to(tracer, value, "float64"), is_scalar=True)
    made.is_weak = True
    return made


@serves("operate")
def operate(tracer: Tracer, ufunc: Any, left: Any, right: Any) -> Any:
    """An operator: as the universal function, but for Python's floats among themselves, and squares."""
    one, other = operand_or_none(tracer, left), operand_or_none(tracer, right)
    if one is None or other is None:
        return NotImplemented
    if _is_python(one) and _is_python(other):
        return SERVICES["floats"](tracer, ufunc, one, other)
    if ufunc is np.power and type(one) is Traced and (type(other) in CLASSES or _is_decided_by(one, other)):
        quick = _quick_power(one, other)
        if quick is not None:
            return call_ufunc(tracer, quick, "__call__", (one,), {})
    return call_ufunc(tracer, ufunc, "__call__", (one, other), {})


def operand_or_none(tracer: Tracer, value: Any) -> Any:
    if value is None or isinstance(value, str | bytes | dict):
        raise no_operand(value)
    return operand(tracer, value)


def _is_decided_by(base: Traced, exponent: Any) -> bool:
    """Whether a power has another type where an int is 2, so that code is made for either."""
    number: Any = exponent
    return type(exponent) is Whole and base.dtype.kind == "b" and bool(number == 2)


def _quick_power(base: Traced, exponent: Any) -> Any:
    """NumPy's own quick ways, which the operator has and the function lacks."""
    if exponent is True or exponent is False:
        return None
    kind = base.dtype.kind
    if kind == "b" and base.is_scalar:
        return None
    if exponent == 2 and (kind == "f" or (kind in "iub" and type(exponent) in (int, Whole))):
        return np.square
    if kind == "f":
        return {1: np.positive, -1: np.reciprocal, 0.5: np.sqrt}.get(exponent)
    return None


def _is_python(value: Any) -> bool:
    return (type(value) is Traced and value.is_weak) or type(value) in (Whole, int, float, bool)


@serves("sign")
def sign(value: Traced, ufunc: Any) -> Any:
    """A sign operator: Python's floats stay such."""
    if value.python in (int, bool):
        return SERVICES["sign of int"](value.tracer, value, ufunc)
    found = call_ufunc(value.tracer, ufunc, "__call__", (value,), {})
    found.is_weak = value.is_weak
    return found
