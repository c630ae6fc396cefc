"""Products of few rows with a matrix that no L2 cache holds: edges of tiles, of blocks along k and of columns."""

import itertools
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.attrs.schema.registry import implementation
from jitkernels.core import cpu_target
from jitkernels.dispatch.kernel import Kernel
from jitkernels.microkernels.gemm import gemm_heuristics, skinny_direct
from jitkernels.runtime.loading.loader import address_of


def multiplied(attr: MatMulAttr, a: Any, b: Any, c: Any) -> None:
    """The product by the kernel itself, whatever the sizes."""
    import ctypes

    kernel = skinny_direct.large_matrix_kernel(attr, cpu_target.target(), parallel=True)
    call = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 3)(address_of(kernel))
    assert call(a.ctypes.data, b.ctypes.data, c.ctypes.data, attr.m, attr.n, attr.k) == 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("beta", [0.0, -0.5])
def test_edges(dtype: str, trans_a: bool, beta: float) -> None:
    """Each number of rows of a tile, several blocks of rows and of k, none at all, and parts of vectors."""
    rng = np.random.default_rng(0)
    inner = [(40, 0), (1, 1), (32, 5), (33, 256), (65, 257), (300, 600)]
    rows = (*range(17), 27, 29, 56, 64, 71, 200)
    for m, (n, k) in itertools.chain(itertools.product(rows, inner[3:4]), itertools.product((7, 29, 75), inner)):
        attr = MatMulAttr(m=m, n=n, k=k, trans_a=trans_a, beta=beta, dtype=dtype)
        a = rng.standard_normal((k, m) if trans_a else (m, k)).astype(dtype)
        b, c = rng.standard_normal((k, n)).astype(dtype), np.full((m, n), 2.0 if beta else np.nan, dtype)
        guarded = np.full((m + 1, n), 7.0, dtype)
        guarded[:m] = c
        multiplied(attr, a, b, guarded)
        right: Any = (a.T if trans_a else a).astype("f8") @ b + beta * 2
        atol = 8 * (k + 4) * float(np.finfo(dtype).eps)
        np.testing.assert_allclose(guarded[:m], right, rtol=0, atol=atol, err_msg=str(attr))
        assert np.all(guarded[m] == 7)


def test_special_values_stay_in_their_rows() -> None:
    """Rows and columns beyond the last ones are computed with zeros, and do not reach the results."""
    a, b = np.ones((9, 300), "f4"), np.ones((300, 70), "f4")
    a[4, 7], b[299, 69] = np.inf, np.nan
    c = np.empty((9, 70), "f4")
    multiplied(MatMulAttr(m=9, n=70, k=300), a, b, c)
    np.testing.assert_array_equal(c, a @ b)


@pytest.mark.parametrize("rows", [2, 5, 24, 64])
def test_it_serves_large_matrices(rows: int, restored_threads: int) -> None:
    """As a kernel of exact sizes, in everyday calls and in compiled code, with one thread and with two."""
    k = 700
    n = cpu_target.l2_cache_bytes() // 4 // k + 77
    attr = MatMulAttr(m=rows, n=n, k=k)
    assert gemm_heuristics.few_rows_of_large_matrix(False, "float32", least=2)(rows, n, k)
    gen = implementation(MatMulAttr, "gen")
    assert next(iter(gen.variants(attr)))["algorithm"] == "any"
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((rows, k)).astype("f4"), rng.standard_normal((k, n)).astype("f4")
    compiled: Any = jk.jit(lambda a, b: np.maximum(a @ b, 0))
    right: Any = a.astype("f8") @ b
    found = []
    for threads in (1, 2):
        jk.set_num_threads(threads)
        c = np.empty((rows, n), "f4")
        Kernel(attr, gen, {"algorithm": "any", "parallel": threads > 1}).callable(a, b, c)
        np.testing.assert_allclose(c, right, rtol=0, atol=1e-3)
        np.testing.assert_allclose(jk.matmul(a, b), right, rtol=0, atol=1e-3)
        np.testing.assert_allclose(compiled(a, b), np.maximum(right, 0), rtol=0, atol=1e-3)
        found.append(c)
    np.testing.assert_array_equal(found[0], found[1])
