"""Wheels: kernel archives as a package that is installed, and the package's own wheel, both reproducible."""

import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from processes import python

from jitkernels.codegen import kernel_archive
from jitkernels.core import cpu_target
from jitkernels.errors import ArgumentError
from jitkernels.tools import warm_wheel

CALL = """
import os, sys
for name in ("llvmlite", "numba"):
    sys.modules[name] = None
import numpy as np
import jitkernels as jk
x = np.linspace(0.5, 1.5, 1000, dtype=np.float32)
assert np.array_equal(jk.vmul(x, x), x * x)
print(jk.KernelFuncs.cache().at(jk.VMulAttr(n=12345)).__self__.implementation)
"""
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of one kernel."""
    path = tmp_path_factory.mktemp("packs") / "one.pack"
    code = (
        f"from pathlib import Path; from jitkernels.tools.cli import cache; cache.pack(Path({str(path)!r}), ['vmul'])"
    )
    assert "objects and" in python(code)
    return path


def test_an_installed_wheel_needs_neither_compiler_nor_settings(archive: Path, tmp_path: Path) -> None:
    wheel = warm_wheel.write(tmp_path, [archive])
    assert wheel.name.startswith("jitkernels_warm-")
    assert wheel.name.endswith("linux_x86_64.whl")
    with zipfile.ZipFile(wheel) as file:
        file.extractall(tmp_path / "site")
        assert f"{cpu_target.cpu_name()}.{sys.implementation.cache_tag}.pack" in "".join(file.namelist())
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    code = f"import sys; sys.path.append({str(tmp_path / 'site')!r})\n{CALL}"
    assert python(code, cache, JITKERNELS_TUNE="replay") != "refer\n"
    assert python(CALL, cache, JITKERNELS_TUNE="replay") == "refer\n", "the archive alone made the difference"


def test_the_same_archives_give_the_same_bytes(archive: Path, tmp_path: Path) -> None:
    wheels = [warm_wheel.write(tmp_path / name, [archive]) for name in ("a", "b")]
    assert wheels[0].read_bytes() == wheels[1].read_bytes()


def test_modules_of_the_working_directory_are_found(tmp_path: Path) -> None:
    """By a console script, too, whose import path lacks it."""
    (tmp_path / "mine.py").write_text("import jitkernels as jk\n\ndef warm_up():\n    jk.vexp([1.0])\n")
    code = (
        f"import os, sys; from jitkernels.tools.cli import main; os.chdir({str(tmp_path)!r}); "
        "sys.path[:] = filter(None, sys.path); main(('cache', 'pack', 'mine.pack', 'mine:warm_up'))"
    )
    printed = python(code)
    assert printed.startswith("mine.pack: ")
    assert (tmp_path / "mine.pack").exists()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("none", "expected at least one, got none"),
        ("damaged", "is not a pack: its header is damaged"),
        ("missing", "is not a pack"),
        ("twice", "expected different CPU families"),
        ("other", "expected one numpy, but"),
    ],
)
def test_archives_that_make_no_wheel(archive: Path, tmp_path: Path, change: str, expected: str) -> None:
    other = tmp_path / "other.pack"
    content = archive.read_bytes()
    if change == "damaged":
        other.write_bytes(content[:200] + b"?" + content[201:])
    if change == "other":
        facts = kernel_archive.archive_environment() | {"numpy": "1.0", "cpu": "other"}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kernel_archive, "archive_environment", lambda: facts)
            kernel_archive.write(other, {}, {})
    archives = {"none": [], "twice": [archive, archive], "other": [archive, other]}
    with pytest.raises(ArgumentError, match=expected):
        warm_wheel.write(tmp_path / "wheels", archives.get(change, [other]))
    assert not (tmp_path / "wheels").exists(), "nothing is written"


def test_the_package_builds_one_pure_wheel_with_the_same_bytes(tmp_path: Path) -> None:
    hashes = set()
    for name in ("a", "b"):
        subprocess.run(
            [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path / name, ROOT],
            check=True, capture_output=True, env=os.environ | {"SOURCE_DATE_EPOCH": "1700000000"},
        )  # fmt: skip
        (wheel,) = (tmp_path / name).iterdir()
        assert wheel.name.endswith("-py3-none-any.whl")
        hashes.add(hashlib.sha256(wheel.read_bytes()).hexdigest())
    assert len(hashes) == 1
