"""The site: it is built without warnings, all its links lead somewhere, and it lists its versions."""

import json
import runpy
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[2]
VERSION = metadata.version("jitkernels")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built from a copy of the pages beside folders of other versions."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "0.0.9").mkdir()
    (folder / "0.0.10").mkdir()
    (folder / "no version").mkdir()
    tree = tmp_path_factory.mktemp("tree")
    ignored = shutil.ignore_patterns("_build", "chapters", "pictures")
    for name in ("docs", "examples"):
        shutil.copytree(ROOT / name, tree / name, ignore=ignored)
    for name in ("ARCHITECTURE.md", "CHANGELOG.md"):
        shutil.copyfile(ROOT / name, tree / name)
    assert runpy.run_path(str(tree / "docs" / "build_site.py"))["build"](folder) == 0, "Sphinx warns"
    return folder


class _Page(HTMLParser):
    """The links and anchors of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append(value)
            if name in ("id", "name") and value:
                self.anchors.add(value)


def _dead_links(folder: Path) -> Iterator[str]:
    pages = {path: _Page(path) for path in folder.rglob("*.html")}
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:  # of others
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                yield f"{path.relative_to(folder)}: {link}"
            elif "_modules" in path.parts:
                continue  # viewcode links back as if all objects of a file were documented as members of one module
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{path.relative_to(folder)}: {link}, no such anchor"


def test_every_link_leads_somewhere(site: Path) -> None:
    folder = site / VERSION
    assert len([*folder.glob("*.html")]) >= len([*(ROOT / "docs").glob("*.md")])
    assert sorted({*_dead_links(folder)}) == []


def test_versions_are_listed_newest_first(site: Path) -> None:
    assert json.loads((site / "versions.json").read_text()) == [VERSION, "0.0.10", "0.0.9"]
    assert f"url={VERSION}/index.html" in (site / "index.html").read_text()


def test_every_program_has_its_picture(site: Path) -> None:
    pictures = {path.stem for path in (site / VERSION / "_images").glob("*.png")}
    assert {path.stem for path in (ROOT / "examples").glob("*.py")} <= pictures


def test_measurements_are_pages_of_charts(site: Path) -> None:
    runs = [path.stem for path in (ROOT / "docs" / "measurements").glob("*.json")]
    assert runs
    for run in runs:
        page = site / VERSION / "measurements" / run / "index.html"
        assert page.read_text(encoding="utf-8").count("<svg") > 3
