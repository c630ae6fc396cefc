"""Compile time: the number of traced iterations, and functions longer than those of other tests."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jitted import agree, array, given

import jitkernels as jk
from jitkernels.benchmarks.long_functions import FUNCTIONS
from jitkernels.compiler.capture import trace_context
from jitkernels.compiler.capture.control_flow import loop_trace_cache


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: one.__name__)
def test_long_functions(function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_trace_cache, "MAX_TRACED_ITERATIONS", 150)
    compiled, arguments = jk.jit(function), FUNCTIONS[function]
    assert "0 calls of NumPy" in str(compiled.explain(*arguments()))
    if function.__name__ in ("arrays", "helped", "nests"):
        return  # whose numbers `jitkernels bench compile-time` compares: LLVM takes most of a second for each
    for found, expected in zip(compiled(*arguments()), function(*arguments()), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def nested(depth: int) -> str:
    """A function of loops in loops, which change all that there is."""
    lines = ["def function(x, s, n):", "    p = 0"]
    for i in range(depth):
        lines += ["    " * (i + 1) + text for text in (f"s = s + p * {i}", f"for i{i} in range(n):")]
    inside = ("x[p % len(x)] += s * 0.5", "p += i0", "if s > 3.0:", "    s, p = s - 1.0, 1")
    lines += ["    " * (depth + 1) + text for text in inside]
    return "\n".join([*lines, "    return s, p", ""])


@pytest.mark.parametrize("depth", [3, 6])
def test_traced_iterations_are_few(depth: int, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / f"nested{depth}.py"
    file.write_text(nested(depth))
    names: dict[str, Any] = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    monkeypatch.setattr(loop_trace_cache, "MAX_TRACED_ITERATIONS", 4 * depth)
    function = names["function"]
    assert "loop" in str(jk.jit(function).explain(np.arange(5.0), 0, 2))
    agree(function, lambda: np.arange(5.0), given(0), given(2))


def after_all_of_it(a: Any, n: Any) -> Any:
    for _ in range(n):
        a[:] = -3.0 / n
        for k in range(9):
            a[k] += 1.0


def reversed_before(a: Any, n: Any) -> Any:
    for _ in range(n):
        a[:] = a[::-1]
        for k in range(9):
            a[k] *= 0.5


def on_both_sides(a: Any, n: Any) -> Any:
    for i in range(n):
        if a[i % 20] > 0.5:
            a[:] = a * 0.5
            for k in range(9):
                a[k] += 0.25
        else:
            a[:] = 0.75
            a[3] = 2


def behind_a_part(a: Any, n: Any) -> Any:
    for _ in range(n):
        a[1:-1] = 0.25 * a[:-2] + 0.5 * a[1:-1] + 0.25 * a[2:]
        for k in range(9):
            a[k] += 0.25


def inside_of_a_branch(a: Any, n: Any) -> Any:
    for i in range(n):
        if i % 4 == 3:
            for k in range(20):
                a[k] += 0.125 * a[k]


@pytest.mark.parametrize(
    "function", [after_all_of_it, reversed_before, on_both_sides, behind_a_part, inside_of_a_branch]
)
@pytest.mark.parametrize("backend", ["native", "interpreter"])
def test_arrays_reach_their_home_buffers(function: Callable[..., Any], backend: str) -> None:
    """Arrays that are assigned as a whole and then by elements stay in one buffer."""
    assert "loop" in str(jk.jit(function).explain(array(20), 25))
    agree(function, lambda: array(20), given(25), backend=backend)


def test_endless_traces_fall_back_to_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function without source text is traced as it runs: tracing stops before all iterations ran."""
    monkeypatch.setattr(trace_context, "MAX_TRACE_NODES", 500)
    names: dict[str, Any] = {"np": np}
    exec("def halved(x, n):\n    for _ in range(n):\n        x = x * 0.5\n    return x.sum()", names)
    compiled = jk.jit(names["halved"])
    assert compiled(np.ones(3), 1000) == 3 * 0.5**1000
    assert "falls back to NumPy: more than 500 operations" in str(compiled.explain(np.ones(3), 1000))
    assert compiled(np.ones(3), 10) == 3 * 0.5**10
    with pytest.raises(jk.DerivativeError, match="more than 500 operations"):
        jk.grad(names["halved"])(np.ones(3), 1000)
