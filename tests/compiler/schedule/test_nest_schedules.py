"""Schedules of loop nests: what each rule chooses for a small example, and that each field changes the code."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.lowering import build_segment
from jitkernels.compiler.schedule.nest.choose_schedule import choose_schedule
from jitkernels.compiler.schedule.nest.loop_order import Loops
from jitkernels.compiler.schedule.nest.nest_schedule import (
    NestSchedule,
    PhaseSchedule,
    RecentStore,
    Remainder,
    RowJam,
    RowPacking,
)
from jitkernels.core import cpu_target


def add(x: Any) -> Any:
    return x + 1


def add_and_double(x: Any) -> Any:
    return x + 1, x * 2


def shifted_exponents(x: Any) -> Any:
    return np.exp(x - x.max(axis=-1, keepdims=True))


def total(x: Any) -> Any:
    return x.sum()


def sum_of_rows(x: Any) -> Any:
    return x.sum(axis=1)


def sum_of_columns(x: Any) -> Any:
    return x.sum(axis=0)


def few_multiples(x: Any) -> Any:
    return (x * np.arange(5, dtype=np.float32)[:, None]).sum(axis=0)


def transposed(x: Any) -> Any:
    return np.ascontiguousarray(x.T) + 1


def scaled_columns(a: Any, x: Any) -> Any:
    return (a * x[:, None]).sum(axis=0)


def in_place(x: Any) -> Any:
    x += 1


def relaxed(a: Any, b: Any, steps: Any) -> Any:
    for _ in range(steps):
        b[1:-1, 1:-1] = 0.25 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])
    return a


def forward(a: Any, b: Any) -> Any:
    for i in range(len(a)):
        a[i] = b[i] - (a[:i] * b[:i]).sum()
    return a


def backward(a: Any, b: Any) -> Any:
    for i in range(len(a) - 1, -1, -1):
        a[i] = b[i] - (a[i + 1 :] * b[i + 1 :]).sum()
    return a


def zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


GRID, ROW = np.zeros((100, 100)), np.zeros(100)
CALLS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "elementwise": (add, (zeros(100, 70),)),
    "two outputs": (add_and_double, (zeros(100, 70),)),
    "in place": (in_place, (zeros(100),)),
    "large rows": (shifted_exponents, (zeros(4000, 2000),)),
    "short columns": (total, (zeros(1000, 9)[:, :5],)),
    "rows": (shifted_exponents, (zeros(30, 2000),)),
    "rows of rows": (shifted_exponents, (zeros(3, 4, 2000)[:, ::2],)),
    "total": (total, (zeros(100, 70),)),
    "short rows": (sum_of_rows, (zeros(300, 7),)),
    "columns": (sum_of_columns, (zeros(300, 700),)),
    "few": (few_multiples, (zeros(700),)),
    "transpose": (transposed, (zeros(100, 70),)),
    "far runs": (scaled_columns, (zeros(300, 256), zeros(300))),
    "runs in memory": (scaled_columns, (zeros(3000, 256), zeros(3000))),
    "weights": (scaled_columns, (zeros(300, 256), zeros(300))),
    "stencil": (relaxed, (GRID, GRID, 3)),
    "forward": (forward, (ROW, ROW)),
    "backward": (backward, (ROW, ROW)),
}
STATIC = {"weights": ("a",)}
"""Arguments of a call that are constants, whose rows begin with a cache line."""
EXPECTED: dict[str, dict[str, Any]] = {
    "elementwise": {
        "order": (), "lane_loop": 1, "parallel_loop": 1, "vector_bytes": 64, "lanes": 16, "unroll": 4,
        "remainder": Remainder.MASKED, "aligned": 0, "peels_long": True, "streamed": (0,), "prefetches_stores": True,
    },
    "in place": {"keeps_fp_flags_exact": True, "streamed": ()},
    "large rows": {
        "order": (0,), "lane_loop": 1, "parallel_loop": 0, "remainder": Remainder.HOISTED, "streamed": (1,),
        "aligned": 1, "peels_long": False, "fills_step": True, "read_prefetch": 1, "number": 2,
    },
    "rows": {"streamed": (), "aligned": None, "read_prefetch": 0},
    "total": {"parallel_loop": None, "in_blocks": True},
    "short rows": {"packed": (RowPacking(8, 8), RowPacking(1, 8)), "packs_all": True},
    "columns": {"order": (0,), "lane_loop": 0, "doubles_steps": True, "blocked": True, "packed": ()},
    "few": {"blocked": False},
    "short columns": {"is_short": True, "lanes": 8, "unroll": 1},
    "transpose": {"gathered_run": 0, "loops": (1, 0), "unroll": 1, "streamed": ()},
    "far runs": {"whole_lines": 65, "held_scalars": 0, "prefetched_runs": frozenset()},
    "runs in memory": {"prefetched_runs": frozenset({0})},
    "weights": {"whole_lines": 0, "held_scalars": 128},
    "stencil": {
        "vector_bytes": 32, "jam": RowJam(2, 8, 0, pairs=True, prefetches=True), "remainder": Remainder.HALVED,
        "serpentine": frozenset({0, 1}), "stream_bytes": 0,
    },
    "forward": {"recent_store": RecentStore.LAST},
    "backward": {"recent_store": RecentStore.FIRST},
}  # fmt: skip
"""Fields of the last nest's schedule, and of its last phase, on a processor with 64-byte vectors."""
CHANGED: dict[str, tuple[str, Any]] = {
    "order": ("rows of rows", (1, 0)),
    "lane_loop": ("elementwise", None),
    "parallel_loop": ("elementwise", None),
    "gathered_run": ("transpose", None),
    "vector_bytes": ("elementwise", 32),
    "lanes": ("elementwise", 8),
    "unroll": ("elementwise", 2),
    "is_short": ("short columns", False),
    "doubles_steps": ("columns", False),
    "fills_step": ("large rows", False),
    "remainder": ("columns", Remainder.HALVED),
    "keeps_fp_flags_exact": ("in place", False),
    "aligned": ("rows", 1),
    "peels_long": ("elementwise", False),
    "streamed": ("elementwise", ()),
    "stream_bytes": ("elementwise", 1 << 10),
    "prefetches_stores": ("two outputs", False),
    "serpentine": ("stencil", frozenset()),
    "packed": ("short rows", (RowPacking(4, 16), RowPacking(1, 16))),
    "packs_all": ("short rows", False),
    "in_blocks": ("total", False),
    "blocked": ("columns", False),
    "jam": ("stencil", None),
    "recent_store": ("forward", None),
    "read_prefetch": ("large rows", 2),
    "prefetched_runs": ("runs in memory", frozenset()),
    "whole_lines": ("far runs", 0),
    "held_scalars": ("weights", 0),
}
"""Another value of each field, for a call whose code it changes."""


