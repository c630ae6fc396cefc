"""The pages about compiled functions and about rules of one's own say what is so."""

import dataclasses
import linecache
import re
from pathlib import Path
from typing import Any

import pytest

import jitkernels as jk

PAGES = {"rules.md": 3, "jit.md": 17, "bundles.md": 2, "gradients.md": 3}


def page(name: str) -> str:
    return (Path(__file__).parents[1] / "docs" / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PAGES)
def test_the_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, Any] = {}
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", page(name), re.MULTILINE | re.DOTALL)
    assert len(blocks) == PAGES[name]
    for i, block in enumerate(blocks):
        file = f"<block {i} of {name}>"
        linecache.cache[file] = len(block), None, block.splitlines(keepends=True), file  # as notebooks do
        exec(compile(block, file, "exec"), names)


def test_every_field_is_told_with_its_default() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", page("jit.md"), re.MULTILINE)
    defaults = {name: text.strip("`").replace("none", "()") for name, text in rows}
    config = jk.JitConfig()
    assert defaults == {
        field.name: str(getattr(config, field.name)) if field.name != "backend" else '"native"'
        for field in dataclasses.fields(config)
    }
