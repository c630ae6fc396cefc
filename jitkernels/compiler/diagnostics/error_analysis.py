"""Running error analysis: evaluate a graph with NumPy and carry an error bound beside every value.

An error bound is the largest difference that rounding may cause: None for exact values, infinity where any value may
result. Elementwise operations are evaluated again with each operand perturbed by its bound to either side, and the
result adds its own rounding by the table's tolerance, so that steep functions and close comparisons enlarge the bound.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from jitkernels.compiler.ir import dim_bounds, interpreter
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.ir.ops import OPERATIONS

ErrorBound = Any
"""An error bound: None, or an array of float64 with the value's shape."""
COMPARISONS = frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"})
PERIODIC = frozenset({"sin", "cos", "tan"})
DATA_MOVEMENT = frozenset({"view", "reshape", "concatenate", "update", "gather", "scatter"})
"""Operations that move elements; the operands behind the first two are indices."""
SEQUENTIAL_TERMS = 512
"""About how many elements a sum adds one after the other at most, before it adds partial sums."""
NUMPY_CALL_ULP = 256
"""Error bound in ULP of what NumPy computes, which may depend on the alignment of an array."""


def run(graph: Graph, arrays: Sequence[Any], symbols: Mapping[str, int]) -> list[tuple[Any, ErrorBound]]:
    """Outputs, and then values to be written, each with its error bound."""
    known: dict[Node, tuple[Any, ErrorBound]] = {
        node: (np.asarray(array, node.dtype), None) for node, array in zip(graph.inputs, arrays, strict=True)
    }
    value = dim_bounds.SymbolValues(symbols)
    with np.errstate(all="ignore"):
        for node in graph:
            if node not in known:
                known[node] = _of_node(node, [known[operand] for operand in node.inputs], value)
    interpreter.refuse(graph, {node: result for node, (result, _) in known.items()})
    return [known[node] for node in graph.roots[len(graph.checks) :]]


def _of_node(
    node: Node, inputs: Sequence[tuple[Any, ErrorBound]], value: Callable[[Any], int]
) -> tuple[Any, ErrorBound]:
    values, error_bounds = (
        [value_of_operand for value_of_operand, _ in inputs],
        [error_bound for _, error_bound in inputs],
    )
    result = interpreter.of_node(node, values, value)
    exact = all(error_bound is None for error_bound in error_bounds)
    if OPERATIONS[node.operation].is_elementwise or node.operation == "cast":
        return result, _elementwise(node, values, error_bounds, result)
    if node.operation == "item":
        return result, _of_call(result, error_bounds[0] is None or not np.isinf(error_bounds[0]).any())
    if node.operation in ("call", "kernel"):
        return result, np.zeros(()) if exact and type(result) in (tuple, list) else _of_call(result, exact)
    if node.operation in DATA_MOVEMENT:
        if exact:
            return result, _added(node, values, value)
        if any(error_bound is not None for error_bound in error_bounds[_movable(node) :]):
            return result, np.full(result.shape, np.inf)
        operand_bounds = [
            np.zeros(np.shape(value_of_operand)) if error_bound is None else error_bound
            for value_of_operand, error_bound in zip(values, error_bounds, strict=True)
        ]
        operand_bounds[_movable(node) :] = values[_movable(node) :]
        error_bound, added = (
            np.asarray(OPERATIONS[node.operation].run(node, operand_bounds, value)),
            _added(node, values, value),
        )
        return result, error_bound if added is None else error_bound + added
    rule = {"matmul": _matmul, "reduce": _reduce, "scan": _scan}.get(node.operation)
    return result, None if rule is None else rule(node, values, error_bounds, result)


def _added(node: Node, values: Sequence[Any], value: Callable[[Any], int]) -> ErrorBound:
    """The error bound of a scatter-add, which adds at most all values to one element."""
    if not node.options.get("adds") or np.dtype(node.dtype).kind != "f":
        return None
    magnitudes = [np.abs(operand.astype("f8")) for operand in values[:2]]
    total = np.asarray(OPERATIONS[node.operation].run(node, [*magnitudes, *values[2:]], value))
    return total * float(np.finfo(node.dtype).eps) * max(np.size(values[1]), 1)


