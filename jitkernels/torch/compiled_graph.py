"""Graphs of tensors as compiled functions of arrays that share their memory."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from torch import Tensor, channels_last, contiguous_format, empty_strided, from_numpy, is_inference
from torch.fx import GraphModule, Node

from jitkernels.compiler.api.jit import jit
from jitkernels.compiler.capture.static_arrays import frozen
from jitkernels.errors import TracingError
from jitkernels.torch.result_selection import ResultSelection
from jitkernels.torch.run_graph import ArrayFunction, needed_sizes

MAX_SIZE_KEYS = 64
"""Most values of sizes for which a graph has code of its own."""


class NodeError(Exception):
    """A node cannot be compiled: `node`, and why."""

    def __init__(self, node: Node | None, reason: str) -> None:
        super().__init__(reason)
        self.node, self.reason = node, reason


class CompiledGraph:
    """A graph whose nodes are all compiled, as a function of its tensors. Calls raise NodeError for one that is not.

    `static`: the placeholders that are parameters and buffers, which are constants of the code until one changes.
    """

    def __init__(self, module: GraphModule, static: Collection[Node] = ()) -> None:
        graph = module.graph
        inputs = [node for node in graph.nodes if node.op == "placeholder"]
        (output,) = (node for node in graph.nodes if node.op == "output")
        results = output.args[0] if isinstance(output.args[0], tuple | list) else (output.args[0],)
        self._select = ResultSelection(results, inputs)
        self._outputs = self._select.computed
        self._nodes = _needed([node for node in graph.nodes if node.op == "call_function"], self._outputs)
        read = {one for node in self._nodes for one in node.all_input_nodes} | {*self._outputs}
        self._constants = {node: getattr(module, str(node.target)) for node in read if node.op == "get_attr"}
        self._positions = {node: i for i, node in enumerate(inputs)}
        self._read = [node for node in inputs if node in read or not isinstance(node.meta["val"], Tensor)]
        self._tensors = [node for node in self._read if isinstance(node.meta["val"], Tensor)]
        self._sizes = needed_sizes(self._read)
        self._static = {node for node in static if node in read}
        self._versions: list[tuple[int, int, int]] | None = None
        self._functions: dict[tuple[int, ...], tuple[Any, ArrayFunction]] = {}
        self._variable = tuple(self._positions[node] for node in self._tensors if node not in self._static)

    @property
    def functions(self) -> list[Any]:
        """The compiled functions."""
        return [function for function, _ in self._functions.values()]

    def __call__(self, *tensors: Any) -> tuple[Any, ...]:
        """The outputs of the graph."""
        if self._static:
            self._check_static(tensors)
        if not self._outputs:
            return self._select((), tensors)
        key = tuple([int(tensors[self._positions[node]]) for node in self._sizes]) if self._sizes else ()
        function, array_function = self._functions.get(key) or self._compile(key, tensors)
        arrays = [tensors[i].numpy(force=True) for i in self._variable]  # copies of what is conjugated or negated
        for place, order in array_function.transposed:
            arrays[place] = arrays[place].transpose(order)
        try:
            results = function(tuple(arrays))
        except Exception as error:
            if array_function.at is None and not isinstance(error, TracingError):
                raise  # of the elements: another call may be right
            raise NodeError(array_function.at, f"{type(error).__name__}: {error}") from error
        return self._select([from_numpy(one) if type(one) is np.ndarray else _tensor(one) for one in results], tensors)

    def _check_static(self, tensors: Sequence[Any]) -> None:
        """Read parameters once; where one is another tensor or was written to, all become arguments for good."""
        if self._versions is None:
            places = [self._positions[node] for node in self._static]
            if any(is_inference(tensors[i]) for i in places):  # these count no versions
                self._make_variable()
            else:
                self._versions = [(i, tensors[i].data_ptr(), tensors[i]._version) for i in places]
            return
        for i, address, version in self._versions:
            tensor = tensors[i]
            if tensor.data_ptr() != address or tensor._version != version:
                self._make_variable()
                return

    def _make_variable(self) -> None:
        self._static = set()
        self._variable = tuple(self._positions[node] for node in self._tensors)
        self._functions.clear()

    def _compile(self, key: tuple[int, ...], tensors: Sequence[Any]) -> tuple[Any, ArrayFunction]:
        """The function for sizes that are constants of the code, and what it traces."""
        if len(self._functions) >= MAX_SIZE_KEYS:
            self._functions.clear()
        array_function = ArrayFunction(self._nodes, self._read, self._outputs)
        array_function.sizes = dict(zip(self._sizes, key, strict=True))
        constants = self._constants | {node: tensors[self._positions[node]] for node in self._static}
        variable = [node for node in self._tensors if node not in self._static]
        array_function.set_orders({node: _memory_order(tensors[self._positions[node]]) for node in variable})
        array_function.constants = {node: frozen(tensor.numpy(force=True).copy()) for node, tensor in constants.items()}

        def graph(arrays: Any) -> Any:
            return array_function(arrays)

        function: Any = jit(graph, strict=True)
        function.is_interpreter = True
        self._functions[key] = function, array_function
        return function, array_function


def layout_of(value: Any) -> Any:
    """The strides of a tensor; where they are symbolic its memory format, and None for what is none."""
    if not isinstance(value, Tensor):
        return None
    if all(type(one) is int for one in (*value.shape, *value.stride())):
        return value.stride()
    return channels_last if value.ndim == 4 and value.is_contiguous(memory_format=channels_last) else contiguous_format


def with_layout(tensor: Any, layout: Any) -> Any:
    """A tensor in a layout, copied if it has another one."""
    if layout is None or not isinstance(tensor, Tensor) or tensor.stride() == layout:
        return tensor
    if type(layout) is not tuple:
        return tensor.contiguous(memory_format=layout)
    extents = zip(tensor.shape, tensor.stride(), layout, strict=True)
    if all(extent == 1 or stride == wanted for extent, stride, wanted in extents):
        return tensor
    shape = tensor.shape
    for axis, stride in enumerate(layout):
        tensor = tensor if stride else tensor.narrow(axis, 0, min(1, shape[axis]))
    return empty_strided(tensor.shape, layout, dtype=tensor.dtype).copy_(tensor).expand(shape)


def _memory_order(tensor: Any) -> tuple[int, ...] | None:
    """The axes from the outermost in memory on, of images and the like; None for C order, and for what is not dense."""
    if tensor.ndim < 3 or tensor.is_contiguous():
        return None
    order = tuple(sorted(range(tensor.ndim), key=lambda axis: (-tensor.stride(axis), -tensor.shape[axis])))
    return order if tensor.permute(order).is_contiguous() else None


def _tensor(array: Any) -> Any:
    """A result as a tensor; sizes stay numbers."""
    if isinstance(array, np.ndarray):
        return from_numpy(array)
    return from_numpy(np.asarray(array)) if isinstance(array, np.generic) else array


def _needed(nodes: Sequence[Node], outputs: Collection[Node]) -> list[Node]:
    """The nodes that outputs depend on."""
    wanted, kept = set(outputs), []
    for node in reversed(nodes):
        if node in wanted:
            kept.append(node)
            wanted.update(node.all_input_nodes)
    return kept[::-1]
