"""Reverse mode through a branch: a branch on the same condition whose sides run backwards.

The sides recompute the forward values that they need, but for elements of arrays, results of loops and the like: the
forward branch returns those as well, since an in-place update may overwrite the arrays.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jitkernels.compiler.autodiff.checkpoint_policy import CheckpointPolicy
from jitkernels.compiler.autodiff.cotangent_accumulator import Around, CotangentAccumulator
from jitkernels.compiler.autodiff.loop_vjp import Pull, is_float
from jitkernels.compiler.autodiff.tapes import value_before_loop
from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import UnknownError, zeros
from jitkernels.compiler.ir.clone_region import reached, region
from jitkernels.compiler.ir.graph import Graph, Node, sorted_nodes
from jitkernels.compiler.ir.region_memory import landed, unsupported
from jitkernels.compiler.ir.regions import items, parameter
from jitkernels.compiler.ir.symbolic_dims import is_moving

SIDES = ("yes", "no")


def branch_cotangents(
    node: Node,
    result_cotangents: Mapping[int, Node],
    active: set[int],
    around: Around,
    pull: Pull,
    totals: CotangentAccumulator,
) -> None:
    """Accumulate the cotangents of a branch's operands from those of some of its results."""
    captured, bases = node.inputs[1:], node.options["bases"]
    differentiable = [i for i, value in enumerate(captured) if id(value) in active and is_float(value)]
    cotangents = {
        j: parameter(result_cotangents[j].dtype, result_cotangents[j].shape, 0) for j in sorted(result_cotangents)
    }
    home = {bases[j]: value for j, value in cotangents.items() if bases[j] >= 0}
    inputs = [(value, result_cotangents[j]) for j, value in cotangents.items()]
    sums: dict[int, Node] = {}
    continued: set[int] = set()
    for i in differentiable:
        value = captured[i]
        previous = totals.dense(value) if all(value is not captured[k] for k in continued) else None
        if previous is not None:
            continued.add(i)
        elif i in home or not value.ndim:
            continue  # the sum of an array that the branch updates shares the memory of the updated array's cotangent
        sums[i] = home[i] = parameter(value.dtype, value.shape, 0)
        inputs.append((home[i], previous or zeros(value.dtype, value.shape)))
    sides = [Side(node.options[name], sums, cotangents, differentiable, around, pull) for name in SIDES]
    branch_results = BranchBackward(node, sides, inputs, around).results(differentiable, home)
    for i, item in zip(differentiable, branch_results, strict=True):
        (totals.put if i in continued else totals.add)(captured[i], item)


class Side:
    """One side: its backward pass, and the forward values that it needs to be stored."""

    def __init__(
        self,
        graph: Graph,
        sums: Mapping[int, Node],
        cotangents: Mapping[int, Node],
        differentiable: Sequence[int],
        around: Around,
        pull: Pull,
    ) -> None:
        self.graph, self.inner, own = graph, around.inside(1), graph.inputs
        totals = pull(
            [graph.outputs[j] for j in cotangents],
            list(cotangents.values()),
            [own[i] for i in differentiable],
            self.inner,
            {id(own[i]): node for i, node in sums.items()},
        )
        self.back = [totals.of(own[i]) or zeros(own[i].dtype, own[i].shape) for i in differentiable]
        self.opened = self.inner.opened
        previous, tapes = [node for node, _ in self.opened], [node for _, node in self.opened if node.ndim]
        forward = [*sorted_nodes(graph.roots), *own, *self.inner.made]
        policy = CheckpointPolicy({id(node): node for node in forward}, [*own, *tapes, *previous], keeps_elements=True)
        policy.require(self.back)
        self.kept = list(policy.kept.values())


