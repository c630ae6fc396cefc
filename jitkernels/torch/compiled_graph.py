"""Graphs of tensors as compiled functions of arrays that share their memory."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.fx import Graph, Node
from torch.fx.node import map_arg

from jitkernels.compiler.api.jit import jit
from jitkernels.compiler.capture.static_arrays import frozen
from jitkernels.torch.run_graph import SIZE_OPERATORS, SIZES, ArrayFunction, needed_sizes, overload_name

VIEWS = (
    "permute.default", "t.default", "transpose.int", "view.default", "unsqueeze.default", "squeeze.dim", "expand.default",
    "slice.Tensor", "select.int", "alias.default", "detach.default", "squeeze.dims", "squeeze.default",
)  # fmt: skip
"""Operators whose results are views: where an output of a graph is a view of an input, torch makes it."""
MAX_SIZES = 64
"""Most values of sizes for which a graph has code of its own."""


class CompiledGraph:
    """A graph whose nodes are all compiled, as a function of its tensors.

    `static`: the positions of arguments that are parameters and buffers, which are constants of the code until one
    changes.
    """

    def __init__(self, graph: Graph, static: Sequence[int] = ()) -> None:
        inputs = [node for node in graph.nodes if node.op == "placeholder"]
        (output,) = (node for node in graph.nodes if node.op == "output")
        self._results = _flat(output.args[0])
        replayed = {node: _replayed(node) for node in self._results if isinstance(node, Node)}
        self._replayed = {node: chain for node, chain in replayed.items() if chain is not None}
        computed = dict.fromkeys(one for one in self._results if isinstance(one, Node) and one not in self._replayed)
        nodes = _needed([node for node in graph.nodes if node.op == "call_function"], computed)
        read = {one for node in nodes for one in node.all_input_nodes} | set(computed)
        self._inputs, self._positions = inputs, {node: i for i, node in enumerate(inputs)}
        self._outputs, self._nodes, self._static = [*computed], nodes, tuple(static)
        symbols = {one for one in inputs if not isinstance(one.meta["val"], torch.Tensor)}
        self._read = [node for node in inputs if node in read or node in symbols]
        self._sizes = needed_sizes(self._read)
        self._known: list[tuple[int, Any, int]] | None = None
        self._functions: dict[tuple[int, ...], Any] = {}
        self._tensors = tuple(
            self._positions[node] for node in self._read if isinstance(node.meta["val"], torch.Tensor)
        )
        self._variable = self._tensors

    @property
    def functions(self) -> list[Any]:
        """The compiled functions."""
        return [*self._functions.values()]

    def __call__(self, *tensors: Any) -> tuple[Any, ...]:
        """The outputs of the graph."""
        if self._static:
            self._check_static(tensors)
        arrays = tuple([_array(tensors[i]) for i in self._variable])
        key = tuple([int(tensors[self._positions[node]]) for node in self._sizes]) if self._sizes else ()
        function = self._functions.get(key)
        if function is None:
            function = self._compile(key, tensors)
        results = iter([_tensor(result) for result in function(arrays)]) if self._outputs else iter(())
        values = dict(zip(self._outputs, results, strict=True))
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
                known[node] = node.target(*args)  # type: ignore[operator]  # a function of torch or of Python
        return known[result]

    def _check_static(self, tensors: Sequence[Any]) -> None:
        """Read parameters once; where one is another tensor or was written to, all become arguments for good."""
        if self._known is None:
            used = [i for i in self._static if i in self._tensors]
            self._known = [(i, tensors[i].data_ptr(), tensors[i]._version) for i in used]
            self._variable = tuple(i for i in self._tensors if i not in set(used))
            return
        for i, address, version in self._known:
            tensor = tensors[i]
            if tensor.data_ptr() != address or tensor._version != version:
                self._static, self._variable = (), self._tensors
                self._functions.clear()
                return

    def _compile(self, key: tuple[int, ...], tensors: Sequence[Any]) -> Any:
        if len(self._functions) >= MAX_SIZES:
            self._functions.clear()
        array_function = ArrayFunction(self._nodes, self._read, self._outputs)
        array_function.sizes = dict(zip(self._sizes, key, strict=True))
        if self._static:
            used = {i for i, _, _ in self._known or ()}
            array_function.constants = {
                node: frozen(_array(tensors[self._positions[node]]).copy())
                for node in self._read if self._positions[node] in used
            }  # fmt: skip

        def graph(arrays: Any) -> Any:
            return array_function(arrays)

        function = self._functions[key] = jit(graph, strict=True)
        function.is_interpreter = True
        return function


def _array(tensor: Any) -> Any:
    """The memory of a tensor as an array."""
    return tensor.detach().numpy() if tensor.requires_grad else tensor.numpy()


def _tensor(array: Any) -> Any:
    """A result as a tensor; sizes stay numbers."""
    if isinstance(array, np.ndarray):
        return torch.from_numpy(array)
    return torch.from_numpy(np.asarray(array)) if isinstance(array, np.generic) else array


def _flat(results: Any) -> list[Any]:
    return [*results] if isinstance(results, tuple | list) else [results]


def _needed(nodes: Sequence[Node], outputs: Any) -> list[Node]:
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
        is_size = one.target in SIZE_OPERATORS or overload_name(one.target) in SIZES
        if one.op != "placeholder" and not (is_size or overload_name(one.target) in VIEWS) or one.kwargs:
            return None
        chain.pop(one, None)
        chain[one] = None
        waiting += one.all_input_nodes
    return [*reversed(chain)]

