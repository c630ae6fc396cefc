"""Calls of registered kernels, with the arrays' extents."""

import struct
from collections.abc import Mapping

from jitkernels.codegen.source_protocol import External
from jitkernels.compiler.codegen.core.ir_builder import FunctionBuilder
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.strided_array import StridedArray
from jitkernels.compiler.ir.symbolic_dims import Number
from jitkernels.compiler.schedule.kernel_step import KernelCall


def text_of(
    call: KernelCall, function: FunctionBuilder, arrays: Mapping[Node, StridedArray], name: str, external: External
) -> str:
    """Return a function that calls the kernel; it returns 0 on success."""
    block, kernel = function.block, call.kernel
    signature = kernel.attr.signature()
    operands = list(call.node.inputs)
    number_operands = dict(zip(kernel.numbers, operands[len(operands) - len(kernel.numbers) :], strict=True))
    nodes = *operands[: len(operands) - len(kernel.numbers)], *call.items
    arguments = [f"ptr {function.array_pointer(arrays[node])}" for node in nodes]
    values = {**kernel.values, **_pitches(call, arrays)}
    integers = [values.get(field_name, value) for field_name, value in signature.integers]
    arguments += [f"i64 {function.extent(value)}" for value in integers]
    for field_name, value in signature.floats:
        if field_name in number_operands:
            arguments.append(f"ptr {function.load_slot(block, arrays[number_operands[field_name]].word, 'ptr')}")
            continue
        slot = function.variable("double")
        block.lines.append(f"  store double {_double(value)}, ptr {slot}")
        arguments.append(f"ptr {slot}")
    function.library.declare(external.symbol, "i64", [argument.partition(" ")[0] for argument in arguments])
    status = function.new(block, f"call i64 @{external.symbol}({', '.join(arguments)})")
    head = f"define internal i64 @{name}(ptr %frame, i64 %begin, i64 %end) noinline nounwind"
    return "\n".join([f"{head} {{", *function.memory, *block.lines, f"  ret i64 {status}", "}"])


def _pitches(call: KernelCall, arrays: Mapping[Node, StridedArray]) -> dict[str, Number]:
    """The pitches of results, by the names of the integers that say them."""
    attr = call.kernel.attr
    present = {array.name for array in attr.signature().outputs}
    outputs = [argument for argument in attr.arrays if argument.name in present]
    return {
        argument.pitch: arrays[node].strides[-2]
        for argument, node in zip(outputs, call.items, strict=True)
        if argument.pitch is not None
    }


def _double(value: float) -> str:
    return f"0x{int.from_bytes(struct.pack('>d', value)):016X}"
