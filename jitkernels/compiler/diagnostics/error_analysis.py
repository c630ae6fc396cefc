"""How far compiled code may be from NumPy: a graph run by NumPy, every value of which has a doubt beside it.

A doubt is the largest difference that rounding may leave: None where there is none, infinity where anything may come
out. Elementwise operations are run again with each operand moved by its doubt to either side, and the result rounds
by the tolerance of the table, so that where a function is steep, or a comparison close, its result is in more doubt.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from jitkernels.graph import interpreter, limits
from jitkernels.graph.ir import Graph, Node
from jitkernels.graph.operations import OPERATIONS

Doubt = Any
"""None, or an array of float64 of the value's shape."""
COMPARISONS = frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"})
PERIODIC = frozenset({"sin", "cos", "tan"})
STEADY = frozenset({"view", "reshape", "concatenate", "update", "gather", "scatter"})
"""Operations that move elements; those behind the first two operands say where to."""
IN_A_ROW = 512
"""Elements that a sum takes one after the other, at most about; then it adds such sums."""
OF_CALLS = 256
"""ULP of what NumPy computes, which may depend on where an array lies in memory."""


def run(graph: Graph, arrays: Sequence[Any], symbols: Mapping[str, int]) -> list[tuple[Any, Doubt]]:
    """Outputs, and then what is to be written, each with its doubt."""
    given = {
        id(node): np.asarray(array, node.dtype) for node, array in zip(graph.inputs, arrays, strict=True)
    }
    known: dict[int, tuple[Any, Doubt]] = {key: (array, None) for key, array in given.items()}

    value = limits.Values(symbols)
    with np.errstate(all="ignore"):
        for node in graph:
            if id(node) not in known:
                known[id(node)] = _of_node(node, [known[id(one)] for one in node.inputs], value)
    interpreter.refuse(graph, {key: found for key, (found, _) in known.items()})
    return [known[id(node)] for node in graph.roots[len(graph.checks) :]]


def _of_node(
    node: Node, inputs: Sequence[tuple[Any, Doubt]], value: Callable[[Any], int]
) -> tuple[Any, Doubt]:
    values, doubts = [one for one, _ in inputs], [doubt for _, doubt in inputs]
    found = interpreter.of_node(node, values, value)
    exact = all(doubt is None for doubt in doubts)
    if OPERATIONS[node.operation].is_elementwise or node.operation == "cast":
        return found, _elementwise(node, values, doubts, found)
    if node.operation == "item":
        return found, _of_call(found, doubts[0] is None or not np.isinf(doubts[0]).any())
    if node.operation in ("call", "kernel"):
        return found, np.zeros(()) if exact and type(found) in (tuple, list) else _of_call(found, exact)
    if node.operation in STEADY:
        if exact:
            return found, _added(node, values, value)
        if any(doubt is not None for doubt in doubts[_movable(node) :]):
            return found, np.full(found.shape, np.inf)
        moved = [
            np.zeros(np.shape(one)) if doubt is None else doubt
            for one, doubt in zip(values, doubts, strict=True)
        ]
        moved[_movable(node) :] = values[_movable(node) :]
        doubt, own = (
            np.asarray(OPERATIONS[node.operation].run(node, moved, value)),
            _added(node, values, value),
        )
        return found, doubt if own is None else doubt + own
    summing = {"matmul": _matmul, "reduce": _reduce, "scan": _scan}.get(node.operation)
    return found, None if summing is None else summing(node, values, doubts, found)


def _added(node: Node, values: Sequence[Any], value: Callable[[Any], int]) -> Doubt:
    """What sums may be off by to which numbers add elements, as many as there are at most."""
    if not node.options.get("adds") or np.dtype(node.dtype).kind != "f":
        return None
    sized = [np.abs(one.astype("f8")) for one in values[:2]]
    total = np.asarray(OPERATIONS[node.operation].run(node, [*sized, *values[2:]], value))
    return total * float(np.finfo(node.dtype).eps) * max(np.size(values[1]), 1)


def _movable(node: Node) -> int:
    return {"gather": 1, "scatter": 2}.get(node.operation, len(node.inputs))


def _of_call(found: Any, exact: bool) -> Doubt:
    """Of a function that only NumPy knows."""
    if not exact:
        return np.full(np.shape(found), np.inf)
    if getattr(found, "dtype", np.dtype(bool)).kind != "f":
        return None
    largest = np.max(np.abs(found), initial=0.0, where=np.isfinite(found))
    return np.full(found.shape, OF_CALLS * np.finfo(found.dtype).eps * float(largest))


