"""The table of primitive operations: each with its meaning in NumPy, elementwise ones with their scalar code.

Interpreter, frontend, passes, code generator and documentation read it; nothing else lists operations.
"""

import operator
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from jitkernels.compiler.ir.dim_bounds import SymbolValues
from jitkernels.compiler.ir.elementwise_ops import SCALARS, Scalar
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.ir.regions import LoopParts
from jitkernels.compiler.ir.symbolic_dims import same_shape
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.errors import GraphError
from jitkernels.microkernels.prepacked.panels import unpacked_columns

Run = Callable[[Node, Sequence[Any], Callable[[Any], int]], Any]
"""Evaluates a node with NumPy from its operands; the last argument evaluates extents."""


@frozen_dataclass
class Operation:
    """One operation. `scalar`: present for elementwise ones; `run` evaluates a node with NumPy."""

    name: str
    run: Run = field(repr=False)
    scalar: Scalar | None = None

    @property
    def is_elementwise(self) -> bool:
        return self.scalar is not None

    def verify(self, node: Node) -> str:
        """What is wrong with a node of this operation; "" if nothing is."""
        if self.name == "view" and len(node.options["map"]) != node.inputs[0].ndim:
            return "expected a map entry for each dimension of the input"
        if self.name == "cast" and not same_shape(node.shape, node.inputs[0].shape):
            return "expected the shape of the input"
        if self.scalar is not None:
            return self.scalar.verify(node)
        return ""


def _elementwise(scalar: Scalar) -> Operation:
    def run(node: Node, inputs: Sequence[Any], value: Callable[[Any], int]) -> Any:
        return scalar.numpy(*inputs)

    return Operation(scalar.name, run, scalar)


def _constant(node: Node, inputs: Sequence[Any], value: Callable[[Any], int]) -> Any:
    return np.asarray(node.options["value"]).astype(node.dtype)


def _extent(node: Node, inputs: Sequence[Any], value: Callable[[Any], int]) -> Any:
    return np.asarray(value(node.options["extent"])).astype(node.dtype)


def _cast(node: Node, inputs: Sequence[Any], value: Callable[[Any], int]) -> Any:
    return np.asarray(inputs[0]).astype(node.dtype)


def _view(node: Node, inputs: Sequence[Any], value: Callable[[Any], int]) -> Any:
    return strided_view(np.asarray(inputs[0]), node.options["map"], tuple(map(value, node.shape)), value)


def strided_view(array: Any, index_map: Any, shape: tuple[int, ...], value: Callable[[Any], int]) -> Any:
    """The view that an index map selects: the index in each dimension of the array is its start plus its steps."""
    sliced = _sliced(array, index_map, shape, value)
    if sliced is not None:
        return sliced
    strides = [0] * len(shape)
    first: list[Any] = []
    offset = 0
    for stride, (start, steps) in zip(array.strides, index_map, strict=True):
        for dimension, step in steps:
            strides[dimension] += stride * value(step)
        first.append(slice(value(start), None))
        offset += stride * value(start)
    owner = array if array.flags.c_contiguous else array.base
    if 0 not in shape and type(owner) is np.ndarray and owner.flags.c_contiguous:
        # NumPy keeps the owner of a buffer, so that the view has a base.
        offset += array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
        return np.ndarray(shape, array.dtype, owner, offset, strides)
    return np.lib.stride_tricks.as_strided(array[tuple(first)] if first else array, shape, strides)


def _sliced(array: Any, index_map: Any, shape: tuple[int, ...], value: Callable[[Any], int]) -> Any:
    """The view by basic slicing, which is several times faster in NumPy; None where slices cannot express it."""
    index: list[Any] = []
    order: list[int] = []
    for start, steps in index_map:
        begin = value(start)
        if not steps:
            index.append(begin)
            continue
        dimension, step = steps[0]
        stride = value(step)
        if len(steps) > 1 or not stride:
            return None
        end = begin + stride * shape[dimension]
        index.append(slice(begin, end if end >= 0 else None, stride))
        order.append(dimension)
    if len(order) != len(shape) or len({*order}) < len(order):
        return None
    view = array[(*index, ...)]
    permutation = [order.index(i) for i in range(len(shape))]
    return view if permutation == order == sorted(order) else view.transpose(permutation)


def _reshape(node: Node, inputs: Sequence[Any], value: Callable[[Any], int]) -> Any:
    return np.reshape(inputs[0], tuple(map(value, node.shape)))


