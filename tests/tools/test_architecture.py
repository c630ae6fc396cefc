"""ARCHITECTURE.md: each place that it names exists, its arrows follow from the code, and it answers what it should."""

import re
from pathlib import Path

import pytest

from jitkernels.errors import ArgumentError, UnknownNameError
from jitkernels.tools.docgen import architecture, source_refs
from jitkernels.tools.docgen.architecture_decisions import DECISIONS
from jitkernels.tools.docgen.architecture_map import CALL_PATHS, CallPath, Station

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
QUESTIONS = {
    *("fusion", "loop order", "vectorization", "unrolling", "prefetch", "streaming stores", "aliasing"),
    *("bounds checks", "fallback", "memory plan", "threads", "tuning", "specialization", "guards"),
}


def test_every_reference_resolves() -> None:
    wrong = []
    for text in sorted(set(architecture.references())):
        try:
            if ":" in text:
                found = source_refs.resolved(text)
                assert found.name.split(".")[-1] in (ROOT / found.path).read_text().splitlines()[found.line - 1]
            elif source_refs.file_of(text) is None:
                wrong.append(f"{text}: no such module")
        except UnknownNameError as error:
            wrong.append(str(error))
    assert not wrong, "\n".join(wrong)


def test_the_page_is_up_to_date() -> None:
    assert architecture.page_of(PAGE) == PAGE, "run `jitkernels docs --architecture --write ARCHITECTURE.md`"


def test_every_link_of_the_page_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", PAGE)
    assert len(links) > len(architecture.references())
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_question_is_answered() -> None:
    assert set(DECISIONS) >= QUESTIONS
    assert all(places for places in DECISIONS.values())


@pytest.mark.parametrize("name", CALL_PATHS)
def test_call_paths_have_no_loose_stations(name: str) -> None:
    path = CALL_PATHS[name]
    found = [source_refs.resolved(station.at) for station in path.stations]
    reached = {target for _, target, _ in architecture.arrows_of(path, found)}
    entrances = {number for number, station in enumerate(path.stations, 1) if station.is_entrance}
    assert reached | entrances | {1} == set(range(1, len(found) + 1))
    sources = [station.source for station in path.stations if station.source]
    assert set(sources) <= {station.at for station in path.stations}


def test_stations_without_a_caller_are_caught() -> None:
    stations = Station("selection.select:choose", ""), Station("selection.records:save", "")
    path = CallPath("a broken path", stations)
    with pytest.raises(ArgumentError, match=r"selection\.records:save"):
        architecture.arrows_of(path, [source_refs.resolved(one.at) for one in stations])


@pytest.mark.parametrize("text", ["selection.select:chosen", "selection.nothing:choose", "selection.select:Choice.x"])
def test_names_that_no_longer_exist_are_caught(text: str) -> None:
    with pytest.raises(UnknownNameError, match="expected"):
        source_refs.resolved(text)


def test_an_imported_name_is_no_definition() -> None:
    """A reference names the defining module, not an importing one."""
    with pytest.raises(UnknownNameError, match="Record"):
        source_refs.resolved("selection.select:Record")


def test_missing_marks_are_caught() -> None:
    with pytest.raises(ArgumentError, match="layers"):
        architecture.page_of(PAGE.replace("<!-- drawn: layers -->", ""))
