"""Passes: each rule rewrites an expression as it says, is needed for that, and changes no value."""

import math
import re
import sys
import time
from typing import Any

import numpy as np
import pytest
from random_graphs import Maker
from rule_cases import CASES, Case, Given, M, N, graph_of, part
from staying_cases import STAYING, STAYING_FAST

from jitkernels.compiler.ir import builder, elementwise_ops, interpreter
from jitkernels.compiler.ir.builder import elementwise as e
from jitkernels.compiler.ir.config import JitConfig
from jitkernels.compiler.ir.graph import Graph, Node, key_of
from jitkernels.compiler.ir.ops import verify
from jitkernels.compiler.ir.symbolic_dims import evaluated
from jitkernels.compiler.passes import GLOBAL, LOCAL, matchers, optimize
from jitkernels.errors import GraphError
from jitkernels.microkernels.maths import basic

pytestmark = pytest.mark.per_push

PASSES = {one.name: one for one in (*LOCAL, *GLOBAL)}
RULES = {f"{name}.{rule}" for name, one in PASSES.items() for rule in one.rules}
IDS = [f"{case.rule}-{i}" for i, case in enumerate(CASES)]


@pytest.fixture(autouse=True)
def _functions_need_no_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elementwise_ops, "mathematics", lambda name, dtype: basic.positive)


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
    config = JitConfig(opt_level=level, fast_math=fast_math, rules=rules)
    return optimize(graph, config, lambda step, changed: verify(changed))


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_each_rule_rewrites_its_case(case: Case) -> None:
    before, after = made(case)
    assert shape_of(checked(before, fast_math=case.fast_math)) == shape_of(after)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_no_other_rule_rewrites_the_case(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    name, rule = case.rule.split(".")
    others = {one: entry for one, entry in PASSES[name].rules.items() if one != rule}
    monkeypatch.setattr(PASSES[name], "rules", others)
    before, after = made(case)
    assert shape_of(checked(before, fast_math=case.fast_math)) != shape_of(after)


@pytest.mark.parametrize("case", [case for case in CASES if case.fast_math], ids=lambda case: case.rule)
def test_floats_are_reordered_only_with_fast_math(case: Case) -> None:
    before, after = made(case)
    assert shape_of(checked(before)) != shape_of(after)


@pytest.mark.parametrize("why", STAYING)
def test_forbidden_rewrites_are_not_applied(why: str) -> None:
    given = Given()
    graph = graph_of(given, STAYING[why](given))
    assert shape_of(checked(graph)) == shape_of(graph)


@pytest.mark.parametrize("why", STAYING_FAST)
def test_forbidden_rewrites_are_not_applied_with_fast_math(why: str) -> None:
    given = Given()
    graph = graph_of(given, STAYING_FAST[why](given))
    assert shape_of(checked(graph, fast_math=True)) == shape_of(graph)


def test_every_rule_has_a_case() -> None:
    assert {case.rule for case in CASES} == RULES


@pytest.mark.parametrize("name", sorted(set(PASSES) - {"user_rules"}))
def test_docstrings_number_the_rules(name: str) -> None:
    text = sys.modules[f"jitkernels.compiler.passes.{name}"].__doc__ or ""
    numbers = [int(found) for found in re.findall(r"^(\d+)\. ", text, re.MULTILINE)]
    assert numbers == [int(rule.split("_")[1]) for rule in PASSES[name].rules] == list(range(1, len(numbers) + 1))


VALUES = ({"n": N, "m": M}, {"n": 9, "m": 3}, {"n": 2, "m": 2})
"""Of the symbols: what graphs are made for is one of many."""


@pytest.mark.parametrize("case", [case for case in CASES if not case.fast_math], ids=lambda case: case.rule)
def test_a_rule_changes_no_value(case: Case) -> None:
    before, _ = made(case)
    after = checked(before)
    for seed in range(20):
        values = VALUES[seed % 3 if all(node.operation != "update" for node in before) else 0]  # some need more
        arrays = special_arrays(before, values, seed)
        one, other = results_of(before, arrays, values), results_of(after, arrays, values)
        for expected, found in zip(one, other, strict=False):
            assert_same(expected, found, 3 if case.loose else 0)


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("seed", range(150))
def test_passes_change_no_value(seed: int, level: int) -> None:
    maker = Maker(seed)
    before = maker.graph(25)
    guards = len(maker.scope.guards)
    after = checked(before, level=level)
    assert len(maker.scope.guards) == guards, "a pass concretized an extent"
    kept = [i for i, write in enumerate(before.writes) if write[0] is not write[1]]
    for values in ({"n": 5, "m": 3}, {"n": 2, "m": 6}):
        arrays = special_arrays(before, values, seed)
        one, other = results_of(before, arrays, values), results_of(after, arrays, values)
        count = len(before.outputs)
        for expected, found in zip([*one[:count], *(one[count + i] for i in kept)], other, strict=False):
            assert_same(expected, found, 0)


@pytest.mark.parametrize("fast_math", [False, True])
@pytest.mark.parametrize("seed", range(100))
def test_passes_change_roundings_alone(seed: int, fast_math: bool) -> None:
    before = Maker(seed, smooth=True).graph(15)
    after = checked(before, fast_math=fast_math)
    values = {"n": 5, "m": 3}
    chosen = np.random.default_rng(seed)
    arrays = [chosen.uniform(0.5, 2.0, [evaluated(one, values) for one in node.shape]) for node in before.inputs]
    one, other = results_of(before, arrays, values), results_of(after, arrays, values)
    for expected, found in zip(one, other, strict=False):
        np.testing.assert_allclose(found, expected, 1e-9, 0)


@pytest.mark.parametrize(("name", "seconds"), [("chain", 0.5), ("transposes", 0.5), ("reshapes", 0.5), ("many", 4.0)])
def test_large_graphs_take_little_time(name: str, seconds: float) -> None:
    graph = LARGE[name](Given())
    started = time.perf_counter()
    after = optimize(graph, JitConfig(opt_level=2, fast_math=True))
    assert time.perf_counter() - started < seconds * 4, "the factor is for machines that do other things, too"
    verify(after)


def _chain(given: Given) -> Graph:
    node = given.x
    for i in range(1000):
        node = e(("add", "multiply", "subtract")[i % 3], node, given.y if i % 2 else 1.5 + i)
    return graph_of(given, node)


def _transposes(given: Given) -> Graph:
    node = given.a
    for _ in range(500):
        node = e("exp", builder.transpose(node))
    return graph_of(given, node)


def _reshapes(given: Given) -> Graph:
    node = given.a
    for _ in range(250):
        node = e("exp", builder.reshape(node, (given.n * given.m,)))
        node = e("tanh", builder.reshape(node, (given.n, given.m)))
    return graph_of(given, node)


def _many(given: Given) -> Graph:
    chosen = np.random.default_rng(0)
    nodes = [given.x, given.y]
    for _ in range(10_000):
        name = str(chosen.choice(["add", "multiply", "maximum", "subtract"]))
        nodes.append(e(name, nodes[-1 - int(chosen.integers(min(len(nodes), 30)))], nodes[-1]))
    return graph_of(given, nodes[-1])


LARGE = {"chain": _chain, "transposes": _transposes, "reshapes": _reshapes, "many": _many}


def test_views_of_a_chain_are_removed_in_one_pass() -> None:
    given = Given()
    after = checked(_transposes(given))
    assert all(node.operation != "view" for node in after)


@pytest.mark.parametrize("exponent", [math.inf, -math.inf, math.nan, 1e300, 65.0, -65.0, 0.3])
@pytest.mark.parametrize("fast_math", [False, True])
def test_other_powers_are_not_rewritten(exponent: float, fast_math: bool) -> None:
    given = Given()
    graph = graph_of(given, e("power", given.d, exponent))
    assert checked(graph, fast_math=fast_math) is graph


@pytest.mark.parametrize("divisor", [0.0, -0.0, math.inf, math.nan, 3.0, 2.0**-130, 2.0**-149])
def test_other_divisions_are_not_rewritten(divisor: float) -> None:
    given = Given()
    graph = graph_of(given, e("divide", given.x, divisor))
    assert checked(graph) is graph


def test_sums_of_floats_keep_their_order() -> None:
    given = Given()
    node = e("add", e("add", e("multiply", given.a, given.b), given.r), e("add", given.s, 1.0))
    graph = graph_of(given, e("subtract", e("multiply", node, 0.0), node))
    assert checked(graph) is graph


def test_operations_without_machine_code_are_not_introduced(monkeypatch: pytest.MonkeyPatch) -> None:
    given = Given()
    graph = graph_of(given, e("power", 2.0, given.x))
    monkeypatch.setattr(elementwise_ops, "mathematics", lambda name, dtype: None if name == "exp2" else basic.positive)
    assert checked(graph) is graph


def traced_together() -> tuple[Given, Node, Node]:
    """Two vectors of other symbols that were of one length when they were added."""
    given = Given()
    other = given._input("float32", given.scope.symbol("k", N))
    return given, other, e("add", given.x, other)


def test_extents_guarded_as_equal_are_equal() -> None:
    given, other, total = traced_together()
    count = len(given.scope.guards)
    shown = builder.view(total, ((given.n - 1, ((0, -1),)),), (given.n,))
    graph = graph_of(given, e("add", e("multiply", shown, 1.0), other))
    after = checked(graph)
    assert len(given.scope.guards) == count
    assert [node.operation for node in after if node.operation not in ("input",)] == ["view", "view", "add", "add"]
    values = {"n": 7, "m": 3, "k": 7}
    arrays = special_arrays(graph, values, 1)
    assert_same(results_of(graph, arrays, values)[0], results_of(after, arrays, values)[0], 0)


def test_extents_that_may_be_1_have_unknown_shapes() -> None:
    given = Given()
    short, other = given.n - N + 1, given.m - M + 1  # both are 1 now
    assert matchers.spans_extent(short, other) is None
    assert matchers.common_shape([(short,), (other,)]) is None
    assert matchers.spans_extent(short, given.n) is False
    assert matchers.common_shape([(given.n,), (short,), (given.n, 1)]) == (given.n, given.n)
    node = e("add", part(given.x, 0, short), part(given.r, 0, other))
    graph = graph_of(given, builder.view(node, ((0, ((0, -1),)),), node.shape))
    assert checked(graph) is graph


def test_optimization_levels() -> None:
    given = Given()
    graph = graph_of(given, e("add", e("power", given.x, 2.0), e("power", given.x, 2.0)))
    assert checked(graph, level=0) is graph
    assert [node.operation for node in checked(graph, level=1)].count("square") == 2
    assert [node.operation for node in checked(graph, level=2)].count("square") == 1
    for level in (1, 2, 3):
        assert shape_of(checked(graph, level=level)) == shape_of(checked(graph, level=-level))


def test_views_stay_without_fuse_dimshuffle() -> None:
    before, after = made(next(case for case in CASES if case.rule == "view_motion.rule_1_view_of_elementwise"))
    config = JitConfig(opt_level=2, fuse_dimshuffle=False)
    assert shape_of(optimize(before, config)) == shape_of(before) != shape_of(after)


def test_user_rules_apply_to_their_own_results() -> None:
    def hypotenuse(node: Node) -> Node | None:
        if node.operation != "sqrt" or node.inputs[0].operation != "add":
            return None
        squares = node.inputs[0].inputs
        if any(one.operation != "square" for one in squares):
            return None
        return e("hypot", *(one.inputs[0] for one in squares))

    given = Given()
    graph = graph_of(given, e("sqrt", e("add", e("multiply", given.x, given.x), e("square", e("negative", given.y)))))
    for level in (1, 2):
        after = checked(graph, level=level, rules=(hypotenuse,))
        assert shape_of(after) == shape_of(graph_of(given, e("hypot", given.x, given.y)))
    assert checked(graph, level=0, rules=(hypotenuse,)) is graph


def test_cyclic_rules_terminate() -> None:
    def mirrored(node: Node) -> Node | None:
        return node.with_inputs(reversed(node.inputs)) if node.operation == "add" else None

    given = Given()
    after = checked(graph_of(given, e("add", given.x, given.y)), rules=(mirrored,))
    assert [node.operation for node in after][-1] == "add"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda node: builder.cast(node, "float64"), "expected the same dtype and shape"),
        (lambda node: builder.expand_dims(node, (0,)), "expected the same dtype and shape"),
        (lambda node: 1.0, "expected a Node or None"),
    ],
)
def test_rules_that_break_graphs_are_named(make: Any, said: str) -> None:
    def wrong_rule(node: Node) -> Any:
        return make(node) if node.operation == "exp" else None

    given = Given()
    with pytest.raises(GraphError, match=f"rules: wrong_rule .*{said}"):
        checked(graph_of(given, e("exp", given.x)), rules=(wrong_rule,))


