"""Loops over the batch in place of whole layers: values, layouts, warnings, threads, and which parts are tiled."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.export.run_bundle import Bundle
from jitkernels.compiler.lowering import lower_graph
from jitkernels.compiler.schedule import batch_tiling_cost
from jitkernels.core import cpu_target

RNG = np.random.default_rng(11)


def numbers(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


FIRST, SECOND, ONE = numbers(3, 3, 8, 16), numbers(3, 3, 16, 16), numbers(1, 1, 16, 16)
SCALE, SHIFT, DENSE = numbers(16), numbers(16), numbers(16, 5)
BATCHES = (2, 3, 17, 8)
"""Those of which 3 and 8 are extents of filters, too."""


def images(batch: int) -> Any:
    return numbers(batch, 19, 18, 8)


def conv(x: Any, w: Any, **options: Any) -> Any:
    return jk.conv2d(x, w, padding=w.shape[0] // 2, **options)


def features(x: Any) -> Any:
    return conv(conv(x, FIRST, activation="relu"), SECOND)


def first(x: Any) -> Any:
    return np.transpose(x, (0, 3, 1, 2))


def last(x: Any) -> Any:
    return np.transpose(x, (0, 2, 3, 1))


def residual(x: Any) -> Any:
    y = conv(x, FIRST)
    return conv(np.maximum(conv(y, SECOND) + y, np.float32(0)), ONE)


def inception(x: Any) -> Any:
    y = conv(x, FIRST)
    parts = [conv(y, SECOND), jk.max_pool2d(y, 3, stride=1, padding=1), conv(y, ONE) * SCALE]
    return jk.avg_pool2d(np.concatenate(parts, axis=-1), 2)


def normalized(x: Any) -> Any:
    y = features(x)
    y = (y - y.mean(axis=(1, 2), keepdims=True)) / (y.std(axis=(1, 2), keepdims=True) + np.float32(1e-3))
    return conv(y * SCALE + SHIFT, ONE)


def padded(x: Any) -> Any:
    y = np.pad(features(x), ((0, 0), (1, 0), (0, 2), (0, 0)), constant_values=1)
    return conv(np.cumsum(y, axis=2), ONE)[:, ::-1, 1:]


def pooled(x: Any) -> Any:
    y = features(x)
    return y.mean(axis=(1, 2)) @ DENSE + y.max(axis=(1, 2)) @ DENSE


def transposed(x: Any) -> Any:
    return first(features(x))


def activated(x: Any) -> Any:
    """An elementwise result of a transposed view, which NumPy lays out as that view."""
    return np.tanh(first(features(x)) * np.float32(0.1))


def reduced(x: Any) -> Any:
    return first(features(x)).sum(axis=2)


def flattened(x: Any) -> Any:
    return first(jk.max_pool2d(features(x), 2)).reshape(len(x), -1)


def two_results(x: Any) -> Any:
    y = features(x)
    return conv(y, ONE), first(y), y.sum(axis=3)


def centred(x: Any) -> Any:
    """A mean over the batch between layers, which separates two loops."""
    y = features(x)
    return conv(conv(y - y.mean(axis=0), SECOND), ONE)


def repeated(x: Any) -> Any:
    """What no row depends on, broadcast along the batch."""
    return conv(features(x) + np.broadcast_to(SHIFT, (len(x), 1, 1, 16)), ONE)


def ends(x: Any) -> Any:
    """Layers behind rows in another order."""
    return conv(features(x)[::-1], ONE)


FUNCTIONS = (
    residual, inception, normalized, padded, pooled, transposed, activated, reduced, flattened, two_results, centred,
    repeated, ends,
)  # fmt: skip
REFUSE_NO_IMAGES = (normalized, pooled, flattened, centred)
"""Functions that fail in NumPy for a batch of 0: means and maxima of nothing, and an unknown extent."""


@pytest.fixture(autouse=True)
def small_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of tests are too small for loops to pay: as if L2 were smaller still, and calls took no time."""
    monkeypatch.setattr(cpu_target, "l2_cache_bytes", lambda: 1)
    monkeypatch.setattr(batch_tiling_cost, "CALL_COST", 0)
    monkeypatch.setattr(batch_tiling_cost, "STORE_COST", 1000)


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = jk.get_num_threads()
    jk.set_num_threads(count)
    try:
        yield
    finally:
        jk.set_num_threads(before)


