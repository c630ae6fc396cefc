"""The recipes of CONTRIBUTING.md, followed to the letter in a copy of the package."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KERNEL_FILES, IMPLEMENTATION_FILES, REDUCTION_FILES, OPERATION_FILES, OPERATION_TABLES = 3, 1, 6, 2, 2
FILE = "tests/attrs/test_values.py"
"""One of those that have tests of every row; to collect all of them takes as long as to run these."""
CHECK = """
import jitkernels as jk
from jitkernels.tools import testing
from jitkernels.attrs.schema.registry import implementations

names = list(implementations(jk.VSquaredDifferenceAttr))
for attr in testing.attrs_around(jk.VSquaredDifferenceAttr, sizes=(0, 1, 17, 64)):
    for name in names:
        testing.check(attr, name)
print(*names, jk.vsquared_difference([1.0, 5.0], [3.0, 5.0]))
"""
ORDINARY = """
import jitkernels as jk
from jitkernels.benchmarks.suite import Settings, benchmarks

entry = benchmarks()["ordinary-calls"]
print(entry.verdict(list(entry.run(Settings([jk.VSquaredDifferenceAttr], "ci", 1e-4, 1, False)))).text)
"""

CHECK_ROWS = """
import sys
sys.path.insert(0, "tests/support")
import jitkernels as jk
import oracles
from jitkernels.tools import testing
from jitkernels.attrs.schema.registry import implementations

names = list(implementations(jk.RowSquareSumAttr))
for attr in testing.attrs_around(jk.RowSquareSumAttr, sizes=(0, 1, 17, 64)):
    for name in names:
        testing.check(attr, name, oracles.expected)
print(*names, jk.row_square_sum([[1.0, 2.0], [3.0, 0.0]], scale=2.0))
"""
CHECK_OPERATION = """
import numpy as np
import jitkernels as jk
from jitkernels.compiler.ir.special_functions import softsign

x = np.linspace(-3, 3, 5001)
f = jk.jit(lambda x: softsign(x) * 2)
assert np.allclose(f(x), 2 * x / (1 + np.abs(x)), 1e-15)
wrong = jk.grad(lambda x: np.sum(softsign(x)))(x) - (1 + np.abs(x)) ** -2
print(str(f.explain(x)).split(": ")[1].split(",")[0] + ",", "derivative within 1e-15" * bool(abs(wrong).max() < 1e-15))
"""
CHECK_FUNCTION = """
import warnings
import numpy as np
import jitkernels as jk

warnings.simplefilter("ignore")
for given, end in ((np.linspace(0, 9, 5000) ** 2, None), (np.arange(5000), [7])):
    f = jk.jit(lambda x: np.ediff1d(x, end) * 2)
    assert np.array_equal(f(given), np.ediff1d(given, end) * 2)
    print(str(f.explain(given)).count("NumPy: numpy.ediff1d"))
"""
CHECK_PASS = """
import numpy as np
import jitkernels as jk

x = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, -3.5] * 1000)
for is_on in (True, False):
    f = jk.jit(lambda x: np.hypot(x, 0.0), simplify_hypot=is_on)
    assert np.array_equal(f(x), np.hypot(x, 0.0), equal_nan=True)
    print(str(f.explain(x)).split("loop nest: ")[1].split(";")[0])
try:
    jk.JitConfig(simplify_hypot=1)
except jk.AttrError:
    print("AttrError")
"""
CHECK_SCHEDULE = """
import numpy as np
import jitkernels as jk

def of_ten(x):
    y = x * x + 1
    return tuple(y * k for k in range(2, 12))

x = np.linspace(-2, 2, 5000)
f = jk.jit(of_ten)
assert all(np.allclose(one, other, 1e-15) for one, other in zip(f(x), of_ten(x)))
print(str(f.explain(x)).split("writes ")[1].split(";")[0].count(": float64"), "outputs")
"""

CHECK_NAMES = """
import ctypes
import numpy as np
from jitkernels.codegen.source_protocol import symbol_of
from jitkernels.microkernels.scale_rows import scale_rows
from jitkernels.runtime.loading import loader

