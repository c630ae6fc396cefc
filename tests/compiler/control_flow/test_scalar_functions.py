"""Functions of scalars, of extents and of arguments: one specialization for all, and Python's errors."""

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jitted import reasons, same

import jitkernels as jk
from jitkernels.compiler.dispatch import specialization

EXTENTS: dict[str, Callable[[Any], Any]] = {
    "float": lambda x: x * float(x.shape[1]) + float(x.size),
    "len": lambda x: x / len(x) + np.zeros(len(x))[:, None],
    "len of rows": lambda x: x[: len(x) // 2] * len(x[0]),
    "float32": lambda x: x * np.float32(1 / x.shape[1]),
    "float64": lambda x: x.astype("f4") * np.float64(x.shape[1]),
    "float16": lambda x: x.astype("f4") * np.float16(1 / x.shape[1]),
    "int8": lambda x: x.astype("i1") + np.int8(x.shape[1]),
    "int64": lambda x: x.astype("f4") * np.int64(x.shape[1]),
    "int32": lambda x: np.int32(len(x)),
    "float32 itself": lambda x: np.float32(1 / x.shape[1]),
    "float32 of an array": lambda x: np.float32(x) * np.float32(x.sum()),
    "halves": lambda x: x[: int(x.shape[0] / 2)] * int(x.shape[1] / 2),
    "parts": lambda x: x[: int(x.shape[0] * 0.7)],
    "parts of parts": lambda x: x[int(0.2 * (len(x) - 1)) :],
    "ceil": lambda x: x[: math.ceil(x.shape[0] / 3)],
    "floor": lambda x: x[: math.floor(x.shape[0] / 3)],
    "NumPy's ceil": lambda x: x[: int(np.ceil(x.shape[0] / 3))],
    "sqrt": lambda x: x / math.sqrt(x.shape[1]) + 1 / np.sqrt(x.shape[0]),
    "log": lambda x: x * math.log(x.size + 1.0) + math.log2(len(x)),
    "exp": lambda x: x * math.exp(-1.0 / x.size),
    "powers": lambda x: x * x.shape[1] ** 0.5 + x.shape[1] ** -0.5 + x.shape[0] ** -2,
    "powers of 2": lambda x: x * 2.0 ** -x.shape[1],
    "quotients": lambda x: x * ((x.shape[0] + 0.5) / (x.shape[1] + 0.5)),
}
ARGUMENTS: dict[str, Callable[[Any, Any], Any]] = {
    "float": lambda x, k: x * float(k),
    "float of a sum": lambda x, k: float(x.sum()) * k,
    "float32": lambda x, k: x.astype("f4") * np.float32(k),
    "float64": lambda x, k: x.astype("f4") * np.float64(k),
    "float16": lambda x, k: x.astype("f4") * np.float16(k),
    "sqrt": lambda x, k: x * math.sqrt(k),
    "exp": lambda x, k: x * math.exp(-k * 100),
    "log": lambda x, k: x * math.log(k) + math.log10(k + 1),
    "circles": lambda x, k: x * math.sin(k) + math.cos(k) * math.atan2(k, 2) + math.tanh(k) * math.hypot(k, 3.0),
    "powers": lambda x, k: x * k**2 + k**3 - k**-1 + k**0.5,
    "powers of it": lambda x, k: x * 2.0**k,
    "math's power": lambda x, k: x * math.pow(k, 1.5),
    "quotients": lambda x, k: x * ((k + 1) / (k - 2)) + 1 / (k * 2),
    "remainders": lambda x, k: x * (k % 2) + k // 3 + divmod(k, 3.0)[1],
    "remainders by it": lambda x, k: x * (7.5 % k),
    "truth": lambda x, k: x * (k or 1.0) if k else x,
    "NaN": lambda x, k: x if np.isnan(k) or math.isnan(k) else x * k,
}


@pytest.fixture(autouse=True)
def _compile_short_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(specialization, "SECONDS_OF_PYTHON", 0.0)


def compiles(function: Any) -> int:
    return sum(map(len, function._specializations.values()))


@pytest.mark.parametrize("name", EXTENTS)
def test_one_specialization_serves_all_extents(name: str) -> None:
    function = EXTENTS[name]
    compiled = jk.jit(function)
    for i in range(6):
        x = np.arange((i + 7.0) * (3 * i + 20)).reshape(i + 7, -1) / 100
        same(compiled(x), function(x))
    assert compiles(compiled) == 1
    assert not reasons(compiled)


def outcome(function: Any, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except Exception as error:  # noqa: BLE001  # whatever it raises
        return type(error), str(error)


@pytest.mark.parametrize("name", ARGUMENTS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_one_specialization_serves_all_numbers(name: str) -> None:
    function, x = ARGUMENTS[name], np.arange(50.0)
    compiled = jk.jit(function)
    for k in (0.25, 1.5, 2.5, 3.0, 7.0, 1.75):
        for _ in range(2):
            same(compiled(x, k), function(x, k))
    assert compiles(compiled) <= 1
    for k in (0.0, -1.0, 2.0, -0.0, 1e300, -1e300, math.inf, -math.inf, math.nan, 0.5):
        for _ in range(2):
            found, expected = outcome(compiled, x, k), outcome(function, x, k)
            assert type(found) is type(expected)
            if isinstance(expected, tuple):
                assert found == expected
            else:
                same(found, expected)
    assert compiles(compiled) <= 4
    assert not reasons(compiled)


@pytest.mark.parametrize("level", [0, 1, 2, 3, -3])
@pytest.mark.parametrize("backend", ["native", "interpreter"])
def test_exceptions_leave_arrays_as_python_does(level: int, backend: str) -> None:
    def function(x: Any, k: Any) -> Any:
        x[0] = 5
        x += math.log(k)
        return x * (1 / (k - 2))

    compiled = jk.jit(function, opt_level=level, backend=backend)
    for k in (3.0, 0.0, 2.0, 4.0, -1.0):
        x, y = np.arange(40.0), np.arange(40.0)
        found, expected = outcome(compiled, x, k), outcome(function, y, k)
        np.testing.assert_allclose(x, y)
        if isinstance(expected, tuple):
            assert found == expected
        else:
            np.testing.assert_allclose(found, expected)


def test_types_that_are_not_called() -> None:
    def function(x: Any) -> Any:
        kind = float if isinstance(1.0, float) else int
        made = np.zeros(len(x), dtype=float) + kind(len(x))
        return made.astype(np.float32), np.ones(3, np.float32) * np.float32(2), x.dtype == np.float64

    compiled = jk.jit(function)
    for n in (3, 4):
        same(compiled(np.ones(n)), function(np.ones(n)))
    assert not reasons(compiled)


def test_numbers_out_of_range_are_rejected() -> None:
    def function(x: Any) -> Any:
        return x.astype("i1") + np.int8(len(x))

    compiled = jk.jit(function)
    for n in (100, 127, 128, 300):
        assert str(outcome(compiled, np.zeros(n))) == str(outcome(function, np.zeros(n)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        same(jk.jit(lambda x, k: x * np.float32(k))(np.ones(3000, "f4"), 1e300), np.full(3000, np.inf, "f4"))
    assert [str(one.message) for one in caught] == ["overflow encountered in cast"]


ELEMENTS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: x.sum().item() * x,
    "one": lambda x: x[0].item(),
    "of one": lambda x: x[:1].item(),
    "by number": lambda x: x.item(1),
    "quotient": lambda x: x * (1 / x.max().item()),
    "list": lambda x: x.tolist(),
    "list of one": lambda x: x.max().tolist(),
    "int": lambda x: x.argmax().item() + x,
    "too many": lambda x: x.item(),
}


@pytest.mark.parametrize("name", ELEMENTS)
@pytest.mark.parametrize("values", [[0.0, 1.5, 2.0], [-1.0, 0.0, -3.0]])
def test_elements_as_python_numbers(name: str, values: list[float]) -> None:
    function, x = ELEMENTS[name], np.array(values)
    compiled = jk.jit(function)
    for _ in range(2):
        found, expected = outcome(compiled, x), outcome(function, x)
        assert type(found) is type(expected)
        assert str(found) == str(expected)
