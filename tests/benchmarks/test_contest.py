"""The contest between compilers: its two measures, its programs, and processes that take turns, fail or are missing."""

import logging
import math
from typing import Any

import numpy as np
import pytest

from jitkernels.benchmarks.contest import accuracy, timed
from jitkernels.benchmarks.contest.measures import distance
from jitkernels.benchmarks.contest.rounds import Contestant, Result, contest
from jitkernels.benchmarks.contest.task import NEEDS, all_tasks, reason_unavailable
from jitkernels.benchmarks.entries.contest import lines_of, verdict

SMALL = {"pi": 1000, "nbody": 16, "mandelbrot": 16, "options": 100}
LIMITS = {"pi": 0.2, "nbody": 1e-13, "mandelbrot": 0.0, "options": 1e-5}


def test_calls_are_timed_and_answers_checked(caplog: pytest.LogCaptureFixture) -> None:
    @timed
    @accuracy(math.pi)
    def about(digits: int) -> float:
        """Pi, rounded."""
        return round(math.pi, digits)

    with caplog.at_level(logging.INFO, "jitkernels.contest"):
        assert [about(1), about(digits=3)] == [3.1, 3.142]
    assert about.__name__ == "about"  # type: ignore[attr-defined]
    assert about.__doc__ == "Pi, rounded."
    assert len(about.seconds) == 2
    assert all(0 < seconds < 1 for seconds in about.seconds)
    assert about.errors == pytest.approx([math.pi - 3.1, 3.142 - math.pi])  # type: ignore[attr-defined]
    assert "about took" in caplog.text
    assert "about is off by" in caplog.text


def test_asynchronous_answers_are_awaited() -> None:
    waited = []

    class Later:
        def block_until_ready(self) -> None:
            waited.append(self)

    answer = timed(Later)()
    assert waited == [answer]


def test_a_call_that_raises_is_not_counted() -> None:
    def failing() -> None:
        raise ValueError

    measured = timed(accuracy(0.0)(failing))
    with pytest.raises(ValueError):  # noqa: PT011  # which one does not matter
        measured()
    assert measured.seconds == []


def test_expected_answers_may_depend_on_arguments() -> None:
    judged = accuracy(lambda n: np.arange(n))(lambda n: np.arange(n) + 0.5 * (np.arange(n) == 2))
    judged(2)
    judged(3)
    assert judged.errors == [0.0, 0.5]


@pytest.mark.parametrize(
    ("answer", "right", "error"),
    [
        ([1.0, np.nan], [1.0, np.nan], 0.0),
        ([np.inf], [np.inf], 0.0),
        ([], [], 0.0),
        (np.array([3], np.uint8), np.array([5], np.uint8), 2.0),
        (1e-30, 0, 1e-30),
        ([3 + 4j, np.inf], [0j, np.inf], 5.0),
    ],
)
def test_distances(answer: Any, right: Any, error: float) -> None:
    assert distance(answer, right) == error


def test_distance_of_nan_to_a_number() -> None:
    assert math.isnan(distance([1.0, np.nan], [1.0, 2.0]))


@pytest.mark.parametrize("name", SMALL)
def test_programs_are_accurate(name: str) -> None:
    """Every task has a program of NumPy, ours, and all contestants but Triton."""
    task = all_tasks()[name]
    assert {*NEEDS} - {*task.programs} <= {"triton"}
    for contestant in ("numpy", "jitkernels"):
        answer = task.programs[contestant]()(SMALL[name])
        assert task.error(SMALL[name], answer) <= LIMITS[name], contestant


def test_all_tasks_are_tried() -> None:
    assert {*SMALL} == {*all_tasks()} == {*LIMITS}


def test_contestants_take_turns() -> None:
    task = all_tasks()["options"]
    found = list(contest(task, (100, 200), 1, 0.001))
    assert [size for size, _, _ in found] == [100, 200]
    for _, results, missing in found:
        assert {*results} >= {"numpy", "jitkernels"}
        assert {*results} | {*missing} == {*NEEDS}
        assert not {*results} & {*missing}
        for one in results.values():
            assert 0 < one.seconds <= one.first
            assert one.bytes >= 0
            assert one.error < 1e-5
    lines = list(lines_of(task, found))
    assert {line.group for line in lines} == {
        "options",
        *(f"options, {part}" for part in ("first call", "error", "memory")),
    }
    assert "numpy" in verdict(lines).text
    from jitkernels.benchmarks.report.contest_charts import charts_of  # not at collection: it imports matplotlib

    charts = [
        chart
        for group in {line.group for line in lines}
        for chart in charts_of(group, [one for one in lines if one.group == group])
    ]
    assert len(charts) == 8
    assert all("<svg" in chart["svg"] for chart in charts)


def test_failing_contestants_report_the_reason() -> None:
    with Contestant(all_tasks()["pi"], "nobody", 1, "") as one:
        assert "nobody" in one.wait_until_ready()
    with Contestant(all_tasks()["pi"], "numpy", 1, "") as one:
        assert one.wait_until_ready() == ""
        assert "ZeroDivisionError" in one.request(0, 1)["wrong"]


def test_missing_modules_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(NEEDS, "numba", "no_such_module")
    assert reason_unavailable("numba") == "no_such_module is not installed"
    assert reason_unavailable("numpy") == ""


def test_the_minimum_of_all_turns_counts() -> None:
    result = Result(first=1.0, error=0.0, bytes=0)
    for seconds in ([3.0, 2.0], [4.0], [2.5]):
        result.take(seconds)
    assert (result.seconds, result.spread) == (2.0, 0.5)
