"""Slices with loop-variant bounds, and rows by index, in compiled loops."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from control_slices import SLICES
from jitted import notes
from processes import python

import jitkernels as jk


@pytest.mark.parametrize("function", SLICES, ids=lambda one: one.__name__)
@pytest.mark.parametrize("backend", ["native", "interpreter"])
def test_slices(function: Callable[..., Any], backend: str) -> None:
    compiled = jk.jit(function, backend=backend)
    for n in (12, 2, 3, 17):
        ours, theirs = SLICES[function](n), SLICES[function](n)
        assert np.allclose(compiled(*ours), function(*theirs), rtol=1e-9)
        assert all(map(np.allclose, ours, theirs))
    made = [one for kept in compiled._specializations.values() for one in kept]
    assert any(one.has_flows for one in made)
    assert not notes(compiled)


ENDLESS = """
import _thread, threading, numpy as np, jitkernels as jk

def numbers(x):
    i = 0.0
    while x[0] < 1.0:
        i += 1.0
        x[1] = i

def arrays(x):
    for t in range(10**9):
        x[1:-1] = 0.5 * (x[:-2] + x[2:])

def nested(x):
    total = 0.0
    for t in range(10**9):
        for j in range(len(x)):
            total += x[j]
    return total

def backwards(x):
    for t in range(10**9):
        j = len(x) - 1
        while j >= 0 and x[j] < 1.0:
            x[j] += 1e-12
            j -= 1
        x[0] += 1e-12

for function in (numbers, arrays, nested, backwards):
    for profile in (False, True):
        compiled = jk.jit(function, profile=profile)
        assert "loop" in str(compiled.explain(np.zeros(100)))
        threading.Timer(0.3, _thread.interrupt_main).start()
        try:
            compiled(np.zeros(100))
        except KeyboardInterrupt:
            continue
        raise AssertionError(function)
print("all ended")
"""


def test_ctrl_c_ends_long_loops(tmp_path: Path) -> None:
    script = tmp_path / "endless.py"
    script.write_text(ENDLESS)
    assert "all ended" in python(f"import runpy; runpy.run_path({str(script)!r})")
