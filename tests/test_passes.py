"""Passes: each rule makes of an expression what it says, is needed for that, and changes no value."""

import re
import sys
import time
from typing import Any

import numpy as np
import pytest

from jitkernels.errors import GraphError
from jitkernels.graph import construct, interpreter, scalars
from jitkernels.graph.config import JitConfig
from jitkernels.graph.construct import elementwise as e
from jitkernels.graph.extents import key_of_shape
from jitkernels.graph.ir import Graph, Node, key_of, verify
from jitkernels.graph.passes import GLOBAL, LOCAL, optimised
from jitkernels.maths import basic
from rule_cases import CASES, Case, Given, M, N, graph_of

PASSES = {one.name: one for one in (*LOCAL, *GLOBAL)}
RULES = {f"{name}.{rule}" for name, one in PASSES.items() for rule in one.rules}
IDS = [f"{case.rule}-{i}" for i, case in enumerate(CASES)]


@pytest.fixture(autouse=True)
def _functions_need_no_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scalars, "mathematics", lambda name, dtype: basic.positive)


def shape_of(graph: Graph) -> list[Any]:
    """Equal for graphs of the same nodes in the same order."""
    numbers: dict[int, int] = {id(node): i for i, node in enumerate(graph.inputs)}
    keys: list[Any] = []
    for node in graph:
        if id(node) not in numbers:
            numbers[id(node)] = len(numbers)
            keys.append(key_of(node, tuple(numbers[id(one)] for one in node.inputs)))
    roots = [numbers[id(node)] for node in graph.outputs]
    return [keys, roots, [(numbers[id(target)], numbers[id(value)]) for target, value in graph.writes]]


def made(case: Case) -> tuple[Graph, Graph]:
    given = Given()
    before, after = case.make(given)
    return graph_of(given, before), graph_of(given, after)


def checked(graph: Graph, *, fast_math: bool = False, level: int = 2, rules: Any = ()) -> Graph:
    """What passes make of a graph, verified after each."""
    verify(graph)
    config = JitConfig(opt_level=level, fast_math=fast_math, backend="native", rules=rules)
    return optimised(graph, config, lambda step, changed: verify(changed))


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_rule_makes_what_it_says(case: Case) -> None:
    before, after = made(case)
    assert shape_of(checked(before, fast_math=case.fast_math)) == shape_of(after)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_without_the_rule_it_is_not_made(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    name, rule = case.rule.split(".")
    monkeypatch.delitem(PASSES[name].rules, rule)
    before, after = made(case)
    assert shape_of(checked(before, fast_math=case.fast_math)) != shape_of(after)


@pytest.mark.parametrize("case", [case for case in CASES if case.fast_math], ids=str)
def test_floats_are_reordered_only_if_asked(case: Case) -> None:
    before, after = made(case)
    assert shape_of(checked(before)) != shape_of(after)


def test_every_rule_has_a_case() -> None:
    assert {case.rule for case in CASES} == RULES


@pytest.mark.parametrize("name", sorted(set(PASSES) - {"custom"}))
def test_docstrings_number_the_rules(name: str) -> None:
    text = sys.modules[f"jitkernels.graph.passes.{name}"].__doc__ or ""
    numbers = [int(found) for found in re.findall(r"^(\d+)\. ", text, re.MULTILINE)]
    assert numbers == [int(rule.split("_")[1]) for rule in PASSES[name].rules] == list(range(1, len(numbers) + 1))


SPECIAL = {
    "f": (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 3.0, -7.5, 1e-40, 2.0, 0.5, 1e-300, 65504.0, -2.0, 1 / 3),
    "i": (0, 1, -1, 7, -8, 127, -128, 100, 2**31 - 1, -(2**31), 5, -3),
    "u": (0, 1, 255, 128, 7, 200),
    "b": (True, False),
}


def arrays_for(graph: Graph, values: dict[str, int], seed: int) -> list[Any]:
    """Arrays for the inputs, of special values in any order."""
    from jitkernels.graph.extents import evaluated

    chosen = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        return [
            chosen.choice(SPECIAL[np.dtype(node.dtype).kind], tuple(evaluated(one, values) for one in node.shape))
            .astype(node.dtype)
            for node in graph.inputs
        ]  # fmt: skip


def assert_same(one: Any, other: Any, ulp: float) -> None:
    one, other = np.asarray(one), np.asarray(other)
    assert one.dtype == other.dtype
    assert one.shape == other.shape
    if one.dtype.kind != "f":
        np.testing.assert_array_equal(one, other)
        return
    if ulp == 0:
        nan = np.isnan(one)
        np.testing.assert_array_equal(nan, np.isnan(other))
        np.testing.assert_array_equal(np.where(nan, 0, one), np.where(nan, 0, other))
        np.testing.assert_array_equal(np.signbit(one) | nan, np.signbit(other) | nan)
        return
    exact = ~np.isfinite(one) | (one == 0)
    assert_same(np.where(exact, one, 1), np.where(exact, other, 1), 0)
    unit = np.spacing(np.abs(np.where(exact, 1, one)))
    with np.errstate(all="ignore"):
        apart = np.abs(np.where(exact, 0, one).astype("float64") - np.where(exact, 0, other)) / unit
    assert apart.max(initial=0) <= ulp, (one, other)


@pytest.mark.parametrize("case", [case for case in CASES if not case.fast_math], ids=lambda case: case.rule)
def test_a_rule_changes_no_value(case: Case) -> None:
    before, _ = made(case)
    after = checked(before)
    for seed in range(20):
        for values in ({"n": N, "m": M}, {"n": 9, "m": 3}):
            arrays = arrays_for(before, values, seed)
            with np.errstate(all="ignore"):
                results = [interpreter.run(graph, arrays, values) for graph in (before, after)]
            for one, other in zip(*results, strict=False):
                assert_same(one, other, 3 if case.loose else 0)
