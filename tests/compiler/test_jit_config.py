"""The keywords of `jit`, each tested where it has an effect."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jitted import array, notes, same

import jitkernels as jk
from jitkernels.codegen import object_cache
from jitkernels.compiler.diagnostics.differential_check import Check
from jitkernels.compiler.ir.config import MAX_NEST_INPUTS
from jitkernels.compiler.ir.graph import Graph, Node, transformed
from jitkernels.compiler.lowering import backends, lower_graph
from jitkernels.core import cache_dirs


def total(*arrays: Any) -> Any:
    found = arrays[0]
    for one in arrays[1:]:
        found = found * 0.5 + one
    return np.sqrt(np.abs(found)) - arrays[0]


def pairs(*arrays: Any) -> Any:
    return tuple(one * other for one, other in zip(arrays[::2], arrays[1::2], strict=True))


def transposed(*arrays: Any) -> Any:
    return sum((one + other).T * one for one, other in zip(arrays[::2], arrays[1::2], strict=True))


def rows(*arrays: Any) -> Any:
    return np.stack([one.sum(axis=1) + sum(arrays[:3]).max(axis=1) for one in arrays]) / total(*arrays)[0, 0]


@pytest.mark.parametrize("function", [total, pairs, transposed, rows])
@pytest.mark.parametrize("most", [1, 2, 3, 4, 7, 40])
def test_max_inputs_limits_the_arrays_of_a_nest(function: Any, most: int) -> None:
    """Or as many as one operation has operands, which is two here."""
    arrays = [array(6, 6, seed=seed) for seed in range(20)]
    compiled = jk.jit(function, max_inputs=most, profile=True)
    same(compiled(*arrays), function(*arrays))
    assert not notes(compiled)
    explained = compiled.explain(*arrays)
    assert not explained.reason
    groups = explained.groups
    read = [sum(bool(node.shape) for node in group.reads) for group in groups]
    assert max(read) <= max(most, 2)
    assert max(read) == min(most, 20) or most in (1, 40) or function in (pairs, transposed, rows)
    whole = jk.jit(function, max_inputs=100).explain(*arrays).kernels
    assert len(groups) > whole if most < 20 else len(groups) == whole
    assert len(groups) <= whole + 80 // max(most - 1, 1)


def test_nests_read_few_arrays_by_default() -> None:
    many = [array(5, seed=seed) for seed in range(100)]
    read = [len(group.reads) for group in jk.jit(total).explain(*many).groups]
    assert max(read) <= MAX_NEST_INPUTS < 100
    assert len(read) == 4


@pytest.mark.parametrize("kept", [True, False])
def test_cache_option(kept: bool, private_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the code itself and for the compiled entry."""
    monkeypatch.setattr(cache_dirs, "cache_root", lambda: private_cache)
    looked: list[str] = []
    fetch = object_cache.fetch

    def watched(key: str, *others: Any) -> Any:
        looked.append(key)
        return fetch(key, *others)

    monkeypatch.setattr(object_cache, "fetch", watched)
    x = array(50_000)
    seed = 0.25 + kept  # the code of no other test

    def function(x: Any) -> Any:
        return np.tanh(x * x) + np.float64(0.123456) * seed

    compiled = jk.jit(function, cache=kept)
    for _ in range(3):
        same(compiled(x), function(x))
    profiled = jk.jit(lambda x: function(x) * 3, cache=kept, profile=True)
    same(profiled(x), function(x) * 3)
    assert bool(looked) == kept
    assert bool(list(private_cache.glob("*/objects/*.o"))) == kept


@pytest.mark.parametrize("profile", [True, False])
def test_calls_are_counted(profile: bool) -> None:
    compiled = jk.jit(lambda x: x * 2 + 1, profile=profile)
    x = array(50_000)
    for _ in range(4):
        compiled(x)
    assert compiled.stats().launches == (4 if profile else 1)


