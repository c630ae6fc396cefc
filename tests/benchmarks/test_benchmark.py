"""The benchmark suite: its table, records and comparisons, and that each entry runs and can fail."""

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import every_row

from jitkernels.attrs.emb_seq_pool import EmbSeqPoolAttr
from jitkernels.attrs.schema.registry import all_schemas
from jitkernels.attrs.vector import VExpAttr, VMulAttr
from jitkernels.benchmarks import compare, saved, stamp, table
from jitkernels.benchmarks.entries import (
    beside_numpy,
    beside_peers,
    new_sizes,
    ordinary_calls,
    random_attrs,
    streaming,
    weights,
)
from jitkernels.benchmarks.peers import OrdinaryCall
from jitkernels.benchmarks.saved import Run
from jitkernels.benchmarks.suite import Benchmark, Line, Settings, Verdict, benchmark, benchmarks
from jitkernels.errors import ArgumentError, RegistrationError
from jitkernels.selection.size_classes import nbytes
from jitkernels.tools.cli import bench, main
from jitkernels.tuning.timer import Timing

QUICK = Settings([VMulAttr], "ci", 1e-3, 1, peers=True)


def line(case: str = "n8", pick: str = "gen", detail: str = "gen", **seconds: float) -> Line:
    return Line(
        "vmul", case, {name: Timing(s, 0.01 * s) for name, s in seconds.items()}, pick, ("gen", "mkl"), detail=detail
    )


def run_of(*lines: Line) -> Run:
    return Run("kernels", stamp.stamp(1), lines)


def test_table_has_every_implementation_the_pick_and_peers() -> None:
    found = table.contest(VMulAttr(n=8), peers=True)
    assert {"gen", "refer", "numpy"} <= set(found.calls)
    assert found.pick in found.implementations
    assert "numpy" not in found.implementations
    assert "numpy" not in table.contest(VMulAttr(n=8), peers=False).calls


def test_regret_and_speed() -> None:
    one = line(gen=2.0, mkl=1.6, refer=8.0, numpy=1.0)
    assert one.regret == pytest.approx(0.25)  # peers are no rivals
    assert one.speed_over("refer") == 4
    assert one.speed_over("scipy") is None
    assert Line("launch", "n = 8", {"a": Timing(1, 0)}).regret is None


def test_runs_load_back_equal(tmp_path: Path) -> None:
    run = run_of(line(gen=1.0, mkl=2.0), Line("new-sizes", "x", {"new": Timing(1.5, 0.0)}, figures={"bytes": 7.0}))
    saved.save(tmp_path / "run.json", run)
    assert saved.load(tmp_path / "run.json") == run
    assert {"cpu", "features", "numpy", "threads", "date", "load"} <= set(run.stamp)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 0}', '{"format": 1, "lines": [{}]}', "\udcff"])
def test_files_without_a_run_are_rejected(tmp_path: Path, text: str) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ArgumentError, match=r"run\.json"):
        saved.load(path)
    with pytest.raises(ArgumentError, match="nowhere"):
        saved.load(tmp_path / "nowhere")
    with pytest.raises(ArgumentError, match="nowhere"):
        saved.save(tmp_path / "nowhere" / "run.json", run_of())


def test_changes_beyond_noise() -> None:
    before = run_of(line(gen=1.0, mkl=2.0, refer=9.0), line("n9", gen=1.0))
    after = run_of(line(gen=0.5, mkl=2.05, refer=12.0, pick="mkl", detail="mkl"), line("n10", gen=1.0))
    kinds = {change.name: change.kind for change in compare.changes(before, after)}
    assert kinds == {"gen": "faster", "mkl": "", "refer": "slower"}
    assert [(old.detail, new.detail) for old, new in compare.picks_changed(before, after)] == [("gen", "mkl")]
    text = compare.summary(before, after)
    assert text.startswith("3 timings: 1 faster, 1 slower")
    assert "0 of 1 lines have the same pick" in text
    assert compare.summary(before, run_of()) == "the two runs have no line in common"
    noisy = run_of(Line("vmul", "n8", {"gen": Timing(1.0, 0.6)}))
    assert [change.kind for change in compare.changes(noisy, run_of(line(gen=0.5)))] == [""]


def test_names_of_benchmarks() -> None:
    found = benchmarks()
    assert {
        "kernels",
        "launch",
        "startup",
        "matmul-peak",
        "ordinary-calls",
        "new-sizes",
        "first-call",
        "packed",
    } <= set(found)
    assert not {row.kernel_type.name.lower() for row in all_schemas()} & set(found)
    for entry in found.values():
        assert entry.summary.endswith(".")
    with pytest.raises(RegistrationError, match="already is a benchmark 'launch'"):

        @benchmark("launch", verdict=lambda lines: Verdict(""))
        def other(settings: Settings) -> list[Line]:
            """Another one."""
            return []


