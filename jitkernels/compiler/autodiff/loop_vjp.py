"""Reverse mode through a loop: the forward loop writes tapes, a backward loop reads them in reverse.

The forward loop is rebuilt with more loop-carried values: the tapes, one for each stored value, and a position; each
iteration writes one row of each tape. The backward loop counts positions down and carries the cotangents of the forward
loop's carried values and the accumulated cotangents of its captured values. Nested loops append to the same tapes; all
enclosing loops carry them.
"""

from collections.abc import Callable, Collection, Container, Mapping, Sequence

from jitkernels.compiler.autodiff.checkpoint_policy import CheckpointPolicy
from jitkernels.compiler.autodiff.cotangent_accumulator import (
    CotangentAccumulator,
    DerivativeContext,
    require_supported,
)
from jitkernels.compiler.autodiff.tapes import TapePosition, TapeRow, load_element, value_before_loop
from jitkernels.compiler.ir import builder, dim_bounds, symbolic_dims
from jitkernels.compiler.ir.builder import elementwise, zeros
from jitkernels.compiler.ir.graph import Graph, Node, sorted_nodes
from jitkernels.compiler.ir.region_memory import copy_to_home
from jitkernels.compiler.ir.regions import TRUE, LoopParts, clone_region, items, parameter, reachable, symbols_in
from jitkernels.compiler.ir.symbolic_dims import Number

ReversePass = Callable[..., CotangentAccumulator]
"""The reverse pass: (outputs, seeds, variables, context, initial sums) to all accumulated cotangents."""
CarriedValue = tuple[Node, Node, Node]
"""A carried value of a loop: its initial value, its parameter in the body, and its next value."""


