"""Attention written out in NumPy becomes the kernel ATTENTION where that computes the same, and only there."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk


def softmax(scores: Any) -> Any:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def products(q: Any, k: Any) -> Any:
    return q @ k.swapaxes(-1, -2)


def plain(q: Any, k: Any, v: Any, m: Any) -> Any:
    return softmax(products(q, k)) @ v


def divided(q: Any, k: Any, v: Any, m: Any) -> Any:
    return softmax(products(q, k) / np.float32(3) + m) @ v


def scaled_queries(q: Any, k: Any, v: Any, m: Any) -> Any:
    return softmax(products(q * np.float32(0.5), k) + m) @ v


def scaled_keys(q: Any, k: Any, v: Any, m: Any) -> Any:
    return softmax(m + np.float32(2) * products(q / np.float32(3), k * np.float32(0.7))) @ v


def scaled_by_size(q: Any, k: Any, v: Any, m: Any) -> Any:
    return softmax(products(q, k) * np.float32(q.shape[-1] ** -0.5)) @ v


def chosen(q: Any, k: Any, v: Any, m: Any) -> Any:
    return softmax(np.where(m > 0, products(q, k), np.float32(-3e38))) @ v


def chosen_otherwise(q: Any, k: Any, v: Any, m: Any) -> Any:
    return softmax(np.where(m > 0, np.float32(-np.inf), products(q, k))) @ v


def low_is_a_score(q: Any, k: Any, v: Any, m: Any) -> Any:
    return softmax(np.where(m > 0, products(q, k), np.float32(-0.5))) @ v


def chosen_by_keys_and_twice(q: Any, k: Any, v: Any, m: Any) -> Any:
    """The inner mask is one of keys, the outer one is not, and both fill by numbers of their own."""
    scores = np.where(m[0] > 0, products(q, k), np.float32(-0.25))
    return softmax(np.where(m > 0.5, np.float32(-0.5), scores)) @ v


def chosen_twice_and_by_keys(q: Any, k: Any, v: Any, m: Any) -> Any:
    scores = np.where(m > 0.5, np.float32(-0.5), products(q, k))
    return softmax(np.where(m[0] > 0, scores, np.float32(-0.25))) @ v


CHOSEN = (chosen, chosen_otherwise, low_is_a_score, chosen_by_keys_and_twice, chosen_twice_and_by_keys)
RECOGNIZED = (plain, divided, scaled_queries, scaled_keys, scaled_by_size, *CHOSEN)


def high_is_a_score(q: Any, k: Any, v: Any, m: Any) -> Any:
    return softmax(np.where(m > 0, products(q, k), np.float32(5))) @ v


def chosen_and_added(q: Any, k: Any, v: Any, m: Any) -> Any:
    return softmax(np.where(m > 0, products(q, k), np.float32(-5)) + m) @ v


def masked_then_scaled(q: Any, k: Any, v: Any, m: Any) -> Any:
    return softmax((products(q, k) + m) * np.float32(3)) @ v


def weights_are_a_result(q: Any, k: Any, v: Any, m: Any) -> Any:
    weights = softmax(products(q, k))
    return weights @ v, weights


def along_queries(q: Any, k: Any, v: Any, m: Any) -> Any:
    scores = products(q, k)
    powers = np.exp(scores - scores.max(axis=-2, keepdims=True))
    return powers / powers.sum(axis=-2, keepdims=True) @ v


def scores_are_a_result(q: Any, k: Any, v: Any, m: Any) -> Any:
    scores = products(q, k)
    return softmax(scores) @ v, scores


def factors_of_keys(q: Any, k: Any, v: Any, m: Any) -> Any:
    return softmax(products(q, k) * m) @ v


OTHERS = (
    high_is_a_score, chosen_and_added, masked_then_scaled, weights_are_a_result, along_queries, scores_are_a_result,
    factors_of_keys,
)  # fmt: skip


def arrays(*lead: int, queries: int = 6, keys: int = 11, dtype: str = "float32") -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)

    def array(*shape: int) -> Any:
        return rng.standard_normal((*lead, *shape)).astype(dtype)

    return array(queries, 8), array(keys, 8), array(keys, 4)


def check(function: Callable[..., Any], *inputs: Any) -> str:
    """Compare with NumPy; return what the compiled function is made of."""
    compiled = jk.jit(function, strict=True)
    results, wanted = (one if type(one) is tuple else (one,) for one in (compiled(*inputs), function(*inputs)))
    for result, expected in zip(results, wanted, strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)
    return str(compiled.explain(*inputs))


@pytest.mark.parametrize("function", RECOGNIZED, ids=lambda one: one.__name__)
def test_recognized(function: Callable[..., Any]) -> None:
    mask = np.random.default_rng(1).standard_normal((6, 11)).astype(np.float32)
    mask[:, 0] = -1 if function is chosen_otherwise else 1
    assert "kernel: jk.attention" in check(function, *arrays(2, 3), mask)


@pytest.mark.parametrize("function", [*CHOSEN, divided], ids=lambda one: one.__name__)
@pytest.mark.parametrize("queries", [1, 6, 40])
def test_hidden_keys_may_be_nan(function: Callable[..., Any], queries: int) -> None:
    """A score that np.where leaves out does not count, whatever it is; an added mask hides no NaN."""
    q, k, v = arrays(2, 3, queries=queries)
    mask = np.where(np.arange(11) % 3 == 0, np.float32(-1), np.random.default_rng(1).uniform(0.1, 1, (queries, 11)))
    if function is chosen_otherwise:
        mask = -mask
    k[..., ::3, :] = np.nan
    check(function, q, k, v, mask.astype(np.float32))


@pytest.mark.parametrize("function", OTHERS, ids=lambda one: one.__name__)
def test_not_recognized(function: Callable[..., Any]) -> None:
    mask = np.random.default_rng(1).standard_normal((6, 11)).astype(np.float32)
    assert "jk.attention" not in check(function, *arrays(2, 3), mask)


@pytest.mark.parametrize(
    "shape",
    [
        (11,),
        (1, 11),
        (6, 11),
        (1, 1, 11),
        (3, 1, 11),
        (3, 6, 11),
        (2, 1, 1, 11),
        (1, 3, 6, 11),
        (2, 1, 6, 11),
        (2, 3, 6, 11),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_masks_of_any_shape(shape: tuple[int, ...], dtype: str) -> None:
    mask = np.random.default_rng(1).standard_normal(shape).astype(dtype)

    def masked(q: Any, k: Any, v: Any, m: Any) -> Any:
        return softmax(products(q, k) + m) @ v

    assert "kernel: jk.attention" in check(masked, *arrays(2, 3, dtype=dtype), mask)


@pytest.mark.parametrize("lead", [(), (3,), (2, 3), (2, 2, 3)], ids=str)
def test_dimensions(lead: tuple[int, ...]) -> None:
    assert "kernel: jk.attention" in check(plain, *arrays(*lead), np.float32(0))


def test_scale_of_zero() -> None:
    """It is no factor of the kernel, where 0 stands for another."""

    def scaled(q: Any, k: Any, v: Any, s: Any) -> Any:
        return softmax(products(q, k) * s) @ v

    inputs = arrays(2, 3)
    assert "kernel: jk.attention" in check(scaled, *inputs, np.float32(0.3))
    check(scaled, *inputs, np.float32(0))


def test_grown_sequences_need_no_code() -> None:
    compiled: Any = jk.jit(plain, strict=True)
    for queries, keys in ((5, 9), (2, 17), (33, 70), (7, 300)):
        inputs = arrays(2, 3, queries=queries, keys=keys)
        np.testing.assert_allclose(compiled(*inputs, 0.0), plain(*inputs, 0.0), rtol=1e-5, atol=1e-6)
    assert compiled.stats().compiles == 1
