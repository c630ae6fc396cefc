"""Everyday Fourier transforms against NumPy: arguments, results, dtypes and errors."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk

ALONG_ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
ALONG_SEVERAL = ("fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2")
SHAPES = ((8,), (5,), (3, 4, 5), (0, 4), (2, 34, 9))


def array(shape: tuple[int, ...], dtype: str) -> Any:
    generator = np.random.default_rng(len(shape))
    values = 5 * generator.standard_normal(shape)
    return (values + 1j * values[::-1]).astype(dtype) if dtype[0] == "c" else values.astype(dtype)


def outcome(function: Any, arguments: Any, named: Any) -> Any:
    """The result, or the error."""
    try:
        return function(*arguments, **named)
    except Exception as error:  # noqa: BLE001  # whatever NumPy raises
        return error


def assert_alike(name: str, *arguments: Any, **named: Any) -> None:
    """NumPy's result, or its error."""
    expected, got = (outcome(getattr(module, name), arguments, named) for module in (np.fft, jk))
    if isinstance(expected, Exception):
        texts = [str(error).replace('","', '", "') for error in (got, expected)]  # NumPy 2.5 adds the space
        assert (type(got), texts[0]) == (type(expected), texts[1])
        return
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    within = (2e-6 if got.dtype.char in "efF" else 2e-15) * (1 + np.abs(expected).max(initial=0)) * 8
    np.testing.assert_allclose(got, expected, rtol=0, atol=within)


@pytest.mark.parametrize("dtype", ["f4", "c8", "f8", "c16", "i4", "f2", "?", "g", ">f8"])
@pytest.mark.parametrize("name", ALONG_ONE)
def test_along_one_axis(name: str, dtype: str) -> None:
    norms = (None, "ortho", "forward", "backward")
    for shape in SHAPES:
        for number, n in enumerate((None, 1, 7, 16, 0, -1)):
            for axis in (-1, 0, len(shape) // 2, len(shape)) if all(shape) else (-1,):
                assert_alike(name, array(shape, dtype), n, axis, norms[(number + axis) % 4])


@pytest.mark.parametrize("dtype", ["f4", "c8", "f8"])
@pytest.mark.parametrize("name", ALONG_SEVERAL)
def test_along_several_axes(name: str, dtype: str) -> None:
    for shape in SHAPES[1 if name.endswith("n") else 2 :]:
        x = array(shape, dtype)
        assert_alike(name, x)
        assert_alike(name, x, norm="ortho")
        assert_alike(name, x, axes=(-1,))
        assert_alike(name, x, (3,), (-1,))
        assert_alike(name, x, (-1,), (-1,), "forward")
        assert_alike(name, x, (3, 4), (-1,))


def test_other_arguments() -> None:
    x = array((6, 10), "f4")
    assert_alike("fft", x.T)
    assert_alike("rfft", x[::-1, ::2])
    assert_alike("fft", [1, 2, 3])
    assert_alike("fft", np.float64(3))
    assert_alike("fft", x, norm="bad")
    assert_alike("hfft", x, norm="bad")
    assert_alike("fft", x, 2.5)


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_long_ones_are_as_accurate_as_numpy(dtype: str) -> None:
    """Two steps, primes, and what has both; NumPy transforms single precision in double precision."""
    for n in (1 << 17, 44_100 * 2, 10_007, 65_537, 1009 * 64, 17 * 61 * 128, 311 * 512, 3**11):
        x = array((1, n), dtype)
        exact = np.fft.fft(x.astype(np.clongdouble))
        got, peers = (np.linalg.norm(y - exact) / np.linalg.norm(exact) for y in (jk.fft(x), np.fft.fft(x)))
        eps = np.finfo(dtype).eps
        assert got < (3 * eps if dtype == "c8" else 1.2 * peers + eps / 2)


COMPILED: dict[str, Callable[[Any], Any]] = {
    "fft": lambda z: np.fft.fft(z),
    "power": lambda z: np.abs(np.fft.rfft(z.real * np.float32(2))) ** 2,
    "round trip": lambda z: np.fft.irfft(np.fft.rfft(z.imag) * np.float32(0.5)),
    "longer, along the first axis": lambda z: np.fft.ifft(z, n=8, axis=0, norm="ortho"),
    "two axes": lambda z: np.fft.fft2(z),
    "odd": lambda z: np.fft.irfft(z, n=61),
    "everyday": lambda z: jk.fft(z),
}


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_functions_call_kernels(name: str) -> None:
    function, z = COMPILED[name], array((4, 64), "c8")
    compiled, expected = jk.jit(function), function(z)
    got = compiled(z)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    assert "0 calls of NumPy" in str(compiled.explain(z))


@pytest.mark.parametrize(
    "loss",
    [
        lambda x: np.sum(np.abs(np.fft.rfft(x)) ** 2),
        lambda x: np.sum(np.real(np.fft.fft(x)) ** 3),
        lambda x: np.sum(np.fft.irfft(x * (1 + 2j), n=17) ** 3),
        lambda x: np.sum(np.fft.irfft(x * (1 + 2j), n=16) ** 3),
    ],
)
def test_gradients(loss: Any) -> None:
    x, step = array((10,), "f8"), 1e-5
    differences = [(loss(x + step * one) - loss(x - step * one)) / (2 * step) for one in np.eye(10)]
    np.testing.assert_allclose(jk.grad(loss)(x), differences, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("n", [11, 13, 22, 121, 143, 169, 1001, 2197, 17, 34, 251, 997, 1994, 68, 544, 646, 81, 1458])
def test_lengths_of_large_primes(n: int, dtype: str) -> None:
    """Passes of 9, 11, 13 and any radix, wide, narrow and last, and convolutions, of rows and of columns."""
    numbers = array((2, n), dtype.replace("f", "c").replace("8", "16").replace("4", "8"))
    for name in ("fft", "ifft", "rfft", "irfft"):
        values = numbers.real if name == "rfft" else numbers
        assert_alike(name, values)
        assert_alike(name, values.T, axis=0)
