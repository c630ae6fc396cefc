"""`tune` of compiled functions: what is counted, and what is measured in the given time."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import control_programs
import numpy as np
import pytest
from processes import python

import jitkernels as jk
from jitkernels.compiler.diagnostics import autotune
from jitkernels.compiler.diagnostics.profile_report import KernelTime
from jitkernels.compiler.lowering import autotune_program
from jitkernels.compiler.lowering.build_segment import NestRequest
from jitkernels.selection.records import Measured, Record
from jitkernels.tuning import plan_tuning
from jitkernels.tuning.tune import keep


def mixed(x: Any, w: Any) -> Any:
    """A product with what follows, something of NumPy's, and a kernel."""
    sorted_ones = np.sort(np.maximum(x @ w, 0.25), axis=1)
    return sorted_ones / sorted_ones.sum(axis=1, keepdims=True)


def smoothed(u: Any, steps: Any) -> Any:
    """A nest of parts of an array, in a loop."""
    for _ in range(steps):
        u[1:-1] = 0.25 * (u[:-2] + u[2:]) + 0.5 * u[1:-1]
    return u


def scaled(x: Any) -> Any:
    return x * 2.0 - x


@pytest.fixture
def replay(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JITKERNELS_TUNE", "replay")
    return fresh


def test_profiled_times() -> None:
    compiled = jk.jit(mixed, profile=True)
    assert compiled.stats().times == ()
    for n in (20, 20, 40):
        x, w = np.random.default_rng(n).random((n, 30)), np.ones((30, 10))
        assert np.array_equal(compiled(x, w), mixed(x, w)) or np.allclose(compiled(x, w), mixed(x, w))
    times = compiled.stats().times
    assert {one.sizes["n0"] for one in times} == {20, 40}
    assert sum(one.share for one in times) == pytest.approx(1)
    for one in times:
        assert (one.calls, one.runs) == (one.calls, one.calls)
        assert one.seconds > 0
        assert one.bytes_per_second
        assert one.operations_per_second or one.kernel.startswith("NumPy")
        assert one.kernel in str(compiled.stats())
    explanation = str(compiled.explain(x, w))
    assert explanation.count("% of the time") == len(compiled.explain(x, w).groups) == 3
    assert "GB/s" in explanation
    assert "Gflop/s" in explanation
    compiled.release()
    assert compiled.stats().times == ()
    assert "% of" not in str(jk.jit(mixed).explain(x, w))


def test_profiled_times_of_loops() -> None:
    compiled = jk.jit(smoothed, profile=True)
    for _ in range(3):
        compiled(np.arange(500.0), 20)
    loop, inside = [one for one in compiled.stats().times if "copy" not in one.kernel]
    assert (loop.runs, inside.runs, inside.inside) == (3, 60, True)
    assert inside.seconds <= loop.seconds
    assert loop.share > 0.5
    assert loop.bytes_per_second is None
    assert "60 times" in str(compiled.explain(np.arange(500.0), 20))


def test_number_of_profiled_sizes_is_bounded() -> None:
    compiled = jk.jit(scaled, profile=True)
    for n in range(2, 60):
        compiled(np.ones(n))
    assert len(compiled.stats().times) <= 16


def test_threads_share_profile_counters() -> None:
    compiled = jk.jit(scaled, profile=True)

    def call() -> None:
        for n in range(2, 40):
            compiled(np.ones(n))
            compiled(np.ones(500))
            compiled.stats()

    with ThreadPoolExecutor(8) as threads:
        for one in [threads.submit(call) for _ in range(8)]:
            one.result()
    runs = {one.sizes["n0"]: one.runs for one in compiled.stats().times}
    assert runs[500] == 8 * 38


def test_units() -> None:
    texts = [KernelTime("add", {}, 1, 1, seconds, 1.0).figures for seconds in (2e-9, 3e-6, 4e-3, 5.0)]
    assert [text.split(" times ")[1] for text in texts] == ["2 ns", "3 us", "4 ms", "5 s"]


def test_loops_are_tuned_within_their_program(replay: Path) -> None:
    """Other processes use the pick."""
    compiled = jk.jit(smoothed)
    arguments = np.arange(300.0), 9
    before = compiled(arguments[0].copy(), 9)
    rows = compiled.tune(*arguments, seconds=0.3)
    assert np.array_equal(arguments[0], np.arange(300.0)), "it is measured on copies"
    (program,) = [one for one in rows if one.attr.kernel_type.name == "PROGRAM"]
    assert "n0=300" in str(program)
    assert len(program.lines) >= 2
    assert list(replay.glob("*/tuning/program-*.json"))
    np.testing.assert_allclose(compiled(*arguments), before)
    attr: Any = program.attr
    record = Record((Measured("jit", {"nests": "1 x 16"}, 1e-6, 0.0),))
    keep(attr, record, 0.0)
    text = (
        "import numpy as np, jitkernels as jk\n"
        "from test_tuned_functions import smoothed\n"
        "print(jk.jit(smoothed).explain(np.arange(300.0), 9))\n"
    )
    threads = str(jk.get_num_threads())  # picks are kept for a number of threads
    output = python(text, replay, JITKERNELS_TUNE="replay", JITKERNELS_NUM_THREADS=threads)
    assert "compiled with nests=1 x 16, measured" in output


def recurrence(x: Any, w: Any, u: Any) -> Any:
    """The product with `x` of all iterations is one product; views of its rows are operands in the loop."""
    h, states = np.zeros(u.shape[1]), np.zeros((x.shape[0], u.shape[1]))
    for t in range(x.shape[0]):
        h = np.tanh(w @ x[t] + u @ h)
        states[t] = h
    return states


@pytest.mark.parametrize("function", [recurrence, smoothed])
def test_no_variant_is_disqualified_in_any_round(
    replay: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, function: Any
) -> None:
    """Kernels alone, configs, all nests, and single nests: each round has a reference of its own."""
    monkeypatch.setattr(autotune, "CONFIGS", ({"exact_sizes": True},))  # with which no nest is measured alone
    rounds: list[Any] = []
    contest = plan_tuning.contest
    monkeypatch.setattr(
        plan_tuning, "contest", lambda *given, **named: (rounds.append(given), contest(*given, **named))[1]
    )
    random = np.random.default_rng(0)
    operands: dict[Any, Any] = {
        recurrence: (random.random((90, 8)), random.random((64, 8)) / 64, random.random((64, 64)) / 64),
        smoothed: (np.arange(300.0), 9),
    }
    jk.jit(function).tune(*operands[function], seconds=4.0)
    assert len(rounds) > 1
    assert "is not used" not in caplog.text


def test_functions_without_standalone_kernels_are_tuned_as_programs(replay: Path) -> None:
    compiled = jk.jit(lambda x, i: x[i] * 2)
    (explanation,) = compiled.tune(np.arange(50.0), np.arange(40), seconds=0.1)
    assert "PROGRAM" in str(explanation)
    assert "measured" in str(explanation)


def test_wrong_variants_are_disqualified(replay: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autotune, "CONFIGS", ({}, {"fast_math": True}))
    compiled = jk.jit(lambda x: (x - x) + 1.0)
    with np.errstate(all="ignore"):
        *_, program = compiled.tune(np.full(100, np.inf), seconds=0.1)
        assert np.isnan(compiled(np.full(100, np.inf))).all()
    (wrong,) = [line for line in program.lines if "fast_math" in line.implementation]
    assert "the reference gives" in str(wrong.error)


def test_profiled_calls_are_tuned(replay: Path) -> None:
    compiled = jk.jit(scaled, profile=True)
    for n in (2000, 3000):
        for _ in range(5):
            compiled(np.ones(n))
    explanations = compiled.tune(seconds=0.2)
    assert any("n0=3000" in str(one) for one in explanations)
    assert compiled.stats().compiles == 0, "it is recompiled"


def test_invalid_times(replay: Path) -> None:
    for seconds in (0, -1.0, "1", float("inf")):
        with pytest.raises(jk.ArgumentError, match="seconds: expected a positive number"):
            jk.jit(scaled).tune(np.ones(3), seconds=seconds)
    with pytest.raises(TypeError, match="missing"):
        jk.jit(scaled).tune()


@pytest.mark.parametrize("others_first", [True, False])
def test_exact_size_code_serves_only_its_size(replay: Path, others_first: bool) -> None:
    compiled = jk.jit(smoothed, opt_level=2 + others_first)
    flat = compiled._signature.flatten((np.arange(50.0), 5), {})
    call = autotune.TunedCall(smoothed, flat.structure, flat.leaves, compiled.config)
    keep(call.schema, Record((Measured("jit", {"exact_sizes": True}, 1e-6, 0.0),)), 0.0)
    for n in (40, 50, 60, 50, 40) if others_first else (50, 40, 50, 60):
        for _ in range(3):
            np.testing.assert_allclose(compiled(np.arange(n) ** 2.0, 5), smoothed(np.arange(n) ** 2.0, 5))
        assert ("exact_sizes=True" in str(compiled.explain(np.arange(n) ** 2.0, 5))) == (n == 50)
    assert compiled.stats().compiles == 2


@pytest.mark.parametrize("function", control_programs.PROGRAMS)
def test_exact_sizes_do_not_change_results(function: Any) -> None:
    makers = control_programs.PROGRAMS[function]
    expected, found = [one() for one in makers], [one() for one in makers]
    right = function(*expected)
    np.testing.assert_allclose(jk.jit(function, exact_sizes=True)(*found), right) if right is not None else jk.jit(
        function, exact_sizes=True
    )(*found)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other)


