"""Compiled functions under `numpy.errstate`: they raise, call or warn where NumPy does."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.dispatch import fp_warnings
from jitkernels.runtime import errstate, fp_status

Array = np.ndarray[Any, Any]


def inverse(x: Array) -> Array:
    return 1 / x


ZEROS = np.zeros(5)


@pytest.fixture
def compiled() -> Callable[[Array], Array]:
    function: Callable[[Array], Array] = jk.jit(inverse)
    with np.errstate(all="ignore"):
        for _ in range(3):  # so that calls go without Python
            assert np.isinf(function(ZEROS)).all()
    return function


def test_error_raises(compiled: Callable[[Array], Array]) -> None:
    for _ in range(2):
        with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
            compiled(ZEROS)
        with np.errstate(all="ignore"):
            assert np.isinf(compiled(ZEROS)).all()


def test_error_calls(compiled: Callable[[Array], Array]) -> None:
    called: list[str] = []
    with np.errstate(divide="call", call=lambda text, flags: called.append(text)):
        assert np.isinf(compiled(ZEROS)).all()
    assert called == ["divide by zero"]


def test_ignored_errors_run_compiled_code(compiled: Callable[[Array], Array]) -> None:
    plain: Any = compiled
    calls = len(plain._fallbacks)
    with np.errstate(all="ignore"):
        assert not errstate.numpy_raises_or_calls()
        assert np.isinf(compiled(ZEROS)).all()
    assert len(plain._fallbacks) == calls


def test_errstate_bits_are_read() -> None:
    assert errstate.is_word_known()
    for choice in {"over": "raise"}, {"under": "warn"}:
        kept: Any = choice
        with np.errstate(**kept):
            assert errstate.numpy_raises_or_calls()
            assert errstate._word() & errstate.UNSUPPORTED


Reports = list[tuple[str, str, int]]


def reported(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Reports:
    """What a call warns of, and where."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        function(*args, **kwargs)
    return [(str(one.message), one.filename, one.lineno) for one in found]


def failing(x: Array, y: Array) -> Array:
    z = 1 / x
    found: Array = np.exp(z) - y * y
    return found


def test_warnings_are_those_of_numpy_at_the_line_of_the_function() -> None:
    compiled = jk.jit(failing)
    x, y = np.array([1.0, 0.0, 2.0, 1e-3]), np.array([1.0, 2.0, 1e300, 3.0])
    expected = reported(failing, x, y)
    assert [text for text, _, _ in expected] == [
        "divide by zero encountered in divide",
        "overflow encountered in exp",
        "overflow encountered in multiply",
    ]
    assert all(file == __file__ for _, file, _ in expected)
    for _ in range(5):
        assert reported(compiled, x, y) == expected
        assert reported(compiled, x, y, out=np.empty(4)) == expected
        assert reported(compiled, x, y=y) == expected
        assert reported(compiled, x + 1, x) == []
    with np.errstate(over="ignore"):
        assert reported(compiled, x, y) == expected[:1]
    with np.errstate(all="ignore"):
        assert reported(compiled, x, y) == []


def test_error_filters_raise_warnings() -> None:
    compiled = jk.jit(inverse)
    for _ in range(3):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(RuntimeWarning, match="divide by zero encountered in divide"):
                compiled(ZEROS)


def test_flags_of_other_code_are_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = jk.jit(inverse)
    infinity = float("inf")
    reports: list[Any] = []

    def record(*found: Any) -> int:
        reports.append(found)
        return 0

    monkeypatch.setattr(fp_warnings.WarningReporter, "report", record)
    for _ in range(3):
        assert infinity - infinity != 0  # invalid, without a report
        compiled(ZEROS + 1)
    assert reports == []
    compiled(ZEROS)
    assert len(reports) == 1


def test_numpy_does_not_see_flags_of_compiled_code() -> None:
    compiled = jk.jit(inverse)
    with np.errstate(all="ignore"):
        compiled(ZEROS)
        compiled(ZEROS)
    assert fp_status.kinds(fp_status.take()) == ("divide",)
    with np.errstate(all="ignore"):
        compiled(ZEROS)
    with np.errstate(all="raise"):
        assert (np.ones(5) / np.full(5, 2.0) == 0.5).all()
        assert np.float64(1) / np.float64(2) == 0.5


