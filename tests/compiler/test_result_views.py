"""Results that are views of one new array: the same memory, strides and flags as NumPy's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk

PROGRAMS: tuple[Callable[[Any], Any], ...] = (
    lambda y: (y[:2], y[2:]),
    lambda y: (y[1:-1:2], y[::3], y[4:2]),
    lambda y: (y[::-1], y[2]),
    lambda y: (y.reshape(2, -1), y[: len(y) // 2]),
    lambda y: (y.reshape(2, -1)[1], y.reshape(2, -1)[:, 1:], y.reshape(2, -1).T),
    lambda y: (y.reshape(-1, 2)[:, 1], y.reshape(-1, 2)[1:, None, :], y),
    lambda y: (y[None, 1:], np.broadcast_to(y[:3], (2, 3))),
    lambda y: (y[len(y) :], y[: 2 * len(y)], y[1 : len(y) // 3]),
)


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_views(number: int) -> None:
    program = PROGRAMS[number]

    def function(x: Any) -> Any:
        return program(x + 1)

    compiled = jk.jit(function)
    for size in (12, 6, 24, 12):
        results, expected = compiled(np.arange(float(size))), function(np.arange(float(size)))
        for a, b in zip(results, expected, strict=True):
            np.testing.assert_array_equal(a, b)
            assert a.strides == b.strides or a.size < 2
            assert a.flags.writeable == b.flags.writeable
        for i, a in enumerate(results):
            for j, other in enumerate(results):
                assert np.may_share_memory(a, other) == np.may_share_memory(expected[i], expected[j])


@pytest.mark.parametrize(
    "name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fft2", "ifft2", "rfft2", "fftn", "irfftn"]
)
@pytest.mark.parametrize("shape", [(12,), (3, 10), (2, 3, 8)])
def test_transforms_return_arrays_of_their_own(name: str, shape: tuple[int, ...]) -> None:
    """A view of another array takes several times as long to make as the transform of few numbers."""
    transform = getattr(np.fft, name)
    x = np.random.default_rng(1).random(shape)
    if len(shape) < 2 and name.endswith("2"):
        x = np.stack([x, x * 2])
    if name.startswith(("fft", "ifft", "irfft", "hfft")):
        x = x + 1j * x[::-1]
    found = jk.jit(lambda x: transform(x))(x)
    np.testing.assert_allclose(found, transform(x), atol=1e-9)
    assert found.base is None or transform(x).base is not None
