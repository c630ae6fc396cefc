"""The recipes of CONTRIBUTING.md, followed to the letter in a copy of the package."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
KERNEL_FILES, IMPLEMENTATION_FILES, REDUCTION_FILES, OPERATION_FILES = 3, 1, 6, 2
FILE = "tests/test_values.py"
"""One of those that have tests of every row; to collect all of them takes as long as to run these."""
CHECK = """
import jitkernels as jk
from jitkernels import testing
from jitkernels.registry import implementations

names = list(implementations(jk.VSquaredDifferenceAttr))
for attr in testing.attrs_around(jk.VSquaredDifferenceAttr, sizes=(0, 1, 17, 64)):
    for name in names:
        testing.check(attr, name)
print(*names, jk.vsquared_difference([1.0, 5.0], [3.0, 5.0]))
"""
ORDINARY = """
import jitkernels as jk
from jitkernels.benchmark.suite import Settings, benchmarks

entry = benchmarks()["ordinary-calls"]
print(entry.verdict(list(entry.run(Settings([jk.VSquaredDifferenceAttr], "ci", 1e-4, 1, False)))).text)
"""

CHECK_ROWS = """
import sys
sys.path.insert(0, "tests")
import jitkernels as jk
import oracles
from jitkernels import testing
from jitkernels.registry import implementations

names = list(implementations(jk.RowSquareSumAttr))
for attr in testing.attrs_around(jk.RowSquareSumAttr, sizes=(0, 1, 17, 64)):
    for name in names:
        testing.check(attr, name, oracles.expected)
print(*names, jk.row_square_sum([[1.0, 2.0], [3.0, 0.0]], scale=2.0))
"""


@pytest.fixture(scope="module")
def recipes() -> dict[str, list[tuple[str, str]]]:
    """The files of each recipe: path and text."""
    found = {}
    for section in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("\n## ")[1:]:
        files = re.findall(r"```(?:python|c)\n(?:#|//) (\S+/[^\n]+)\n(.*?)```", section, re.DOTALL)
        found[section.splitlines()[0]] = files
    return found


class Copy:
    """A copy of the package and its tests, to follow recipes in."""

    def __init__(self, place: Path, cache: Path) -> None:
        self.tree = place / "tree"
        for folder in ("jitkernels", "tests"):
            shutil.copytree(ROOT / folder, self.tree / folder, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", self.tree)
        chosen = {"PYTHONPATH": str(self.tree), "JITKERNELS_CACHE_DIR": str(cache), "JITKERNELS_TUNE": "auto"}
        self.environment = {**os.environ, **chosen}

    def python(self, *arguments: str) -> str:
        """What Python prints there."""
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.tree,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def write(self, files: list[tuple[str, str]]) -> None:
        for name, text in files:
            path, append, _ = name.partition(": append")
            there = (self.tree / path).exists()
            assert there == bool(append), f"{path}: the recipe should say whether it is there already"
            with (self.tree / path).open("a", encoding="utf-8") as file:
                file.write(text)

    def check_style(self, files: list[tuple[str, str]]) -> None:
        paths = [path for path in (name.partition(":")[0] for name, _ in files) if path.endswith(".py")]
        self.python("-m", "ruff", "check", "--no-cache", *paths)
        self.python("-m", "ruff", "format", "--check", "--no-cache", *paths)
        self.python("-m", "mypy", "--strict", *paths)


@pytest.fixture
def copy(tmp_path: Path, private_cache: Path) -> Copy:
    return Copy(tmp_path, private_cache)


def test_a_kernel_and_an_implementation(recipes: dict[str, list[tuple[str, str]]], copy: Copy) -> None:
    kernel, implementation = recipes["Add a kernel"], recipes["Add an implementation"]
    assert len(kernel) == KERNEL_FILES
    assert len(implementation) == IMPLEMENTATION_FILES
    copy.write(kernel)
    assert copy.python("-c", CHECK) == "gen refer [4. 0.]\n"
    assert "## VSQUARED_DIFFERENCE" in copy.python("-m", "jitkernels", "docs")
    assert "def vsquared_difference(" in copy.python("-m", "jitkernels", "docs", "--stub")
    assert "VSQUARED_DIFFERENCE" in copy.python(
        "-m", "jitkernels", "tune", "vsquared_difference", "--tag", "ci", "--seconds", "0.01"
    )
    assert "measured" in copy.python("-m", "jitkernels", "explain", "vsquared_difference", "n=1000")
    compared = copy.python("-m", "jitkernels", "bench", "vsquared_difference", "--peers", "--seconds", "1e-4")
    assert "over numpy: geometric mean" in compared
    assert "ordinary calls" in copy.python("-c", ORDINARY)
    collected = copy.python("-m", "pytest", "--collect-only", "-q", FILE, "-k", "vsquared_difference")
    assert "test_values[vsquared_difference]" in collected

    copy.write(implementation)
    assert copy.python("-c", CHECK) == "gen intrinsic refer [4. 0.]\n"


def test_a_row_reduction(recipes: dict[str, list[tuple[str, str]]], copy: Copy) -> None:
    """With a field of its own, vectors in C, and an oracle."""
    files = recipes["Add a row reduction"]
    assert len(files) == REDUCTION_FILES
    copy.write(files)
    assert copy.python("-c", CHECK_ROWS) == "gen intrinsic refer [10. 18.]\n"
    assert "scale: float = 1.0" in copy.python("-m", "jitkernels", "docs", "--stub")


def test_every_python_block_is_run(recipes: dict[str, list[tuple[str, str]]]) -> None:
    """Blocks that name no file are what a reader types; they have to compile at least."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    named = sum(len(files) for files in recipes.values())
    typed = [block for block in blocks if not re.match(r"# \S+/", block)]
    assert len(blocks) - len(typed) + text.count("```c\n") == named
    for block in typed:
        compile(block, "CONTRIBUTING.md", "exec")


def write_operation(files: list[tuple[str, str]], copy: Copy) -> list[tuple[str, str]]:
    """Two files, and a line at the end of each of two tables; all the files."""
    assert len(files) == OPERATION_FILES
    copy.write(files)
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("\n## Add an operation\n")[1]
    lines = re.findall(r"^# (\S+): ([A-Z]+)\n( +\S.*\n)", text, re.MULTILINE)
    assert [name for _, name, _ in lines] == ["MODULES", "SCALARS"]
    for path, name, line in lines:
        before, table, after = (copy.tree / path).read_text(encoding="utf-8").partition(f"\n{name}: ")
        end = re.compile(r"^(    \)\n)?\}", re.MULTILINE).search(after)
        assert end is not None
        changed = before + table + after[: end.start()] + line + after[end.start() :]
        (copy.tree / path).write_text(changed, encoding="utf-8")
    return [*files, *((path, "") for path, _, _ in lines)]


def test_an_operation(recipes: dict[str, list[tuple[str, str]]], copy: Copy) -> None:
    write_operation(recipes["Add an operation"], copy)
    done = copy.python("-m", "pytest", "-q", "tests/test_scalars.py", "-k", "softsign")
    assert "3 passed" in done, done


def test_recipes_are_in_style(recipes: dict[str, list[tuple[str, str]]], copy: Copy) -> None:
    """All of them in one copy, since the type checker takes long to begin."""
    files = write_operation(recipes["Add an operation"], copy)
    for recipe in ("Add a kernel", "Add a row reduction", "Add an implementation"):
        copy.write(recipes[recipe])
        files += recipes[recipe]
    copy.check_style(files)
