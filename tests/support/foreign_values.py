"""What tests of arrays of other libraries share: addresses, and functions that say which memory they were given."""

import concurrent.futures
import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

import jitkernels as jk


def address(array: Any) -> int:
    """The address of the first element of an array of NumPy."""
    return int(array.__array_interface__["data"][0])


def check_shared(value: Any, pointer: int, expected: Any) -> None:
    """Compiled functions and eager kernels read the memory of `value` at `pointer`; results are arrays of NumPy."""
    from jitkernels.attrs.schema import foreign_arrays

    assert foreign_arrays.is_foreign(value)
    assert address(foreign_arrays.as_array(value)) == pointer
    views = jk.jit(lambda x: x[...])
    for _ in range(3):
        view = views(value)
        assert type(view) is np.ndarray
        assert address(view) == pointer
        np.testing.assert_array_equal(view, expected)
    function = jk.jit(lambda x, y: np.exp(-x * x) + y)
    for _ in range(3):
        found = function(value, y=value)
        assert type(found) is (np.ndarray if expected.ndim else expected.dtype.type)
        np.testing.assert_allclose(found, np.exp(-expected * expected) + expected, rtol=1e-5)
    if expected.dtype.kind == "f" and expected.ndim:
        np.testing.assert_allclose(jk.vexp(value), np.exp(expected), rtol=1e-5)
        np.testing.assert_allclose(jk.hsum(value), expected.sum(-1), rtol=1e-5)
    array = jk.xp.asarray(value)
    assert address(np.asarray(array)) == pointer
    np.testing.assert_allclose(np.asarray(jk.xp.sin(array)), np.sin(expected), rtol=1e-5)


def check_lifetime(make: Callable[[], Any]) -> None:
    """Views outlive the array whose memory they share, and free it when they go."""
    views = jk.jit(lambda x: x[...])
    value = make()
    owner = weakref.ref(value)
    expected = np.array(views(value))
    view = views(value)
    del value
    gc.collect()
    trash = [np.full(view.shape, np.nan) for _ in range(32)]
    np.testing.assert_array_equal(view, expected)
    del view, trash
    gc.collect()
    assert owner() is None


def check_threads(make: Callable[[int], Any]) -> None:
    """Threads share a compiled function, each with arrays of its own."""
    function = jk.jit(lambda x: (x * x).sum())

    def run(i: int) -> bool:
        return bool(np.isclose(float(function(make(i))), float((np.asarray(make(i)) ** 2).sum()), rtol=1e-5))

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(run, range(64)))
