"""The reverse pass through a loop: the loop writes down what its rounds need backwards, and a loop goes back.

The loop is made once more with arrays that it carries, the tapes, one for each value that is needed, and a position:
each round writes a row of each. The loop back counts positions down; what it carries are the cotangents of what the
loop carried, and the sums of those of what it took from around. Loops inside of loops write to the same tapes one round
after the other: all loops around carry them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jitkernels.graph import construct, extents, limits
from jitkernels.graph.cloning import reached, region, symbols_in
from jitkernels.graph.construct import UnknownError, elementwise, zeros
from jitkernels.graph.extents import Number
from jitkernels.graph.flows import landed, unsupported
from jitkernels.graph.ir import Node, sorted_nodes
from jitkernels.graph.limits import limit
from jitkernels.graph.needs import Needs
from jitkernels.graph.regions import items, parameter
from jitkernels.graph.tapes import Position, Row, before_first, picked
from jitkernels.graph.totals import Around, Totals

Pull = Callable[..., Totals]
"""The reverse pass: outputs, their cotangents, variables, where that is, and sums to begin with give all sums."""
TRUE = construct.constant(True, "bool")


class Parts:
    """A loop taken apart: limits of the count, what is carried, what is taken from around, and their parameters."""

    def __init__(self, node: Node) -> None:
        self.node, options = node, node.options
        first, many = (3, options["carried"]) if options["counts"] else (0, options["carried"])
        shift = 1 if first else 0
        self.limits, self.carried = node.inputs[:first], node.inputs[first : first + many]
        self.captured = node.inputs[first + many :]
        given = self.body.inputs
        self.count, self.own, self.taken = given[:shift], given[shift : shift + many], given[shift + many :]

    @property
    def body(self) -> Any:
        return self.node.options["body"]

    @property
    def step(self) -> int:
        return int(self.limits[2].options["value"])

    @property
    def is_plain(self) -> bool:
        """Whether all rounds of a count are run, which takes steps of one."""
        goes_on = self.node.options["condition"].outputs[0]
        return bool(self.limits) and abs(self.step) == 1 and goes_on.options.get("value") is True

    def rounds(self, known: Callable[[Node], Number | None]) -> Number | None:
        """How many rounds there are at most, at least one; None where that is not known."""
        if "rounds" in self.node.options:
            return self.node.options["rounds"]
        if not self.limits:
            return None
        begin, end = (known(one) for one in self.limits[:2])
        if begin is None or end is None:
            return None
        found = limit(end - begin if self.step > 0 else begin - end, is_upper=True)
        if type(found) is int:
            return max(-(-found // abs(self.step)), 1)
        if found is None or (extents.least_of(found) or 0) >= 1:
            return found
        return limits.largest(found, 1)

    def again(
        self,
        more: Sequence[tuple[Node, Node, Node]],
        inner: Around,
        taken: Sequence[tuple[Node, Node]] = (),
    ) -> list[Node]:
        """The results of the loop that carries more: triples of first value, parameter, and value behind a round.

        `taken`: what it takes from around beside what the loop takes, with its parameters.
        """
        others = [own for own, _ in taken]
        firsts, given, outputs = ([one[i] for one in more] for i in range(3))
        condition, body = self.node.options["condition"], self.body
        at = len(self.count) + len(self.own)
        options = {
            "counts": self.node.options["counts"],
            "carried": len(self.carried) + len(more),
            "condition": region(
                [*condition.inputs[:at], *given, *condition.inputs[at:], *others],
                condition.outputs,
                condition.checks,
            ),
            "body": region(
                [*self.count, *self.own, *given, *self.taken, *others],
                [*body.outputs, *outputs],
                body.checks,
                inner.replaced(sorted_nodes([*body.roots, *outputs])),
            ),
            "rounds": inner.own_rounds,
            "serves": body,
        }
        missing = unsupported(options["body"])
        if missing:
            raise UnknownError(f"a loop, whose rounds would need {missing} in them")
        inputs = [*self.limits, *self.carried, *firsts, *self.captured, *(one for _, one in taken)]
        made = Node("loop", inputs, "int64", (), options)
        return items(made, [*self.carried, *firsts])


def live_in(graph: Any, active: Sequence[Node]) -> dict[int, Node]:
    """The nodes of a region that floats of it depend on which are active, by their ids."""
    live = {id(one): one for one in active}
    for node in sorted_nodes(graph.outputs):
        is_several = node.operation in ("loop", "branch")
        if any(id(one) in live for one in node.inputs) and (is_several or is_float(node)):
            live[id(node)] = node
    return live


def is_float(node: Node) -> bool:
    """Whether a node is one of floats."""
    return node.dtype.startswith("float")


def leading_to(outputs: Sequence[Node], live: Mapping[int, Node]) -> set[int]:
    """The ids of nodes among the live ones that outputs are made of."""
    found: set[int] = set()
    waiting = [one for one in outputs if id(one) in live]
    while waiting:
        node = waiting.pop()
        if id(node) not in found:
            found.add(id(node))
            waiting.extend(one for one in node.inputs if id(one) in live)
    return found


def settled(parts: Parts, active: Mapping[int, Any] | set[int]) -> tuple[set[int], dict[int, Node]]:
    """The numbers of carried values that depend on what is active, and the live nodes of a round."""
    body = parts.body
    taken = [
        own
        for own, one in zip(parts.taken, parts.captured, strict=True)
        if id(one) in active and is_float(one)
    ]
    moved = {i for i, one in enumerate(parts.carried) if id(one) in active and is_float(one)}
    while True:
        live = live_in(body, [*taken, *(parts.own[i] for i in moved)])
        more = {i for i, one in enumerate(body.outputs) if id(one) in live and is_float(one)}
        if more <= moved:
            return moved, live
        moved |= more


def of_loop(
    node: Node, given: Mapping[int, Node], active: set[int], around: Around, pull: Pull, totals: Totals
) -> None:
    """Add to the sums what flows to the inputs of a loop, from the cotangents of some of its results."""
    parts = Parts(node)
    body, own, taken = parts.body, parts.own, parts.taken
    moved, live = settled(parts, active)
    wanted = {i for i in given if i in moved}
    while True:
        path = leading_to([body.outputs[i] for i in wanted], live)
        more = {i for i in moved if id(own[i]) in path}
        if more <= wanted:
            break
        wanted |= more
    places = sorted(wanted)
    if not places:
        return
    summed = [k for k, one in enumerate(taken) if id(one) in path]
    rounds = parts.rounds(around.known)
    inner = around.inside(rounds)
    backs = {i: parameter(own[i].dtype, own[i].shape, 0) for i in places}
    sums = {k: parameter(taken[k].dtype, taken[k].shape, 0) for k in summed}
    found = pull(
        [body.outputs[i] for i in places],
        list(backs.values()),
        [*(own[i] for i in places), *(taken[k] for k in summed)],
        inner,
        {id(taken[k]): one for k, one in sums.items()},
    )
    results = [found.of(own[i]) or zeros(own[i].dtype, own[i].shape) for i in places]
    results += [found.of(taken[k]) or sums[k] for k in summed]
    carried = [*backs.values(), *sums.values()]
    results = [landed(one, place) for one, place in zip(results, carried, strict=True)]
    firsts = [given.get(i) or zeros(own[i].dtype, own[i].shape) for i in places]
    seen: set[int] = set()
    for k in summed:
        one = parts.captured[k]
        before = None if id(one) in seen else totals.dense(one)
        seen.add(id(one))
        firsts.append(before or zeros(one.dtype, one.shape))
    made = Back(parts, inner, list(zip(firsts, carried, results, strict=True))).results(around)
    for k, item in zip(summed, made[len(places) :], strict=True):
        one = parts.captured[k]
        if id(one) in seen:
            seen.discard(id(one))
            totals.put(one, item)
        else:
            totals.add(one, item)
    for i, item in zip(places, made, strict=False):
        if id(parts.carried[i]) in active:
            totals.add(parts.carried[i], item)


class Back:
    """The loop that goes back. `carried`: triples of first value, parameter, and value behind a round."""

    def __init__(self, parts: Parts, inner: Around, carried: list[tuple[Node, Node, Node]]) -> None:
        self.parts, self.inner, self.carried = parts, inner, carried
        self.roots = [one for _, _, one in carried]
        tapes = [after for _, after in inner.opened if after.ndim]
        forward = [*sorted_nodes(parts.body.roots), *parts.body.inputs, *inner.made]
        forward += [before for before, _ in inner.opened]
        needs = Needs(
            {id(one): one for one in forward}, [*parts.taken, *parts.count, *tapes], keeps_elements=False
        )
        needs.need(self.roots)
        kept = dict.fromkeys(needs.kept, TRUE)
        self.symbols = symbols_in(reached(self.roots, kept).values())
        self.numbers = [one for one in parts.own if one.options.get("symbol") in self.symbols]
        needs.need(self.numbers)
        self.kept = list(needs.kept.values())

    def results(self, around: Around) -> list[Node]:
        """What the loop gives; the one that it goes back through is replaced by one that writes tapes."""
        if not self.kept and not self.inner.opened and self.parts.is_plain:
            return self._turned_round()
        most = self.inner.rounds
        grows = most is None
        if most is None:
            most = around.room()
        has_rows = any(one.ndim for one in self.kept)
        position = Position(around.scope, most, rows=has_rows, grows=grows)
        rows = [Row(one, most, position) for one in self.kept]
        more = [(one.tape, one.written) for one in rows]
        more += [*self.inner.opened, (position.node, elementwise("add", position.checked, 1))]
        given = [(before_first(before, is_open=around.is_open), before, after) for before, after in more]
        found = self.parts.again(given, self.inner)
        around.keep(self.parts.node, found)
        written = found[len(self.parts.carried) :]
        if around.is_open:
            around.opened += [(first, one) for (first, _, _), one in zip(given, written, strict=True)]
        tapes = [(row.tape, one) for row, one in zip(rows, written, strict=False)]
        inner = zip(self.inner.opened, written[len(rows) :], strict=False)
        tapes += [(after, one) for (_, after), one in inner if after.ndim]
        return self._back(
            rows, tapes, (given[-1][0], written[-1]), Position(around.scope, most, rows=has_rows)
        )

    def _turned_round(self) -> list[Node]:
        """The loop back as one that counts as the loop does, from the end on."""
        begin, end, _ = self.parts.limits
        step = self.parts.step
        limits = [elementwise("subtract", one, step) for one in (end, begin)]
        (count,) = self.parts.count
        return self._loop([*limits, construct.constant(-step, "int64")], count, self.carried, {}, [])

    def _back(
        self, rows: Sequence[Row], tapes: list[tuple[Node, Node]], span: tuple[Node, Node], position: Position
    ) -> list[Node]:
        """The loop back from the position behind what was written to the first one."""
        start, behind = span
        replaced = {id(one.node): one.read(position) for one in rows}
        last = elementwise("subtract", behind, 1)
        written = {id(tape): one for tape, one in tapes}
        before = elementwise("maximum", elementwise("subtract", position.node, 1), 0)
        carried = list(self.carried)
        for row in rows:
            if any(
                row.node is one for one in self.numbers
            ):  # extents are about them, from where a round begins
                now = parameter("int64", (), 0, row.node.options["symbol"])
                first = picked(written[id(row.tape)], elementwise("maximum", last, 0))
                replaced[id(row.node)] = now
                carried.append((first, now, picked(row.tape, before)))
        for count in self.parts.count:
            used = reached([one for _, _, one in carried], replaced)
            if id(count) in used or count.options.get("symbol") in self.symbols:
                begin, _, step = self.parts.limits
                now = parameter("int64", (), 0, count.options.get("symbol", ""))
                rounds = elementwise("subtract", last, start)
                first = elementwise("add", begin, elementwise("multiply", rounds, step))
                replaced[id(count)] = now
                carried.append((first, now, elementwise("subtract", now, step)))
        limits = [last, elementwise("subtract", start, 1), construct.constant(-1, "int64")]
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
        outputs = [one for _, _, one in carried]
        used = reached(outputs, replaced)
        taken = [*tapes, *zip(parts.taken, parts.captured, strict=True)]
        taken = [(own, one) for own, one in taken if id(own) in used]
        given = [count, *(own for _, own, _ in carried), *(own for own, _ in taken)]
        body = region(given, outputs, (), replaced)
        options = {
            "counts": True,
            "carried": len(carried),
            "condition": region(given, [TRUE]),
            "body": body,
            "rounds": self.inner.own_rounds,
        }
        missing = unsupported(body)
        if missing:
            raise UnknownError(f"a loop, whose rounds backwards would need {missing} in them")
        firsts = [one for one, _, _ in carried]
        made = Node("loop", [*limits, *firsts, *(one for _, one in taken)], "int64", (), options)
        return items(made, firsts)[: len(self.carried)]
