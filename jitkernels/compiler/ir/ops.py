"""The table of primitive operations: each with its meaning in NumPy, elementwise ones with their scalar code.

Interpreter, frontend, passes, code generator and documentation read it; nothing else lists operations.
"""

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import partial
from typing import Any

import numpy as np

from jitkernels.compiler.ir import regions
from jitkernels.compiler.ir.elementwise_ops import SCALARS, Scalar
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.ir.symbolic_dims import same_shape
from jitkernels.core.frozen_dataclass import record

Run = Callable[[Node, Sequence[Any], Callable[[Any], int]], Any]
"""Evaluates a node with NumPy from its operands; the last argument evaluates extents."""


@record
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
    return np.matmul(*inputs)


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


def run_region(graph: Graph, arguments: Sequence[Any], value: Callable[[Any], int]) -> list[Any]:
    """The outputs of a region. Raises BailoutError where one of its checks is true."""
    known: dict[int, Any] = {id(node): argument for node, argument in zip(graph.inputs, arguments, strict=True)}
    checks = {id(node) for node in graph.checks}
    for node in graph:
        if id(node) not in known:
            inputs = [known[id(operand)] for operand in node.inputs]
            known[id(node)] = OPERATIONS[node.operation].run(node, inputs, value)
        if id(node) in checks and known[id(node)]:
            raise regions.BailoutError("a check in a loop or branch is true")
    return [known[id(node)] for node in graph.outputs]


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
        Operation("loop", partial(regions.run_loop, run_region)),
        Operation("branch", partial(regions.run_branch, run_region)),
        Operation("bounded", regions.run_bounded),
        Operation("overflows", regions.run_overflows),
    )
}
