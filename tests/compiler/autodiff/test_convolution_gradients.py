"""Derivatives of convolutions and pooling, which are kernels, against finite differences in every form."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.attrs.schema.signature import AnyArray

STEP = 1e-5
FORMS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "plain": ((2, 6, 5, 3), (3, 3, 3, 4), {}),
    "padded": ((2, 6, 5, 3), (3, 2, 3, 4), {"padding": 1}),
    "padded unevenly": ((1, 4, 5, 2), (3, 2, 2, 4), {"padding": ((0, 2), (1, 0))}),
    "padding beyond the image": ((1, 1, 2, 3), (2, 2, 3, 4), {"padding": ((4, 5), (3, 6))}),
    "one pixel": ((2, 5, 4, 3), (1, 1, 3, 7), {}),
    "one pixel of each four": ((2, 5, 4, 3), (1, 1, 3, 7), {"stride": 2}),
    "strides": ((2, 9, 8, 3), (3, 2, 3, 4), {"stride": (2, 3), "padding": 1}),
    "strides that leave pixels out": ((1, 8, 9, 2), (3, 2, 2, 3), {"stride": (4, 3)}),
    "dilated": ((2, 9, 8, 3), (3, 2, 3, 4), {"dilation": (2, 3), "padding": (2, 0)}),
    "strides and dilation with a common factor": ((1, 11, 12, 2), (3, 3, 2, 3), {"stride": (4, 2), "dilation": (2, 4)}),
    "strides and dilation without one": ((1, 11, 12, 2), (3, 3, 2, 3), {"stride": (2, 3), "dilation": (3, 2)}),
    "groups": ((2, 6, 5, 4), (3, 2, 2, 6), {"groups": 2, "padding": 1}),
    "depthwise": ((2, 6, 5, 4), (3, 3, 1, 4), {"groups": 4, "stride": 2, "padding": 1}),
    "one image": ((6, 5, 3), (3, 3, 3, 4), {"stride": 2}),
    "leading dimensions": ((2, 1, 6, 5, 3), (3, 3, 3, 4), {"padding": 1}),
    "no image": ((0, 6, 5, 3), (3, 3, 3, 4), {"padding": 1}),
}  # fmt: skip
POOLS: dict[str, tuple[Any, ...]] = {
    "tiles": (2,),
    "overlapping": (3, 1),
    "padded": ((3, 2), 2, 1),
    "dilated": (2, 1, 0, 2),
    "reaching beyond": (3, 2, 0, 1, True),
    "apart": (2, 3),
}
TRANSPOSED: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "plain": ((2, 4, 5, 3), (3, 2, 3, 4), {}),
    "strides": ((2, 4, 5, 3), (4, 2, 3, 4), {"stride": (2, 3), "padding": ((1, 0), (0, 1))}),
    "more below than a stride": ((1, 3, 2, 2), (3, 2, 2, 3), {"stride": (2, 1), "output_padding": (3, 1)}),
    "dilated": ((1, 4, 3, 2), (3, 2, 2, 3), {"stride": (3, 2), "dilation": (2, 3), "padding": 1}),
    "groups": ((2, 3, 4, 4), (3, 2, 2, 6), {"groups": 2, "stride": 2, "padding": 1, "output_padding": 1}),
    "depthwise": ((2, 3, 4, 4), (3, 3, 1, 4), {"groups": 4, "stride": 2, "padding": 1}),
    "one image": ((3, 4, 3), (2, 2, 3, 4), {"stride": 2}),
}  # fmt: skip


def difference(function: Callable[..., Any], at: Sequence[AnyArray], along: Sequence[AnyArray]) -> float:
    """The directional derivative by differences of order four."""

    def value(step: float) -> float:
        return float(function(*(array + step * way for array, way in zip(at, along, strict=True))))

    return (8 * (value(STEP) - value(-STEP)) - value(2 * STEP) + value(-2 * STEP)) / (12 * STEP)


def check(function: Callable[..., Any], *at: AnyArray) -> None:
    """Gradient and tangent, against differences along a random direction."""
    random = np.random.default_rng(3)
    along: list[AnyArray] = [np.asarray(random.standard_normal(array.shape)) for array in at]
    gradient = jk.grad(function, argnums=tuple(range(len(at))))(*at)
    found = sum(float(np.sum(part * way)) for part, way in zip(gradient, along, strict=True))
    size = sum(float(np.sum(np.abs(part * way))) for part, way in zip(gradient, along, strict=True))
    expected = difference(function, at, along)
    assert abs(found - expected) <= 1e-6 * size + 1e-9
    assert abs(jk.jvp(function, at, along)[1] - expected) <= 1e-6 * size + 1e-9


def arrays_of(form: str) -> list[AnyArray]:
    """Images, filters, a bias and a residual."""
    random = np.random.default_rng(1)
    shape, filters, options = FORMS[form]
    x, w = random.standard_normal(shape), random.standard_normal(filters)
    residual = random.standard_normal(jk.conv2d(x, w, **options).shape)
    return [x, w, random.standard_normal(filters[3]), residual]


@pytest.mark.parametrize("form", FORMS)
def test_convolution(form: str) -> None:
    options = FORMS[form][2]

    def loss(x: AnyArray, w: AnyArray, bias: AnyArray, residual: AnyArray) -> Any:
        return np.sum(jk.conv2d(x, w, bias, residual, **options) ** 2 * np.arange(1.0, len(bias) + 1))

    check(loss, *arrays_of(form))


@pytest.mark.parametrize("form", TRANSPOSED)
def test_transposed_convolution(form: str) -> None:
    random = np.random.default_rng(1)
    shape, filters, options = TRANSPOSED[form]

    def loss(x: AnyArray, w: AnyArray, bias: AnyArray) -> Any:
        y = jk.conv2d_transpose(x, w, bias, **options)
        return np.sum(np.tanh(y) ** 2 * np.arange(1.0, len(bias) + 1))

    check(loss, *(random.standard_normal(extents) for extents in (shape, filters, filters[3])))


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu", "tanh", "sigmoid"])
def test_activations(activation: Any) -> None:
    x, w, bias, _ = arrays_of("padded")
    check(lambda x, w, bias: np.sum(jk.conv2d(x, w, bias, padding=1, activation=activation) ** 2), x, w, bias)


@pytest.mark.parametrize("form", ["padded", "strides", "groups"])
def test_second_order(form: str) -> None:
    options = FORMS[form][2]
    x, w, *_ = arrays_of(form)

    def slope(x: AnyArray, w: AnyArray) -> Any:
        parts = jk.grad(lambda x, w: np.sum(np.tanh(jk.conv2d(x, w, **options))), argnums=(0, 1))(x, w)
        return np.sum(parts[0] ** 2) + np.sum(parts[1] ** 2)

    check(slope, x, w)


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("name", ["max_pool2d", "avg_pool2d"])
def test_pooling(name: str, pool: str) -> None:
    x = np.random.default_rng(1).permutation(2 * 7 * 8 * 3).reshape(2, 7, 8, 3) / 50.0
    function = getattr(jk, name)
    check(lambda x: np.sum(function(x, *POOLS[pool]) ** 3), x)


@pytest.mark.parametrize("coordinates", ["half_pixel", "align_corners", "asymmetric"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_resizing(mode: Any, coordinates: Any) -> None:
    x = np.random.default_rng(1).standard_normal((2, 4, 5, 3))
    for size in ((7, 3), (2, 10)):
        check(lambda x, size=size: np.sum(jk.resize2d(x, size, mode, coordinates) ** 3), x)


@pytest.mark.parametrize("size", [1, 4, 5])
def test_local_response_norm(size: int) -> None:
    x = np.random.default_rng(1).standard_normal((2, 3, 7))
    check(lambda x: np.sum(jk.local_response_norm(x, size, 0.5, 0.75, 2.0) ** 3), x)


def test_second_order_of_pooling() -> None:
    x = np.random.default_rng(1).permutation(2 * 7 * 8 * 3).reshape(2, 7, 8, 3) / 50.0
    check(lambda x: np.sum(jk.grad(lambda x: np.sum(jk.max_pool2d(x, 3, 2) ** 3))(x) ** 2), x)


def test_a_step_consists_of_kernels() -> None:
    """No convolution is inlined as a product of windows, nor called in Python."""

    def loss(w: AnyArray, v: AnyArray, x: AnyArray) -> Any:
        y = jk.max_pool2d(jk.conv2d(x, w, padding=1, activation="relu"), 2)
        return np.sum(jk.conv2d(y, v, stride=2) ** 2)

    @jk.jit
    def step(w: AnyArray, v: AnyArray, x: AnyArray) -> Any:
        return jk.value_and_grad(loss, argnums=(0, 1))(w, v, x)

    random = np.random.default_rng(0)
    w, v, x = (random.standard_normal(shape) for shape in ((3, 3, 2, 5), (3, 3, 5, 4), (2, 9, 8, 2)))
    value, (dw, dv) = step(w, v, x)
    assert value == pytest.approx(loss(w, v, x))
    assert [dw.shape, dv.shape] == [w.shape, v.shape]
    text = str(step.explain(w, v, x))
    assert "0 calls of NumPy" in text
    assert text.count("jk.conv2d_backward_weights") == 2
    assert text.count("jk.max_pool2d_backward") == 1
    assert "matmul" not in text
