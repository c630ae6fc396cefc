"""The checks that need no kernel to run: linter, formatter, type checker, freshness of generated pages."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from jitkernels.core import settings

ROOT = Path(__file__).parents[2]
CHECKS = {
    "ruff check": ("ruff", "check", "--no-cache"),
    "ruff format": ("ruff", "format", "--check", "--no-cache"),
    "mypy": ("mypy", "--strict"),
    "stub": ("jitkernels", "docs", "--stub", "--check", "jitkernels/__init__.pyi"),
    "docs": ("jitkernels", "docs", "--check", "docs/kernels.md"),
    "rules": ("jitkernels", "docs", "--rules", "--check", "docs/rules.md"),
    "torch": ("jitkernels", "docs", "--torch", "--check", "docs/torch.md"),
    "patching": ("jitkernels", "docs", "--patching", "--check", "docs/patching.md"),
    "onnx": ("jitkernels", "docs", "--onnx", "--check", "docs/onnx.md"),
    "architecture": ("jitkernels", "docs", "--architecture", "--check", "ARCHITECTURE.md"),
}


@pytest.mark.per_push
@pytest.mark.parametrize("check", CHECKS)
def test_static(check: str) -> None:
    done = subprocess.run([sys.executable, "-m", *CHECKS[check]], cwd=ROOT, capture_output=True, text=True, check=False)
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


def test_readme_has_the_table_of_settings() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    between = text.split("<!-- settings -->\n")[1].split("<!-- end of settings -->")[0]
    assert between.strip() == settings.table(), "README.md is stale"


def test_every_setting_is_in_the_table_and_read() -> None:
    """Each variable that the code names is in the table, and the code reads each one of the table."""
    name = re.compile(r"JITKERNELS_[A-Z_]*[A-Z]")
    reading = re.compile(r'settings\.read\("(JITKERNELS_[A-Z_]+)"\)')
    texts = [
        path.read_text(encoding="utf-8") for path in (ROOT / "jitkernels").rglob("*.py") if path.name != "settings.py"
    ]
    assert {found for text in texts for found in name.findall(text)} == set(settings.SETTINGS)
    assert {found for text in texts for found in reading.findall(text)} == set(settings.SETTINGS)
    assert not [text for text in texts if re.search(r"environ.*JITKERNELS_", text)], "settings.read() checks"


def test_extras_are_documented() -> None:
    """Each extra is in the README, and "all" and "test" request existing extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("## Extras")[1].split("A missing library")[0]
    assert set(re.findall(r"`(\w+)`", section)) == set(extras)
    for requirement in extras["all"] + extras["test"]:
        if requirement.startswith("jitkernels["):
            assert set(requirement.removeprefix("jitkernels[").rstrip("]").split(",")) <= set(extras)