def test_each_exact_size_is_recompiled() -> None:
    compiled = jk.jit(scaled, exact_sizes=True)
    for n in (0, 1, 2, 7, 7, 300):
        assert np.array_equal(compiled(np.arange(float(n))), scaled(np.arange(float(n))))
    assert compiled.stats().compiles == 5
    assert "float64[300]" in str(compiled.explain(np.ones(300)))


def test_variants_apply_to_all_nests_or_one() -> None:
    """Nests with a variant of their own keep it, unless they are named."""

    class Anything:
        variant = ""

    how = autotune_program.ProgramVariant(jk.JitConfig(), {"nests": "1 x 32", "nest1": "4 x 16"}, None)
    nest: Any = Anything()
    nest.cost = 1
    scope: Any = None
    picks = [how(NestRequest(nest, {}, scope)) for _ in range(3)]
    assert [(one.unroll, one.vector_bytes) for one in picks if one] == [(1, 32), (4, 16), (1, 32)]


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64", "bool"])
def test_unsigned_arguments_are_tuned(dtype: str, replay: Path) -> None:
    compiled = jk.jit(lambda a, b: ((a ^ b) & a, a.max()))
    a = np.arange(60).reshape(6, 10).astype(dtype)
    assert compiled.tune(a, a, seconds=0.05)


def quotients(a: Any) -> Any:
    total = 0
    for one in a:
        total += 1000 // int(one)
    return total


def test_calls_that_raise_are_not_tuned(replay: Path) -> None:
    """Nor do they count as profiled calls."""
    compiled = jk.jit(quotients, profile=True)
    right, wrong = np.ones(300, int), np.zeros(300, int)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            compiled(wrong)
    with pytest.raises(jk.ArgumentTypeError, match="expected the arguments of a call, or calls of a profile"):
        compiled.tune(seconds=0.05)
    with pytest.raises(jk.NotUsableError, match="quotients raises an exception for these arguments"):
        compiled.tune(wrong, seconds=0.05)
    compiled(right)
    assert compiled.tune(seconds=0.05)


def test_kernels_by_name_are_counted() -> None:
    compiled: Any = jk.jit(lambda x: jk.softmax(jk.sort(x)[::-1]), profile=True)
    for _ in range(2):
        compiled(np.random.default_rng(0).random((30, 40)))
    assert str(compiled.stats())
    assert compiled.stats().times
