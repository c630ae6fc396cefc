"""Benchmark programs: ordinary NumPy with the same results in every form, and what is measured of them."""

import dataclasses
from collections.abc import Callable
from functools import partial
from time import sleep
from typing import Any

import numpy as np
import pytest
from cases import Failures

import jitkernels as jk
from jitkernels.benchmarks import compilers, contests
from jitkernels.benchmarks.entries import expressions, first_expression, levels, long_programs, random_shapes
from jitkernels.benchmarks.programs import all_programs
from jitkernels.benchmarks.programs.benchmark_program import program, results
from jitkernels.benchmarks.suite import Line, Settings, benchmarks
from jitkernels.errors import RegistrationError, UnknownNameError
from jitkernels.tools.cli import bench as command

PROGRAMS = all_programs()
SIZES = 1, 8, 60
DTYPES = "float32", "float64"
TOLERANCE = {"float32": 2e-5, "float64": 1e-12}
"""Of the largest result."""
QUICK = Settings([], "ci", 1e-4, 1, peers=False)


class Compiled:
    """Stands for a compiled function: NumPy computes, compiles are counted as one for each rank and broadcast."""

    def __init__(self, function: Callable[..., Any], opt_level: int = 3) -> None:
        self.function, self.compiles, self._met = function, 0, set[Any]()

    def __call__(self, *arguments: Any, out: Any = None) -> Any:
        pattern = tuple(tuple(extent == 1 for extent in np.shape(value)) for value in arguments)
        self.compiles += pattern not in self._met
        self._met.add(pattern)
        found = self.function(*arguments)
        if out is None:
            return found
        out[...] = found
        return out

    def stats(self) -> "Compiled":
        return self


@pytest.fixture
def with_jit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jk, "jit", Compiled, raising=False)


def close(got: tuple[Any, ...], right: tuple[Any, ...], what: str) -> None:
    __tracebackhide__ = True
    assert len(got) == len(right), what
    for one, expected in zip(map(np.asarray, got), map(np.asarray, right), strict=True):
        assert one.shape == expected.shape, what
        if expected.dtype.kind == "f":
            scale = max(np.abs(expected).max(initial=0.0), 1.0)
            atol = TOLERANCE[expected.dtype.name] * scale
            np.testing.assert_allclose(one, expected, rtol=0, atol=atol, err_msg=what)
        else:
            np.testing.assert_array_equal(one, expected, err_msg=what)


def test_at_least_thirty_programs_are_registered() -> None:
    assert len(PROGRAMS) >= 30
    for name, found in PROGRAMS.items():
        assert name == found.function.__name__
        assert found.loop is not None
        assert (found.functional is None) == ("writes" not in (found.functional or found.function).__name__)
    assert set(expressions.SHORT) <= set(PROGRAMS)
    with pytest.raises(RegistrationError, match="already is a program 'linear'"):

        @program(PROGRAMS["linear"].arguments)
        def linear(a: Any, b: Any) -> Any:
            return a


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_run(name: str) -> None:
    """On arguments that are the same each time, with finite results of their dtype, the same from loops."""
    found = PROGRAMS[name]
    for dtype in DTYPES:
        for elements in SIZES:
            arguments, others = (found.arguments(elements, dtype) for _ in range(2))
            close(arguments, others, "arguments differ")
            right = results(found.function, arguments)
            assert any(value.dtype == dtype or value.dtype.kind == "b" for value in right)
            assert all(np.isfinite(value).all() for value in right)
            unchanged = all(np.array_equal(one, other) for one, other in zip(arguments, others, strict=True))
            writes = found.function(*found.arguments(elements, dtype)) is None
            assert unchanged != writes or elements == 1
            if found.loop is not None:
                close(results(found.loop, others), right, f"the loop, {elements} {dtype}")


def test_arguments_grow_with_elements() -> None:
    for found in PROGRAMS.values():
        small, large = (
            sum(np.size(value) for value in found.arguments(elements, "float32")) for elements in (100, 10_000)
        )
        assert 3 * small < large <= 5 * 10_000


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # torch uses what it deprecates
def test_other_compilers_agree() -> None:
    """Run all installed compilers on one thread and two; slow ones compile two programs."""
    failures = Failures()
    for name, maker in compilers.compilers().items():
        some = PROGRAMS if name == "numexpr" else ("fdtd_step", "black_scholes")
        for chosen in some:
            for dtype in DTYPES:
                with failures.gathered(f"{name}, {chosen}, {dtype}"):
                    found = PROGRAMS[chosen]
                    arguments = found.arguments(60, dtype)
                    calls = maker(found, compilers.copied(arguments), 1)
                    assert bool(calls) == (name != "numexpr" or bool(found.texts))
                    right = results(found.function, compilers.copied(arguments))
                    for call in calls:
                        got = results(call.func, compilers.copied(call.args))
                        close(tuple(map(np.asarray, got)), right, name)
                        assert np.asarray(got[0]).dtype == dtype or np.asarray(got[0]).dtype.kind == "b"
    failures.tell()


