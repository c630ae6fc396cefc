"""Values of nodes in a printed nest: each is a variable of the outermost loop that it depends on.

An expression that one statement reads alone is part of that statement, as long as it stays short.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from jitkernels.compiler.codegen.core.ir_builder import Block
from jitkernels.compiler.codegen.nest.scan import FLOATS as SCANS_OF_FLOATS
from jitkernels.compiler.codegen.nest.scheduled_nest import ScheduledNest
from jitkernels.compiler.codegen.numba.python_expressions import constant_text, extent_text, index_text, parenthesize
from jitkernels.compiler.codegen.numba.spelling import Spelling
from jitkernels.compiler.ir import access_map
from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.strided_array import StridedArray
from jitkernels.compiler.ir.symbolic_dims import Number, symbols_of
from jitkernels.compiler.schedule.nest.nest_values import scanned_loop
from jitkernels.compiler.transforms.reduction_identity import COMBINING, identity
from jitkernels.core.frozen_dataclass import frozen_dataclass

MAX_INLINED_CHARS = 72
"""Characters of an expression that is written where it is read."""


@frozen_dataclass
class PrintedValue:
    """A value: a Python expression and its dtype. `home` is the block that computes it."""

    text: str
    dtype: str
    home: Block


@dataclass
class ValuePrinter:
    """Prints the values of one nest.

    `variables` are those of loops, `arrays` those of pointers by words of the frame, and `scalars` those that stand for
    arrays without dimensions. `reduced` has the results of reductions; `uses` says how often the statement at hand
    reads a value. `lane`: the loop of rows that are computed together, and the index of a row in `scratch` memory;
    `to_begin` is what that begins with in front of the loops of a phase. `prefix` begins all names of variables.
    """

    loops: ScheduledNest
    spelling: Spelling
    variables: dict[int, str] = field(default_factory=dict)
    arrays: dict[int, str] = field(default_factory=dict)
    symbols: set[str] = field(default_factory=set)
    reduced: dict[Any, tuple[str, str, Block | None]] = field(default_factory=dict)
    uses: Counter[Any] = field(default_factory=Counter)
    count: int = 0
    lane: tuple[int, str] | None = None
    scalars: dict[int, str] = field(default_factory=dict)
    prefix: str = ""
    scratch: list[tuple[str, str]] = field(default_factory=list)
    to_begin: list[tuple[str, str]] = field(default_factory=list)

    def extent(self, extent: Number) -> str:
        self._note(extent)
        return extent_text(extent)

    def _note(self, extent: Number) -> None:
        self.symbols |= symbols_of(extent)

    def array(self, array: StridedArray) -> str:
        """The variable of an array's pointer."""
        return self.arrays.setdefault(array.word, f"a{array.word}")

    def element(
        self, array: StridedArray, index_map: IndexMap, more: list[str] | None = None
    ) -> tuple[str, frozenset[int]]:
        """An element as text, and the loops that its index depends on.

        `scalars` has the variables that stand for arrays without dimensions, by their words.
        """
        if array.word in self.scalars:
            return self.scalars[array.word], frozenset()
        first, steps = array.coefficients(index_map)
        first = first + array.first
        for number in (first, *steps.values()):
            self._note(number)
        text = index_text(first, steps, self.variables, more or ())
        return f"{self.array(array)}[{text}]", frozenset(steps)

    def read(self, array: StridedArray, text: str) -> str:
        """An element as a number: bools are bytes in memory."""
        return f"{text} != 0" if array.dtype == "bool" and array.word not in self.scalars else text

    def written(self, array: StridedArray, text: str) -> str:
        """A number as an element."""
        return f"uint8({text})" if array.dtype == "bool" and array.word not in self.scalars else text

    def begin_statement(self, pairs: list[tuple[Node, IndexMap]]) -> None:
        """Count how often each value is read by what is computed next."""
        self.uses = Counter()
        seen: set[Any] = set()
        own = self.loops.values
        for node, index_map in pairs:
            self.uses[own.key(node, index_map)] += 1
            for needed, where in own.needed(node, index_map):
                key = own.key(needed, where)
                if key in seen or own.is_leaf(needed, where):
                    continue
                seen.add(key)
                for number, inner in enumerate(needed.inputs):
                    if not access_map.is_indexed(needed, number):
                        self.uses[own.key(inner, self.loops.inside(needed, number, where))] += 1

    def value(self, block: Block, node: Node, index_map: IndexMap) -> PrintedValue:
        """A node's value."""
        for needed, where in self.loops.values.needed(node, index_map):
            self._compute(block, needed, where)
        return self._known(block, node, index_map)

    def named(self, block: Block, node: Node, index_map: IndexMap) -> str:
        """A node's value as a variable or number of the block."""
        value = self.value(block, node, index_map)
        return self._variable(block, value.text) if not value.text.isidentifier() else value.text

    def _known(self, block: Block, node: Node, index_map: IndexMap) -> PrintedValue:
        key = self.loops.values.key(node, index_map)
        if key in self.reduced:
            text, dtype, home = self.reduced[key]
            return PrintedValue(text, dtype, home or self._lane_block(block))
        value: PrintedValue = block.find(key)
        return value

    def _lane_block(self, block: Block) -> Block:
        assert self.lane is not None, "rows together"
        return next(inner for inner in block.path() if inner.loop == self.lane[0])

    def _compute(self, block: Block, node: Node, index_map: IndexMap) -> None:
        key = self.loops.values.key(node, index_map)
        if key in self.reduced or block.find(key) is not None:
            return
        first = block.of(set())
        array = self.loops.values.scratch_of_value.get(key) or self.loops.values.arrays.get(node)
        if array is not None:
            text, loops = self.element(array, index_map)
            value = PrintedValue(self.read(array, text), node.dtype, block.of(loops))
        elif node.operation == "constant":
            value = PrintedValue(constant_text(node.options["value"], node.dtype), node.dtype, first)
        elif node.operation == "extent":
            text = self.spelling.cast(self.extent(node.options["extent"]), "int64", node.dtype)
            value = PrintedValue(text, node.dtype, first)
        elif node.operation == "iota":
            value = self._iota(block, node, index_map)
        elif node.operation == "scan":
            value = self._scanned(block, node, index_map)
        elif node.operation == "gather":
            value = self._gathered(block, node, index_map)
        else:
            value = self._computed(block, node, index_map)
        is_plain = node.operation in ("constant", "view", "reduce", "placed") or value.text.isidentifier()
        inline = self.uses[key] <= 1 and value.home is block and len(value.text) <= MAX_INLINED_CHARS
        if not (is_plain or inline):
            value = PrintedValue(self._variable(value.home, value.text), value.dtype, value.home)
        value.home.known[key] = value

    def _variable(self, block: Block, text: str) -> str:
        self.count += 1
        block.lines.append(f"{self.prefix}v{self.count} = {text}")
        return f"{self.prefix}v{self.count}"

    def deepest(self, block: Block, operands: list[PrintedValue]) -> Block:
        home = block.of(set())
        for operand in operands:
            if len(operand.home.path()) > len(home.path()):
                home = operand.home
        return home

    def _inputs(self, block: Block, node: Node, index_map: IndexMap) -> list[PrintedValue]:
        return [
            self._known(block, operand, self.loops.inside(node, number, index_map))
            for number, operand in enumerate(node.inputs)
        ]

    def _computed(self, block: Block, node: Node, index_map: IndexMap) -> PrintedValue:
        operands = self._inputs(block, node, index_map)
        home = self.deepest(block, operands)
        if node.operation in ("view", "reduce", "placed"):  # a reduction of nothing
            return PrintedValue(operands[0].text, operands[0].dtype, home)
        texts, kinds = [operand.text for operand in operands], [operand.dtype for operand in operands]
        if node.operation == "cast":
            return PrintedValue(self.spelling.cast(texts[0], kinds[0], node.dtype), node.dtype, home)
        return PrintedValue(self.spelling.elementwise(node.operation, texts, kinds, node.dtype), node.dtype, home)

    def _iota(self, block: Block, node: Node, index_map: IndexMap) -> PrintedValue:
        start, steps = index_map[node.options["axis"]]
        moves: dict[int, Number] = {}
        for loop, step in steps:
            moves[loop] = moves.get(loop, 0) + step
        for number in (start, *moves.values()):
            self._note(number)
        text = index_text(start, moves, self.variables)
        return PrintedValue(self.spelling.cast(text, "int64", node.dtype), node.dtype, block.of(frozenset(moves)))

    def numbers(
        self, block: Block, node: Node, index_map: IndexMap, array: StridedArray, extents: Any
    ) -> tuple[list[str], Block]:
        """What numbers that pick elements add to an index, and the block that knows them all."""
        terms, home = [], block.of(set())
        strides = array.strides[node.options["axis"] :]
        for i, index_node in enumerate(node.inputs[1:]):
            value = self._known(block, index_node, self.loops.inside(node, i + 1, index_map))
            text = value.text if value.text.isidentifier() else self._variable(value.home, value.text)
            wrapped = f"({text} if {text} >= 0 else {text} + {parenthesize(self.extent(extents[i]))})"
            stride = self.extent(strides[i])
            terms.append(wrapped if stride == "1" else f"{wrapped} * {parenthesize(stride)}")
            home = self.deepest(block, [value, PrintedValue("", "", home)])
        return terms, home

    def _gathered(self, block: Block, node: Node, index_map: IndexMap) -> PrintedValue:
        array, axis = self.loops.values.indexed(node), node.options["axis"]
        more, home = self.numbers(block, node, index_map, array, node.inputs[0].shape[axis:])
        own = tuple(
            (start, tuple((loop, step) for loop, step in steps if loop != access_map.ANYWHERE))
            for start, steps in self.loops.inside(node, 0, index_map)
        )
        text, loops = self.element(array, own, more)
        text = self.read(array, text)
        return PrintedValue(
            text, node.dtype, self.deepest(block, [PrintedValue("", "", home), PrintedValue("", "", block.of(loops))])
        )

    def _scanned(self, block: Block, node: Node, index_map: IndexMap) -> PrintedValue:
        """A variable that begins in front of the loop and takes the element of each step."""
        operand = self._inputs(block, node, index_map)[0]
        loop = scanned_loop(index_map, node.options["axis"])
        if loop is None:
            return operand
        home = next(inner for inner in block.path() if inner.loop == loop)
        if self.lane is not None:
            home = block.of({loop, self.lane[0]})
        kind, dtype = node.options["kind"], operand.dtype
        wide = "float32" if dtype == "float16" else dtype
        key = "scan", self.loops.values.column_loop_count, self.loops.values.key(node, index_map)
        name = home.find(key)
        if name is None:
            name = self._begin_scan(block, loop, wide, constant_text(identity(kind, dtype, -0.0), wide))
            block.of(set()).known[key] = name
        element = self.spelling.cast(operand.text, dtype, wide)
        if wide in ("float32", "float64") and kind in SCANS_OF_FLOATS:
            text = f"{name} {'+' if kind == 'sum' else '*'} {parenthesize(element)}"
        else:
            text = self.spelling.elementwise(COMBINING[kind], [name, element], [wide, wide], wide)
        if wide != dtype:  # each step is rounded to half precision
            text = self.spelling.cast(self.spelling.cast(text, wide, dtype), dtype, wide)
        home.lines.append(f"{name} = {text}")
        return PrintedValue(self.spelling.cast(name, wide, dtype), dtype, home)

    def _begin_scan(self, block: Block, loop: int, dtype: str, first: str) -> str:
        """The variable of a scan, set in front of its loop: the last statement before that loop begins."""
        self.count += 1
        if self.lane is not None:
            scratch = self.new_scratch(dtype)
            self.to_begin.append((scratch, first))
            return f"{scratch}[{self.lane[1]}]"
        name = f"{self.prefix}scan{self.count}"
        path = block.path()
        depth = next(i for i, inner in enumerate(path) if inner.loop == loop)
        path[depth - 1].lines.append(f"{name} = {first}")
        return name

    def new_scratch(self, dtype: str) -> str:
        """Memory for one number of each row that is computed together."""
        name = f"{self.prefix}t{len(self.scratch)}"
        self.scratch.append((name, dtype))
        return name
