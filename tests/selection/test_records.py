"""Tuning records: when they hold, and when they are a miss."""

import dataclasses
import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest
from picks import chosen, record
from processes import python

import jitkernels as jk
from jitkernels.attrs.schema import registry
from jitkernels.attrs.schema.registry import all_schemas, implementations
from jitkernels.core import cache_dirs, cpu_target
from jitkernels.dispatch.kernel_cache import KernelFuncs
from jitkernels.runtime.threads.num_threads import get_num_threads
from jitkernels.selection import records, select
from jitkernels.selection.nearest_record import nearest
from jitkernels.selection.records import Measured, Record
from jitkernels.selection.select import choose
from jitkernels.selection.size_classes import has_elements, measured_member
from jitkernels.tuning import tune
from jitkernels.tuning.tuner import MIN_RANK_GAIN, ordered
from jitkernels.tuning.tuning_budget import TuningBudget


def damaged(path: Path, change: str) -> None:
    """A record with one thing wrong."""
    content = json.loads(path.read_text())
    if change == "torn":
        path.write_text(path.read_text()[:-20])
    elif change == "empty":
        path.write_text("")
    elif change == "binary":
        path.write_bytes(b"\xff\x00\x80" * 9)
    elif change == "list":
        path.write_text("[]")
    elif change in ("pipe", "folder"):
        path.unlink()
        os.mkfifo(path) if change == "pipe" else path.mkdir()
    else:
        edits: dict[str, dict[str, Any]] = {
            "foreign attr": {"attr": {"kernel": "OTHER"}},
            "foreign environment": {"environment": content["environment"] | {"cpu": "another"}},
            "future format": {"format": 2},
            "no candidates": {"candidates": []},
            "no timing": {"candidates": [content["candidates"][0] | {"seconds": None}]},
            "seconds are text": {"candidates": [content["candidates"][0] | {"seconds": "fast"}]},
            "variant is text": {"candidates": [content["candidates"][0] | {"variant": "wide"}]},
            "unknown key": {"candidates": [content["candidates"][0] | {"colour": "red"}]},
            "name is a number": {"candidates": [content["candidates"][0] | {"implementation": 5}]},
            "candidates are text": {"candidates": "refer"},
        }
        path.write_text(json.dumps(content | edits[change]))