REDUCTIONS: dict[str, Any] = {
    "sum": np.add.reduce, "prod": np.multiply.reduce, "min": np.minimum.reduce, "max": np.maximum.reduce,
    "any": np.logical_or.reduce, "all": np.logical_and.reduce,
}  # fmt: skip
"""Reductions over one or more axes; ``argmin`` and ``argmax`` take one axis, or the whole array as a vector."""


def _reduce(node: Node, inputs: Sequence[Any], value: Callable[[Any], int]) -> Any:
    kind, axes = node.options["kind"], node.options["axes"]
    array = np.asarray(inputs[0])
    if kind in ("argmin", "argmax"):
        return getattr(np, kind)(array, axis=axes[0])
    if kind == "sum" and array.dtype.kind == "f" and axes and axes[-1] != array.ndim - 1:
        array, axes = (
            np.ascontiguousarray(np.moveaxis(array, axes, range(-len(axes), 0))),
            tuple(range(-len(axes), 0)),
        )
    return REDUCTIONS[kind](array, axis=tuple(axes), dtype=node.dtype)


def _scan(node: Node, inputs: Sequence[Any], value: Callable[[Any], int]) -> Any:
    ufunc = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}[node.options["kind"]]
    return ufunc.accumulate(np.asarray(inputs[0]), axis=node.options["axis"], dtype=node.dtype)


def _iota(node: Node, inputs: Sequence[Any], value: Callable[[Any], int]) -> Any:
    shape, axis = tuple(map(value, node.shape)), node.options["axis"]
    numbers = np.arange(shape[axis], dtype=node.dtype).reshape(*[-1 if i == axis else 1 for i in range(len(shape))])
    return np.broadcast_to(numbers, shape)


def _matmul(node: Node, inputs: Sequence[Any], value: Callable[[Any], int]) -> Any:
    left, right = inputs
    if node.options.get("is_packed"):
        right = unpacked_columns(right, value(node.shape[-1]))
    return np.matmul(left, right)


def _concatenate(node: Node, inputs: Sequence[Any], value: Callable[[Any], int]) -> Any:
    return np.concatenate(inputs, axis=node.options["axis"])


def _update(node: Node, inputs: Sequence[Any], value: Callable[[Any], int]) -> Any:
    changed = np.array(inputs[0])
    shape = tuple(map(value, node.options["extents"]))
    strided_view(changed, node.options["map"], shape, value)[...] = inputs[1]
    return changed


def _gather(node: Node, inputs: Sequence[Any], value: Callable[[Any], int]) -> Any:
    array, *indices = inputs
    axis = node.options["axis"]
    return np.asarray(array)[(slice(None),) * axis + tuple(indices)]


def _scatter(node: Node, inputs: Sequence[Any], value: Callable[[Any], int]) -> Any:
    array, values, *indices = inputs
    changed = np.array(array)
    key: Any = (slice(None),) * node.options["axis"] + tuple(indices)
    if node.options.get("adds"):
        np.add.at(changed, key, values)
    else:
        changed[key] = values
    return changed


def _placed(node: Node, inputs: Sequence[Any], value: Callable[[Any], int]) -> Any:
    return inputs[0]


def _call(node: Node, inputs: Sequence[Any], value: Callable[[Any], int]) -> Any:
    return node.options["function"](*inputs)


def _kernel(node: Node, inputs: Sequence[Any], value: Callable[[Any], int]) -> Any:
    kernel = node.options["function"]
    results = kernel.run({name: value(size) for name, size in kernel.values.items()}, inputs)
    shapes = [tuple(map(value, shape)) for _, shape in node.options["results"]]
    return tuple(result.reshape(shape) for result, shape in zip(results, shapes, strict=True))


def _item(node: Node, inputs: Sequence[Any], value: Callable[[Any], int]) -> Any:
    return inputs[0][node.options["index"]]


def _input(node: Node, inputs: Sequence[Any], value: Callable[[Any], int]) -> Any:
    raise AssertionError("the caller passes the values of inputs")


class BailoutError(ValueError):
    """A check of a region is true: the compiled call bails out and NumPy computes the result."""


def run_region(graph: Graph, arguments: Sequence[Any], value: Callable[[Any], int]) -> list[Any]:
    """The outputs of a region. Raises BailoutError where one of its checks is true."""
    known: dict[Node, Any] = dict(zip(graph.inputs, arguments, strict=True))
    for node in graph:
        if node not in known:
            known[node] = OPERATIONS[node.operation].run(node, [known[operand] for operand in node.inputs], value)
        if node in graph.checks and known[node]:
            raise BailoutError("a check in a loop or branch is true")
    return [known[node] for node in graph.outputs]


