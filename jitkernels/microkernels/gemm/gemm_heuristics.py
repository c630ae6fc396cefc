"""Which tiles and blocks a generated matrix multiply takes for a shape and a vector width.

Measured on AVX-512 (Zen 5) and derived for others from the number of registers.  Everything here is
only a first guess where the tuner may measure; `candidates` lists what is worth measuring.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from jitkernels.loops.matmul_packed import Blocking
from jitkernels.loops.tile import element_size
from jitkernels.machine import Target
from jitkernels.records import record

#: Products of fewer multiply-adds than this are done before a second thread has helped.
PARALLEL_WORK = 160**3

#: Operands up to this many bytes are read in place: their panels live in the second-level cache anyway.
IN_PLACE_BYTES = 4 << 20

#: As above for a transposed B, which has to be packed whole.
TRANSPOSED_BYTES = 256 << 10

#: Rows so many bytes apart (or a multiple) fall into the same few cache sets, so that a panel evicts itself.
CONFLICT_BYTES = 4096


#: C this thin leaves too little arithmetic per element of the other operand to pay for packing it.
THIN = 32


#: Up to this size nothing has to be packed, so that one object can serve all sizes without.
COMPACT = 128


#: Fewer columns than this fill so little of a vector that a transposed result is cheaper.
NARROW = 8


@record
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
    def work(self) -> int:
        """Multiply-adds."""
        return self.m * self.n * self.k

    @property
    def size(self) -> int:
        """Bytes of one element."""
        return element_size(self.dtype)


def simplified(product: Product) -> Product:
    """Drop transposes that move nothing, and turn a narrow ``A.T @ X`` into the flat ``X.T @ A``."""
    if product.m == 1 or product.k == 1:
        product = replace(product, trans_a=False)
    if product.n == 1 or product.k == 1:
        product = replace(product, trans_b=False)
    if product.trans_a and (product.n == 1 or product.n <= NARROW and product.m >= THIN):
        trans_a = product.n > 1 and not product.trans_b
        return replace(product, m=product.n, n=product.m, trans_a=trans_a, trans_b=False, swapped=True)
    return product


def tile_shape(product: Product, target: Target) -> tuple[int, int]:
    """``(rows, vectors)`` of the largest useful tile: it, a row of B and one element of A fill the registers."""
    needed = -(-product.n // target.lanes(product.dtype))
    registers = target.registers
    most = 24 if registers == 32 else 12
    if needed == 1:
        return (min(product.m, 16 if registers == 32 else 12), 1)
    if product.k <= 16 and product.m > 4 and product.m * product.n * product.size > IN_PLACE_BYTES:
        # Writing C is all that takes time: few rows, each in long runs, are what memory does best.
        few = 2 if product.k <= 2 or registers < 32 else 4
        return few, min(needed, {2: 8, 4: 6}[few] if registers == 32 else 4)
    if product.m <= (4 if registers == 32 else 2):
        wide = {1: 8, 2: 8, 3: 6, 4: 6}[product.m] if registers == 32 else {1: 8, 2: 5}[product.m]
        return product.m, min(wide, needed)
    alone = _vectors_beside_tail(product, target)
    if alone:
        return (16 if most == 24 and alone == 1 else most // alone), alone
    if product.m <= most // 3 or needed == 3:
        return most // 3, min(3, needed)
    if needed % 2 and needed > 3 and needed % 3 != 1:
        return most // 3, 3
    if needed % 4 == 3 and registers == 32:
        return most // 4, 4
    return most // 2, 2


def _vectors_beside_tail(product: Product, target: Target) -> int:
    """Vectors of panels that leave the last columns alone, where half a vector holds these; 0 if nothing is won."""
    whole, tail = divmod(product.n, target.lanes(product.dtype))
    if not 0 < tail <= target.lanes(product.dtype) // 2 or whole > 6:
        return 0
    return next(vectors for vectors in (3, 2, 1) if whole % vectors == 0)


def blocking(dtype: str, target: Target) -> Blocking:
    """Blocks of the packed algorithm: the block of A fills half of the second-level cache."""
    size = element_size(dtype)
    columns = 8192 // size
    if target.registers == 32:
        return Blocking(rows=12, vectors=2, depth=4096 // size, block_rows=120, block_columns=columns)
    return Blocking(
        rows=6 if target.vector_bytes >= 32 else 4,
        vectors=2,
        depth=2048 // size,
        block_rows=96,
        block_columns=columns,
    )


def uses_dot(product: Product, target: Target) -> bool:
    """Whether C is so thin that dot products along k beat vectors along n."""
    if product.swapped or product.k < 8 or product.trans_a and not product.trans_b:
        return False
    lanes = target.lanes(product.dtype)
    # Adding up the lanes of a sum, and turning B round, cost as much as so many steps along k (measured).
    few_rows = product.trans_b and product.m <= 24 and 2 * product.k >= product.m * lanes
    if product.trans_a:
        return few_rows and product.k >= 64 and product.n >= 8 * product.m
    unit = min(lanes, 32 // product.size)  # what CPUs work on at once, even of longer vectors
    most, steps = (7, 5) if product.trans_b else (6, 8)
    along = product.k / unit + steps * lanes / unit
    few_columns = product.n <= most and product.n * along <= 1.5 * -(-product.n // unit) * product.k
    return product.n == 1 or few_rows or few_columns


def conflicts(product: Product) -> bool:
    """Whether the rows of an operand read in place would compete for the same cache sets."""
    strides = [product.n] * (not product.trans_b) + [product.m] * product.trans_a
    return product.k > THIN and any(stride * product.size % CONFLICT_BYTES == 0 for stride in strides)


def reads_in_place(product: Product) -> bool:
    """Whether the operands are best read where they lie."""
    if product.trans_b:
        return product.n * product.k * product.size <= TRANSPOSED_BYTES
    if conflicts(product):
        return product.m <= THIN or product.n <= 4 * THIN
    if product.m <= 4 * THIN or product.n <= 8 * THIN or product.k <= 2 * THIN:
        return True
    return max(product.m, product.n) * product.k * product.size <= IN_PLACE_BYTES


def candidates(product: Product, target: Target) -> list[dict[str, Any]]:
    """Variants worth measuring, the static choice first."""
    if 0 in (product.m, product.n):
        return [{"algorithm": "packed"}]
    direct, packed = direct_choices(product, target), [{"algorithm": "packed"}]
    if uses_dot(product, target):
        found = [dot_choice(product, target)] + (direct[:1] if 1 not in (product.m, product.n) else [])
    elif product.m == 1 and not product.trans_b or reads_in_place(product):
        found = direct
    else:
        # Where rows compete for cache sets, or an operand is much larger than the cache, what was measured at other
        # sizes must not speak for reading in place.
        large = max(product.m, product.n) * product.k * product.size > 2 * IN_PLACE_BYTES
        found = packed if large or conflicts(product) else packed + direct[:1]
    # Whatever is best for exactly this size, there is always what serves every size.
    anyhow: dict[str, Any] = {"algorithm": "any"}
    if 1 in (product.m, product.n):
        anyhow = {"algorithm": "vector"}
    elif max(product.m, product.n, product.k) <= COMPACT:
        anyhow = {"algorithm": "compact"}
    elif packed[0] in found:
        anyhow = packed[0]
    found = found if anyhow in found else [*found[:2], anyhow]
    if product.work >= PARALLEL_WORK:
        # In parallel first: on a busy machine the caller does it all, in the same time.
        return [{**variant, "parallel": parallel} for variant in found for parallel in (True, False)]
    return found


def direct_choices(product: Product, target: Target) -> list[dict[str, Any]]:
    """Variants that read the operands in place; a depth of 0 means all of k at once."""
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
    """The variant of dot products: a tile whose accumulators and rows of A fit in registers."""
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
