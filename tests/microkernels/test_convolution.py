"""Convolution and pooling in each of their loops: tiles of two rows, chunks of filters, bands of rows."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import oracles
import processor_skips
import pytest

import jitkernels as jk
from jitkernels.attrs.convolution import Conv2DAttr, Conv2DPackedAttr
from jitkernels.attrs.convolution_gradient import Conv2DBackwardWeightsAttr
from jitkernels.attrs.convolution_transpose import Conv2DTransposeAttr, Conv2DTransposePackedAttr
from jitkernels.attrs.resize import COORDINATES, MODES, Resize2DAttr
from jitkernels.attrs.schema.fields import power_of_two
from jitkernels.attrs.schema.registry import implementation
from jitkernels.core import cpu_target
from jitkernels.dispatch.kernel import Kernel
from jitkernels.errors import JitKernelsError
from jitkernels.tools import testing

LAYERS: dict[str, dict[str, Any]] = {
    "two rows of seven in a tile": {"height": 9, "width": 7, "kernel": 3, "channels": 5, "padding": 1},
    "two rows of seven with strides": {"height": 13, "width": 14, "kernel": 2, "channels": 3, "stride": 2},
    "rows of filters in chunks": {"height": 4, "width": 15, "kernel": 3, "channels": 900, "padding": 1},
    "bands of rows": {"height": 90, "width": 64, "kernel": 3, "channels": 130, "filters": 3, "padding": 1},
    "bands of rows without padding": {"height": 90, "width": 64, "kernel": 2, "channels": 130, "filters": 3},
    "one long row of pixels": {"height": 70, "width": 70, "kernel": 1, "channels": 130, "filters": 3},
    "one pixel of each four": {"height": 9, "width": 30, "kernel": 1, "channels": 20, "stride": 2},
    "pixels whose elements share sets of the cache": {"height": 5, "width": 9, "kernel": 1, "channels": 1024},
    "such pixels with strides": {"height": 5, "width": 9, "kernel": 1, "channels": 512, "stride": 2},
    "many panels": {"height": 2, "width": 3, "kernel": 1, "channels": 3, "filters": 150},
    "groups with panels of their own": {
        "height": 5,
        "width": 6,
        "kernel": 3,
        "channels": 6,
        "filters": 120,
        "groups": 3,
    },
    "depthwise": {"height": 5, "width": 40, "kernel": 3, "channels": 83, "filters": 83, "groups": 83, "padding": 1},
    "a filter as large as the image": {"height": 6, "width": 5, "kernel": (6, 5), "channels": 7},
    "padding beyond the image": {"height": 1, "width": 2, "kernel": 2, "channels": 3, "padding": ((4, 5), (3, 6))},
    "taps beside the image": {"height": 6, "width": 17, "kernel": 3, "channels": 40, "padding": 1},
    "taps beside the image, rows of seven": {"height": 5, "width": 7, "kernel": 3, "channels": 33, "padding": 1},
    "taps beside the image of groups": {
        "height": 6, "width": 30, "kernel": 3, "channels": 80, "groups": 2, "stride": (1, 2), "padding": (1, 1),
    },
    "taps of two pixels beside the image": {"height": 6, "width": 17, "kernel": 5, "channels": 40, "padding": 2},
    "taps on one side of the image": {
        "height": 6, "width": 20, "kernel": 2, "channels": 40, "filters": 10, "padding": ((0, 1), (1, 0)),
    },
    "one row of taps, above the image": {
        "height": 4, "width": 20, "kernel": (1, 3), "channels": 40, "padding": ((2, 1), (1, 1)),
    },
    "one column of taps, beside the image": {
        "height": 4, "width": 20, "kernel": (3, 1), "channels": 40, "padding": ((1, 1), (1, 0)),
    },
    "chunks of filters outside of the image": {
        "height": 3, "width": 15, "kernel": 3, "channels": 900, "dilation": (3, 1), "padding": (3, 1),
    },
    "pixels in the same sets of the cache": {"height": 3, "width": 9, "kernel": 1, "channels": 1024},
    "pixels in the same sets of the cache, strides": {
        "height": 5, "width": 17, "kernel": 1, "channels": 512, "stride": 2,
    },
    "pixels in the same sets of the cache, padding": {
        "height": 5, "width": 19, "kernel": 3, "channels": 512, "stride": 2, "padding": 1,
    },
    "dilated": {"height": 12, "width": 23, "kernel": 3, "channels": 9, "dilation": (2, 5), "padding": (2, 4)},
}  # fmt: skip


def attr_of(row: type[Conv2DAttr], *, kernel: Any, filters: int = 40, **fields: Any) -> Conv2DAttr:
    high, wide = kernel if isinstance(kernel, tuple) else (kernel, kernel)
    return row(batch=2, kernel_height=high, kernel_width=wide, filters=filters, **fields)


WAYS = ("relu", True, True), ("identity", False, True), ("tanh", True, False)
"""An activation, whether there is a residual, and a bias; one with each variant in turn."""


@pytest.mark.parametrize("row", [Conv2DAttr, Conv2DPackedAttr], ids=["plain", "packed"])
@pytest.mark.parametrize("layer", LAYERS)
def test_layers(layer: str, row: type[Conv2DAttr]) -> None:
    """Values, and that nothing outside of the arrays is touched; those of one thread and of several."""
    turn = [*LAYERS].index(layer)
    check_layer(row, layer, {turn: WAYS[turn // 3 % 3]})


@pytest.mark.full
@pytest.mark.parametrize("row", [Conv2DAttr, Conv2DPackedAttr], ids=["plain", "packed"])
@pytest.mark.parametrize("layer", LAYERS)
def test_all_variants_of_layers(layer: str, row: type[Conv2DAttr]) -> None:
    check_layer(row, layer, dict(enumerate(WAYS, [*LAYERS].index(layer))))


def check_layer(row: type[Conv2DAttr], layer: str, ways: Mapping[int, tuple[str, bool, bool]]) -> None:
    found = implementation(row, "gen")
    for turn, (activation, has_residual, biased) in ways.items():
        attr = attr_of(row, activation=activation, has_residual=has_residual, biased=biased, **LAYERS[layer])
        variants = found.variants(attr)
        for variant in variants[turn % min(3, len(variants)) :: 3]:
            kernel = Kernel(attr, found, variant)
            testing.check_values(attr, kernel.callable, oracles.expected, label=f"{layer}: {kernel!r}")


FEW_FILTERS: dict[str, dict[str, Any]] = {
    "one": {"height": 6, "width": 41, "kernel": 2, "channels": 3, "filters": 1},
    "a whole segment": {"height": 5, "width": 29, "kernel": (2, 3), "channels": 2, "filters": 4, "padding": (0, 2)},
    "pairs of rows and a last one": {"height": 9, "width": 40, "kernel": (3, 2), "channels": 2, "filters": 5},
    "two rows of several tiles": {"height": 4, "width": 90, "kernel": (2, 5), "channels": 1, "filters": 8},
    "one row of taps": {"height": 5, "width": 31, "kernel": (1, 5), "channels": 3, "filters": 6},
    "three": {"height": 9, "width": 38, "kernel": 3, "channels": 5, "filters": 3, "stride": (2, 1), "padding": 1},
    "six, an odd width, bands of rows": {"height": 120, "width": 101, "kernel": 2, "channels": 23, "filters": 6},
}


@pytest.mark.parametrize("row", [Conv2DAttr, Conv2DPackedAttr], ids=["plain", "packed"])
@pytest.mark.parametrize("layer", FEW_FILTERS)
def test_few_filters(layer: str, row: type[Conv2DAttr]) -> None:
    """Values of convolutions whose pixels share vectors, each activation in turn; nothing else is written."""
    found = implementation(row, "gen")
    for turn, activation in enumerate(("relu", "identity", "tanh"), [*FEW_FILTERS].index(layer)):
        attr = attr_of(row, activation=activation, biased=turn % 2 == 0, **FEW_FILTERS[layer])
        has_room = 2 * power_of_two(attr.filters) <= cpu_target.target().lanes(attr.dtype)
        variants = [one for one in found.variants(attr) if ("segment" in one) == has_room]
        kernel = Kernel(attr, found, variants[-1])
        assert ("convolution_shared" in kernel.source) == has_room, "the code for few filters"
        testing.check_values(attr, kernel.callable, oracles.expected, label=f"{layer}: {kernel!r}")


TRANSPOSED: dict[str, dict[str, Any]] = {
    "rows of filters in chunks": {"height": 3, "width": 9, "kernel": 4, "channels": 900, "stride": 2, "padding": 1},
    "bands of rows": {"height": 60, "width": 64, "kernel": 3, "channels": 130, "filters": 9, "stride": 2, "padding": 1},
    "bands of rows without copies": {"height": 90, "width": 64, "kernel": 2, "channels": 99, "filters": 9, "stride": 2},
    "phases without taps": {"height": 4, "width": 5, "kernel": 2, "channels": 7, "stride": (3, 5), "output_padding": 4},
    "strides and dilation with a common factor": {
        "height": 5, "width": 6, "kernel": 3, "channels": 5, "stride": (4, 2), "dilation": (2, 4), "padding": 3,
    },
    "groups with panels of their own": {
        "height": 5, "width": 6, "kernel": 3, "channels": 6, "filters": 120, "groups": 3, "stride": 2, "padding": 1,
    },
    "depthwise": {"height": 5, "width": 20, "kernel": 4, "channels": 83, "filters": 83, "groups": 83, "stride": 2},
    "depthwise, phases without taps": {
        "height": 3, "width": 4, "kernel": 1, "channels": 21, "filters": 21, "groups": 21, "stride": 3,
    },
    "two rows of seven in a tile": {"height": 9, "width": 7, "kernel": 3, "channels": 5, "padding": 1},
    "more padding than taps": {
        "height": 9, "width": 8, "kernel": 2, "channels": 3, "stride": 2, "padding": ((5, 4), (6, 3)),
    },
    "filters for two threads": {"height": 40, "width": 40, "kernel": 4, "channels": 40, "stride": 2, "padding": 1},
}  # fmt: skip


@pytest.mark.parametrize("row", [Conv2DTransposeAttr, Conv2DTransposePackedAttr], ids=["plain", "packed"])
@pytest.mark.parametrize("layer", TRANSPOSED)
def test_transposed_layers(layer: str, row: type[Conv2DTransposeAttr]) -> None:
    """Values, and that nothing outside of the arrays is touched; those of one thread and of several."""
    found = implementation(row, "gen")
    high, wide = np.broadcast_to(TRANSPOSED[layer]["kernel"], 2)
    fields = {name: value for name, value in TRANSPOSED[layer].items() if name != "kernel"}
    activation = ("relu", "identity", "tanh")[[*TRANSPOSED].index(layer) % 3]
    extents = {"batch": 2, "filters": 40, "kernel_height": int(high), "kernel_width": int(wide)}
    attr = row(**{**extents, "activation": activation, "biased": activation != "tanh", **fields})
    for variant in found.variants(attr):
        kernel = Kernel(attr, found, variant)
        testing.check_values(attr, kernel.callable, oracles.expected, label=f"{layer}: {kernel!r}")


RESIZED: dict[str, dict[str, Any]] = {
    "twice as many": {"height": 9, "width": 21, "channels": 1, "size": (18, 42)},
    "sums of rows first": {"height": 60, "width": 70, "channels": 3, "size": (7, 30)},
    "vectors of channels": {"height": 8, "width": 9, "channels": 70, "size": (13, 20)},
    "rows for two threads": {"height": 70, "width": 80, "channels": 8, "size": (150, 90)},
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("layer", RESIZED)
def test_resizing(layer: str, mode: str) -> None:
    """Values, and that nothing outside of the arrays is touched; those of one thread and of several."""
    coordinates = COORDINATES[[*RESIZED].index(layer) % 3] if mode != "nearest" else "half_pixel"
    attr = Resize2DAttr(batch=2, mode=mode, coordinates=coordinates, **RESIZED[layer])
    found = implementation(Resize2DAttr, "gen")
    for variant in found.variants(attr):
        kernel = Kernel(attr, found, variant)
        testing.check_values(attr, kernel.callable, oracles.expected, label=f"{layer}: {kernel!r}")


def test_arguments_in_another_shape_are_not_copied() -> None:
    """Channels of one image are images of one channel."""
    compiled = jk.jit(lambda x: jk.resize2d(np.reshape(x, (3, 50, 40, 1)), (25, 80)))
    x = np.random.default_rng(0).standard_normal((1, 3, 50, 40)).astype(np.float32)
    for array in (x, np.repeat(x, 2, axis=1)[:, ::2]):
        np.testing.assert_allclose(
            compiled(array), jk.resize2d(x.reshape(3, 50, 40, 1), (25, 80)), rtol=1e-5, atol=1e-6
        )
    assert "copy" not in str(compiled.explain(x))


GRADIENTS: dict[str, dict[str, Any]] = {
    "blocks of channels": {"height": 9, "width": 7, "kernel": (3, 2), "channels": 47, "padding": ((0, 2), (3, 1))},
    "blocks in chunks of rows": {"height": 120, "width": 110, "kernel": 3, "channels": 30, "filters": 9, "padding": 1},
    "blocks of every second pixel": {"height": 10, "width": 13, "kernel": 1, "channels": 64, "stride": (2, 3)},
    "blocks with strides and dilation": {
        "height": 12, "width": 15, "kernel": 3, "channels": 29, "stride": 2, "dilation": (2, 1), "padding": 2,
    },
    "blocks of groups": {"height": 6, "width": 7, "kernel": 3, "channels": 60, "groups": 2, "padding": 1},
    "padding beyond blocks": {"height": 1, "width": 2, "kernel": 2, "channels": 40, "padding": ((4, 5), (3, 6))},
    "rows of pixels in chunks": {"height": 9, "width": 300, "kernel": (2, 3), "channels": 5, "padding": 1},
    "chunks of several rows": {"height": 40, "width": 9, "kernel": 3, "channels": 17, "stride": (2, 1)},
    "channels for two threads": {"height": 3, "width": 4, "kernel": 3, "channels": 900, "filters": 70, "padding": 1},
    "groups with panels": {"height": 5, "width": 6, "kernel": 3, "channels": 6, "filters": 120, "groups": 3},
    "depthwise, with more taps than a tile": {"height": 5, "width": 30, "kernel": (2, 11), "channels": 83,
                                              "filters": 83, "groups": 83, "padding": 1},
    "dilated": {"height": 12, "width": 23, "kernel": 3, "channels": 9, "dilation": (2, 5), "padding": (2, 4)},
    "padding beyond the image": {"height": 1, "width": 2, "kernel": 2, "channels": 3, "padding": ((4, 5), (3, 6))},
    "filters for two threads": {"height": 20, "width": 20, "kernel": 3, "channels": 40, "filters": 150, "padding": 1},
    "groups for two threads": {"height": 20, "width": 20, "kernel": 3, "channels": 40, "filters": 152, "groups": 4},
}  # fmt: skip


@pytest.mark.parametrize("layer", GRADIENTS)
def test_gradients_of_filters(layer: str) -> None:
    """Values, and that nothing outside of the arrays is touched; those of one thread and of several."""
    high, wide = np.broadcast_to(GRADIENTS[layer]["kernel"], 2)
    fields = GRADIENTS[layer] | {"kernel": (int(high), int(wide))}
    attr = Conv2DBackwardWeightsAttr(batch=2, **{"filters": 40, **fields})
    found = implementation(Conv2DBackwardWeightsAttr, "gen")
    assert len(found.variants(attr)) == 1 + ("threads" in layer)
    for variant in found.variants(attr):
        kernel = Kernel(attr, found, variant)
        testing.check_values(attr, kernel.callable, oracles.expected, label=f"{layer}: {kernel!r}")


def test_layers_exceed_the_cache() -> None:
    """Of the sizes above: bands and chunks are more than one on this processor."""
    l2 = cpu_target.l2_cache_bytes()
    if l2 > 1 << 21:
        processor_skips.skip("its cache is larger")
    band, chunk = (
        attr_of(Conv2DAttr, **LAYERS["bands of rows"]),
        attr_of(Conv2DAttr, **LAYERS["rows of filters in chunks"]),
    )
    assert band.signature().arrays[0].nbytes / band.batch > l2 / 2
    assert chunk.terms * 32 * 4 > l2 / 8


def test_compiled_functions_pack_constant_filters() -> None:
    weights = np.random.default_rng(0).standard_normal((3, 3, 8, 50)).astype(np.float32)
    deep = np.random.default_rng(1).standard_normal((3, 3, 1, 50)).astype(np.float32)

    def layers(x: Any) -> Any:
        y = jk.conv2d(np.transpose(x, (0, 2, 3, 1)), weights, stride=2, padding=1, activation="relu")
        return jk.max_pool2d(jk.conv2d(y, deep, groups=50, padding=1), 2) * 2

    compiled = jk.jit(layers, static_argnames=("weights", "deep"))
    for shape in ((1, 8, 12, 13), (3, 8, 20, 7)):
        x = np.random.default_rng(2).standard_normal(shape).astype(np.float32)
        np.testing.assert_allclose(compiled(x), layers(x), rtol=1e-5, atol=1e-5)
    text = str(compiled.explain(x))
    assert text.count("jk.conv2d_packed") == 1
    assert "0 calls of NumPy" in text


def test_constant_filters_of_one_pixel_are_packed() -> None:
    """As the reference they would be one product, which reads the filters as they are and copies the images."""
    weights = np.random.default_rng(0).standard_normal((1, 1, 8, 50)).astype(np.float32)

    def layer(x: Any, residual: Any) -> Any:
        return jk.conv2d(x, weights, None, residual, activation="relu")

    compiled = jk.jit(layer, static_argnames=("weights",))
    for shape in ((1, 5, 7, 8), (3, 2, 9, 8)):
        x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
        residual = np.random.default_rng(2).standard_normal((*shape[:-1], 50)).astype(np.float32)
        np.testing.assert_allclose(compiled(x, residual), layer(x, residual), rtol=1e-5, atol=1e-5)
    text = str(compiled.explain(x, residual))
    assert text.count("jk.conv2d_packed") == 1, text
    assert not any(word in text for word in ("matmul", "copy", "add")), text


def test_compiled_functions_of_filters_that_are_arguments() -> None:
    def layer(x: Any, w: Any, bias: Any) -> Any:
        return np.tanh(jk.avg_pool2d(jk.conv2d(x, w, bias, padding=(1, 0)), 2, stride=1, ceil_mode=True))

    compiled = jk.jit(layer)
    for channels, filters in ((3, 5), (8, 33)):
        x = np.random.default_rng(0).standard_normal((2, 9, 8, channels))
        w, bias = np.ones((3, 2, channels, filters)), np.arange(float(filters))
        np.testing.assert_allclose(compiled(x, w, bias), layer(x, w, bias), rtol=1e-10, atol=1e-10)
    assert "0 calls of NumPy" in str(compiled.explain(x, w, bias))


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "channels": ({"w": np.ones((3, 3, 5, 4))}, "w: expected shape"),
    "groups": ({"groups": 4}, "groups: expected a divisor of the 6 channels"),
    "window": ({"w": np.ones((9, 3, 6, 4))}, "expected a window of 1 or more, and of at most the 7 elements"),
    "no window": ({"w": np.ones((0, 3, 6, 4))}, "expected a window of 1 or more"),
    "stride": ({"stride": 0}, "stride: expected an int of 1 or more, or a pair"),
    "padding": ({"padding": (1, 2, 3)}, "padding: expected an int of 0 or more, a pair"),
    "negative padding": ({"padding": -1}, "padding: expected an int of 0 or more"),
    "dilation": ({"dilation": 1.5}, "dilation: expected an int of 1 or more"),
    "activation": ({"activation": "none"}, "activation: expected one of"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments(case: str) -> None:
    changes, message = WRONG[case]
    given = {"x": np.ones((2, 7, 8, 6)), "w": np.ones((3, 3, 6, 4)), "bias": None} | changes
    with pytest.raises(JitKernelsError, match=message):
        jk.conv2d(**given)


def test_padding_of_pooling_is_less_than_a_window() -> None:
    with pytest.raises(JitKernelsError, match="padding: expected less than the 2 elements"):
        jk.max_pool2d(np.ones((1, 4, 4, 1)), 2, padding=2)
    assert jk.avg_pool2d(np.ones((1, 4, 4, 1)), 2, padding=1, count_include_pad=True)[0, 0, 0, 0] == 0.25
    assert jk.avg_pool2d(np.ones((1, 4, 4, 1)), 2, padding=1)[0, 0, 0, 0] == 1
