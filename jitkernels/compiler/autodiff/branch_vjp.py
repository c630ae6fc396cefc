"""Reverse mode through a branch: a branch on the same condition whose sides run backwards.

The sides recompute the forward values that they need, but for elements of arrays, results of loops and the like: the
forward branch returns those as well, since an in-place update may overwrite the arrays.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jitkernels.compiler.autodiff.checkpoint_policy import CheckpointPolicy
from jitkernels.compiler.autodiff.cotangent_accumulator import (
    CotangentAccumulator,
    DerivativeContext,
    require_supported,
)
from jitkernels.compiler.autodiff.loop_vjp import ReversePass, is_float
from jitkernels.compiler.autodiff.tapes import value_before_loop
from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import UnsupportedError, zeros
from jitkernels.compiler.ir.graph import Graph, Node, sorted_nodes
from jitkernels.compiler.ir.region_memory import copy_to_home
from jitkernels.compiler.ir.regions import clone_region, items, parameter, reachable
from jitkernels.compiler.ir.symbolic_dims import is_loop_variant

SIDES = ("yes", "no")


def extend_branch(
    node: Node,
    context: DerivativeContext,
    inner: Sequence[DerivativeContext],
    inputs: Sequence[tuple[Node, Node]],
    outputs: Sequence[Sequence[Node]],
    bases: Sequence[int],
) -> list[Node]:
    """The results of a branch rebuilt to compute more, by which `context` replaces it.

    `inputs`: pairs (parameter, value) that it captures in addition; for each side the context `inner` and the
    additional `outputs`; `bases`: the indices of the captured values in whose memory these are.
    """
    options: dict[str, Any] = {
        name: own.extended_region(side, [*side.inputs, *(own_parameter for own_parameter, _ in inputs)], side_outputs)
        for name, side, own, side_outputs in zip(SIDES, sides_of(node), inner, outputs, strict=True)
    }
    options |= {"bases": (*node.options["bases"], *bases), "serves": node.options["yes"]}
    branch = Node("branch", (*node.inputs, *(value for _, value in inputs)), "int64", (), options)
    results = items(branch, [*node.options["yes"].outputs, *outputs[0]])
    context.replace(node, results)
    return results


def sides_of(node: Node) -> list[Graph]:
    """The regions of a branch."""
    return [node.options[name] for name in SIDES]


def branch_cotangents(
    node: Node,
    result_cotangents: Mapping[int, Node],
    active: set[Node],
    context: DerivativeContext,
    reverse_pass: ReversePass,
    totals: CotangentAccumulator,
) -> None:
    """Accumulate the cotangents of a branch's operands from those of some of its results."""
    captured, bases = node.inputs[1:], node.options["bases"]
    differentiable = [i for i, value in enumerate(captured) if value in active and is_float(value)]
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
    sides = [BackwardSide(side, sums, cotangents, differentiable, context, reverse_pass) for side in sides_of(node)]
    branch_results = BranchBackward(node, sides, inputs, context).results(differentiable, home)
    for i, item in zip(differentiable, branch_results, strict=True):
        (totals.put if i in continued else totals.add)(captured[i], item)


class BackwardSide:
    """One side: its backward pass, and the forward values that it needs to be stored."""

    def __init__(
        self,
        graph: Graph,
        sums: Mapping[int, Node],
        cotangents: Mapping[int, Node],
        differentiable: Sequence[int],
        context: DerivativeContext,
        reverse_pass: ReversePass,
    ) -> None:
        self.graph, self.inner, own = graph, context.inside(1), graph.inputs
        totals = reverse_pass(
            [graph.outputs[j] for j in cotangents],
            list(cotangents.values()),
            [own[i] for i in differentiable],
            self.inner,
            {own[i]: node for i, node in sums.items()},
        )
        self.back = [totals.of_or_zeros(own[i]) for i in differentiable]
        self.tapes = self.inner.tapes
        previous, tapes = [node for node, _ in self.tapes], [node for _, node in self.tapes if node.ndim]
        forward = {*sorted_nodes(graph.roots), *own, *self.inner.new_nodes}
        policy = CheckpointPolicy(forward, [*own, *tapes, *previous], keeps_elements=True)
        policy.require(self.back)
        self.stored = list(policy.stored)


