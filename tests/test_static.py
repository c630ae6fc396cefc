"""The checks that need no kernel to run: linter, formatter, type checker, freshness of generated pages."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CHECKS = {
    "ruff check": ("ruff", "check", "--no-cache"),
    "ruff format": ("ruff", "format", "--check", "--no-cache"),
    "mypy": ("mypy", "--strict"),
    "docs": ("jitkernels", "docs", "--check", "docs/kernels.md"),
}


@pytest.mark.parametrize("check", CHECKS)
def test_static(check: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *CHECKS[check]], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_pre_commit_runs_the_same_checks() -> None:
    entries = [
        line.split("entry: ")[1]
        for line in (ROOT / ".pre-commit-config.yaml").read_text().splitlines()
        if "entry: " in line
    ]
    here = [" ".join(check).replace(" --no-cache", "") for check in CHECKS.values()]
    assert [entry.removeprefix("python -m ") for entry in entries] == here


def test_readme_has_two_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    between = text.split("<!-- two commands -->")[1].split("<!-- end of two commands -->")[0]
    assert between.count("```sh\n") == 2


def test_readme_names_every_setting() -> None:
    """Each environment variable that the code reads is in the table, and each in the table is read."""
    name = re.compile(r"JITKERNELS_[A-Z_]+")
    code = {
        found
        for path in (ROOT / "jitkernels").rglob("*.py")
        for found in name.findall(path.read_text(encoding="utf-8"))
    }
    table = {
        found
        for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| `JITKERNELS_")
        for found in name.findall(line)
    }
    assert table == code