def test_pytest_runs_the_same_table() -> None:
    """``pytest bench --benchmark-only`` as it stands in the documentation, for the smallest attr of every row."""
    root = Path(__file__).parents[2]
    quick = ("--benchmark-max-time=1e-4", "--benchmark-min-time=1e-6", "--benchmark-min-rounds=1")
    around = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    command = [sys.executable, "-m", "pytest", "bench", "--benchmark-only", "-q", "-m", "tiny", *quick]
    done = subprocess.run(command, cwd=root, env=around, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for row in all_schemas():
        assert f"test_call[{row.kernel_type.name.lower()}-" in done.stdout, row
    for name in ("pick", "gen", "refer", "numpy"):
        assert re.search(rf"test_call\[vmul-.*-{name}\]", done.stdout), name


@pytest.mark.parametrize("name", ["kernels", "launch", "keywords", "random-attrs", "at-hit", "rows", "njit-calls"])
def test_entries_run(name: str) -> None:
    entry = benchmarks()[name]
    lines = list(entry.run(Settings([VMulAttr, VExpAttr, EmbSeqPoolAttr], "ci", 1e-4, 1, peers=False)))
    verdict = entry.verdict(lines)
    assert lines
    assert verdict.text
    for found in lines:
        assert all(timing.seconds > 0 for timing in found.timings.values())


def test_single_operations_are_timed_in_all_layouts() -> None:
    chosen = {name: beside_numpy.OPERATIONS[name] for name in ("x * x", "x += 1", "x - x[:1]")}
    lines = list(beside_numpy.lines_of(chosen, ["bool", "int8"], [8], 1e-4))
    assert {line.group for line in lines} == {*chosen}
    assert not any(line.group == "x - x[:1]" and "bool" in line.case for line in lines)
    assert len(lines) == 5 * len(list(beside_numpy.layouts("int8", 8)))


def test_products_are_timed_in_all_shapes() -> None:
    lines = list(beside_numpy.lines_of_products(beside_numpy.PRODUCTS, beside_numpy.SHAPES[:2], 1e-4))
    assert [(line.group, line.case) for line in lines][:2] == [
        ("x @ w", "3 x 5 of 8 float32"),
        ("x @ w", "2 x 3 of 600 float32"),
    ]
    assert len(lines) == 2 * 2 * len(beside_numpy.PRODUCTS)


def test_sorts_are_timed_in_all_orders() -> None:
    lines = list(beside_numpy.lines_of_orders(beside_numpy.ORDERED, (16,), 1e-4))
    assert (lines[0].group, lines[0].case) == ("sort in order", "16 float32, random")
    assert len(lines) == 2 * len(list(beside_numpy.orders("float32", 16))) * len(beside_numpy.ORDERED)


@pytest.mark.parametrize("part", [new_sizes.of_known_classes, new_sizes.of_any_class])
def test_new_sizes_counts_time_and_memory(part: Callable[[int], dict[str, dict[str, float]]]) -> None:
    found = part(40)
    assert set(found) == {"vmul", "softmax", "layer_norm"}
    for figures in found.values():
        assert figures["new"] > 0
        assert figures["warm"] > 0


PROMISES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "startup": ({"total": 0.1}, {"total": 0.3}),
    "ordinary-calls": ({"jitkernels": 1.0, "numpy": 3.0}, {"jitkernels": 1.0, "numpy": 0.5}),
    "beside-numpy": ({"jitkernels": 1.0, "numpy": 1.1}, {"jitkernels": 1.0, "numpy": 0.9}),
    "beside-peers": ({"gen": 1.0, "numpy": 5.0, "torch": 0.95}, {"gen": 1.0, "numpy": 5.0, "torch": 0.8}),
    "keywords": (
        {"keyword": 5e-8, "position": 5e-8, "position, out=": 5e-8},
        {"keyword": 5e-6, "position": 5e-8, "position, out=": 5e-6},
    ),
    "new-sizes": ({"above": 1e-7}, {"above": 1e-3}),
    "first-call": ({"beyond": 0.1}, {"beyond": 1.0}),
    "tuning-time": (
        {"first call": 0.7, "first loop": 1.5, "pauses": 0.7, "warm loop": 0.5},
        {"first call": 0.7, "first loop": 1.5, "pauses": 0.9, "warm loop": 1.5},
    ),
    "random-attrs": ({"gen": 1.0, "mkl": 1.5, "refer": 2.0}, {"gen": 1.0, "mkl": 1.5, "refer": 0.9}),
    "expressions": ({"jitkernels": 1.0, "numpy": 4.0, "numba": 2.0}, {"jitkernels": 1.0, "numpy": 4.0, "numba": 1.2}),
    "compiled-call": ({"f(a, b, c, out=o)": 9e-8}, {"f(a, b, c, out=o)": 2e-7}),
    "levels": (
        {"level 3": 1.0, "level 0": 2.0, "numpy, out=": 1.1},
        {"level 3": 1.0, "level 0": 2.0, "numpy, out=": 0.9},
    ),
    "training": ({"jit": 1.0, "level 0": 1.3, "torch": 2.0}, {"jit": 1.0, "level 0": 1.3, "torch": 1.4}),
    "serving": ({"jit, static": 1.0, "onnxruntime": 6.0}, {"jit, static": 1.0, "onnxruntime": 4.0}),
    "models": ({"jitkernels": 1.0, "onnxruntime": 1.3}, {"jitkernels": 1.0, "onnxruntime": 0.9}),
    "rows": ({"compiled": 1.0, "by hand": 0.95, "numpy": 9.0}, {"compiled": 1.0, "by hand": 0.8, "numpy": 9.0}),
    "at-hit": ({"newest": 1e-7}, {"newest": 1e-5}),
}