def max_trip_count(loop: LoopParts, context: DerivativeContext) -> Number | None:
    """An upper bound of the trip count, at least 1; None if it is unknown."""
    if "rounds" in loop.node.options:
        return loop.node.options["rounds"]
    if not loop.counts:
        return None
    begin, end = map(context.extent_of, loop.bounds[:2])
    if begin is None or end is None:
        return None
    bound = dim_bounds.limit(end - begin if loop.step > 0 else begin - end, is_upper=True)
    if type(bound) is int:
        return max(-(-bound // abs(loop.step)), 1)
    if bound is None or symbolic_dims.is_at_least(bound, 1):
        return bound
    return dim_bounds.largest(bound, 1)


def extend_loop(
    loop: LoopParts,
    carried: Sequence[CarriedValue],
    context: DerivativeContext,
    inner: DerivativeContext,
    captured: Sequence[tuple[Node, Node]] = (),
) -> list[Node]:
    """The results of a loop rebuilt with more carried values, by which `context` replaces it; `inner`: of its body.

    `captured`: captured values beside the loop's own, as pairs (parameter, value).
    """
    initial, parameters, outputs = ([value[i] for value in carried] for i in range(3))
    extra_captured = [own for own, _ in captured]

    def extended(own: Sequence[Node]) -> list[Node]:
        carried_end = loop.first_parameter + loop.carried_count
        return [*own[:carried_end], *parameters, *own[carried_end:], *extra_captured]

    condition, body = loop.condition, inner.extended_region(loop.body, extended(loop.body.inputs), outputs)
    require_supported(body, "a loop whose tape-writing iterations")
    options = {
        "counts": loop.counts,
        "carried": loop.carried_count + len(carried),
        "condition": clone_region(extended(condition.inputs), condition.outputs, condition.checks),
        "body": body,
        "rounds": inner.own_trip_count,
        "serves": loop.body,
    }
    inputs = [*loop.bounds, *loop.carried, *initial, *loop.captured, *(value for _, value in captured)]
    results = items(Node("loop", inputs, "int64", (), options), [*loop.carried, *initial])
    context.replace(loop.node, results)
    return results


def active_nodes(graph: Graph, active: Sequence[Node]) -> set[Node]:
    """The float nodes of a region that depend on active ones."""
    live = set(active)
    for node in sorted_nodes(graph.outputs):
        is_several = node.operation in ("loop", "branch")
        if (is_several or is_float(node)) and not live.isdisjoint(node.inputs):
            live.add(node)
    return live


def is_float(node: Node) -> bool:
    """Whether a node is differentiable: its elements are floats, or pairs of them."""
    return node.dtype.startswith(("float", "complex"))


def ancestors_among(outputs: Sequence[Node], live: set[Node]) -> set[Node]:
    """The nodes among `live` that outputs depend on."""
    ancestors: set[Node] = set()
    worklist = [node for node in outputs if node in live]
    while worklist:
        node = worklist.pop()
        if node not in ancestors:
            ancestors.add(node)
            worklist.extend(operand for operand in node.inputs if operand in live)
    return ancestors


def active_carried(loop: LoopParts, active: Container[Node]) -> tuple[set[int], set[Node]]:
    """Indices of carried values that depend on active nodes (a fixed point over iterations), and the active nodes."""
    captured = [
        own
        for own, value in zip(loop.captured_parameters, loop.captured, strict=True)
        if value in active and is_float(value)
    ]
    active_indices = {i for i, value in enumerate(loop.carried) if value in active and is_float(value)}
    while True:
        live = active_nodes(loop.body, [*captured, *(loop.carried_parameters[i] for i in active_indices)])
        more = {i for i, node in enumerate(loop.body.outputs) if node in live and is_float(node)}
        if more <= active_indices:
            return active_indices, live
        active_indices |= more


def loop_cotangents(
    node: Node,
    result_cotangents: Mapping[int, Node],
    active: set[Node],
    context: DerivativeContext,
    reverse_pass: ReversePass,
    totals: CotangentAccumulator,
) -> None:
    """Accumulate the cotangents of a loop's operands from those of some of its results."""
    loop = LoopParts(node)
    body, own, captured = loop.body, loop.carried_parameters, loop.captured_parameters
    differentiable, live = active_carried(loop, active)
    live_results = {i for i in result_cotangents if i in differentiable}
    while True:
        path = ancestors_among([body.outputs[i] for i in live_results], live)
        more = {i for i in differentiable if own[i] in path}
        if more <= live_results:
            break
        live_results |= more
    indices = sorted(live_results)
    if not indices:
        return
    accumulated = [k for k, parameter_node in enumerate(captured) if parameter_node in path]
    inner = context.inside(max_trip_count(loop, context))
    carried_cotangents = {i: parameter(own[i].dtype, own[i].shape, 0) for i in indices}
    sums = {k: parameter(captured[k].dtype, captured[k].shape, 0) for k in accumulated}
    totals_inside = reverse_pass(
        [body.outputs[i] for i in indices],
        list(carried_cotangents.values()),
        [*(own[i] for i in indices), *(captured[k] for k in accumulated)],
        inner,
        {captured[k]: value for k, value in sums.items()},
    )
    results = [totals_inside.of_or_zeros(own[i]) for i in indices]
    results += [totals_inside.of(captured[k]) or sums[k] for k in accumulated]
    carried = [*carried_cotangents.values(), *sums.values()]
    results = [copy_to_home(value, home) for value, home in zip(results, carried, strict=True)]
    initial_values = [result_cotangents.get(i) or zeros(own[i].dtype, own[i].shape) for i in indices]
    started: set[Node] = set()
    for k in accumulated:
        value = loop.captured[k]
        previous = None if value in started else totals.dense(value)
        started.add(value)
        initial_values.append(previous or zeros(value.dtype, value.shape))
    loop_results = LoopBackward(loop, inner, list(zip(initial_values, carried, results, strict=True))).results(context)
    for k, item in zip(accumulated, loop_results[len(indices) :], strict=True):
        value = loop.captured[k]
        if value in started:
            started.discard(value)
            totals.put(value, item)
        else:
            totals.add(value, item)
    for i, item in zip(indices, loop_results, strict=False):
        if loop.carried[i] in active:
            totals.add(loop.carried[i], item)


class LoopBackward:
    """The backward loop of a forward loop, with its carried values."""

    def __init__(self, loop: LoopParts, inner: DerivativeContext, carried: list[CarriedValue]) -> None:
        self.loop, self.inner, self.carried = loop, inner, carried
        roots = [node for _, _, node in carried]
        tapes = [after for _, after in inner.tapes if after.ndim]
        forward = {*sorted_nodes(loop.body.roots), *loop.body.inputs, *inner.new_nodes}
        forward.update(previous for previous, _ in inner.tapes)
        free = [*loop.captured_parameters, *loop.induction, *tapes]
        policy = CheckpointPolicy(forward, free, keeps_elements=False)
        policy.require(roots)
        self.symbols = symbols_in(reachable(roots, dict.fromkeys(policy.stored, TRUE)))
        self.numbers = [node for node in loop.carried_parameters if node.options.get("symbol") in self.symbols]
        policy.require(self.numbers)
        self.stored = list(policy.stored)

    def results(self, context: DerivativeContext) -> list[Node]:
        """The results of the backward loop; the forward loop is replaced by one that writes tapes, if it has to."""
        if not self.stored and not self.inner.tapes and self.loop.has_unit_step:
            return self._reversed_in_place()
        most = self.inner.max_trip_count
        grows = most is None
        if most is None:
            most = context.tape_capacity()
        has_rows = any(node.ndim for node in self.stored)
        position = TapePosition(context.scope, most, rows=has_rows, grows=grows)
        rows = [TapeRow(node, most, position) for node in self.stored]
        more = [(node.tape, node.written) for node in rows]
        more += [*self.inner.tapes, (position.node, elementwise("add", position.checked, 1))]
        carried = [
            (value_before_loop(previous, is_nested=context.is_nested), previous, after) for previous, after in more
        ]
        written = extend_loop(self.loop, carried, context, self.inner)[self.loop.carried_count :]
        if context.is_nested:
            context.tapes += [(first, node) for (first, _, _), node in zip(carried, written, strict=True)]
        tapes = [(row.tape, node) for row, node in zip(rows, written, strict=False)]
        inner_tapes = zip(self.inner.tapes, written[len(rows) :], strict=False)
        tapes += [(after, node) for (_, after), node in inner_tapes if after.ndim]
        return self._back(rows, tapes, (carried[-1][0], written[-1]), TapePosition(context.scope, most, rows=has_rows))

    def _reversed_in_place(self) -> list[Node]:
        """The backward loop as one over the same induction variable from its end to its start, without tapes."""
        begin, end, _ = self.loop.bounds
        step = self.loop.step
        bounds = [elementwise("subtract", value, step) for value in (end, begin)]
        (induction,) = self.loop.induction
        return self._loop([*bounds, builder.constant(-step, "int64")], induction, self.carried, {}, [])

    def _back(
        self, rows: Sequence[TapeRow], tapes: list[tuple[Node, Node]], span: tuple[Node, Node], position: TapePosition
    ) -> list[Node]:
        """The backward loop over tape positions, from the last row written to the first one."""
        start, behind = span
        replaced = {value.node: value.read(position) for value in rows}
        last = elementwise("subtract", behind, 1)
        written = dict(tapes)
        previous = elementwise("maximum", elementwise("subtract", position.node, 1), 0)
        carried = list(self.carried)
        for row in rows:
            if row.node in self.numbers:  # extents depend on their value at the start of an iteration
                now = parameter("int64", (), 0, row.node.options["symbol"])
                first = load_element(written[row.tape], elementwise("maximum", last, 0))
                replaced[row.node] = now
                carried.append((first, now, load_element(row.tape, previous)))
        for induction in self.loop.induction:
            used = reachable([value for _, _, value in carried], replaced)
            if induction in used or induction.options.get("symbol") in self.symbols:
                begin, _, step = self.loop.bounds
                now = parameter("int64", (), 0, induction.options.get("symbol", ""))
                iteration = elementwise("subtract", last, start)
                first = elementwise("add", begin, elementwise("multiply", iteration, step))
                replaced[induction] = now
                carried.append((first, now, elementwise("subtract", now, step)))
        bounds = [last, elementwise("subtract", start, 1), builder.constant(-1, "int64")]
        return self._loop(bounds, position.node, carried, replaced, tapes)

    def _loop(
        self,
        bounds: list[Node],
        induction: Node,
        carried: Sequence[CarriedValue],
        replaced: dict[Node, Node],
        tapes: Collection[tuple[Node, Node]],
    ) -> list[Node]:
        outputs = [value for _, _, value in carried]
        used = set(reachable(outputs, replaced))
        captured = [*tapes, *zip(self.loop.captured_parameters, self.loop.captured, strict=True)]
        captured = [(own, value) for own, value in captured if own in used]
        parameters = [induction, *(own for _, own, _ in carried), *(own for own, _ in captured)]
        body = clone_region(parameters, outputs, (), replaced)
        require_supported(body, "a loop whose backward iterations")
        options = {
            "counts": True,
            "carried": len(carried),
            "condition": clone_region(parameters, [TRUE]),
            "body": body,
            "rounds": self.inner.own_trip_count,
        }
        initial_values = [value for value, _, _ in carried]
        loop = Node("loop", [*bounds, *initial_values, *(value for _, value in captured)], "int64", (), options)
        return items(loop, initial_values)[: len(self.carried)]
