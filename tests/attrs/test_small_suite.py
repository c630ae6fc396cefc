"""The small suite passes here, and catches errors on a machine that runs nothing else."""

import os
from types import ModuleType
from typing import Any

import cases
import numpy as np
import pytest
import small_suite
from processes import python
from test_everyday import Giving
from toy import WRONG

from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.vector import VExpAttr


def passes(kernels: list[str]) -> bool:
    printed = python(f"import small_suite\nraise SystemExit(small_suite.main({kernels}))", timeout=3600)
    return "\n0 of " in printed


def test_small_suite() -> None:
    """Run it on rows whose declarations differ from the others."""
    assert passes([param.id for param in cases.every_form()[:: 2 * cases.turns()]])


@pytest.mark.full
def test_small_suite_of_all_rows() -> None:
    assert passes([])


@pytest.mark.parametrize("wrong", sorted(WRONG))
def test_wrong_implementations_are_caught(toy: ModuleType, wrong: str) -> None:
    implements(toy.ToyAttr, name="gen")(toy.right)
    implements(toy.ToyAttr, name="theirs")(WRONG[wrong])
    checks = small_suite.Checks()
    small_suite.check_implementation(checks, toy.ToyAttr, "gen")
    assert checks.count > 20
    assert not checks.failed
    small_suite.check_implementation(checks, toy.ToyAttr, "theirs")
    assert checks.failed


def _single(x: Any, out: Any = None) -> Any:
    return np.exp(np.asarray(x, np.float32), out=out)


def _last_lost(x: Any, out: Any = None) -> Any:
    result = np.exp(x, out=out)
    result.reshape(-1)[-1:] = 0
    return result


@pytest.mark.parametrize("wrong", [_single, _last_lost])
def test_wrong_everyday_functions_are_caught(wrong: Any) -> None:
    checks = small_suite.Checks()
    calls = small_suite.Calls(checks, VExpAttr)
    calls.function = wrong
    small_suite.check_everyday(calls, "float32")
    assert checks.failed


def test_calls_through_python_and_messages_are_caught() -> None:
    checks = small_suite.Checks()
    calls = small_suite.Calls(checks, VExpAttr)
    calls.compiled("plain", lambda: calls.function(np.ones(3)))
    assert not checks.failed
    calls.compiled("an object", lambda: calls.function(Giving(np.ones(3))))
    assert "went through Python" in checks.failed[0]
    with small_suite.said() as lines:
        os.write(2, b"'+prefer' is not a feature\n")
    assert lines == ["'+prefer' is not a feature"]
