"""Weight-only quantized GEMM for many rows: dequantize panels of columns once, then register tiles.

The loops are those of `jitkernels.microkernels.gemm.packed_panels`, but for a panel of B, whose columns are unpacked
one by one while they stay in the first-level cache, and then transposed like those of a transposed matrix. Results of
few columns, for which panels are too wide, fall back to `jitkernels.microkernels.weight_only_quant.dequant_dot`.
"""

from typing import Any, NamedTuple

from jitkernels.attrs.quantized_weights import QuantizedWeightsAttr
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range, inlined, offset, written_by
from jitkernels.core.cpu_target import Target
from jitkernels.microkernels.gemm.gemm_arguments import ir_function
from jitkernels.microkernels.gemm.gemm_heuristics import weight_blocking
from jitkernels.microkernels.gemm.microkernel import TILE_ARGUMENTS, Tile, element_size
from jitkernels.microkernels.gemm.packed_panels import PanelOffsets, aligned_elements
from jitkernels.microkernels.gemm.packing import PACK_ARGUMENTS, transpose_panel
from jitkernels.microkernels.weight_only_quant.dequant_dot import DOT_COLUMNS as UNPACKED
from jitkernels.microkernels.weight_only_quant.dequant_dot import by_columns, unpacking
from jitkernels.microkernels.weight_only_quant.quantized import Quantized, QuantizedSizes, kernel_by_columns

PANEL_COLUMNS = 512
"""Columns of a block, whose panels lie in the second-level cache."""


class DequantizedPanels(PanelOffsets):
    """Offsets in the workspace, also of the unpacked columns."""

    @property
    def columns_of_b(self) -> int:
        """The offset of unpacked columns, before they are transposed."""
        return self.panels_of_b + aligned_elements(self.blocking.depth * PANEL_COLUMNS + self.slack)

    @property
    def elements(self) -> int:
        return self.columns_of_b + self.width * self.blocking.depth + self.slack


class DequantizedBlock(NamedTuple):
    """Some columns of the result, and steps of k: the first, and how many."""

    column: int
    columns: int
    step: int
    depth: int


def packing_of(attr: QuantizedWeightsAttr, panels: DequantizedPanels, per_byte: int) -> Any:
    """Return the function that dequantizes a block of columns into panels."""
    dtype, lanes, width = attr.dtype, panels.lanes, panels.width
    unpack = unpacking(attr, lanes, per_byte)
    pack = written_by(transpose_panel, "weights_pack_b", dtype, lanes, width)
    pack_columns = ir_function("weights_pack_b", dtype, PACK_ARGUMENTS, pack)

    @inlined()
    def pack_block(weights: Quantized, sizes: QuantizedSizes, scratch: Any, block: DequantizedBlock) -> None:
        deep, columns, p = block.depth, block.columns, block.step
        for j in range(0, columns, width):
            for w in range(min(width, columns - j)):
                to = offset(scratch, panels.columns_of_b + w * deep)
                unpack(weights, to, block.column + j + w, sizes, Range(p // per_byte, (p + deep) // per_byte))
            pack_columns(scratch, panels.columns_of_b, deep, scratch, panels.panels_of_b + j * deep, columns - j, deep)

    return pack_block


def multiplying_of(dtype: str, panels: DequantizedPanels) -> Any:
    """Return the function that multiplies all rows of A by a packed block of columns."""
    lanes, width, plan, rows = panels.lanes, panels.width, panels.blocking, panels.blocking.rows

    def tile_function(symbol: str, edge: bool) -> Any:
        tile = Tile(
            symbol, dtype, lanes, rows, plan.vectors, 0.0, a_by_column=True, a_stride=rows, b_stride=width,
            mask_c=edge, guard_rows=edge, prefetch=True,
        )  # fmt: skip
        return ir_function(symbol, dtype, TILE_ARGUMENTS, written_by(Tile.text, tile))

    inner, edge = tile_function("weights_inner", False), tile_function("weights_edge", True)
    pack = written_by(transpose_panel, "weights_pack_a", dtype, lanes, rows)
    pack_rows = ir_function("weights_pack_a", dtype, PACK_ARGUMENTS, pack)

    @inlined()
    def multiply_block(a: Any, c: Any, sizes: QuantizedSizes, k: int, scratch: Any, block: DequantizedBlock) -> None:
        deep, columns, n = block.depth, block.columns, sizes.n
        first = 1 if block.step == 0 else 0
        for ic in range(0, sizes.m, plan.block_rows):
            high = min(plan.block_rows, sizes.m - ic)
            for i in range(0, high, rows):
                pack_rows(a, (ic + i) * k + block.step, k, scratch, i * deep, high - i, deep)
            for j in range(0, columns, width):
                from_b, left = panels.panels_of_b + j * deep, columns - j
                for i in range(0, high, rows):
                    at = (ic + i) * n + block.column + j
                    if left >= width and high - i >= rows:
                        inner(scratch, i * deep, 0, scratch, from_b, 0, c, at, n, deep, first, rows, width)
                    else:
                        edge(scratch, i * deep, 0, scratch, from_b, 0, c, at, n, deep, first, high - i, left)

    return multiply_block


def panels_kernel(attr: QuantizedWeightsAttr, target: Target, parallel: bool, per_byte: int) -> RangeKernel:
    """Make the range kernel ``(a, q, scale, [zero,] c, m, n, groups, size)``, with `per_byte` weights in a byte."""
    dtype, lanes, bytes_ = attr.dtype, target.lanes(attr.dtype), element_size(attr.dtype)
    plan = weight_blocking(dtype, target)
    panels, depth = DequantizedPanels(lanes, plan), plan.depth
    pack_block, multiply_block = packing_of(attr, panels, per_byte), multiplying_of(dtype, panels)
    narrow, few_columns = by_columns(attr, target, per_byte), panels.width // 2
    in_panels = panels.elements * bytes_

    def body(a: Any, weights: Quantized, c: Any, sizes: QuantizedSizes, workspace: Any, part: Range) -> None:
        k = per_byte * sizes.groups * sizes.size
        if sizes.n <= few_columns:
            narrow(a, weights, c, sizes, workspace, part)
            return
        k_blocks = max((k + depth - 1) // depth, 1)
        step = max((sizes.groups * sizes.size + k_blocks - 1) // k_blocks, 1) * per_byte
        for jc in range(part.begin, part.end, PANEL_COLUMNS):
            for number in range(k_blocks):
                p = number * step
                block = DequantizedBlock(jc, min(PANEL_COLUMNS, part.end - jc), p, max(min(step, k - p), 0))
                pack_block(weights, sizes, workspace, block)
                multiply_block(a, c, sizes, k, workspace, block)

    def needed(n: int, groups: int, size: int) -> int:
        if n <= few_columns:
            return UNPACKED * per_byte * groups * size * bytes_
        return in_panels

    name = f"matmul_weight_panels_{dtype}"
    return kernel_by_columns(attr, name, body, needed, parallel, lanes * bytes_, panels.width)
