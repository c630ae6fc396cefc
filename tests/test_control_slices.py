"""Slices whose bounds count, and rows by number, in loops of compiled functions."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from control_slices import SLICES
from jitted import notes

import jitkernels as jk


@pytest.mark.parametrize("function", SLICES, ids=lambda one: one.__name__)
@pytest.mark.parametrize("backend", ["native", "interpreter"])
def test_slices(function: Callable[..., Any], backend: str) -> None:
    compiled = jk.jit(function, backend=backend)
    for n in (12, 2, 3, 17):
        ours, theirs = SLICES[function](n), SLICES[function](n)
        assert np.allclose(compiled(*ours), function(*theirs), rtol=1e-9)
        assert all(map(np.allclose, ours, theirs))
    made = [one for kept in compiled._specialisations.values() for one in kept]
    assert any(one.has_flows for one in made)
    assert not notes(compiled)
