"""Packed GEMM of int8 or bfloat16: panels of words, each of which holds several steps along k.

The nest packs a block of B, all of k deep, into panels of 32 columns, and a block of A into panels of 12 rows. Sums
stay in registers over all of k (see `jitkernels.microkernels.gemm.vnni_microkernel`), so that no partial sum is stored.
VPDPBUSD reads A without signs: packing adds 128 to int8 numbers of A, and sums start at minus 128 times the column sums
of B.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels.codegen.range_kernel import LoopNest
from jitkernels.codegen.source_protocol import IRFunction, inlined, offset
from jitkernels.core import dtypes
from jitkernels.core.cpu_target import Target
from jitkernels.core.frozen_dataclass import record
from jitkernels.microkernels.gemm.packing import PACK_ARGUMENTS, packing_slack, transpose_panel
from jitkernels.microkernels.gemm.vnni_microkernel import C_ARGUMENTS, LANES, VnniTile
from jitkernels.microkernels.narrow_int import column_byte_sums, word_at

ROWS, VECTORS = 12, 2
WIDTH = LANES * VECTORS
MOST_WORDS = 1 << 15
"""Largest number of words along k of a panel; `fits` checks it."""
PANEL_WORDS = WIDTH * MOST_WORDS
"""Words of the block of B: 4 MB."""
ROW_WORDS = ROWS * MOST_WORDS
"""Words of the block of A; the part in use should fit in the second-level cache."""
CACHED_WORDS = 1 << 17
MOST_COLUMNS = 2048


@record
class Narrow:
    """The element types of A, B and C as the schemas name them, and the layout of B."""

    a: str
    b: str
    c: str
    trans_a: bool = False
    trans_b: bool = False
    scaled: bool = False
    beta: float = 0.0

    @property
    def group(self) -> int:
        """Steps along k per word."""
        return 2 if self.a == "bfloat16" else 4

    @property
    def dots(self) -> str:
        return "vdpbf16ps" if self.a == "bfloat16" else "vpdpbusd"

    @property
    def needs_starts(self) -> bool:
        return self.a == "int8"


def has_instruction(narrow: str, target: Target) -> bool:
    """Return whether the processor has a dot-product instruction for these types."""
    feature = "avx512bf16" if narrow == "bfloat16" else "avx512vnni"
    return target.is_x86 and target.vector_bytes == 64 and {feature, "avx512bw"} <= target.features


def fits(product: Narrow, k: int) -> bool:
    """Return whether a panel can hold all of k."""
    return k <= MOST_WORDS * product.group


def vnni_nest(
    name: str, arguments: tuple[str, ...], product: Narrow, *, by_columns: bool, parallel: bool, extent: int
) -> LoopNest:
    """Make the loop nest ``(a, b, [a_scale, b_scale,] c, m, n, k)``; threads split columns or rows of C."""
    slack = packing_slack(LANES, WIDTH)
    return LoopNest(
        name=name,
        arguments=arguments,
        body=_body(product, by_columns),
        extent=extent,
        block=WIDTH if by_columns else ROWS,
        parallel=parallel,
        workspace=4 * (PANEL_WORDS + ROW_WORDS + MOST_COLUMNS + slack),
        workspace_dtype="int32",
        vector_bytes=64,
    )


def _tiles(product: Narrow) -> tuple[Any, Any]:
    functions = []
    for edge in (False, True):
        symbol = "grouped_edge" if edge else "grouped_tile"
        tile = VnniTile(
            symbol, product.dots, ROWS, VECTORS, dtypes.named(product.c).llvm,
            starts=product.needs_starts, scaled=product.scaled, edge=edge,
            beta=product.beta,
        )  # fmt: skip
        functions.append(IRFunction(symbol, "void", C_ARGUMENTS, tile.text()))
    return functions[0], functions[1]


def _packing(product: Narrow) -> tuple[Any, Any]:
    """Make the functions that pack a panel of A and one of B, padded with zeros."""
    group, is_bytes, flips = product.group, product.group == 4, product.needs_starts
    arguments = tuple("void*" if kind == "ptr" else "int64" for kind, _ in PACK_ARGUMENTS)
    text = transpose_panel("grouped_turn_a", "float32", LANES, ROWS)
    turn_a = IRFunction("grouped_turn_a", "void", arguments, text)
    text = transpose_panel("grouped_turn_b", "float32", LANES, WIDTH)
    turn_b = IRFunction("grouped_turn_b", "void", arguments, text)
    bits, mask = (8, 255) if is_bytes else (16, 65535)
    number = np.int32

    def along(turn: Any, width: int) -> Any:
        """Make the packing function for an operand that is contiguous along k."""

        @inlined()
        def pack(source: Any, first: int, stride: int, to: Any, live: int, k: int) -> None:
            whole = k // group
            words = (k + group - 1) // group
            done = 0
            if stride % group == 0 and first % group == 0:
                turn(source, first // group, stride // group, to, 0, live, whole)
                done = whole
            for q in range(done, words):
                live_steps = min(group, k - q * group)
                for r in range(width):
                    to[q * width + r] = 0
                for r in range(min(live, width)):
                    at = first + r * stride + q * group
                    if live_steps == group:
                        to[q * width + r] = word_at(source, at * bits // 8)
                    else:
                        word = 0
                        for p in range(live_steps):
                            word = word | (int(source[at + p]) & mask) << bits * p
                        to[q * width + r] = word_of(word)

        return pack

    def across(width: int) -> Any:
        """Make the packing function for an operand whose rows (columns) are contiguous."""

        @inlined()
        def words_of(source: Any, at: int, stride: int, j: int, live_steps: int) -> Any:
            word = number(source[at + j]) & mask
            if live_steps > 1:
                word = word | (number(source[at + stride + j]) & mask) << bits
            if is_bytes and live_steps > 2:
                word = word | (number(source[at + 2 * stride + j]) & mask) << 16
            if is_bytes and live_steps > 3:
                word = word | (number(source[at + 3 * stride + j]) & mask) << 24
            return word

        @inlined()
        def pack(source: Any, first: int, stride: int, to: Any, live: int, k: int) -> None:
            for q in range((k + group - 1) // group):
                at, live_steps = first + q * group * stride, min(group, k - q * group)
                if live >= width and live_steps == group:
                    for j in range(width):
                        to[q * width + j] = words_of(source, at, stride, j, group)
                else:
                    for j in range(width):
                        to[q * width + j] = 0
                    for j in range(min(live, width)):
                        to[q * width + j] = words_of(source, at, stride, j, live_steps)

        return pack

    @inlined()
    def word_of(word: int) -> Any:
        return number(word)

    pack_rows = across(ROWS) if product.trans_a else along(turn_a, ROWS)
    pack_columns = along(turn_b, WIDTH) if product.trans_b else across(WIDTH)
    sign = np.int32(-2139062144)  # 0x80 in each byte

    @inlined()
    def pack_a(source: Any, first: int, stride: int, to: Any, live: int, k: int) -> None:
        pack_rows(source, first, stride, to, live, k)
        if flips:
            for i in range((k + group - 1) // group * ROWS):
                to[i] = to[i] ^ sign

    return pack_a, pack_columns


def _body(product: Narrow, by_columns: bool) -> Callable[..., None]:
    tile, edge = _tiles(product)
    pack_a, pack_b = _packing(product)
    group, starts, trans_a, trans_b = product.group, product.needs_starts, product.trans_a, product.trans_b
    panels_of_b, first_starts = ROW_WORDS, ROW_WORDS + PANEL_WORDS
    scaled = product.scaled

    @inlined()
    def computed(
        a: Any, b: Any, row_scale: Any, column_scale: Any, c: Any, m: int, n: int, k: int, workspace: Any,
        begin: int, end: int,
    ) -> None:  # fmt: skip
        top, bottom = (0, m) if by_columns else (begin, end)
        left, right = (begin, end) if by_columns else (0, n)
        a_stride, b_stride = m if trans_a else k, k if trans_b else n
        words = (k + group - 1) // group
        wide = min(max(PANEL_WORDS // max(words, 1) // WIDTH * WIDTH, WIDTH), MOST_COLUMNS)
        high = max(min(CACHED_WORDS // max(words, 1) // ROWS, 32) * ROWS, ROWS)
        for jc in range(left, right, wide):
            columns = min(wide, right - jc)
            for j in range(0, columns, WIDTH):
                first = (jc + j) * b_stride if trans_b else jc + j
                panel = offset(workspace, panels_of_b + j * words)
                pack_b(b, first, b_stride, panel, columns - j, k)
                if starts:
                    column_byte_sums(panel, offset(workspace, first_starts + j), words)
            for ic in range(top, bottom, high):
                rows = min(high, bottom - ic)
                for i in range(0, rows, ROWS):
                    first = ic + i if trans_a else (ic + i) * a_stride
                    pack_a(a, first, a_stride, offset(workspace, i * words), rows - i, k)
                for j in range(0, columns, WIDTH):
                    panel, start = (offset(workspace, panels_of_b + j * words), offset(workspace, first_starts + j))
                    factors = offset(column_scale, jc + j) if scaled else column_scale
                    for i in range(0, rows, ROWS):
                        scales = offset(row_scale, ic + i) if scaled else row_scale
                        to = offset(c, (ic + i) * n + jc + j)
                        if columns - j >= WIDTH:
                            tile(
                                offset(workspace, i * words), panel, start, scales, factors, to, n, words, rows - i,
                                WIDTH,
                            )  # fmt: skip
                        else:
                            edge(
                                offset(workspace, i * words), panel, start, scales, factors, to, n, words, rows - i,
                                columns - j,
                            )  # fmt: skip

    def plain(a: Any, b: Any, c: Any, m: int, n: int, k: int, workspace: Any, begin: int, end: int) -> None:
        computed(a, b, workspace, workspace, c, m, n, k, workspace, begin, end)

    def with_scales(
        a: Any, b: Any, a_scale: Any, b_scale: Any, c: Any, m: int, n: int, k: int, workspace: Any, begin: int, end: int
    ) -> None:  # fmt: skip
        computed(a, b, a_scale, b_scale, c, m, n, k, workspace, begin, end)

    return with_scales if scaled else plain
