"""Column reductions row by row: strips, partial sums, NaN and infinities, empty arrays, and when they are chosen."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.attrs.schema.registry import implementation
from jitkernels.dispatch.kernel import Kernel
from jitkernels.gen.reduction import IN_ORDER, MIN_ROW_BY_ROW_BYTES
from jitkernels.microkernels.maths.blocked_summation import ADDS
from jitkernels.microkernels.reduction.column_reduction import STRIP_COLUMNS
from jitkernels.selection.select import choose

ROWS: dict[Any, Any] = {
    jk.HMaxAttr: np.max, jk.HMinAttr: np.min, jk.HSumAttr: np.sum, jk.HMeanAttr: np.mean,
}  # fmt: skip
SHAPES = ((1, 1, 40), (3, 5, 33), (2, ADDS + 3, 65), (1, 2 * ADDS, 7), (2, 3, STRIP_COLUMNS + 9))


def reduced(row: Any, x: Any, dtype: str) -> Any:
    rows, n, remain = x.shape
    attr = row(rows=rows, n=n, remain=remain, dtype=dtype)
    y = np.full((rows, remain), 7, dtype)
    Kernel(attr, implementation(row, "gen"), {"algorithm": IN_ORDER, "parallel": False}).callable(x, y)
    return y


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("row", ROWS)
def test_columns_row_by_row(row: Any, dtype: str) -> None:
    generator = np.random.default_rng(0)
    for shape in SHAPES:
        x = (generator.standard_normal(shape) + 3).astype(dtype)
        for value in (np.nan, np.inf, -np.inf):
            x[..., 1:6][generator.random((*shape[:2], 5)) < 0.2] = value
        with np.errstate(all="ignore"):
            expected = ROWS[row](x.astype(np.longdouble), axis=1)
        np.testing.assert_allclose(reduced(row, x, dtype), expected.astype(dtype), rtol=8 * float(np.finfo(dtype).eps))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_of_many_rows_are_accurate(dtype: str) -> None:
    x = np.full((1, 40 * ADDS + 1, 16), 0.1, dtype)
    assert reduced(jk.HSumAttr, x, dtype) == pytest.approx(float(x[0, 0, 0]) * x.shape[1], rel=4e-6)
    assert not reduced(jk.HSumAttr, x[:, :0], dtype).any()


@pytest.mark.parametrize("row", ROWS)
def test_arrays_beyond_the_caches_are_reduced_row_by_row(row: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITKERNELS_TUNE", "off")
    rows = MIN_ROW_BY_ROW_BYTES // (4 * 64 * 100) + 1
    for attr, is_so in (
        (row(rows=rows, n=64, remain=100), True),
        (row(rows=4 * rows, n=16, remain=100), False),
        (row(rows=10 * rows, n=64, remain=9), False),
        (row(rows=rows, n=6400), False),
        (row(rows=rows // 4, n=64, remain=100), False),
    ):
        assert (choose(attr).variant.get("algorithm") == IN_ORDER) is is_so
