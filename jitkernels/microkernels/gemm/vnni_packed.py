"""Matrix multiply of int8 or bfloat16 over panels of words, each of which holds what several steps along k need.

A block of B, all of k deep, is packed into panels of 32 columns, a block of A into panels of 12 rows; sums stay in
registers until they are whole (see `jitkernels.loops.grouped_tile`), so that nothing is kept between blocks of k. int8
numbers of A get 128 more, as the instruction wants them without signs, and sums begin with 128 times the sums of their
columns of B less.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels import dtypes
from jitkernels.loops.grouped_tile import C_ARGUMENTS, LANES, GroupedTile
from jitkernels.loops.narrow import word_at, words_add_up
from jitkernels.loops.pack import PACK_ARGUMENTS, packing_slack, transpose_panel
from jitkernels.machine import Target
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import IRFunction, inlined, offset
from jitkernels.records import record

ROWS, VECTORS = 12, 2
WIDTH = LANES * VECTORS
MOST_WORDS = 1 << 15
"""Words along k that a panel may have; `fits` says it."""
PANEL_WORDS = WIDTH * MOST_WORDS
"""Of the block of B: 4 MB."""
ROW_WORDS = ROWS * MOST_WORDS
"""Room for the block of A, of which the second-level cache should hold what is used."""
CACHED_WORDS = 1 << 17
MOST_COLUMNS = 2048


@record
class Narrow:
    """What is multiplied: the element types of A, B and C as rows name them, and how B lies."""

    a: str
    b: str
    c: str
    trans_a: bool = False
    trans_b: bool = False
    scaled: bool = False
    beta: float = 0.0

    @property
    def group(self) -> int:
        """Steps along k of a word."""
        return 2 if self.a == "bfloat16" else 4

    @property
    def dots(self) -> str:
        return "vdpbf16ps" if self.a == "bfloat16" else "vpdpbusd"

    @property
    def needs_starts(self) -> bool:
        return self.a == "int8"


def has_instruction(narrow: str, target: Target) -> bool:
    """Whether the processor has dot products of these numbers."""
    feature = "avx512bf16" if narrow == "bfloat16" else "avx512vnni"
    return target.is_x86 and target.vector_bytes == 64 and {feature, "avx512bw"} <= target.features


def fits(product: Narrow, k: int) -> bool:
    """Whether panels are long enough for all of k."""
    return k <= MOST_WORDS * product.group


def grouped_nest(
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
    made = []
    for edge in (False, True):
        symbol = "grouped_edge" if edge else "grouped_tile"
        tile = GroupedTile(
            symbol, product.dots, ROWS, VECTORS, dtypes.named(product.c).llvm,
            starts=product.needs_starts, scaled=product.scaled, edge=edge,
            beta=product.beta,
        )  # fmt: skip
        made.append(IRFunction(symbol, "void", C_ARGUMENTS, tile.text()))
    return made[0], made[1]


def _packing(product: Narrow) -> tuple[Any, Any]:
    """Functions that pack a panel of A and one of B, with zeros where there is nothing."""
    group, is_bytes, flips = product.group, product.group == 4, product.needs_starts
    arguments = tuple("void*" if kind == "ptr" else "int64" for kind, _ in PACK_ARGUMENTS)
    text = transpose_panel("grouped_turn_a", "float32", LANES, ROWS)
    turn_a = IRFunction("grouped_turn_a", "void", arguments, text)
    text = transpose_panel("grouped_turn_b", "float32", LANES, WIDTH)
    turn_b = IRFunction("grouped_turn_b", "void", arguments, text)
    bits, mask = (8, 255) if is_bytes else (16, 65535)
    number = np.int32

    def along(turn: Any, width: int) -> Any:
        """Where what follows one another along k does so in memory."""

        @inlined()
        def pack(source: Any, first: int, stride: int, to: Any, live: int, k: int) -> None:
            whole = k // group
            words = (k + group - 1) // group
            done = 0
            if stride % group == 0 and first % group == 0:
                turn(source, first // group, stride // group, to, 0, live, whole)
                done = whole
            for q in range(done, words):
                left = min(group, k - q * group)
                for r in range(width):
                    to[q * width + r] = 0
                for r in range(min(live, width)):
                    at = first + r * stride + q * group
                    if left == group:
                        to[q * width + r] = word_at(source, at * bits // 8)
                    else:
                        word = 0
                        for p in range(left):
                            word = word | (int(source[at + p]) & mask) << bits * p
                        to[q * width + r] = word_of(word)

        return pack

    def across(width: int) -> Any:
        """Where rows (columns) follow one another in memory."""

        @inlined()
        def words_of(source: Any, at: int, stride: int, j: int, left: int) -> Any:
            word = number(source[at + j]) & mask
            if left > 1:
                word = word | (number(source[at + stride + j]) & mask) << bits
            if is_bytes and left > 2:
                word = word | (number(source[at + 2 * stride + j]) & mask) << 16
            if is_bytes and left > 3:
                word = word | (number(source[at + 3 * stride + j]) & mask) << 24
            return word

        @inlined()
        def pack(source: Any, first: int, stride: int, to: Any, live: int, k: int) -> None:
            for q in range((k + group - 1) // group):
                at, left = first + q * group * stride, min(group, k - q * group)
                if live >= width and left == group:
                    for j in range(width):
                        to[q * width + j] = words_of(source, at, stride, j, group)
                else:
                    for j in range(width):
                        to[q * width + j] = 0
                    for j in range(min(live, width)):
                        to[q * width + j] = words_of(source, at, stride, j, left)

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
                    words_add_up(panel, offset(workspace, first_starts + j), words)
            for ic in range(top, bottom, high):
                rows = min(high, bottom - ic)
                for i in range(0, rows, ROWS):
                    first = ic + i if trans_a else (ic + i) * a_stride
                    pack_a(a, first, a_stride, offset(workspace, i * words), rows - i, k)
                for j in range(0, columns, WIDTH):
                    panel, start = (
                        offset(workspace, panels_of_b + j * words),
                        offset(workspace, first_starts + j),
                    )
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
