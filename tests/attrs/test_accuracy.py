"""Accuracy is independent of length, offset and magnitude of the data, for all implementations of a row.

True results come from long double and `math.fsum`. Bounds are forward-error bounds: so many units, times the
logarithm of the number of terms, times the sum of their absolute values.
"""

from collections.abc import Callable, Iterator
from math import fsum, log2
from typing import Any

import cases
import numpy as np
import pytest

import jitkernels as jk
from jitkernels.attrs.schema.registry import implementations
from jitkernels.attrs.schema.signature import AnyArray

WIDE = np.longdouble
FACTOR = 4
"""Units that the bound of a sum has for each doubling of its length."""


def each(row: Any, **fields: Any) -> Iterator[tuple[str, Any]]:
    """Label and callable of the variants that tests look at of every implementation that can be used for an attr."""
    attr = row(**fields)
    for name, found in implementations(row).items():
        if found.reason_against(attr) is None:
            for kernel in cases.kernels_of(attr, name):
                yield repr(kernel), kernel.callable


def bound(dtype: str, terms: int) -> float:
    """Relative error of a sum of so many terms of one sign."""
    return FACTOR * float(np.finfo(dtype).eps) * log2(terms + 2)


def columns(x: AnyArray) -> AnyArray:
    """The true sum of each column."""
    return np.array([fsum(map(float, x[:, j])) for j in range(x.shape[1])])


DATA: dict[str, Callable[[tuple[int, int], np.random.Generator], AnyArray]] = {
    "equal": lambda shape, random: np.full(shape, 0.1),
    "positive": lambda shape, random: random.uniform(0, 1, shape),
    "offset": lambda shape, random: 1000 + random.standard_normal(shape),
    "growing": lambda shape, random: np.cumsum(np.full(shape, 1e-3), axis=0),
    "alternating": lambda shape, random: 1e6 * (-1.0) ** np.indices(shape)[0] + random.standard_normal(shape),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [64, 1000, 3000, 50257, 1_000_000])
def test_softmax_of_a_peak_over_a_constant_row(n: int, dtype: str) -> None:
    """Equal terms round alike, so that a plain sum goes wrong by a multiple of its length."""
    for depth, peak in ((3.3, 0), (0.7, n // 2), (9.1, n - 1)):
        x = np.zeros((1, n), dtype)
        x[0, peak] = depth
        terms = np.exp(x.astype(WIDE) - x.max())
        true = terms / terms.sum()
        for label, softmax in each(jk.SoftmaxAttr, rows=1, n=n, dtype=dtype):
            y = np.empty_like(x)
            softmax(x, y)
            # exp of a rounded difference is off by half a unit times the difference, and by 3 units itself.
            assert np.abs(y / true - 1).max() <= bound(dtype, n) + (5 + depth) * np.finfo(dtype).eps, label


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "shape",
    [
        (50, 1000),
        (257, 3),
        (258, 40),
        (512, 5),
        (1000, 2),
        (4000, 64),
        (500, 5000),
        (200_000, 1),
        (150_000, 7),
        (140_000, 3),
        (1000, 33),
    ],
)
@pytest.mark.parametrize("data", DATA)
def test_sums_of_many_rows(shape: tuple[int, int], dtype: str, data: str) -> None:
    h, w = shape
    x = DATA[data](shape, np.random.default_rng(5)).astype(dtype)
    sample = np.unique(np.linspace(0, w - 1, 9).astype(int))  # of the columns, which fsum takes long for
    true, absolute = columns(x[:, sample]), columns(np.abs(x[:, sample]))
    for pool, divisor in (("sum", 1.0), ("mean", float(h)), ("sqrt", h**0.5)):
        for label, seq_pool in each(jk.SeqPoolAttr, h=h, w=w, pool=pool, dtype=dtype):
            y = np.empty(w, dtype)
            seq_pool(x, y)
            error = np.abs(y[sample].astype(np.float64) - true / divisor)
            assert (error <= bound(dtype, h) * absolute / divisor).all(), (label, data)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(40, 17), (2000, 1), (2000, 17), (300, 5000)])
@pytest.mark.parametrize("data", DATA)
def test_sums_of_many_gathered_rows(shape: tuple[int, int], dtype: str, data: str) -> None:
    h, w = shape
    random = np.random.default_rng(6)
    table = DATA[data]((100, w), random).astype(dtype)
    ids = random.integers(0, 100, (h, 2))
    sample = np.unique(np.linspace(0, w - 1, 9).astype(int))
    for pool, divisor in (("sum", 1.0), ("mean", float(h))):
        fields = {"table_h": 100, "table_w": w, "idx_h": h, "idx_w": 2, "pool": pool, "dtype": dtype}
        for label, emb_seq_pool in each(jk.EmbSeqPoolAttr, **fields):
            y = np.empty(2 * w, dtype)
            emb_seq_pool(table, ids, y)
            for sequence in range(2):
                rows = table[ids[:, sequence]][:, sample]
                error = np.abs(y.reshape(2, w)[sequence, sample].astype(np.float64) - columns(rows) / divisor)
                assert (error <= bound(dtype, h) * columns(np.abs(rows)) / divisor).all(), (label, data)


