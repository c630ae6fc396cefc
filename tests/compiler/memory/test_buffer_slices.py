"""Concatenations whose operands are computed in their part of the buffer: values, and that nothing is copied."""

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.attrs.convolution import Conv2DAttr, Conv2DPackedAttr
from jitkernels.attrs.pooling import AvgPool2DAttr, MaxPool2DAttr
from jitkernels.attrs.schema.registry import implementation
from jitkernels.attrs.winograd import Conv2DWinogradAttr

RNG = np.random.default_rng(7)
W3 = RNG.standard_normal((3, 3, 32, 24)).astype(np.float32)
WIDE = RNG.standard_normal((3, 3, 56, 40)).astype(np.float32)
DEPTHWISE = RNG.standard_normal((3, 3, 1, 32)).astype(np.float32)
TWO = RNG.standard_normal((3, 3, 32, 2)).astype(np.float32)


def normalized(x: Any) -> Any:
    return np.maximum(x * np.float32(0.5) + np.float32(0.25), np.float32(0))


def growing(x: Any) -> Any:
    """Two layers that append to what they read, as in a DenseNet."""
    first = jk.max_pool2d(x, 2)
    both = np.concatenate([first, jk.conv2d(normalized(first), W3, padding=1)], axis=-1)
    return normalized(np.concatenate([both, jk.conv2d(normalized(both), WIDE, padding=1)], axis=-1))


def branches(x: Any) -> Any:
    """Kernels of all kinds, as in an Inception module; a filter of two shares vectors among pixels elsewhere."""
    parts = [
        jk.conv2d(x, W3, padding=1, activation="relu"),
        jk.conv2d(x, W3, None, padding=1, dilation=1, activation="gelu"),
        jk.conv2d(x, DEPTHWISE, padding=1, groups=32),
        jk.max_pool2d(x, 3, stride=1, padding=1),
        jk.avg_pool2d(x, 3, stride=1, padding=1),
    ]
    return np.concatenate(parts, axis=-1) * np.float32(2)


def images(batch: int, size: int = 8) -> Any:
    return RNG.standard_normal((batch, size, size, 32)).astype(np.float32)


def check(function: Callable[..., Any], *arguments: Any, copies: int = 0, **options: Any) -> Any:
    """Compare a compiled function with the plain one, and count the loop nests that copy."""
    compiled = jk.jit(function, strict=True, **options)
    expected, got = function(*arguments), compiled(*arguments)
    same(got, expected)
    kernels = str(compiled.explain(*arguments)).splitlines()
    assert sum("loop nest: copy;" in line for line in kernels) == copies, "\n".join(kernels)
    return compiled