x, scale, y = np.ones((2, 3)), np.array([2.0, 3.0]), np.empty((2, 3))
for arrays in ((x, y), (x, scale, y)):
    nest = scale_rows(len(arrays) == 3)
    address = loader.functions_of(nest, (symbol_of(nest),))[symbol_of(nest)]
    types = [ctypes.c_void_p] * len(arrays) + [ctypes.c_int64] * 2
    ctypes.CFUNCTYPE(ctypes.c_int64, *types)(address)(*(array.ctypes.data for array in arrays), 2, 3)
    print(y.tolist())
"""


@pytest.fixture(scope="module")
def recipes() -> dict[str, list[tuple[str, str]]]:
    """Paths and texts of the files of each recipe."""
    found = {}
    for section in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("\n## ")[1:]:
        files = re.findall(r"```(?:python|c)\n(?:#|//) (\S+/[^\n]+)\n(.*?)```", section, re.DOTALL)
        found[section.splitlines()[0]] = files
    return found


def differences_of(recipe: str) -> list[tuple[str, str]]:
    """The `diff` blocks of a recipe: the file, and what changes in it."""
    return re.findall(r"```diff\n# (\S+)\n(.*?)```", section_of(recipe), re.DOTALL)


def section_of(recipe: str) -> str:
    """The text of a recipe."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return text.split(f"\n## {recipe}\n")[1].split("\n## ")[0]


class Copy:
    """A copy of the package and its tests, to follow recipes in."""

    def __init__(self, place: Path, cache: Path) -> None:
        self.tree = place / "tree"
        being_written = shutil.ignore_patterns("*.pyc.*")
        for folder in ("jitkernels", "tests"):
            shutil.copytree(ROOT / folder, self.tree / folder, ignore=being_written)
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

    def change(self, differences: list[tuple[str, str]]) -> None:
        """Apply the `diff` blocks of a recipe; what they begin from must stand in their file once."""
        for name, text in differences:
            path = self.tree / name
            for hunk in text.split("@@\n"):
                lines = hunk.splitlines(keepends=True)
                assert {line[0] for line in lines} <= {" ", "+", "-"}, f"{name}: {hunk}"
                before = "".join(line[1:] for line in lines if line[0] != "+")
                after = "".join(line[1:] for line in lines if line[0] != "-")
                whole = path.read_text(encoding="utf-8")
                assert whole.count(before) == 1, f"{name}: expected once, got {whole.count(before)} times:\n{before}"
                path.write_text(whole.replace(before, after), encoding="utf-8")

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
    row, reference, peers = kernel
    copy.write([row, reference])
    assert copy.python("-c", CHECK) == "gen numba refer [4. 0.]\n"
    by_reference = copy.python("-m", "jitkernels", "bench", "vsquared_difference", "--peers", "--seconds", "1e-4")
    assert "over numpy: geometric mean" in by_reference
    assert "no call has an equivalent" in copy.python("-c", ORDINARY)
    copy.write([peers])
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
    assert copy.python("-c", CHECK) == "gen intrinsic numba refer [4. 0.]\n"


def test_a_row_reduction(recipes: dict[str, list[tuple[str, str]]], copy: Copy) -> None:
    """With a field of its own, vectors in C, and an oracle."""
    files = recipes["Add a row reduction"]
    assert len(files) == REDUCTION_FILES
    copy.write(files)
    assert copy.python("-c", CHECK_ROWS) == "gen intrinsic refer [10. 18.]\n"
    assert "scale: float = 1.0" in copy.python("-m", "jitkernels", "docs", "--stub")


def test_arguments_by_name(recipes: dict[str, list[tuple[str, str]]], copy: Copy) -> None:
    copy.write(recipes["The kernel language"])
    printed = copy.python("-c", CHECK_NAMES).splitlines()
    assert printed == ["[[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]", "[[2.0, 2.0, 2.0], [3.0, 3.0, 3.0]]"]


