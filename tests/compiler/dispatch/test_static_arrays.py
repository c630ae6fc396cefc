"""Static arrays: constant folding at compile time, and branches on their values."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jitted import reasons

import jitkernels as jk
from jitkernels.compiler.dispatch import specialization
from jitkernels.compiler.export.run_bundle import Bundle

random = np.random.default_rng(0)
WEIGHTS = random.random((40, 30)).astype(np.float32)
BIAS = random.random(30).astype(np.float32)
PARTS = [WEIGHTS[:, :10].copy(), WEIGHTS[:, 10:].copy()]
X = random.random((20, 40)).astype(np.float32)


def transposed(x: Any, w: Any) -> Any:
    return x @ np.ascontiguousarray(w.T).T + w.sum(axis=0)


def scaled(x: Any, w: Any) -> Any:
    return np.tanh(x @ (w * 2 - 1))


def joined(x: Any, w: Any) -> Any:
    return x @ np.concatenate([w, w[:, ::-1]], axis=1) + np.maximum(w, 0.5).mean()


def chosen(x: Any, w: Any) -> Any:
    total = x * 0.5
    for row in w[:3]:
        if row[0] > 0.5:
            total = total + row.max()
    return total[:, : int(w.size > 3) + 1]


def changed_on_the_way(x: Any, w: Any) -> Any:
    own = w[0, :20] * 2
    first = x[:, :20] + own
    own += 1
    part = own[3:]
    second = x[:, :17] * part
    own[5] = 7
    return first, second, x[:, :17] * part, x[:, :20] - own


def over_time(x: Any, w: Any) -> Any:
    state = np.zeros(30, np.float32)
    for t in range(x.shape[0]):
        state = np.tanh(x[t] @ w + state * 0.5)
    return state


def picked(x: Any, w: Any) -> Any:
    return x[:, np.argsort(w[:, 0])] + w[:, 1]


FUNCTIONS = (transposed, scaled, joined, chosen, changed_on_the_way, over_time, picked)


def same(found: Any, expected: Any) -> None:
    for one, other in zip(*(y if isinstance(y, tuple) else (y,) for y in (found, expected)), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("level", [0, 3])
def test_results_match_numpy(function: Any, level: int) -> None:
    compiled = jk.jit(function, static_argnames="w", opt_level=level)
    for weights in (WEIGHTS, np.asfortranarray(WEIGHTS + 1), WEIGHTS[::-1], WEIGHTS):
        for x in (X, X[:7], X[:1], X):
            same(compiled(x, weights), function(x, weights))
    assert not reasons(compiled)


def test_expressions_of_static_arrays_are_folded() -> None:
    explanation = jk.jit(scaled, static_argnames="w").explain(X, WEIGHTS)
    assert "constant 0" in str(explanation)
    assert "subtract" not in str(explanation)
    assert "subtract" in str(jk.jit(scaled).explain(X, WEIGHTS))


def test_each_static_array_has_a_specialization() -> None:
    compiled = jk.jit(lambda x, w: x @ w, static_argnames="w")
    one, other = WEIGHTS.copy(), WEIGHTS + 1
    for _ in range(3):
        same(compiled(X, one), X @ one)
        same(compiled(X, w=other), X @ other)
    assert compiled.stats().compiles == 2


def test_specializations_share_a_copy_of_the_static_array() -> None:
    compiled = jk.jit(lambda x, w: x @ w, static_argnames="w")
    own = WEIGHTS.copy()
    for x in (X, X[:1], X.astype(np.float64)):
        same(compiled(x, own), x @ own)
    copies = [one.constants for kept in compiled._specializations.values() for one in kept]
    assert len(copies) == 3
    assert len({id(copy) for (copy,) in copies}) == 1
    assert copies[0][0].ctypes.data % 64 == 0
    own += 1
    compiled.release()
    same(compiled(X, own), X @ own)


def around(x: Any) -> Any:
    return x @ WEIGHTS + BIAS


def of_parts(x: Any) -> Any:
    return np.concatenate([x @ part for part in PARTS], axis=1)


def test_captured_static_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = BIAS * 2
    closed = jk.jit(lambda x: around(x) + inner, static_argnames="inner")
    compiled = jk.jit(around, static_argnames=("WEIGHTS", "BIAS"))
    parts = jk.jit(of_parts, static_argnames="PARTS")
    for _ in range(3):
        same(compiled(X), around(X))
        same(closed(X), around(X) + inner)
        same(parts(X), of_parts(X))
    assert "constant 1" in str(compiled.explain(X))
    assert "WEIGHTS" not in str(compiled.explain(X))
    monkeypatch.setitem(around.__globals__, "WEIGHTS", WEIGHTS * 3)
    inner = BIAS * 5
    for _ in range(3):
        same(compiled(X), around(X))
        same(closed(X), around(X) + inner)
    PARTS[0] = PARTS[0] * 2
    same(parts(X), of_parts(X))
    assert not reasons(compiled) + reasons(parts)


def test_written_static_arrays_fall_back() -> None:
    def written(x: Any, w: Any) -> Any:
        w += 1
        return x @ w

    compiled = jk.jit(written, static_argnames="w")
    one, other = WEIGHTS.copy(), WEIGHTS.copy()
    for _ in range(2):
        same(compiled(X, one), written(X, other))
        assert np.array_equal(one, other)


def test_neighbours() -> None:
    @jk.jit(static_argnames="table")
    def found(x: Any, table: Any) -> Any:
        return x + table["a"].sum() + table["b"][0][:0].sum() + table["b"][1]

    for dtype in ("float64", "int8", "bool", "complex64", "U3"):
        table = {"a": np.ones(3, dtype), "b": (np.ones((2, 0)), np.float32(3))}
        if dtype == "U3":
            with pytest.raises(TypeError):
                found(X, table)
            continue
        assert found(X, table).dtype == found.__wrapped__(X, table).dtype
        assert np.allclose(found(X, table), found.__wrapped__(X, table))


def test_derivatives_and_bundles(tmp_path: Path) -> None:
    def loss(x: Any) -> Any:
        return ((x @ WEIGHTS - BIAS) ** 2).sum()

    slope = jk.jit(jk.grad(loss), static_argnames=())(X)
    assert np.allclose(slope, 2 * (X @ WEIGHTS - BIAS) @ WEIGHTS.T, rtol=1e-3)
    compiled = jk.jit(around, static_argnames=("WEIGHTS", "BIAS"))
    about = compiled.export(tmp_path / "b", X)
    assert len(about.weights) == 2
    assert len(about.inputs) == 1
    (y,) = Bundle(tmp_path / "b")(X)
    same(y, around(X))


@pytest.mark.parametrize("function", [scaled, joined, changed_on_the_way, over_time])
def test_constants_have_fixed_addresses(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No other code reaches them: calls neither check them nor need their objects."""
    for name in ("SECONDS_OF_PYTHON", "SECONDS_OF_RESULT"):
        monkeypatch.setattr(specialization, name, 0.0)
    compiled: Any = jk.jit(function, static_argnames="w")
    for _ in range(3):
        same(compiled(X, WEIGHTS), function(X, WEIGHTS))
    (found,) = (one for kept in compiled._specializations.values() for one in kept)
    (linked,) = found.links.values()
    words = {int(one) for one in linked.context}
    assert found.constants
    for one in found.constants:
        assert one.ctypes.data in words
        assert id(one) not in words
        assert not (one.ctypes.data % 64)