@pytest.fixture(autouse=True)
def wide_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Generate code, which nothing runs, for a processor with AVX-512 whose stores stall on misses."""
    target = replace(
        cpu_target.target(), architecture="x86_64", name="emeraldrapids", vector_bytes=64, registers=32
    )  # fmt: skip
    monkeypatch.setattr(cpu_target, "target", lambda: target)


def generated(
    call: str, monkeypatch: pytest.MonkeyPatch, *, as_loops: bool = False, **changes: Any
) -> tuple[NestSchedule, str]:
    """The schedule of a call's last nest, and the code of the call; with changed fields of all schedules.

    `as_loops`: pseudo-code in place of LLVM IR.
    """
    found: list[NestSchedule] = []

    def changed(loops: Loops) -> NestSchedule:
        schedule = choose_schedule(loops)
        own = {name: value for name, value in changes.items() if hasattr(schedule, name)}
        phases = tuple(
            replace(phase, **{name: value for name, value in changes.items() if name not in own})
            for phase in schedule.phases
        )
        found.append(replace(schedule, phases=phases, **own))
        return found[-1]

    function, arguments = CALLS[call]
    with monkeypatch.context() as patch:
        patch.setattr(build_segment, "choose_schedule", changed)
        compiled = jk.jit(function, static_argnames=STATIC.get(call, ()))
        text = compiled.loops(*arguments) if as_loops else compiled.source(*arguments, backend="native")
    return found[-1], text


@pytest.mark.parametrize("call", EXPECTED)
def test_chosen_schedules(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    schedule, _ = generated(call, monkeypatch)
    for name, value in EXPECTED[call].items():
        owner = schedule if hasattr(schedule, name) else schedule.phases[-1]
        assert getattr(owner, name) == value, name


@pytest.mark.parametrize("as_loops", [False, True], ids=["code", "loops"])
@pytest.mark.parametrize("name", CHANGED)
def test_every_field_changes_the_code_and_its_loops(name: str, as_loops: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    call, value = CHANGED[name]
    schedule, text = generated(call, monkeypatch, as_loops=as_loops)
    owner = schedule if hasattr(schedule, name) else schedule.phases[-1]
    assert getattr(owner, name) != value
    assert generated(call, monkeypatch, as_loops=as_loops)[1] == text
    assert generated(call, monkeypatch, as_loops=as_loops, **{name: value})[1] != text


def test_schedules_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    for call, words in {
        "elementwise": "unroll 4, 64-byte vectors, streaming stores of large results",
        "stencil": "2 rows of 8 lanes at once, alternating directions",
        "short rows": "8 short rows at once",
        "transpose": "transposed in registers",
    }.items():
        assert words in generated(call, monkeypatch)[0].description, call


def test_every_field_is_tested() -> None:
    names = {field.name for record in (NestSchedule, PhaseSchedule) for field in fields(record)}
    assert names - {"phases", "number", "loops"} == set(CHANGED)
    assert set(CHANGED) <= {name for expected in EXPECTED.values() for name in expected}
