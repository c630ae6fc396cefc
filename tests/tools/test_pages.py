"""The documentation pages on compiled functions and on rewriting rules agree with the code."""

import dataclasses
import linecache
import re
import runpy
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

import jitkernels as jk

PAGES = ("index.md", "rules.md", "jit.md", "bundles.md", "gradients.md", "array_api.md", "foreign_arrays.md")


DOCS = Path(__file__).parents[2] / "docs"


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


@pytest.mark.per_push
@pytest.mark.parametrize("name", PAGES)
def test_the_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, Any] = {}
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", page(name), re.MULTILINE | re.DOTALL)
    assert blocks
    for i, block in enumerate(blocks):
        file = f"<block {i} of {name}>"
        linecache.cache[file] = len(block), None, block.splitlines(keepends=True), file  # as notebooks do
        exec(compile(block, file, "exec"), names)


def test_the_table_of_the_array_api_namespace() -> None:
    from jitkernels.tools.docgen.array_api_functions import listed_functions

    assert page("array_api.md").endswith(f"\n\n{listed_functions()}")


@pytest.mark.per_push
@pytest.mark.parametrize("chapter", sorted((DOCS / "tutorial").glob("*.py")), ids=lambda path: path.stem)
def test_the_tutorial_runs(chapter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    runpy.run_path(str(chapter))
    plt.close("all")


def test_every_page_and_program_is_on_the_site() -> None:
    listed = set(re.findall(r"^(\w+)$", page("index.md"), re.MULTILINE)) | {"index"}
    assert {path.stem for path in DOCS.glob("*.md")} <= listed
    included = re.findall(r"examples/(\w+)\.py$", page("programs.md"), re.MULTILINE)
    assert included == sorted(path.stem for path in (DOCS.parent / "examples").glob("*.py"))


def test_every_field_is_documented_with_its_default() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", page("jit.md"), re.MULTILINE)
    defaults = {name: text.strip("`").replace("none", "()") for name, text in rows}
    config = jk.JitConfig()
    assert defaults == {
        field.name: str(getattr(config, field.name)) if field.name != "backend" else '"native"'
        for field in dataclasses.fields(config)
    }
