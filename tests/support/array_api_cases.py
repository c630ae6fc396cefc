"""Arguments for the functions of the Array API standard, and how results are compared with NumPy's."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.xp import array_object, dispatch, elementwise_functions, expression


@pytest.fixture
def all_lazy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Record functions of arrays of any size, and compile each expression at its first evaluation."""
    for module in (array_object, dispatch, elementwise_functions):
        monkeypatch.setattr(module, "MIN_LAZY_ELEMENTS", 0)
    monkeypatch.setattr(expression, "COMPILED_AT_ONCE", 0)


class Case(NamedTuple):
    """A call. `expected`: what computes the result, where NumPy has no function of that name and meaning."""

    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    expected: Callable[..., Any] | None = None
    tolerance: float = 16.0


def case(*arguments: Any, expected: Any = None, tolerance: float = 16.0, **keywords: Any) -> Case:
    return Case(arguments, keywords, expected, tolerance)


_random = np.random.default_rng(0)
_real = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.75, 2.5, 3.5, -2.5, 7.25, 100.0, np.inf, -np.inf, np.nan, 1e-30, 1e30])
_whole = np.array([0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 31, 63, 64, 100, 120, 127])
_complex = _random.standard_normal(16) + 1j * _random.standard_normal(16)
SAMPLES = [
    np.arange(16) % 3 == 0,
    *(_whole.astype(f"uint{bits}") for bits in (8, 16, 32, 64)),
    *((_whole - (_whole % 2) * 2 * _whole).astype(f"int{bits}") for bits in (8, 16, 32, 64)),
    _real.astype(np.float32),
    _real,
    _complex.astype(np.complex64),
    _complex,
]
"""Vectors of 16 elements of all dtypes, special values among them."""


def operands_of(name: str, sample: Any, count: int) -> list[Any]:
    """Operands of an elementwise function of `count` of them."""
    if count == 1:
        return [sample]
    other = sample[::-1].copy()
    if name == "pow" and sample.dtype.kind in "iu":
        other = (np.abs(other) % 3).astype(sample.dtype)
    if "shift" in name and sample.dtype.kind in "iu":
        other = (np.abs(other) % 7).astype(sample.dtype)
    return [sample, other]


def same(found: Any, expected: Any, tolerance: float = 16.0) -> None:
    """Compare results, tuples of them, too, with NumPy's: dtypes, shapes, and values within `tolerance` ulp."""
    if isinstance(expected, tuple | list):
        assert isinstance(found, tuple | list)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other, tolerance)
        return
    if not isinstance(expected, np.ndarray | np.generic):
        assert found == expected
        return
    assert type(found) is jk.xp.Array
    expected = np.asarray(expected)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    values = np.asarray(found)
    assert values.dtype == expected.dtype
    if expected.dtype.kind in "fc":
        unit = float(np.finfo(expected.dtype).eps)
        scale = (
            np.max(np.abs(expected), initial=0.0, where=np.isfinite(expected)) if expected.dtype.kind == "c" else 0.0
        )
        np.testing.assert_allclose(
            values, expected, rtol=tolerance * unit, atol=tolerance * unit * float(scale) + 1e-42
        )
    else:
        np.testing.assert_array_equal(values, expected)


x34 = _random.standard_normal((3, 4))
y34 = _random.standard_normal((3, 4)).astype(np.float32)
whole34 = _random.integers(-5, 6, (3, 4))
square = _random.standard_normal((2, 4, 4)) + 4 * np.eye(4)
definite = square @ np.swapaxes(square, -1, -2)
vector, many = _random.standard_normal(9), _random.integers(0, 4, 20)
three = _random.standard_normal((2, 3))
pairs = _random.standard_normal((3, 8)) + 1j * _random.standard_normal((3, 8))


def _sorted_down(x: Any, axis: int = -1, **_: Any) -> Any:
    return np.flip(np.sort(x, axis=axis), axis)


def _frequencies(n: int, dtype: Any) -> Any:
    return np.fft.fftfreq(n).astype(dtype)


def _stable(x: Any) -> Any:
    return np.argsort(x, stable=True)


def _stable_down(x: Any, axis: int = -1, **_: Any) -> Any:
    return np.argsort(-x, axis=axis, stable=True)


