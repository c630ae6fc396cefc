"""Winograd convolution in each of its loops, its errors against convolutions in float64, and who calls it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import oracles
import processor_skips
import pytest

import jitkernels as jk
from jitkernels.attrs.convolution import Conv2DAttr
from jitkernels.attrs.schema import error_bounds
from jitkernels.attrs.schema.registry import implementation
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.attrs.winograd import Conv2DWinogradAttr
from jitkernels.core import cpu_target
from jitkernels.dispatch.kernel import Kernel
from jitkernels.tools import testing

LAYERS: dict[str, dict[str, Any]] = {
    "blocks of tiles": {"height": 40, "width": 46, "channels": 37, "filters": 70, "padding": 1},
    "blocks of streamed filters": {"height": 34, "width": 30, "channels": 260, "filters": 230, "padding": 1},
    "whole vectors": {"height": 12, "width": 20, "channels": 64, "filters": 64, "padding": 1},
    "tails of vectors": {"height": 9, "width": 11, "channels": 19, "filters": 41},
    "one column of tiles": {"height": 30, "width": 4, "channels": 16, "filters": 32, "padding": (0, 1)},
    "padding beyond the image": {"height": 1, "width": 2, "channels": 3, "filters": 5, "padding": ((9, 4), (7, 12))},
    "padding on one side": {"height": 8, "width": 8, "channels": 16, "filters": 16, "padding": ((0, 2), (2, 0))},
}
BORDER = (1, 1), (1, 1)
DATA: dict[str, Callable[[Any, tuple[int, ...]], AnyArray]] = {
    "normal": lambda random, shape: random.standard_normal(shape),
    "positive": lambda random, shape: random.uniform(0, 1, shape),
    "far from zero": lambda random, shape: random.standard_normal(shape) + 100,
}


@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize("layer", LAYERS)
def test_layers(layer: str, tile: int) -> None:
    """Values, and that nothing outside of the arrays is touched; those of one thread and of several."""
    found = implementation(Conv2DWinogradAttr, "gen")
    ways = ("relu", True, True), ("identity", False, True), ("tanh", True, False)
    activation, has_residual, biased = ways[([*LAYERS].index(layer) + tile // 2) % len(ways)]
    fields = {"activation": activation, "has_residual": has_residual, "biased": biased, **LAYERS[layer]}
    attr = Conv2DWinogradAttr(batch=2, tile=tile, **fields)
    for variant in found.variants(attr):
        kernel = Kernel(attr, found, variant)
        testing.check_values(attr, kernel.callable, oracles.expected, label=f"{layer}: {kernel!r}")


def test_layers_exceed_the_cache() -> None:
    """Of the sizes above: filters are streamed, and tiles are more than one block, on this processor."""
    l2 = cpu_target.l2_cache_bytes()
    if l2 > 1 << 21:
        processor_skips.skip("its cache is larger")
    for tile in (2, 4):
        attr = Conv2DWinogradAttr(batch=2, tile=tile, **LAYERS["blocks of streamed filters"])
        tiles = attr.batch * attr.tile_rows * attr.tile_columns
        assert tile == 2 or 4 * attr.positions * attr.channels * attr.filters > l2
        assert tiles > 100


@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("channels", [1, 3, 40, 300])
def test_errors_of_the_convolution(channels: int, kind: str, tile: int) -> None:
    """Against the convolution in float64: the bound of the schema, and that of filters that are rounded once."""
    random = np.random.default_rng(channels)
    x = DATA[kind](random, (1, 13, 10, channels)).astype(np.float32)
    filters = random.standard_normal((3, 3, channels, 35)).astype(np.float32)
    attr = Conv2DWinogradAttr(
        batch=1, height=13, width=10, channels=channels, filters=35, tile=tile, padding=BORDER, biased=False
    )
    plain = Conv2DAttr(
        batch=1, height=13, width=10, channels=channels, kernel_height=3, kernel_width=3, filters=35, padding=BORDER,
        biased=False,
    )  # fmt: skip
    true = plain.convolved(x.astype(np.float64), filters.astype(np.float64))
    w, y = attr.pack(filters), np.empty_like(true, np.float32)
    Kernel(attr, implementation(Conv2DWinogradAttr, "gen"), {}).callable(x, w, y)
    (bound,) = error_bounds.allowed(attr, [x, w, y], [true])
    (terms,) = error_bounds.terms(attr, [x, w, y])
    assert (np.abs(y - true) <= bound + np.finfo(np.float32).eps / 2 * terms).all()
    magnitude = plain.convolved(np.abs(x).astype(np.float64), np.abs(filters).astype(np.float64))
    assert np.abs(y - true).max() <= 1e-6 * magnitude.max()
    if channels >= 40:  # what docs/onnx.md says
        assert root_mean_square(y - true) <= {2: 2.1e-8, 4: 6.6e-8}[tile] * root_mean_square(magnitude)


def root_mean_square(x: AnyArray) -> float:
    return float(np.sqrt(np.mean(np.square(x))))


def layer_of(weights: AnyArray) -> Any:
    def layer(x: Any, residual: Any) -> Any:
        return jk.conv2d(x, weights, None, residual, padding=1, activation="relu") * 2

    return layer


def test_compiled_functions_call_it_where_they_may() -> None:
    """For images of any sizes; with other options, and without the setting, as ever."""
    weights = np.random.default_rng(0).standard_normal((3, 3, 20, 50)).astype(np.float32)
    layer = layer_of(weights)
    fast, usual = (jk.jit(layer, static_argnames=("weights",), winograd=way) for way in (True, False))
    for shape in ((1, 15, 17, 20), (3, 28, 9, 20), (1, 40, 12, 20), (2, 16, 16, 20)):
        x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
        residual = np.random.default_rng(2).standard_normal((*shape[:-1], 50)).astype(np.float32)
        expected = layer(x, residual)
        np.testing.assert_allclose(fast(x, residual), expected, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(usual(x, residual), expected, rtol=1e-5, atol=1e-5)
    texts = [str(function.explain(x, residual)) for function in (fast, usual)]
    assert ["jk.conv2d_winograd" in text for text in texts] == [True, False]
    assert ["jk.conv2d_packed" in text for text in texts] == [False, True]


def test_other_convolutions_are_computed_as_ever() -> None:
    random = np.random.default_rng(0)
    small, square = (random.standard_normal((n, n, 20, 50)).astype(np.float32) for n in (2, 3))
    grouped = random.standard_normal((3, 3, 10, 50)).astype(np.float32)
    wide = random.standard_normal((3, 3, 20, 50))

    def layers(x: Any) -> Any:
        return (
            jk.conv2d(x, small),
            jk.conv2d(x, square, stride=2),
            jk.conv2d(x, square, dilation=2),
            jk.conv2d(x, grouped, groups=2),
            jk.conv2d(x.astype(np.float64), wide),
            jk.conv2d(x[:, :3, :3], square),
        )

    x = random.standard_normal((1, 20, 20, 20)).astype(np.float32)
    names = ("small", "square", "grouped", "wide")
    fast, usual = (jk.jit(layers, static_argnames=names, winograd=way) for way in (True, False))
    for one, other in zip(fast(x), usual(x), strict=True):
        assert np.array_equal(one, other)
    assert "winograd" not in str(fast.explain(x))


def test_derivatives_are_those_of_the_convolution() -> None:
    weights = np.random.default_rng(0).standard_normal((3, 3, 20, 50)).astype(np.float32)

    def loss(x: Any) -> Any:
        return np.sum(jk.conv2d(x, weights, padding=1) ** 2)

    x = np.random.default_rng(1).standard_normal((1, 16, 16, 20)).astype(np.float32)
    fast, usual = (jk.jit(jk.grad(loss), static_argnames=("weights",), winograd=way)(x) for way in (True, False))
    assert np.array_equal(fast, usual)


@pytest.mark.parametrize(("sizes", "tile"), [
    ((1, 224, 224, 3, 64), 0), ((1, 224, 224, 64, 64), 4), ((1, 28, 28, 512, 512), 4), ((1, 14, 14, 512, 512), 2),
    ((8, 14, 14, 512, 512), 4), ((1, 7, 7, 512, 512), 0), ((1, 56, 56, 1, 64), 0), ((1, 28, 28, 96, 128), 4),
])  # fmt: skip
def test_the_fastest_tile_of_layers(sizes: tuple[int, ...], tile: int) -> None:
    """As measured, see `winograd_tile`."""
    batch, height, width, channels, filters = sizes
    attr = Conv2DAttr(
        batch=batch, height=height, width=width, channels=channels, kernel_height=3, kernel_width=3, filters=filters,
        padding=BORDER,
    )  # fmt: skip
    assert attr.winograd_tile() == tile