def normalised(x: AnyArray, eps: float) -> tuple[AnyArray, AnyArray]:
    """The true LAYER_NORM of a row without scale and bias, and what its errors are in proportion to.

    Rounding the mean is an error of a unit of the mean absolute element, in deviations.
    """
    wide = x.astype(WIDE)
    mean = wide.mean()
    centred = wide - (mean + (wide - mean).mean())
    deviation = np.sqrt((centred * centred).mean() + WIDE(eps))
    return centred / deviation, np.abs(centred / deviation) + np.abs(wide).mean() / deviation


LENGTHS = (1, 2, 7, 100, 1000, 4096, 4097, 50257)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("value", [0.0, 100.1, -1e4 - 0.3, 1e6 + 1 / 3, 3.3e38, -3.3e38, 1e-30])
def test_layer_norm_of_a_constant_row_is_its_bias(value: float, dtype: str) -> None:
    for n in LENGTHS:
        x = np.full((3, n), value, dtype)
        x[1] = -x[1]
        scale, bias = (np.random.default_rng(n).uniform(-2, 2, n).astype(dtype) for _ in range(2))
        for eps in (1e-5, 1e-12):
            for label, layer_norm in each(jk.LayerNormAttr, rows=3, n=n, eps=eps, dtype=dtype):
                y = np.empty_like(x)
                layer_norm(x, scale, bias, y)
                assert (y == bias).all(), label


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("eps", [1e-5, 0.0])
def test_layer_norm_of_rows_of_any_offset_and_size(dtype: str, eps: float) -> None:
    """Squares leave the range of float32 beyond 1e19 and below 1e-23, sums of the largest numbers at once."""
    largest = float(np.finfo(dtype).max)
    huge, small = (1e25, 1e-25) if dtype == "float32" else (1e200, 1e-200)
    for n in LENGTHS[1:]:
        noise = np.random.default_rng(n).standard_normal(n)
        rows = [noise, 100 + noise, 1e4 + noise, 100 + 1e-3 * noise, huge * noise, small * noise, huge * (5 + noise)]
        rows += [np.where(np.arange(n) % 3 == 0, -largest, largest), largest * (np.abs(noise) / np.abs(noise).max())]
        for row in rows:
            x = row.astype(dtype)[None]
            if (x == x[0, 0]).all():
                continue
            true, proportion = normalised(x[0], eps)
            for label, layer_norm in each(jk.LayerNormAttr, rows=1, n=n, eps=eps, affine=False, dtype=dtype):
                y = np.empty_like(x)
                layer_norm(x, y)
                assert (np.abs(y[0] - true) <= bound(dtype, n) * proportion).all(), (label, x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_scale_of_layer_norm_may_be_huge(dtype: str) -> None:
    """The factor of a row times a scale may overflow where their products with a distance do not."""
    n, largest = 70, np.finfo(dtype).max
    x = np.full((1, n), 2.0, dtype)
    x[0, :2] = 1.0, 3.0
    scale, bias = np.full(n, -largest, dtype), np.ones(n, dtype)
    true, _ = normalised(x[0], 1e-5)
    with np.errstate(all="ignore"):
        wanted = (true * scale + bias).astype(dtype)
    for label, layer_norm in each(jk.LayerNormAttr, rows=1, n=n, dtype=dtype):
        y = np.empty_like(x)
        layer_norm(x, scale, bias, y)
        assert np.allclose(y[0], wanted, rtol=1e-5, atol=0, equal_nan=True), label


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 5, 70, 3000])
def test_nan_of_either_sign_anywhere_in_a_row(n: int, dtype: str) -> None:
    """A negative NaN is smaller than all numbers as an integer; a row of nothing else has no maximum."""
    for nan in (np.nan, -np.nan):
        for places in (slice(None), slice(0, 1), slice(n - 1, n), slice(n // 2, n // 2 + 1)):
            x = np.random.default_rng(n).standard_normal((2, n)).astype(dtype)
            x[1, places] = np.copysign(np.array(np.nan, dtype), nan)
            for row in (jk.SoftmaxAttr, jk.LayerNormAttr):
                fields = {"affine": False} if row is jk.LayerNormAttr else {}
                for label, function in each(row, rows=2, n=n, dtype=dtype, **fields):
                    y = np.empty_like(x)
                    function(x, y)
                    assert np.isnan(y[1]).all(), label
                    assert np.isfinite(y[0]).all() or n == 1, label


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", ["relu", "identity", "sigmoid", "tanh"])
def test_activations_propagate_nan(function: str, dtype: str) -> None:
    """Put NaN into each gate alone, so that none can hide behind another; ct does not depend on the output gate."""
    d = 37
    attr: dict[str, Any] = {"d": d, "dtype": dtype} | dict.fromkeys(("act_gate", "act_cand", "act_cell"), function)
    for label, lstm in each(jk.LSTMCtHtAttr, **attr):
        for at in range(0, d, 9):
            for gate in range(4):
                gates, before = np.full(4 * d, 0.5, dtype), np.full(d, 0.5, dtype)
                gates[gate * d + at] = np.copysign(np.array(np.nan, dtype), (-1.0) ** gate)
                ct, ht = np.empty(d, dtype), np.empty(d, dtype)
                lstm(gates, before, ct, ht)
                there = np.arange(d) == at
                assert (np.isnan(ct) == (there & (gate < 3))).all(), (label, at, gate)
                assert (np.isnan(ht) == there).all(), (label, at, gate)
