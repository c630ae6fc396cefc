"""The page about rules of one's own says what is so."""

import re
from pathlib import Path
from typing import Any


def test_the_examples_run() -> None:
    text = (Path(__file__).parents[1] / "docs" / "rules.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        exec(compile(block, "docs/rules.md", "exec"), names)