class BranchBackward:
    """The backward branch. `inputs`: what its sides capture beside what the branch captures, with their parameters."""

    def __init__(self, node: Node, sides: Sequence[Side], inputs: list[tuple[Node, Node]], around: Around) -> None:
        self.node, self.sides, self.inputs, self.around = node, sides, inputs, around
        self.replaced: list[dict[int, Node]] = [{}, {}]
        if any(side.kept or side.opened for side in sides):
            self._keep()

    def _keep(self) -> None:
        """Let the forward branch return the values that its sides store, and the tapes that they write."""
        node, around = self.node, self.around
        outputs = [list(side.graph.outputs) for side in self.sides]
        bases, first = list(node.options["bases"]), len(node.inputs) - 1
        extra_inputs: list[tuple[Node, Node]] = []
        extra_results: list[tuple[Node, dict[int, Node] | None, Node]] = []
        for index, side in enumerate(self.sides):
            for value in side.kept:
                if any(map(is_moving, value.shape)):
                    raise UnknownError("a branch with arrays whose sizes differ from iteration to iteration")
                home = parameter(value.dtype, value.shape, 0)
                if value.ndim:
                    extra_inputs.append((home, zeros(value.dtype, value.shape)))
                bases.append(first + len(extra_inputs) - 1 if value.ndim else -1)
                outputs[index].append(landed(value, home))
                outputs[1 - index].append(home if value.ndim else builder.constant(0, value.dtype))
                extra_results.append((value, self.replaced[index], home))
            for previous, after in side.opened:
                extra_inputs.append((previous, value_before_loop(previous, is_open=around.is_open)))
                self.inputs.append(extra_inputs[-1])
                bases.append(first + len(extra_inputs) - 1 if previous.ndim else -1)
                outputs[index].append(after)
                outputs[1 - index].append(previous)
                extra_results.append((after, None, previous))
        options: dict[str, Any] = {
            name: region(
                [*side.graph.inputs, *(own for own, _ in extra_inputs)],
                own_outputs,
                side.graph.checks,
                side.inner.replaced(sorted_nodes([*side.graph.roots, *own_outputs])),
            )
            for name, side, own_outputs in zip(SIDES, self.sides, outputs, strict=True)
        }
        options |= {"bases": tuple(bases), "serves": node.options["yes"]}
        branch = Node("branch", (*node.inputs, *(value for _, value in extra_inputs)), "int64", (), options)
        forward_results = items(branch, outputs[0])
        around.keep(node, forward_results)
        for (value, replaced, own), item in zip(
            extra_results, forward_results[len(node.options["bases"]) :], strict=True
        ):
            if replaced is None:
                first_of = next(first for previous, first in extra_inputs if previous is own)
                if around.is_open:
                    around.opened.append((first_of, item))
                self.inputs.append((value, item))
            else:
                replaced[id(value)] = parameter(value.dtype, value.shape, 0)
                self.inputs.append((replaced[id(value)], item))

    def results(self, differentiable: Sequence[int], at: Mapping[int, Node]) -> list[Node]:
        """The cotangents of the `differentiable` operands; `at`: the parameters in whose memory sums of arrays are."""
        node, captured = self.node, self.node.inputs[1:]
        outputs = [
            [
                landed(value, at[i]) if captured[i].ndim else value
                for i, value in zip(differentiable, side.back, strict=True)
            ]
            for side in self.sides
        ]
        used: set[int] = set()
        for own_outputs, replaced in zip(outputs, self.replaced, strict=True):
            used |= reached(own_outputs, replaced).keys()
        used_captured = [
            i for i in range(len(captured)) if any(id(side.graph.inputs[i]) in used for side in self.sides)
        ]
        required = {id(value) for value in at.values()}
        inputs = [(own, value) for own, value in self.inputs if id(own) in used or id(own) in required]
        options: dict[str, Any] = {}
        for name, side, own_outputs, replaced in zip(SIDES, self.sides, outputs, self.replaced, strict=True):
            own = [side.graph.inputs[i] for i in used_captured]
            options[name] = region([*own, *(value for value, _ in inputs)], own_outputs, (), replaced)
            missing = unsupported(options[name])
            if missing:
                raise UnknownError(f"a branch whose backward pass would contain {missing}")
        input_positions = {id(own): len(used_captured) + number for number, (own, _) in enumerate(inputs)}
        options["bases"] = tuple(input_positions[id(at[i])] if captured[i].ndim else -1 for i in differentiable)
        captured_inputs = [*(captured[i] for i in used_captured), *(value for _, value in inputs)]
        branch = Node("branch", (node.inputs[0], *captured_inputs), "int64", (), options)
        return items(branch, [captured[i] for i in differentiable])
