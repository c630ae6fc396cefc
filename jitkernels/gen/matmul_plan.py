"""Which tiles and blocks a generated matrix multiply takes for a shape and a vector width: the static choices.

Measured on AVX-512 (Zen 5) and derived for narrower vectors from the number of registers.  Everything here is only
a first guess where the tuner may measure; `candidates` lists what is worth measuring.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from jitkernels.gen.matmul_packed import Blocking
from jitkernels.gen.tile import element_size

#: Products of fewer multiply-adds than this are done before a second thread has helped.
PARALLEL_WORK = 160**3

#: Operands up to this many bytes stay in the second-level cache, where reading them in place beats packing.
IN_PLACE_BYTES = 1 << 20

#: C this thin, or k this short, leaves too little arithmetic per element to pay for packing.
THIN = 32


@dataclass(frozen=True)
class Product:
    """A matrix product in its simplest equivalent form; ``swapped``: C is the same memory transposed (m was > 1)."""

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
    """Drop transposes that move nothing, and turn a column ``A.T @ x`` into the row ``x.T @ A``."""
    if product.m == 1 or product.k == 1:
        product = replace(product, trans_a=False)
    if product.n == 1 or product.k == 1:
        product = replace(product, trans_b=False)
    if product.n == 1 and product.trans_a:
        return replace(product, m=1, n=product.m, trans_a=False, trans_b=False, swapped=True)
    return product


def tile_shape(product: Product, registers: int, lanes: int) -> tuple[int, int]:
    """``(rows, vectors)`` of the largest useful tile: accumulators, the vectors of B and one of A in registers."""
    needed = -(-product.n // lanes)
    most = 24 if registers == 32 else 12
    if needed == 1:
        return (min(product.m, 16 if registers == 32 else 12), 1)
    if product.m <= (4 if registers == 32 else 2):
        wide = {1: 8, 2: 8, 3: 6, 4: 6}[product.m] if registers == 32 else {1: 8, 2: 5}[product.m]
        return product.m, min(wide, needed)
    if product.m <= most // 3 or needed == 3:
        return most // 3, min(3, needed)
    if needed % 2 and needed > 3 and needed % 3 != 1:
        return most // 3, 3
    if needed % 4 == 3 and registers == 32:
        return most // 4, 4
    return most // 2, 2


def blocking(dtype: str, registers: int, vector_bytes: int) -> Blocking:
    """Blocks of the packed algorithm: a panel of B streams from the second-level cache, the block of A lives there."""
    size = element_size(dtype)
    columns = 8192 // size
    if registers == 32:
        return Blocking(rows=12, vectors=2, depth=4096 // size, block_rows=120, block_columns=columns)
    return Blocking(rows=6 if vector_bytes >= 32 else 4, vectors=2, depth=2048 // size, block_rows=96, block_columns=columns)


def uses_dot(product: Product) -> bool:
    """Whether k is contiguous in both operands and C is thin enough for dot products."""
    by_rows = not product.trans_a and (product.trans_b or product.n == 1)
    return by_rows and product.k >= 8 and (product.n == 1 or product.m <= 16 and product.n * product.k >= 64 * 64)


def reads_in_place(product: Product) -> bool:
    """Whether the operands are best read where they lie."""
    if product.trans_b:
        return product.n * product.k * product.size <= IN_PLACE_BYTES // 4
    if min(product.m, product.n, product.k) <= THIN:
        return True
    return max(product.m, product.n) * product.k * product.size <= IN_PLACE_BYTES


def candidates(product: Product, registers: int, lanes: int) -> list[dict[str, Any]]:
    """Variants worth measuring, the static choice first."""
    if 0 in (product.m, product.n):
        return [{"algorithm": "packed"}]
    rows, vectors = tile_shape(product, registers, lanes)
    direct = {"algorithm": "direct", "rows": rows, "vectors": vectors}
    packed = {"algorithm": "packed"}
    if uses_dot(product):
        dot = {"algorithm": "dot", "rows": 8, "columns": 1} if product.n == 1 else dot_tile_shape(product, registers)
        found = [dot] if product.n == 1 or product.m == 1 else [dot, packed]
    elif product.m == 1:
        found = [{**direct, "depth": 32}, {**direct, "depth": 8}]
    elif reads_in_place(product):
        found = [direct, packed] if product.work > 64**3 else [direct]
        if product.work > 16**3 and vectors == 2 and product.m >= 8:
            found.insert(1, {"algorithm": "direct", "rows": rows * 2 // 3, "vectors": 3})
    else:
        found = [packed]
        if product.work <= 1024**3 and not product.trans_b:
            found.append(direct)
    if product.work >= PARALLEL_WORK:
        return [{**variant, "parallel": parallel} for variant in found[:3] for parallel in (True, False)]
    return found


def dot_tile_shape(product: Product, registers: int) -> dict[str, Any]:
    """Rows and columns of a tile of dot products for few rows."""
    if product.m == 1:
        return {"algorithm": "dot", "rows": 1, "columns": 8}
    if registers < 32:
        return {"algorithm": "dot", "rows": min(product.m, 4), "columns": 2}
    if product.m <= 4:
        return {"algorithm": "dot", "rows": product.m, "columns": 4 if product.m < 4 else 6}
    return {"algorithm": "dot", "rows": 8, "columns": 2}