def test_repeated_warnings_are_not_recomputed(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[int] = []
    note = fp_warnings.KnownWarnings.note

    def counted(record: fp_warnings.KnownWarnings, found: Any) -> None:
        runs.append(1)
        note(record, found)

    monkeypatch.setattr(fp_warnings.KnownWarnings, "note", counted)
    compiled = jk.jit(inverse)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        for _ in range(2):
            compiled(ZEROS)
        runs.clear()
        for _ in range(1000):
            compiled(ZEROS)
    assert len(found) == 1
    assert 2 < len(runs) < 20
    assert reported(compiled, ZEROS)  # other filters show it once more
    runs.clear()
    assert len(reported(compiled, ZEROS)) == len(reported(compiled, ZEROS)) == 1
    assert len(runs) == 2


def test_spurious_warnings_become_rare_and_cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = jk.jit(lambda x: np.where(x > 0, x, -x))
    reports: list[Any] = []
    report = fp_warnings.WarningReporter.report

    def counted(*found: Any) -> int:
        reports.append(found)
        return report(*found)

    monkeypatch.setattr(fp_warnings.WarningReporter, "report", counted)
    strange = np.full(5, np.nan)  # which no comparison is for
    for _ in range(10_000):
        compiled(strange)
    assert 4 < len(reports) < 20


def test_real_warnings_after_many_spurious_flags() -> None:
    record = fp_warnings.KnownWarnings()
    for _ in range(10_000):
        if record.is_due():
            record.note([])
    for _ in range(100_000):
        if record.is_due():
            record.note([("text", "file", 1)])
            break
    assert record.is_due()


@pytest.mark.parametrize("size", [3_000_000, 40])
def test_fp_flags_of_all_threads_are_reported(size: int) -> None:
    compiled = jk.jit(inverse)
    threads = jk.get_num_threads()
    jk.set_num_threads(2)
    try:
        for place in (0, size // 2 - 1, size // 2, size - 1):
            x = np.ones(size)
            assert reported(compiled, x) == []
            x[place] = 0
            assert len(reported(compiled, x)) == 1
    finally:
        jk.set_num_threads(threads)


def stepped(x: Array, y: Array) -> None:
    x[1:] -= y[1:] / x[:-1]


def rooted(x: Array, y: Array) -> None:
    x += np.log(y)


def test_warning_text_where_arguments_are_overwritten() -> None:
    compiled, line = jk.jit(stepped), stepped.__code__.co_firstlineno
    x, y = np.array([2.0, 0.0, 4.0, 1e300]), np.array([1.0, 1.0, 1.0, 1e-300])
    for _ in range(3):
        assert reported(compiled, x.copy() + 1, y) == []
        assert reported(compiled, x.copy(), y) == [("divide by zero encountered in divide", __file__, line)]
        assert reported(compiled, x.copy(), y * 0) == [("invalid value encountered in stepped", __file__, line)]
    with np.errstate(divide="ignore"):
        assert reported(compiled, x.copy(), y) == []


def test_warnings_of_results_written_over_arguments() -> None:
    compiled = jk.jit(inverse)
    for size in range(1, 34):
        for _ in range(2):
            x = np.full(size, 3.0)
            assert reported(compiled, x, out=x) == []
            x[-1] = 0
            (found,) = reported(compiled, x, out=x)
            assert found[0] == "divide by zero encountered in divide"


def test_overwriting_functions_ignore_nan_and_infinity_of_arguments() -> None:
    """Flags that NaN sets in comparisons, or infinity in sums, are not new."""
    compiled, line = jk.jit(rooted), rooted.__code__.co_firstlineno
    for _ in range(3):
        assert reported(compiled, np.ones(5), np.full(5, np.nan)) == []
        assert reported(compiled, np.ones(5), np.full(5, np.inf)) == []
        assert reported(compiled, np.ones(5), np.zeros(5)) == [("divide by zero encountered in log", __file__, line)]
        found = reported(compiled, np.ones(5), np.full(5, -1.0))
        assert found == [("invalid value encountered in rooted", __file__, line)]  # of the logarithm or of the sum


def test_spurious_kinds_are_not_reported_where_numpy_cannot_rerun() -> None:
    """Overwritten arguments leave nothing to rerun on."""
    compiled: Any = jk.jit(lambda x: np.log(x) * np.exp(x))
    for number in (1, 1, 1, np.nan, 0, np.nan, -1):
        x = np.full(5, float(number))
        found = [text for text, *_ in reported(compiled, x, out=x)]
        assert found == (["divide by zero encountered in log"] if number == 0 else [])


def centred(x: Array) -> None:
    x -= x.mean()
    x *= x


def shared(x: Array) -> None:
    x /= x.sum()


def test_warnings_of_sums_of_overwritten_arguments() -> None:
    """Infinities in sums and zeros in quotients set spurious flags; overflow is reported."""
    compiled: Any = jk.jit(centred)
    line = centred.__code__.co_firstlineno
    for number, expected in (1, []), (np.inf, []), (1e200, ["overflow encountered in centred"]):
        x = np.arange(9000.0)
        x[1] = number
        assert reported(compiled, x) == [(text, __file__, line) for text in expected]
    compiled = jk.jit(shared)
    for number in (1, 0, np.inf):
        assert reported(compiled, np.full(9000, float(number))) == []


def partly(x: Array) -> Array:
    with np.errstate(divide="ignore"):
        y = 1 / x
    return np.log(x) + y


def quietly(x: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        x += 1 / x
    return x


def test_errstate_applies_to_its_block_only() -> None:
    compiled = jk.jit(partly)
    for size in (4, 30_000):
        x = np.ones(size)
        assert reported(compiled, x) == []
        x[-1] = 0
        assert reported(compiled, x) == reported(partly, x) != []
    assert compiled.stats().kernels
    ignoring = jk.jit(quietly)
    for _ in range(3):
        assert reported(ignoring, np.zeros(30_000)) == []
        assert reported(jk.jit(quietly), np.zeros(4), out=np.zeros(4)) == []
