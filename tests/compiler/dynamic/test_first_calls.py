"""What a first call does not wait for: dispatchers of operators, and references that are not inlined."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import python

import jitkernels as jk
from jitkernels.compiler.capture.kernels import inline_reference
from jitkernels.dispatch import operators
from jitkernels.dispatch.lazy_operator import lazy_operator
from jitkernels.errors import UnknownNameError

FUNCTIONS: dict[str, Any] = {
    "sort": np.sort,
    "argsort": lambda x: np.argsort(x, axis=0),
    "median": lambda x: np.median(x, axis=1),
    "quantile": lambda x: np.quantile(x, 0.3),
    "histogram": lambda x: np.histogram(x, bins=7, range=(0, 1))[0],
    "fft": np.fft.fft,
    "rfft2": lambda x: np.fft.irfft2(np.fft.rfft2(x)),
}


@pytest.mark.per_push(len(FUNCTIONS))
@pytest.mark.parametrize("name", FUNCTIONS)
def test_traces_build_no_dispatcher(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(name: str) -> Any:
        raise AssertionError(f"the dispatcher of {name}")

    monkeypatch.setattr(operators, "_holder", refused)
    x = np.random.default_rng(1).random((6, 16))
    np.testing.assert_allclose(jk.jit(FUNCTIONS[name], strict=True)(x), FUNCTIONS[name](x), rtol=1e-10, atol=1e-12)


def test_operators_by_name_serve_values_too() -> None:
    x = np.random.default_rng(1).random(9)
    assert lazy_operator("sort") is lazy_operator("sort")
    np.testing.assert_array_equal(lazy_operator("sort")(x), np.sort(x))
    with pytest.raises(UnknownNameError):
        lazy_operator("unknown")


@pytest.mark.per_push
def test_references_that_call_their_own_kernel_are_traced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    traced = []
    original = inline_reference._trace_reference

    def noted(tracer: Any, shapes: Any, *others: Any) -> Any:
        traced.append(type(shapes.form.attr))
        return original(tracer, shapes, *others)

    monkeypatch.setattr(inline_reference, "_trace_reference", noted)
    monkeypatch.setattr(inline_reference, "_recursive", set())
    x = np.random.default_rng(1).random((5, 30))
    for function in (np.fft.fft, np.fft.rfft, lambda x: np.fft.fft(np.fft.fft(x, axis=0))):
        np.testing.assert_allclose(jk.jit(function, strict=True)(x), function(x), rtol=1e-10, atol=1e-12)
    assert len(traced) == len({*traced}) == 2


HELPERS = """
import os
import numpy as np
import jitkernels as jk
from jitkernels.codegen import compile_ahead
os.getloadavg = lambda: (0.5, 0.5, 0.5)
from jitkernels.runtime.loading import build_ahead

def fails(x):
    raise ValueError("no")

started = []
original = build_ahead.start_helpers
build_ahead.start_helpers = lambda: (started.append(1), original())
x = np.ones(5)
jk.jit(lambda x: np.sin(x) + 1)(x)
assert started or not compile_ahead.job_count()
assert not compile_ahead._idle
jk.jit(lambda x: np.sqrt(x) * 2).explain(x)
assert not compile_ahead._idle
try:
    jk.jit(fails)(x)
except ValueError:
    pass
assert not compile_ahead._idle
for function in (np.exp, np.tan, np.sqrt, np.cbrt, np.log1p, np.expm1, np.sinh, np.tanh, np.arctan, np.floor):
    jk.jit(lambda x: function(x) * 2)(x)
compile_ahead.take_demand()
started.clear()
jk.jit(lambda x: np.cos(x) + 1)(x)
assert not started
compile_ahead.note_demand()
jk.jit(lambda x: np.cos(x) + 2)(x)
assert started or not compile_ahead.job_count()
assert not compile_ahead._idle
started.clear()
os.getloadavg = lambda: (100.0, 100.0, 100.0)
compile_ahead.note_demand()
jk.jit(lambda x: np.cos(x) + 3)(x)
assert not started
print("done")
"""


def test_helpers_start_where_much_is_built_and_outlive_no_call(tmp_path: Path) -> None:
    """In a new cache, and where the last call had work for one."""
    assert python(HELPERS, tmp_path).strip().endswith("done")


@pytest.mark.per_push
def test_derivatives_go_through_references_that_call_their_own_kernel() -> None:
    """By the function of NumPy that these call, whether a trace without derivatives has found that before or not."""
    x, weights = np.array([5.0, 2.0, 7.0]), np.array([1.0, 10.0, 100.0])
    for _ in range(2):
        gradient = jk.grad(lambda x: np.sum(jk.sort(x) * weights))(x)
        np.testing.assert_array_equal(gradient, [10.0, 1.0, 100.0])
        np.testing.assert_array_equal(jk.jit(lambda x: jk.sort(x) * 2, strict=True)(x), np.sort(x) * 2)
