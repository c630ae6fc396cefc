"""What tests assign to attributes of the package's modules exists: a name that is gone would be a patch of nothing.

Most such assignments stand in strings, which subprocesses run: no linter and no type checker sees them.
"""

import ast
import contextlib
import importlib
import warnings
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = "jitkernels"
FOLDERS = "tests", "bench"
SETTERS = {"setattr", "monkeypatch.setattr", "patch.object", "mock.patch.object"}
"""Functions that assign to the attribute of their first argument that the second one names."""


class Patch(NamedTuple):
    """An assignment to an attribute: the dotted name of its owner as the code has it, and the attribute."""

    owner: str
    attribute: str


class Script(NamedTuple):
    """Names that code imports, each with all that it may stand for, and what the code assigns to."""

    imports: dict[str, set[str]]
    patches: set[Patch]


def dotted(node: ast.AST) -> str:
    """Return ``a.b.c`` of an expression of names and attributes; "" for others."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = dotted(node.value)
        return f"{inner}.{node.attr}" if inner else ""
    return ""


def imports_of(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield each name that an import binds, and the dotted name that it stands for."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield (alias.asname, alias.name) if alias.asname else (alias.name.split(".")[0],) * 2
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        for alias in node.names:
            yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def patches_of(node: ast.AST) -> Iterator[Patch]:
    """Yield the attributes that a statement or call assigns to."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = [part for target in node.targets for part in getattr(target, "elts", [target])]
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        targets = [node.target]
    elif isinstance(node, ast.Call) and dotted(node.func) in SETTERS and len(node.args) > 1:
        owner, name = node.args[:2]
        if isinstance(name, ast.Constant) and isinstance(name.value, str) and dotted(owner):
            yield Patch(dotted(owner), name.value)
    for target in targets:
        if isinstance(target, ast.Attribute) and dotted(target.value):
            yield Patch(dotted(target.value), target.attr)
        elif isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
            table = target.value
            if isinstance(table, ast.Call) and dotted(table.func) == "vars" and table.args and dotted(table.args[0]):
                yield Patch(dotted(table.args[0]), str(target.slice.value))


def parsed(text: str) -> ast.AST | None:
    """Parse code; of text with lines that are no code by themselves, the other lines. None where there are none."""
    lines = []
    with warnings.catch_warnings(action="ignore"):  # of escapes, in text that is no code
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError):
            for line in text.splitlines():
                with contextlib.suppress(SyntaxError, ValueError):
                    lines += ast.parse(line.strip()).body
    return ast.Module(lines, []) if lines else None


