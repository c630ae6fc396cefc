"""Textbook algorithms, compiled: results, arguments and exceptions are those of Python."""

from typing import Any

import pytest
from jitted import same
from textbook import PROGRAMS, Program

import jitkernels as jk


def outcome(function: Any, given: tuple[Any, ...]) -> Any:
    """What a call gives or raises, and its arguments behind it."""
    try:
        found = function(*given)
    except Exception as error:  # noqa: BLE001  # whatever it is
        found = type(error).__name__, str(error)
    return found, given


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.function.__name__)
def test_programs(program: Program) -> None:
    compiled = jk.jit(program.function)
    for n in (12, 15, 30):
        same(outcome(compiled, program.make(n)), outcome(program.function, program.make(n)))
    found = str(compiled.explain(*program.make(12)))
    if program.reason:
        assert program.reason in found
    else:
        assert "falls back to NumPy" not in found
        assert "is unrolled" not in found
        assert "as they are traced" not in found