SPECIAL: dict[str, tuple[float, ...]] = {
    "f": (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 3.0, -7.5, 1e-40, 2.0, 0.5, 1e-300, 65504.0, -2.0, 1 / 3),
    "i": (0, 1, -1, 7, -8, 127, -128, 100, 2**31 - 1, -(2**31), 5, -3),
    "u": (0, 1, 255, 128, 7, 200),
    "b": (True, False),
}


def special_arrays(graph: Graph, values: dict[str, int], seed: int) -> list[Any]:
    """Arrays for the inputs, of special values in any order."""
    chosen = np.random.default_rng(seed)
    found = []
    for node in graph.inputs:
        shape = tuple(evaluated(one, values) for one in node.shape)
        with np.errstate(all="ignore"):
            found.append(np.asarray(chosen.choice(SPECIAL[np.dtype(node.dtype).kind], shape)).astype(node.dtype))
    return found


def results_of(graph: Graph, arrays: list[Any], values: dict[str, int]) -> list[Any]:
    with np.errstate(all="ignore"):
        return interpreter.run(graph, arrays, values)


def assert_same(one: Any, other: Any, ulp: float) -> None:
    """Equal up to some units; NaN is NaN, and zeros have the same sign."""
    one, other = np.asarray(one), np.asarray(other)
    assert one.dtype == other.dtype
    assert one.shape == other.shape
    if one.dtype.kind != "f":
        np.testing.assert_array_equal(one, other)
        return
    nan, exact = np.isnan(one), ~np.isfinite(one) | (one == 0) | (ulp == 0)
    np.testing.assert_array_equal(nan, np.isnan(other))
    np.testing.assert_array_equal(np.where(nan | ~exact, 0, one), np.where(nan | ~exact, 0, other))
    np.testing.assert_array_equal(np.signbit(one) | nan, np.signbit(other) | nan)
    unit = np.spacing(np.abs(np.where(exact, 1, one))).astype("float64")
    apart = np.abs(np.where(exact, 0, one).astype("float64") - np.where(exact, 0, other)) / unit
    assert apart.max(initial=0) <= ulp, (one, other)
