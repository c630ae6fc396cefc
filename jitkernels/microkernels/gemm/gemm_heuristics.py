"""GEMM heuristics: register tile, blocking and algorithm, for a static shape and for extents known at run time.

`candidates` lists what is worth measuring for a shape; `is_small` and its neighbours select in machine code, at each
call. The numbers are in `jitkernels.microkernels.gemm.thresholds`, and derived for other targets from the registers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from jitkernels.codegen.source_protocol import inlined
from jitkernels.core import cpu_target
from jitkernels.core.cpu_target import Target
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.microkernels.gemm.microkernel import element_size
from jitkernels.microkernels.gemm.packed_panels import Blocking
from jitkernels.microkernels.gemm.thresholds import (
    A_BLOCK_ROWS,
    A_PANEL_SHARE,
    B_BLOCK_SHARE,
    COMPACT,
    CONFLICT_BYTES,
    DOT_DEPTH,
    IN_PLACE_BYTES,
    IN_PLACE_SHARE,
    MIN_PARALLEL_STATIC_MULTIPLY_ADDS,
    NARROW,
    PACKED_ROWS,
    PREFETCHED_PANEL_SHARE,
    ROW_BYTES,
    SKINNY,
    TRANSPOSED_BYTES,
    UNPACKED_ELEMENTS,
)


@frozen_dataclass
class Product:
    """A matrix product; ``swapped``: the operands changed sides, so that a C of several rows is transposed."""

    m: int
    n: int
    k: int
    trans_a: bool
    trans_b: bool
    dtype: str
    swapped: bool = False

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.m, self.n, self.k

    @property
    def work(self) -> int:
        """Multiply-adds."""
        return self.m * self.n * self.k

    @property
    def size(self) -> int:
        """Element size in bytes."""
        return element_size(self.dtype)


def simplified(product: Product) -> Product:
    """Drop transposes of vectors, which move nothing, and rewrite a narrow ``A.T @ X`` as the flat ``X.T @ A``."""
    if product.m == 1 or product.k == 1:
        product = replace(product, trans_a=False)
    if product.n == 1 or product.k == 1:
        product = replace(product, trans_b=False)
    if product.trans_a and (product.n == 1 or product.n <= NARROW and product.m >= SKINNY):
        trans_a = product.n > 1 and not product.trans_b
        return replace(product, m=product.n, n=product.m, trans_a=trans_a, trans_b=False, swapped=True)
    return product


def tile_shape(product: Product, target: Target) -> tuple[int, int]:
    """Return ``(rows, vectors)`` of the largest tile whose C, a row of B and one element of A fit in the registers."""
    needed = -(-product.n // target.lanes(product.dtype))
    registers = target.registers
    max_accumulators = 24 if registers == 32 else 12
    if needed == 1:
        return (min(product.m, 16 if registers == 32 else 12), 1)
    if product.k <= 16 and product.m > 4 and product.m * product.n * product.size > IN_PLACE_BYTES:
        # Writing C takes all the time: few rows, each in long runs, suit memory best.
        few = 2 if product.k <= 2 or registers < 32 else 4
        return few, min(needed, {2: 8, 4: 6}[few] if registers == 32 else 4)
    if product.m <= (4 if registers == 32 else 2):
        wide = {1: 8, 2: 8, 3: 6, 4: 6}[product.m] if registers == 32 else {1: 8, 2: 5}[product.m]
        return product.m, min(wide, needed)
    alone = _vectors_beside_tail(product, target)
    if alone:
        return (16 if max_accumulators == 24 and alone == 1 else max_accumulators // alone), alone
    if product.m <= max_accumulators // 3 or needed == 3:
        return max_accumulators // 3, min(3, needed)
    if needed % 2 and needed > 3 and needed % 3 != 1:
        return max_accumulators // 3, 3
    if needed % 4 == 3 and registers == 32:
        return max_accumulators // 4, 4
    return max_accumulators // 2, 2


def _vectors_beside_tail(product: Product, target: Target) -> int:
    """Return the vectors per panel that leave the last columns to half a vector; 0 if that gains nothing."""
    whole, tail = divmod(product.n, target.lanes(product.dtype))
    if not 0 < tail <= target.lanes(product.dtype) // 2 or whole > 6:
        return 0
    return next(vectors for vectors in (3, 2, 1) if whole % vectors == 0)


def blocking(dtype: str, target: Target) -> Blocking:
    """Return the blocking of the packed algorithm, from the registers and the caches of a core.

    Of the tiles whose C fits in the registers, 8 rows of 3 vectors load little for each multiply-add, 11 times for 24.
    A panel of A stays in L1 beside what passes through, a block of B in L2, and the row blocks of A are as large as the
    memory for them may be: each packs all of B again.
    """
    size = element_size(dtype)
    if target.registers == 32:
        rows, vectors, share, panel_cache = 8, 3, A_PANEL_SHARE, 2
    else:
        rows, vectors, share, panel_cache = 6 if target.vector_bytes >= 32 else 4, 2, PREFETCHED_PANEL_SHARE, 1
    width = vectors * target.lanes(dtype)
    depth = max(int(cpu_target.l1_cache_bytes() * share) // (rows * size) // 16 * 16, 16)
    columns = int(cpu_target.l2_cache_bytes() * B_BLOCK_SHARE) // (depth * size)
    return Blocking(rows, vectors, depth, A_BLOCK_ROWS // rows * rows, max(columns // width, 1) * width, panel_cache)


def weight_blocking(dtype: str, target: Target) -> Blocking:
    """Return the blocking of products with packed weights: the block of A fills half of the second-level cache."""
    size = element_size(dtype)
    columns = 8192 // size
    if target.registers == 32:
        return Blocking(rows=12, vectors=2, depth=4096 // size, block_rows=120, block_columns=columns)
    return Blocking(
        rows=6 if target.vector_bytes >= 32 else 4, vectors=2, depth=2048 // size, block_rows=96, block_columns=columns
    )


def uses_dot(product: Product, target: Target) -> bool:
    """Return whether C is so skinny that dot products along k beat vectors along n."""
    if product.swapped or product.k < 8 or product.trans_a and not product.trans_b:
        return False
    lanes = target.lanes(product.dtype)
    # The horizontal sum of an accumulator, and transposing B, cost as much as so many steps along k (measured).
    few_rows = product.trans_b and product.m <= 24 and 2 * product.k >= product.m * lanes
    if product.trans_a:
        return few_rows and product.k >= 64 and product.n >= 8 * product.m
    unit = min(lanes, 32 // product.size)  # bytes per cycle of the execution units, even of longer vectors
    max_columns, steps = (7, 5) if product.trans_b else (6, 8)
    along = product.k / unit + steps * lanes / unit
    few_columns = product.n <= max_columns and product.n * along <= 1.5 * -(-product.n // unit) * product.k
    return product.n == 1 or few_rows or few_columns


def conflicts(product: Product) -> bool:
    """Return whether the rows of an operand read in place would compete for the same cache sets."""
    strides = [product.n] * (not product.trans_b) + [product.m] * product.trans_a
    return product.k > SKINNY and any(stride * product.size % CONFLICT_BYTES == 0 for stride in strides)


def reads_in_place(product: Product) -> bool:
    """Return whether the operands are best read in place."""
    if product.trans_b:
        return product.n * product.k * product.size <= TRANSPOSED_BYTES
    if conflicts(product):
        return product.m <= SKINNY or product.n <= 4 * SKINNY
    if product.m <= 4 * SKINNY or product.n <= 8 * SKINNY or product.k <= 2 * SKINNY:
        return True
    return max(product.m, product.n) * product.k * product.size <= cpu_target.l2_cache_bytes() * IN_PLACE_SHARE


def candidates(product: Product, target: Target) -> list[dict[str, Any]]:
    """Variants worth measuring, the static choice first."""
    if 0 in (product.m, product.n):
        return [{"algorithm": "packed"}]
    direct, packed = direct_choices(product, target), [{"algorithm": "packed"}]
    if uses_dot(product, target):
        result = [dot_choice(product, target)] + (direct[:1] if 1 not in (product.m, product.n) else [])
    elif not product.swapped and few_rows_of_large_matrix(product.trans_b, product.dtype, least=2)(*product.shape):
        # Records of other sizes, whose B is in the cache, must not select another algorithm here.
        result = [{"algorithm": "any"}]
    elif product.m == 1 and not product.trans_b or reads_in_place(product):
        result = direct
    else:
        # Where rows compete for cache sets, or an operand is much larger than the cache, records of other sizes must
        # not select reading in place.
        large = max(product.m, product.n) * product.k * product.size > 2 * IN_PLACE_BYTES
        result = packed if large or conflicts(product) else packed + direct[:1]
    # Whatever is best for exactly this size, the algorithm for every size remains a candidate.
    universal: dict[str, Any] = {"algorithm": "any"}
    if 1 in (product.m, product.n):
        universal = {"algorithm": "vector"}
    elif max(product.m, product.n, product.k) <= COMPACT:
        universal = {"algorithm": "compact"}
    elif packed[0] in result:
        universal = packed[0]
    result = result if universal in result else [*result[:2], universal]
    if product.work >= MIN_PARALLEL_STATIC_MULTIPLY_ADDS:
        # Parallel first: on a busy machine the calling thread does all the work, in the same time.
        return [{**variant, "parallel": parallel} for variant in result for parallel in (True, False)]
    return result


def direct_choices(product: Product, target: Target) -> list[dict[str, Any]]:
    """List the variants that read the operands in place; a depth of 0 means all of k in one block."""
    rows, vectors = tile_shape(product, target)
    best = {"algorithm": "direct", "rows": rows, "vectors": vectors, "depth": 0}
    if product.m == 1:
        # A few rows of B at a time are a few forward streams; C stays in the first-level cache meanwhile.
        return [{**best, "depth": 8}, {**best, "depth": 32}]
    if product.trans_b:
        return [best]
    if product.m <= 8 and product.n * product.k * product.size > IN_PLACE_BYTES:
        return [{**best, "depth": 128}, best]
    if vectors == 2 and product.m > 16 and product.work > 32**3:
        return [best, {**best, "rows": rows * 2 // 3, "vectors": 3}]
    return [best]


def dot_choice(product: Product, target: Target) -> dict[str, Any]:
    """Return the dot-product variant: a tile whose accumulators and rows of A fit in registers."""
    if product.n == 1:
        rows, columns = min(product.m, 8), 1
    elif product.m == 1:
        rows, columns = 1, min(product.n, 8)
    elif target.registers < 32:
        columns = min(product.n, 4)
        rows = min(product.m, {2: 4, 3: 3, 4: 2}[columns])
    elif product.n <= 12:
        columns = -(-product.n // -(-product.n // 8))
        rows = min(product.m, 24 // columns, 6)
    else:
        rows, columns = (product.m, 6) if product.m <= 4 else (min(product.m, 8), 2)
    return {"algorithm": "dot", "rows": rows, "columns": columns}


def few_columns_of(trans_a: bool, trans_b: bool) -> Any:
    """Return the predicate (m, n, k) -> bool: C is best computed by the kernel for few columns.

    For few rows, apply it to ``op(B).T @ op(A).T``.
    """

    @inlined()
    def fits(m: int, n: int, k: int) -> bool:
        if trans_a:
            # Vectors run along m; the few columns are read element by element.
            return n <= 8 and n < m and m >= 16 and k >= 32
        if trans_b:
            # Both operands are contiguous along k: nothing has to be transposed, where panels would have to be.
            return n <= m and k >= 12 and (n <= 8 or (n <= 24 and m <= 64 and k >= DOT_DEPTH))
        # The few columns are transposed to be contiguous along k.
        return k >= DOT_DEPTH and (n <= 4 and (m >= 8 or k >= 64) or n <= 6 and m >= 32)

    return fits


def few_rows_of_large_matrix(trans_b: bool, dtype: str, *, least: int) -> Any:
    """Return the predicate (m, n, k) -> bool: C has few rows, `least` of them or more, and no L2 cache holds B."""
    large, long = cpu_target.l2_cache_bytes() // element_size(dtype), ROW_BYTES // element_size(dtype)

    @inlined()
    def fits(m: int, n: int, k: int) -> bool:
        return not trans_b and m >= least and m <= PACKED_ROWS and n >= long and n * k >= large

    return fits


@inlined()
def is_small(m: int, n: int, k: int) -> bool:
    """Return whether packing costs more than it saves. Products of few rows are split by their columns."""
    if m <= PACKED_ROWS:
        return True
    return m * n * k < MIN_PARALLEL_STATIC_MULTIPLY_ADDS and (
        n <= PACKED_ROWS or k <= PACKED_ROWS or n * k <= UNPACKED_ELEMENTS
    )
