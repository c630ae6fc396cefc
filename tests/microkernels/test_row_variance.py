"""HVAR of long rows: one pass where a number near the mean is found at once, else two."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.attrs.reduction import HVarAttr
from jitkernels.attrs.schema.registry import implementation
from jitkernels.dispatch.kernel import Kernel

N = 9001


def rows(dtype: str) -> Any:
    random = np.random.default_rng(3)
    noise = random.standard_normal(N)
    outliers = noise.copy()
    outliers[:64] = 1e4
    kinds = [
        noise, noise + 1000, noise * 1e-6 - 1, outliers, np.linspace(-3, 1e5, N), np.cumsum(noise), np.full(N, 0.1),
        np.where(np.arange(N) == N - 1, 1e3, 0.0), np.sign(noise) * 1e15,
    ]  # fmt: skip
    return np.stack(kinds).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_variance_of_rows_far_from_zero(dtype: str) -> None:
    """The error is that of rounding the mean, wherever it lies and whatever the first element is."""
    x = rows(dtype)
    attr, eps = HVarAttr(rows=len(x), n=N, dtype=dtype), float(np.finfo(dtype).eps)
    wide = x.astype(np.longdouble)
    mean, true = wide.mean(axis=1), wide.var(axis=1)
    gen = implementation(HVarAttr, "gen")
    for variant in gen.variants(attr):
        y = np.empty(len(x), dtype)
        Kernel(attr, gen, variant).callable(x, y)
        allowed = 16 * eps * true + (4 * eps * mean) ** 2
        assert (np.abs(y - true) <= allowed).all(), (variant, y, true)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_infinities_and_nan(dtype: str) -> None:
    x = rows(dtype)
    x[0, 5], x[1, N - 5], x[2, 70], x[3, N - 1] = np.inf, -np.inf, np.nan, np.nan
    found = jk.hvar(x)
    assert np.isnan(found[:4]).all()
    assert np.isfinite(found[4:]).all()
