"""ARGSORT: the indices of elements of rows ordered by value."""

from collections.abc import Iterable

from jitkernels.attrs.schema.base import Case, KernelAttr, Tolerance, cases, grid, stored
from jitkernels.attrs.schema.signature import Argument
from jitkernels.attrs.sort_topk import DISTINCT, ORDERED


class ArgsortAttr(KernelAttr, kernel_type="ARGSORT"):
    """y[i] = the indices that sort x[i], ascending for equal elements; NaN are last, 0.0 and -0.0 are equal."""

    rows: int
    n: int
    dtype: str = stored(*ORDERED, default="float32")
    arrays = (
        Argument("x", "in", "*rows n", domain=DISTINCT),
        Argument("y", "out", "*rows n", dtype="int64", domain=(0, "n")),
    )
    options = ("axis",)

    def tolerance(self) -> Tolerance:
        return Tolerance(ulp=0)

    def operations(self) -> float:
        return 4.0 * self.rows * self.n * max(1, self.n.bit_length())

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, 1), (3, 7), (4, 64), (2, 130), (2, 2000)]
        full = [(1, n) for n in (2, 8, 16, 31, 64, 100, 256, 1000, 4096, 10_007, 100_000, 1_000_000)]
        full += [(rows, n) for rows in (16, 256) for n in (8, 64, 500, 4096)]
        return cases(grid(cls, "rows n", full, dtype=ORDERED), ci=grid(cls, "rows n", ci, dtype=ORDERED))
