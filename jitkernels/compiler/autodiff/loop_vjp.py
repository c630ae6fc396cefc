"""Reverse mode through a loop: the forward loop writes tapes, a backward loop reads them in reverse.

The forward loop is rebuilt with more loop-carried values: the tapes, one for each stored value, and a position; each
iteration writes one row of each tape. The backward loop counts positions down and carries the cotangents of the forward
loop's carried values and the accumulated cotangents of its captured values. Nested loops append to the same tapes; all
enclosing loops carry them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jitkernels.compiler.autodiff.checkpoint_policy import CheckpointPolicy
from jitkernels.compiler.autodiff.cotangent_accumulator import Around, CotangentAccumulator
from jitkernels.compiler.autodiff.tapes import TapePosition, TapeRow, load_element, value_before_loop
from jitkernels.compiler.ir import builder, dim_bounds, symbolic_dims
from jitkernels.compiler.ir.builder import UnknownError, elementwise, zeros
from jitkernels.compiler.ir.clone_region import reached, region, symbols_in
from jitkernels.compiler.ir.dim_bounds import limit
from jitkernels.compiler.ir.graph import Node, sorted_nodes
from jitkernels.compiler.ir.region_memory import landed, unsupported
from jitkernels.compiler.ir.regions import items, parameter
from jitkernels.compiler.ir.symbolic_dims import Number

Pull = Callable[..., CotangentAccumulator]
"""The reverse pass: (outputs, seeds, variables, context, initial sums) to all accumulated cotangents."""
TRUE = builder.constant(True, "bool")


class Parts:
    """The parts of a loop node: limits of the induction variable, carried and captured values, and their parameters."""

    def __init__(self, node: Node) -> None:
        self.node, options = node, node.options
        first, carried_count = (3, options["carried"]) if options["counts"] else (0, options["carried"])
        shift = 1 if first else 0
        self.limits, self.carried = node.inputs[:first], node.inputs[first : first + carried_count]
        self.captured = node.inputs[first + carried_count :]
        parameters = self.body.inputs
        self.count, self.own, self.taken = (
            parameters[:shift],
            parameters[shift : shift + carried_count],
            parameters[shift + carried_count :],
        )

    @property
    def body(self) -> Any:
        return self.node.options["body"]

    @property
    def step(self) -> int:
        return int(self.limits[2].options["value"])

    @property
    def is_plain(self) -> bool:
        """Whether the loop runs all iterations of an induction variable with step 1 or -1."""
        goes_on = self.node.options["condition"].outputs[0]
        return bool(self.limits) and abs(self.step) == 1 and goes_on.options.get("value") is True

    def rounds(self, known: Callable[[Node], Number | None]) -> Number | None:
        """An upper bound of the trip count, at least 1; None if it is unknown."""
        if "rounds" in self.node.options:
            return self.node.options["rounds"]
        if not self.limits:
            return None
        begin, end = (known(value) for value in self.limits[:2])
        if begin is None or end is None:
            return None
        bound = limit(end - begin if self.step > 0 else begin - end, is_upper=True)
        if type(bound) is int:
            return max(-(-bound // abs(self.step)), 1)
        if bound is None or (symbolic_dims.least_of(bound) or 0) >= 1:
            return bound
        return dim_bounds.largest(bound, 1)

    def again(
        self, more: Sequence[tuple[Node, Node, Node]], inner: Around, captured: Sequence[tuple[Node, Node]] = ()
    ) -> list[Node]:
        """The results of the loop rebuilt with more carried values: triples (initial value, parameter, next value).

        `captured`: captured values beside the loop's own, as pairs (parameter, value).
        """
        extra_captured = [own for own, _ in captured]
        firsts, parameters, outputs = ([value[i] for value in more] for i in range(3))
        condition, body = self.node.options["condition"], self.body
        carried_end = len(self.count) + len(self.own)
        options = {
            "counts": self.node.options["counts"],
            "carried": len(self.carried) + len(more),
            "condition": region(
                [*condition.inputs[:carried_end], *parameters, *condition.inputs[carried_end:], *extra_captured],
                condition.outputs,
                condition.checks,
            ),
            "body": region(
                [*self.count, *self.own, *parameters, *self.taken, *extra_captured],
                [*body.outputs, *outputs],
                body.checks,
                inner.replaced(sorted_nodes([*body.roots, *outputs])),
            ),
            "rounds": inner.own_rounds,
            "serves": body,
        }
        missing = unsupported(options["body"])
        if missing:
            raise UnknownError(f"a loop whose tape-writing iterations would contain {missing}")
        inputs = [*self.limits, *self.carried, *firsts, *self.captured, *(value for _, value in captured)]
        loop = Node("loop", inputs, "int64", (), options)
        return items(loop, [*self.carried, *firsts])


def active_nodes(graph: Any, active: Sequence[Node]) -> dict[int, Node]:
    """The float nodes of a region that depend on active ones, by their ids."""
    live = {id(value): value for value in active}
    for node in sorted_nodes(graph.outputs):
        is_several = node.operation in ("loop", "branch")
        if any(id(operand) in live for operand in node.inputs) and (is_several or is_float(node)):
            live[id(node)] = node
    return live


def is_float(node: Node) -> bool:
    """Whether a node's elements are floats."""
    return node.dtype.startswith("float")