DAMAGES = [
    "torn", "empty", "binary", "list", "foreign attr", "foreign environment", "future format", "no candidates",
    "no timing", "seconds are text", "variant is text", "unknown key", "name is a number", "candidates are text",
    "folder", *(["pipe"] if hasattr(os, "mkfifo") else []),
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_invalid_record_is_a_miss(
    attr: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    """Neither an error nor a wrong pick; one log line, however often it is read."""
    monkeypatch.setenv("JITKERNELS_TUNE", "replay")
    records.save(attr.size_class(), record("refer"), get_num_threads())
    path = records.path_of(attr.size_class(), get_num_threads())
    assert path is not None
    damaged(path, damage)
    with caplog.at_level(logging.WARNING, "jitkernels"):
        for _ in range(3):
            assert (chosen(attr).implementation, chosen(attr).rule) == ("gen", "static")
            jk.explain(attr)
    assert len([line for line in caplog.records if str(path) in line.getMessage()]) == 1


@pytest.mark.parametrize(
    ("name", "variant", "answer"),
    [
        ("gone", {}, ("refer", "measured")),
        ("theirs", {"vector_bytes": 7777}, ("gen", "static")),
        ("theirs", {"no_such_parameter": 1}, ("gen", "static")),
    ],
)
def test_records_of_missing_implementations_and_variants(
    attr: Any, monkeypatch: pytest.MonkeyPatch, name: str, variant: dict[str, Any], answer: tuple[str, str]
) -> None:
    """The next candidate replaces a missing implementation; an unknown variant invalidates the record."""
    monkeypatch.setenv("JITKERNELS_TUNE", "replay")
    gone = Record((Measured(name, variant, 1e-9, 0.0), Measured("refer", {}, 1e-6, 0.0)))
    records.save(attr.size_class(), gone, get_num_threads())
    assert (chosen(attr).implementation, chosen(attr).rule) == answer
    with jk.use(implementation="theirs"):
        function: Any = KernelFuncs.cache().at(attr)
        assert function.__self__.variant == {"vector_bytes": 32}


def test_disqualified_candidate_is_never_picked(attr: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITKERNELS_TUNE", "replay")
    wrong = Measured("gen", {}, error="y[0] is 1, the reference gives 2")
    records.save(attr.size_class(), Record((Measured("refer", {}, 1e-6, 0.0), wrong)), get_num_threads())
    assert chosen(attr).implementation == "refer"
    assert "disqualified: y[0] is 1" in str(jk.explain(attr))


def test_attrs_of_a_class_share_a_record(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each number of threads has a record of its own."""
    monkeypatch.setenv("JITKERNELS_TUNE", "replay")
    row, small = next((row, small) for row in registry.all_schemas() if (small := _in_a_class(row)) is not None)
    records.save(small.size_class(), record("refer"), get_num_threads())
    assert (chosen(small).implementation, chosen(small).rule) == ("refer", "measured")
    assert issubclass(row, jk.KernelAttr)
    before = get_num_threads()
    try:
        jk.set_num_threads(before + 1)
        assert choose(small).rule == "static"
    finally:
        jk.set_num_threads(before)


def _in_a_class(row: Any) -> Any:
    attrs = (case.attr for case in row.sweep())
    return next((attr for attr in attrs if attr.size_class() != attr), None)


def test_record_on_disk(attr: Any, fresh: Path) -> None:
    """Readable JSON with sorted keys that names attr and environment; written whole, in a private folder."""
    records.save(attr, record("gen", "refer"), 3)
    (path,) = records.files(fresh)
    text = path.read_text()
    content = json.loads(text)
    assert text == json.dumps(content, indent=1, sort_keys=True)
    assert content["attr"] == {"kernel": "TOY_TAKE", **attr.fields()}
    assert content["environment"]["threads"] == "3"
    assert {"llvmlite", "numpy", "cpu", "features"} <= set(content["environment"])
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    assert path.parent.stat().st_mode & 0o077 == 0
    assert records.load(attr, 3) == record("gen", "refer")
    assert records.load(attr, 4) is None


@pytest.mark.parametrize("seconds", [float("nan"), -1.0, 10**400, "1", [1]])
def test_record_of_an_impossible_time_is_a_miss(
    attr: Any, fresh: Path, monkeypatch: pytest.MonkeyPatch, seconds: Any
) -> None:
    monkeypatch.setenv("JITKERNELS_TUNE", "replay")
    records.save(attr.size_class(), record("theirs", "gen"), get_num_threads())
    assert chosen(attr).rule == "measured"
    (path,) = records.files(fresh)
    content = json.loads(path.read_text())
    content["candidates"][0]["seconds"] = seconds
    path.write_text(json.dumps(content))
    assert chosen(attr).rule == "static"
    path.write_text("[" * 100_000)
    assert chosen(attr).rule == "static"


def test_noise_does_not_overturn_the_static_order() -> None:
    """A later candidate of the static order wins only by more than the noise."""
    near = {"gen": 1.0 + MIN_RANK_GAIN / 2, "mkl": 1.0, "refer": 5.0}
    assert _names(near) == ["gen", "mkl", "refer"]
    assert _names({"gen": 1.0 + 3 * MIN_RANK_GAIN, "mkl": 1.0}) == ["mkl", "gen"]
    assert ordered([]) == []


def _names(ranks: dict[str, float]) -> list[str]:
    ranked = [(rank, Measured(name, {}, 1.0)) for name, rank in ranks.items()]
    return [measured.implementation for measured in ordered(ranked)]


def test_records_serve_later_processes(attr: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`explain` shows all measurements and makes none."""
    monkeypatch.setenv("JITKERNELS_TUNE", "auto")
    assert "not measured" in str(jk.explain(attr))
    assert chosen(attr).rule == "static", "a miss never measures"
    tuned = jk.tune(attr)
    again = chosen(attr)
    assert (again.rule, again.implementation, again.variant) == ("measured", tuned.winner, tuned.variant)
    explanation = jk.explain(attr)
    assert explanation == tuned
    assert [line.implementation for line in explanation.lines] == ["gen", "theirs", "refer"]
    assert all(line.seconds is not None and line.reason is None for line in explanation.lines)
    assert str(explanation).count("us") >= 3


def test_precompilation(private_cache: Path) -> None:
    """Several processes build every candidate into the cache, each object once, and this process builds none.

    Two rows of ours have enough candidates for two processes, whatever other packages add to them.
    """
    code = """
import jitkernels as jk
from jitkernels.tuning import precompile as building
from jitkernels.tuning.tune import measured_member
from jitkernels.runtime.loading import loader as load
from jitkernels.runtime.loading.compiled_code import code_of
from jitkernels.attrs.schema.registry import implementations

if __name__ == "__main__":
    building.cpu_count = lambda: 2
    sizes = [4 << i for i in range(8)]
    rows = jk.VMulAttr, jk.VSubAttr
    attrs = [row(n=n, dtype=t).size_class() for row in rows for n in sizes for t in ("float32", "float64")]
    jobs = list(building.missing(attrs))
    assert len(set(jobs)) == len(jobs) >= 2 * building.WORTH_A_PROCESS, len(jobs)
    assert set(building.build_all(jobs)) == set(jobs)
    assert not list(building.missing(attrs))
    for attr in map(measured_member, attrs):
        for found in implementations(type(attr)).values():
            if not found.is_reference and found.reason_against(attr) is None:
                sources = [found.source(attr, variant) for variant in found.variants(attr)]
                assert all(map(load.is_kept, sources))
                assert not any(code_of(source).is_loaded for source in sources)
    print("all kept")
"""
    assert python(code, private_cache) == "all kept\n"


def test_nearby_records_serve_unmeasured_classes(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nearest in extents, all else equal, not too far; thread counts of larger work are not adopted."""
    monkeypatch.setenv("JITKERNELS_TUNE", "replay")
    threads = get_num_threads()
    for n, name in ((64, "refer"), (1024, "gen")):
        records.save(jk.VMulAttr(n=n), Record((Measured(name, {}, 1e-7),)), threads)
    assert (chosen(jk.VMulAttr(n=100)).implementation, chosen(jk.VMulAttr(n=100)).rule) == ("refer", "nearby")
    assert (chosen(jk.VMulAttr(n=60)).implementation, chosen(jk.VMulAttr(n=60)).rule) == ("refer", "measured")
    assert choose(jk.VMulAttr(n=2000)).rule == "nearby"
    assert choose(jk.VMulAttr(n=1 << 15)).rule == "static", "too far"
    assert choose(jk.VMulAttr(n=100, dtype="float64")).rule == "static", "another dtype"
    variant = {"unroll": 2, "vector_bytes": cpu_target.target().widths[0], "stream": False}
    with_threads = Measured("gen", {**variant, "parallel": True}, 1e-7)
    records.save(jk.VExpAttr(n=1 << 16), Record((with_threads, Measured("refer", {}, 2e-7))), threads)
    assert choose(jk.VExpAttr(n=1 << 13)).variant == {**variant, "parallel": False}
    assert "nearby" in str(jk.explain(jk.VExpAttr(n=1 << 13)))
    monkeypatch.setattr(select, "get_num_threads", lambda: 2)
    records.save(jk.MatMulAttr(m=64, n=64, k=64), Record((Measured("refer", {}, 1e-7),)), 2)
    assert choose(jk.MatMulAttr(m=100, n=100, k=64)).rule == "nearby", "little work"
    assert choose(jk.MatMulAttr(m=200, n=200, k=64)).rule == "static", "work for threads"


def test_streaming_stores_are_not_adopted_for_smaller_sizes(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITKERNELS_TUNE", "replay")
    variant = {"unroll": 2, "vector_bytes": cpu_target.target().widths[0], "parallel": False}
    best = Measured("gen", {**variant, "stream": True}, 1e-7)
    records.save(jk.VExpAttr(n=1 << 22), Record((best, Measured("refer", {}, 2e-7))), get_num_threads())
    assert choose(jk.VExpAttr(n=7 << 18)).variant == {**variant, "stream": True}
    assert choose(jk.VExpAttr(n=3 << 18)).variant == {**variant, "stream": False}


def test_nearby_classes_in_many_extents(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Extents that are all slightly off do no harm, one that is far off does, and one far off counts like many."""
    monkeypatch.setenv("JITKERNELS_TUNE", "replay")
    monkeypatch.setattr(select, "get_num_threads", lambda: 1)  # little work tells nothing of threads
    for remain, name in ((1, "gen"), (16, "refer")):
        of_class = jk.SoftmaxAttr(rows=64, n=64, remain=remain)
        records.save(of_class, Record((Measured(name, {}, 1e-7),)), 1)

    def near(rows: int, n: int, remain: int) -> tuple[str, str]:
        found = choose(jk.SoftmaxAttr(rows=rows, n=n, remain=remain))
        return found.implementation.name, found.rule

    assert near(8, 512, 64) == ("refer", "nearby")
    assert near(64, 64, 4) == ("refer", "nearby")
    assert near(64, 2000, 64)[1] == "static"
    assert near(64, 500, 1) == ("gen", "nearby")


@pytest.mark.parametrize("row", all_schemas(), ids=lambda row: row.name)
def test_other_files_do_not_hide_records(
    row: type[jk.KernelAttr], fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does an unreadable record of the class itself, or of a nearer one."""
    monkeypatch.setenv("JITKERNELS_TUNE", "replay")
    threads = get_num_threads()
    attr = measured_member(largest(row)).size_class()
    near = dataclasses.replace(attr, **{name: 2 * extent for name, extent in attr.extents().items()})  # type: ignore[type-var]
    if len(attr.extents()) > 4:
        near = dataclasses.replace(attr, **{name: 2 * attr.extents()[name] for name in list(attr.extents())[:1]})  # type: ignore[type-var]
    records.save(near, Record((Measured("refer", {}, 1e-7),)), threads)
    assert nearest(attr, threads) == (near, Record((Measured("refer", {}, 1e-7),)))
    place, family = cache_dirs.timings_directory(threads), records.family_of(attr)
    assert place is not None
    extents = [str(extent) for extent in attr.extents().values()]
    wide = [text.translate({ord("0") + i: ord("\N{FULLWIDTH DIGIT ZERO}") + i for i in range(10)}) for text in extents]
    names = ["x".join(listed) for listed in (extents, wide, [f"0{text}" for text in extents], [*extents, "1"])]
    names += ["x".join([*extents[:i], "0", *extents[i + 1 :]]) for i in range(len(extents))]
    for name in (*names, "", "x", "-1", "1e3", "9" * 99):
        (place / f"{family}{name}.json").write_text("{}")
        records.saved += 1  # as if time had passed
        found = nearest(attr, threads)
        assert found is not None, name
        assert found[0] == near, name


OWN_ROWS = [row for row in all_schemas() if row.__module__.startswith("jitkernels.")]


@pytest.mark.parametrize("row", OWN_ROWS, ids=lambda row: row.name)
def test_measured_candidates_are_not_measured_again(row: type[jk.KernelAttr], fresh: Path) -> None:
    """Labels identify them; new candidates have to beat the best one."""
    attr = measured_member(largest(row))
    offered = tune.candidates(attr)
    assert len({candidate.label for candidate in offered}) == len(offered)
    ranked = [dataclasses.replace(c.measured, seconds=(i + 1) * 1e-6) for i, c in enumerate(reversed(offered))]
    paid = [number for number, c in enumerate(ranked) if c.implementation not in registry.UNEARNED]
    missing = ranked.pop(paid[len(paid) // 2])
    records.save(attr.size_class(), Record(tuple(ranked), complete=False), get_num_threads())
    budget, choice = TuningBudget(attr), choose(attr)
    assert [candidate.label for _, candidate in budget._listed(choice)] == [missing.label]
    assert [candidate.label for candidate in budget._incumbents(choice)] == [ranked[0].label]


def test_unreadable_records_are_misses(attr: Any, fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    records.save(attr.size_class(), record("refer"), get_num_threads())
    monkeypatch.setattr(records, "content_of", refuse)
    assert records.load(attr.size_class(), get_num_threads()) is None
    assert "static" in str(jk.explain(attr))


def largest(row: type[jk.KernelAttr]) -> jk.KernelAttr:
    """The attr of a sweep with most work, which has most variants."""
    return max((case.attr for case in row.sweep()), key=lambda attr: attr.operations())


@pytest.mark.parametrize(
    "row", [row for row in all_schemas() if "gen" in implementations(row)], ids=lambda row: row.name
)
def test_nearby_variants_that_do_not_exist_here(
    row: type[jk.KernelAttr], fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The winning implementation is used in another variant, not the second implementation."""
    monkeypatch.setenv("JITKERNELS_TUNE", "replay")
    gen = implementations(row)["gen"]
    tried = 0
    for attr in {case.attr.size_class() for case in row.sweep() if "ci" in case.tags}:
        near = dataclasses.replace(attr, **{name: 2 * extent for name, extent in attr.extents().items()})  # type: ignore[type-var]
        if not has_elements(attr) or gen.reason_against(attr) or len(attr.extents()) > 4:
            continue
        path = records.path_of(near, get_num_threads())
        for variant in gen.variants(measured_member(near)):
            found = Measured("gen", dict(variant), 1e-7), Measured("refer", {}, 1e-5)
            records.save(near, Record(found), get_num_threads())
            assert choose(attr).implementation.name == "gen", (attr, variant)
            tried += 1
        assert path is not None
        path.unlink()
    assert tried or len(largest(row).extents()) > 4, "twice as large along every extent is not near then"
