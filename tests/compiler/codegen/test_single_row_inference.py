"""Inference on single rows: epilogues of products, and large matrices read in whole rows."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.schedule import matmul_step


def forward(x: Any, weights: Any, biases: Any) -> Any:
    for i, (w, b) in enumerate(zip(weights, biases, strict=True)):
        x = x @ w + b
        if i < len(weights) - 1:
            x = np.maximum(x, 0)
    return x


def network(width: int, layers: int, rows: int, dtype: str = "float32") -> tuple[Any, Any, Any]:
    random = np.random.default_rng(width)
    weights = [(random.standard_normal((width, width)) / width**0.5).astype(dtype) for _ in range(layers)]
    biases = [random.standard_normal(width).astype(dtype) for _ in range(layers)]
    return random.standard_normal((rows, width)).astype(dtype), weights, biases


@pytest.mark.parametrize("width", [16, 100, 128, 200, 300])
def test_bias_and_activation_fuse_with_their_product(width: int) -> None:
    x, weights, biases = network(width, 3, 1)
    compiled = jk.jit(forward)
    explanation = compiled.explain(x, weights, biases)
    assert explanation.kernels == 3
    assert str(explanation).count("sum over 2, add, maximum;") == 2, str(explanation)
    assert np.allclose(compiled(x, weights, biases), forward(x, weights, biases), rtol=1e-4, atol=1e-5)


def scaled(x: Any) -> Any:
    return x / (x.sum(axis=0) * 0.5 + 1)


def read_twice(x: Any) -> Any:
    total = x.sum(axis=0)
    return x - total * 2, x + total * 2


def given_back(x: Any) -> Any:
    total = x.sum(axis=0)
    return total, x / (total + 1)


def of_two(x: Any) -> Any:
    return x * (x.sum(axis=0) + x.max(axis=0) * 3)


def of_other_rows(x: Any) -> Any:
    return x * (x.sum(axis=0) + x.sum(axis=1)[:, np.newaxis][:1])


def wider(x: Any) -> Any:
    return x * (x.sum(axis=0) * np.arange(x.shape[1], dtype=np.float64))


@pytest.mark.parametrize("function", [scaled, read_twice, given_back, of_two, of_other_rows, wider])
@pytest.mark.parametrize("shape", [(1, 1), (7, 5), (40, 300), (0, 3), (300, 129)])
def test_epilogues_of_row_sums(function: Any, shape: tuple[int, int]) -> None:
    x = np.random.default_rng(1).random(shape).astype(np.float32) + 1
    if 0 in shape and function is of_two:
        function = scaled  # there is no maximum of nothing
    found, expected = jk.jit(function)(x), function(x)
    for one, other in zip(*((y if isinstance(y, tuple) else (y,)) for y in (found, expected)), strict=True):
        assert one.dtype == other.dtype
        assert np.allclose(one, other, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("columns", [1, 5, 255, 700, 1029])
def test_a_row_times_a_large_matrix(
    dtype: str, columns: int, restored_threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matmul_step, "large", lambda: matmul_step.MIN_LARGE)  # whatever caches there are
    random = np.random.default_rng(columns)
    rows = matmul_step.MIN_LARGE // columns // np.dtype(dtype).itemsize
    matrix, bias = (random.standard_normal((rows + 3, columns)).astype(dtype), random.random(columns).astype(dtype))
    x = random.standard_normal((1, rows + 3)).astype(dtype)
    compiled = jk.jit(lambda x, w, b: np.maximum(x @ w + b, 0))
    small = jk.jit(lambda x, w, b: np.maximum(x @ w + b, 0))
    jk.set_num_threads(1)
    found = compiled(x, matrix, bias)
    jk.set_num_threads(2)
    assert np.array_equal(compiled(x, matrix, bias), found)
    # Code of small sizes is not what large ones are computed by, and the other way round.
    assert np.allclose(small(x[:, :9], matrix[:9], bias), np.maximum(x[:, :9] @ matrix[:9] + bias, 0), rtol=1e-4)
    assert np.array_equal(small(x, matrix, bias), found)
    few = compiled(x[:, :9], matrix[:9], bias)
    expected = np.maximum(x.astype(np.float64) @ matrix.astype(np.float64) + bias, 0)
    scale = rows**0.5 * np.finfo(dtype).eps * 30
    assert np.allclose(found, expected, rtol=0, atol=scale)
    assert np.allclose(few, np.maximum(x[:, :9] @ matrix[:9] + bias, 0), rtol=1e-4)
    vector = jk.jit(lambda x, w: x @ w)(x[0], matrix)
    assert vector.shape == (columns,)
    assert np.allclose(vector, (x.astype(np.float64) @ matrix.astype(np.float64))[0], rtol=0, atol=scale)


COLUMNS: dict[str, Any] = {
    "sum": lambda x: x.sum(axis=0),
    "largest": lambda x: x.max(axis=0) - x.min(axis=0),
    "variance": lambda x: ((x - x.mean(axis=0)) ** 2).sum(axis=0),
    "where": lambda x: np.where(x > 0, x, 0).sum(axis=0) * 2 + 1,
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int8"])
def test_runs_of_columns(name: str, dtype: str) -> None:
    random, compiled = np.random.default_rng(3), jk.jit(COLUMNS[name])
    for columns in (575, 300, 256, 129, 128, 127, 40):  # the first ones decide how code is made
        for rows in (600, 3, 1):
            x = random.integers(-9, 9, (rows, columns + 8)).astype(dtype)
            for one in (x[:, 8:].copy(), x[:, 3:-5], x[::-1, 4:-4]):
                found, expected = compiled(one), COLUMNS[name](one)
                assert found.dtype == expected.dtype
                np.testing.assert_allclose(found, expected, rtol=1e-5)