def same(got: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        assert len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            same(one, other)
        return
    np.testing.assert_allclose(got, expected, rtol=2e-4, atol=2e-4)
    assert np.asarray(got).strides == np.asarray(expected).strides


@pytest.mark.parametrize("batch", [1, 2, 3])
@pytest.mark.parametrize("function", [growing, branches])
@pytest.mark.parametrize("threads", [1, 2])
def test_kernels_write_in_place(function: Callable[..., Any], batch: int, threads: int) -> None:
    before = jk.get_num_threads()
    jk.set_num_threads(threads)
    try:
        compiled = check(function, images(batch, 16))
        for other in (1, 5):  # any batch, the same code for those of several images
            x = images(other, 16)
            same(compiled(x), function(x))
    finally:
        jk.set_num_threads(before)


def test_the_arena_has_each_growing_map_once() -> None:
    x = images(2, 32)
    compiled = check(growing, x)
    whole = 2 * 16 * 16 * 96 * 4
    assert compiled.stats().arena_bytes < 2 * whole + 1024


def _read_by_nests(x: Any) -> Any:
    part = jk.max_pool2d(x, 2)
    return (
        np.concatenate([part, normalized(part)], axis=-1) * np.float32(2),
        np.sum(part, axis=(1, 2)),
        part[:, ::2] + 1,
    )


def _read_by_a_kernel(x: Any) -> Any:
    part = jk.max_pool2d(x, 2)
    return np.concatenate([part, jk.conv2d(part, W3, padding=1)], axis=-1) * np.float32(2)


def _twice(x: Any) -> Any:
    part = jk.max_pool2d(x, 2)
    return np.concatenate([part, part], axis=-1) * np.float32(2)


def _operand_is_a_result(x: Any) -> Any:
    part = jk.max_pool2d(x, 2)
    return np.concatenate([part, jk.avg_pool2d(x, 2)], axis=-1) * np.float32(2), part


def _whole_is_a_result(x: Any) -> Any:
    return np.concatenate([jk.max_pool2d(x, 2), jk.avg_pool2d(x, 2)], axis=-1)


def _whole_and_part_of_it_are_results(x: Any) -> Any:
    inner = np.concatenate([jk.max_pool2d(x, 2), jk.avg_pool2d(x, 2)], axis=-1)
    return np.concatenate([inner, jk.max_pool2d(x, 2, stride=2)], axis=-1), inner


def _two_wholes(x: Any) -> Any:
    part, other = jk.max_pool2d(x, 2), jk.avg_pool2d(x, 2)
    return np.concatenate([part, other], -1) * np.float32(2), np.concatenate([other, part], -1) + np.float32(1)


def _along_rows(x: Any) -> Any:
    return np.concatenate([jk.max_pool2d(x, 2), jk.avg_pool2d(x, 2)], axis=1) * np.float32(2)


def _stacked(x: Any) -> Any:
    return np.stack([jk.max_pool2d(x, 2), jk.avg_pool2d(x, 2)], axis=0) * np.float32(2)


def _with_residual(x: Any) -> Any:
    part = jk.max_pool2d(x, 2)
    return np.concatenate([jk.conv2d(x, W3, None, x[..., :24] * 2, padding=1), np.exp(x)], axis=-1) + 1, part


def _wide(x: Any) -> Any:
    return np.concatenate([jk.max_pool2d(x, 2), np.ones((1, 1), x.dtype)[0] * jk.avg_pool2d(x, 2)], axis=-1) + 1


@pytest.mark.parametrize(
    ("function", "copies"),
    [
        (_read_by_nests, 0),
        (_read_by_a_kernel, 1),
        (_twice, 1),
        (_operand_is_a_result, 1),
        (_whole_is_a_result, 0),
        (_two_wholes, 1),
        (_stacked, 0),
        (_wide, 0),
    ],
)
@pytest.mark.parametrize("batch", [1, 2])
def test_other_readers(function: Callable[..., Any], copies: int, batch: int) -> None:
    check(function, images(batch), copies=copies)


@pytest.mark.parametrize("function", [_along_rows, _with_residual, _whole_and_part_of_it_are_results])
@pytest.mark.parametrize("batch", [1, 2])
def test_values(function: Callable[..., Any], batch: int) -> None:
    x = images(batch)
    same(jk.jit(function, strict=True)(x), function(x))


def test_out() -> None:
    x, out = images(2), np.empty((2, 4, 4, 64), np.float32)
    compiled = jk.jit(_whole_is_a_result, strict=True)
    assert compiled(x, out=out) is out
    same(out, _whole_is_a_result(x))


def test_few_filters() -> None:
    """Filters that would share vectors do not where they lie apart."""

    def function(x: Any) -> Any:
        return np.concatenate([jk.conv2d(x, TWO, padding=1), jk.max_pool2d(x, 3, stride=1, padding=1)], -1) + 1

    x = images(2)
    same(jk.jit(function, strict=True)(x), function(x))


def test_updates_of_the_whole_and_of_operands() -> None:
    def whole(x: Any) -> Any:
        part = jk.max_pool2d(x, 2)
        joined = np.concatenate([part, jk.avg_pool2d(x, 2)], axis=-1)
        joined[:, 0] = 7
        joined *= 2
        return joined, np.sum(part)

    def operand(x: Any) -> Any:
        part = jk.max_pool2d(x, 2)
        joined = np.concatenate([part, jk.avg_pool2d(x, 2)], axis=-1)
        part[:, 1:] = part[:, :-1]
        return joined * 2, part * 3

    def argument(x: Any) -> Any:
        joined = np.concatenate([jk.max_pool2d(x, 2), jk.avg_pool2d(x, 2)], axis=-1)
        x[:, :4, :4] = joined[..., 16:48]
        return np.sum(joined)

    for function in (whole, operand, argument):
        x = images(2)
        mine, theirs = x.copy(), x.copy()
        same(jk.jit(function, strict=True)(mine), function(theirs))
        np.testing.assert_allclose(mine, theirs, rtol=1e-5)


def test_orders_of_memory() -> None:
    def function(x: Any, y: Any) -> Any:
        left, right = np.tanh(x) / x.sum(axis=0), np.tanh(y) / y.sum(axis=0)
        joined = np.concatenate([left, right], axis=1)
        return joined, left.sum(axis=1), joined[:, ::2] * 2

    a, b = RNG.standard_normal((40, 48)) + 3, RNG.standard_normal((40, 64)) + 3
    for x in (a, np.asfortranarray(a)):
        for y in (b, np.asfortranarray(b)):
            same(jk.jit(function, strict=True)(x, y), function(x, y))


def test_operands_of_nests_that_others_read() -> None:
    """A scan cannot be fused, so it is an array, which others read in its place."""

    def function(x: Any) -> Any:
        sums = np.cumsum(x, axis=1)
        joined = np.concatenate([sums, x * 2, np.cumsum(sums, axis=0)], axis=1)
        return joined * 3, np.max(sums, axis=0), sums[:, ::-1] + joined[:, : sums.shape[1]]

    for shape in ((30, 40), (1, 40), (257, 33)):
        x = RNG.standard_normal(shape)
        same(jk.jit(function, strict=True)(x), function(x))


def test_empty_operands() -> None:
    def function(x: Any, y: Any) -> Any:
        sums = np.cumsum(x, axis=1)
        joined = np.concatenate([sums, np.cumsum(y, axis=1)], axis=1)
        return joined * 3, np.sum(sums)

    compiled = jk.jit(function, strict=True)
    for left, right in ((40, 0), (0, 40), (0, 0), (20, 30)):
        x, y = RNG.standard_normal((9, left)), RNG.standard_normal((9, right))
        same(compiled(x, y), function(x, y))


def test_memory_limit() -> None:
    """A step that computes a part of an array does not run again by itself, as the other parts would be lost."""
    filters = RNG.standard_normal((3, 3, 32, 32)).astype(np.float32) / 20

    def function(x: Any) -> Any:
        pools = [pool(x, 3, stride=1, padding=1) for pool in (jk.max_pool2d, jk.avg_pool2d)]
        joined = np.concatenate(pools, axis=-1)
        later = x * np.sum(np.exp(joined))
        for _ in range(3):
            later = jk.conv2d(np.tanh(jk.conv2d(later, filters, padding=1)), filters, padding=1)
        total = np.sum(later)
        return total, joined[..., 3:40] * total

    x = images(1, 16)
    unlimited = jk.jit(function, strict=True)
    expected = unlimited(x)
    needed = unlimited.stats().arena_bytes
    for limit in range(needed // 2, needed, needed // 8):
        try:
            got = jk.jit(function, memory_limit=limit)(x)
        except jk.errors.MemoryLimitError:
            continue
        same(got, expected)


def test_gradients() -> None:
    def loss(x: Any, w: Any) -> Any:
        part = jk.max_pool2d(x, 2)
        both = np.concatenate([part, jk.conv2d(normalized(part), w, padding=1)], axis=-1)
        return np.mean(normalized(both) ** 2)

    x = images(2)
    gradients = jk.jit(jk.grad(loss, argnums=(0, 1)))(x, W3)
    same(gradients, jk.jit(jk.grad(loss, argnums=(0, 1)), opt_level=0)(x, W3))


def test_tuned_nests(private_cache: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITKERNELS_CACHE_DIR", str(private_cache))
    monkeypatch.setenv("JITKERNELS_TUNE", "replay")
    compiled, x = jk.jit(growing, strict=True), images(2)
    compiled(x)
    compiled.tune(x, seconds=0.2)
    same(compiled(x), growing(x))


def _pitched() -> Sequence[Any]:
    schemas = (Conv2DAttr, Conv2DPackedAttr, Conv2DWinogradAttr, MaxPool2DAttr, AvgPool2DAttr)
    return [
        pytest.param(case.attr, id=f"{case.attr.name}-{case.name}")
        for schema in schemas
        for case in schema.sweep()
        if "ci" in case.tags
    ]


@pytest.mark.parametrize("attr", _pitched())
@pytest.mark.parametrize("more", [1, 16])
def test_pitched_kernels_leave_gaps_alone(attr: Any, more: int) -> None:
    """Whatever declares that it takes a pitch writes its columns, and nothing between them."""
    own = implementation(type(attr), "gen")
    if not own.source(attr, own.variants(attr)[0]).pitched:
        assert attr.has_residual
        return
    call: Any = jk.get_all_candidates(attr)["gen"]
    signature = attr.signature()
    arrays = signature.sample()
    call(*arrays)
    *inputs, y = arrays
    pitch = y.shape[-1] + more
    wide = np.full((*y.shape[:-1], pitch), np.nan, y.dtype)
    numbers = [pitch if name == "y_pitch" else value for name, value in signature.integers]
    function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * len(arrays), *[ctypes.c_int64] * len(numbers))(
        call.__self__.address
    )
    assert function(*(array.ctypes.data for array in (*inputs, wide)), *numbers) == 0
    assert np.isnan(wide[..., y.shape[-1] :]).all()
    tolerance = 1e-4 if attr.dtype == "float32" else 1e-12  # few filters are computed in another order
    np.testing.assert_allclose(wide[..., : y.shape[-1]], y, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("axes", [(1, 2), (2, 1), (1, 2, 1), (2, 1, 2), (3, 1), (1, 3)])
def test_parts_of_parts_along_several_axes(axes: Sequence[int], batch: int) -> None:
    """A part that lies in one piece in a concatenation need not do so where that is a part of another one."""

    def function(x: Any) -> Any:
        y = jk.conv2d(x, W3, padding=1)
        for axis in axes:
            other = np.ones([3 if i == axis else extent for i, extent in enumerate(y.shape)], np.float32)
            y = np.concatenate([other, y] if axis % 2 else [y, other], axis=axis)
        return y * np.float32(2)

    compiled, x = jk.jit(function, strict=True), images(batch)
    same(compiled(x), function(x))


def test_padded_results_of_kernels() -> None:
    def function(x: Any) -> Any:
        return np.pad(jk.conv2d(x, W3, padding=1), ((0, 0), (1, 0), (0, 2), (0, 0)), constant_values=1)

    for batch in (1, 2):
        compiled, x = jk.jit(function, strict=True), images(batch)
        same(compiled(x), function(x))


def scattered(past: Any, update: Any, begin: Any) -> Any:
    """A copy of a view of a copy with new rows: the part is stored behind the copy that it is a part of."""
    places = begin[:, None] + np.arange(update.shape[2])[None, :]
    result = past.copy()
    moved, new = np.moveaxis(result, 2, 1), np.moveaxis(update, 2, 1)
    moved[np.broadcast_to(np.arange(past.shape[0])[:, None], places.shape), places] = new
    return np.moveaxis(moved, 1, 2)


def written_back(x: Any, y: Any) -> Any:
    """Parts of copies of arguments, some of whose elements stay those of the copy."""
    whole = x.copy()
    whole[1:] = np.exp(y) * 2
    whole[:, 3:] = np.cumsum(whole[:, 3:], axis=1)
    return whole, whole.T + 1


@pytest.mark.parametrize("columns", [5, 16, 40])
def test_updates_of_copies(columns: int) -> None:
    rng = np.random.default_rng(0)
    past, update = rng.random((2, 1, 6, columns)), rng.random((2, 1, 2, columns))
    arguments = past, update, np.array([1, 3])
    np.testing.assert_array_equal(jk.jit(scattered, strict=True)(*arguments), scattered(*arguments))
    x, y = rng.random((4, columns)), rng.random((3, columns))
    for got, expected in zip(jk.jit(written_back, strict=True)(x, y), written_back(x, y), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12)
