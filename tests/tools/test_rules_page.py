"""The page on rules lists every rule of the passes."""

import re
from pathlib import Path

from jitkernels.compiler.passes import GLOBAL, LOCAL
from jitkernels.tools.docgen.rules import page_of

PASSES = {one.name: one for one in (*LOCAL, *GLOBAL)}


def test_the_page_on_rules_lists_every_rule() -> None:
    page = (Path(__file__).parents[2] / "docs" / "rules.md").read_text()
    assert page == page_of(page), "run `jitkernels docs --rules --write docs/rules.md`"
    sections = dict(re.findall(r"^### `(\w+)`.*?\n(.*?)(?=^### |\Z)", page, re.MULTILINE | re.DOTALL))
    assert sections.keys() == PASSES.keys() - {"user_rules"}
    for name, text in sections.items():
        numbers = [int(found) for found in re.findall(r"^(\d+)\. ", text, re.MULTILINE)]
        assert numbers == [int(rule.split("_")[1]) for rule in PASSES[name].rules], name