def ancestors_among(outputs: Sequence[Node], live: Mapping[int, Node]) -> set[int]:
    """The ids of the nodes among `live` that outputs depend on."""
    ancestors: set[int] = set()
    worklist = [node for node in outputs if id(node) in live]
    while worklist:
        node = worklist.pop()
        if id(node) not in ancestors:
            ancestors.add(id(node))
            worklist.extend(operand for operand in node.inputs if id(operand) in live)
    return ancestors


def active_carried(parts: Parts, active: Mapping[int, Any] | set[int]) -> tuple[set[int], dict[int, Node]]:
    """Indices of carried values that depend on active nodes (a fixed point over iterations), and the active nodes."""
    body = parts.body
    captured = [
        own for own, value in zip(parts.taken, parts.captured, strict=True) if id(value) in active and is_float(value)
    ]
    active_indices = {i for i, value in enumerate(parts.carried) if id(value) in active and is_float(value)}
    while True:
        live = active_nodes(body, [*captured, *(parts.own[i] for i in active_indices)])
        more = {i for i, node in enumerate(body.outputs) if id(node) in live and is_float(node)}
        if more <= active_indices:
            return active_indices, live
        active_indices |= more


def loop_cotangents(
    node: Node,
    result_cotangents: Mapping[int, Node],
    active: set[int],
    around: Around,
    pull: Pull,
    totals: CotangentAccumulator,
) -> None:
    """Accumulate the cotangents of a loop's operands from those of some of its results."""
    parts = Parts(node)
    body, own, taken = parts.body, parts.own, parts.taken
    differentiable, live = active_carried(parts, active)
    live_results = {i for i in result_cotangents if i in differentiable}
    while True:
        path = ancestors_among([body.outputs[i] for i in live_results], live)
        more = {i for i in differentiable if id(own[i]) in path}
        if more <= live_results:
            break
        live_results |= more
    indices = sorted(live_results)
    if not indices:
        return
    accumulated = [k for k, parameter_node in enumerate(taken) if id(parameter_node) in path]
    rounds = parts.rounds(around.known)
    inner = around.inside(rounds)
    carried_cotangents = {i: parameter(own[i].dtype, own[i].shape, 0) for i in indices}
    sums = {k: parameter(taken[k].dtype, taken[k].shape, 0) for k in accumulated}
    totals_inside = pull(
        [body.outputs[i] for i in indices],
        list(carried_cotangents.values()),
        [*(own[i] for i in indices), *(taken[k] for k in accumulated)],
        inner,
        {id(taken[k]): value for k, value in sums.items()},
    )
    results = [totals_inside.of(own[i]) or zeros(own[i].dtype, own[i].shape) for i in indices]
    results += [totals_inside.of(taken[k]) or sums[k] for k in accumulated]
    carried = [*carried_cotangents.values(), *sums.values()]
    results = [landed(value, home) for value, home in zip(results, carried, strict=True)]
    initial_values = [result_cotangents.get(i) or zeros(own[i].dtype, own[i].shape) for i in indices]
    started: set[int] = set()
    for k in accumulated:
        value = parts.captured[k]
        previous = None if id(value) in started else totals.dense(value)
        started.add(id(value))
        initial_values.append(previous or zeros(value.dtype, value.shape))
    loop_results = LoopBackward(parts, inner, list(zip(initial_values, carried, results, strict=True))).results(around)
    for k, item in zip(accumulated, loop_results[len(indices) :], strict=True):
        value = parts.captured[k]
        if id(value) in started:
            started.discard(id(value))
            totals.put(value, item)
        else:
            totals.add(value, item)
    for i, item in zip(indices, loop_results, strict=False):
        if id(parts.carried[i]) in active:
            totals.add(parts.carried[i], item)


