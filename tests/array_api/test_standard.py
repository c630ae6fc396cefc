"""What the Array API standard says and NumPy does not do, or not by its functions: signatures, limits, special values.

Found by data-apis/array-api-tests, which is no package: docs/array_api.md says how to run it on `jk.xp`.
"""

import inspect
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from array_api_cases import all_lazy

import jitkernels as jk

pytestmark = pytest.mark.per_push

xp = jk.xp
__all__ = ["all_lazy"]
METHODS = ("__array_namespace__", "__dlpack__", "__dlpack_device__", "__getitem__", "__setitem__", "to_device")
NAMED = {
    **xp.FUNCTIONS,
    **{f"linalg.{name}": getattr(xp.linalg, name) for name in xp.linalg.__all__},
    **{f"fft.{name}": getattr(xp.fft, name) for name in xp.fft.__all__},
    **{f"Array.{name}": getattr(xp.Array, name) for name in METHODS},
}
VARIADIC = ("broadcast_arrays", "meshgrid", "result_type")
"""Functions of any number of arrays."""
ALLOWED = Path(__file__).parent / "array_api_tests_xfails.txt"


@pytest.mark.parametrize("name", sorted(NAMED))
def test_signatures_name_their_parameters(name: str) -> None:
    """So that others can ask for them, as libraries do of `__dlpack__`."""
    kinds = [one.kind for one in inspect.signature(NAMED[name]).parameters.values()]
    assert inspect.Parameter.VAR_KEYWORD not in kinds
    assert (inspect.Parameter.VAR_POSITIONAL in kinds) == (name in VARIADIC)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_limits_of_floating_dtypes_are_python_numbers(dtype: Any) -> None:
    expected = np.finfo(dtype)
    for given in (dtype, np.dtype(dtype), np.ones(2, dtype), xp.ones(2, dtype=dtype)):
        found = xp.finfo(given)
        assert type(found.bits) is int
        assert found.bits == expected.bits
        for name in ("eps", "max", "min", "smallest_normal"):
            assert type(getattr(found, name)) is float
            assert getattr(found, name) == getattr(expected, name)
        assert found.dtype == expected.dtype
    with pytest.raises(ValueError, match="int32"):
        xp.finfo(xp.int32)


@pytest.mark.parametrize("dtype", [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)])
def test_limits_of_integer_dtypes_are_python_numbers(dtype: str) -> None:
    expected = np.iinfo(dtype)
    for given in (getattr(xp, dtype), np.dtype(dtype), np.ones(2, dtype), xp.ones(2, dtype=dtype)):
        found = xp.iinfo(given)
        assert [type(one) for one in found[:3]] == [int, int, int]
        assert (*found,) == (expected.bits, expected.max, expected.min, expected.dtype)


INF, NAN = math.inf, math.nan
EXPM1 = [
    (complex(0.0, 0.0), complex(0.0, 0.0)), (complex(-0.0, 0.0), complex(0.0, 0.0)),
    (complex(1.0, INF), complex(NAN, NAN)), (complex(1.0, NAN), complex(NAN, NAN)),
    (complex(INF, 0.0), complex(INF, 0.0)), (complex(-INF, 1.0), complex(-1.0, 0.0)),
    (complex(INF, 1.0), complex(INF, INF)), (complex(-INF, INF), complex(-1.0, 0.0)),
    (complex(INF, INF), complex(INF, NAN)), (complex(-INF, NAN), complex(-1.0, 0.0)),
    (complex(INF, NAN), complex(INF, NAN)), (complex(NAN, 0.0), complex(NAN, 0.0)),
    (complex(NAN, 1.0), complex(NAN, NAN)), (complex(NAN, NAN), complex(NAN, NAN)),
]  # fmt: skip
"""The special values of the standard. Signs of infinities beside NaN are not specified."""


@pytest.mark.parametrize("is_lazy", [False, True])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_expm1_of_special_complex_numbers(dtype: Any, is_lazy: bool, request: pytest.FixtureRequest) -> None:
    if is_lazy:
        request.getfixturevalue("all_lazy")
    usual = [1e-9 + 1e-9j, 0.5 - 2j, -3 + 1j]
    x = np.array([one for one, _ in EXPM1] + usual, dtype)
    expected = np.array([one for _, one in EXPM1] + [*np.expm1(np.array(usual, dtype))], dtype)
    with np.errstate(all="ignore"):
        found = np.asarray(xp.expm1(xp.asarray(x)))
    assert found.dtype == dtype
    tolerance = 4 * float(np.finfo(dtype).eps)
    np.testing.assert_allclose(found.real, expected.real, rtol=tolerance)
    np.testing.assert_allclose(found.imag, expected.imag, rtol=tolerance)


def test_allowed_failures_are_numpys() -> None:
    """What the list of allowed failures says of NumPy still holds: else NumPy changed, and entries can go."""
    names = [line.partition("[")[2].partition("(")[0] for line in ALLOWED.read_text().splitlines() if "::" in line]
    assert sorted(set(names)) == ["__floordiv__", "__ifloordiv__", "floor_divide", "sqrt", "tanh"]
    x = np.array([INF, -INF, 1.0, -1.0])
    y = np.array([1.0, 1.0, -INF, INF])
    with np.errstate(all="ignore"):
        for array in (x, xp.asarray(x)):
            np.testing.assert_array_equal(array // y, [NAN, NAN, -1.0, -1.0])
        for space in (np, xp):
            root, tangent = (getattr(space, name)(space.asarray(complex(INF, 2.0))) for name in ("sqrt", "tanh"))
            assert complex(root) == complex(INF, 0.0)
            assert math.copysign(1.0, complex(tangent).imag) == math.copysign(1.0, math.sin(4.0))
