"""Run the tests of another package with its functions patched: ``pytest -p jitkernels.patching.pytest_plugin``."""

from typing import Any

from jitkernels.patching.install import Patch, patch

_patches: list[Patch] = []


def pytest_configure(config: Any) -> None:
    """Patch before any test is collected."""
    _patches.append(patch())


def pytest_unconfigure(config: Any) -> None:
    """Undo the patch."""
    while _patches:
        _patches.pop().undo()


def pytest_report_header(config: Any) -> str:
    """Say what is patched at the start of the run."""
    return f"jitkernels: {_patches[-1]!r}"
