"""Convolution of 8-bit integers in each of its loops, by each instruction that multiplies words."""

from typing import Any

import numpy as np
import oracles
import processor_skips
import pytest

import jitkernels as jk
from jitkernels.attrs.convolution_int8 import Conv2DInt8Attr, Conv2DInt8PackedAttr
from jitkernels.attrs.quantize import BYTES
from jitkernels.attrs.schema.registry import implementation
from jitkernels.core import cpu_target
from jitkernels.core.cpu_target import target_of
from jitkernels.dispatch.kernel import Kernel
from jitkernels.errors import JitKernelsError
from jitkernels.microkernels.convolution import int8_direct
from jitkernels.microkernels.convolution.int8_direct import dot_product_of
from jitkernels.microkernels.convolution.int8_tile import DotProduct, Int8Tile
from jitkernels.tools import testing

LAYERS: dict[str, dict[str, Any]] = {
    "one channel": {"height": 7, "width": 5, "kernel": 3, "channels": 1, "filters": 17, "padding": 1},
    "three channels, strides": {"height": 23, "width": 21, "kernel": 7, "channels": 3, "stride": 2, "padding": 3},
    "seventeen channels": {"height": 5, "width": 6, "kernel": 2, "channels": 17, "filters": 17},
    "words across rows of the image": {"height": 5, "width": 9, "kernel": (3, 1), "channels": 6, "filters": 3},
    "two rows of seven in a tile": {"height": 9, "width": 7, "kernel": 3, "channels": 8, "padding": 1},
    "bands of rows": {"height": 90, "width": 64, "kernel": 3, "channels": 520, "filters": 3, "padding": 1},
    "one long row of pixels": {"height": 70, "width": 70, "kernel": 1, "channels": 132, "filters": 3},
    "one pixel of each four": {"height": 9, "width": 30, "kernel": 1, "channels": 20, "stride": 2},
    "many panels": {"height": 2, "width": 3, "kernel": 1, "channels": 4, "filters": 150},
    "groups with panels of their own": {
        "height": 5, "width": 6, "kernel": 3, "channels": 12, "filters": 120, "groups": 3,
    },
    "groups of three channels": {"height": 5, "width": 6, "kernel": 2, "channels": 9, "filters": 6, "groups": 3},
    "depthwise": {"height": 5, "width": 40, "kernel": 3, "channels": 83, "filters": 83, "groups": 83, "padding": 1},
    "depthwise, whole vectors": {"height": 6, "width": 9, "kernel": 2, "channels": 64, "filters": 64, "groups": 64},
    "a filter as large as the image": {"height": 6, "width": 5, "kernel": (6, 5), "channels": 7},
    "padding beyond the image": {"height": 1, "width": 2, "kernel": 2, "channels": 3, "padding": ((4, 5), (3, 6))},
    "dilated": {"height": 12, "width": 23, "kernel": 3, "channels": 9, "dilation": (2, 5), "padding": (2, 4)},
    "dilated words": {"height": 12, "width": 23, "kernel": 3, "channels": 8, "dilation": (2, 5), "padding": (2, 4)},
    "no images": {"batch": 0, "height": 5, "width": 6, "kernel": 3, "channels": 4},
    "no channels": {"height": 5, "width": 6, "kernel": 3, "channels": 0},
}  # fmt: skip
DOTS = {
    "pmaddwd-4": DotProduct("pmaddwd", 4, 4),
    "pmaddwd-8": DotProduct("pmaddwd", 8, 4),
    "vpdpbusd-8": DotProduct("vpdpbusd", 8, 6),
    "mul-4": DotProduct("mul", 4, 3),
}
"""Of other processors, as far as this one has their instructions."""


ENDS: list[dict[str, Any]] = [
    {"x_dtype": "uint8", "y_dtype": "uint8", "scaled": True, "y_shifted": True, "activation": "relu"},
    {"x_dtype": "int8", "y_dtype": "int8", "scaled": True, "y_shifted": True, "biased": False},
    {"x_dtype": "uint8", "y_dtype": "int32", "shifted": False, "activation": "relu"},
    {"x_dtype": "int8", "y_dtype": "float32", "scaled": True},
]
"""What images are, and what becomes of sums: the layers take turns."""