def test_texts_use_the_parameters() -> None:
    for found in PROGRAMS.values():
        arguments = found.arguments(8, "float64")
        names = dict(zip(found.function.__code__.co_varnames, arguments, strict=False))
        assert len(found.texts) in (0, len(results(found.function, arguments)))
        for text in found.texts:
            assert set(compile(text, "text", "eval").co_names) - set(dir(np)) - {"abs"} <= set(names)


def slowly(function: Callable[..., Any], *arguments: Any) -> Any:
    sleep(0.001)
    return function(*arguments)


HALF = 0.5


def halved(x: Any) -> Any:
    return np.multiply(x, HALF)


def halved_plus(x: Any) -> Any:
    return halved(x) + 0.25, x[0] * 2


def test_functions_are_rebound() -> None:
    """Captured and global constants become numbers of one dtype, also in called functions."""

    class Doubles:
        @staticmethod
        def multiply(x: Any, y: Any) -> Any:
            assert type(y) is np.float32
            return np.multiply(np.multiply(x, y), 2)

    changed = compilers._rebound(halved_plus, np.float32, Doubles, lambda function: function)
    whole, first = changed(np.array([3], np.float32))
    assert whole == 3.25
    assert first == 6
    assert changed.__code__.co_consts[1:] == (np.float32(0.25), 0, 2)
    assert halved_plus(np.array([3], np.float32))[0] == 1.75


@pytest.mark.usefixtures("with_jit")
def test_contests_omit_wrong_and_failing_compilers(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: Any) -> None:
        raise ValueError("no such\nthing")

    others: dict[str, Any] = {
        "right": lambda found, arguments, threads: [
            partial(found.function, *arguments),
            partial(slowly, found.function, *arguments),
        ],
        "wrong": lambda found, arguments, threads: [partial(lambda a, b: (a > b) ^ (a > -b), *arguments)],
        "fails": fails,
        "none": lambda found, arguments, threads: [],
    }
    monkeypatch.setattr(contests, "compilers", lambda: others)
    (found,) = contests.contests(PROGRAMS["comparison"], 1, [64], ["float64"], 1e-4)
    assert set(found["times"]) == {"numpy", "jitkernels", "right"}
    assert found["times"]["right"][0] < 0.001
    assert found["remarks"][0].startswith("wrong: result 0 is off by")
    assert found["remarks"][1:] == ["fails: ValueError: no such"]
    line = expressions._line("comparison", 2, **found)
    assert line.group == "comparison, float64, 2 threads"
    assert line.figures[f"x {expressions.BEST}"] > 0
    assert "no case below" in expressions.verdict([line]).text or "1 cases below" in expressions.verdict([line]).text


def test_our_answers_must_have_numpys_dtype(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contests, "compilers", dict)
    right = PROGRAMS["linear"].arguments(8, "float32")[:1]
    call = partial(lambda a: a.astype(np.float64), *right)
    assert contests.difference(call, right, exact=False) == ""
    assert contests.difference(call, right, exact=True) == "result 0 is float64(8,) instead of float32(8,)"
    assert contests.difference(partial(lambda: (1, 2)), right, exact=False) == "2 results instead of 1"
    nothing = partial(lambda a: a * np.nan, *right)
    assert contests.difference(nothing, right, exact=False) == "result 0 is off by nan"
    monkeypatch.setattr(jk, "jit", lambda function: lambda *arguments: 0.0, raising=False)
    (found,) = contests.contests(PROGRAMS["linear"], 1, [8], ["float32"], 1e-4)
    line = expressions._line("linear", 1, **found)
    assert "jitkernels" not in line.timings
    verdict = expressions.verdict([line])
    assert verdict.holds is False
    assert "failed: linear, float32, 1 thread, 8 elements: jitkernels: result 0 is" in verdict.text


def test_a_process_for_each_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expressions, "SHORT", ("larger",))
    monkeypatch.setitem(expressions.SIZES, "ci", (8, 16))
    lines = list(expressions.expressions(QUICK))
    assert [line.case for line in lines] == ["8 elements", "16 elements"]
    for line in lines:
        assert line.group == "larger, float32, 1 thread"
        assert {"numpy", *compilers.compilers()} <= set(line.timings)
    runs = []

    def run(module: str, function: str, *arguments: Any, **limits: str) -> list[Any]:
        runs.append((arguments[:2], limits["OMP_NUM_THREADS"]))
        return []

    monkeypatch.setattr(expressions, "run", run)
    assert list(expressions.expressions(dataclasses.replace(QUICK, threads=2, tag="full"))) == []
    assert runs == [((name, threads), str(threads)) for name in PROGRAMS for threads in (1, 2)]


