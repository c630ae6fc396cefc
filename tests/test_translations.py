"""Scalar functions that were translated by another process are read, and are what this one would make of them."""

from pathlib import Path

import pytest
from processes import python

CODE = """
import hashlib
from jitkernels.maths import basic, far_quarter_turns, sin
from jitkernels.native.language import lanes

made, original = [], lanes._translated
lanes._translated = lambda function, *rest: made.append(function.__name__) or original(function, *rest)
texts = []
for alone in (None, {}):
    library = lanes.Library(alone=alone)
    results = library.called(far_quarter_turns.far_quarter_turns_float64, ["float64"], 1)[1]
    library.called(sin.sin_float32, ["float32"], 16)
    library.called(basic.add, ["float32", "float32"], 16)
    texts += [library.text, results, *(alone or {})]
print(sorted(set(made)), hashlib.sha256("".join(texts).encode()).hexdigest())
"""


@pytest.mark.parametrize("harm", ["none", "cut", "gone"])
def test_what_is_read_is_what_is_made(harm: str, private_cache: Path) -> None:
    made, _, text = python(CODE, private_cache).rpartition(" ")
    kept = sorted(private_cache.glob("*/objects/*.json"))
    assert "'sin_float32'" in made
    assert "'quarter_turns_float32'" in made
    assert "'add'" in made
    assert kept
    for path in kept:
        if harm == "cut":
            path.write_bytes(path.read_bytes()[:-40])
        elif harm == "gone":
            path.unlink()
    code = CODE if harm != "cut" else f"import logging\nlogging.disable(logging.CRITICAL)\n{CODE}"
    again, _, same = python(code, private_cache).rpartition(" ")
    assert same == text
    assert again == ("['add']" if harm == "none" else made), (
        "what is short is not kept, nor what is damaged read"
    )


def test_another_text_is_another_translation(private_cache: Path) -> None:
    python(CODE, private_cache)
    edited = (
        "from jitkernels.native.language import translations\ntranslations._version = lambda _: 'another'\n"
    )
    assert "'sin_float32'" in python(edited + CODE, private_cache)


def test_functions_of_others_are_not_kept(private_cache: Path, tmp_path: Path) -> None:
    """Nobody would notice that a constant of theirs is another one."""
    (tmp_path / "theirs.py").write_text(
        "import numpy as np\nfrom jitkernels.native.source import inlined\n"
        "from jitkernels.maths.sin import sin_float32\n"
        "@inlined()\ndef twice(x):\n    return sin_float32(x) + sin_float32(x)\n"
    )
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
import theirs
from jitkernels.native.language import lanes
lanes.Library().called(theirs.twice, ["float32"], 16)
"""
    python(code, private_cache)
    assert not list(private_cache.glob("*/objects/*.json"))
