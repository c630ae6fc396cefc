"""Operations between layers that treat rows of the batch together, or that only look as if they did not."""

from typing import Any

import numpy as np
import pytest
from test_tile_batch_dimension import DENSE, ONE, SCALE, SECOND, conv, features, numbers, small_caches  # noqa: F401  # a fixture

import jitkernels as jk
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.regions import parameter
from jitkernels.compiler.schedule import tile_batch_dimension
from jitkernels.compiler.schedule.batch_independence import row_operands

HEIGHT = 19
"""The height of images: of as many images, dimension 0 of a sum over the batch has the batch's extent."""


def layers(x: Any) -> Any:
    """Two layers, which may be tiled as well."""
    return conv(conv(x, SECOND), ONE)


def scanned(x: Any) -> Any:
    return layers(np.cumsum(features(x), axis=0))


def scanned_inside(x: Any) -> Any:
    return layers(np.cumsum(features(x), axis=1))


def rotated(x: Any) -> Any:
    y = features(x)
    return layers(np.concatenate([y[1:], y[:1]], axis=0))


def summed(x: Any) -> Any:
    """Of 19 images: a batch of 19 rows, none of which is an image."""
    return layers(features(x).sum(axis=0)[:, np.newaxis])


def summed_inside(x: Any) -> Any:
    return layers(features(x).sum(axis=1)[:, np.newaxis])


def diagonal(x: Any) -> Any:
    """Row i of image i."""
    rows = np.diagonal(features(x), axis1=0, axis2=1)
    return layers(np.transpose(rows, (2, 0, 1))[:, np.newaxis])


def swapped(x: Any) -> Any:
    return layers(np.transpose(features(x), (1, 0, 2, 3)))


def shifted_rows(x: Any) -> Any:
    y = features(x)
    moved = y.copy()
    moved[1:] = y[:-1]
    return layers(moved)


def updated_rows(x: Any) -> Any:
    """Each image gets a part of itself, the same numbers, and one number."""
    y = features(x)
    changed = y.copy()
    changed[:, 2:5] = y[:, :3] * 2
    changed[:, 0] = SCALE
    changed[..., 1] = 3.0
    return layers(changed)


def products(x: Any) -> Any:
    """Products of matrices, one for each image."""
    pixels = features(x).reshape(len(x), -1, 16)
    return layers((pixels @ (pixels.transpose(0, 2, 1) @ pixels) * 1e-3)[:, np.newaxis])


def dense(x: Any) -> Any:
    """Of 16 images, the matrix has as many rows as the batch."""
    return features(x).mean(axis=(1, 2)) @ DENSE


def softmax(x: Any) -> Any:
    y = features(x)
    powers = np.exp(y - y.max(axis=0))
    return layers(powers / powers.sum(axis=0))


def attended(x: Any) -> Any:
    y = features(x).mean(axis=(1, 2))
    return y @ y.T, jk.conv2d(features(x), ONE)


def square(x: Any) -> Any:
    """Sums over the first dimension of a matrix with as many columns as images."""
    y = features(x)
    means = y.mean(axis=(1, 2))
    sums = np.tanh((means @ means.T).sum(axis=0))
    return layers(y * sums[:, np.newaxis, np.newaxis, np.newaxis])


def gathered(x: Any) -> Any:
    return layers(features(x)[np.arange(len(x))[::-1]])


FUNCTIONS = (
    scanned, scanned_inside, rotated, summed, summed_inside, diagonal, swapped, shifted_rows, updated_rows, products,
    dense, softmax, attended, square, gathered,
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


@pytest.mark.parametrize(("operation", "along"), [("reduce", "axes"), ("scan", "axis")])
def test_what_is_combined_along_the_batch_needs_all_rows(operation: str, along: str) -> None:
    """Also where a result has the batch's extent, as the columns of a square matrix have."""
    square = parameter("float32", (5, 5), 0)
    shape = (5,) if operation == "reduce" else (5, 5)
    for axis, expected in ((0, None), (1, (0,))):
        options = {"kind": "sum", along: (axis,) if operation == "reduce" else axis}
        assert row_operands(Node(operation, (square,), "float32", shape, options), 5) == expected