def loops_of(compiled: Any, *arguments: Any) -> list[str]:
    """The lines of `explain` that describe loops."""
    return [line for line in str(compiled.explain(*arguments)).splitlines() if " loop: " in line]


def compare(got: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        for one, other in zip(got, expected, strict=True):
            compare(one, other)
        return
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_values_and_layouts(function: Callable[[Any], Any]) -> None:
    """As of NumPy for several batches with one specialization of each pattern, and laid out as without loops."""
    compiled, whole = jk.jit(function, strict=True), jk.jit(function, strict=True)
    for batch in (*BATCHES, 1, *([] if function in REFUSE_NO_IMAGES else [0]), *BATCHES):
        x = images(batch)
        got = compiled(x)
        compare(got, function(x))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lower_graph, "tile_batch_dimension", lambda graph, _: graph)
            expected = whole(x)
            assert not loops_of(whole, x)
        pairs = zip(*(each if type(each) is tuple else (each,) for each in (got, expected)), strict=True)
        assert all(one.strides == other.strides for one, other in pairs)
    assert loops_of(compiled, images(5))
    assert not loops_of(compiled, images(1))


@pytest.mark.parametrize("function", [residual, inception, pooled], ids=lambda function: function.__name__)
def test_rows_are_those_of_single_images(function: Callable[[Any], Any]) -> None:
    compiled, x = jk.jit(function, strict=True), images(17)
    for count in (1, 2, 3):
        with threads(count):
            compare(compiled(x), np.concatenate([compiled(one[None]) for one in x]))


def test_another_batch_needs_no_other_code() -> None:
    compiled = jk.jit(residual, strict=True)
    compiled(images(17))
    before = len(compiled.specializations)
    for batch in (16, 9, 2, 5):
        compiled(images(batch))
    assert len(compiled.specializations) == before == 1


def test_a_reduction_over_the_batch_separates_loops() -> None:
    compiled, x = jk.jit(centred, strict=True), images(5)
    compiled(x)
    assert len(loops_of(compiled, x)) == 2


def test_two_batches_at_once_share_no_memory() -> None:
    """Threads have workspaces of their own, in which arrays of different sizes share memory."""
    compiled, x = jk.jit(inception, strict=True), numbers(24, 33, 32, 8)
    expected = np.concatenate([compiled(one[None]) for one in x])
    with threads(3):
        for _ in range(20):
            compare(compiled(x), expected)


def test_large_weights_stay_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """What reads more weights than activations runs over the whole batch, as it would read them again for each row."""
    monkeypatch.setattr(batch_tiling_cost, "STORE_COST", 5)
    wide = numbers(1, 1, 64, 512)

    def network(x: Any) -> Any:
        y = jk.avg_pool2d(conv(conv(x, FIRST), numbers_of_64), 16)
        return conv(conv(y, wide), numbers_of_512)

    numbers_of_64, numbers_of_512 = numbers(3, 3, 16, 64), numbers(1, 1, 512, 256)
    compiled, x = jk.jit(network, strict=True), numbers(4, 32, 32, 8)
    compare(compiled(x), network(x))
    (loop,) = loops_of(compiled, x)
    assert loop.count("conv2d") == 2
    assert "avg_pool2d" in loop


def test_small_networks_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    compiled, x = jk.jit(residual, strict=True), images(4)
    compare(compiled(x), residual(x))
    assert not loops_of(compiled, x)


def test_written_arguments_are_not_tiled() -> None:
    def function(x: Any, out: Any) -> Any:
        out[...] = residual(x)

    compiled, x = jk.jit(function, strict=True), images(4)
    out = np.zeros((4, 19, 18, 16), np.float32)
    compiled(x, out)
    compare(out, residual(x))


