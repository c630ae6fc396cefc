"""The HTML report of a run: all its numbers, no external resources, unambiguous names, escaped text."""

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from jitkernels.attrs.vector import VExpAttr, VMulAttr
from jitkernels.benchmarks import report, saved
from jitkernels.benchmarks.report.points import points_of
from jitkernels.benchmarks.saved import Run
from jitkernels.benchmarks.suite import Line
from jitkernels.errors import ArgumentError, NotUsableError
from jitkernels.tools import cli
from jitkernels.tuning import peaks
from jitkernels.tuning.peaks import Peaks
from jitkernels.tuning.timer import Timing

LIMITS = Peaks(1, {"float32": 1e11, "float64": 5e10}, 2e10)
VOID = {"meta", "link", "br", "img", "input", "hr"}


def page_of(*arguments: Any) -> str:
    from jitkernels.benchmarks.report import page  # not at collection: it imports matplotlib

    return page.page_of(*arguments)


class Page(HTMLParser):
    """What stands in a page: elements with their attributes, text, and what is left open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def values(self, attribute: str) -> list[str]:
        return [value for _, found in self.elements if (value := found.get(attribute)) is not None]


def lines(factor: float = 1.0) -> Iterator[Line]:
    for row in (VMulAttr, VExpAttr):
        for number, case in enumerate(row.sweep()):
            if "ci" in case.tags:
                seconds = {"gen": 1e-7, "refer": 3e-6, "numpy": 1e-6}
                timings = {name: Timing(value * (1 + number / 7) * factor, 1e-9) for name, value in seconds.items()}
                kernel = row.kernel_type.name.lower()
                yield Line(kernel, case.name, timings, "gen", ("gen", "refer"), detail="gen")


@pytest.fixture(scope="module")
def run() -> Run:
    return Run("kernels", {"cpu": "a processor", "threads": 1, "python": "3"}, tuple(lines()))


@pytest.fixture(scope="module")
def text(run: Run) -> str:
    return page_of([run], LIMITS)


def test_every_number_is_on_the_page(run: Run, text: str) -> None:
    page = Page(text)
    assert page.open == []
    values = page.values("data-value")
    for line in run.lines:
        assert all(str(timing.seconds) in values for timing in line.timings.values())
    words = " ".join(page.text)
    assert "a processor" in words
    assert "20.0 GB/s" in words
    assert all(line.case in words for line in run.lines)


def test_the_page_is_self_contained(text: str) -> None:
    page = Page(text)
    sources = [*page.values("src"), *page.values("href"), *page.values("xlink:href")]
    assert all(source.startswith(("#", "data:")) for source in sources)
    assert not re.search(r"url\((?!#)", text)
    assert not [tag for tag, _ in page.elements if tag in ("iframe", "object", "img")]


def test_names_on_the_page_are_unambiguous(text: str) -> None:
    page = Page(text)
    names = page.values("id")
    assert len(names) == len(set(names))
    referred = [value[1:] for value in [*page.values("href"), *page.values("xlink:href")] if value[:1] == "#"]
    assert set(referred) | set(page.values("aria-labelledby")) <= set(names)


def test_charts_are_named_and_their_text_is_text_in_colours_of_the_page(text: str) -> None:
    charts = [found for tag, found in Page(text).elements if tag == "svg"]
    assert len(charts) == 2 + 1 + 2 * 2  # over refer and numpy, the roofline, and two for each kernel
    assert all(found["role"] == "img" and found["aria-label"] for found in charts)
    drawing = "".join(re.findall(r"<svg.*?</svg>", text, re.DOTALL))
    assert ">numpy</text>" in drawing
    assert not re.search(r"#0[01a]0\d0", drawing)
    assert re.search(r"var\(--series-1\)", drawing)


def test_changes_between_two_runs_are_shown(run: Run) -> None:
    later = replace(run, lines=tuple(lines(0.5)), stamp={**run.stamp, "cpu": "another"})
    words = " ".join(Page(page_of([run, later], None)).text)
    assert "0 slower" in words
    assert "2.00 faster" in words
    assert "a processor" in words
    assert "another" in words


def test_names_are_escaped_and_unknown_kernels_have_a_table(run: Run) -> None:
    strange = Line("<b>kernel", "<script>alert(1)</script>", {"a&b": Timing(1e-6, 0.0)}, "a&b", figures={"bytes": 3})
    text = page_of([replace(run, lines=(strange,))], LIMITS)
    assert text.count("<script>") == 1
    assert "<b>" not in text
    assert points_of([strange]) == []
    assert "&lt;script&gt;alert" in text


def test_a_run_without_lines_is_a_page(run: Run) -> None:
    assert "Machine and versions" in page_of([replace(run, lines=())], LIMITS)


def test_the_command_writes_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run: Run
) -> None:
    monkeypatch.setattr(peaks, "measured", lambda threads: LIMITS)
    folder, before, after = tmp_path / "new" / "page", tmp_path / "before.json", tmp_path / "after.json"
    with pytest.raises(SystemExit, match="0"):
        cli.main(["bench", "vmul", "--seconds", "1e-4", "--report", str(folder), "--json", str(after)])
    assert "Roofline" in (folder / report.PAGE_NAME).read_text()
    saved.save(before, run)
    with pytest.raises(SystemExit, match="0"):
        cli.main(["bench", "--compare", str(before), "--compare", str(after), "--report", str(folder)])
    assert "What changed" in (folder / report.PAGE_NAME).read_text()
    assert str(folder / report.PAGE_NAME) in capsys.readouterr().out.replace("\n", "")


def test_invalid_report_folders_are_rejected_before_measuring(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ArgumentError, match="--report: expected a folder"):
        report.check(tmp_path / "file" / "page")


def test_limits_are_measured() -> None:
    run_adds, operations = peaks.multiply_adds("float64", 2)
    run_adds()
    assert operations > 0
    for streaming in (False, True):
        run_triad, nbytes = peaks.triad(streaming=streaming, parallel=True)
        run_triad()
        assert nbytes == 3 * 4 * (1 << 24)


@pytest.mark.parametrize("library", report.LIBRARIES)
def test_a_missing_library_is_named(library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One error is raised before anything is measured or written."""
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(NotUsableError, match=rf"--report: .*{library}: pip install 'jitkernels\[report\]'"):
        report.check(tmp_path / "page")
    assert not (tmp_path / "page").exists()


def test_checks_import_no_optional_library() -> None:
    """The error then names the missing plotting library."""
    code = (
        "import sys; sys.modules['matplotlib'] = None; "
        "from jitkernels.benchmarks import report; print(report.PAGE_NAME)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == f"{report.PAGE_NAME}\n"