def fields_of(layer: str, turn: int) -> dict[str, Any]:
    fields = {"batch": 3, "filters": 40, **LAYERS[layer]}
    high, wide = np.broadcast_to(fields.pop("kernel"), 2)
    return fields | {"kernel_height": int(high), "kernel_width": int(wide)} | ENDS[turn % len(ENDS)]


def check(row: Any, fields: dict[str, Any], label: str) -> None:
    found, plain = implementation(row, "gen"), Conv2DInt8Attr(**fields)
    if row is Conv2DInt8PackedAttr and plain.prepacked({"w": np.zeros(0, np.int8)}, winograd=False) is None:
        return  # its runs are no whole words
    attr = row(**fields)
    for variant in found.variants(attr):
        kernel = Kernel(attr, found, variant)
        testing.check_values(attr, kernel.callable, oracles.expected, label=f"{label}: {kernel!r}")


@pytest.mark.parametrize("row", [Conv2DInt8Attr, Conv2DInt8PackedAttr], ids=["plain", "packed"])
@pytest.mark.parametrize("layer", LAYERS)
def test_layers(layer: str, row: Any) -> None:
    """Values, and that nothing outside of the arrays is touched; those of one thread and of several."""
    number = [*LAYERS].index(layer)
    for turn in (number, number + 1):
        check(row, fields_of(layer, turn), layer)


