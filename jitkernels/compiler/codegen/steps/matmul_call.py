"""Calls of the MATMUL kernel for every pair of matrices of a product."""

from collections.abc import Mapping

from jitkernels.codegen.source_protocol import External
from jitkernels.compiler.codegen.core.ir_builder import Block, FunctionBuilder
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.strided_array import StridedArray
from jitkernels.compiler.ir.symbolic_dims import same
from jitkernels.compiler.schedule.matmul_step import MatMulStep
from jitkernels.core import dtypes


def text_of(
    product: MatMulStep,
    function: FunctionBuilder,
    arrays: Mapping[Node, StridedArray],
    name: str,
    external: External,
    after: str = "",
) -> str:
    """Return a function that calls the kernel for the matrix pairs ``begin`` to ``end``; it returns 0 if none failed.

    `after`: the epilogue function, which the kernel calls on finished rows with the frame and the number of the
    pair's first row among all rows.
    """
    block, new = function.block, function.new
    nodes = product.left, product.right, product.node
    pointers = [function.array_pointer(arrays[node]) for node in nodes]
    sizes = [function.extent(size) for size in product.sizes]
    rows, integers = sizes[0], list(sizes)
    first = ""
    if after:
        context = function.variable("{ ptr, i64 }")
        block.lines.append(f"  store ptr %frame, ptr {context}")
        first = new(block, f"getelementptr {{ ptr, i64 }}, ptr {context}, i64 0, i32 1")
        integers += [f"ptrtoint (ptr @{after} to i64)", new(block, f"ptrtoint ptr {context} to i64")]
    function.library.declare(external.symbol, "i64", [*["ptr"] * 3, *["i64"] * len(integers)])
    body = Block(block, -1, "%pair")
    pair_pointers = _pair_pointers(product, function, body, arrays, pointers)
    if after:
        number = new(body, f"mul nsw i64 %pair, {rows}")
        body.lines.append(f"  store i64 {number}, ptr {first}")
    arguments = ", ".join([*(f"ptr {dim}" for dim in pair_pointers), *(f"i64 {argument}" for argument in integers)])
    status = new(body, f"call i64 @{external.symbol}({arguments})")
    lines = [
        *(*function.memory, *block.lines),
        "  br label %before",
        "before:",
        "  br label %head",
        "head:",
        "  %pair = phi i64 [ %begin, %before ], [ %next, %one ]",
        "  %failed = phi i64 [ 0, %before ], [ %either, %one ]",
        "  %more = icmp slt i64 %pair, %end",
        "  br i1 %more, label %one, label %done",
        "one:",
        *body.lines,
        f"  %either = or i64 %failed, {status}",
        "  %next = add nsw i64 %pair, 1",
        "  br label %head",
        "done:",
        "  ret i64 %failed",
    ]
    head = f"define internal i64 @{name}(ptr %frame, i64 %begin, i64 %end) noinline nounwind"
    return "\n".join([f"{head} {{", *lines, "}"])


def _pair_pointers(
    product: MatMulStep,
    function: FunctionBuilder,
    body: Block,
    arrays: Mapping[Node, StridedArray],
    pointers: list[str],
) -> list[str]:
    """The addresses of the matrices of pair ``%pair``."""
    new, nodes, results = function.new, (product.left, product.right, product.node), list(pointers)
    outer = [function.extent(extent) for extent in product.outer]
    steps = [_steps(product, function, arrays[node], node) for node in nodes]
    rest = "%pair"
    for dimension in reversed(range(len(outer))):
        index = rest
        if dimension:
            index = new(body, f"urem i64 {rest}, {outer[dimension]}")
            rest = new(body, f"udiv i64 {rest}, {outer[dimension]}")
        for i, (node, pair_strides) in enumerate(zip(nodes, steps, strict=True)):
            if pair_strides[dimension] != "0":
                distance = new(body, f"mul nsw i64 {index}, {pair_strides[dimension]}")
                kind = dtypes.named(node.dtype).llvm
                results[i] = new(body, f"getelementptr {kind}, ptr {results[i]}, i64 {distance}")
    return results


def _steps(product: MatMulStep, function: FunctionBuilder, array: StridedArray, node: Node) -> list[str]:
    """The strides between the matrices of an array along each batch dimension."""
    if not product.outer:
        return []
    missing = product.node.ndim - node.ndim
    return ["0"] * missing + [
        "0" if same(extent, 1) else function.extent(stride)
        for extent, stride in zip(node.shape[:-2], array.strides, strict=False)
    ]
