"""Guarded workspaces between the nests of compiled functions: no call writes outside of its own."""

import signal
from typing import Any

import numpy as np
import pytest
from every_program import every_program
from jitted import same
from processes import python

import jitkernels as jk
from jitkernels.compiler.dispatch import specialization
from jitkernels.compiler.ir.symbolic_dims import evaluated, value_of
from jitkernels.compiler.lowering.compiled_program import CompiledProgram
from jitkernels.compiler.memory.arena import Arena
from jitkernels.tools.testing import guarded_workspaces

EVERY = every_program()
PARTS = 8
WAYS = ("end", 3), ("start", 0)
FEW = {"whole.floyd_warshall", "whole.gauss_seidel", "whole.bodies"}
"""Programs that take NumPy long, and need no memory but numbers."""


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("both", [False, pytest.param(True, marks=pytest.mark.full)])
def test_every_program_between_pages(part: int, both: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put guard pages behind workspaces at level 3, before them at level 0, and on either side: results stay equal.

    Buffers that are live together do not overlap, and an arena takes no more than these need.
    """
    for name in ("SECONDS_OF_PYTHON", "SECONDS_OF_RESULT"):
        monkeypatch.setattr(specialization, name, 0.0)
    pooled, plans = 0, []
    chosen = [one for one in sorted(EVERY.items()) if one[0] not in FEW][part::PARTS]
    for number, (_, (function, make)) in enumerate(chosen):
        given = make()
        expected = function(*given), given
        for side, level in WAYS if both else WAYS[number % 2 :][:1]:
            with guarded_workspaces(side) as seen, np.errstate(all="ignore"):  # type: ignore[arg-type]
                compiled = jk.jit(function, opt_level=level)
                for _ in range(2):
                    arguments = make()
                    found = compiled(*arguments), arguments
                    same(found, expected)
            pooled += seen.pieces
            plans += [plan for plan in _plans(compiled) if plan.buffers]
    assert pooled >= 10
    assert all(plan.traced_bytes <= 1.1 * plan.bound for plan in plans)
    assert sum(plan.traced_bytes == plan.bound for plan in plans) >= 0.8 * len(plans)
    assert not any(map(_overlaps, plans))


def _plans(compiled: Any) -> list[Arena]:
    programs = [one.program for kept in compiled._specializations.values() for one in kept]
    return [one.arena for one in programs if isinstance(one, CompiledProgram)]


def _overlaps(plan: Arena) -> bool:
    """Whether arrays lie in memory of others that are needed at once, for the sizes now and for some others."""

    def grown(extent: Any) -> int:
        scope = getattr(extent, "scope", None)
        return int(evaluated(extent, {name: 3 * n + 1 for name, n in scope.values.items()} if scope else {}))

    for value in (value_of, grown):
        begins, _ = plan.offsets(value)
        places = [(begin, begin + value(one.nbytes), one) for one, begin in zip(plan.buffers, begins, strict=True)]
        for i, (low, high, one) in enumerate(places):
            if any(begin < high and low < end and one.meets(other) for begin, end, other in places[:i]):
                return True
    return False


PLANTED = """
import numpy as np
import jitkernels as jk
from jitkernels.compiler.memory import arena; from jitkernels.compiler.lowering import lower_graph as compilation
from jitkernels.tools.testing import guarded_workspaces

def wrong(buffers):
    made = arena.assign_offsets(buffers)
    made.buffers[-1].nbytes = {nbytes}
    return made

compilation.assign_offsets = wrong
x = np.random.default_rng(0).random((70, 30))
with guarded_workspaces("end"):
    compiled = jk.jit(lambda x: (x / x.sum(axis=0)) @ x.T)
    for _ in range(2):
        compiled(x)
print("done")
"""


def test_a_plan_of_too_little_memory_is_caught() -> None:
    """The process dies at the guard page; with enough memory, it does not."""
    assert python(PLANTED.format(nbytes="made.buffers[-1].nbytes")) == "done\n"
    python(PLANTED.format(nbytes="made.buffers[-1].nbytes - 2048"), status=-signal.SIGSEGV)


class Damaging(dict[int, Any]):
    """Pieces that are written beside before they are given back."""

    def pop(self, address: int) -> Any:  # type: ignore[override]
        made = super().pop(address)
        made._outside[0][-1] = 0
        return made


def _damaged() -> None:
    with guarded_workspaces("end") as seen:
        seen.out = Damaging()
        jk.jit(lambda x: (x / x.sum(axis=0)) @ x.T)(np.random.default_rng(0).random((70, 30)))
        assert seen.pieces  # twice where parts of the product were not there yet


def test_writes_out_of_bounds_are_detected() -> None:
    """Bytes before the workspace are compared where the guard page lies behind it."""
    with pytest.raises(AssertionError, match="wrote outside"):
        _damaged()
