"""Every form of loop and branch gives bitwise what Python gives."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jitted import agree, notes
from statement_forms import FORMS

import jitkernels as jk
from jitkernels.benchmarks import scalar_programs
from jitkernels.compiler.ir.config import JitConfig


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
    """To the bit, but for sums that vectors add up in another order, from level 2 on."""
    with np.errstate(over="ignore"):  # as random numbers are made
        expected = np.array(function(*PROGRAMS[function]()))
    in_order = jk.jit(function, config=JitConfig(opt_level=1))
    assert bits_of(np.array(in_order(*PROGRAMS[function]()))) == bits_of(expected)
    compiled = jk.jit(function)
    result = np.array(compiled(*PROGRAMS[function]()))
    assert result.dtype == expected.dtype
    np.testing.assert_allclose(result, expected, rtol=1e-13)
    assert is_code(compiled)
