"""Parts of loops: the rounds before and behind the one in which the count meets what each reads; arrays of rounds."""

from collections.abc import Collection, Sequence
from typing import Any

from jitkernels.graph import conflicts
from jitkernels.graph.emit.blocks import Register
from jitkernels.graph.emit.elements import Place
from jitkernels.graph.emit.group_calls import GroupCalls, Values
from jitkernels.graph.ir import Node


class LoopParts(GroupCalls):
    """What a loop is made of, but for its rounds."""

    def _parts(
        self, node: Node, given: list[Any], moving: Collection[int]
    ) -> list[tuple[str, Sequence[Node]]]:
        """Where the parts of a loop end one after another, and what is read once for all rounds of each."""
        found = conflicts.of(node, moving)
        if found is None:
            return [(given[1].text if node.options["counts"] else "", ())]
        begin, end = given[0].text, given[1].text
        places = [id(one) for one in node.options["body"].inputs]
        index = given[places.index(id(found.index)) + 2].text
        at = self._limited("slt", index, end)
        at = self._limited("sgt", at, begin)
        behind = self._limited("slt", self._new(f"add i64 {at}, 1"), end)
        return [(at, found.reads), (behind, ()), (end, found.reads)]

    def _limited(self, sign: str, one: str, other: str) -> str:
        """The smaller of two, or the larger."""
        return self._new(f"select i1 {self._new(f'icmp {sign} i64 {one}, {other}')}, i64 {one}, i64 {other}")

    def _read_before(self, node: Node, known: Values) -> Register:
        """An element of an array that has not changed yet."""
        array = node.inputs[0]
        while id(array) not in known:
            array = array.inputs[0]  # a version of it: they share memory
        indices = [
            self._number(one) if one.operation == "constant" else known[id(one)] for one in node.inputs[1:]
        ]
        return self._loaded(self._element(known[id(array)], indices), node.dtype)

    def _held(self, array: Place) -> str:
        """The address of a variable that has the address of an array."""
        at = self.function.variable("ptr")
        self.block.lines.append(f"  store ptr {array.pointer}, ptr {at}")
        return at

    def _now(self, at: str, value: Any) -> Any:
        """What a carried value is in this round."""
        if not at:
            return value
        if isinstance(value, Place):
            return Place(self._new(f"load ptr, ptr {at}"), value.strides, value.dtype)
        return self._get(at, value.dtype)
