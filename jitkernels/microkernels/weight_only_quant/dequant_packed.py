"""Weight-only quantized GEMM for many rows: dequantize panels of columns once, then register tiles.

The loops are those of `jitkernels.microkernels.gemm.packed_panels`, but for a panel of B, whose columns are unpacked
one by one while they stay in the first-level cache, and then transposed like those of a transposed matrix. Results of
few columns, for which panels are too wide, fall back to `jitkernels.microkernels.weight_only_quant.dequant_dot`.
"""

from typing import Any

from jitkernels.attrs.quantized_weights import QuantizedWeightsAttr
from jitkernels.codegen.range_kernel import LoopNest
from jitkernels.codegen.source_protocol import inlined, offset, written_by
from jitkernels.core.cpu_target import Target
from jitkernels.microkernels.gemm.gemm_heuristics import blocking
from jitkernels.microkernels.gemm.microkernel import TILE_ARGUMENTS, Tile, element_size
from jitkernels.microkernels.gemm.packed_panels import ir_function
from jitkernels.microkernels.gemm.packing import PACK_ARGUMENTS, packing_slack, transpose_panel
from jitkernels.microkernels.weight_only_quant.dequant_dot import COLUMNS as UNPACKED
from jitkernels.microkernels.weight_only_quant.dequant_dot import by_columns, unpacking
from jitkernels.microkernels.weight_only_quant.optional_zero_points import body_of

COLUMNS = 512
"""Columns of a block, whose panels lie in the second-level cache."""


def panels_nest(attr: QuantizedWeightsAttr, target: Target, parallel: bool, per_byte: int) -> LoopNest:
    """Make the loop nest ``(a, packed, scale, [zero,] c, m, n, groups, size)``, with `per_byte` weights in a byte.

    size: bytes of a group.
    """
    dtype, lanes, bytes_ = attr.dtype, target.lanes(attr.dtype), element_size(attr.dtype)
    plan = blocking(dtype, target)
    rows, width, depth, block_rows = plan.rows, plan.vectors * lanes, plan.depth, plan.block_rows
    slack = packing_slack(lanes, max(width, rows))
    panels_of_b = -(-(block_rows * depth + slack) // 64) * 64
    columns_of_b = panels_of_b + -(-(depth * COLUMNS + slack) // 64) * 64
    in_panels = (columns_of_b + width * depth + slack) * bytes_

    def tile_function(symbol: str, edge: bool) -> Any:
        tile = Tile(
            symbol, dtype, lanes, rows, plan.vectors, 0.0, a_by_column=True, a_stride=rows, b_stride=width,
            mask_c=edge, guard_rows=edge, prefetch=True,
        )  # fmt: skip
        return ir_function(symbol, dtype, TILE_ARGUMENTS, written_by(Tile.text, tile))

    unpack = unpacking(attr, lanes, per_byte)
    inner, edge = tile_function("weights_inner", False), tile_function("weights_edge", True)
    pack_rows = ir_function(
        "weights_pack_a", dtype, PACK_ARGUMENTS, written_by(transpose_panel, "weights_pack_a", dtype, lanes, rows)
    )
    pack_columns = ir_function(
        "weights_pack_b", dtype, PACK_ARGUMENTS, written_by(transpose_panel, "weights_pack_b", dtype, lanes, width)
    )

    narrow, few_columns = by_columns(attr, target, per_byte), width // 2

    @inlined()
    def computed(
        a: Any, packed: Any, scale: Any, zero: Any, c: Any, m: int, n: int, groups: int, size: int, scratch: Any,
        begin: int, end: int,
    ) -> None:  # fmt: skip
        k = per_byte * groups * size
        if n <= few_columns:
            narrow(a, packed, scale, zero, c, m, n, groups, size, scratch, begin, end)
            return
        k_blocks = max((k + depth - 1) // depth, 1)
        step = max((groups * size + k_blocks - 1) // k_blocks, 1) * per_byte
        for jc in range(begin, end, COLUMNS):
            columns = min(COLUMNS, end - jc)
            for block in range(k_blocks):
                p = block * step
                deep = max(min(step, k - p), 0)
                first = 1 if block == 0 else 0
                for j in range(0, columns, width):
                    for w in range(min(width, columns - j)):
                        to = offset(scratch, columns_of_b + w * deep)
                        unpack(packed, scale, zero, to, jc + j + w, groups, size, p // per_byte, (p + deep) // per_byte)
                    pack_columns(scratch, columns_of_b, deep, scratch, panels_of_b + j * deep, columns - j, deep)
                for ic in range(0, m, block_rows):
                    high = min(block_rows, m - ic)
                    for i in range(0, high, rows):
                        pack_rows(a, (ic + i) * k + p, k, scratch, i * deep, high - i, deep)
                    for j in range(0, columns, width):
                        from_b, left = panels_of_b + j * deep, columns - j
                        for i in range(0, high, rows):
                            at = (ic + i) * n + jc + j
                            if left >= width and high - i >= rows:
                                inner(scratch, i * deep, 0, scratch, from_b, 0, c, at, n, deep, first, rows, width)
                            else:
                                edge(scratch, i * deep, 0, scratch, from_b, 0, c, at, n, deep, first, high - i, left)

    @inlined()
    def needed(m: int, n: int, groups: int, size: int, begin: int, end: int) -> int:
        if n <= few_columns:
            return UNPACKED * per_byte * groups * size * bytes_
        return in_panels

    signature = attr.signature()
    return LoopNest(
        f"matmul_weight_panels_{dtype}",
        signature.c_arguments,
        body_of(computed, shifted=attr.shifted),
        extent=signature.index("n"),
        block=width,
        parallel=parallel,
        workspace=needed,
        workspace_dtype=dtype,
        vector_bytes=lanes * bytes_,
    )