@pytest.mark.parametrize("dot", DOTS)
def test_other_instructions(dot: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if dot.startswith(("vpdpbusd", "pmaddwd")) and not cpu_target.target().is_x86:
        processor_skips.skip("the instruction is one of x86")
    if dot == "vpdpbusd-8" and not {"avx512vnni", "avx512vl"} <= cpu_target.target().features:
        processor_skips.skip("it has no such instruction")
    monkeypatch.setattr(int8_direct, "dot_product_of", lambda _: DOTS[dot])
    for turn, layer in enumerate(LAYERS):
        if layer != "bands of rows":
            check(Conv2DInt8Attr, fields_of(layer, turn % 2), f"{layer} by {dot}")


def test_instructions_follow_the_features() -> None:
    def name(architecture: str, *features: str) -> tuple[str, int]:
        dot = dot_product_of(target_of(architecture, "", frozenset(features)))
        return dot.name, dot.lanes

    assert name("x86_64", "avx512f", "avx512bw", "avx512vnni", "avx2") == ("vpdpbusd", 16)
    assert name("x86_64", "avx512f", "avx512bw", "avx2") == ("pmaddwd", 16)
    assert name("x86_64", "avx512f", "avx2") == ("pmaddwd", 8)
    assert name("x86_64", "avx2", "avxvnni") == ("vpdpbusd", 8)
    assert name("x86_64", "avx2") == ("pmaddwd", 8)
    assert name("x86_64") == ("pmaddwd", 4)
    assert name("aarch64", "i8mm") == ("usdot", 4)
    assert name("aarch64") == ("mul", 4)


def test_code_for_another_architecture() -> None:
    """LLVM has one instruction for each dot product of aarch64."""
    llvm = pytest.importorskip("llvmlite.binding")
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    dot = dot_product_of(target_of("aarch64", "", frozenset({"i8mm"})))
    tile = Int8Tile("tile", dot, 2, "uint8", relu=True, scaled=True)
    try:
        target = llvm.Target.from_triple("aarch64-linux-gnu")
    except RuntimeError:
        pytest.skip("LLVM has no aarch64 here")
    machine = target.create_target_machine(cpu="neoverse-v1", opt=2)
    text = machine.emit_assembly(llvm.parse_assembly(tile.text()))
    assert text.count("usdot") == sum(2 * pixels for pixels in range(1, dot.pixels + 1))


@pytest.mark.parametrize("kind", BYTES)
def test_extremes_do_not_saturate(kind: str) -> None:
    """Sums of pairs of products exceed 16 bits, and sums exceed 24."""
    limits = np.iinfo(kind)
    for value, weight in ((limits.max, -128), (limits.max, 127), (limits.min, -128)):
        x, w = np.full((1, 3, 40, 600), value, kind), np.full((3, 3, 600, 33), weight, np.int8)
        expected = 9 * 600 * (int(value) - 1) * weight
        got = jk.conv2d_int8(x, w, np.array([1], kind))
        assert got.dtype == np.int32
        assert (got == expected).all()


@pytest.mark.parametrize("y_dtype", BYTES)
def test_halves_are_rounded_to_even(y_dtype: Any) -> None:
    x, w = np.arange(256, dtype=np.uint8).reshape(1, 16, 16, 1), np.ones((1, 1, 1, 16), np.int8)
    for zero in (0, 7, -3):
        got = jk.conv2d_int8(x, w, np.array([128], np.uint8), None, np.full(16, 0.5), zero, y_dtype=y_dtype)
        limits = np.iinfo(y_dtype)
        expected = np.clip(np.rint((x.astype(np.float32) - 128) / 2) + zero, limits.min, limits.max)
        assert (got == expected).all()


def test_compiled_functions_pack_constant_filters() -> None:
    rng = np.random.default_rng(0)
    weights, few = rng.integers(-128, 128, (3, 3, 8, 50), np.int8), rng.integers(-128, 128, (3, 3, 3, 8), np.int8)
    zero, scale, y_zero = np.array([3], np.uint8), np.full(8, 0.01, np.float32), np.array([9], np.int16)

    def layers(x: Any) -> Any:
        y = jk.conv2d_int8(x, few, zero, None, scale, y_zero, padding=1, y_dtype="uint8")
        return jk.conv2d_int8(y, weights, zero, stride=2, padding=1, activation="relu")

    compiled = jk.jit(layers, static_argnames=("weights", "few", "zero", "scale", "y_zero"))
    for shape in ((1, 12, 13, 3), (3, 20, 7, 3)):
        x = rng.integers(0, 256, shape, np.uint8)
        np.testing.assert_array_equal(compiled(x), layers(x))
    text = str(compiled.explain(x))
    assert text.count("jk.conv2d_int8_packed") == 1
    assert "0 calls of NumPy" in text


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "channels": ({"w": np.ones((3, 3, 5, 4), np.int8)}, "w: expected shape"),
    "groups": ({"groups": 4}, "groups: expected a divisor of the 6 channels"),
    "window": ({"w": np.ones((9, 3, 6, 4), np.int8)}, "expected a window of 1 or more, and of at most the 7 elements"),
    "floats": ({"x": np.ones((2, 7, 8, 6))}, "x: expected integers"),
    "large weights": ({"w": np.full((3, 3, 6, 4), 128)}, "w: expected integers from -128 to 127"),
    "scale of int32": ({"scale": np.ones(4)}, "y_dtype: expected float32, uint8 or int8 with a scale, got int32"),
    "zero point of int32": ({"y_zero": 3}, "y_dtype: expected uint8 or int8 with a zero point, got int32"),
    "activation": ({"activation": "tanh"}, "activation: expected one of identity, relu"),
    "result": ({"y_dtype": "float64"}, "y_dtype: expected one of int32, float32"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments(case: str) -> None:
    changes, message = WRONG[case]
    given = {"x": np.ones((2, 7, 8, 6), np.uint8), "w": np.ones((3, 3, 6, 4), np.int8)} | changes
    with pytest.raises(JitKernelsError, match=message):
        jk.conv2d_int8(**given)


def test_words_of_packed_filters_do_not_cross_runs() -> None:
    with pytest.raises(JitKernelsError, match="channels: expected runs of a multiple of 4 weights, got 9"):
        Conv2DInt8PackedAttr(batch=1, height=5, width=5, channels=3, kernel_width=3)
