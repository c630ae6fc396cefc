"""SGD: a step of stochastic gradient descent for some rows of a matrix of parameters."""

from collections.abc import Iterable, Sequence

import numpy as np

from jitkernels.attrs.schema.base import FLOATS, Case, KernelAttr, Tolerance, cases, grid, real
from jitkernels.attrs.schema.signature import AnyArray, Argument
from jitkernels.errors import DataIndexError


class SgdAttr(KernelAttr, kernel_type="SGD"):
    """out = param, except out[rows[i], j] = param[rows[i], j] - lr * grad[i, j], for all i in order.

    Every row index must be in 0..param_height - 1; otherwise nothing is written. Without row indices nothing is
    changed. A row that occurs several times takes all of its steps, in their order, in place or not; Paddle's
    reference does so in place only, and takes the last step alone otherwise. Rows that do not occur are copied, where
    Paddle leaves the old content of out: in place, with out=param, there is no difference and no cost. A dense
    gradient is a single row: sgd(param.reshape(1, -1), grad.reshape(1, -1), [0], out=param.reshape(1, -1)). No other
    thread may write to rows during the call.
    """

    param_height: int
    param_width: int
    selected_rows_size: int
    lr: float = real(default=1e-3, least=0.0, samples=(0.0, 0.5, 3.0))
    dtype: str = "float32"
    arrays = (
        Argument("param", "in", "param_height param_width", in_place=True),
        Argument("grad", "in", "selected_rows_size param_width"),
        Argument("rows", "in", "selected_rows_size", dtype="int64", domain=(0, "param_height")),
        Argument("out", "out", "param_height param_width", in_place=True),
    )
    floats = ("lr",)
    options = ("lr",)
    streams = ((1, 1 << 24, 1),)

    def tolerance(self) -> Tolerance:
        """A product and a difference for each step, at worst all of one row: they are not reordered."""
        return Tolerance(ulp=1, terms=1 + 0.5 * self.selected_rows_size)

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """|param| + the sum of lr * |grad| over the steps of a row."""
        param, grad, rows = arrays[:3]
        terms = np.abs(param)
        np.add.at(terms, rows, self.lr * np.abs(grad))
        return [terms]

    def operations(self) -> float:
        return 2.0 * self.selected_rows_size * self.param_width

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, 1, 1), (10, 7, 3), (5, 8, 9), (20, 31, 20), (1, 1000, 1)]
        full = [(1000, width, rows) for width in (2, 8, 16, 30, 64, 256, 1024) for rows in (1, 10, 100, 1000)]
        full += [(1, 10**i, 1) for i in range(2, 8)] + [(100_000, 128, 10_000)]
        return cases(
            grid(cls, "param_height param_width selected_rows_size", full, dtype=FLOATS),
            ci=grid(cls, "param_height param_width selected_rows_size", ci, dtype=FLOATS),
        )

    def check_data(self, arrays: Sequence[AnyArray]) -> None:
        rows = arrays[2]
        wrong = np.flatnonzero((rows < 0) | (rows >= self.param_height))
        if wrong.size:
            last = self.param_height - 1
            known = f"0 to {last} (the rows of param)" if self.param_height else "none (param has no rows)"
            at = int(wrong[0])
            raise DataIndexError(f"sgd: rows: expected {known}, got {int(rows[at])} at [{at}]")
