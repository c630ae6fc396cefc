"""Derivatives: their options, branches, subgradients, calls, and what is refused."""

import math
from typing import Any

import numpy as np
import pytest
from differences import agree, difference

import jitkernels as jk
from jitkernels.benchmarks.entries import training
from jitkernels.compiler.autodiff import elementwise_rules


def normal(*shape: Any) -> Any:
    return np.random.default_rng(sum(shape)).normal(size=shape)


def test_training_steps_match_hand_derived_gradients() -> None:
    """Compile loss, gradients and Adam as one function."""
    layers = (20, 17, 9, 5)
    given, expected = training.state(layers, np.float64), training.state(layers, np.float64)
    x, y = training.batch(8, layers, np.float64)
    compiled = jk.jit(training.step)
    for number in range(1, 6):
        value = compiled(*given, np.float64(number), x, y)
        agree(value, training.by_hand(*expected, np.float64(number), x, y), 1e-12)
    for one, other in zip(given, expected, strict=True):
        for found, right in zip(one, other, strict=True):
            agree(found, right, 1e-9)
    explanation = compiled.explain(*given, np.float64(1), x, y)
    assert "0 calls of NumPy" in str(explanation)
    assert "copy" not in str(explanation)


def test_a_wrong_rule_is_caught(monkeypatch: Any) -> None:
    """Finite differences detect it."""
    monkeypatch.setitem(elementwise_rules.PARTIALS, "tanh", (lambda x, y: 1.0 - y,))
    x = np.array([0.3, -0.7])
    with pytest.raises(AssertionError):
        agree(jk.grad(lambda x: np.sum(np.tanh(x)))(x), difference(lambda x: np.sum(np.tanh(x)), x))


def test_vjp_and_jvp() -> None:
    """`vjp` and `jvp` are transposes of one another, and `has_aux` returns the auxiliary result."""

    def function(x: Any, y: Any) -> Any:
        return np.sin(x) @ y, x * 2

    x, y, u = normal(3, 4), normal(4, 2), normal(3, 2)
    value, pull, aux = jk.vjp(function, x, y, has_aux=True)
    assert np.array_equal(value, np.sin(x) @ y)
    assert np.array_equal(aux, x * 2)
    pushed = jk.jvp(function, (x, y), (np.cos(x), y + 1), has_aux=True)
    assert np.array_equal(pushed[2], x * 2)
    given = pull(u)
    agree(np.sum(pushed[1] * u), np.sum(given[0] * np.cos(x)) + np.sum(given[1] * (y + 1)), 1e-12)


def test_trees_and_aux() -> None:
    """Gradients have the structure of the arguments."""

    def loss(parameters: Any, x: Any) -> Any:
        found = x @ parameters["w"] + parameters["b"][0]
        return np.sum(found**2), found

    x = normal(4, 3)
    parameters = {"w": normal(3, 2), "b": [normal(2), 1.5]}
    (value, aux), found = jk.value_and_grad(lambda p, x: loss(p, x), has_aux=True)(parameters, x)
    agree(value, np.sum(aux**2), 1e-12)
    agree(found["w"], 2 * x.T @ aux, 1e-12)
    agree(found["b"][0], 2 * aux.sum(axis=0), 1e-12)
    assert found["b"][1] == 0


def test_gradients_of_loops() -> None:
    """Loops of known trip counts have derivatives, and branches that the trace decides."""

    def heated(u: Any, k: Any) -> Any:
        for i in range(20):
            new = u.copy()
            new[1:-1] += k * (u[2:] - 2 * u[1:-1] + u[:-2])
            if i % 2:
                new *= 0.9
            u = new
        return np.sum(u**2)

    u = normal(7)
    found = jk.grad(heated, argnums=(0, 1))(u, 0.1)
    agree(found[0], difference(lambda x: heated(x, 0.1), u))
    agree(found[1], difference(lambda k: heated(u, k[0]), np.array([0.1]))[0])