def test_floating_point_warnings_are_reported() -> None:
    def function(x: Any) -> Any:
        return conv(np.log(features(x)), ONE)

    compiled, x = jk.jit(function, strict=True), np.abs(images(4))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compiled(x)
    assert [str(one.message) for one in caught if "log" in str(one.message)]
    assert loops_of(compiled, x)

    def quiet(x: Any) -> Any:
        return conv(np.log(np.abs(features(x)) + np.float32(1)), ONE)

    compiled = jk.jit(quiet, strict=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compare(compiled(x), quiet(x))


def test_gradients() -> None:
    """Values that the backward pass reads leave the loops; gradients are those of untiled code."""

    def loss(w: Any, x: Any) -> Any:
        return np.sum(jk.max_pool2d(conv(conv(x, w, activation="relu"), SECOND), 2) ** 2)

    x = images(4)
    got = jk.grad(loss)(FIRST, x)
    expected = sum(jk.grad(loss)(FIRST, one[None]) for one in x)
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-2)


def test_kernels_inside_of_loops_are_timed() -> None:
    compiled, x = jk.jit(inception, strict=True, profile=True), images(4)
    compare(compiled(x), inception(x))
    inside = [one for one in compiled.stats().times if one.inside]
    assert any("conv2d" in one.kernel and one.runs == 4 for one in inside)


def test_filters_in_another_order_are_copied_before_the_loop() -> None:
    """As torch has them: kernels take them in C order, and each image would copy them again."""

    def function(x: Any, w: Any, v: Any) -> Any:
        return conv(conv(x, np.transpose(w, (2, 3, 1, 0)), activation="relu"), np.transpose(v, (2, 3, 1, 0)))

    x, filters = images(4), [np.ascontiguousarray(np.transpose(one, (3, 2, 0, 1))) for one in (FIRST, SECOND)]
    compiled = jk.jit(function, strict=True, profile=True)
    compare(compiled(x, *filters), features(x))
    assert loops_of(compiled, x, *filters)
    inside = [one.kernel for one in compiled.stats().times if one.inside]
    assert sum("copy" in kernel for kernel in inside) == 1  # of the image


def test_bundles(tmp_path: Path) -> None:
    compiled, x = jk.jit(inception, strict=True), images(4)
    expected = compiled(x)
    assert loops_of(compiled, x)
    compiled.export(tmp_path, x)
    (got,) = Bundle(tmp_path)(x)
    np.testing.assert_array_equal(got, expected)


def stored_rows(x: Any) -> Any:
    """The kernel computes the row of the result that an iteration stores in place."""
    out = np.empty((len(x), *x.shape[1:3], 16), np.float32)
    for i in range(len(x)):
        out[i : i + 1] = conv(conv(x[i : i + 1], FIRST), SECOND)
    return out


def read_rows(x: Any) -> Any:
    """An iteration reads the row before the one that it stores, and what that was before."""
    out = np.ones((len(x) + 1, *x.shape[1:3], 16), np.float32)
    for i in range(len(x)):
        out[i + 1 : i + 2] = (
            conv(conv(x[i : i + 1], FIRST) + out[i : i + 1] * np.float32(0.1), ONE) + out[i + 1 : i + 2]
        )
    return out


def read_after(x: Any) -> Any:
    """An iteration reads the row that it stores, behind the store and before it."""
    out, total = np.ones((len(x), *x.shape[1:3], 16), np.float32), np.zeros((1, *x.shape[1:3], 16), np.float32)
    for i in range(len(x)):
        before = out[i : i + 1] * np.float32(2)
        out[i : i + 1] = conv(conv(x[i : i + 1], FIRST), ONE)
        total = total + before * out[i : i + 1]
    return out, total


def stored_twice(x: Any) -> Any:
    """Two stores to one row, which overlap."""
    out = np.empty((len(x), *x.shape[1:3], 16), np.float32)
    for i in range(len(x)):
        y = conv(x[i : i + 1], FIRST)
        out[i : i + 1] = conv(y, SECOND)
        out[i : i + 1, 2:5] = conv(y, ONE)[:, 1:4]
    return out


@pytest.mark.parametrize("function", [stored_rows, read_rows, read_after, stored_twice], ids=lambda one: one.__name__)
def test_rows_of_written_loops(function: Callable[[Any], Any]) -> None:
    compiled = jk.jit(function, strict=True)
    for batch in (2, 5):
        x = images(batch)
        compare(compiled(x), function(x))
    assert loops_of(compiled, x)