def test_every_python_block_is_run(recipes: dict[str, list[tuple[str, str]]]) -> None:
    """Blocks without a file name are input of an interpreter, and have to compile at least."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    named = sum(len(files) for files in recipes.values())
    typed = [block for block in blocks if not re.match(r"# \S+/", block)]
    assert len(blocks) - len(typed) + text.count("```c\n") == named
    for block in typed:
        compile(block, "CONTRIBUTING.md", "exec")


def write_lines(recipe: str, copy: Copy) -> list[tuple[str, str]]:
    """Enter each line of a recipe at the end of the table that it names; the files that have these."""
    lines = re.findall(r"^# (\S+): ([A-Z]+)\n( +\S.*\n)", section_of(recipe), re.MULTILINE)
    for path, name, line in lines:
        before, table, after = (copy.tree / path).read_text(encoding="utf-8").partition(f"\n{name}: ")
        end = re.compile(r"^(    \)\n)?\}", re.MULTILINE).search(after)
        assert end is not None
        changed = before + table + after[: end.start()] + line + after[end.start() :]
        (copy.tree / path).write_text(changed, encoding="utf-8")
    return [(path, "") for path, _, _ in lines]


def write_operation(files: list[tuple[str, str]], copy: Copy) -> list[tuple[str, str]]:
    """Two files, a line in each of two tables, and the derivative; all the files."""
    assert len(files) == OPERATION_FILES
    copy.write(files)
    changed = write_lines("Add an operation", copy)
    assert len(changed) == OPERATION_TABLES
    return [*files, *changed, *write_lines("Add a derivative", copy)]


def test_an_operation_and_its_derivative(recipes: dict[str, list[tuple[str, str]]], copy: Copy) -> None:
    write_operation(recipes["Add an operation"], copy)
    done = copy.python("-m", "pytest", "-q", "tests/compiler/codegen/test_scalars.py", "-k", "softsign")
    assert "3 passed" in done, done
    assert copy.python("-c", CHECK_OPERATION) == "1 kernel, derivative within 1e-15\n"
    gradients = "tests/compiler/autodiff/test_gradient_operations.py"
    done = copy.python("-m", "pytest", "-q", gradients, "-k", "test_elementwise and softsign")
    assert "1 passed" in done, done


def test_a_numpy_function(recipes: dict[str, list[tuple[str, str]]], copy: Copy) -> None:
    """It is traced: NumPy is called before the recipe, and not after it, but for rejected arguments."""
    assert copy.python("-c", CHECK_FUNCTION).split() == ["1", "1"]
    copy.write(recipes["Add a NumPy function"])
    copy.change(differences_of("Add a NumPy function"))
    assert copy.python("-c", CHECK_FUNCTION).split() == ["0", "1"]


def test_a_pass_and_a_config_field(recipes: dict[str, list[tuple[str, str]]], copy: Copy) -> None:
    copy.write(recipes["Add a pass"])
    copy.change(differences_of("Add a pass"))
    assert copy.python("-c", CHECK_PASS).split() == ["absolute", "hypot", "AttrError"]
    assert "hypot(x, 0)" in copy.python("-m", "jitkernels", "docs", "--rules")
    done = copy.python("-m", "pytest", "-q", "tests/compiler/passes/test_passes.py", "-k", "hypot")
    assert re.search(r"[2-9] passed", done), done


def test_a_scheduling_rule(recipes: dict[str, list[tuple[str, str]]], copy: Copy) -> None:
    """A value that ten outputs read is materialized with the rule, and not without; results stay equal."""
    before = copy.python("-c", CHECK_SCHEDULE)
    copy.write(recipes["Add a scheduling rule"])
    copy.change(differences_of("Add a scheduling rule"))
    assert (before, copy.python("-c", CHECK_SCHEDULE)) == ("10 outputs\n", "11 outputs\n")


def test_recipes_are_in_style(recipes: dict[str, list[tuple[str, str]]], copy: Copy) -> None:
    """All recipes in one copy, since the type checker takes long to start."""
    files = write_operation(recipes["Add an operation"], copy)
    others = [one for one in recipes if one.startswith("Add ") and one not in ("Add an operation", "Add a derivative")]
    for recipe in others:
        copy.write(recipes[recipe])
        copy.change(differences_of(recipe))
        files += recipes[recipe] + differences_of(recipe)
    copy.check_style(files)
