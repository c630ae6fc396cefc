"""Everyday functions in numba code: several threads, and released memory."""

import contextlib
import threading
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from test_numba_calls import assert_same, njit, njit_parallel, through_python

import jitkernels as jk
from jitkernels.dispatch.numba_extension import call_site as sites

__all__ = ["through_python"]


@njit_parallel
def rows_in_parallel(x: Any, y: Any) -> None:
    for i in numba.prange(x.shape[0]):
        jk.softmax(x[i], out=y[i])


@njit_parallel
def products_in_parallel(a: Any, b: Any, total: Any) -> None:
    for i in numba.prange(a.shape[0]):
        total[i] = jk.matmul(a[i], b[i]).sum()


def test_in_prange(through_python: list[str]) -> None:
    x = np.random.default_rng(0).standard_normal((200, 33))
    y = np.empty_like(x)
    for _ in range(3):
        y[:] = np.nan
        rows_in_parallel(x, y)
        assert_same(y, np.array([jk.softmax(row) for row in x]))
    a, total = np.random.default_rng(0).standard_normal((50, 9, 9)), np.zeros(50)
    for _ in range(2):
        products_in_parallel(a, a, total)
        np.testing.assert_allclose(total, (a @ a).sum(axis=(1, 2)))
    assert len(through_python) < 250


def test_calls_without_the_gil() -> None:
    """Threads compute concurrently, first calls too, while tables are cleared."""

    def softmaxes(x: Any, y: Any, times: int) -> None:
        for _ in range(times):
            jk.softmax(x, out=y)

    many = numba.njit(nogil=True)(softmaxes)
    wrong: list[int] = []

    def work(n: int) -> None:
        x = np.random.default_rng(n).standard_normal((4, n))
        y, expected = np.empty_like(x), jk.softmax(x)
        for _ in range(20):
            many(x, y, 200)
            if not np.array_equal(y, expected):
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in (3, 8, 40, 300)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        sites.clear_tables()
    for thread in threads:
        thread.join()
    assert wrong == []


def refuse() -> None:
    raise jk.DataIndexError("raised for numba")


def test_unreferenced_results_are_freed() -> None:
    """Also where calls go through Python. Calls that raise leak no more than numba itself does."""
    from numba.core.runtime import _nrt_python, rtsys

    _nrt_python.memsys_enable_stats()

    @njit
    def sums(x: Any) -> float:
        total = 0.0
        for _ in range(10):
            total += jk.vexp(x)[0] + jk.vadd(x, x[:1])[0]
        return total

    @njit
    def gathered(table: Any, ids: Any) -> Any:
        return jk.gather(table, ids)

    @njit
    def raising(table: Any, ids: Any) -> Any:
        if ids[0] > 0:
            with numba.objmode():
                refuse()
        return table[ids]

    def left(call: Callable[..., Any], *arguments: Any, error: tuple[type[Exception], ...] = ()) -> int:
        before = rtsys.get_allocation_stats()
        for _ in range(20):
            with contextlib.suppress(*error):
                call(*arguments)
        after = rtsys.get_allocation_stats()
        return int((after.alloc - before.alloc) - (after.free - before.free))

    x, ids = np.ones((1, 100)), np.zeros(3, np.int64)
    sums(x[0]), gathered(x, ids), raising(x, ids)
    assert left(sums, x[0]) == 0
    assert left(gathered, x, ids) == 0
    error = (jk.DataIndexError,)
    assert left(gathered, x, ids + 1, error=error) <= left(raising, x, ids + 1, error=error)
