"""The recipes of CONTRIBUTING.md, followed to the letter in a copy of the package."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
KERNEL_FILES, IMPLEMENTATION_FILES = 4, 1
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


@pytest.fixture(scope="module")
def recipes() -> dict[str, list[tuple[str, str]]]:
    """The files of each recipe: path and text."""
    found = {}
    for section in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("\n## ")[1:]:
        files = re.findall(r"```python\n# (\S+)\n(.*?)```", section, re.DOTALL)
        found[section.splitlines()[0]] = files
    return found


def test_recipes(recipes: dict[str, list[tuple[str, str]]], tmp_path: Path, private_cache: Path) -> None:
    kernel, implementation = recipes["Add a kernel"], recipes["Add an implementation"]
    assert len(kernel) == KERNEL_FILES
    assert len(implementation) == IMPLEMENTATION_FILES
    tree = tmp_path / "tree"
    shutil.copytree(ROOT / "jitkernels", tree / "jitkernels", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tests", tree / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tree)
    environment = {
        **os.environ, "PYTHONPATH": str(tree), "JITKERNELS_CACHE_DIR": str(private_cache), "JITKERNELS_TUNE": "auto",
    }  # fmt: skip

    def python(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=tree,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    write(tree, kernel)
    assert python("-c", CHECK) == "gen refer [4. 0.]\n"
    assert "## VSQUARED_DIFFERENCE" in python("-m", "jitkernels", "docs")
    assert "VSQUARED_DIFFERENCE" in python(
        "-m", "jitkernels", "tune", "vsquared_difference", "--tag", "ci", "--seconds", "0.01"
    )
    assert "measured" in python("-m", "jitkernels", "explain", "vsquared_difference", "n=1000")
    compared = python("-m", "jitkernels", "bench", "vsquared_difference", "--peers", "--seconds", "1e-4")
    assert "over numpy: geometric mean" in compared
    assert "ordinary calls" in python("-c", ORDINARY)
    collected = python("-m", "pytest", "--collect-only", "-q", "-k", "vsquared_difference")
    assert "test_values[vsquared_difference-gen]" in collected

    write(tree, implementation)
    assert python("-c", CHECK) == "gen intrinsic refer [4. 0.]\n"
    python("-m", "ruff", "check", "--no-cache", *[path for path, _ in kernel + implementation])
    python("-m", "ruff", "format", "--check", "--no-cache", *[path for path, _ in kernel + implementation])
    python("-m", "mypy", "--strict", *[path for path, _ in kernel + implementation])


def write(tree: Path, files: list[tuple[str, str]]) -> None:
    for path, text in files:
        assert not (tree / path).exists(), f"{path} exists already: the recipe would change it"
        (tree / path).write_text(text, encoding="utf-8")