def _elementwise(node: Node, values: Sequence[Any], doubts: Sequence[Doubt], found: Any) -> Doubt:
    scalar = OPERATIONS[node.operation].scalar
    function: Callable[..., Any] = partial(_cast, node.dtype) if scalar is None else scalar.numpy
    total = np.zeros(found.shape)
    if scalar is not None and found.dtype.kind == "f":
        limits = np.finfo(found.dtype)
        total = scalar.ulp * (limits.eps * np.abs(found.astype("f8")) + float(limits.smallest_subnormal))
        if scalar.ulp:
            # An infinity of finite operands: a sum and a product in one may have overflown later, or not at all.
            finite = np.logical_and.reduce(np.broadcast_arrays(*map(np.isfinite, values)))
            total = np.where(np.isinf(found) & finite, np.inf, total)
    for i, doubt in enumerate(doubts):
        if doubt is None:
            continue
        sides = [
            [_moved(one, side) if i == j else one for j, one in enumerate(values)] for side in (doubt, -doubt)
        ]
        total = total + np.maximum(*(_change(found, function(*moved)) for moved in sides))
        total = np.where(np.isinf(doubt), np.inf, total)
    sure = [np.zeros(()) if doubt is None else doubt for doubt in doubts]
    if node.operation in COMPARISONS:
        apart = np.abs(values[0].astype("f8") - values[1].astype("f8"))
        near = (apart <= sure[0] + sure[1]) & (sure[0] + sure[1] > 0)
        total = np.where(near, 1.0, total)
    if node.operation in PERIODIC:
        total = np.where(sure[0] > 0.5, np.inf, total)
    if node.operation in ("remainder", "fmod") and doubts[0] is not None:
        total = np.where(4 * sure[0] > np.abs(values[1]), np.inf, total)
    return total if total.any() else None


def _cast(dtype: str, one: Any) -> Any:
    return one.astype(dtype)


def _moved(value: Any, side: Any) -> Any:
    """A value moved by its doubt to one side."""
    if value.dtype.kind == "b":
        return value ^ (side != 0)
    if value.dtype.kind == "f":
        return (value.astype("f8") + side).astype(value.dtype)
    steps = np.sign(side) * np.ceil(np.minimum(np.abs(side), 2.0**52))
    return value + steps.astype("i8").astype(value.dtype)


def _change(found: Any, moved: Any) -> Any:
    """How far a result is from another; infinity where one of them is none."""
    moved = np.asarray(moved)
    change = np.abs(moved.astype("f8") - found.astype("f8"))
    alike = (moved == found) | ((moved != moved) & (found != found))
    return np.where(alike, 0.0, np.where(np.isnan(change), np.inf, change))


def _rounding(dtype: Any, count: int) -> float:
    """What a sum of so many terms may be off by, as a fraction of the sum of their magnitudes."""
    if np.dtype(dtype).kind != "f":
        return 0.0
    steps = min(count, IN_A_ROW) + 16 * np.log2(max(count, 2))
    return float(steps * np.finfo(dtype).eps)


def _reduce(node: Node, values: Sequence[Any], doubts: Sequence[Doubt], found: Any) -> Doubt:
    kind, axes = node.options["kind"], tuple(node.options["axes"])
    one, doubt = np.asarray(values[0]), doubts[0]
    count = int(np.prod([one.shape[axis] for axis in axes]))
    if doubt is None and (found.dtype.kind != "f" or kind in ("min", "max")):
        return None
    known = np.zeros(one.shape) if doubt is None else doubt
    sized = np.abs(one.astype("f8"))
    if kind == "sum":
        sums = (known + _rounding(found.dtype, count) * sized).sum(axis=axes)
        return sums if found.dtype.kind == "f" or not sums.any() else np.full(found.shape, np.inf)
    if kind == "prod":
        relative = np.where(known > 0, known / sized, 0.0).sum(axis=axes)
        own = count * np.finfo(found.dtype).eps if found.dtype.kind == "f" else 0.0
        product = np.abs(found.astype("f8")) * (relative + own)
        return np.where(np.isnan(product), np.inf, product)
    if kind in ("min", "max"):
        return known.max(axis=axes, initial=0.0)
    if kind in ("any", "all"):
        either = [
            np.asarray(interpreter.of_node(node, [way], int))
            for way in (one | (known > 0), one & (known == 0))
        ]
        return (either[0] != either[1]).astype("f8")
    turned = one.astype("f8") if kind == "argmax" else -one.astype("f8")
    reach = np.max(turned - known, axis=axes[0], keepdims=True, initial=-np.inf)
    near = np.count_nonzero(turned + known >= reach, axis=axes[0])
    return np.where(near > 1, np.inf, 0.0)


def _scan(node: Node, values: Sequence[Any], doubts: Sequence[Doubt], found: Any) -> Doubt:
    kind, axis = node.options["kind"], node.options["axis"]
    one, doubt = np.asarray(values[0]), doubts[0]
    if doubt is None and (found.dtype.kind != "f" or kind in ("min", "max")):
        return None
    known = np.zeros(one.shape) if doubt is None else doubt
    if kind in ("min", "max"):
        return np.maximum.accumulate(known, axis=axis)
    if found.dtype.kind != "f":
        return np.full(found.shape, np.inf)
    sized, eps = np.abs(one.astype("f8")), float(np.finfo(found.dtype).eps)
    if kind == "sum":
        return np.cumsum(known + one.shape[axis] * eps * sized, axis=axis)
    product = np.abs(found.astype("f8")) * np.cumsum(eps + np.where(known > 0, known / sized, 0.0), axis=axis)
    return np.where(np.isnan(product), np.inf, product)


def _matmul(node: Node, values: Sequence[Any], doubts: Sequence[Doubt], found: Any) -> Doubt:
    exact = all(doubt is None for doubt in doubts)
    if found.dtype.kind != "f":
        return None if exact else np.full(found.shape, np.inf)
    left, right = (np.abs(one.astype("f8")) for one in values)
    total = _rounding(found.dtype, left.shape[-1]) * np.matmul(left, right)
    if doubts[0] is not None:
        total = total + np.matmul(doubts[0], right)
    if doubts[1] is not None:
        total = total + np.matmul(left, doubts[1])
    return np.where(np.isnan(total), np.inf, total)