@pytest.mark.parametrize("backend", ["native", "interpreter"])
def test_backend_option(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter computes every call, however small, and never a kernel."""
    ran: list[int] = []
    run = backends.Interpreted.run

    def counted(*arguments: Any) -> Any:
        ran.append(1)
        return run(*arguments)

    monkeypatch.setattr(backends.Interpreted, "run", counted)
    compiled = jk.jit(lambda x: np.exp(x) - x, backend=backend)
    for shape in ((3,), (50_000,), (3,)):
        same(compiled(array(*shape)), np.exp(array(*shape)) - array(*shape))
    assert len(ran) == (3 if backend == "interpreter" else 0)


def mixed(x: Any, parts: dict[str, Any], out: list[Any]) -> Any:
    weights = np.exp(x - x.max(axis=1, keepdims=True)) @ parts["w"]
    out[0] += 2 * np.abs(weights)
    parts["k"][1:] = parts["k"][:-1] * 3
    order = np.argsort(x[:, 0])
    return {"w": weights / weights.sum(axis=0), "n": (x > 0.5).sum(axis=1), "s": x[order]}


def arguments() -> tuple[Any, ...]:
    ints = np.arange(7)
    return (array(9, 5, dtype="f4"), {"w": array(5, 6, dtype="f4", seed=3), "k": ints}, [array(9, 6, dtype="f4")])


@pytest.mark.parametrize("level", [-1, -2, -3])
def test_checked_calls_accept_right_results(level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call, small or large, is compared with NumPy, and right results pass."""
    checked: list[int] = []

    compare = Check.compare

    def counted(*given: Any) -> None:
        compare(*given)
        checked.append(1)

    monkeypatch.setattr(Check, "compare", counted)
    compiled = jk.jit(mixed, opt_level=level)
    for _ in range(3):
        given, others = arguments(), arguments()
        same(compiled(*given), mixed(*others))
        same(list(given), list(others))
    assert len(checked) == 3
    assert not [note for note in notes(compiled) if "failed" in note]


def changed(graph: Graph, operation: str, other: str) -> Graph:
    """A graph with a mistake of the compiler's: one operation in place of another."""

    def rule(node: Node) -> Node:
        if node.operation == operation and np.dtype(node.dtype).kind in "fi":
            return Node(other, node.inputs, node.dtype, node.shape, node.options)
        return node

    return transformed(graph, rule)


MISTAKES = {
    ("exp", "tanh"): r"result 0 of compiled code is not NumPy.s: the largest difference is .* at \[\d, \d\]",
    ("absolute", "negative"): r"out\[0\] of compiled code is not NumPy's: the largest difference is .* at \[\d, \d\]",
    ("divide", "multiply"): r"result 0 of compiled code .* 54 of 54 elements differ",
    ("multiply", "add"): r"parts\['k'\] of compiled code",
}


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("level", [-1, -2, -3])
def test_differences_are_errors(level: int, mistake: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """They report what differs, by how much and where; arguments stay unchanged."""
    lower = lower_graph.compile_graph
    monkeypatch.setattr(lower_graph, "compile_graph", lambda graph, *others: lower(changed(graph, *mistake), *others))
    compiled = jk.jit(mixed, opt_level=level)
    for _ in range(2):
        given = arguments()
        with pytest.raises(jk.DifferenceError, match=MISTAKES[mistake]):
            compiled(*given)
        same(list(given), list(arguments()))
    unchecked = jk.jit(mixed, opt_level=-level, profile=True)
    unchecked(*arguments())


def test_small_differences_are_errors() -> None:
    """Of a few units in the last place of float32; but not rounding errors of results near zero."""
    from jitkernels.compiler.diagnostics import error_analysis
    from jitkernels.compiler.diagnostics.differential_check import difference
    from jitkernels.compiler.ir.builder import elementwise, reduce

    x = Node("input", (), "float32", (100,), {"index": 0})
    steep = elementwise("subtract", elementwise("add", x, 1000.0), 1000.0)
    close = elementwise("greater", elementwise("multiply", x, 3.0), elementwise("add", x, elementwise("add", x, x)))
    graph = Graph((x,), (elementwise("exp", x), steep, close, reduce("sum", x, [0])))
    values = array(100, dtype="f4")
    (exp, own), (_, lost), (_, unsure), (whole, few) = error_analysis.run(graph, [values], {})
    eps = np.finfo("f4").eps
    assert not difference(exp, exp, own)
    assert not difference(np.float32(exp * (1 + 4 * eps)), exp, own)
    assert "100 of 100" in difference(np.float32(exp * (1 + 40 * eps)), exp, own)
    assert 500 * eps < lost.min() <= lost.max() < 5000 * eps
    assert unsure is not None
    assert unsure.all()
    assert 50 * eps < few / whole < 500 * eps
    assert "expected float32[100], got float64[100]" in difference(exp.astype("f8"), exp, own)
    spoilt = exp.copy()
    spoilt[7] = np.nan
    assert "is inf at [7]" in difference(spoilt, exp, own)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    ("args", "kwargs"), [((), {}), ((1.0, 2.0, 3.0), {}), ((1.0,), {"z": 2.0}), ((1.0,), {"x": 2.0})], ids=str
)
def test_wrong_arguments_are_no_fallback(
    args: Any, kwargs: Any, strict: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """They raise the TypeError of the plain function, and nothing is logged."""

    def sine_of_ratio(x: Any, y: Any = 2.0) -> Any:
        return np.sin(x / y) if y else x

    compiled: Any = jk.jit(sine_of_ratio, strict=strict)
    with pytest.raises(TypeError) as expected:
        compiled.__wrapped__(*args, **kwargs)
    with pytest.raises(TypeError, match=re.escape(str(expected.value))):
        compiled(*args, **kwargs)
    assert not caplog.records
