"""Cached translations of scalar functions are read, and equal what this process would translate."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import python

from jitkernels.codegen.python import simd_library, translation_cache
from jitkernels.codegen.python.simd_library import Library
from jitkernels.compiler.ir.elementwise_ops import BETWEEN_PLANES, SCALARS

CODE = """
import hashlib
from jitkernels.microkernels.maths import basic, payne_hanek as far_quarter_turns, sin
from jitkernels.codegen.python import simd_library as lanes

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
def test_cached_translations_equal_fresh_ones(harm: str, private_cache: Path) -> None:
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
    assert again == ("['add']" if harm == "none" else made), "what is short is not kept, nor what is damaged read"


def test_changed_sources_are_translated_again(private_cache: Path) -> None:
    python(CODE, private_cache)
    edited = (
        "from jitkernels.codegen.python import translation_cache\ntranslation_cache.state_of = lambda _: 'another'\n"
    )
    assert "'sin_float32'" in python(edited + CODE, private_cache)


def test_functions_of_other_packages_are_not_cached(private_cache: Path, tmp_path: Path) -> None:
    """A changed constant of theirs would go unnoticed."""
    (tmp_path / "theirs.py").write_text(
        "import numpy as np\nfrom jitkernels.codegen.source_protocol import inlined\n"
        "from jitkernels.microkernels.maths.sin import sin_float32\n"
        "@inlined()\ndef twice(x):\n    return sin_float32(x) + sin_float32(x)\n"
    )
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
import theirs
from jitkernels.codegen.python import simd_library as lanes
lanes.Library().called(theirs.twice, ["float32"], 16)
"""
    python(code, private_cache)
    assert not list(private_cache.glob("*/objects/*.json"))


def texts_of_scalars(numbers: tuple[int, ...]) -> dict[Any, Any]:
    """What all elementwise operations are in so many lanes, one number of lanes after another."""
    simd_library._made.clear()
    found: dict[Any, Any] = {}
    for scalar, kind in product(SCALARS.values(), ("float32", "float64", "int16", "bool")):
        count = scalar.numpy.nin if isinstance(scalar.numpy, np.ufunc) else 1 + (scalar.name == "log_hypot")
        kinds = ("bool", kind, kind) if scalar.choice else (kind,) * count
        function = scalar.function(kinds)
        if function is None or scalar.name in BETWEEN_PLANES:
            continue
        for number in numbers:
            library = Library(alone={})
            called = library.called(function, kinds, number)
            apart = {symbol: one.text for symbol, one in (library.alone or {}).items()}
            found[scalar.name, kind, number] = called, library.text, apart
    return found


def test_texts_derived_for_other_lanes_equal_translations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for functions that call others in memory, and for tables."""
    monkeypatch.setattr(translation_cache, "path_of", lambda *_: None)
    translated, original = [], simd_library._translated

    def counted(function: Any, *rest: Any) -> Any:
        translated.append(function)
        return original(function, *rest)

    monkeypatch.setattr(simd_library, "_translated", counted)
    made, few = texts_of_scalars((16, 4, 64)), len(translated)
    monkeypatch.setattr(simd_library, "_in_other_lanes", lambda *_: None)
    assert made == texts_of_scalars((64, 4, 16))
    assert len(translated) - few > 2.5 * few, "what is translated for some lanes is not for others"
