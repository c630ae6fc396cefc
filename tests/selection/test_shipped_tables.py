"""Shipped tables: export, checks and import, and selection by them without measurements."""

import json
from pathlib import Path
from typing import Any

import pytest
from picks import chosen

import jitkernels as jk
from jitkernels.attrs.schema import registry
from jitkernels.core import cpu_target
from jitkernels.errors import ArgumentError
from jitkernels.runtime.threads.num_threads import get_num_threads
from jitkernels.selection import records, select, shipped_tables, table_io
from jitkernels.selection.records import Measured, Record

CLASS = jk.VMulAttr(n=1024)
VARIANT = {"unroll": 4, "vector_bytes": cpu_target.target().widths[0], "stream": False, "parallel": False}


@pytest.fixture
def table(fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:  # a cache of its own
    """The table of a machine that measured one class, whose own cache was cleared."""
    monkeypatch.setenv("JITKERNELS_TUNE", "replay")
    best = Measured("gen", VARIANT, 1e-6, 1e-8), Measured("gen", {**VARIANT, "unroll": 1}, 2e-6, 1e-8)
    record = Record((*best, Measured("refer", {}, 3e-6, 1e-8), Measured("mkl", error="it is wrong")))
    threads = get_num_threads()
    records.save(CLASS, record, threads)
    path = tmp_path / "table.json"
    assert table_io.export(path, [jk.VMulAttr, jk.VExpAttr]) == 1
    own = records.path_of(CLASS, threads)
    assert own is not None
    own.unlink()
    return path


def test_a_fresh_machine_starts_with_tuned_picks(table: Path) -> None:
    """For the class itself and nearby ones, but not for other dtypes."""
    assert chosen(jk.VMulAttr(n=1000)).rule == "static"
    assert table_io.import_from(table) == table_io.Imported(1, ())
    for n in (1000, 1024, 600, 5000):
        kernel = chosen(jk.VMulAttr(n=n))
        assert (kernel.rule, kernel.implementation) == ("shipped", "gen")
        assert kernel.variant == VARIANT
    assert chosen(jk.VMulAttr(n=1 << 20)).rule == "static"
    assert chosen(jk.VMulAttr(n=1000, dtype="float64")).rule == "static"


def test_a_table_has_one_variant_of_each_implementation(table: Path) -> None:
    (entry,) = json.loads(table.read_text())["entries"]
    assert [c["implementation"] for c in entry["candidates"]] == ["gen", "refer"]
    assert entry["candidates"][0]["variant"] == VARIANT


def test_measurements_take_precedence_over_tables(table: Path) -> None:
    table_io.import_from(table)
    records.save(CLASS, Record((Measured("refer", {}, 1e-6, 1e-8),)), get_num_threads())
    assert chosen(CLASS).rule == "measured"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cpu": "z80"}, "expected a table of this family of CPUs"),
        ({"format": 99}, "expected format 1, got 99"),
        ({"packages": {"jitkernels": "0.0.1"}}, "expected a table of jitkernels .*, got one of '0.0.1'"),
        ({"entries": None}, "expected a table of measurements"),
        (None, "expected a table of measurements"),
    ],
)
def test_tables_of_other_machines_are_rejected(table: Path, change: Any, message: str) -> None:
    content = json.loads(table.read_text())
    table.write_text("torn {" if change is None else json.dumps(content | change))
    with pytest.raises(ArgumentError, match=message):
        table_io.import_from(table)
    folder = shipped_tables.imported_folder()
    assert folder is None or not folder.exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"attr": {"kernel": "NONE_SUCH"}}, "there is no kernel NONE_SUCH"),
        ({"attr": {"kernel": "VMUL", "n": 1000, "dtype": "float32"}}, "is not a size class"),
        ({"attr": {"kernel": "VMUL", "n": -1, "dtype": "float32"}}, "expected 0 or more"),
        ({"threads": 0}, "is not a number of threads"),
        ({"candidates": []}, "has no timing"),
        (
            {"candidates": [{"implementation": "gen", "variant": {"unroll": 99}, "seconds": 1.0}]},
            "no variant gen\\[unroll=99\\]",
        ),
        ({"candidates": [{"implementation": "gen", "seconds": "soon"}]}, "not a number of seconds"),
        ({"candidates": [{"nonsense": 1}]}, "unexpected keyword"),
    ],
)
def test_entries_of_other_environments_are_omitted(table: Path, change: Any, message: str) -> None:
    content = json.loads(table.read_text())
    content["entries"].append(content["entries"][0] | change)
    table.write_text(json.dumps(content))
    found = table_io.import_from(table)
    assert found.kept == 1
    (why,) = found.refused
    assert message.replace("\\", "") in why


