"""Calls of the nests of a group in a loop or branch, which have a frame of their own."""

from typing import Any

from jitkernels.graph.bodies import Group
from jitkernels.graph.emit.blocks import Register, memory_type
from jitkernels.graph.emit.elements import Elements, Place
from jitkernels.graph.extents import is_moving, least_of, product
from jitkernels.graph.ir import Node
from jitkernels.native.language.types import NUMBERS

Values = dict[int, Any]
"""What nodes are, by their ids: a `Register`, a `Place`, or a list of these."""


class GroupCalls(Elements):
    """Writes the calls."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.numbers: dict[int, str] = {}

    def _nests(self, group: Group, values: Values) -> None:
        """Call the nests of a group, which have a frame of their own."""
        program = group.program
        frame = self.function.variable(f"[{len(program.words) + len(program.symbols) + 1} x i64]")

        fixed = {*self.pointers.values()}

        def keep(word: int, kind: str, text: str, *, moves: bool = False) -> None:
            head = self.block if moves else self.function.block
            at = self.function.new(head, f"getelementptr i64, ptr {frame}, i64 {word}")
            head.lines.append(f"  store {kind} {text}, ptr {at}")

        for name, word in program.symbols.items():
            if name not in self.function.moving:
                keep(word, "i64", self.function.extent_of(name))
            elif name in self.function.variables:  # others are of other loops
                keep(word, "i64", self.function.current(name), moves=True)
        for node, taken in zip(program.graph.inputs, group.taken, strict=True):
            value = values[id(taken)]
            if isinstance(value, Place):
                keep(program.words[id(node)], "ptr", value.pointer, moves=value.pointer not in fixed)
            else:
                at = self.function.variable(memory_type(value.dtype))
                keep(program.words[id(node)], "ptr", at)
                self._stored(at, value)
        for node in program.made:
            at = (
                self._memory(group.words[id(node)], group)
                if node.ndim
                else self.function.variable(memory_type(node.dtype))
            )
            self.numbers[id(node)] = at
            keep(program.words[id(node)], "ptr", at)
        before: frozenset[int] = frozenset()
        for call, product_node in group.calls:
            if call.turns and (not before or call.turns & before):
                self._turn(frame, len(program.words) + len(program.symbols))
            before = call.turns or before
            behind = self._unless_empty(product_node, group, frame) if product_node is not None else ""
            end = "1" if call.extent is None else self.function.extent(call.extent)
            began = call.clock.start(self._new) if call.clock else ""
            status = self._new(f"call i64 @{call.name}(ptr {frame}, i64 0, i64 {end})")
            if call.clock:
                self.block.lines.append(call.clock.stop(began))
            self._refuse(Register(self._new(f"icmp ne i64 {status}, 0"), "bool"))  # a kernel had no memory
            if behind:
                self.block.lines += [f"  br label %{behind}", f"{behind}:"]
        outputs = len(program.graph.outputs)
        for node, given in zip(program.graph.outputs, group.given[:outputs], strict=True):
            if given.ndim:
                array = group.arrays[id(node)]
                values[id(given)] = Place(self._pointer(group.words[id(node)]), array.strides, node.dtype)
            else:
                values[id(given)] = self._loaded(self.numbers[id(node)], node.dtype)
        places = {
            id(node): values[id(one)] for node, one in zip(group.graph.inputs, group.taken, strict=True)
        }
        for (target, _), given in zip(group.graph.writes, group.given[outputs:], strict=True):
            # Also where nothing changes, and the program has no such write.
            values[id(given)] = places[id(target)]

    def _turn(self, frame: str, word: int) -> None:
        """Have the nests that follow go the other way than what was there before them, from where that ended."""
        head = self.function.block
        at = self.function.new(head, f"getelementptr i64, ptr {frame}, i64 {word}")
        head.lines.append(f"  store i64 0, ptr {at}")
        now = self._new(f"load i64, ptr {at}")
        self.block.lines.append(f"  store i64 {self._new(f'xor i64 {now}, 1')}, ptr {at}")

    def _memory(self, word: int, group: Group) -> str:
        """The address of memory of a group, of which nothing is told where it is that of others at other times."""
        if word not in group.sharing or word in self.pointers:
            return self._pointer(word)
        head = self.function.block
        return self.function.new(
            head, f"load ptr, ptr {self.function.new(head, f'getelementptr i64, ptr %frame, i64 {word}')}"
        )

    def _unless_empty(self, node: Node, group: Group, frame: str) -> str:
        """Go round the call of a kernel that has nothing to sum in this round, to a label; the result is zeros then."""
        sizes = product([*node.inputs[0].shape, node.shape[-1]])
        if not is_moving(sizes) or (least_of(sizes) or 0) > 0:
            return ""
        some, none, behind = (self.function.label() for _ in range(3))
        more = self._new(f"icmp sgt i64 {self.function.extent(sizes)}, 0")
        self.block.lines += [f"  br i1 {more}, label %{some}, label %{none}", f"{none}:"]
        at = self._new(f"getelementptr i64, ptr {frame}, i64 {group.arrays[id(node)].word}")
        pointer = self._new(f"load ptr, ptr {at}")
        size = self.function.extent(product(node.shape) * NUMBERS[node.dtype].size)
        name = "llvm.memset.p0.i64"
        self.function.library.declare(name, "void", ["ptr", "i8", "i64", "i1"])
        self.block.lines.append(f"  call void @{name}(ptr {pointer}, i8 0, i64 {size}, i1 false)")
        self.block.lines += [f"  br label %{behind}", f"{some}:"]
        return behind
