"""The reverse pass through a branch: a branch of the same condition whose sides go back.

Sides compute again what they need of the way there, but for elements of arrays, results of loops and the like: those
are results of the branch as well, for what changes arrays may have changed them since.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jitkernels.graph import construct
from jitkernels.graph.cloning import reached, region
from jitkernels.graph.construct import UnknownError, zeros
from jitkernels.graph.extents import is_moving
from jitkernels.graph.flows import landed, unsupported
from jitkernels.graph.ir import Graph, Node, sorted_nodes
from jitkernels.graph.looping import Pull, is_float
from jitkernels.graph.needs import Needs
from jitkernels.graph.regions import items, parameter
from jitkernels.graph.tapes import before_first
from jitkernels.graph.totals import Around, Totals

SIDES = ("yes", "no")


def of_branch(
    node: Node, given: Mapping[int, Node], active: set[int], around: Around, pull: Pull, totals: Totals
) -> None:
    """Add to the sums what flows to the inputs of a branch, from the cotangents of some of its results."""
    captured, bases = node.inputs[1:], node.options["bases"]
    wanted = [i for i, one in enumerate(captured) if id(one) in active and is_float(one)]
    cotangents = {j: parameter(given[j].dtype, given[j].shape, 0) for j in sorted(given)}
    at = {bases[j]: one for j, one in cotangents.items() if bases[j] >= 0}
    inputs = [(one, given[j]) for j, one in cotangents.items()]
    sums: dict[int, Node] = {}
    continued: set[int] = set()
    for i in wanted:
        one = captured[i]
        before = totals.dense(one) if all(one is not captured[k] for k in continued) else None
        if before is not None:
            continued.add(i)
        elif i in at or not one.ndim:
            continue  # arrays that the branch changes have sums in the memory of what flows to the changed ones
        sums[i] = at[i] = parameter(one.dtype, one.shape, 0)
        inputs.append((at[i], before or zeros(one.dtype, one.shape)))
    sides = [Side(node.options[name], sums, cotangents, wanted, around, pull) for name in SIDES]
    found = Back(node, sides, inputs, around).results(wanted, at)
    for i, item in zip(wanted, found, strict=True):
        (totals.put if i in continued else totals.add)(captured[i], item)


class Side:
    """One side: what flows back through it, and what of the way there is kept for that."""

    def __init__(
        self,
        graph: Graph,
        sums: Mapping[int, Node],
        cotangents: Mapping[int, Node],
        wanted: Sequence[int],
        around: Around,
        pull: Pull,
    ) -> None:
        self.graph, self.inner, own = graph, around.inside(1), graph.inputs
        totals = pull(
            [graph.outputs[j] for j in cotangents],
            list(cotangents.values()),
            [own[i] for i in wanted],
            self.inner,
            {id(own[i]): one for i, one in sums.items()},
        )
        self.back = [totals.of(own[i]) or zeros(own[i].dtype, own[i].shape) for i in wanted]
        self.opened = self.inner.opened
        before, tapes = [one for one, _ in self.opened], [one for _, one in self.opened if one.ndim]
        forward = [*sorted_nodes(graph.roots), *own, *self.inner.made]
        needs = Needs({id(one): one for one in forward}, [*own, *tapes, *before], keeps_elements=True)
        needs.need(self.back)
        self.kept = list(needs.kept.values())


class Back:
    """The branch back. `inputs`: what its sides take beside what the branch takes, with their parameters."""

    def __init__(
        self, node: Node, sides: Sequence[Side], inputs: list[tuple[Node, Node]], around: Around
    ) -> None:
        self.node, self.sides, self.inputs, self.around = node, sides, inputs, around
        self.replaced: list[dict[int, Node]] = [{}, {}]
        if any(side.kept or side.opened for side in sides):
            self._keep()

    def _keep(self) -> None:
        """Have the branch give what its sides keep, and tapes that they write to."""
        node, around = self.node, self.around
        outputs = [list(side.graph.outputs) for side in self.sides]
        bases, first = list(node.options["bases"]), len(node.inputs) - 1
        given: list[tuple[Node, Node]] = []
        taken: list[tuple[Node, dict[int, Node] | None, Node]] = []
        for number, side in enumerate(self.sides):
            for one in side.kept:
                if any(map(is_moving, one.shape)):
                    raise UnknownError("a branch with arrays of other sizes in each round")
                room = parameter(one.dtype, one.shape, 0)
                if one.ndim:
                    given.append((room, zeros(one.dtype, one.shape)))
                bases.append(first + len(given) - 1 if one.ndim else -1)
                outputs[number].append(landed(one, room))
                outputs[1 - number].append(room if one.ndim else construct.constant(0, one.dtype))
                taken.append((one, self.replaced[number], room))
            for before, after in side.opened:
                given.append((before, before_first(before, is_open=around.is_open)))
                self.inputs.append(given[-1])
                bases.append(first + len(given) - 1 if before.ndim else -1)
                outputs[number].append(after)
                outputs[1 - number].append(before)
                taken.append((after, None, before))
        options: dict[str, Any] = {
            name: region(
                [*side.graph.inputs, *(own for own, _ in given)],
                own_outputs,
                side.graph.checks,
                side.inner.replaced(sorted_nodes([*side.graph.roots, *own_outputs])),
            )
            for name, side, own_outputs in zip(SIDES, self.sides, outputs, strict=True)
        }
        options |= {"bases": tuple(bases), "serves": node.options["yes"]}
        made = Node("branch", (*node.inputs, *(one for _, one in given)), "int64", (), options)
        found = items(made, outputs[0])
        around.keep(node, found)
        for (one, replaced, own), item in zip(taken, found[len(node.options["bases"]) :], strict=True):
            if replaced is None:
                first_of = next(first for before, first in given if before is own)
                if around.is_open:
                    around.opened.append((first_of, item))
                self.inputs.append((one, item))
            else:
                replaced[id(one)] = parameter(one.dtype, one.shape, 0)
                self.inputs.append((replaced[id(one)], item))

    def results(self, wanted: Sequence[int], at: Mapping[int, Node]) -> list[Node]:
        """What flows to the wanted inputs; `at`: in whose memory sums of arrays are."""
        node, captured = self.node, self.node.inputs[1:]
        outputs = [
            [
                landed(one, at[i]) if captured[i].ndim else one
                for i, one in zip(wanted, side.back, strict=True)
            ]
            for side in self.sides
        ]
        used: set[int] = set()
        for own_outputs, replaced in zip(outputs, self.replaced, strict=True):
            used |= reached(own_outputs, replaced).keys()
        kept = [
            i for i in range(len(captured)) if any(id(side.graph.inputs[i]) in used for side in self.sides)
        ]
        must = {id(one) for one in at.values()}
        inputs = [(own, one) for own, one in self.inputs if id(own) in used or id(own) in must]
        options: dict[str, Any] = {}
        for name, side, own_outputs, replaced in zip(SIDES, self.sides, outputs, self.replaced, strict=True):
            own = [side.graph.inputs[i] for i in kept]
            options[name] = region([*own, *(one for one, _ in inputs)], own_outputs, (), replaced)
            missing = unsupported(options[name])
            if missing:
                raise UnknownError(f"a branch, which would need {missing} in it")
        places = {id(own): len(kept) + number for number, (own, _) in enumerate(inputs)}
        options["bases"] = tuple(places[id(at[i])] if captured[i].ndim else -1 for i in wanted)
        given = [*(captured[i] for i in kept), *(one for _, one in inputs)]
        made = Node("branch", (node.inputs[0], *given), "int64", (), options)
        return items(made, [captured[i] for i in wanted])
