"""Skips of what the processor here cannot run: no failures where skips are, as installing a package cannot help."""

from typing import NoReturn

import pytest

PREFIX = "this processor: "


def skip(reason: str) -> NoReturn:
    pytest.skip(PREFIX + reason)


def needs(condition: bool, reason: str) -> pytest.MarkDecorator:
    """The mark of tests that are skipped unless the condition holds."""
    return pytest.mark.skipif(not condition, reason=PREFIX + reason)


def is_due(report: pytest.TestReport) -> bool:
    """Whether a test was skipped because of the processor."""
    return isinstance(report.longrepr, tuple) and report.longrepr[2].removeprefix("Skipped: ").startswith(PREFIX)
