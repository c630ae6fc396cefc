"""NumPy's own tests pass through `jit`, but for those that are listed with reasons: some here, all ``-m full``."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy_differences import DIFFERENCES, LAST_PLACE, REFERENCES, reason_of
from processes import FOLDERS

INSTALLED = Path(np.__file__).parent
SOME = {"_core/tests/test_indexing.py": 55, "_core/tests/test_half.py": 20, "_core/tests/test_item_selection.py": 200,
        "lib/tests/test_twodim_base.py": 15}  # fmt: skip
"""Files, and how many tests of each at least run compiled code."""
LONG = "_core/tests/test_indexing.py::TestMultiIndexingAutomated::test_multidim"
"""One test that takes longer than all others of these files."""
ALL = {
    "_core/tests/test_indexing.py": 56,
    "_core/tests/test_umath_complex.py": 300,
    "_core/tests/test_umath.py": 900, "_core/tests/test_ufunc.py": 500, "_core/tests/test_numeric.py": 150,
    "_core/tests/test_shape_base.py": 45, "_core/tests/test_multiarray.py": 12000,
    "lib/tests/test_function_base.py": 600,
    "lib/tests/test_shape_base.py": 35, "lib/tests/test_nanfunctions.py": 800, "lib/tests/test_index_tricks.py": 8,
    "lib/tests/test_stride_tricks.py": 8, "lib/tests/test_type_check.py": 30,
}  # fmt: skip


def ran(files: list[str], report: Path, *options: str) -> dict[str, dict[str, Any]]:
    """The results of the tests of some files, by their names."""
    own = {"NUMPY_SUITE_REPORT": str(report), "PYTHONPATH": os.pathsep.join(FOLDERS)}
    command = [sys.executable, "-m", "pytest", "-p", "numpy_suite", "-p", "no:cacheprovider", "-q", "--tb=short"]
    command += ["--rootdir", str(INSTALLED), *options, *(str(INSTALLED / name) for name in files)]
    finished = subprocess.run(command, env=os.environ | own, cwd=report.parent, capture_output=True, text=True)
    assert report.exists(), finished.stdout[-3000:] + finished.stderr[-3000:]
    found: dict[str, dict[str, Any]] = json.loads(report.read_text())["tests"]
    return found


def check(files: dict[str, int], found: dict[str, dict[str, Any]]) -> None:
    failed = {
        name: result.get("why", "")
        for name, result in found.items()
        if result["outcome"] == "failed" and not reason_of(name)
    }
    assert not failed, "\n\n".join(f"{name}\n{why}" for name, why in list(failed.items())[:5])
    failing = {name.rpartition("/")[2] for name, result in found.items() if result["outcome"] == "failed"}
    names = {Path(file).name for file in files}
    passing = [
        name
        for name, reason in DIFFERENCES.items()
        if reason not in (LAST_PLACE, REFERENCES)  # which depend on numbers, or on what was compiled before
        and name.partition("::")[0] in names
        and not any(one.startswith(name) for one in failing)
    ]
    assert not passing, f"listed as different, and not so: {', '.join(passing)}"
    for file, least in files.items():
        applicable = [one for name, one in found.items() if name.startswith(file) and one["compiled"]]
        assert len(applicable) >= least, f"{file}: compiled code ran in {len(applicable)} tests"


def test_indexing_and_halves(tmp_path: Path) -> None:
    if not (INSTALLED / "_core" / "tests" / "test_indexing.py").exists():
        pytest.skip("this NumPy was installed without its tests")
    check(SOME, ran([*SOME], tmp_path / "report.json", f"--deselect={LONG}"))


@pytest.mark.full
@pytest.mark.parametrize("file", ALL)
def test_numpys_test_file(file: str, tmp_path: Path) -> None:
    check({file: ALL[file]}, ran([file], tmp_path / "report.json"))


def test_every_reason_belongs_to_a_tested_file() -> None:
    names = {Path(name).name for name in (*SOME, *ALL)}
    assert {name.partition("::")[0] for name in DIFFERENCES} <= names