class BranchBackward:
    """The backward branch. `inputs`: what its sides capture beside what the branch captures, with their parameters."""

    def __init__(
        self, node: Node, sides: Sequence[BackwardSide], inputs: list[tuple[Node, Node]], context: DerivativeContext
    ) -> None:
        self.node, self.sides, self.inputs, self.context = node, sides, inputs, context
        self.replaced: list[dict[Node, Node]] = [{}, {}]
        if any(side.stored or side.tapes for side in sides):
            self._store()

    def _store(self) -> None:
        """Let the forward branch return the values that its sides store, and the tapes that they write."""
        node, context = self.node, self.context
        first = len(node.inputs) - 1
        outputs: list[list[Node]] = [[], []]
        bases: list[int] = []
        inputs: list[tuple[Node, Node]] = []
        results: list[tuple[Node, dict[Node, Node] | None, Node]] = []
        for index, side in enumerate(self.sides):
            for value in side.stored:
                if any(map(is_loop_variant, value.shape)):
                    raise UnsupportedError("a branch with arrays whose sizes differ from iteration to iteration")
                home = parameter(value.dtype, value.shape, 0)
                if value.ndim:
                    inputs.append((home, zeros(value.dtype, value.shape)))
                bases.append(first + len(inputs) - 1 if value.ndim else -1)
                outputs[index].append(copy_to_home(value, home))
                outputs[1 - index].append(home if value.ndim else builder.constant(0, value.dtype))
                results.append((value, self.replaced[index], home))
            for previous, after in side.tapes:
                inputs.append((previous, value_before_loop(previous, is_nested=context.is_nested)))
                self.inputs.append(inputs[-1])
                bases.append(first + len(inputs) - 1 if previous.ndim else -1)
                outputs[index].append(after)
                outputs[1 - index].append(previous)
                results.append((after, None, previous))
        forward_results = extend_branch(node, context, [side.inner for side in self.sides], inputs, outputs, bases)
        extra_results = forward_results[len(node.options["bases"]) :]
        for (value, replaced, own), item in zip(results, extra_results, strict=True):
            if replaced is None:
                if context.is_nested:
                    context.tapes.append((next(first for previous, first in inputs if previous is own), item))
                self.inputs.append((value, item))
            else:
                replaced[value] = parameter(value.dtype, value.shape, 0)
                self.inputs.append((replaced[value], item))

    def results(self, differentiable: Sequence[int], at: Mapping[int, Node]) -> list[Node]:
        """The cotangents of the `differentiable` operands; `at`: the parameters in whose memory sums of arrays are."""
        node, captured = self.node, self.node.inputs[1:]
        outputs = [
            [
                copy_to_home(value, at[i]) if captured[i].ndim else value
                for i, value in zip(differentiable, side.back, strict=True)
            ]
            for side in self.sides
        ]
        used: set[Node] = set()
        for own_outputs, replaced in zip(outputs, self.replaced, strict=True):
            used.update(reachable(own_outputs, replaced))
        used_captured = [i for i in range(len(captured)) if any(side.graph.inputs[i] in used for side in self.sides)]
        required = set(at.values())
        inputs = [(own, value) for own, value in self.inputs if own in used or own in required]
        options: dict[str, Any] = {}
        for name, side, own_outputs, replaced in zip(SIDES, self.sides, outputs, self.replaced, strict=True):
            own = [side.graph.inputs[i] for i in used_captured]
            options[name] = clone_region([*own, *(value for value, _ in inputs)], own_outputs, (), replaced)
            require_supported(options[name], "a branch whose backward pass")
        input_positions = {own: len(used_captured) + number for number, (own, _) in enumerate(inputs)}
        options["bases"] = tuple(input_positions[at[i]] if captured[i].ndim else -1 for i in differentiable)
        captured_inputs = [*(captured[i] for i in used_captured), *(value for _, value in inputs)]
        branch = Node("branch", (node.inputs[0], *captured_inputs), "int64", (), options)
        return items(branch, [captured[i] for i in differentiable])