@pytest.mark.parametrize("name", PROMISES)
def test_verdicts_can_fail(name: str) -> None:
    """Each promise holds for good figures and is reported as broken for bad ones."""
    rivals = ("gen", "mkl") if name == "random-attrs" else ()
    pick = {
        "random-attrs": "gen",
        "beside-peers": "gen",
        "ordinary-calls": "jitkernels",
        "beside-numpy": "jitkernels",
        "levels": "level 3",
        "models": "jitkernels",
        "rows": "compiled",
        "training": "jit",
        "serving": "jit, static",
    }.get(name, "")
    answers = []
    for seconds in PROMISES[name]:
        timings = {key: Timing(value, 0.0) for key, value in seconds.items()}
        figures = {"bytes": 0.0, "translated": 0.0, "kernels": 1.0, "losses differ": 0.0}
        found = Line("vmul", "n8", timings, pick, rivals, figures, "first")
        answers.append(benchmarks()[name].verdict([found]).holds)
    assert answers == [True, False]


def test_every_row_is_compared_with_peers_at_all_sizes() -> None:
    for row in all_schemas():
        found = [case.attr for case in beside_peers.spread(row, beside_peers.ELEMENTS["full"])]
        assert len(set(found)) == len(found) >= 4, row


def test_random_attrs_lie_outside_the_sweep() -> None:
    for row in all_schemas():
        found = random_attrs.attrs_between(row, 5, np.random.default_rng(0))
        assert len(set(found)) == 5
        assert not set(found) & {case.attr for case in row.sweep()}
        assert found == random_attrs.attrs_between(row, 5, np.random.default_rng(0))


@pytest.mark.parametrize("place", ["", "none/run.json"])
def test_an_invalid_output_file_is_rejected_before_measuring(
    place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["bench", "vmul", "--seconds", "1e-4", "--json", str(tmp_path / place)])
    assert ended.value.code == 2
    captured = capsys.readouterr()
    assert "--json: expected a file" in captured.err
    assert not captured.out


