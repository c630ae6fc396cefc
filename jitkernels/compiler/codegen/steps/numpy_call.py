"""Calls of NumPy functions: array descriptors are passed to the callback, which makes ndarrays of them."""

from collections.abc import Mapping, Sequence

from jitkernels.codegen.python.types import NUMBERS
from jitkernels.compiler.codegen.core.ir_builder import FunctionBuilder
from jitkernels.compiler.ir import numpy_call_spec, symbolic_dims
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.strided_array import StridedArray
from jitkernels.compiler.ir.symbolic_dims import Number
from jitkernels.compiler.schedule.numpy_step import NumpyCall
from jitkernels.runtime import python_callback, vectorcall

KINDS = {
    "array": python_callback.ARRAY,
    "scalar": python_callback.SCALAR,
    float: python_callback.FLOAT,
    int: python_callback.INT,
    bool: python_callback.BOOL,
}


def text_of(call: NumpyCall, function: FunctionBuilder, arrays: Mapping[Node, StridedArray], name: str) -> str:
    """Return a function that calls NumPy's function; it returns 0 if the result is as expected."""
    called_spec = call.node.options["function"]
    kinds = called_spec.kinds if type(called_spec) is numpy_call_spec.Called else ["array"] * len(call.node.inputs)
    operands = [
        [
            KINDS[kind],
            *_descriptor(function, node, arrays[node]),
            _number_list(function, [step * NUMBERS[node.dtype].size for step in arrays[node].strides]),
        ]
        for node, kind in zip(call.node.inputs, kinds, strict=True)
    ]
    results = [
        [
            -1 if item is call.node else item.options["index"],
            *_descriptor(function, item, arrays[item]),
            function.extent(symbolic_dims.product(item.shape) * NUMBERS[item.dtype].size),
        ]
        for item in call.items
    ]
    descriptors = [_descriptors(function, descriptor_list) for descriptor_list in (operands, results)]
    library, callee = function.library, numpy_call_spec.name_of(called_spec)
    library.declare(python_callback.CALLBACK_NAME, "i64", ["ptr", "i64", "ptr", "i64", "ptr", "i64"])
    for descriptor_list in call.externals[1:]:
        library.declared[descriptor_list.symbol] = f"@{descriptor_list.symbol} = external global i8"
    arguments = f"ptr @{callee}, i64 {len(operands)}, ptr {descriptors[0]}, i64 {len(results)}, ptr {descriptors[1]}"
    text = f"call i64 @{python_callback.CALLBACK_NAME}({arguments}, i64 {int(call.reports_warnings)})"
    status = function.new(function.block, text)
    head = f"define internal i64 @{name}(ptr %frame, i64 %begin, i64 %end) noinline nounwind"
    return "\n".join([f"{head} {{", *function.memory, *function.block.lines, f"  ret i64 {status}", "}"])


def _descriptor(function: FunctionBuilder, node: Node, array: StridedArray) -> list[object]:
    """The descriptor of an array: its address, dtype, dimensions and extents."""
    data = function.load_slot(function.block, array.word)
    dtype = f"ptrtoint (ptr @{vectorcall.dtype_object(node.dtype).symbol} to i64)"
    return [data, dtype, node.ndim, _number_list(function, node.shape)]


def _number_list(function: FunctionBuilder, numbers: Sequence[Number]) -> str:
    """The address of a list of numbers."""
    if not numbers:
        return "0"
    return function.new(function.block, f"ptrtoint ptr {_words(function, [*map(function.extent, numbers)])} to i64")


def _descriptors(function: FunctionBuilder, descriptors: Sequence[Sequence[object]]) -> str:
    return _words(function, [word for descriptor in descriptors for word in descriptor]) if descriptors else "null"


def _words(function: FunctionBuilder, words: Sequence[object]) -> str:
    table = function.variable(f"[{len(words)} x i64]")
    for number, word in enumerate(words):
        function.block.lines.append(f"  store i64 {word}, ptr {function.slot(function.block, number, table)}")
    return table
