"""SORT and TOPK: elements of rows ordered by value."""

from collections.abc import Iterable

from jitkernels.attrs.schema.base import FLOATS, Case, KernelAttr, Tolerance, cases, grid, stored, whole
from jitkernels.attrs.schema.fields import STORED_INTEGERS
from jitkernels.attrs.schema.signature import Argument
from jitkernels.errors import AttrError

DISTINCT = (-1000.0, 1000.0)
"""The domain of elements to sort: integers, too, are mostly different."""
ORDERED = (*FLOATS, *STORED_INTEGERS)
"""Dtypes of elements that are sorted as they are."""


class SortAttr(KernelAttr, kernel_type="SORT"):
    """y[i] = the elements of x[i] in ascending order, NaN last as in NumPy; -0.0 sorts before 0.0."""

    rows: int
    n: int
    dtype: str = stored(*ORDERED, default="float32")
    arrays = (
        Argument("x", "in", "*rows n", in_place=True, domain=DISTINCT),
        Argument("y", "out", "*rows n", in_place=True),
    )
    options = ("axis",)

    def tolerance(self) -> Tolerance:
        return Tolerance(ulp=0)

    def operations(self) -> float:
        return 2.0 * self.rows * self.n * max(1, self.n.bit_length())

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, 1), (3, 7), (4, 64), (2, 130), (2, 1000)]
        full = [(1, n) for n in (2, 8, 16, 31, 64, 100, 256, 1000, 4096, 10_007, 100_000, 1_000_000)]
        full += [(rows, n) for rows in (16, 256) for n in (8, 64, 500, 4096)]
        return cases(grid(cls, "rows n", full, dtype=ORDERED), ci=grid(cls, "rows n", ci, dtype=ORDERED))


class TopkAttr(KernelAttr, kernel_type="TOPK"):
    """values[i] = the k largest of x[i], largest first, and indices[i] their indices.

    Of equal elements the one with the lower index comes first; NaN counts as larger than all numbers, as in NumPy's
    order, and 0.0 and -0.0 are equal.
    """

    rows: int
    n: int
    k: int = whole(samples=(1, 2, 7, 100))
    dtype: str = "float32"
    arrays = (
        Argument("x", "in", "*rows n"),
        Argument("values", "out", "*rows k"),
        Argument("indices", "out", "*rows k", dtype="int64"),
    )
    options = ("k", "axis")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k > self.n:
            raise AttrError(f"TopkAttr: k: expected at most {self.n}, the length of a row, got {self.k}")

    def tolerance(self) -> Tolerance:
        return Tolerance(ulp=0)

    def operations(self) -> float:
        return 2.0 * self.rows * (self.n + self.k * max(1, self.k.bit_length()))

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, 1, 1), (3, 7, 2), (4, 64, 5), (2, 130, 130), (2, 1000, 9)]
        full = [(1, n, k) for n in (16, 100, 1000, 10_000, 100_000, 1_000_000) for k in (1, 5, 50, 1000) if k <= n]
        full += [(64, n, k) for n in (128, 1000, 50_257) for k in (1, 8, 50)]
        return cases(grid(cls, "rows n k", full, dtype=FLOATS), ci=grid(cls, "rows n k", ci, dtype=FLOATS))