def test_command_prints_stores_and_compares(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints and stores the table, and compares a second run with the first."""
    path = tmp_path / "run.json"
    arguments = ["bench", "vmul", "--seconds", "1e-4", "--peers", "--threads", "1"]
    for more in (["--json", str(path)], ["--compare", str(path)]):
        with pytest.raises(SystemExit) as ended:
            main([*arguments, *more])
        assert ended.value.code == 0
    printed = capsys.readouterr().out
    content = json.loads(path.read_text())
    assert content["benchmark"] == "kernels"
    assert "numpy" in content["lines"][0]["timings"]
    assert "n1000-f64" in printed
    assert "regret: median" in printed
    assert "lines have the same pick" in printed
    with pytest.raises(SystemExit) as ended:
        main(["bench", "--compare", str(path), "--compare", str(path)])
    assert ended.value.code == 0
    assert "0 faster, 0 slower" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonesuch"], "no kernel 'nonesuch'.*benchmarks.*launch"),
        (["vmul", "--seconds", "-1"], "--seconds"),
        (["vmul", "--threads", "0"], "0"),
        (["--compare", "/dev/null/x"], "/dev/null/x"),
    ],
)
def test_wrong_commands_are_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["bench", *arguments])
    assert ended.value.code == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert re.search(message, said)


@pytest.mark.parametrize(("holds", "code"), [(True, 0), (None, 0), (False, 1)])
def test_broken_promises_are_the_exit_code(holds: bool | None, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def verdict(lines: Sequence[Line]) -> Verdict:
        return Verdict("x", holds)

    entry = Benchmark("launch", "Some calls.", lambda settings: [line(gen=1.0, mkl=1.0)], verdict, "")
    monkeypatch.setattr(bench, "benchmarks", lambda: {"launch": entry})
    assert bench.run(["launch"], bench.Options(seconds=0.1)) == code


def test_memory_bound_rows_have_streaming_benchmarks() -> None:
    """MATMUL is one of the rows that are compute-bound; transforms pass over their rows several times."""
    for row in (p.values[0] for p in every_row()):
        if row.kernel_type.name.startswith("FFT_"):
            continue
        found = list(streaming.attrs(row))
        most = max(case.attr.operations() / nbytes(case.attr) for case in row.sweep() if nbytes(case.attr))
        assert bool(found) == (most <= streaming.MAX_OPERATIONS_PER_ELEMENT), row.kernel_type.name
        for attr in found:
            assert max(math.prod(array.shape) for array in attr.signature().arrays) >= streaming.STREAMED_ELEMENTS


def test_declared_streaming_extents_are_all_used() -> None:
    """Extents fit their fields, and no attr is skipped."""
    said = [row for row in all_schemas() if row.streams]
    assert {"SEQ_POOL", "SGD", "TRANSPOSE"} <= {row.kernel_type.name for row in said}
    for row in said:
        assert len(list(streaming.attrs(row))) == len(row.streams)


def test_streaming_promises_a_share_of_the_triad() -> None:
    timings = {"pick": Timing(1.0, 0.0), "triad": Timing(1.0, 0.0)}
    for share, holds in ((0.95, True), (0.5, False)):
        lines = [Line("vmul", "n", timings, "pick", figures={"share": share})]
        assert streaming.verdict(lines).holds == holds


def test_streaming_line() -> None:
    """Measure small arrays beside triads that do nothing."""
    (attr,) = streaming.attrs(VMulAttr, 1000)
    found = streaming.line(attr, [(lambda: None, 1e3)], 1e-4)
    assert {"pick", "static", "refer", "triad"} == set(found.timings)
    assert found.figures["share"] > 0


def test_streaming_line_without_a_generated_kernel(toy: Any, fresh: Path) -> None:
    """Rows of other packages may lack one: the first implementation in the static order is measured."""
    found = streaming.line(toy.ToyAttr(n=1000), [(lambda: None, 1e3)], 1e-4)
    assert found.detail == "refer[]"


def test_weights_line() -> None:
    """Few columns, on one thread; every kind of weights has a line."""
    found = list(weights.attrs(64))
    assert {attr.fields().get("rounded") for attr in found} == {None, "float", "int16", "int8"}
    made = weights.line(found[0], False, 1e-4)
    assert {"read", "gen"} == set(made.timings)
    assert weights.verdict([made]).holds == (made.figures["share"] >= weights.PROMISED_READ_SHARE)


def test_ordinary_calls_are_compared_in_one_dtype() -> None:
    """Where NumPy keeps integers it converts them as the everyday function does, unless ``out`` says what comes out."""
    few = np.arange(3, dtype=np.int8)
    same = ordinary_calls.of_the_same_dtype
    by_ufunc = same(np.multiply, OrdinaryCall("int8", (few, few)), np.zeros(3))
    assert by_ufunc.keywords == {"dtype": np.float64}
    by_function = same(np.max, OrdinaryCall("int8", (few,), {"axis": 0}), np.float64(2))
    assert by_function().dtype == np.float64
    floats = few.astype(np.float64)
    assert same(np.multiply, OrdinaryCall("float64", (floats, 2)), floats).keywords == {}
    flags = OrdinaryCall("bool", (few > 0, few > 0))
    assert same(np.subtract, flags, floats)().dtype == np.float64
    swapped = OrdinaryCall("byte-swapped", (floats.astype(">f8"),))
    assert same(np.copy, swapped, floats)().dtype.isnative
    into = OrdinaryCall("out", (few, few), {"out": np.zeros(3)})
    assert same(np.multiply, into, np.zeros(3)).keywords.keys() == {"out"}
