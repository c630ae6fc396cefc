"""TRANSPOSE, GATHER and SCATTER_ADD: data movement and indexed accumulation."""

from collections.abc import Iterable, Sequence
from typing import Self

import numpy as np

from jitkernels.attrs.schema.base import FLOATS, Case, KernelAttr, Tolerance, cases, grid
from jitkernels.attrs.schema.signature import AnyArray, Argument
from jitkernels.errors import DataIndexError

MAX_TUNED_ROWS = 1 << 16
"""Rows of a table that tuning measures at most: beyond that only its cache misses matter."""


def check_ids(kernel: str, ids: AnyArray, rows: int) -> None:
    """Raise DataIndexError for the first index out of bounds of a table."""
    wrong = np.argwhere((ids < 0) | (ids >= rows))
    if wrong.size:
        at = tuple(int(i) for i in wrong[0])
        known = f"0 to {rows - 1} (the rows of table)" if rows else "none (table has no rows)"
        raise DataIndexError(f"{kernel}: ids: expected {known}, got {int(ids[at])} at {list(at)}")


class TransposeAttr(KernelAttr, kernel_type="TRANSPOSE"):
    """y[b, j, i] = x[b, i, j]: swap the last two axes, into new memory."""

    batch: int
    rows: int
    n: int
    dtype: str = "float32"
    arrays = (Argument("x", "in", "*batch rows n"), Argument("y", "out", "*batch n rows", moves="x"))
    streams = ((1, 4096, 4096), (256, 256, 256))

    def tolerance(self) -> Tolerance:
        return Tolerance(ulp=0)

    def operations(self) -> float:
        return float(self.batch * self.rows * self.n)

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, 1, 1), (1, 8, 8), (2, 3, 7), (1, 17, 33), (3, 40, 16)]
        full = [(1, n, n) for n in (8, 16, 31, 64, 100, 256, 500, 1024, 2048, 4000, 4099)]
        full += [(1, 3, 100_000), (1, 100_000, 3), (64, 64, 64), (1000, 8, 8), (12, 197, 64), (256, 256, 256)]
        return cases(grid(cls, "batch rows n", full, dtype=FLOATS), ci=grid(cls, "batch rows n", ci, dtype=FLOATS))


class GatherAttr(KernelAttr, kernel_type="GATHER"):
    """y[i] = table[ids[i]]: gather rows.

    Every id must be in 0..table_rows - 1, otherwise nothing is written; negative ids do not count from the end as in
    NumPy. No other thread may write to ids during the call.
    """

    table_rows: int
    n: int
    count: int
    dtype: str = "float32"
    arrays = (
        Argument("table", "in", "table_rows n"),
        Argument("ids", "in", "*count", dtype="int64", domain=(0, "table_rows"), picks="table"),
        Argument("y", "out", "*count n"),
    )
    streams = ((1 << 14, 1024, 1 << 14),)

    def tolerance(self) -> Tolerance:
        return Tolerance(ulp=0)

    def operations(self) -> float:
        return float(self.count * self.n)

    def size_class(self) -> Self:
        """As for all kernels, with the table cut to `MAX_TUNED_ROWS`."""
        largest_member = super().size_class()
        return type(self)(**largest_member.fields() | {"table_rows": min(largest_member.table_rows, MAX_TUNED_ROWS)})

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, 1, 1), (10, 7, 3), (100, 8, 9), (50, 33, 17), (100, 1, 100)]
        full = [(10_000, n, count) for n in (1, 4, 16, 64, 256) for count in (1, 16, 256, 4096)]
        return cases(
            grid(cls, "table_rows n count", full, dtype=FLOATS), ci=grid(cls, "table_rows n count", ci, dtype=FLOATS)
        )

    def check_data(self, arrays: Sequence[AnyArray]) -> None:
        check_ids(self.name, arrays[1], self.table_rows)


class ScatterAddAttr(KernelAttr, kernel_type="SCATTER_ADD"):
    """y = table, then y[ids[i]] += x[i] for each i in order: equal ids accumulate.

    Every id must be in 0..table_rows - 1, otherwise nothing is written; negative ids do not count from the end. y may
    be the table. Rows are added in the order of ids, whatever the number of threads. No other thread may write to ids
    during the call.
    """

    table_rows: int
    n: int
    count: int
    dtype: str = "float32"
    arrays = (
        Argument("table", "in", "table_rows n", in_place=True),
        Argument("ids", "in", "count", dtype="int64", domain=(0, "table_rows")),
        Argument("x", "in", "count n"),
        Argument("y", "out", "table_rows n", in_place=True),
    )
    streams = ((1 << 14, 1024, 1 << 14),)

    def tolerance(self) -> Tolerance:
        """One serial sum, of all x with the same id."""
        return Tolerance(ulp=0.5, terms=max(1.0, float(self.count)))

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """|table| + the sum of |x[i]| over all i with the row's id, times their share of all ids."""
        table, ids, x = arrays[:3]
        sums = np.abs(table)
        np.add.at(sums, ids, np.abs(x))
        terms = np.bincount(ids, minlength=self.table_rows)[:, np.newaxis]
        scaled = np.where(terms == 0, 0, sums * terms / max(1, self.count))
        return [np.where(sums < float(np.finfo(self.dtype).max), scaled, np.inf)]

    def operations(self) -> float:
        return float((self.table_rows + self.count) * self.n)

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, 1, 1), (10, 7, 3), (5, 8, 9), (50, 33, 17), (100, 1, 100)]
        full = [(rows, n, count) for rows in (64, 4096) for n in (1, 16, 256) for count in (1, 64, 4096)]
        return cases(
            grid(cls, "table_rows n count", full, dtype=FLOATS), ci=grid(cls, "table_rows n count", ci, dtype=FLOATS)
        )

    def check_data(self, arrays: Sequence[AnyArray]) -> None:
        check_ids(self.name, arrays[1], self.table_rows)
