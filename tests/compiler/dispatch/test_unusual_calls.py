"""Unusual calls: every form of argument, outputs that overlap arguments, and errors inside."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import Failures
from random_programs import LAYOUTS, laid_out

import jitkernels as jk
from jitkernels.errors import ArgumentError, ArgumentTypeError

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "elementwise": lambda x, y: x * y + x,
    "rows": lambda x, y: (x - x.mean(-1, keepdims=True)) * y if x.ndim else x * y,
    "several": lambda x, y: (x + y, x.sum(), x.max(initial=0)),
    "neighbours": lambda x, y: x[..., 1:] - x[..., :-1] if x.ndim else x - y,
    "choice": lambda x, y: np.where(x > y, x, y),
    "transposed": lambda x, y: (x.T + 1).T * y,
    "write": lambda x, y: np.add(x, y, out=np.empty(np.shape(x + y), np.result_type(x, y))),
}
SHAPES = (), (0,), (1,), (7,), (1, 1), (3, 0), (3, 1), (1, 5), (4, 6), (2, 3, 4)
DTYPES = "float64", "float32", "float16", "int64", "int8", "uint8", "bool"


def same(got: Any, right: Any, what: str) -> None:
    if isinstance(right, tuple):
        assert isinstance(got, tuple), what
        for one, other in zip(got, right, strict=True):
            same(one, other, what)
        return
    assert type(got) is type(right), what
    assert np.asarray(got).dtype == np.asarray(right).dtype, what
    assert np.shape(got) == np.shape(right), what
    np.testing.assert_allclose(np.asarray(got, "f8"), np.asarray(right, "f8"), rtol=2e-3, atol=1e-2, err_msg=what)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_some_forms_of_arguments(name: str) -> None:
    forms(name, profile=len(name) % 2 == 0, every=23)


@pytest.mark.full
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("profile", [False, True])
def test_every_form_of_argument(name: str, profile: bool) -> None:
    forms(name, profile=profile, every=1)


def forms(name: str, *, profile: bool, every: int) -> None:
    """With a profile, calls go through Python; without one, compiled code calls Python where it has to."""
    number = 0
    function, compiled, failures = FUNCTIONS[name], jk.jit(FUNCTIONS[name], profile=profile), Failures()
    others: tuple[Any, ...] = (2, 0.5, True, np.float32(3), np.int8(2))
    with np.errstate(all="ignore"):
        for dtype in DTYPES:
            for shape in SHAPES:
                values = (np.arange(np.prod(shape)).reshape(shape) % 5).astype(dtype)
                for layout in sorted(set(LAYOUTS)):
                    number += 1
                    if number % every:
                        continue
                    x = laid_out(values, layout)
                    y = others[(len(shape) + len(layout)) % len(others)] if len(layout) % 2 else x
                    what = f"{name}: {dtype}{shape}, {layout}, {repr(y) if np.isscalar(y) else 'itself'}"
                    with failures.gathered(what):
                        attempt(compiled, function, x, y, what)
    failures.tell()


def attempt(compiled: Any, function: Any, x: Any, y: Any, what: str) -> None:
    before = x.copy()
    try:
        right = function(x, y)
    except Exception as error:  # noqa: BLE001  # whatever NumPy refuses
        for _ in range(2):
            with pytest.raises(type(error)):
                compiled(x, y)
        return
    for _ in range(2):
        same(compiled(x, y), right, what)
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("name", ["elementwise", "rows", "choice", "transposed", "shifted"])
def test_arguments_that_are_outputs(name: str) -> None:
    """Results are computed from the contents before the call."""
    function: Any = {**FUNCTIONS, "shifted": lambda x, y: x[::-1] + y[:, ::-1]}[name]
    compiled: Any = jk.jit(function)
    views: dict[str, Callable[[Any], Any]] = {
        "itself": lambda base: base[1:6],
        "reversed": lambda base: base[5:0:-1],
        "before": lambda base: base[:5],
        "behind": lambda base: base[2:7],
        "transposed": lambda base: base[1:6, 1:6].T,
        "apart": lambda base: base.copy()[1:6],
    }
    for view, make in views.items():
        for _ in range(2):
            bases = [np.arange(49.0).reshape(7, 7) for _ in range(2)]
            x, out = bases[0][1:6], make(bases[0])
            if view == "transposed":
                x = bases[0][1:6, 1:6]
            y = np.ones_like(x)
            right = function(x.copy(), y)
            assert compiled(x, y, out=out) is out
            np.testing.assert_allclose(out, right, err_msg=view)


def test_outputs_that_do_not_fit_are_rejected() -> None:
    compiled: Any = jk.jit(lambda x: x + 1)
    x = np.arange(4.0)
    for _ in range(2):
        for out, error in (
            (np.empty(5), ArgumentError),
            ([1], ArgumentTypeError),
            ((np.empty(4), np.empty(4)), ArgumentError),
        ):
            with pytest.raises(error, match="out: expected"):
                compiled(x, out=out)
        with pytest.raises((TypeError, ValueError)):
            compiled(x, out=np.empty(4, "i8"))
        assert compiled(x, out=None)[0] == 1
        assert compiled(x, out=np.empty(4, "f4")).dtype == "f4"
        assert compiled(x, out=np.empty(8)[::2])[3] == 4


class OurError(Exception):
    pass


def fails(x: Any, y: Any, how: str = "") -> Any:
    z = x + y
    if how == "raise":
        raise OurError("inside")
    if how == "index":
        return z[len(z)]
    if how == "reshape":
        return z.reshape(len(z) + 1)
    if how == "zero":
        return z * (1 / (len(z) - len(z)))
    return z


def test_exceptions_of_the_function_are_raised() -> None:
    compiled: Any = jk.jit(fails)
    x, y = np.arange(4.0), np.arange(4.0)
    for _ in range(3):
        for how, error in (
            ("raise", OurError),
            ("index", IndexError),
            ("reshape", ValueError),
            ("zero", ZeroDivisionError),
        ):
            with pytest.raises(error) as raised:
                compiled(x, y, how)
            with pytest.raises(error) as expected:
                fails(x, y, how)
            assert str(raised.value) == str(expected.value)
        with pytest.raises(ValueError, match="broadcast"):
            compiled(x, np.arange(3.0))
        with pytest.raises(TypeError):
            compiled(x)
        with pytest.raises(TypeError):
            compiled(x, y, z=1)
        np.testing.assert_array_equal(compiled(x, y), x + y)


def test_floating_point_errors_raise_under_errstate() -> None:
    """NumPy computes where errors are to be raised."""
    compiled: Any = jk.jit(lambda x: np.log(x) / x + x**3)
    x = np.array([0.0, -1.0, 1e300, np.inf])
    with np.errstate(all="ignore"):
        right = np.log(x) / x + x**3
        for _ in range(3):
            np.testing.assert_array_equal(compiled(x), right)
    with np.errstate(all="raise"):
        for _ in range(3):
            with pytest.raises(FloatingPointError):
                compiled(x)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(compiled(x), right)