def _movable(node: Node) -> int:
    """The number of operands whose elements move; the other ones are indices."""
    return {"gather": 1, "scatter": 2}.get(node.operation, len(node.inputs))


def _of_call(result: Any, exact: bool) -> ErrorBound:
    """The error bound of an opaque NumPy function."""
    if not exact:
        return np.full(np.shape(result), np.inf)
    if getattr(result, "dtype", np.dtype(bool)).kind != "f":
        return None
    largest = np.max(np.abs(result), initial=0.0, where=np.isfinite(result))
    return np.full(result.shape, NUMPY_CALL_ULP * np.finfo(result.dtype).eps * float(largest))


def _elementwise(node: Node, values: Sequence[Any], error_bounds: Sequence[ErrorBound], result: Any) -> ErrorBound:
    scalar = OPERATIONS[node.operation].scalar
    function: Callable[..., Any] = partial(_cast, node.dtype) if scalar is None else scalar.numpy
    total = np.zeros(result.shape)
    if scalar is not None and result.dtype.kind == "f":
        limits = np.finfo(result.dtype)
        total = scalar.ulp * (limits.eps * np.abs(result.astype("f8")) + float(limits.smallest_subnormal))
        if scalar.ulp:
            # An infinity of finite operands: a sum and a product in one may have overflown later, or not at all.
            finite = np.logical_and.reduce(np.broadcast_arrays(*map(np.isfinite, values)))
            total = np.where(np.isinf(result) & finite, np.inf, total)
    for i, error_bound in enumerate(error_bounds):
        if error_bound is None:
            continue
        perturbed_operands = [
            [_moved(value, side) if i == j else value for j, value in enumerate(values)]
            for side in (error_bound, -error_bound)
        ]
        total = total + np.maximum(*(_change(result, function(*moved)) for moved in perturbed_operands))
        total = np.where(np.isinf(error_bound), np.inf, total)
    bounds = [np.zeros(()) if error_bound is None else error_bound for error_bound in error_bounds]
    if node.operation in COMPARISONS:
        near = (distance(*values) <= bounds[0] + bounds[1]) & (bounds[0] + bounds[1] > 0)
        total = np.where(near, 1.0, total)
    if node.operation in PERIODIC:
        total = np.where(bounds[0] > 0.5, np.inf, total)
    if node.operation in ("remainder", "fmod") and error_bounds[0] is not None:
        total = np.where(4 * bounds[0] > np.abs(values[1]), np.inf, total)
    return total if total.any() else None


def _cast(dtype: str, value: Any) -> Any:
    return value.astype(dtype)


def _moved(value: Any, side: Any) -> Any:
    """A value perturbed by its error bound to one side."""
    if value.dtype.kind == "b":
        return value ^ (side != 0)
    if value.dtype.kind in "fc":
        return (value.astype(_wide(value)) + side).astype(value.dtype)
    steps = np.sign(side) * np.ceil(np.minimum(np.abs(side), 2.0**52))
    return value + steps.astype("i8").astype(value.dtype)


def _wide(value: Any) -> str:
    """The dtype in which differences are taken."""
    return "c16" if value.dtype.kind == "c" else "f8"


def distance(left: Any, right: Any) -> Any:
    """The distance of the elements of two arrays of one dtype."""
    return np.abs(left.astype(_wide(left)) - right.astype(_wide(right)))


def _change(result: Any, perturbed: Any) -> Any:
    """The difference of two results; infinity where only one of them is NaN."""
    perturbed = np.asarray(perturbed)
    change = distance(perturbed, result)
    is_equal = (perturbed == result) | ((perturbed != perturbed) & (result != result))
    return np.where(is_equal, 0.0, np.where(np.isnan(change), np.inf, change))


