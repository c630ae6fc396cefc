"""Operations between layers that treat rows of the batch together, or that only look as if they did not."""

from typing import Any

import numpy as np
import pytest
from test_tile_batch_dimension import DENSE, ONE, SCALE, conv, features, numbers, small_caches  # noqa: F401  # a fixture

import jitkernels as jk
from jitkernels.compiler.schedule import tile_batch_dimension

HEIGHT = 19
"""The height of images: of as many images, dimension 0 of a sum over the batch has the batch's extent."""


def scanned(x: Any) -> Any:
    return conv(np.cumsum(features(x), axis=0), ONE)


def scanned_inside(x: Any) -> Any:
    return conv(np.cumsum(features(x), axis=1), ONE)


def rotated(x: Any) -> Any:
    y = features(x)
    return conv(np.concatenate([y[1:], y[:1]], axis=0), ONE)


def summed(x: Any) -> Any:
    """Of 19 images: a batch of 19 rows, none of which is an image."""
    return conv(features(x).sum(axis=0)[:, np.newaxis], ONE)


def summed_inside(x: Any) -> Any:
    return conv(features(x).sum(axis=1)[:, np.newaxis], ONE)


def diagonal(x: Any) -> Any:
    """Row i of image i."""
    rows = np.diagonal(features(x), axis1=0, axis2=1)
    return conv(np.transpose(rows, (2, 0, 1))[:, np.newaxis], ONE)


def swapped(x: Any) -> Any:
    return conv(np.transpose(features(x), (1, 0, 2, 3)), ONE)


def shifted_rows(x: Any) -> Any:
    y = features(x)
    moved = y.copy()
    moved[1:] = y[:-1]
    return conv(moved, ONE)


def updated_rows(x: Any) -> Any:
    """Each image gets a part of itself, the same numbers, and one number."""
    y = features(x)
    changed = y.copy()
    changed[:, 2:5] = y[:, :3] * 2
    changed[:, 0] = SCALE
    changed[..., 1] = 3.0
    return conv(changed, ONE)


def products(x: Any) -> Any:
    """Products of matrices, one for each image."""
    pixels = features(x).reshape(len(x), -1, 16)
    return conv((pixels @ (pixels.transpose(0, 2, 1) @ pixels) * 1e-3)[:, np.newaxis], ONE)


def dense(x: Any) -> Any:
    """Of 16 images, the matrix has as many rows as the batch."""
    return features(x).mean(axis=(1, 2)) @ DENSE


def softmax(x: Any) -> Any:
    y = features(x)
    powers = np.exp(y - y.max(axis=0))
    return conv(powers / powers.sum(axis=0), ONE)


def attended(x: Any) -> Any:
    y = features(x).mean(axis=(1, 2))
    return y @ y.T, jk.conv2d(features(x), ONE)


def gathered(x: Any) -> Any:
    return conv(features(x)[np.arange(len(x))[::-1]], ONE)


FUNCTIONS = (
    scanned, scanned_inside, rotated, summed, summed_inside, diagonal, swapped, shifted_rows, updated_rows, products,
    dense, softmax, attended, gathered,
)  # fmt: skip


@pytest.mark.parametrize("batch", [2, 5, 16, HEIGHT])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_operations_between_layers(function: Any, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Layers in front are tiled; values and memory orders are those without loops."""
    loops: list[Any] = []
    tiled = tile_batch_dimension._tiled

    def counted(*arguments: Any) -> Any:
        loops.append(arguments)
        return tiled(*arguments)

    monkeypatch.setattr(tile_batch_dimension, "_tiled", counted)
    x = numbers(batch, HEIGHT, 18, 8)
    got = jk.jit(function, strict=True)(x)
    assert loops
    expected = function(x)
    pairs = zip(got, expected, strict=True) if isinstance(expected, tuple) else [(got, expected)]
    for value, wanted in pairs:
        assert value.strides == wanted.strides
        np.testing.assert_allclose(value, wanted, rtol=1e-3, atol=1e-3 * np.abs(wanted).max())
