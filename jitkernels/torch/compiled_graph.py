"""Graphs of tensors as compiled functions of arrays that share their memory."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from torch import Tensor, channels_last, contiguous_format, empty_strided, from_numpy, is_inference
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from jitkernels.compiler.api.jit import jit
from jitkernels.compiler.capture.static_arrays import frozen
from jitkernels.errors import TracingError
from jitkernels.torch.run_graph import SIZE_OPERATORS, SIZES, ArrayFunction, needed_sizes, overload_name

VIEWS = (
    "permute.default", "t.default", "transpose.int", "view.default", "unsqueeze.default", "squeeze.dim",
    "expand.default", "slice.Tensor", "select.int", "alias.default", "detach.default", "squeeze.dims",
    "squeeze.default",
)  # fmt: skip
"""Operators whose results are views: where an output of a graph is a view of an input, torch makes it."""
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
        self._results = output.args[0] if isinstance(output.args[0], tuple | list) else (output.args[0],)
        replayed = {node: _replayed(node) for node in self._results if isinstance(node, Node)}
        self._replayed = {node: chain for node, chain in replayed.items() if chain is not None}
        computed = dict.fromkeys(one for one in self._results if isinstance(one, Node) and one not in self._replayed)
        self._nodes = _needed([node for node in graph.nodes if node.op == "call_function"], computed)
        read = {one for node in self._nodes for one in node.all_input_nodes} | set(computed)
        self._constants = {node: getattr(module, str(node.target)) for node in read if node.op == "get_attr"}
        self._outputs, self._positions = [*computed], {node: i for i, node in enumerate(inputs)}
        self._is_direct = self._outputs == [*self._results]
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
        values: dict[Node, Any] = {}
        if self._outputs:
            key = tuple([int(tensors[self._positions[node]]) for node in self._sizes]) if self._sizes else ()
            function, array_function = self._functions.get(key) or self._compile(key, tensors)
            arrays = [_array(tensors[i]) for i in self._variable]
            for place, order in array_function.transposed:
                arrays[place] = arrays[place].transpose(order)
            try:
                results = function(tuple(arrays))
            except Exception as error:
                if array_function.at is None and not isinstance(error, TracingError):
                    raise  # of the elements: another call may be right
                raise NodeError(array_function.at, f"{type(error).__name__}: {error}") from error
            if self._is_direct:
                return (*map(_tensor, results),)
            values = dict(zip(self._outputs, map(_tensor, results), strict=True))
        return tuple([self._value(one, values, tensors) for one in self._results])

    def _value(self, result: Any, values: dict[Node, Any], tensors: Sequence[Any]) -> Any:
        if not isinstance(result, Node):
            return result
        if result in values:
            return values[result]
        known: dict[Node, Any] = {}
        for node in self._replayed[result]:
            if node.op == "placeholder":
                known[node] = tensors[self._positions[node]]
            else:
                args = [map_arg(one, known.__getitem__) for one in node.args]
                known[node] = node.target(*args)
        return known[result]

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
        array_function.constants = {node: frozen(_array(tensor).copy()) for node, tensor in constants.items()}

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


def _array(tensor: Any) -> Any:
    """The memory of a tensor as an array; of one that is conjugated or negated when it is read, that of a copy."""
    tensor = tensor.detach() if tensor.requires_grad else tensor
    try:
        return tensor.numpy()
    except RuntimeError:
        return tensor.resolve_conj().resolve_neg().numpy()


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


def _replayed(node: Node) -> list[Node] | None:
    """A size, or a view of an argument, with all nodes that it depends on; None where it is computed."""
    chain: dict[Node, None] = {}
    waiting = [node]
    while waiting:
        one = waiting.pop()
        is_view = one.target in SIZE_OPERATORS or overload_name(one.target) in (*SIZES, *VIEWS)
        if one.op != "placeholder" and (not is_view or one.kwargs):
            return None
        chain.pop(one, None)
        chain[one] = None
        waiting += one.all_input_nodes
    return [*reversed(chain)]
