"""Products of many rows of floats and of quantized weights: panels of columns are made floats once, then tiles follow.

The loops are those of `jitkernels.loops.matmul_packed`, but for a panel of B, whose columns are unpacked one by one
where they stay in the first-level cache, and then turned round as those of a transposed matrix are. Results of few
columns, for which panels are too wide, are left to `jitkernels.loops.weight_columns`.
"""

from typing import Any

from jitkernels.attrs.quantized_weights import QuantizedWeightsAttr
from jitkernels.loops.matmul_packed import ir_function
from jitkernels.loops.matmul_plan import blocking
from jitkernels.loops.pack import PACK_ARGUMENTS, packing_slack, transpose_panel
from jitkernels.loops.tile import TILE_ARGUMENTS, Tile, element_size
from jitkernels.loops.weight_body import body_of
from jitkernels.loops.weight_columns import COLUMNS as UNPACKED
from jitkernels.loops.weight_columns import by_columns, unpacking
from jitkernels.machine import Target
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import inlined, offset, written_by

COLUMNS = 512
"""Of a block, whose panels lie in the second-level cache."""


def panels_nest(attr: QuantizedWeightsAttr, target: Target, parallel: bool, per_byte: int) -> LoopNest:
    """Make the loop nest ``(a, packed, scale, [zero,] c, m, n, groups, size)``, with so many weights in a byte.

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
        "weights_pack_a",
        dtype,
        PACK_ARGUMENTS,
        written_by(transpose_panel, "weights_pack_a", dtype, lanes, rows),
    )
    pack_columns = ir_function(
        "weights_pack_b",
        dtype,
        PACK_ARGUMENTS,
        written_by(transpose_panel, "weights_pack_b", dtype, lanes, width),
    )

    narrow, few_columns = by_columns(attr, target, per_byte), width // 2

    @inlined()
    def computed(
        a: Any, packed: Any, scale: Any, zero: Any, c: Any, m: int, n: int, groups: int, size: int, room: Any,
        begin: int, end: int,
    ) -> None:  # fmt: skip
        k = per_byte * groups * size
        if n <= few_columns:
            narrow(a, packed, scale, zero, c, m, n, groups, size, room, begin, end)
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
                        to = offset(room, columns_of_b + w * deep)
                        unpack(
                            packed,
                            scale,
                            zero,
                            to,
                            jc + j + w,
                            groups,
                            size,
                            p // per_byte,
                            (p + deep) // per_byte,
                        )
                    pack_columns(room, columns_of_b, deep, room, panels_of_b + j * deep, columns - j, deep)
                for ic in range(0, m, block_rows):
                    high = min(block_rows, m - ic)
                    for i in range(0, high, rows):
                        pack_rows(a, (ic + i) * k + p, k, room, i * deep, high - i, deep)
                    for j in range(0, columns, width):
                        from_b, left = panels_of_b + j * deep, columns - j
                        for i in range(0, high, rows):
                            at = (ic + i) * n + jc + j
                            if left >= width and high - i >= rows:
                                inner(room, i * deep, 0, room, from_b, 0, c, at, n, deep, first, rows, width)
                            else:
                                edge(
                                    room, i * deep, 0, room, from_b, 0, c, at, n, deep, first, high - i, left
                                )

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
