"""Universal functions of SciPy: compiled where there are operations for them, in loops too, else called.

Without SciPy there is nothing to test.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from differences import along

import jitkernels as jk
from jitkernels.compiler.capture.numpy.scipy_special import COMPOSITIONS

special = pytest.importorskip("scipy.special")
TWO = {"xlogy", "xlog1py", "rel_entr", "kl_div"}
UNITS = 8
LOOSE = {
    # SciPy's own errors: of arguments' squares in tails, near roots, and of numbers that cancel
    "erfc": 400, "ndtr": 400, "log_ndtr": 400,
}  # fmt: skip
BESIDE_ONE = {"gammaln", "psi", "kl_div"}
"""Functions whose errors are small beside 1, or beside the operands, not beside results near their roots."""
NUMBERS = (
    0.0, -0.0, 1.0, -1.0, 0.5, 2.0, np.inf, -np.inf, np.nan, 1e300, 1e-300, -3.0, -2.5, 30.0, -30.0, -40.0, 171.0,
    172.0, 0.3, 0.65, -1.0000001, 0.9999,
)  # fmt: skip


def of_elements(name: str) -> Callable[..., Any]:
    function = getattr(special, name)

    def one(x: Any, y: Any) -> Any:
        out = np.zeros_like(x)
        for i in range(len(x)):
            out[i] = function(x[i])
        return out

    def two(x: Any, y: Any) -> Any:
        out = np.zeros_like(x)
        for i in range(len(x)):
            out[i] = function(x[i], y[i])
        return out

    return two if name in TWO else one


def of_arrays(name: str) -> Callable[..., Any]:
    function = getattr(special, name)
    return (lambda x, y: function(x, y) * 1) if name in TWO else (lambda x, y: function(x) * 1)


def operands(name: str, dtype: str) -> Any:
    random = np.random.default_rng(0)
    every = np.concatenate([NUMBERS, random.normal(0, 5, 60), random.uniform(0, 1, 40)])
    pairs = np.meshgrid(every, every[::2]) if name in TWO else (every, every)
    with np.errstate(all="ignore"):
        return [one.ravel().astype(dtype) for one in pairs]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("make", [of_elements, of_arrays])
@pytest.mark.parametrize("name", COMPOSITIONS)
def test_values_are_scipys(name: str, make: Any, dtype: str) -> None:
    function, (x, y) = make(name), operands(name, dtype)
    compiled = jk.jit(function, strict=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # SciPy warns of nothing
        found, expected = compiled(x, y), function(x, y)
    assert "0 calls of NumPy" in str(compiled.explain(x, y))
    assert (np.isnan(found) == np.isnan(expected)).all(), (x[np.isnan(found)], y[np.isnan(found)])
    wrong = np.isinf(found) != np.isinf(expected)
    assert not wrong.any(), (x[wrong], y[wrong], found[wrong], expected[wrong])
    with np.errstate(all="ignore"):
        size = abs(expected)
        if name in BESIDE_ONE:
            size = np.maximum(np.maximum(size, 1), np.where(np.isfinite(x + y), np.maximum(abs(x), abs(y)), 0))
        far = abs(found - expected) > LOOSE.get(name, UNITS) * np.spacing(size)
    far &= (found != expected) & ~np.isnan(expected)
    assert not far.any(), (x[far], y[far], found[far], expected[far])
    assert (np.signbit(found) == np.signbit(expected))[~np.isnan(expected)].all()


OTHERS: dict[str, Callable[[Any], Any]] = {
    "gammainc": lambda v: special.gammainc(2.0, abs(v)),
    "betaln": lambda v: special.betaln(abs(v), 2.0),
    "j0": lambda v: special.j0(v),
    "ndtri": lambda v: special.ndtri(abs(v) % 1),
    "binom": lambda v: special.binom(7, abs(v)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_others_are_called(name: str) -> None:
    function = OTHERS[name]

    def run(x: Any) -> Any:
        out = np.zeros(len(x))
        for i in range(len(x)):
            out[i] = function(x[i]) + x[i]
        return out

    x = np.random.default_rng(0).normal(size=50)
    compiled = jk.jit(run, strict=True)
    np.testing.assert_array_equal(compiled(x), run(x))
    assert "1 call of NumPy" in str(compiled.explain(x))


@pytest.mark.parametrize("name", COMPOSITIONS)
def test_derivatives(name: str) -> None:
    """Against differences of SciPy's values."""
    x, y = np.array([0.31, 0.47, 0.56, 0.78]), np.array([0.9, 0.35, 0.6, 0.2])
    function = of_arrays(name)
    found = jk.jit(jk.grad(lambda x, y: np.sum(function(x, y))))(x, y)
    np.testing.assert_allclose(found, along(lambda x: function(x, y), [x], [np.ones(4)], 8), rtol=1e-6)