def test_unknown_implementations_are_skipped_and_reported(table: Path) -> None:
    """As of a package that is not installed: the next best one is selected."""
    content = json.loads(table.read_text())
    content["entries"][0]["candidates"].insert(0, {"implementation": "nobodys", "seconds": 1e-9})
    content["entries"].append({**content["entries"][0], "candidates": content["entries"][0]["candidates"][:1]})
    table.write_text(json.dumps(content))
    found = table_io.import_from(table)
    assert (found.kept, found.unknown) == (1, ("vmul has no implementation nobodys",))
    assert "has no implementation that exists here" in found.refused[0]
    assert (chosen(CLASS).rule, chosen(CLASS).variant) == ("shipped", VARIANT)


def test_a_table_of_the_package_serves_a_fresh_cache(table: Path) -> None:
    """Tables lie in the package; imported ones take precedence."""
    assert table_io.import_from(table, into=shipped_tables.FOLDER).kept == 1
    assert [path.name for path in (shipped_tables.FOLDER / cpu_target.cpu_name()).iterdir()] == ["vmul.json"]
    assert (chosen(CLASS).rule, chosen(CLASS).variant) == ("shipped", VARIANT)
    content = json.loads(table.read_text())
    content["entries"][0]["candidates"].reverse()
    table.write_text(json.dumps(content))
    table_io.import_from(table)
    assert (chosen(CLASS).rule, chosen(CLASS).implementation) == ("shipped", "refer")


def test_tables_imported_into_another_version_are_ignored(table: Path, caplog: pytest.LogCaptureFixture) -> None:
    table_io.import_from(table)
    folder = shipped_tables.imported_folder()
    assert folder is not None
    path = folder / cpu_target.cpu_name() / "vmul.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"jitkernels": "0.0.1"}))
    shipped_tables.forget()
    assert chosen(CLASS).rule == "static"
    assert f"ignoring the table {path}: it is of jitkernels 0.0.1" in caplog.text


def test_truncated_tables_are_misses(table: Path) -> None:
    table_io.import_from(table)
    folder = shipped_tables.imported_folder()
    assert folder is not None
    (folder / cpu_target.cpu_name() / "vmul.json").write_text("{")
    assert chosen(CLASS).rule == "static"


def test_exporting_without_measurements_is_an_error(fresh: Path, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="found none"):
        table_io.export(tmp_path / "table.json", [jk.VExpAttr])


def test_shipped_tables_are_valid() -> None:
    """Each has a known format and existing rows; on its own CPU family every variant exists."""
    rows = {row.kernel_type.name.lower(): row for row in registry.all_schemas()}
    for path in shipped_tables.FOLDER.glob("*/*.json"):
        assert json.loads(path.read_text())["format"] == shipped_tables.TABLE_FORMAT
        row = rows[path.stem]
        for family, threads, extents, candidates in shipped_tables._read(path):
            fields = json.loads(family)
            named = [name for name, field in row.known_fields().items() if field.is_size]
            attr = row.from_json(fields | dict(zip(named, extents, strict=True)))
            assert (attr.size_class(), threads > 0) == (attr, True)
            if path.parent.name == cpu_target.cpu_name():
                assert [c for c in candidates if table_io._exists(attr, c)] == candidates, f"{path}: {attr}"


def test_exact_size_winners_serve_any_size(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everyday calls cannot use the best variant itself, and use another one of its implementation instead of NumPy."""
    monkeypatch.setenv("JITKERNELS_TUNE", "replay")
    attr = jk.MatMulEpilogueAttr(m=64, n=64, k=64, activation="gelu")
    exact = {"algorithm": "exact", "parallel": False}
    record = Record((Measured("gen", exact, 1e-5, 1e-8), Measured("refer", {}, 1e-4, 1e-8)))
    records.save(attr.size_class(), record, get_num_threads())
    choice = select.choose_for_class(attr.size_class())
    assert choice.implementation.name == "gen"
    assert choice.variant["algorithm"] == "any"
    any_size = Measured("gen", dict(choice.variant), 2e-4, 1e-8)
    records.save(attr.size_class(), Record((*record.candidates, any_size)), get_num_threads())
    assert select.choose_for_class(attr.size_class()).implementation.is_reference
