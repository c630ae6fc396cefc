"""Results that are no plain arrays are built by Python from those of compiled code; nothing else is."""

import dataclasses
import gc
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from jitted import agree, array, given, identities, same

import jitkernels as jk
from jitkernels.compiler.capture.pytree.result_spec import ResultPlan
from jitkernels.compiler.dispatch import specialization
from jitkernels.compiler.dispatch.compiled_link import CompiledLink


@dataclasses.dataclass
class Pair:
    first: Any
    second: Any


class Named(NamedTuple):
    low: Any
    high: Any


def shared(x: Any, k: Any) -> Any:
    y = x * k + 1
    return y, y[1:], y[::-1, None], y.T


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "list": lambda x, k: [x * k, x - k],
    "dict": lambda x, k: {"a": x * k, 3: (x - k, None)},
    "dataclass": lambda x, k: Pair(x * k, [x - k, "text"]),
    "named": lambda x, k: Named(x * k, x - k),
    "argument": lambda x, k: (x, x * k, k),
    "view of an argument": lambda x, k: [x[1:], x.T, x * k, x[::-2]],
    "shared": shared,
    "same twice": lambda x, k: (lambda y: (y, [y, y]))(x * k),
    "float": lambda x, k: (float(3) * k, x * k),
    "no dimensions": lambda x, k: (np.asarray((x * k).sum()), np.add(x.sum(), k)),
    "sizes": lambda x, k: (x * k, x.shape, x.size - 1),
    "reshaped": lambda x, k: [(x * k).reshape(-1), x.reshape(2, -1)],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_of_every_form(name: str) -> None:
    """The compiled function builds them, for other sizes too; none keeps its parts alive."""
    function = FUNCTIONS[name]
    compiled = agree(function, lambda: array(6, 4), given(2.5))
    assert [type(one) for one in compiled._links.entered] == [CompiledLink]
    x = array(8, 6, seed=4)
    before = sys.getrefcount(x)
    for _ in range(20):
        found, right = compiled(x, 1.5), function(x, 1.5)
        same(found, right)
        if not isinstance(found, Pair):
            identities(found, [x], right, [x])
    assert compiled.stats().compiles == 1
    del found, right
    gc.collect()
    assert sys.getrefcount(x) == before


def test_small_arrays_fall_back_where_building_results_takes_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large arrays do not, in either order of calls."""
    monkeypatch.setattr(specialization, "SECONDS_OF_RESULT", 1e-6)

    def function(x: Any) -> Any:
        return [x * 2, x[1:], x[2:]]

    for sizes in ((8, 100_000), (100_000, 8)):
        compiled = jk.jit(function)
        for size in sizes:
            same(compiled(array(size)), function(array(size)))
        assert compiled._links.entered
    compiled = jk.jit(function)
    compiled(array(8))
    assert not any(isinstance(one, CompiledLink) for one in compiled._links.entered)
    compiled(array(100_000))
    assert any(isinstance(one, CompiledLink) for one in compiled._links.entered)


def test_out_of_results_that_python_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = jk.jit(lambda x: [x * 2, x + 1])
    x, outs = array(50_000), (np.zeros(50_000), np.zeros(50_000))
    for _ in range(3):
        assert compiled(x, out=outs) is outs
        same(list(outs), [x * 2, x + 1])
        same(compiled(x), [x * 2, x + 1])
    with pytest.raises(jk.ArgumentError, match="as many arrays"):
        compiled(x, out=(outs[0],))


def test_errors_of_construction_are_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """The call raises the constructor's error, and keeps nothing."""

    def refusing(parts: tuple[Any, ...]) -> Any:
        raise KeyError("nothing like it")

    monkeypatch.setattr(ResultPlan, "finisher", lambda *_: refusing)
    compiled, x = jk.jit(lambda x: [x, x[1:], x * 2]), array(50_000)
    before = sys.getrefcount(x)
    for _ in range(3):
        with pytest.raises(KeyError, match="nothing like it"):
            compiled(x)
    gc.collect()
    assert sys.getrefcount(x) == before
