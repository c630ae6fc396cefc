"""Programs of science: every spelling compiles without a break, and computes what NumPy computes."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.benchmarks.entries import science
from jitkernels.benchmarks.science import science_programs
from jitkernels.benchmarks.science.science_program import difference_of, known, results_of, science_program
from jitkernels.benchmarks.suite import Line
from jitkernels.compiler.codegen.core import split_module
from jitkernels.compiler.transforms.invariants import backward_slice, scalar_expansion
from jitkernels.errors import RegistrationError, TracingError
from jitkernels.tuning.timer import Timing

PROGRAMS = science_programs()
NOT_COMPILED: dict[tuple[str, str], str] = {}
"""Spellings that still fall back, and why; it may only shrink."""
CASES = [
    pytest.param(
        name,
        spelling,
        id=f"{name}-{spelling}",
        marks=[pytest.mark.xfail(raises=TracingError, reason=NOT_COMPILED[name, spelling], strict=True)]
        if (name, spelling) in NOT_COMPILED
        else [],
    )
    for name, program in PROGRAMS.items()
    for spelling in program.spellings
]
TOLERANCE = {"float64": 1.0, "float32": 1e5, "int64": 0.0}
"""Times the tolerance of a program."""


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let programs of test sizes take what those of benchmarks take."""
    monkeypatch.setattr(scalar_expansion, "MIN_TRIPS_OF_COPIES", 2)
    monkeypatch.setattr(backward_slice, "MIN_STRIDE_BYTES", 8)
    monkeypatch.setattr(split_module, "MIN_SPLIT_CHARS", 1000)


@pytest.mark.per_push
@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize(("name", "spelling"), CASES)
def test_spellings_compile_strictly(name: str, spelling: str) -> None:
    program = PROGRAMS[name]
    function = program.spellings[spelling]
    compiled = jk.jit(function, strict=True)
    for dtype in program.dtypes:
        for size in program.sizes:
            given = program.inputs(size, dtype)
            expected, got = function(*program.inputs(size, dtype)), compiled(*given)
            assert [one.dtype for one in results_of(got)] == [one.dtype for one in results_of(expected)]
            assert difference_of(got, expected) <= program.rtol * TOLERANCE.get(dtype, 1.0), (dtype, size)


@pytest.mark.parametrize("name", PROGRAMS)
def test_spellings_agree(name: str) -> None:
    program = PROGRAMS[name]
    for dtype in program.dtypes:
        for size in program.sizes:
            expected = program.baseline(*program.inputs(size, dtype))
            for spelling, function in program.spellings.items():
                got = function(*program.inputs(size, dtype))
                assert difference_of(got, expected) <= program.rtol * TOLERANCE.get(dtype, 1.0), spelling


def test_programs_do_not_write_to_their_arguments() -> None:
    """Else timed calls would each have other inputs."""
    for program in PROGRAMS.values():
        for function in program.spellings.values():
            given = program.inputs(program.sizes[0], program.dtypes[0])
            function(*given)
            assert difference_of(given, program.inputs(program.sizes[0], program.dtypes[0])) == 0.0


def test_names_must_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_arrays(x: Any) -> Any:
        return x

    def other_loops(x: Any) -> Any:
        return x

    def heat_arrays(x: Any) -> Any:
        return x

    with pytest.raises(RegistrationError, match="several programs"):
        science_program(lambda n, dtype: (), one_arrays, other_loops, size=1)
    with pytest.raises(RegistrationError, match="already is a program 'heat'"):
        science_program(lambda n, dtype: (), heat_arrays, size=1)
    assert known.keys() == PROGRAMS.keys()


def test_differences() -> None:
    assert difference_of(np.ones(2), np.ones(3)) == np.inf
    assert difference_of(np.array([1.0, np.nan]), np.ones(2)) == np.inf
    assert difference_of((np.array([2.0]), 4), (np.array([4.0]), 4)) == 0.5


def test_verdict_can_fail() -> None:
    def line(seconds: float, first_call: float) -> Line:
        timings = {"numpy": Timing(1.0, 0.0), "numba": Timing(1.0, 0.0), "jit": Timing(seconds, 0.0)}
        return Line("heat", "loops", timings, "jit", figures={"first call s": first_call})

    assert science.verdict([line(0.1, 0.1)]).holds is True
    failed = Line("heat", "loops", {})
    for lines in ([line(0.9, 0.1)], [line(0.1, 0.6)], [line(0.001, 0.1), line(2.0, 0.1)], [line(0.01, 0.1), failed]):
        assert science.verdict(lines).holds is False


def test_measurements_of_one_program() -> None:
    found = science.child("heat", 1e-3)
    assert {"numpy", "arrays", "loops", "mixed"} <= set(found["times"])
    assert {"arrays", "loops", "mixed"} <= set(found["first calls"])
    assert not found["remarks"]
