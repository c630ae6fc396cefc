"""``numpy.vectorize``: its loop over elements is compiled with the function, with NumPy's dtypes and errors."""

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy import vectorize

import jitkernels as jk

DTYPES = ("float64", "float32", "float16", "int64", "int32", "uint8", "bool", "complex128", "complex64")


def decay(u: Any) -> Any:
    return u * 2.5 if u > 1 else math.exp(-u)


def clipped_log(u: Any) -> Any:
    return np.log(u) if u > 1e-3 else -7.0


def steps(u: Any, v: Any) -> Any:
    total = 0.0
    for _ in range(20):
        if total > u:
            break
        total += v
    return total


@np.vectorize
def decorated(u: Any) -> Any:
    return u * u if u > 0 else -u


def several(u: Any) -> Any:
    return 0 if u < 1 else u * 1.5


single = np.vectorize(decay, otypes=[np.float32])

PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "a branch": lambda a: np.vectorize(decay)(a) + 1,
    "a scalar of NumPy or a float": lambda a: np.vectorize(clipped_log)(a),
    "a loop of two arrays": lambda a: np.vectorize(steps)(a, a * 0.1 + 0.5),
    "imported by name": lambda a: vectorize(lambda u: u * 3)(a),
    "a decorated function": lambda a: decorated(a) * 2,
    "otypes of a global": lambda a: single(a),
    "otypes make one type": lambda a: np.vectorize(several, otypes=[float])(a),
    "divisions": lambda a: np.vectorize(lambda u: 1 / (u + 1))(a),
    "truth": lambda a: np.vectorize(lambda u: u > 1)(a),
    "broadcast": lambda a: np.vectorize(lambda u, v: u + v)(a[:, None], a[0]),
    "a default": lambda a: np.vectorize(lambda u, factor=2.0: u * factor)(a),
    "a number": lambda a: np.vectorize(lambda u, v: u * v)(a, 3),
}


def agrees(function: Callable[..., Any], *arguments: Any) -> Any:
    """Fail unless compiled code gives the same, warnings aside; return the compiled function."""
    compiled = jk.jit(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = function(*arguments)
        for _ in range(3):
            found = compiled(*arguments)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    return compiled


@pytest.mark.per_push
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    a = np.linspace(0, 3, 12).reshape(3, 4)
    for given in (a, np.asfortranarray(a), a[::2, ::-1]):
        compiled = agrees(PROGRAMS[name], given)
        assert not any(group.kind == "NumPy" for group in compiled.explain(given).groups)
        assert compiled.explain(given).kernels


@pytest.mark.per_push
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "function", [lambda u: u * 3, lambda u: u + u, lambda u: u == 1], ids=["product", "sum", "test"]
)
def test_dtypes(function: Callable[..., Any], dtype: str) -> None:
    """The scalar of the first element decides the dtype, and Python's numbers the values."""
    agrees(lambda a: np.vectorize(function)(a), np.arange(5).astype(dtype))


@pytest.mark.parametrize("first", [0.5, 2.0])
def test_the_first_element_decides_the_dtype_of_several(first: float) -> None:
    a = np.array([first, 0.25, 3.0])
    compiled = agrees(lambda a: np.vectorize(several)(a), a)
    assert "returns numbers of several types" in str(compiled.explain(a))


@pytest.mark.parametrize(
    ("function", "argument"),
    [
        (lambda u: 1 / u, np.array([1.0, 0.0])),
        (lambda u: u**30, np.array([2, 300])),
        (lambda u: math.sqrt(u), np.array([1.0, -1.0])),
        (lambda u: u, np.zeros(0)),
    ],
)
def test_errors_are_numpys(function: Callable[..., Any], argument: Any) -> None:
    def program(a: Any) -> Any:
        return np.vectorize(function)(a)

    def error_of(call: Callable[[Any], Any]) -> type[Exception] | None:
        try:
            call(argument)
        except (ArithmeticError, ValueError) as error:
            return type(error)
        return None

    compiled = jk.jit(program)
    expected = error_of(program)
    assert expected is not None
    assert [error_of(compiled) for _ in range(3)] == [expected] * 3


@pytest.mark.per_push
@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int32", "uint32", "uint64", "float32"])
@pytest.mark.parametrize("function", [lambda u: 255 - u, lambda u: -u, lambda u: u * 1000, lambda u: u // 2])
def test_ints_that_the_dtype_does_not_hold(function: Callable[..., Any], dtype: str) -> None:
    """NumPy raises OverflowError for Python's ints beyond the dtype of the first result."""

    def program(a: Any) -> Any:
        return np.vectorize(function)(a)

    def outcome(call: Callable[[Any], Any], values: list[int]) -> Any:
        try:
            return call(np.array(values, dtype))
        except OverflowError:
            return "OverflowError"

    compiled = jk.jit(program)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for values in ([0, 1, 2], [0, 5, 100], [0, 0, 3]):
            expected = outcome(program, values)
            found = outcome(compiled, values)
            assert type(found) is type(expected)
            np.testing.assert_array_equal(found, expected)


def test_numbers_of_numpy() -> None:
    """Functions that make them, and arguments that are some, have other dtypes than those for Python's numbers."""
    a = np.linspace(0, 2, 5)
    agrees(lambda a: np.vectorize(lambda u, v: np.float32(u) + v)(a, a), a)
    agrees(lambda a: np.vectorize(lambda u: np.int8(u))(a), a)
    agrees(lambda a: np.vectorize(lambda u, v: u * 3 + v)(np.float32(2.2), a), a)


@pytest.mark.parametrize(
    "options",
    [{"signature": "(n)->()"}, {"excluded": {1}}, {"cache": True}, {"otypes": [int]}, {"otypes": "dd"}],
    ids=str,
)
def test_other_options_run_in_numpy(options: dict[str, Any]) -> None:
    a = np.linspace(0, 2, 6).reshape(2, 3)
    functions: dict[str, Callable[[Any], Any]] = {"signature": lambda u: u.sum(), "dd": lambda u: (u, u)}
    key = "dd" if options.get("otypes") == "dd" else next(iter(options))
    function = functions.get(key, lambda u: u + 1)
    outside = np.vectorize(function, **options)
    programs: list[Callable[[Any], Any]] = [lambda a: np.vectorize(function, **options)(a), lambda a: outside(a)]
    for program in programs:
        np.testing.assert_array_equal(jk.jit(program)(a), program(a))
