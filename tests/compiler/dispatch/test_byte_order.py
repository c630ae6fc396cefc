"""Dtypes of non-native byte order fall back to NumPy, and are never taken for native ones."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk

OTHER = np.dtype("f4").newbyteorder()
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "astype": lambda x: x.astype(OTHER),
    "array": lambda x: np.array(x, dtype=OTHER),
    "asarray": lambda x: np.asarray(x, OTHER),
    "zeros_like": lambda x: np.zeros_like(x, dtype=OTHER),
    "zeros": lambda x: np.zeros(x.shape, OTHER),
    "view": lambda x: x.view(OTHER),
    "concatenate": lambda x: np.concatenate([x, x], dtype=OTHER),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_in_the_other_byte_order(name: str) -> None:
    x = np.arange(600, dtype="f4")
    expected = FUNCTIONS[name](x)
    found = jk.jit(FUNCTIONS[name])(x)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


REFUSED: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "add": (lambda x: np.add(x, x, dtype=OTHER), np.dtype("f4")),
    "sum": (lambda x: x.sum(dtype=OTHER), np.dtype("f4")),
    "casting": (lambda x: np.add(x, x, casting="no"), OTHER),
}


@pytest.mark.parametrize("name", REFUSED)
def test_dtypes_that_numpy_rejects_are_rejected(name: str) -> None:
    function: Any = jk.jit(REFUSED[name][0])
    x = np.arange(600, dtype="f4").astype(REFUSED[name][1])
    with pytest.raises(TypeError):
        function.__wrapped__(x)
    with pytest.raises(TypeError):
        function(x)


def test_conjugate_of_real_arrays_is_the_array_itself() -> None:
    x = np.arange(3.0)
    assert jk.jit(lambda x: x.conj())(x) is x
