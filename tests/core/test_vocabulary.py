"""One word has one meaning: no private words for what the field has names for, no name given twice.

Tables say what still stands, folder by folder and name by name. They may only shrink: lower them when you mend some.
"""

import ast
import re
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "jitkernels"
PRIVATE_WORDS = {
    "fusion region": "cone cones",
    "fusion blockers": "misfit fusion_blockers recompute_blockers operand_limit_blockers",
    "error bound, may-alias or guard": "doubt doubts",
    "scratch": "stash scratch_targets scratch_arrays",
    "signal polling": "patience",
    "pooled": "lent lends",
    "transposed, reversed or negated": "turned",
    "noinline, cold": "seldom hasty",
    "floating-point flags and warnings": "alarm alarms heard",
    "described, reported": "told telling",
    "duplicate": "twin twins",
    "copied to its home buffer": "landed",
    "loaded on first use": "brought",
    "recompiled": "anew",
    "concretized, requested, or prefetched": "asked",
}
"""Standard terms, and the words that stood for them: in identifiers and in prose alike."""
STANDARD_LIBRARY = ("signal.alarm",)
"""Names of the standard library that contain such a word."""
PRIVATE_PHRASES = {
    "prefetch": ("coming lines", "coming_lines", "ComingLines", "ask_for_lines"),
    "fallback": ("left to NumPy",),
    "depends on": ("hang on", "hangs on"),
    "reversed": ("turned round", "turns round"),
    "unroll-and-jam": ("neighbour rows", "neighbour_rows", "UnrollAndJam"),
    "iterations": ("rounds of a loop", "rounds of the loop", "round of a loop", "round of the loop"),
}
ALLOWED_WORDS: dict[str, int] = {".": 1, "jitkernels/codegen": 2, "tests/codegen": 1}
"""Private words and phrases that still stand, by folder."""
FAMILIES = re.compile(
    r"jitkernels/(attrs/[^/]+|refer/.+|gen/.+|more/.+|benchmarks/peers/.+|benchmarks/entries/.+|tools/cli/.+)"
    r"|jitkernels/(onnx|torch)/operators/.+|tests/support/(oracles|mistakes)/.+|.+/__init__.py|.+/conftest.py"
)
"""Files that are called like the family of kernels, or the command, that they serve."""
ALLOWED_MODULES: dict[str, int] = {"skinny": 2}
"""Base names of modules that still stand more than once."""
ALLOWED_CLASSES: dict[str, int] = {}
"""Names of classes that still stand more than once, and how often."""


def _pattern() -> re.Pattern[str]:
    words = "|".join(sorted({one for listed in PRIVATE_WORDS.values() for one in listed.split()}))
    capital = "|".join(one.capitalize() for one in words.split("|"))
    phrases = "|".join(one.replace(" ", r"\s+(?:# )?") for listed in PRIVATE_PHRASES.values() for one in listed)
    return re.compile(rf"(?<![A-Za-z])(?:{words})(?![a-z])|(?:{capital})(?![a-z])|{phrases}")


PATTERN = _pattern()


@cache
def _texts() -> dict[str, str]:
    """Code and docs, by path. This file has the words themselves; the licence and generated tables have none."""
    files = [*ROOT.glob("*.md")]
    for folder in ("jitkernels", "tests", "docs", "bench", "examples"):
        files += [file for kind in ("py", "pyi", "md", "c", "h") for file in (ROOT / folder).rglob(f"*.{kind}")]
    own = Path(__file__)
    return {
        file.relative_to(ROOT).as_posix(): file.read_text(encoding="utf-8")
        for file in sorted(files)
        if file != own and "_build" not in file.parts
    }


def folder_of(path: str) -> str:
    """The folder under which a file is counted: its own, at most three deep."""
    return "/".join(path.split("/")[:-1][:3]) or "."


def private_words(text: str) -> Counter[str]:
    """How often each private word or phrase stands in a text."""
    for name in STANDARD_LIBRARY:
        text = text.replace(name, "")
    return Counter(re.sub(r"\s+(# )?", " ", found.lower()) for found in PATTERN.findall(text))


