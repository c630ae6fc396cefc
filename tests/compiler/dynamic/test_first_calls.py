"""What a first call does not wait for: dispatchers of operators, and references that are not inlined."""

from typing import Any

import numpy as np
import pytest

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
