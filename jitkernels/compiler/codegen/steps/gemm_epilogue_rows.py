"""GEMM epilogues: loop nests that run on rows of a product as its kernel finishes them."""

from collections.abc import Mapping, Sequence

from jitkernels.compiler.codegen.core.ir_builder import FunctionBuilder
from jitkernels.compiler.codegen.nest.nest_emitter import NestEmitter
from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.strided_array import StridedArray
from jitkernels.compiler.ir.symbolic_dims import same
from jitkernels.compiler.schedule.matmul_step import MatMulStep


def can_run_as_epilogue(product: MatMulStep, emitter: NestEmitter, arrays: Mapping[Node, StridedArray]) -> bool:
    """Return whether a nest can run as an epilogue on finished rows: it writes no operand of the product."""
    if emitter.parallel_loop is None or any(product.node in region.gathered for region in emitter.nest.regions):
        return False
    operand_words = {arrays[operand].word for operand in (product.left, product.right)}
    if any(arrays[store.target].word in operand_words for store in emitter.nest.stores):
        return False
    access_maps = [
        access_map
        for target in emitter.targets
        for node, access_map in emitter.values.needed(target.node, target.index_map)
        if node is product.node
    ]
    return bool(access_maps) and all(_is_in_own_row(access_map, product, emitter) for access_map in access_maps)


def _is_in_own_row(access_map: IndexMap, product: MatMulStep, emitter: NestEmitter) -> bool:
    """Return whether an iteration of the outermost loop loads from its own row, or its own element."""
    loop, shape = emitter.parallel_loop, product.node.shape
    assert loop is not None, "the caller tests it"
    row_axis = next((i for i, (_, coefficients) in enumerate(access_map) if loop in dict(coefficients)), -1)
    if row_axis < len(shape) - 2 or not all(
        same(first, 0) and not coefficients for first, coefficients in access_map[:row_axis]
    ):
        return False
    first, coefficients = access_map[row_axis]
    is_whole = same(emitter.extents[loop], symbolic_dims.product(shape[: row_axis + 1]))
    return is_whole and same(first, 0) and _steps(coefficients) == ((loop, 1),)


def _steps(moves: Sequence[tuple[int, symbolic_dims.Number]]) -> tuple[tuple[int, int], ...]:
    """Coefficients along loops, with 1 for unit steps and 0 for others."""
    return tuple((loop, 1 if same(step, 1) else 0) for loop, step in moves)


def _is_of_elements(product: MatMulStep, emitter: NestEmitter) -> bool:
    """Return whether the outermost loop runs over all elements of a product."""
    loop = emitter.parallel_loop
    return loop is not None and same(emitter.extents[loop], symbolic_dims.product(product.node.shape))


def text_of_rows(product: MatMulStep, emitter: NestEmitter, name: str) -> str:
    """Return the function that runs a nest for rows ``begin`` to ``end`` of a matrix pair; see `matmul_call`."""
    function = FunctionBuilder(emitter.function.library, emitter.function.symbol_slots)
    block, new = function.block, function.new
    step = function.extent(product.node.shape[-1] if _is_of_elements(product, emitter) else 1)
    slot = new(block, "getelementptr { ptr, i64 }, ptr %context, i64 0, i32 1")
    number = new(block, f"load i64, ptr {slot}")
    limits = []
    for limit in ("begin", "end"):
        row = new(block, f"add nsw i64 %{limit}, {number}")
        limits.append(new(block, f"mul nsw i64 {row}, {step}"))
    new(block, f"call i64 @{emitter.name}(ptr %frame, i64 {limits[0]}, i64 {limits[1]})")
    body = "\n".join(["  %frame = load ptr, ptr %context", *function.memory, *block.lines])
    head = f"define internal void @{name}(ptr %context, i64 %begin, i64 %end) nounwind"
    return f"{head} {{\n{body}\n  ret void\n}}"