def _rounding(dtype: Any, count: int) -> float:
    """The rounding error of a sum of `count` terms, relative to the sum of their magnitudes."""
    if np.dtype(dtype).kind != "f":
        return 0.0
    steps = min(count, SEQUENTIAL_TERMS) + 16 * np.log2(max(count, 2))
    return float(steps * np.finfo(dtype).eps)


def _reduce(node: Node, values: Sequence[Any], error_bounds: Sequence[ErrorBound], result: Any) -> ErrorBound:
    kind, axes = node.options["kind"], tuple(node.options["axes"])
    operand, error_bound = np.asarray(values[0]), error_bounds[0]
    count = int(np.prod([operand.shape[axis] for axis in axes]))
    if error_bound is None and (result.dtype.kind != "f" or kind in ("min", "max")):
        return None
    bound = np.zeros(operand.shape) if error_bound is None else error_bound
    magnitudes = np.abs(operand.astype("f8"))
    if kind == "sum":
        sums = (bound + _rounding(result.dtype, count) * magnitudes).sum(axis=axes)
        return sums if result.dtype.kind == "f" or not sums.any() else np.full(result.shape, np.inf)
    if kind == "prod":
        relative = np.where(bound > 0, bound / magnitudes, 0.0).sum(axis=axes)
        own = count * np.finfo(result.dtype).eps if result.dtype.kind == "f" else 0.0
        product = np.abs(result.astype("f8")) * (relative + own)
        return np.where(np.isnan(product), np.inf, product)
    if kind in ("min", "max"):
        return bound.max(axis=axes, initial=0.0)
    if kind in ("any", "all"):
        either = [
            np.asarray(interpreter.of_node(node, [extreme], int))
            for extreme in (operand | (bound > 0), operand & (bound == 0))
        ]
        return (either[0] != either[1]).astype("f8")
    keys = operand.astype("f8") if kind == "argmax" else -operand.astype("f8")
    threshold = np.max(keys - bound, axis=axes[0], keepdims=True, initial=-np.inf)
    near = np.count_nonzero(keys + bound >= threshold, axis=axes[0])
    return np.where(near > 1, np.inf, 0.0)


def _scan(node: Node, values: Sequence[Any], error_bounds: Sequence[ErrorBound], result: Any) -> ErrorBound:
    kind, axis = node.options["kind"], node.options["axis"]
    operand, error_bound = np.asarray(values[0]), error_bounds[0]
    if error_bound is None and (result.dtype.kind != "f" or kind in ("min", "max")):
        return None
    bound = np.zeros(operand.shape) if error_bound is None else error_bound
    if kind in ("min", "max"):
        return np.maximum.accumulate(bound, axis=axis)
    if result.dtype.kind != "f":
        return np.full(result.shape, np.inf)
    magnitudes, eps = np.abs(operand.astype("f8")), float(np.finfo(result.dtype).eps)
    if kind == "sum":
        return np.cumsum(bound + operand.shape[axis] * eps * magnitudes, axis=axis)
    product = np.abs(result.astype("f8")) * np.cumsum(eps + np.where(bound > 0, bound / magnitudes, 0.0), axis=axis)
    return np.where(np.isnan(product), np.inf, product)


def _matmul(node: Node, values: Sequence[Any], error_bounds: Sequence[ErrorBound], result: Any) -> ErrorBound:
    exact = all(error_bound is None for error_bound in error_bounds)
    if result.dtype.kind != "f":
        return None if exact else np.full(result.shape, np.inf)
    left, right = (np.abs(operand.astype("f8")) for operand in values)
    total = _rounding(result.dtype, left.shape[-1]) * np.matmul(left, right)
    if error_bounds[0] is not None:
        total = total + np.matmul(error_bounds[0], right)
    if error_bounds[1] is not None:
        total = total + np.matmul(left, error_bounds[1])
    return np.where(np.isnan(total), np.inf, total)