@pytest.mark.usefixtures("with_jit")
def test_calls_and_levels_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "LEVEL_ELEMENTS", 1000)
    for name in ("compiled-call", "levels"):
        entry = benchmarks()[name]
        lines = list(entry.run(dataclasses.replace(QUICK, peers=False)))
        assert entry.verdict(lines).text
        for line in lines:
            assert line.speed_over(entry.against)


@pytest.mark.usefixtures("with_jit")
def test_shapes_that_are_compiled_are_counted() -> None:
    found = random_shapes.child(300, 20)
    assert 2 <= found["compiles"] <= 4
    assert 0 < found["new"] < 1
    assert 0 < found["again"] < 1


@pytest.mark.usefixtures("with_jit")
def test_first_expressions_are_new() -> None:
    times, _ = first_expression.child([1, 2, 3])
    assert all(seconds > 0 for seconds in times)
    assert len({tuple(first_expression.steps(number)) for number in range(4500)}) == 4500


@pytest.mark.parametrize("name", ["softmax, rows of 50", "layer norm, rows of 8", "power"])
def test_first_expressions_run(name: str) -> None:
    """The benchmark itself asserts that results are right."""
    assert 0 < first_expression.named_child(name) < 60


@pytest.mark.usefixtures("with_jit")
@pytest.mark.parametrize("kind", long_programs.PROGRAMS)
def test_long_programs_have_the_given_number_of_operations(kind: str) -> None:
    found = long_programs.child(kind, 300)
    assert min(found.values()) > 0
    counted, Counting.operations = Counting(), 0
    getattr(long_programs, kind)(300)(counted, counted)
    assert 300 <= Counting.operations <= 303


class Counting(np.lib.mixins.NDArrayOperatorsMixin):
    """Counts the operations that are done with it."""

    operations = 0

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **named: Any) -> "Counting":
        Counting.operations += 1
        return Counting()

    def mean(self) -> "Counting":
        Counting.operations += 1
        return Counting()


def test_differences_stay_small_in_long_programs() -> None:
    """Else the comparison with NumPy would say nothing about the compiler."""
    x, y = (np.random.default_rng(seed).uniform(-1, 1, 50) for seed in range(2))
    for kind in long_programs.PROGRAMS:
        compute = getattr(long_programs, kind)(2000)
        one, other = compute(x, y), compute(x + 1e-12, y)
        assert np.abs(one - other).max() < 1e-11
        assert np.ptp(one) > 1e-6


jit: Any = getattr(jk, "jit", None)
if jit is not None:

    @pytest.mark.parametrize("name", PROGRAMS)
    def test_compiled_programs_match_numpy(name: str) -> None:
        found = PROGRAMS[name]
        compiled = jit(found.function)
        for dtype in DTYPES:
            for elements in (*SIZES, 1000, 20_000):
                arguments = found.arguments(elements, dtype)
                got = results(compiled, compilers.copied(arguments))
                right = results(found.function, arguments)
                close(got, right, f"{name}, {elements} {dtype}")
                assert [value.dtype for value in got] == [value.dtype for value in right]


def test_verdicts_on_compiled_code_can_fail() -> None:
    """Beside those of all benchmarks: verdicts on figures other than times."""
    answers = {
        "first-expression": _verdict("first-expression", "from disk", {"slowest": 0.001}, "numba imported", 1.0),
        "random-shapes": _verdict("random-shapes", "x", {"new shape": 1e-7}, "compiles", 5.0),
        "long-programs": _verdict("chain", "x", {"first call": 1.0}, "bytes", 2e9),
    }
    assert set(answers.values()) == {False}


def _verdict(group: str, case: str, seconds: dict[str, float], figure: str, value: float) -> bool | None:
    from jitkernels.tuning.timer import Timing

    name = group if group in benchmarks() else "long-programs"
    timings = {key: Timing(second, 0.0) for key, second in seconds.items()}
    good, bad = (Line(group, case, timings, figures={figure: number}) for number in (0.0, value))
    assert benchmarks()[name].verdict([good]).holds
    return benchmarks()[name].verdict([bad]).holds


def test_programs_are_selected_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[str] = []

    def run(module: str, function: str, name: str, *arguments: Any, **settings: str) -> list[Any]:
        runs.append(name)
        return []

    monkeypatch.setattr(expressions, "run", run)
    command.run(["expressions", "softmax", "linear"], command.Options(threads=1, seconds=1.0))
    assert runs == ["softmax", "linear"]
    with pytest.raises(UnknownNameError, match=r"expressions: expected parts among .*softmax.*, got 'vmul'"):
        command._select_benchmark(["expressions", "vmul"])
    assert command._select_benchmark(["launch", "vmul"])[1] == ["vmul"]
