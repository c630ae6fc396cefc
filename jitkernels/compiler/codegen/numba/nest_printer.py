"""One nest of a schedule as a Python function over flat arrays: a part of its outermost loop, as in the LLVM generator.

Rows are the outer loops. In every row come phases: reductions whose inputs are known, then what reads them. Where
arrays lie along rows that are reduced, blocks of `REDUCED_ROWS` rows go through each phase together, with their
accumulators in scratch memory, so that the innermost loop reads runs of memory.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from jitkernels.codegen.numba_functions import PythonFunction
from jitkernels.codegen.python.simd_library import Library
from jitkernels.compiler.codegen.core.ir_builder import Block
from jitkernels.compiler.codegen.nest.scheduled_nest import ScheduledNest
from jitkernels.compiler.codegen.numba.python_accumulators import MAX_ADDITIONS_OF_PART, PrintedReduction
from jitkernels.compiler.codegen.numba.python_call import REDUCED_ROWS, append_nested, calling_text, python_function
from jitkernels.compiler.codegen.numba.python_expressions import symbol
from jitkernels.compiler.codegen.numba.python_values import ValuePrinter
from jitkernels.compiler.codegen.numba.spelling import FLOATS, Spelling
from jitkernels.compiler.ir import access_map
from jitkernels.compiler.ir.symbolic_dims import value_of
from jitkernels.compiler.schedule.nest.nest_targets import NestTarget
from jitkernels.compiler.schedule.nest.scratch_values import scratch_of
from jitkernels.compiler.schedule.nest.trip_bounds import most_steps
from jitkernels.core.cached_property import unlocked_cached_property


class NestPrinter(ScheduledNest):
    """Prints one nest. `is_alone`: no pointer of the function overlaps another."""

    is_alone = True
    prefix = ""
    """What the variables of a nest inside of a loop or branch begin with; none where it is a function of its own."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.printed: ValuePrinter = ValuePrinter(self, Spelling(Library(alone=self.function.library.alone)))
        self.printed.variables = {loop: self.loop_name(loop) for loop in self.extents}
        reduces = self.loops.reduces or bool(self.loops.scanned)
        self.in_blocks = reduces and self.lane_loop in self.order
        self.number = 0

    def text(self) -> str:
        """LLVM IR of the function that the segment calls, and the printed function as a comment."""
        python = self.python
        words = {name: word for word, name in self.printed.arrays.items()}
        return calling_text(self.function, self.name, python, words, self._symbols)

    @unlocked_cached_property
    def python(self) -> PythonFunction:
        block, printed = Block(), self.printed
        self._all_rows(block)
        self._symbols = {symbol(name): name for name in sorted(printed.symbols)}
        dtypes = self._dtypes()
        arguments = [(name, f"{dtypes[word]}*") for word, name in sorted(printed.arrays.items())]
        noalias = frozenset(name for name, _ in (*(arguments if self.is_alone else []), *printed.scratch))
        arguments += [(name, f"{dtype}*") for name, dtype in printed.scratch]
        arguments += [(name, "int64") for name in (*self._symbols, "begin", "end")]
        return python_function(self.name, arguments, [self._docstring(), *block.lines], noalias, printed.spelling)

    def _docstring(self) -> str:
        loop = self.parallel_loop
        part = "the whole nest" if loop is None else f"steps begin to end of {self.loop_name(loop)}"
        return f'"""{self.title}: {part}."""'

    @property
    def title(self) -> str:
        silent = ("cast", "view", "constant", "extent")
        named = [node.options.get("kind", node.operation) for node in self.nest.nodes if node.operation not in silent]
        return " ".join(dict.fromkeys(map(str, named))) or "copy"

    def _dtypes(self) -> dict[int, str]:
        """The element type of each array, by its word."""
        value = {array.word: array.dtype for array in self.values.arrays.values()}
        value |= {target.array.word: target.array.dtype for target in self.targets if target.array is not None}
        return value

    def _all_rows(self, block: Block) -> None:
        """Print the whole nest."""
        self._rows(block, [loop for loop in self.order if not (self.in_blocks and loop == self.lane_loop)])

    def _rows(self, block: Block, order: list[int]) -> None:
        """The loops of rows, and all phases inside."""
        if order:
            loop, *others = order
            self.emit_loop(block, loop, lambda inside: self._rows(inside, others))
        elif self.in_blocks:
            self._row_blocks(block)
        else:
            self._row(block)

    def loop_name(self, loop: int) -> str:
        return f"{self.prefix}i{loop}" if loop < 64 else f"{self.prefix}k{loop - 64}"

    def inline(self, prefix: str, own: ValuePrinter) -> list[str]:
        """The statements of the whole nest, for a function that has its arrays and numbers in variables already."""
        self.prefix = prefix
        own.variables = {loop: self.loop_name(loop) for loop in self.extents}
        own.loops, own.prefix, self.printed = self, prefix, own
        block = Block()
        self._all_rows(block)
        return block.lines

    def emit_loop(self, block: Block, loop: int, body: Callable[[Block], None]) -> None:
        """A loop over a whole extent, or the part of it that the function does."""
        begin, end = self._limits(loop)
        self.loop(block, loop, begin, end, body)

    def _limits(self, loop: int) -> tuple[str, str]:
        if self.in_blocks and loop == self.lane_loop:
            return f"{self.loop_name(loop)}_begin", f"{self.loop_name(loop)}_end"
        if loop == self.parallel_loop and not self.prefix:
            return "begin", "end"
        return "0", self.printed.extent(self.extents[loop])

    def loop(self, block: Block, loop: int, begin: str, end: str, body: Callable[[Block], None]) -> None:
        """A loop from one number to another, backwards where something is stored over what it is computed from."""
        inside = Block(block, loop)
        body(inside)
        limits = end if begin == "0" else f"{begin}, {end}"
        if self.directions.get(loop) == -1:
            limits = f"{end} - 1, {begin} - 1, -1" if begin != "0" else f"{end} - 1, -1, -1"
        append_nested(block.lines, f"for {self.loop_name(loop)} in range({limits}):", inside.lines)

    def _row_blocks(self, block: Block) -> None:
        """Rows in blocks, each of which goes through all phases."""
        loop = self.vector_loop
        name = self.loop_name(loop)
        begin, end = "0", self.printed.extent(self.extents[loop])
        if loop == self.parallel_loop and not self.prefix:
            begin, end = "begin", "end"
        inside = Block(block, -1)
        inside.lines.append(f"{name}_end = min({name}_begin + {REDUCED_ROWS}, {end})")
        self.printed.lane = loop, f"{name} - {name}_begin"
        self._row(inside)
        append_nested(block.lines, f"for {name}_begin in range({begin}, {end}, {REDUCED_ROWS}):", inside.lines)

    def _row(self, block: Block) -> None:
        """All phases of one row, or of a block of rows."""
        for inner, outputs in self.loops.phase_loops():
            for loops, targets in inner:
                # LLVM makes no vectors of a loop that looks for an index: what else a phase does has its own.
                for searches in (False, True):
                    some = [target for target in targets if _finds_index(target) == searches]
                    if some:
                        self._phase(block, self.loops.inner_order(loops), some)
            if outputs:
                self._in_each_row(block, partial(self._store_all, targets=outputs))

    def _in_each_row(self, block: Block, body: Callable[[Block], None]) -> None:
        """What is done once for a row."""
        if self.in_blocks:
            self.emit_loop(block, self.vector_loop, body)
        else:
            body(block)

    def _store_all(self, block: Block, targets: list[NestTarget]) -> None:
        """Compute what is stored, and then store it: another root may read there what this one writes."""
        self.printed.begin_statement([(target.node, target.index_map) for target in targets])
        if len(targets) == 1:
            self._store(block, targets[0], self.printed.value(block, targets[0].node, targets[0].index_map).text)
            return
        texts = [self.printed.named(block, target.node, target.index_map) for target in targets]
        for target, text in zip(targets, texts, strict=True):
            self._store(block, target, text)

    def _store(self, block: Block, target: NestTarget, value: str) -> None:
        printed, node = self.printed, target.node
        if node.operation != "placed":
            text, _ = printed.element(target.output, target.index_map)
            block.lines.append(f"{text} = {printed.written(target.output, value)}")
            return

        more, _ = printed.numbers(block, node, target.index_map, target.output, node.options["extents"])
        own = tuple(
            (start, tuple((loop, step) for loop, step in steps if loop != access_map.ANYWHERE))
            for start, steps in target.where
        )
        text, _ = printed.element(target.output, own, more)
        if access_map.adds(node):
            dtype = target.output.dtype
            value = printed.spelling.elementwise(
                "add", [printed.read(target.output, text), value], [dtype, dtype], dtype
            )
        block.lines.append(f"{text} = {printed.written(target.output, value)}")

    def _phase(self, block: Block, loops: list[int], targets: list[NestTarget]) -> None:
        """One nest of inner loops: reductions take their elements, roots are stored."""
        self.values.column_loop_count += 1
        reductions = [(target, self._reduction(target, loops)) for target in targets if target.reduction is not None]
        scratch = [
            scratch
            for scratch in scratch_of(self.loops.scratch_values, targets[0])
            if self.values.key(scratch.node, scratch.index_map) not in self.values.scratch_of_value
        ]
        stored = [target for target in (*targets, *scratch) if target.reduction is None]
        self.printed.to_begin = []
        body = Block(block, -2)
        self._begin(block, [reduction for _, reduction in reductions])
        is_long = any(reduction.in_parts for _, reduction in reductions)
        if is_long:
            self._in_parts(body, loops[0], reductions, stored)
        else:
            order = [*loops, self.lane_loop] if self.in_blocks else loops
            self._inner(body, order, lambda inside: self._step(inside, loops, reductions, stored))
        for name, first in self.printed.to_begin:
            assert self.printed.lane is not None, "rows together"
            self._in_each_row(block, partial(_append, line=f"{name}[{self.printed.lane[1]}] = {first}"))
        block.lines += body.lines
        for target, reduction in reductions:
            block.lines += reduction.result()
            key = self.values.key(*target.reduced)
            self._reduced(block, key, target, reduction)
        for target in scratch:
            self.values.scratch_of_value[self.values.key(target.node, target.index_map)] = target.output

    def _reduced(self, block: Block, key: Any, target: NestTarget, reduction: PrintedReduction) -> None:
        """Note where the result of a reduction is, in the dtype of its node."""
        text, dtype = reduction.value()
        text = self.printed.spelling.cast(text, dtype, target.reduced[0].dtype)
        home = None if self.in_blocks else block
        self.printed.reduced[key] = text, target.reduced[0].dtype, home
        self.values.reduced[key] = None  # type: ignore[assignment]  # which tells that it is a leaf

    def _begin(self, block: Block, reductions: list[PrintedReduction]) -> None:
        lines = [line for reduction in reductions for line in reduction.begin()]
        if lines:
            self._in_each_row(block, lambda inside: inside.lines.extend(lines))

    def _reduction(self, target: NestTarget, loops: list[int]) -> PrintedReduction:
        """A reduction, with a variable of its own, or an element of scratch memory for each row of a block."""
        node = target.reduced[0]
        kind = str(node.options["kind"])
        dtype = target.node.dtype if kind in ("argmin", "argmax") else node.dtype
        self.number += 1
        name, index = f"{self.prefix}{kind}{self.number}", f"{self.prefix}index{self.number}"
        if self.in_blocks:
            assert self.printed.lane is not None, "rows together"
            lane_index = self.printed.lane[1]
            name = f"{self.printed.new_scratch('float32' if dtype == 'float16' else dtype)}[{lane_index}]"
            if kind in ("argmin", "argmax"):
                index = f"{self.printed.new_scratch('int64')}[{lane_index}]"
        inner = "float32" if dtype == "float16" else dtype
        extent = value_of(self.extents[loops[-1]])
        is_long = kind == "sum" and inner in FLOATS and not self.in_blocks and len(loops) == 1
        return PrintedReduction(kind, dtype, name, index, in_parts=is_long and self._may_be_long(loops[0], extent))

    def _may_be_long(self, loop: int, now: int) -> bool:
        """Whether a loop may have more iterations than a part."""
        most = most_steps(self.extents[loop])
        return most is None or most > MAX_ADDITIONS_OF_PART or now > MAX_ADDITIONS_OF_PART

    def _inner(self, block: Block, loops: list[Any], body: Callable[[Block], None]) -> None:
        """Loops, one in another."""
        if not loops:
            body(block)
            return
        loop, *others = loops
        self.emit_loop(block, loop, lambda inside: self._inner(inside, others, body))

    def _in_parts(self, block: Block, loop: int, reductions: list[Any], stored: list[NestTarget]) -> None:
        """A loop in parts, each of which has its own sum."""
        name, (begin, end) = self.loop_name(loop), self._limits(loop)
        inside = Block(block, -1)
        for _, reduction in reductions:
            inside.lines += reduction.begin_part()
        last = f"min({name}_part + {MAX_ADDITIONS_OF_PART}, {end})"
        self.loop(inside, loop, f"{name}_part", last, lambda block: self._step(block, [loop], reductions, stored))
        for _, reduction in reductions:
            inside.lines += reduction.end_part()
        append_nested(block.lines, f"for {name}_part in range({begin}, {end}, {MAX_ADDITIONS_OF_PART}):", inside.lines)

    def _step(self, block: Block, loops: list[int], reductions: list[Any], stored: list[NestTarget]) -> None:
        """One element: all is read before anything is written."""
        printed = self.printed
        pairs = [(target.node, target.index_map) for target, _ in reductions]
        pairs += [(target.node, target.index_map) for target in stored]
        printed.begin_statement(pairs)
        if not reductions:
            self._store_all(block, stored)
            return
        values = [printed.named(block, target.node, target.index_map) for target in stored]
        for target, reduction in reductions:
            element = printed.value(block, target.node, target.index_map)
            text = printed.spelling.cast(element.text, element.dtype, reduction.inner)
            if reduction.is_index:
                text = text if text.isidentifier() else printed._variable(block, text)
            block.lines += reduction.accumulate_element(printed.spelling, text, self.loop_name(loops[-1]))
        for target, value in zip(stored, values, strict=True):
            self._store(block, target, value)


def _finds_index(target: NestTarget) -> bool:
    return target.reduction is not None and target.reduced[0].options["kind"] in ("argmin", "argmax")


def _append(block: Block, line: str) -> None:
    block.lines.append(line)