def test_gradients_of_branches() -> None:
    """Branches on values, which change numbers and arrays on either side."""

    def bent(x: Any, y: Any) -> Any:
        total = x[1] * y[0]
        if x[0] > 0:
            total = total * x[2] ** 2
        else:
            y[1:] = x[0] * np.sin(y[1:])
        return total * 3.0 + np.sum(y**2)

    for first in (0.5, -0.5):
        x, y = np.array([first, 1.3, 0.7]), normal(4)
        found = jk.grad(bent, argnums=(0, 1))(x, y)
        agree(found[0], difference(lambda one, y=y: bent(one, y.copy()), x))
        agree(found[1], difference(lambda one, x=x: bent(x, one.copy()), y))

        def first_of(x: Any, y: Any = y) -> Any:
            return np.sum(jk.grad(bent)(x, y.copy()) ** 2)

        agree(jk.grad(first_of)(x), difference(first_of, x))


def test_subgradients() -> None:
    """Ties share the gradient, as in JAX; elements that are not selected get none."""
    assert jk.grad(lambda x: np.maximum(x, 1.0))(1.0) == 0.5
    assert jk.grad(lambda x: np.abs(x))(0.0) == 0.0
    assert jk.grad(lambda x: np.max(x))(np.array([3.0, 1.0, 3.0])).tolist() == [0.5, 0.0, 0.5]

    def rooted(x: Any) -> Any:
        return np.sum(np.where(x > 0, np.sqrt(np.where(x > 0, x, 1.0)), 0.0))

    assert jk.grad(rooted)(np.array([0.0, 4.0])).tolist() == [0.0, 0.25]
    assert jk.grad(lambda x: np.prod(x))(np.array([0.0, 2.0, 3.0])).tolist() == [6.0, 0.0, 0.0]
    assert jk.grad(np.linalg.norm)(np.zeros(3)).tolist() == [0.0, 0.0, 0.0]
    assert jk.grad(np.hypot, argnums=(0, 1))(0.0, 0.0) == (0.0, 0.0)
    assert jk.grad(lambda x: np.maximum.accumulate(x)[-1])(np.array([3.0, 1.0, 3.0])).tolist() == [0.0, 0.0, 1.0]


def test_elements_written_twice() -> None:
    """Only the last value that one assignment writes to an element gets a gradient."""

    def written(x: Any, i: Any) -> Any:
        z = np.zeros((3, 2))
        z[i] = x[:, None]
        return np.sum(z * np.arange(6.0).reshape(3, 2))

    assert jk.grad(written)(np.ones(4), np.array([0, 2, 0, -1])).tolist() == [0.0, 0.0, 1.0, 9.0]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_elements_gathered_twice(dtype: Any) -> None:
    """Gathered elements get the sum of their gradients: rows, indices of several dimensions, remainders."""
    random = np.random.default_rng(0)
    most = {np.float64: 1e-14, np.float32: 1e-6, np.float16: 2e-2}[dtype]

    def picked(x: Any, i: Any, j: Any, u: Any, v: Any) -> Any:
        return np.sum(x[i] * u) + np.sum(x[i[:, None], j] * v)

    gradient = jk.grad(picked)
    for count in (1, 7, 40, 97):
        i, j = random.integers(-30, 30, count), random.integers(-5, 5, (count, 3))
        x, u, v = (random.normal(size=shape).astype(dtype) for shape in ((30, 5), (count, 5), (count, 3)))
        expected = np.zeros(x.shape)
        np.add.at(expected, i, u)
        np.add.at(expected, (i[:, None], j), v)
        found = gradient(x, i, j, u, v)
        assert found.dtype == dtype
        agree(found, expected, most)
    for wrong in (30, -31):
        with pytest.raises(IndexError, match=f"index {wrong} is out of bounds for axis 0 with size 30"):
            gradient(x, np.where(np.arange(97) == 50, wrong, i), j, u, v)
    assert "0 calls of NumPy" in str(gradient.explain(x, i, j, u, v))


