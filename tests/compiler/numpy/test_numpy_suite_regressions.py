"""Regressions found by running NumPy's own tests through `jit`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jitted import agree, array, given, reasons

import jitkernels as jk


def test_compiled_code_reads_scalars_of_callouts() -> None:
    """They are no arrays, and compiled code reads memory."""
    agree(lambda a: np.logical_xor.reduce(a) + a, lambda: array(3, dtype="i4"))


def test_float_degrees_of_freedom() -> None:
    agree(lambda a, ddof: a.var(ddof=ddof), lambda: array(5), given(0.5), plain=True)
    agree(lambda a, ddof: a.var(ddof=ddof), lambda: array(5), given(1))


def test_numpy_int_indices_share_specializations() -> None:
    compiled = jk.jit(lambda a, i: a[i])
    a = array(50)
    for i in np.arange(-50, 50):
        assert compiled(a, i) == a[i]
    assert sum(map(len, compiled._specializations.values())) <= 5


def test_returned_views_are_views_of_the_argument() -> None:
    for function in (lambda a: a[()], lambda a: a[...], lambda a: a[1:, ::2].T):
        compiled: Any = jk.jit(function)
        a = array(3, 4)
        assert compiled(a).base is a
        assert not reasons(compiled)


@pytest.mark.parametrize(
    "function",
    [
        lambda a: np.clip(a, 2),
        lambda a: np.clip(a, 1, 2, max=3),
        lambda a: a.clip(2),
        lambda a: np.var(a, ddof=1, correction=2),
        lambda a: np.reshape(a, (True, -1)),
        lambda a: np.rot90(a, axes=(1, 1)),
        lambda a: np.zeros_like(a, order="F"),
        lambda a: (np.real(1), np.imag(2.5), np.iscomplexobj([1, 2j])),
        lambda a: np.add(3.0, 4.0, dtype="float32", casting="equiv"),
    ],
)
def test_errors_and_forms(function: Any) -> None:
    agree(function, lambda: array(3, 4))


@pytest.mark.parametrize("shape", [(3, 4), (1, 1), (), (1, 4), (4,)])
def test_outputs_of_reductions_have_the_shape_of_the_result(shape: tuple[int, ...]) -> None:
    agree(
        lambda a, out: np.add.reduce(a, axis=0, out=out),
        lambda: array(3, 4),
        lambda: np.empty(shape),
        plain=shape == (1, 4),
    )


def test_sums_with_a_signed_zero_initial_value() -> None:
    agree(lambda a: np.signbit(np.sum(a, initial=-0.0)), lambda: np.full(3, -0.0))
    agree(lambda a, first: np.sum(a, initial=first), lambda: array(3), given(2.5))


def test_vectors_of_different_sizes() -> None:
    agree(np.vecdot, lambda: array(3, 4), lambda: array(1))


def test_elements_reject_lists() -> None:
    def assigned(a: Any, value: Any) -> Any:
        a[0] = value
        return a

    for value in ([1], [1, 2], 3, np.float32(2), np.array(1.5)):
        agree(assigned, lambda: array(1), given(value), plain=value == [1])


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i1", "u1", "i8", "?"])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_argmax_and_argmin(name: str, dtype: str) -> None:
    """Ties resolve to the first, the first NaN comes before all, and an array of the least value has index 0."""
    function: Any = getattr(np, name)
    random = np.random.default_rng(0)
    for axis in (0, 1, None):
        compiled: Any = jk.jit(lambda x, axis=axis: function(x, axis=axis))
        for shape in ((3, 70), (70, 3), (2, 200), (33, 17)):
            plain = random.standard_normal(shape) * 3
            endless = np.where(random.random(shape) < 0.5, -np.inf, plain)
            kinds = [plain, np.round(plain), np.full(shape, 1.0), np.full(shape, 0.0)]
            if dtype[0] == "f":
                kinds += [endless, -endless, np.full(shape, -np.inf), np.full(shape, np.inf)]
                kinds += [np.where(random.random(shape) < 0.1, np.nan, plain)]
            for x in kinds:
                for one in (x.astype(dtype), np.asfortranarray(x.astype(dtype))):
                    np.testing.assert_array_equal(compiled(one), function(one, axis=axis))


@pytest.mark.parametrize("axis", [0, None])
def test_means_of_more_elements_than_float16_counts(axis: int | None) -> None:
    """Sums are divided by a count above the largest number of their type."""
    x = np.zeros((70_000, 2), "f2")
    x[:100], x[100:200] = 0.25, -0.25
    functions: tuple[Any, ...] = (
        lambda x: x.var(axis=axis),
        lambda x: x.std(axis=axis),
        lambda x: abs(x).mean(axis=axis, dtype="f2"),
    )
    for function in functions:
        expected = function(x)
        assert np.all(expected > 0)
        np.testing.assert_allclose(jk.jit(function)(x), expected, rtol=1e-2)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_argmax_of_narrow_ints_beyond_their_range(name: str, dtype: str) -> None:
    plain = getattr(np, name)
    function, least = jk.jit(lambda x: plain(x)), np.iinfo(dtype).min
    for size in (255 * 256 - 1, 255 * 256, 255 * 256 + 1, 2 * 255 * 256 + 300, 1_000_003):
        array = np.full(size, 7, dtype)
        assert function(array) == plain(array)
        for first in (0, 255, 65_278, size // 2, size - 1):
            for value in (least, 6, 8):
                array[...] = 7
                array[[first, size - 1]] = value
                assert function(array) == plain(array)
        array[...] = least if name == "argmax" else np.iinfo(dtype).max
        assert function(array) == 0


INTO: dict[str, Callable[[Any, Any], Any]] = {
    "argmax": lambda x, out: np.argmax(x, axis=0, out=out),
    "argmin": lambda x, out: np.argmin(x, axis=-1, out=out, keepdims=True),
    "sum": lambda x, out: x.sum(axis=0, out=out),
    "std": lambda x, out: x.std(axis=-1, out=out),
    "cumsum": lambda x, out: x.cumsum(axis=0, out=out),
    "take": lambda x, out: np.take(x, 1, axis=0, out=out),
    "concatenate": lambda x, out: np.concatenate([x[:1], x[1:]], out=out),
    "dot": lambda x, out: np.dot(x, x.T, out=out),
    "add": lambda x, out: np.add(x, 1, out=out),
}


@pytest.mark.parametrize("name", INTO)
def test_out_shapes_are_checked_as_in_numpy(name: str) -> None:
    x = np.arange(12.0).reshape(3, 4)
    function: Any = jk.jit(INTO[name])
    for shape in ((), (1,), (3,), (4,), (1, 4), (3, 1), (3, 3), (3, 4), (1, 3, 4), (2, 3, 3)):
        for dtype in ("float64", "int64"):
            found = []
            for one in (function.__wrapped__, function):
                try:
                    found.append(one(x, np.zeros(shape, dtype)).shape)
                except (TypeError, ValueError, DeprecationWarning) as error:
                    kinds = TypeError, ValueError, DeprecationWarning
                    found.append(next(kind for kind in kinds if isinstance(error, kind)))
            assert found[0] == found[1], (shape, dtype)


def test_an_unknown_extent_beside_equal_ones() -> None:
    """One of two equal extents is that of the array, and both divide the number of elements."""
    for exact in (False, True):
        compiled: Any = jk.jit(lambda x: np.reshape(x, (2, -1, 2)) + 1, exact_sizes=exact, strict=True)
        assert compiled(np.ones((2, 3, 4))).shape == (2, 6, 2)
        square: Any = jk.jit(lambda x: np.reshape(x, (len(x), -1, len(x))) + 1, exact_sizes=exact, strict=True)
        assert square(np.ones((20, 3, 40))).shape == (20, 6, 20)
