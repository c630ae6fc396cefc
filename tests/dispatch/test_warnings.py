"""Floating-point warnings and errors of every float function, in every form of a call, are those of NumPy."""

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import Failures
from test_fp_flags import UFUNCS

import jitkernels as jk
from jitkernels.compiler.dispatch import fp_warnings

SIZE, PLACE = 19, 5
ONE = (1.0, -1.5, 0.5, 0.0, -0.0, -1.0, 89.0, 800.0, -800.0, -1e9, 1e-30, np.inf, -np.inf, np.nan)
TWO = (1.0, 2.5, -1.5, 0.0, -0.0, 800.0, -1e9, np.inf, -np.inf, np.nan)
QUIRKS: dict[str, Callable[..., bool]] = {
    "power": lambda x, y, biggest: (abs(x) == biggest and y == np.inf) or (x == 0 and y == -np.inf)
}
"""Where NumPy's code warns of what is no failure, on all processors or on those with AVX-512."""


def numbers(ufunc: Any, dtype: str) -> list[tuple[float, ...]]:
    info = np.finfo(dtype)
    ends = [float(one) for one in (info.max, -info.max, info.tiny, info.smallest_subnormal)]
    return [*itertools.product((*(ONE if ufunc.nin == 1 else TWO), *ends), repeat=ufunc.nin)]


def arrays(name: str, given: tuple[float, ...], dtype: str) -> list[Any]:
    """Of numbers for which no function fails, but for one place."""
    made = [np.full(SIZE, 1.5 if name == "arccosh" else 0.5, dtype) for _ in given]
    for array, number in zip(made, given, strict=True):
        array[PLACE] = number
    return made


def forms(ufunc: Any) -> dict[str, tuple[Callable[..., Any], bool]]:
    """Functions, and whether they overwrite their first argument."""
    if ufunc.nin == 1:

        def plain(x: Any) -> Any:
            return ufunc(x)

        def assigned(x: Any) -> None:
            x[...] = ufunc(x)

        def out(x: Any) -> None:
            ufunc(x, out=x)

    else:

        def plain(x: Any, y: Any) -> Any:  # type: ignore[misc]  # one of two
            return ufunc(x, y)

        def assigned(x: Any, y: Any) -> None:  # type: ignore[misc]
            x[...] = ufunc(x, y)

        def out(x: Any, y: Any) -> None:  # type: ignore[misc]
            ufunc(x, y, out=x)

    return {"plain": (plain, False), "assigned": (assigned, True), "out": (out, True)}


def warned(function: Callable[..., Any], *args: Any) -> list[tuple[str, int]]:
    """Texts, in order of the alphabet, and lines."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        function(*args)
    return sorted((str(one.message), one.lineno) for one in found)


@pytest.mark.parametrize("form", ["plain", "assigned", "out"])
@pytest.mark.parametrize("name", UFUNCS)
def test_warnings_match_numpy(name: str, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fp_warnings, "FUTILE_RERUNS", 10**6)  # or else many spurious flags hide a later warning
    ufunc, failures = UFUNCS[name], Failures()
    function, overwrites = forms(ufunc)[form]
    for dtype in ("float32", "float64"):
        compiled, biggest = jk.jit(function), float(np.finfo(dtype).max)
        for _ in range(3):
            compiled(*arrays(name, (0.5 if name != "arccosh" else 1.5,) * ufunc.nin, dtype))
        for given in numbers(ufunc, dtype):
            if name in QUIRKS and QUIRKS[name](*given, biggest):
                continue
            expected = warned(function, *arrays(name, given, dtype))
            if overwrites:  # where nobody knows the line any more: so this is of compiled code
                expected = [(text, function.__code__.co_firstlineno) for text, _ in expected]
            with failures.gathered(f"{dtype} {given}"):
                assert warned(compiled, *arrays(name, given, dtype)) == expected
    failures.tell()


def of_all_sizes(dtype: str, step: int) -> list[float]:
    """Numbers with each of some exponents, the largest among them, of both signs."""
    info = np.finfo(dtype)
    powers = np.ldexp(
        np.array(1.0, dtype), [*range(info.minexp, info.maxexp - 3, step), *range(info.maxexp - 3, info.maxexp)]
    )
    sizes = [*(float(one * times) for one in powers for times in (1.0, 1.9)), float(info.max)]
    return [sign * size for size in sizes for sign in (1, -1)]


@pytest.mark.parametrize("name", sorted(UFUNCS))
def test_warnings_of_numbers_of_all_sizes_match_numpy(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fp_warnings, "FUTILE_RERUNS", 10**6)
    ufunc, failures = UFUNCS[name], Failures()
    function, _ = forms(ufunc)["assigned"]
    for dtype in ("float32", "float64"):
        compiled, biggest = jk.jit(function), float(np.finfo(dtype).max)
        found = of_all_sizes(dtype, (7 if ufunc.nin == 1 else 59) * np.dtype(dtype).itemsize // 4)
        for given in itertools.product(found, repeat=ufunc.nin):
            if name in QUIRKS and QUIRKS[name](*given, biggest):
                continue
            expected = {text for text, _ in warned(function, *arrays(name, given, dtype))}
            with failures.gathered(f"{dtype} {given}"):
                assert {text for text, _ in warned(compiled, *arrays(name, given, dtype))} == expected
    failures.tell()


CHOSEN: dict[str, Callable[..., Any]] = {
    "assigned": lambda x: x.__setitem__(x > 0, np.log(x[x > 0])),
    "in place": lambda x: x.__setitem__(x > 0, 1 / x[x > 0]),
    "where": lambda x: np.log(x, out=x, where=x > 0),
}


@pytest.mark.parametrize("name", CHOSEN)
def test_masked_out_elements_do_not_warn(name: str) -> None:
    compiled = jk.jit(CHOSEN[name])
    for number in (0.0, -1.0, 2.0):
        for _ in range(2):
            array = np.full(SIZE, 0.5)
            array[PLACE] = number
            expected = array.copy()
            CHOSEN[name](expected)
            assert warned(compiled, array) == []
            np.testing.assert_allclose(array, expected)


def test_warnings_of_code_without_a_module() -> None:
    names: dict[str, Any] = {"np": np}
    exec("def function(x):\n    x[...] = np.log1p(x)", names)  # as in a console or a notebook
    compiled = jk.jit(names["function"])
    for _ in range(2):
        assert [text for text, _ in warned(compiled, np.full(SIZE, -2.0))] == ["invalid value encountered in log1p"]


def raised(function: Callable[..., Any], *args: Any) -> str:
    try:
        function(*args)
    except FloatingPointError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("form", ["plain", "assigned", "out"])
@pytest.mark.parametrize("name", UFUNCS)
def test_floating_point_errors_match_numpy(name: str, form: str) -> None:
    ufunc, failures = UFUNCS[name], Failures()
    function, _ = forms(ufunc)[form]
    compiled = jk.jit(function)
    for given in numbers(ufunc, "float64")[:: 1 if ufunc.nin == 1 else 7]:
        with np.errstate(all="ignore"), failures.gathered(f"ignored {given}"):
            assert warned(compiled, *arrays(name, given, "float64")) == []
        with np.errstate(all="raise", under="ignore"), failures.gathered(f"raised {given}"):
            left, right = arrays(name, given, "float64"), arrays(name, given, "float64")
            assert raised(compiled, *left) == raised(function, *right)
            for one, other in zip(left, right, strict=True):
                np.testing.assert_array_equal(one, other)
    failures.tell()