def strings_of(tree: ast.AST) -> Iterator[str]:
    """Yield the string constants of code; what an f-string inserts is a name there."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "inserted" for part in node.values]
            yield "".join(map(str, parts))


def script_of(text: str) -> Script:
    """Return what a file imports and assigns to, its strings that are code included."""
    imports: dict[str, set[str]] = defaultdict(set)
    patches: set[Patch] = set()
    waiting = [text]
    while waiting:
        text = waiting.pop()
        tree = parsed(text)
        if tree is None:
            continue
        for node in ast.walk(tree):
            for name, target in imports_of(node):
                imports[name].add(target)
            patches |= set(patches_of(node))
        waiting += [string for string in strings_of(tree) if string != text and ("." in string or "import" in string)]
    return Script(dict(imports), patches)


@cache
def scripts() -> dict[str, Script]:
    """Return the imports and assignments of all tests but this one, and of benchmarks, by path."""
    files = [file for folder in FOLDERS for file in sorted((ROOT / folder).rglob("*.py"))]
    files.remove(Path(__file__))
    return {file.relative_to(ROOT).as_posix(): script_of(file.read_text(encoding="utf-8")) for file in files}


def resolved(name: str) -> Any:
    """Import what a dotted name of the package stands for: a module, or an attribute in one. Raises AttributeError."""
    head, *rest = name.split(".")
    value: Any = importlib.import_module(head)
    for part in rest:
        head = f"{head}.{part}"
        if not hasattr(value, part):
            try:
                importlib.import_module(head)
            except ModuleNotFoundError as error:
                if error.name and error.name.split(".")[0] != PACKAGE:
                    return names_of(head)
                raise AttributeError(head) from None
        value = getattr(value, part)
    return value


def names_of(module: str) -> SimpleNamespace:
    """Return the names that a module binds which cannot be imported here, as it needs a package that is missing."""
    tree = ast.parse((ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8"))
    imported = (name for node in tree.body for name, _ in imports_of(node))
    defined = (node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef))
    assigned = (
        target.id for node in tree.body for target in getattr(node, "targets", ()) if isinstance(target, ast.Name)
    )
    return SimpleNamespace(**dict.fromkeys((*imported, *defined, *assigned)))


def missing(script: Script) -> list[str]:
    """Return the assignments to attributes of the package that nothing of these names has."""
    found = []
    for owner, attribute in sorted(script.patches):
        first, _, rest = owner.partition(".")
        names = [target for target in script.imports.get(first, ()) if target.split(".")[0] == PACKAGE]
        owners = [f"{target}.{rest}".rstrip(".") for target in names]
        if owners and not any(has(name, attribute) for name in owners):
            found.append(f"{owner}.{attribute}")
    return found


def has(name: str, attribute: str) -> bool:
    """Return whether what a dotted name stands for has an attribute."""
    try:
        value = resolved(name)
    except AttributeError:
        return False
    return hasattr(value, attribute) or attribute in getattr(value, "__slots__", ())


def test_assigned_attributes_exist() -> None:
    assert not {path: names for path, script in scripts().items() if (names := missing(script))}


def test_many_assignments_are_found() -> None:
    """Those in strings too, which are the most of them that nothing else checks."""
    assert sum(len(script.patches) for script in scripts().values()) > 300
    assert Patch("openmp", "has_threads") in scripts()["tests/runtime/test_threads.py"].patches
    assert Patch("cold_call", "specialize") in scripts()["tests/support/numpy_tests/numpy_suite.py"].patches


WRONG = {
    "import jitkernels.core.settings as s\ns.NOTHING = 1": "s.NOTHING",
    "from jitkernels.core import settings\nsettings.nothing: int = 1": "settings.nothing",
    "from jitkernels.core import settings\nCODE = 'settings.nothing = lambda: 1'": "settings.nothing",
    "CODE = 'import jitkernels as jk\\njk.core.nothing.x = 1'": "jk.core.nothing.x",
    "CODE = f'{START}\\nfrom jitkernels.core import settings as s\\ns.nothing = {VALUE}'": "s.nothing",
    "from jitkernels.dispatch.kernel import Kernel\nKernel.nothing = 1": "Kernel.nothing",
    "from jitkernels.core import settings\nsetattr(settings, 'nothing', 1)": "settings.nothing",
    "from jitkernels.core import settings\nvars(settings)['nothing'] = 1": "settings.nothing",
    "from jitkernels.core import settings\nCODE = 'if 1:' + '  x = (\\nsettings.nothing = 1'": "settings.nothing",
    "from jitkernels.core import settings\nmonkeypatch.setattr(settings, 'no', 1, raising=False)": "settings.no",
}


@pytest.mark.per_push
@pytest.mark.parametrize("text", WRONG)
def test_attributes_that_do_not_exist_are_found(text: str) -> None:
    assert missing(script_of(text)) == [WRONG[text]]


def test_attributes_that_exist_are_accepted() -> None:
    right = (
        "from jitkernels.core import settings\nsettings.read = lambda name: 1",
        "import jitkernels.core.settings\njitkernels.core.settings.read, x = 1, 2",
        "from jitkernels.dispatch.kernel import Kernel\nKernel.__init__ = 1",
        "import numpy as np\nnp.nothing = 1",
    )
    for text in right:
        assert not missing(script_of(text))
