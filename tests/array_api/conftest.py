"""Fixtures of the tests of `jk.xp`: small arrays as expressions, so that functions are compiled."""

import pytest

from jitkernels.xp import array_object, dispatch, elementwise_functions, expression


@pytest.fixture
def all_lazy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Record functions of arrays of any size, and compile each expression at its first evaluation."""
    for module in (array_object, dispatch, elementwise_functions):
        monkeypatch.setattr(module, "MIN_LAZY_ELEMENTS", 0)
    monkeypatch.setattr(expression, "COMPILED_AT_ONCE", 0)