CASES: dict[str, list[Case]] = {
    "argmax": [case(x34), case(x34, axis=0), case(y34, axis=1), case(whole34, axis=1, keepdims=True), case(vector)],
    "argmin": [case(x34), case(x34, axis=0), case(whole34, axis=1, keepdims=True)],
    "argsort": [
        case(x34), case(many, expected=_stable), case(many, descending=True, expected=_stable_down), case(x34, axis=0),
    ],
    "arange": [case(5), case(2, 7, 2), case(0.0, 1.0, 0.25), case(3, dtype=np.float32)],
    "asarray": [case(x34), case([1, 2, 3]), case(2.5), case([[True]]), case(x34, dtype=np.float32)],
    "astype": [case(x34, np.float32), case(whole34, np.float64), case(y34, np.int32), case(whole34, np.bool)],
    "broadcast_arrays": [case(x34, x34[0])],
    "broadcast_to": [case(x34[0], (2, 4))],
    "can_cast": [case(np.int8, np.int16), case(np.float64, np.float32)],
    "clip": [
        case(x34, -0.5, 0.5), case(whole34, -2, 2),
        case(whole34.astype(np.int8), -1000, 3, expected=lambda x, a, b: x.clip(-128, 3)),
        case(x34, max=0.0), case(x34, y34.astype(float), None), case(x34),
    ],
    "concat": [case([x34, x34]), case((x34, x34), axis=1), case([x34, y34], axis=None), case([whole34, whole34])],
    "count_nonzero": [
        case(whole34, expected=lambda x: np.asarray(np.count_nonzero(x))), case(whole34, axis=0),
        case(x34, axis=1, keepdims=True),
    ],
    "cumulative_prod": [case(vector), case(x34, axis=1), case(whole34, axis=0, include_initial=True)],
    "cumulative_sum": [
        case(vector), case(y34, axis=0), case(x34, axis=1), case(whole34, axis=1), case(vector, include_initial=True),
        case(vector, dtype=np.float32),
    ],
    "diff": [case(vector), case(x34, axis=0, n=2), case(vector, prepend=vector[:2], append=vector[:1])],
    "empty": [],
    "empty_like": [],
    "expand_dims": [case(x34, axis=1)],
    "eye": [case(3), case(2, 4, k=1), case(3, dtype=np.int8)],
    "finfo": [],
    "flip": [case(x34), case(x34, axis=0)],
    "from_dlpack": [case(x34)],
    "full": [case((2, 2), 3), case(4, 1.5), case((), True), case((2,), 1, dtype=np.complex64)],
    "full_like": [case(y34, 2.0)],
    "iinfo": [],
    "imag": [case(pairs)],
    "isdtype": [case(np.dtype(np.int8), "integral"), case(np.dtype(float), ("bool", "numeric"))],
    "isin": [case(many, np.array([1, 3])), case(many, np.array([2]), invert=True)],
    "linspace": [case(0.0, 1.0, 5), case(0, 10, 4, endpoint=False), case(1.0, 2.0, 3, dtype=np.float32)],
    "matmul": [
        case(x34, x34.T.copy(), tolerance=64), case(y34, y34.T.copy(), tolerance=64), case(x34, x34[0], tolerance=64),
        case(square, square, tolerance=64), case(whole34, whole34.T), case(pairs, pairs.T, tolerance=64),
    ],
    "matrix_transpose": [case(x34), case(square)],
    "meshgrid": [case(vector[:3], vector[:2]), case(vector[:3], vector[:2], indexing="ij")],
    "moveaxis": [case(square, 0, -1)],
    "nonzero": [case(whole34)],
    "ones": [case((2, 3)), case(3, dtype=np.int16)],
    "ones_like": [case(y34)],
    "permute_dims": [case(square, (2, 0, 1))],
    "real": [case(pairs)],
    "repeat": [case(x34, 2), case(x34, np.array([1, 2, 3]), axis=0)],
    "reshape": [case(x34, (2, 6)), case(x34, (-1,), copy=True)],
    "result_type": [case(np.int8, np.float32), case(x34, y34), case(y34, 1.0)],
    "roll": [case(x34, 1), case(x34, (1, 2), axis=(0, 1))],
    "round": [case(np.array([0.5, 1.5, -2.5, 2.4])), case(whole34), case(pairs)],
    "searchsorted": [case(np.sort(vector), vector), case(np.sort(vector), vector, side="right")],
    "sort": [
        case(x34), case(y34, axis=0), case(whole34), case(x34, descending=True, expected=_sorted_down),
        case(np.array([np.nan, 1.0, -0.0, 0.0, -np.inf])),
    ],
    "squeeze": [case(x34[None], axis=0)],
    "stack": [case([x34, x34]), case((x34, x34), axis=-1)],
    "take": [case(vector, np.array([0, 3])), case(x34, np.array([1, 0]), axis=1)],
    "take_along_axis": [case(x34, np.array([[0, 1], [2, 3], [1, 1]]), axis=1)],
    "tensordot": [case(x34, x34.T.copy(), axes=1, tolerance=64), case(x34, x34, axes=((0, 1), (0, 1)), tolerance=64)],
    "tile": [case(x34, (2, 1))],
    "tril": [case(x34), case(square, k=1)],
    "triu": [case(x34), case(square, k=-1)],
    "unique_all": [case(many)],
    "unique_counts": [case(many)],
    "unique_inverse": [case(many)],
    "unique_values": [case(many), case(np.array([np.nan, 1.0, np.nan]))],
    "unstack": [case(x34), case(x34, axis=1)],
    "vecdot": [case(x34, x34, tolerance=64), case(pairs, pairs, tolerance=64)],
    "where": [case(x34 > 0, x34, y34), case(x34 > 0, x34, 0.0), case(whole34 > 0, whole34, 0)],
    "zeros": [case((2, 3)), case((), dtype=np.bool)],
    "zeros_like": [case(whole34)],
    "linalg.cholesky": [case(definite, tolerance=1e4), case(definite, upper=True, tolerance=1e4)],
    "linalg.cross": [case(three, three[::-1].copy(), tolerance=1e3)],
    "linalg.det": [case(square, tolerance=1e4)],
    "linalg.diagonal": [case(square), case(square, offset=1)],
    "linalg.eigh": [case(definite, tolerance=1e6)],
    "linalg.eigvalsh": [case(definite, tolerance=1e4)],
    "linalg.inv": [case(square, tolerance=1e5)],
    "linalg.matmul": [case(x34, x34.T.copy(), tolerance=64)],
    "linalg.matrix_norm": [case(square, tolerance=64), case(square, ord="nuc", keepdims=True, tolerance=1e3)],
    "linalg.matrix_power": [case(square, 3, tolerance=1e3)],
    "linalg.matrix_rank": [case(square), case(definite, rtol=1e-3)],
    "linalg.matrix_transpose": [case(square)],
    "linalg.outer": [case(vector, vector[:3])],
    "linalg.pinv": [case(x34, tolerance=1e5)],
    "linalg.qr": [case(square, tolerance=1e6), case(x34, mode="complete", tolerance=1e6)],
    "linalg.slogdet": [case(square, tolerance=1e4)],
    "linalg.solve": [case(square, square, tolerance=1e6)],
    "linalg.svd": [case(x34, tolerance=1e6), case(x34, full_matrices=False, tolerance=1e6)],
    "linalg.svdvals": [case(x34, tolerance=1e4)],
    "linalg.tensordot": [case(x34, x34.T.copy(), axes=1, tolerance=64)],
    "linalg.trace": [case(square, tolerance=64), case(whole34, offset=1), case(y34, dtype=np.float64, tolerance=64)],
    "linalg.vecdot": [case(x34, x34, tolerance=64)],
    "linalg.vector_norm": [
        case(vector, tolerance=64), case(x34, axis=1, ord=1, tolerance=64), case(x34, ord=np.inf, keepdims=True),
    ],
    "fft.fft": [case(pairs, tolerance=256), case(pairs, n=5, axis=0, tolerance=256),
        case(pairs, norm="ortho", tolerance=256)],
    "fft.ifft": [case(pairs, tolerance=256)],
    "fft.fftn": [case(pairs, tolerance=256), case(pairs, s=(2, 4), axes=(0, 1), tolerance=256)],
    "fft.ifftn": [case(pairs, tolerance=256)],
    "fft.rfft": [case(x34, tolerance=256), case(y34, tolerance=256)],
    "fft.irfft": [case(pairs, tolerance=2048)],
    "fft.rfftn": [case(x34, tolerance=256)],
    "fft.irfftn": [case(pairs, tolerance=2048)],
    "fft.hfft": [case(pairs, tolerance=2048)],
    "fft.ihfft": [case(x34, tolerance=256)],
    "fft.fftfreq": [case(8), case(5, d=0.5), case(6, dtype=np.float32, expected=_frequencies)],
    "fft.rfftfreq": [case(8), case(5, d=0.5)],
    "fft.fftshift": [case(vector), case(x34, axes=(0,))],
    "fft.ifftshift": [case(vector)],
}  # fmt: skip
"""By name: calls whose results are compared with those of NumPy's function of that name."""