def _loop(node: Node, inputs: Sequence[Any], value: Callable[[Any], int]) -> tuple[Any, ...]:
    loop = LoopParts(node)
    induction, end, step = map(int, inputs[:3]) if loop.counts else (0, 0, 1)
    first_captured = loop.first_operand + loop.carried_count
    carried, captured = [*map(np.array, inputs[loop.first_operand : first_captured])], inputs[first_captured:]
    while not loop.counts or (induction < end if step > 0 else induction > end):
        arguments = [*([np.int64(induction)] if loop.counts else []), *carried, *captured]
        for operand, number in zip(loop.body.inputs, arguments, strict=True):
            if "symbol" in operand.options and isinstance(value, SymbolValues):
                value.symbols[operand.options["symbol"]] = int(number)
        (condition,) = run_region(loop.condition, arguments, value)
        if not condition:
            break
        carried = [*map(np.array, run_region(loop.body, arguments, value))]
        induction += step
    return tuple(carried)


def _branch(node: Node, inputs: Sequence[Any], value: Callable[[Any], int]) -> tuple[Any, ...]:
    condition, *captured = inputs
    return tuple(run_region(node.options["yes" if condition else "no"], captured, value))


def _bounded(node: Node, inputs: Sequence[Any], value: Callable[[Any], int]) -> Any:
    """The index wrapped to count from 0. Raises BailoutError if it is out of bounds."""
    extent, index = value(node.options["extent"]), int(inputs[0])
    if not -extent <= index < extent:
        raise BailoutError(f"index {index} is out of bounds for axis with size {extent}")
    return np.int64(index + extent if index < 0 else index)


def _native_call(node: Node, inputs: Sequence[Any], value: Callable[[Any], int]) -> tuple[Any, ...]:
    """The result of a native function, and the order token."""
    address, _, *arguments = inputs
    return node.options["signature"].call(int(address), arguments), np.False_


WHOLE: dict[str, Callable[[int, int], int]] = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul}
"""Operations that may overflow 64 bits, as Python functions without overflow."""


def _overflows(node: Node, inputs: Sequence[Any], value: Callable[[Any], int]) -> Any:
    """Whether a sum, difference or product of two int64 overflows."""
    result = WHOLE[node.options["of"]](*map(int, inputs))
    return np.bool_(not -(2**63) <= result < 2**63)


OPERATIONS: dict[str, Operation] = {
    operation.name: operation
    for operation in (
        *map(_elementwise, SCALARS.values()),
        Operation("input", _input),
        Operation("constant", _constant),
        Operation("extent", _extent),
        Operation("cast", _cast),
        Operation("view", _view),
        Operation("reshape", _reshape),
        Operation("reduce", _reduce),
        Operation("scan", _scan),
        Operation("iota", _iota),
        Operation("matmul", _matmul),
        Operation("concatenate", _concatenate),
        Operation("update", _update),
        Operation("gather", _gather),
        Operation("scatter", _scatter),
        Operation("placed", _placed),
        Operation("call", _call),
        Operation("kernel", _kernel),
        Operation("item", _item),
        Operation("parameter", _input),
        Operation("loop", _loop),
        Operation("branch", _branch),
        Operation("bounded", _bounded),
        Operation("overflows", _overflows),
        Operation("native_call", _native_call),
    )
}


COSTS = {"reduce": 2.0, "gather": 4.0, "scan": 8.0}
"""In additions: the cost of operations that are not elementwise; 0.5 for all others."""
DELICATE = 4.0
"""Cost from which on operations may fail for 1, 0 and values computed from them: divisions, roots, functions."""


def own_cost(node: Node) -> float:
    """The cost of a node without its inputs, in additions: of fusion, rematerialization and threading."""
    scalar = OPERATIONS[node.operation].scalar
    return scalar.cost if scalar is not None else COSTS.get(node.operation, 0.5)


def keeps_fp_flags_exact(node: Node) -> bool:
    """Whether an operation may raise floating-point flags for values such as 1 in inactive lanes."""
    return own_cost(node) >= DELICATE


def verify(graph: Graph) -> None:
    """Raise GraphError where a graph violates an invariant that passes and the code generator rely on."""
    known = set(graph.inputs)
    for node in graph:
        operation = OPERATIONS.get(node.operation)
        if operation is None:
            raise GraphError(f"{node!r}: there is no operation {node.operation!r}")
        if node.operation == "input" and node not in known:
            raise GraphError(f"{node!r} is an input that the graph does not have")
        problem = operation.verify(node)
        if problem:
            raise GraphError(f"{node!r}: {problem}")
    for target, value in graph.writes:
        if target not in known or target.dtype != value.dtype:
            raise GraphError(f"{value!r} is written to {target!r}: expected an input of its dtype")
