"""Packed GEMM of int8 or bfloat16: panels of words, each of which holds several steps along k.

The kernel packs a block of B, all of k deep, into panels of 32 columns, and a block of A into panels of 12 rows. Sums
stay in registers over all of k (see `jitkernels.microkernels.gemm.vnni_microkernel`), so that no partial sum is stored.
VPDPBUSD reads A without signs: packing adds 128 to int8 numbers of A, and sums start at minus 128 times the column sums
of B.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jitkernels.attrs.schema.signature import Signature
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import IRFunction, Range, inlined, offset
from jitkernels.core import dtypes
from jitkernels.core.cpu_target import Target
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.microkernels.gemm.gemm_arguments import GemmExtents, Operands
from jitkernels.microkernels.gemm.packing import PACK_ARGUMENTS, packing_slack, transpose_panel
from jitkernels.microkernels.gemm.vnni_microkernel import C_ARGUMENTS, LANES, VnniTile
from jitkernels.microkernels.narrow_int import column_byte_sums, load_word

VNNI_TILE_ROWS, VNNI_TILE_VECTORS = 12, 2
WIDTH = LANES * VNNI_TILE_VECTORS
MAX_PANEL_WORDS = 1 << 15
"""Largest number of words along k of a panel; `fits` checks it."""
PANEL_WORDS = WIDTH * MAX_PANEL_WORDS
"""Words of the block of B: 4 MB."""
ROW_WORDS = VNNI_TILE_ROWS * MAX_PANEL_WORDS
"""Words of the block of A; the part in use should fit in the second-level cache."""
CACHED_WORDS = 1 << 17
MAX_COLUMNS = 2048


@frozen_dataclass
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
    def mask(self) -> int:
        """The bits of one number in a word."""
        return (1 << 32 // self.group) - 1

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
    return k <= MAX_PANEL_WORDS * product.group


class Scales(NamedTuple):
    """The scales of the rows of A and of the columns of B; they may be absent."""

    a_scale: Any
    b_scale: Any


def vnni_kernel(name: str, signature: Signature, product: Narrow, *, by_columns: bool, parallel: bool) -> RangeKernel:
    """Make the range kernel ``(a, b, [a_scale, b_scale,] c, m, n, k)``; threads split columns or rows of C."""
    slack, names = packing_slack(LANES, WIDTH), signature.names
    return RangeKernel(
        name=name,
        arguments=signature.c_arguments,
        body=_body(product, by_columns),
        extent=signature.index("n" if by_columns else "m"),
        block=WIDTH if by_columns else VNNI_TILE_ROWS,
        parallel=parallel,
        workspace=4 * (PANEL_WORDS + ROW_WORDS + MAX_COLUMNS + slack),
        workspace_dtype="int32",
        vector_bytes=64,
        names=(*names, *(field for field in Scales._fields if field not in names)),
    )


def _tiles(product: Narrow) -> tuple[Any, Any]:
    functions = []
    for edge in (False, True):
        symbol = "vnni_edge" if edge else "vnni_tile"
        tile = VnniTile(
            symbol, product.dots, VNNI_TILE_ROWS, VNNI_TILE_VECTORS, dtypes.named(product.c).llvm,
            starts=product.needs_starts, scaled=product.scaled, edge=edge,
            beta=product.beta,
        )  # fmt: skip
        functions.append(IRFunction(symbol, "void", C_ARGUMENTS, tile.text()))
    return functions[0], functions[1]


def _pack_along(product: Narrow, symbol: str, width: int) -> Any:
    """Make the function that packs a panel, padded with zeros, of an operand that is contiguous along k."""
    group, bits, mask = product.group, 32 // product.group, product.mask
    number = np.int32
    arguments = tuple("void*" if kind == "ptr" else "int64" for kind, _ in PACK_ARGUMENTS)
    transpose = IRFunction(symbol, "void", arguments, transpose_panel(symbol, "float32", LANES, width))

    @inlined()
    def word_of(word: int) -> Any:
        return number(word)

    @inlined()
    def pack(source: Any, first: int, stride: int, to: Any, live: int, k: int) -> None:
        whole = k // group
        words = (k + group - 1) // group
        done = 0
        if stride % group == 0 and first % group == 0:
            transpose(source, first // group, stride // group, to, 0, live, whole)
            done = whole
        for q in range(done, words):
            live_steps = min(group, k - q * group)
            for r in range(width):
                to[q * width + r] = 0
            for r in range(min(live, width)):
                at = first + r * stride + q * group
                if live_steps == group:
                    to[q * width + r] = load_word(source, at * bits // 8)
                else:
                    word = 0
                    for p in range(live_steps):
                        word = word | (int(source[at + p]) & mask) << bits * p
                    to[q * width + r] = word_of(word)

    return pack


def _pack_across(product: Narrow, width: int) -> Any:
    """Make the function that packs a panel, padded with zeros, of an operand whose rows (columns) are contiguous."""
    group, bits, mask = product.group, 32 // product.group, product.mask
    is_bytes, number = group == 4, np.int32

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


def _packing(product: Narrow) -> tuple[Any, Any]:
    """Make the functions that pack a panel of A and one of B."""
    group, flips, sign = product.group, product.needs_starts, np.int32(-2139062144)  # 0x80 in each byte
    pack_rows = (
        _pack_across(product, VNNI_TILE_ROWS)
        if product.trans_a
        else _pack_along(product, "vnni_transpose_a", VNNI_TILE_ROWS)
    )
    pack_columns = _pack_along(product, "vnni_transpose_b", WIDTH) if product.trans_b else _pack_across(product, WIDTH)

    @inlined()
    def pack_a(source: Any, first: int, stride: int, to: Any, live: int, k: int) -> None:
        pack_rows(source, first, stride, to, live, k)
        if flips:
            for i in range((k + group - 1) // group * VNNI_TILE_ROWS):
                to[i] = to[i] ^ sign

    return pack_a, pack_columns


def _body(product: Narrow, by_columns: bool) -> Callable[..., None]:
    tile, edge = _tiles(product)
    pack_a, pack_b = _packing(product)
    group, starts, trans_a, trans_b = product.group, product.needs_starts, product.trans_a, product.trans_b
    panels_of_b, first_starts = ROW_WORDS, ROW_WORDS + PANEL_WORDS

    def body(operands: Operands, extents: GemmExtents, scales: Scales, workspace: Any, part: Range) -> None:
        m, n, k = extents.m, extents.n, extents.k
        top, bottom = (0, m) if by_columns else (part.begin, part.end)
        left, right = (part.begin, part.end) if by_columns else (0, n)
        a_stride, b_stride = m if trans_a else k, k if trans_b else n
        words = (k + group - 1) // group
        wide = min(max(PANEL_WORDS // max(words, 1) // WIDTH * WIDTH, WIDTH), MAX_COLUMNS)
        high = max(min(CACHED_WORDS // max(words, 1) // VNNI_TILE_ROWS, 32) * VNNI_TILE_ROWS, VNNI_TILE_ROWS)
        for jc in range(left, right, wide):
            columns = min(wide, right - jc)
            for j in range(0, columns, WIDTH):
                first = (jc + j) * b_stride if trans_b else jc + j
                panel = offset(workspace, panels_of_b + j * words)
                pack_b(operands.b, first, b_stride, panel, columns - j, k)
                if starts:
                    column_byte_sums(panel, offset(workspace, first_starts + j), words)
            for ic in range(top, bottom, high):
                rows = min(high, bottom - ic)
                for i in range(0, rows, VNNI_TILE_ROWS):
                    first = ic + i if trans_a else (ic + i) * a_stride
                    pack_a(operands.a, first, a_stride, offset(workspace, i * words), rows - i, k)
                for j in range(0, columns, WIDTH):
                    panel, start = (offset(workspace, panels_of_b + j * words), offset(workspace, first_starts + j))
                    factors = workspace if scales.b_scale is None else offset(scales.b_scale, jc + j)
                    for i in range(0, rows, VNNI_TILE_ROWS):
                        row, live = offset(workspace, i * words), rows - i
                        factor = workspace if scales.a_scale is None else offset(scales.a_scale, ic + i)
                        to = offset(operands.c, (ic + i) * n + jc + j)
                        if columns - j >= WIDTH:
                            tile(row, panel, start, factor, factors, to, n, words, live, WIDTH)
                        else:
                            edge(row, panel, start, factor, factors, to, n, words, live, columns - j)

    return body