def test_no_private_words_come_back() -> None:
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for path, text in _texts().items():
        found[folder_of(path)] += private_words(text)
    grown, shrunk = [], []
    for folder in sorted(found.keys() | ALLOWED_WORDS.keys()):
        count, allowed = found[folder].total(), ALLOWED_WORDS.get(folder, 0)
        if count > allowed:
            grown.append(f"{folder}: {count}, allowed {allowed}: {dict(found[folder].most_common(8))}")
        elif count < allowed:
            shrunk.append(f'    "{folder}": {count},  # {allowed} before')
    print("lower ALLOWED_WORDS:", *shrunk, sep="\n")  # noqa: T201  # for whoever lowers the table
    assert not grown, "use the standard terms of PRIVATE_WORDS and PRIVATE_PHRASES:\n" + "\n".join(grown)


def modules_named_twice(paths: list[str]) -> dict[str, list[str]]:
    """Base names of modules that several folders of the package, or of the tests, have, but for families."""
    named = defaultdict(list)
    for path in paths:
        if not FAMILIES.fullmatch(path):
            named[path.split("/")[0], Path(path).stem].append(path)
    return {name: found for (_, name), found in named.items() if len(found) > 1}


def test_no_two_modules_share_a_base_name() -> None:
    paths = [path for path in _texts() if path.endswith(".py") and path.startswith(("jitkernels/", "tests/"))]
    found = modules_named_twice(paths)
    print("gone from ALLOWED_MODULES:", *(ALLOWED_MODULES.keys() - found.keys()))  # noqa: T201  # for whoever lowers the table
    assert not {name: at for name, at in found.items() if len(at) > ALLOWED_MODULES.get(name, 1)}


def classes_of(text: str) -> list[str]:
    """Names of all classes of a module, those inside of functions and classes too."""
    return [node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)]


def test_no_class_name_is_used_twice() -> None:
    found = defaultdict(list)
    for path, text in _texts().items():
        if path.startswith("jitkernels/") and path.endswith(".py"):
            for name in classes_of(text):
                found[name].append(path)
    twice = {name: at for name, at in found.items() if len(at) > 1}
    now = {name: len(twice.get(name, [])) for name in ALLOWED_CLASSES}
    print(  # noqa: T201  # for whoever lowers the table
        "lower ALLOWED_CLASSES:", {name: count for name, count in now.items() if count < ALLOWED_CLASSES[name]}
    )
    assert not {name: at for name, at in twice.items() if len(at) > ALLOWED_CLASSES.get(name, 1)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("known_cones = ShortCone()", {"cones": 1, "cone": 1}),
        ("# what is left to\n# NumPy hangs on this", {"left to numpy": 1, "hangs on": 1}),
        ("class ComingLines: ask_for_lines", {"cominglines": 1, "ask_for_lines": 1}),
        ("conesque, untold, lentils, attend", {}),
        ("signal.alarm(100)", {}),
    ],
)
def test_private_words_are_caught(text: str, words: dict[str, int]) -> None:
    assert private_words(text) == words


def test_names_used_twice_are_caught() -> None:
    assert set(modules_named_twice(["jitkernels/a/plan.py", "jitkernels/b/plan.py"])) == {"plan"}
    assert not modules_named_twice(["jitkernels/refer/gru.py", "jitkernels/gen/gru.py", "jitkernels/gen/__init__.py"])
    assert classes_of("class A:\n def f(self):\n  class A: ...") == ["A", "A"]


def test_standard_terms_are_not_private() -> None:
    """What the list recommends is not on it."""
    assert not [term for term in (*PRIVATE_WORDS, *PRIVATE_PHRASES) if private_words(term)]


def measured() -> str:
    """The tables as they would be now: `python tests/core/test_vocabulary.py` prints them."""
    words: Counter[str] = Counter()
    classes: Counter[str] = Counter()
    for path, text in _texts().items():
        words[folder_of(path)] += private_words(text).total()
        if path.startswith("jitkernels/") and path.endswith(".py"):
            classes.update(classes_of(text))
    kept = {folder: count for folder, count in sorted(words.items()) if count}
    return f"ALLOWED_WORDS = {kept}\nALLOWED_CLASSES = { {n: c for n, c in sorted(classes.items()) if c > 1} }"


if __name__ == "__main__":
    print(measured())  # noqa: T201  # a command
