"""EMB_SEQ_POOL: rows of an embedding table gathered and pooled."""

from collections.abc import Iterable, Sequence
from typing import Self

import numpy as np

from jitkernels.attrs.schema.base import NARROW, Case, KernelAttr, Tolerance, cases, choice, grid, stored, sum_error
from jitkernels.attrs.schema.signature import AnyArray, Argument
from jitkernels.errors import AttrError, DataIndexError

POOLS = ("sum", "mean", "max")


class EmbSeqPoolAttr(KernelAttr, kernel_type="EMB_SEQ_POOL"):
    """out[w * table_w + j] = sum (mean, max) over h of table[ids[h, w], j].

    Each column of ids is a sequence. Every id must be in 0..table_h - 1; otherwise nothing is written. No other thread
    may write to ids during the call. bfloat16 is accumulated in float32.
    """

    table_h: int
    table_w: int
    idx_h: int
    idx_w: int
    pool: str = choice(*POOLS, default="sum")
    dtype: str = stored(*NARROW, default="float32")
    arrays = (
        Argument("table", "in", "table_h table_w"),
        Argument("ids", "in", "idx_h idx_w", dtype="int64", domain=(0, "table_h"), picks="table"),
        Argument("out", "out", "idx_w*table_w"),
    )
    options = ("pool",)
    streams = ((1 << 14, 1024, 16, 1024),)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.idx_h == 0 and self.pool != "sum":
            raise AttrError(f"EmbSeqPoolAttr: idx_h: expected at least 1 for {self.pool}, got 0")

    def tolerance(self) -> Tolerance:
        """One sum and one division; a maximum is exact."""
        return Tolerance(ulp=0) if self.pool == "max" else Tolerance(ulp=2, terms=sum_error(self.idx_h))

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The sum over h of |table[ids[h, w], j]|, divided as the result is."""
        total = np.abs(arrays[0][arrays[1]]).sum(axis=0)
        return [np.reshape(total / (self.idx_h if self.pool == "mean" else 1), -1)]

    def operations(self) -> float:
        return float(self.idx_h * self.idx_w * self.table_w)

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, 1, 1, 1), (10, 7, 3, 2), (100, 8, 9, 1), (50, 31, 2, 3), (1000, 64, 16, 4)]
        full = [(10000, w, h, columns) for w in (10, 16, 64, 256) for columns in (1, 2, 16) for h in (1, 9, 64)]
        return cases(
            grid(cls, "table_h table_w idx_h idx_w", full, dtype=NARROW, pool=POOLS),
            ci=grid(cls, "table_h table_w idx_h idx_w", ci, dtype=NARROW, pool=POOLS),
        )

    def size_class(self) -> Self:
        """As for all kernels, with the table cut to 64 Ki rows: beyond that only its cache misses matter."""
        largest_member = super().size_class()
        return type(self)(**largest_member.fields() | {"table_h": min(largest_member.table_h, 1 << 16)})

    def check_data(self, arrays: Sequence[AnyArray]) -> None:
        ids = arrays[1]
        wrong = np.argwhere((ids < 0) | (ids >= self.table_h))
        if wrong.size:
            at = tuple(int(i) for i in wrong[0])
            known = f"0 to {self.table_h - 1} (the rows of table)" if self.table_h else "none (table has no rows)"
            raise DataIndexError(f"emb_seq_pool: ids: expected {known}, got {int(ids[at])} at [{at[0]}, {at[1]}]")
