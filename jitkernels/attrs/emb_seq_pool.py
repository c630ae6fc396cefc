"""EMB_SEQ_POOL: rows of an embedding table looked up and pooled."""

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np

from jitkernels.attrs.base import (
    FLOATS,
    Call,
    Case,
    KernelAttr,
    Tolerance,
    cases,
    choice,
    dtype_name,
    float_arrays,
    power_of_two,
    size_class,
)
from jitkernels.errors import ArgumentError, ArgumentTypeError, AttrError, DataIndexError
from jitkernels.signature import AnyArray, Array, Signature

POOLS = ("sum", "mean", "max")


class EmbSeqPoolAttr(KernelAttr, kernel_type="EMB_SEQ_POOL"):
    """out[w * table_w + j] = sum (mean, max) over h of table[ids[h, w], j].

    Each column of ids is a sequence. Every id must lie in 0..table_h - 1; otherwise nothing is written.
    While the kernel runs no other thread may write to ids.
    """

    table_h: int
    table_w: int
    idx_h: int
    idx_w: int
    pool: str = choice(*POOLS, default="sum")
    dtype: str = "float32"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.idx_h == 0 and self.pool != "sum":
            raise AttrError(f"EmbSeqPoolAttr: idx_h: expected at least 1 for {self.pool}, got 0")

    def signature(self) -> Signature:
        arrays = (
            Array("table", "in", (self.table_h, self.table_w), self.dtype),
            Array("ids", "in", (self.idx_h, self.idx_w), "int64", domain=(0, self.table_h)),
            Array("out", "out", (self.idx_w * self.table_w,), self.dtype),
        )
        names = ("table_h", "table_w", "idx_h", "idx_w")
        return Signature(arrays, tuple((name, int(getattr(self, name))) for name in names))

    def tolerance(self) -> Tolerance:
        unit = float(np.finfo(self.dtype).eps)
        return Tolerance(ulp=0) if self.pool == "max" else Tolerance(ulp=4, absolute=2 * unit * self.idx_h)

    def operations(self) -> float:
        return float(self.idx_h * self.idx_w * self.table_w)

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, 1, 1, 1), (10, 7, 3, 2), (100, 8, 9, 1), (50, 31, 2, 3), (1000, 64, 16, 4)]
        full = [
            (10000, w, h, columns) for w in (10, 16, 64, 256) for columns in (1, 2, 16) for h in (1, 9, 64)
        ]

        def attrs(shapes: Sequence[tuple[int, ...]]) -> list[EmbSeqPoolAttr]:
            return [
                cls(table_h=th, table_w=tw, idx_h=h, idx_w=w, pool=pool, dtype=dtype)
                for dtype in FLOATS
                for pool in POOLS
                for th, tw, h, w in shapes
            ]

        return cases(attrs(full), ci=attrs(ci))

    def tuning_class(self) -> Self:
        """Extents at the next power of two, table_w exact up to 64, the table cut to 64 Ki rows."""
        rows = min(power_of_two(self.table_h), 1 << 16)
        extents = {"idx_h": power_of_two(self.idx_h), "idx_w": power_of_two(self.idx_w)}
        return type(self)(
            table_h=rows, table_w=size_class(self.table_w), **extents, pool=self.pool, dtype=self.dtype
        )

    def check_data(self, arrays: Sequence[AnyArray]) -> None:
        ids = arrays[1]
        wrong = np.argwhere((ids < 0) | (ids >= self.table_h))
        if wrong.size:
            at = tuple(int(i) for i in wrong[0])
            raise DataIndexError(
                f"emb_seq_pool: ids: expected 0 to {self.table_h - 1} (the rows of table), "
                f"got {int(ids[at])} at [{at[0]}, {at[1]}]"
            )

    @classmethod
    def call(cls, table: Any, ids: Any, pool: str = "sum") -> Call:
        (rows,) = float_arrays("emb_seq_pool", table=table)
        numbers = np.asarray(ids)
        if numbers.dtype.kind not in "iu":
            raise ArgumentTypeError(f"emb_seq_pool: ids: expected integers, got dtype {numbers.dtype}")
        if rows.ndim != 2 or numbers.ndim != 2:
            raise ArgumentError(
                f"emb_seq_pool: table and ids: expected 2 dimensions, got {rows.ndim} and {numbers.ndim}"
            )
        if numbers.dtype == np.uint64 and numbers.size and int(numbers.max()) > np.iinfo(np.int64).max:
            raise DataIndexError(
                f"emb_seq_pool: ids: expected 0 to {rows.shape[0] - 1}, got {int(numbers.max())}"
            )
        numbers = np.require(numbers, np.int64, ["C", "A"])
        table_h, table_w = rows.shape
        idx_h, idx_w = numbers.shape
        attr = cls(
            table_h=table_h, table_w=table_w, idx_h=idx_h, idx_w=idx_w, pool=pool, dtype=dtype_name(rows)
        )
        return Call(attr, [rows, numbers], [(idx_w * table_w,)])
