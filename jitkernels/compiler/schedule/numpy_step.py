"""Functions of NumPy that compiled code calls where it needs them, with arrays made of memory that is there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from jitkernels.graph import calling, extents
from jitkernels.graph.emit.blocks import Function
from jitkernels.graph.emit.memory import Array
from jitkernels.graph.extents import Number
from jitkernels.graph.ir import Node
from jitkernels.native import numpy_call, vectorcall
from jitkernels.native.language.types import NUMBERS
from jitkernels.native.source import External

KINDS = {
    "array": numpy_call.ARRAY,
    "scalar": numpy_call.SCALAR,
    float: numpy_call.FLOAT,
    int: numpy_call.INT,
    bool: numpy_call.BOOL,
}


@dataclass
class NumpyCall:
    """The step of a node ``call``, and those of its results that are read. `hears`: warnings hang on it."""

    node: Node
    items: list[Node] = field(default_factory=list)
    hears: bool = False
    work: int = 0

    @property
    def externals(self) -> tuple[External, ...]:
        """What the code links to."""
        name = calling.name_of(self.node.options["function"])
        assert name is not None, "asked before"
        nodes = (*self.node.inputs, *self.items)
        return (
            numpy_call.entry(),
            External(name, "void", (), lambda: id(calling.named(name))),
            *(vectorcall.dtype_object(one) for one in dict.fromkeys(one.dtype for one in nodes)),
        )

    def text(self, function: Function, arrays: Mapping[int, Array], name: str) -> str:
        """A function that calls NumPy's; it returns 0 if that gave what is expected."""
        made = self.node.options["function"]
        kinds = made.kinds if type(made) is calling.Called else ["array"] * len(self.node.inputs)
        given = [
            [
                KINDS[kind],
                *_told(function, node, arrays[id(node)]),
                _listed(function, [step * NUMBERS[node.dtype].size for step in arrays[id(node)].strides]),
            ]
            for node, kind in zip(self.node.inputs, kinds, strict=True)
        ]
        wanted = [
            [
                -1 if one is self.node else one.options["index"],
                *_told(function, one, arrays[id(one)]),
                function.extent(extents.product(one.shape) * NUMBERS[one.dtype].size),
            ]
            for one in self.items
        ]
        records = [_records(function, one) for one in (given, wanted)]
        library, callee = function.library, calling.name_of(made)
        library.declare(numpy_call.NAME, "i64", ["ptr", "i64", "ptr", "i64", "ptr", "i64"])
        for one in self.externals[1:]:
            library.declared[one.symbol] = f"@{one.symbol} = external global i8"
        passed = f"ptr @{callee}, i64 {len(given)}, ptr {records[0]}, i64 {len(wanted)}, ptr {records[1]}"
        text = f"call i64 @{numpy_call.NAME}({passed}, i64 {int(self.hears)})"
        status = function.new(function.block, text)
        head = f"define internal i64 @{name}(ptr %frame, i64 %begin, i64 %end) noinline nounwind"
        return "\n".join([f"{head} {{", *function.memory, *function.block.lines, f"  ret i64 {status}", "}"])


def call_of(node: Node, items: Sequence[Node]) -> NumpyCall | None:
    """The step of a node; None where Python has to call the function between segments."""
    return NumpyCall(node, [*items] or [node]) if is_in_code(node) else None


def is_in_code(node: Node) -> bool:
    """Whether compiled code can call what a node calls."""
    return (
        node.operation == "call"
        and vectorcall.base() is not None
        and len(node.inputs) <= numpy_call.MOST
        and calling.name_of(node.options["function"]) is not None
    )


def _told(function: Function, node: Node, array: Array) -> list[object]:
    """Words that tell of an array: where it is, its dtype, dimensions and extents."""
    at = function.new(function.block, f"getelementptr i64, ptr %frame, i64 {array.word}")
    data = function.new(function.block, f"load i64, ptr {at}")
    dtype = f"ptrtoint (ptr @{vectorcall.dtype_object(node.dtype).symbol} to i64)"
    return [data, dtype, node.ndim, _listed(function, node.shape)]


def _listed(function: Function, numbers: Sequence[Number]) -> str:
    """The address of some numbers."""
    if not numbers:
        return "0"
    return function.new(
        function.block, f"ptrtoint ptr {_words(function, [*map(function.extent, numbers)])} to i64"
    )


def _records(function: Function, records: Sequence[Sequence[object]]) -> str:
    return _words(function, [word for record in records for word in record]) if records else "null"


def _words(function: Function, words: Sequence[object]) -> str:
    place = function.variable(f"[{len(words)} x i64]")
    for number, word in enumerate(words):
        at = function.new(function.block, f"getelementptr i64, ptr {place}, i64 {number}")
        function.block.lines.append(f"  store i64 {word}, ptr {at}")
    return place
