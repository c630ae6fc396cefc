"""Loops and branches as one function: numbers in registers, arrays written where they lie.

Variables are memory of their own, which LLVM puts in registers. A region's nodes come in an order in which each version
of an array is read before the next one is written over it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jitkernels.graph import leaving
from jitkernels.graph.carried import Joined
from jitkernels.graph.emit import conditions, polls, proven, shared_rounds, short_loops
from jitkernels.graph.emit.blocks import Register, llvm_type
from jitkernels.graph.emit.conversions import converted
from jitkernels.graph.emit.elements import FlowFunction, Place
from jitkernels.graph.emit.elementwise import applied
from jitkernels.graph.emit.group_calls import Values
from jitkernels.graph.emit.loop_parts import LoopParts
from jitkernels.graph.emit.patience import Patience
from jitkernels.graph.emit.polls import FULL, REFUSED
from jitkernels.graph.extents import Number, product
from jitkernels.graph.flows import Flow, targets_of
from jitkernels.graph.ir import Graph, Node
from jitkernels.native.language.types import NUMBERS


@dataclass
class FlowEmitter(LoopParts, Patience):
    """Writes the function of one loop or branch."""

    flow: Flow
    name: str

    def __post_init__(self) -> None:
        super().__post_init__()
        self.swaps = self.can_fill = self.shares = False
        self.depth = 0
        self.exits: dict[int, Any] = {}
        self.parts: list[str] = []
        self.proven: set[int] = set()

    def text(self) -> str:
        """The functions: one that finds the arrays, and one that is told that they do not overlap."""
        node = self.flow.node
        values: Values = {}
        for one in node.inputs:
            values[id(one)] = self._given(one)
        results = self._flow(node, values)
        for item in self.flow.items:
            if not item.ndim:
                pointer = self._pointer(self.arrays[id(item)].word)
                self._stored(pointer, results[item.options["index"]])
        body = "\n".join([*self.function.memory, *self.function.block.lines, *self.block.lines])
        arguments = "".join(f", ptr noalias %array{word}" for word in self.pointers)
        found, passed = [], ""
        for word in self.pointers:
            found.append(f"  %at{word} = getelementptr i64, ptr %frame, i64 {word}")
            found.append(f"  %array{word} = load ptr, ptr %at{word}")
            passed += f", ptr %array{word}"
        return "\n".join(
            [
                *self.parts,
                f"define internal i64 @{self.name}.inside(ptr noalias readonly %frame{arguments}) noinline nounwind {{",
                body,
                "  ret i64 0\nrefused:",
                f"  ret i64 {REFUSED}",
                *([f"full:\n  ret i64 {FULL}"] if self.can_fill else []),
                *([f"short:\n  ret i64 {shared_rounds.SHORT}"] if self.shares else []),
                *([f"interrupted:\n  ret i64 {polls.INTERRUPTED}"] if self.patience or self.shares else []),
                "}",
                f"define internal i64 @{self.name}(ptr noalias readonly %frame, i64 %begin, i64 %end) nounwind {{",
                *found,
                f"  %status = call i64 @{self.name}.inside(ptr %frame{passed})",
                "  ret i64 %status\n}",
            ]
        )

    def _region(self, graph: Graph, given: Sequence[Any], known: Values | None = None) -> list[Any]:
        """What a region gives for its inputs; some of its nodes may be known."""
        values: Values = {id(one): value for one, value in zip(graph.inputs, given, strict=True)}
        values.update(known or {})
        checks = {id(one) for one in graph.checks}
        for nodes, group in self.flow.bodies[id(graph)].stages:
            for node in nodes:
                if id(node) not in values:
                    values[id(node)] = self._value(node, values)
                if id(node) in checks:
                    self._refuse(values[id(node)])
            if group is not None:
                self._nests(group, values)
        return [values[id(node)] for node in graph.outputs]

    def _value(self, node: Node, values: Values) -> Any:
        given = [values[id(one)] for one in node.inputs]
        match node.operation:
            case "constant" | "extent":
                return self._number(node)
            case "cast":
                return converted(self.function, self.block, given[0], node.dtype)
            case "item":
                return given[0][node.options["index"]]
            case "bounded" if id(node) in self.proven:
                return given[0]
            case "bounded":
                self.can_fill = self.can_fill or "grows" in node.options
                return self._bounded(node, given[0])
            case "overflows":
                return self._overflows(node.options["of"], *given)
            case "gather":
                return self._loaded(self._element(given[0], given[1:]), node.dtype)
            case "scatter":
                self._stored(self._element(given[0], given[2:]), given[1])
                return given[0]
            case "loop" | "branch":
                return self._flow(node, values)
            case "less" if node.inputs[0].operation == "bounded" and _is_zero(node.inputs[1]):
                return Register("false", "bool")
        if node.options.get("natural"):  # whose operands are not negative, nor the divisor zero
            name = "udiv" if node.operation == "floor_divide" else "urem"
            return Register(self._new(f"{name} i64 {given[0].text}, {given[1].text}"), node.dtype)
        return applied(self.function, self.block, node.operation, given, node.dtype)

    def _flow(self, node: Node, values: Values) -> list[Any]:
        given = [values[id(one)] for one in node.inputs]
        if node.operation == "branch":
            return self._branch(node, given, values)
        bodies, work = self.flow.bodies, None
        if self.part is None:
            moving = self.function.moving
            work = shared_rounds.work(node, bodies, moving, is_outermost=not self.depth)
        if work is not None:
            return self._shared(node, given, *work)
        self.depth += 1
        found = self._loop(node, given)
        self.depth -= 1
        return found

    def _shared(self, node: Node, given: list[Any], work: Number, joined: Mapping[int, Joined]) -> list[Any]:
        """A loop whose rounds threads share."""
        name = f"{self.name}.part{len(self.parts)}"
        groups = shared_rounds.groups_of(node, self.flow.bodies)
        rounds = shared_rounds.SharedRounds(self, given, name, groups, joined)
        values, _ = rounds.inside()
        function = FlowFunction(self.function.library, self.function.places, self.function.moving)
        part = FlowEmitter(self.arrays, function, self.flow, name, part=node)
        rounds.memory(part)
        for number, symbol in enumerate(rounds.moving):
            function.let(symbol, f"%symbol{number}")
        rounds.join(part, part._loop(node, values))
        body = "\n".join([*function.memory, *function.block.lines, *part.block.lines])
        status = rounds.call(work)
        self.parts += rounds.texts(body, polls_inside=bool(part.patience))
        self.shares = True
        self._end_with(status)
        first = 3
        carried = given[first : first + node.options["carried"]]
        outputs = node.options["body"].outputs
        now = [
            self._number(output) if isinstance(one, Register) and output.operation == "constant" else one
            for one, output in zip(carried, outputs, strict=True)
        ]
        for number, value in rounds.joined_now().items():
            now[number] = value
        return now

    def _end_with(self, status: str) -> None:
        """Leave where a part of a loop was refused, or interrupted."""
        bad, onwards = self.function.label(), self.function.label()
        fine = self._new(f"icmp eq i64 {status}, 0")
        self.block.lines += [f"  br i1 {fine}, label %{onwards}, label %{bad}, !prof !7", f"{bad}:"]
        for bit, label in ((polls.INTERRUPTED, "interrupted"), (shared_rounds.SHORT, "short")):
            found, otherwise = self._new(f"and i64 {status}, {bit}"), self.function.label()
            told = self._new(f"icmp ne i64 {found}, 0")
            self.block.lines += [f"  br i1 {told}, label %{label}, label %{otherwise}", f"{otherwise}:"]
        self.block.lines += ["  br label %refused", f"{onwards}:"]

    def _loop(self, node: Node, given: list[Any]) -> list[Any]:
        """A loop whose conditions stand at its end, and once before it."""
        counts, options = node.options["counts"], node.options
        first = 3 if counts else 0
        carried, captured = given[first : first + options["carried"]], given[first + options["carried"] :]
        shift = 1 if counts else 0
        moving = {i for i, place in targets_of(node).items() if place != i + shift}
        places = [
            self._variable(one) if isinstance(one, Register) else self._held(one) if i in moving else ""
            for i, one in enumerate(carried)
        ]
        counter = self._variable(given[0]) if counts else ""

        def inputs() -> list[Any]:
            now = [self._now(at, one) for at, one in zip(places, carried, strict=True)]
            count = [self._get(counter, "int64")] if counts else []
            return [*count, *now, *captured]

        def go_on(target: str, after: str, end: str, sign: str = "") -> None:
            if counts:
                sign = sign or ("sgt" if given[2].text.startswith("-") else "slt")
                here = self._get(counter, "int64")
                more = self._new(f"icmp {sign} i64 {here.text}, {end}")
                asked = self.function.label()
                self.block.lines += [f"  br i1 {more}, label %{asked}, label %{after}", f"{asked}:"]
            (found,) = self._region(options["condition"], inputs())
            self.block.lines.append(f"  br i1 {found.text}, label %{target}, label %{after}")

        body = options["body"]
        stages = self.flow.bodies[id(body)].stages
        last = None if any(group for _, group in stages) else leaving.last_branch(node, stages[0][0])
        is_inner = self.depth > 1 or (self.part is not None and self.depth > 0)
        weight = polls.weight(node, self.flow.bodies[id(body)], is_inner=is_inner)

        in_blocks = weight == polls.OF_LOOPS and polls.is_in_blocks(node)
        copies = polls.copies(node) if weight == polls.OF_NUMBERS else 1

        def once(after: str, read: Values) -> None:
            now = inputs()
            for one, value in zip(body.inputs, now, strict=False):
                if "symbol" in one.options:
                    self.function.let(one.options["symbol"], value.text)
            if last is not None:
                self.exits[id(last)] = node, places, after
            results = self._region(body, now, read)
            for at, one in zip(places, results, strict=True):
                if at and isinstance(one, Place):
                    self.block.lines.append(f"  store ptr {one.pointer}, ptr {at}")
                elif at:
                    self._set(at, one)
            if counts:
                self._set(
                    counter, Register(self._new(f"add nsw i64 {now[0].text}, {given[2].text}"), "int64")
                )

        def rounds(end: str, reads: Sequence[Node]) -> None:
            before, block, inside, asks, after = (self.function.label() for _ in range(5))
            go_on(before, after, end)
            self.block.lines.append(f"{before}:")
            known = dict(zip(map(id, body.inputs), inputs(), strict=True)) if reads else {}
            read = {id(one): self._read_before(one, known) for one in reads}
            block_end = ""
            if in_blocks:
                self.block.lines += [f"  br label %{block}", f"{block}:"]
                block_end = self._block_end(counter, end, int(given[2].text))
            self.block.lines += [f"  br label %{inside}", f"{inside}:"]
            once(after, read)
            for _ in range(copies - 1):
                again = self.function.label()
                go_on(again, after, end)
                self.block.lines.append(f"{again}:")
                once(after, read)
            if in_blocks:
                go_on(inside, asks, block_end, "ne")
                self.block.lines.append(f"{asks}:")
            self._poll(weight * (polls.BLOCK if in_blocks else copies))
            go_on(block if in_blocks else inside, after, end)
            self.block.lines.append(f"{after}:")

        parts = self._parts(node, given, moving)
        indices = proven.moving_indices(node, self.flow.bodies) if len(parts) == 1 else []
        if indices:
            tested, onwards = self._without_tests(indices, node, given)
            rounds(*parts[0])
            self.proven -= {id(one.node) for one in indices}
            self.block.lines += [f"  br label %{onwards}", f"{tested}:"]
            rounds(*parts[0])
            self.block.lines += [f"  br label %{onwards}", f"{onwards}:"]
        else:
            for end, reads in parts:
                rounds(end, reads)
        if not weight and is_inner:
            found = short_loops.moved(node)
            if counts:
                self._take_patience(counter, given[0], is_up=not given[2].text.startswith("-"))
            elif found is not None:
                self._take_patience(places[found[0]], carried[found[0]], is_up=found[1])
        self._home([places[i] for i in sorted(moving)], [carried[i] for i in sorted(moving)], node, moving)
        return [
            self._get(at, one.dtype) if at and isinstance(one, Register) else one
            for at, one in zip(places, carried, strict=True)
        ]

    def _without_tests(self, indices: list[proven.Moving], node: Node, given: list[Any]) -> tuple[str, str]:
        """Begin the form of a loop that does not test some indices; the labels of the other form, and behind both."""
        begin, end, step = (one.text for one in given[:3])
        is_up = not step.startswith("-")
        last = self._new(f"{'sub' if is_up else 'add'} i64 {end}, 1")
        apart = self._new(f"sub i64 {last if is_up else begin}, {begin if is_up else last}")
        fine = self._new(f"icmp sge i64 {apart}, 0")
        inputs = {
            id(one): value for one, value in zip(node.options["body"].inputs[1:], given[3:], strict=True)
        }
        for one in indices:
            total = "0"
            for sign, term in one.terms:
                text = (inputs[id(term)] if id(term) in inputs else self._number(term)).text
                total = self._new(f"{'add' if sign > 0 else 'sub'} i64 {total}, {text}")
            extent = self.function.extent(one.node.options["extent"])
            for count in (begin, last):
                index = self._new(f"{'add' if one.sign > 0 else 'sub'} i64 {total}, {count}")
                inside = self._new(f"icmp ult i64 {index}, {extent}")
                fine = self._new(f"and i1 {fine}, {inside}")
        plain, tested, onwards = (self.function.label() for _ in range(3))
        self.block.lines += [f"  br i1 {fine}, label %{plain}, label %{tested}, !prof !7", f"{plain}:"]
        self.proven |= {id(one.node) for one in indices}
        return tested, onwards

    def _home(self, held: Sequence[str], arrays: Sequence[Place], node: Node, moving: set[int]) -> None:
        """Arrays that have changed places go where their results are to lie: contents are swapped, once at the end."""
        if not held:
            return
        self.swaps = True
        first = 3 if node.options["counts"] else 0
        for number, (at, array) in enumerate(zip(held, arrays, strict=True)):
            shape = node.inputs[first + sorted(moving)[number]].shape
            size = self.function.extent(product(shape) * NUMBERS[array.dtype].size)
            here = self._new(f"load ptr, ptr {at}")
            self.block.lines.append(f"  call void @jk_swapped(ptr {here}, ptr {array.pointer}, i64 {size})")
            for other in held[number + 1 :]:
                there = self._new(f"load ptr, ptr {other}")
                same_one = self._new(f"icmp eq ptr {there}, {array.pointer}")
                now = self._new(f"select i1 {same_one}, ptr {here}, ptr {there}")
                self.block.lines.append(f"  store ptr {now}, ptr {other}")

    def _leaves(self, branch: Node, name: str, results: list[Any], values: Values) -> bool:
        """Leave the loop that ends with a branch, if this side of it does; then all that it carries is set."""
        if id(branch) not in self.exits:
            return False
        loop, places, after = self.exits[id(branch)]
        if not leaving.is_left(loop, branch, name):
            return False
        for at, output in zip(places, loop.options["body"].outputs, strict=True):
            if output.operation == "item":
                of = output.inputs[0]
                value = (results if of is branch else values[id(of)])[output.options["index"]]
            else:
                value = (
                    self._number(output) if output.operation in ("constant", "extent") else values[id(output)]
                )
            if at and isinstance(value, Place):
                self.block.lines.append(f"  store ptr {value.pointer}, ptr {at}")
            elif at:
                self._set(at, value)
        self.block.lines.append(f"  br label %{after}")
        return True

    def _branch(self, node: Node, given: list[Any], values: Values) -> list[Any]:
        condition, *captured = given
        if conditions.is_quick(node):
            sides = [self._region(node.options[name], captured) for name in ("yes", "no")]
            return [self._chosen(condition, *both) for both in zip(*sides, strict=True)]
        labels = [self.function.label() for _ in range(3)]
        self.block.lines.append(f"  br i1 {condition.text}, label %{labels[0]}, label %{labels[1]}")
        places: list[str] = []
        results: list[Any] = []
        for name, label in zip(("yes", "no"), labels, strict=False):
            self.block.lines.append(f"{label}:")
            results = self._region(node.options[name], captured)
            if not places:
                places = [
                    self.function.variable(llvm_type(one.dtype)) if isinstance(one, Register) else ""
                    for one in results
                ]
            if self._leaves(node, name, results, values):
                continue
            for at, one in zip(places, results, strict=True):
                if at:
                    self._set(at, one)
            self.block.lines.append(f"  br label %{labels[2]}")
        self.block.lines.append(f"{labels[2]}:")
        return [self._get(at, one.dtype) if at else one for at, one in zip(places, results, strict=True)]

    def _chosen(self, condition: Register, one: Register, other: Register) -> Register:
        kind = llvm_type(one.dtype)
        text = f"select i1 {condition.text}, {kind} {one.text}, {kind} {other.text}"
        return Register(self._new(text), one.dtype)


def _is_zero(node: Node) -> bool:
    return node.operation == "constant" and node.options["value"] == 0