def test_calls_without_python(monkeypatch: Any) -> None:
    """Derivatives are called without Python, and see changes of their globals."""
    factor = np.ones(3)
    given: dict[str, Any] = {"exponent": 2.0}

    def loss(x: Any, power: Any = 2.0, *, scale: Any = 1.0) -> Any:
        return np.sum(factor * x**power) * scale + given["exponent"] * x[0]

    def cube(x: Any) -> Any:
        return x**3

    gradient, both, x = jk.grad(loss), jk.value_and_grad(loss), np.array([1.0, 2.0, 3.0])
    assert jk.grad(loss) is gradient
    ways: dict[str, Any] = {
        "position": lambda: gradient(x, 2.0), "name": lambda: gradient(x, scale=1.0), "alone": lambda: gradient(x),
        "out": lambda: gradient(x, 2.0, out=np.empty(3)), "nested": lambda: jk.grad(jk.grad(cube))(x[0]) / 1.5,
        "pushed": lambda: jk.jvp(loss, (x,), (np.ones(3),))[1] + np.zeros(1), "value": lambda: both(x, 2.0)[1],
    }  # fmt: skip
    before = {name: (way(), way())[1] for name, way in ways.items()}
    assert before["alone"].tolist() == [4.0, 4.0, 6.0]
    assert before["nested"] == 4.0
    with monkeypatch.context() as patch:
        patch.setattr(type(gradient), "look_up", None)
        for name, way in ways.items():
            if name not in ("alone", "name", "pushed"):  # which have defaults of a function that another calls
                agree(way(), before[name], 1e-15, name)
    factor[:] = 3.0
    assert gradient(x, 2.0).tolist() == [8.0, 12.0, 18.0]
    given["exponent"] = 5.0
    assert gradient(x, 2.0).tolist() == [11.0, 12.0, 18.0]
    loss.__defaults__ = (1.0,)
    assert gradient(x).tolist() == [8.0, 3.0, 3.0]
    factor = np.zeros(3)
    assert gradient(x, 2.0).tolist() == [5.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("function", "given", "words"),
    [
        (lambda x: x * 2, np.ones(3), "expected a float as the result, got float64 of shape (3,)"),
        (lambda x: np.sum(x > 0), np.ones(3), "expected a float as the result, got int64"),
        (lambda x: (np.sum(x), x), np.ones(3), "expected a float as the result, got an object of type tuple"),
        (lambda x: [np.sum(x)], np.ones(3), "expected a float as the result, got an object of type list"),
        (lambda x: {"loss": np.sum(x)}, np.ones(3), "expected a float as the result, got an object of type dict"),
        (lambda x: None, np.ones(3), "expected a float as the result, got None"),
        (lambda x: x * 1.0, 3, "argument 0: expected floats, in arrays or numbers, got the int 3"),
        (lambda x: np.sum(x * 1.0), np.arange(3), "argument 0: expected floats, in arrays or numbers, got int64"),
        (lambda x: np.sum(np.i0(x)), np.ones(3), "there is none of numpy.i0, " + __file__),
        (lambda x: np.sum(np.union1d(x, x)), np.ones(3), "numpy.union1d"),
    ],
)  # fmt: skip
def test_invalid_uses_are_rejected(function: Any, given: Any, words: Any) -> None:
    """Errors of this package name what was expected and what was passed."""
    with pytest.raises(jk.DerivativeError) as caught:
        jk.grad(function)(given)
    assert words in str(caught.value)
    assert __file__ in str(caught.value)


def test_wrong_options() -> None:
    """Options are checked when the derivative is requested."""
    with pytest.raises(jk.ArgumentTypeError, match="argnums"):
        jk.grad(np.sum, argnums="x")  # type: ignore[arg-type]
    with pytest.raises(jk.ArgumentTypeError, match="function"):
        jk.grad(3)  # type: ignore[arg-type]
    with pytest.raises(jk.DerivativeError, match="expected numbers of 1 positional arguments, got 2"):
        jk.grad(lambda x: x, argnums=2)(1.0)


def test_derivatives_at_nan() -> None:
    """Python's operators and functions take NaN like any number; their errors are raised."""
    for function in (lambda x: x**2, lambda x: x**0.5, lambda x: 2.0**x, lambda x: math.sin(x) * x):
        derivative = jk.grad(function)
        assert np.isnan(derivative(np.nan))
        assert np.isfinite(derivative(1.5))
    with pytest.raises(OverflowError):
        jk.grad(lambda x: x**3)(1e200)


def test_repeated_argnums() -> None:
    x = np.array([1.0, 2.0])
    found = jk.grad(lambda x, y: np.sum(x * y), argnums=(0, 1, 0, -2))(x, x + 1)
    assert [one.tolist() for one in found] == [[2, 3], [1, 2], [2, 3], [2, 3]]
