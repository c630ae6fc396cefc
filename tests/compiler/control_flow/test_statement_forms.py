"""Every form of loop and branch gives bitwise what Python gives."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jitted import agree, notes
from statement_forms import FORMS

import jitkernels as jk
from jitkernels.benchmarks import scalar_programs


def bits_of(value: Any) -> Any:
    """A value whose equality is that of types and bits."""
    if isinstance(value, list | tuple):
        return type(value), [bits_of(one) for one in value]
    if isinstance(value, np.ndarray | np.generic):
        return type(value), value.dtype, value.shape, value.tobytes()
    return type(value), value.hex() if isinstance(value, float) else value


def is_code(compiled: Any) -> bool:
    made = [one for kept in compiled._specializations.values() for one in kept]
    return bool(made) and all(one.has_flows for one in made) and not notes(compiled)


@pytest.mark.parametrize("function", FORMS, ids=lambda one: one.__name__)
def test_forms(function: Callable[..., Any]) -> None:
    given = [one() for one in FORMS[function]]
    expected = bits_of(function(*given))
    compiled = agree(function, *FORMS[function], calls=1, opt_level=1)
    assert bits_of(compiled(*(one() for one in FORMS[function]))) == expected
    assert is_code(compiled)


PROGRAMS = scalar_programs.PROGRAMS


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda one: one.__name__)
def test_scalar_programs(function: Callable[..., Any]) -> None:
    compiled = jk.jit(function)
    given = PROGRAMS[function]()
    with np.errstate(over="ignore"):  # as random numbers are made
        expected = function(*PROGRAMS[function]())
    assert bits_of(np.array(compiled(*given))) == bits_of(np.array(expected))
    assert is_code(compiled)