class LoopBackward:
    """The backward loop. `carried`: triples (initial value, parameter, next value)."""

    def __init__(self, parts: Parts, inner: Around, carried: list[tuple[Node, Node, Node]]) -> None:
        self.parts, self.inner, self.carried = parts, inner, carried
        self.roots = [node for _, _, node in carried]
        tapes = [after for _, after in inner.opened if after.ndim]
        forward = [*sorted_nodes(parts.body.roots), *parts.body.inputs, *inner.made]
        forward += [previous for previous, _ in inner.opened]
        policy = CheckpointPolicy(
            {id(node): node for node in forward}, [*parts.taken, *parts.count, *tapes], keeps_elements=False
        )
        policy.require(self.roots)
        stored = dict.fromkeys(policy.kept, TRUE)
        self.symbols = symbols_in(reached(self.roots, stored).values())
        self.numbers = [node for node in parts.own if node.options.get("symbol") in self.symbols]
        policy.require(self.numbers)
        self.kept = list(policy.kept.values())

    def results(self, around: Around) -> list[Node]:
        """The results of the backward loop; the forward loop is replaced by one that writes tapes, if it has to."""
        if not self.kept and not self.inner.opened and self.parts.is_plain:
            return self._reversed_in_place()
        most = self.inner.rounds
        grows = most is None
        if most is None:
            most = around.room()
        has_rows = any(node.ndim for node in self.kept)
        position = TapePosition(around.scope, most, rows=has_rows, grows=grows)
        rows = [TapeRow(node, most, position) for node in self.kept]
        more = [(node.tape, node.written) for node in rows]
        more += [*self.inner.opened, (position.node, elementwise("add", position.checked, 1))]
        carried = [(value_before_loop(previous, is_open=around.is_open), previous, after) for previous, after in more]
        forward_results = self.parts.again(carried, self.inner)
        around.keep(self.parts.node, forward_results)
        written = forward_results[len(self.parts.carried) :]
        if around.is_open:
            around.opened += [(first, node) for (first, _, _), node in zip(carried, written, strict=True)]
        tapes = [(row.tape, node) for row, node in zip(rows, written, strict=False)]
        inner_tapes = zip(self.inner.opened, written[len(rows) :], strict=False)
        tapes += [(after, node) for (_, after), node in inner_tapes if after.ndim]
        return self._back(rows, tapes, (carried[-1][0], written[-1]), TapePosition(around.scope, most, rows=has_rows))

    def _reversed_in_place(self) -> list[Node]:
        """The backward loop as one over the same induction variable from its end to its start, without tapes."""
        begin, end, _ = self.parts.limits
        step = self.parts.step
        limits = [elementwise("subtract", value, step) for value in (end, begin)]
        (count,) = self.parts.count
        return self._loop([*limits, builder.constant(-step, "int64")], count, self.carried, {}, [])

    def _back(
        self, rows: Sequence[TapeRow], tapes: list[tuple[Node, Node]], span: tuple[Node, Node], position: TapePosition
    ) -> list[Node]:
        """The backward loop over tape positions, from the last row written to the first one."""
        start, behind = span
        replaced = {id(value.node): value.read(position) for value in rows}
        last = elementwise("subtract", behind, 1)
        written = {id(tape): value for tape, value in tapes}
        previous = elementwise("maximum", elementwise("subtract", position.node, 1), 0)
        carried = list(self.carried)
        for row in rows:
            if any(
                row.node is value for value in self.numbers
            ):  # extents depend on their value at the start of an iteration
                now = parameter("int64", (), 0, row.node.options["symbol"])
                first = load_element(written[id(row.tape)], elementwise("maximum", last, 0))
                replaced[id(row.node)] = now
                carried.append((first, now, load_element(row.tape, previous)))
        for count in self.parts.count:
            used = reached([value for _, _, value in carried], replaced)
            if id(count) in used or count.options.get("symbol") in self.symbols:
                begin, _, step = self.parts.limits
                now = parameter("int64", (), 0, count.options.get("symbol", ""))
                rounds = elementwise("subtract", last, start)
                first = elementwise("add", begin, elementwise("multiply", rounds, step))
                replaced[id(count)] = now
                carried.append((first, now, elementwise("subtract", now, step)))
        limits = [last, elementwise("subtract", start, 1), builder.constant(-1, "int64")]
        return self._loop(limits, position.node, carried, replaced, tapes)

    def _loop(
        self,
        limits: list[Node],
        count: Node,
        carried: Sequence[tuple[Node, Node, Node]],
        replaced: dict[int, Node],
        tapes: Sequence[tuple[Node, Node]],
    ) -> list[Node]:
        parts = self.parts
        outputs = [value for _, _, value in carried]
        used = reached(outputs, replaced)
        captured = [*tapes, *zip(parts.taken, parts.captured, strict=True)]
        captured = [(own, value) for own, value in captured if id(own) in used]
        parameters = [count, *(own for _, own, _ in carried), *(own for own, _ in captured)]
        body = region(parameters, outputs, (), replaced)
        options = {
            "counts": True,
            "carried": len(carried),
            "condition": region(parameters, [TRUE]),
            "body": body,
            "rounds": self.inner.own_rounds,
        }
        missing = unsupported(body)
        if missing:
            raise UnknownError(f"a loop whose backward iterations would contain {missing}")
        initial_values = [value for value, _, _ in carried]
        loop = Node("loop", [*limits, *initial_values, *(value for _, value in captured)], "int64", (), options)
        return items(loop, initial_values)[: len(self.carried)]
