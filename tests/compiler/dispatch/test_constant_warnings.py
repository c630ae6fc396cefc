"""Floating-point errors of constants: each call of a compiled function warns, raises or calls as NumPy does."""

import functools
import itertools
import linecache
import textwrap
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import Failures

import jitkernels as jk
from jitkernels.compiler.dispatch import fp_warnings
from jitkernels.compiler.ir.elementwise_ops import SCALARS

KINDS = {"divide": "divide by zero", "over": "overflow", "under": "underflow", "invalid": "invalid value"}
NUMBERS = (0.0, -1.0, 1.0, 2.0, 1e-300, 1e300, -1e300, 800.0, -800.0, 1e-310, np.inf, -np.inf, np.nan)
UFUNCS = {
    name: scalar.numpy
    for name, scalar in SCALARS.items()
    if isinstance(scalar.numpy, np.ufunc)
    and scalar.numpy.nout == 1
    and any(loop.startswith("d" * scalar.numpy.nin) for loop in scalar.numpy.types)
}


def reported(function: Callable[..., Any], *args: Any, action: Any = "always") -> list[tuple[str, str, int]]:
    """What a call warns of or raises, and where."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter(action)
        try:
            function(*args)
        except (RuntimeWarning, FloatingPointError, ZeroDivisionError) as error:
            return [(f"{type(error).__name__} {error}", "", 0)]
    return [(str(one.message), one.filename, one.lineno) for one in found]


@functools.cache
def operands(ufunc: Any) -> dict[str, tuple[float, ...]]:
    """Numbers for which a function fails, for each kind that it has."""
    found: dict[str, tuple[float, ...]] = {}
    for given in itertools.product(NUMBERS, repeat=ufunc.nin):
        texts: list[str] = []
        with np.errstate(all="call", call=lambda text, _, texts=texts: texts.append(text)):
            ufunc(*(np.full(3, one) for one in given))
        for kind, text in KINDS.items():
            if text in texts:
                found.setdefault(kind, given)
    return found


FORMS = {
    "constant": "return x + {call}",
    "scalar": "return x + {scalars}",
    "folded": "left = -np.where(np.ones(3) > 0, np.full(3, -({one})), 0.5)\nreturn {folded} * 2 + x",
    "unused": "{call}\nreturn x * 2",
    "into": "made = np.zeros(3)\n{into}\nreturn x - made",
    "in_place": "x += {call}",
    "in_loop": "total = x * 0\nfor i in range(len(x)):\n    total = total + {call} * x[i]\nreturn total",
    "unused_in_loop": "total = x * 0\nfor i in range(len(x)):\n    {call}\n    total += x[i]\nreturn total",
    "in_written_loop": "for i in range(1, len(x)):\n    x[i] += {call}[0] + x[i - 1]",
    "in_branch": "if x[0] > 0:\n    return x + {call}\nreturn x - 1",
    "in_written_branch": "if x[0] > 0:\n    x += {call}\nelse:\n    x -= 1",
    "in_branch_of_loop": "t = 0.0\nfor i in range(len(x)):\n    if x[i] > 0:\n        t += {call}[0]\nreturn t",
}
"""Bodies of functions that compute a failing constant."""
numbers = itertools.count()


def made(form: str, ufunc: Any, given: tuple[float, ...]) -> Callable[[Any], Any]:
    """A function of a form, with the numbers in its text, which `linecache` knows."""
    one, *others = (repr(number).replace("inf", "np.inf").replace("nan", "np.nan") for number in given)
    arrays, scalars = (
        ", ".join(template.format(number) for number in (one, *others))
        for template in ("np.full(3, {})", "np.float64({})")
    )
    body = FORMS[form].format(
        one=one,
        call=f"ufunc({arrays})",
        scalars=f"ufunc({scalars})",
        into=f"ufunc({arrays}, out=made)",
        folded=f"ufunc({', '.join(['left', *others])})",
    )
    text, file = f"def function(x):\n{textwrap.indent(body, '    ')}\n", f"<{form} {next(numbers)}>"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    names: dict[str, Any] = {"np": np, "ufunc": ufunc}
    exec(compile(text, file, "exec"), names)
    return names["function"]  # type: ignore[no-any-return]


FAILING = sorted(name for name, ufunc in UFUNCS.items() if operands(ufunc))
SIZE = 3


def results_agree(one: Any, other: Any) -> None:
    np.testing.assert_allclose(one, other, rtol=1e-12)


PAIRS = [
    pytest.param(name, form, marks=pytest.mark.full if (i + j) % 2 else [])
    for i, name in enumerate(FAILING)
    for j, form in enumerate(FORMS)
]


@pytest.mark.parametrize(("name", "form"), PAIRS)
def test_constants_that_fail_are_reported_in_each_call(name: str, form: str) -> None:
    ufunc, failures = UFUNCS[name], Failures()
    for kind, given in operands(ufunc).items():
        function = made(form, ufunc, given)
        compiled = jk.jit(function)
        with failures.gathered(f"{kind} {given}"):
            for number in (1.0, 1.0, 1.0, -1.0, 1.0):
                expected = reported(function, np.full(SIZE, number))
                assert reported(compiled, np.full(SIZE, number)) == expected
            for action in ("error", "ignore"):
                expected = reported(function, np.ones(SIZE), action=action)
                assert reported(compiled, np.ones(SIZE), action=action) == expected
            for choice in ("raise", "ignore", "warn"):
                modes: Any = {kind: choice}
                with np.errstate(**modes):
                    expected = reported(function, np.ones(SIZE))
                    assert reported(compiled, np.ones(SIZE)) == expected
            logs: list[list[Any]] = [[], []]
            called: tuple[Any, ...] = (function, compiled)
            for one, log in zip(called, logs, strict=True):
                with np.errstate(all="call", call=lambda *found, log=log: log.append(found)):
                    one(np.ones(SIZE))
            assert logs[0] == logs[1]
            left, right = np.ones(SIZE), np.ones(SIZE)
            with np.errstate(all="ignore"):
                result, expected_result = compiled(left), function(right)
            results_agree(left, right)
            if expected_result is not None:
                results_agree(result, expected_result)
    failures.tell()


def test_constants_cover_all_kinds_of_failures() -> None:
    """Else the test above would test little."""
    kinds = [kind for ufunc in UFUNCS.values() for kind in operands(ufunc)]
    assert {kind: kinds.count(kind) > 2 for kind in KINDS} == dict.fromkeys(KINDS, True)


def logarithm(x: Any) -> Any:
    return np.log(np.zeros(3)) + x


def test_default_filters_show_a_warning_once_at_no_further_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[int] = []
    note = fp_warnings.KnownWarnings.note

    def counted(record: fp_warnings.KnownWarnings, found: Any) -> None:
        runs.append(1)
        note(record, found)

    monkeypatch.setattr(fp_warnings.KnownWarnings, "note", counted)
    watched, big = jk.jit(logarithm), np.ones((300, 3))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        for _ in range(500):
            watched(big)
    assert [str(one.message) for one in found] == ["divide by zero encountered in log"]
    assert 2 < len(runs) < 20  # NumPy is run ever less often


def test_results_written_over_arguments_are_reported_at_the_line_that_failed() -> None:
    compiled: Any = jk.jit(logarithm)
    line = logarithm.__code__.co_firstlineno + 1
    for _ in range(4):
        x = np.ones(3)
        expected = ("divide by zero encountered in log", __file__, line)
        assert reported(lambda x=x: compiled(x, out=x)) == [expected]


def divided(x: Any) -> Any:
    return x + 1 / 0


def test_zero_division_errors_of_python_are_raised() -> None:
    compiled = jk.jit(divided)
    for _ in range(4):
        assert reported(compiled, np.ones(3)) == [("ZeroDivisionError division by zero", "", 0)]


def quiet(x: Any) -> Any:
    with np.errstate(divide="ignore"):
        y = np.log(np.zeros(3))
    return y * x


def test_failures_that_the_function_ignores_are_not_reported() -> None:
    compiled = jk.jit(quiet)
    for _ in range(4):
        assert reported(compiled, np.ones(3)) == reported(quiet, np.ones(3)) == []


def narrowed(x: Any) -> Any:
    return x + np.full(3, 1e300).astype(np.float32)


def narrowed_number(x: Any) -> Any:
    return x.astype(np.float32) * 1e300


def concluded(x: Any, number: Any) -> Any:
    return x * 2 if np.log(number) < 0 else x


def large(x: Any) -> Any:
    return x + np.prod(np.full(400, 10.0))


def unused_product(x: Any) -> Any:
    np.prod(np.full(400, 10.0))
    return x * 2


def unused_cast(x: Any) -> Any:
    np.full(3, 1e300).astype(np.float32)
    return x * 2


def summed_in_loop(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        total += np.full(3, 1e308).sum() * x[i]
    return total


@pytest.mark.parametrize(
    "function", [narrowed, narrowed_number, concluded, large, unused_product, unused_cast, summed_in_loop]
)
def test_warnings_of_constants_name_the_line_of_the_function(function: Any) -> None:
    compiled, more = jk.jit(function), (np.float64(0.0),) if function is concluded else ()
    for size in (3, 3, 3):
        expected = reported(function, np.ones(size), *more)
        assert expected
        assert reported(compiled, np.ones(size), *more) == expected


def masked(x: Any) -> Any:
    made = np.ones(len(x))
    np.log(np.zeros(len(x)), out=made, where=x > 0)
    return made + x


def test_masked_out_constants_are_not_reported() -> None:
    compiled = jk.jit(masked)
    for number in (-1.0, -1.0, 1.0, -1.0):
        x = np.full(3, number)
        assert reported(compiled, x) == reported(masked, x)
