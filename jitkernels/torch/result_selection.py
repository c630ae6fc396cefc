"""The results of a graph that need no kernel: arguments, views of them, sizes and constants."""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from torch.fx import Node
from torch.fx.node import map_arg

from jitkernels.torch.run_graph import SIZE_OPERATORS, SIZES, overload_name

VIEWS = (
    "permute.default", "t.default", "transpose.int", "view.default", "unsqueeze.default", "squeeze.dim",
    "expand.default", "slice.Tensor", "select.int", "alias.default", "detach.default", "squeeze.dims",
    "squeeze.default",
)  # fmt: skip
"""Operators whose results are views: where an output of a graph is a view of an input, torch makes it."""


class ResultSelection:
    """Puts the results of a graph together, from what kernels compute and from the arguments, as decided once.

    `computed`: the results that kernels compute. A small model has more results than kernels, so that each call takes
    most of them by one `itemgetter`.
    """

    def __init__(self, results: Sequence[Any], inputs: Sequence[Node]) -> None:
        chains = {node: _chain(node) for node in results if isinstance(node, Node)}
        self.computed = [node for node, chain in chains.items() if chain is None]
        self._inputs = tuple(inputs)
        others = dict.fromkeys(node for node in chains if chains[node] is not None and node.op != "placeholder")
        self._chains: list[tuple[Node, list[Node]]] = [(node, chains[node] or []) for node in others]
        constants = [one for one in results if not isinstance(one, Node)]
        self._constants = tuple(constants)
        places = {node: place for place, node in enumerate((*self.computed, *inputs, *others))}
        next_constant = iter(range(len(places), len(places) + len(constants)))
        chosen = [places[one] if isinstance(one, Node) else next(next_constant) for one in results]
        self._is_all = chosen == [*range(len(self.computed))]
        self._select: Any = itemgetter(*chosen) if len(chosen) > 1 else lambda pool: tuple(pool[i] for i in chosen)

    def __call__(self, computed: Sequence[Any], tensors: Sequence[Any]) -> tuple[Any, ...]:
        """The results, from what was computed and the arguments."""
        if self._is_all:
            return (*computed,)
        views = [self._replay(node, chain, tensors) for node, chain in self._chains] if self._chains else ()
        return self._select((*computed, *tensors, *views, *self._constants))  # type: ignore[no-any-return]

    def _replay(self, result: Node, chain: Sequence[Node], tensors: Sequence[Any]) -> Any:
        """A view of an argument, or a size of one."""
        known: dict[Node, Any] = dict(zip(self._inputs, tensors, strict=True))
        for node in chain:
            if node.op != "placeholder":
                known[node] = node.target(*[map_arg(one, known.__getitem__) for one in node.args])
        return known[result]


def _chain(node: Node) -> list[Node] | None:
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
