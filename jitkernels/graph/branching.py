"""The reverse pass through a branch: a branch whose sides compute forwards once more, and then backwards."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jitkernels.graph import construct
from jitkernels.graph.construct import UnknownError, zeros
from jitkernels.graph.flows import unsupported
from jitkernels.graph.ir import Graph, Node
from jitkernels.graph.regions import items, parameter

Pull = Callable[[Sequence[Node], Sequence[Node], Sequence[Node]], list[Node]]
"""The reverse pass: outputs, their cotangents and variables give the cotangents of these."""


def of_branch(node: Node, given: Mapping[int, Node], active: set[int], pull: Pull) -> Sequence[Node | None]:
    """For each input of a branch its cotangent, from those of some of the results."""
    captured = node.inputs[1:]
    wanted = [i for i, one in enumerate(captured) if id(one) in active]
    places = sorted(given)
    room = [zeros(captured[i].dtype, captured[i].shape) for i in wanted if captured[i].ndim]
    inputs = [*captured, *(given[i] for i in places), *room]
    first = len(captured) + len(places)
    options: dict[str, Any] = {}
    for name in ("yes", "no"):
        own = [parameter(one.dtype, one.shape, i) for i, one in enumerate(inputs)]
        outputs = _again(node.options[name], own)
        found = pull([outputs[i] for i in places], own[len(captured) : first], [own[i] for i in wanted])
        made = [construct.copy(one) if one.ndim else one for one in found]
        options[name] = Graph(tuple(own), tuple(made))
        missing = unsupported(options[name])
        if missing:
            raise UnknownError(f"a branch, which would need {missing} in it")
    rooms = iter(range(first, len(inputs)))
    options["bases"] = tuple(next(rooms) if captured[i].ndim else -1 for i in wanted)
    made_of = items(
        Node("branch", (node.inputs[0], *inputs), "int64", (), options), [captured[i] for i in wanted]
    )
    result: list[Node | None] = [None] * len(node.inputs)
    for i, one in zip(wanted, made_of, strict=True):
        result[i + 1] = one
    return result


def _again(region: Graph, own: Sequence[Node]) -> list[Node]:
    """The outputs of a region, computed from other parameters."""
    new = {id(one): other for one, other in zip(region.inputs, own, strict=False)}
    for node in region:
        if id(node) not in new:
            new[id(node)] = node.with_inputs([new[id(one)] for one in node.inputs])
    return [new[id(one)] for one in region.outputs]
