"""Matrix products choose their algorithm per call: each one at the sizes where it begins and ends."""

import itertools
from typing import Any

import numpy as np
import processor_skips
import pytest
from jitted import array

import jitkernels as jk
from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.attrs.schema.registry import implementation
from jitkernels.compiler.schedule import matmul_step
from jitkernels.core import cpu_target
from jitkernels.dispatch.kernel import Kernel
from jitkernels.microkernels.gemm import runtime_select
from jitkernels.selection import select

TURNS = [*itertools.product((False, True), repeat=2)]
SHAPES = [
    (0, 3, 2), (3, 0, 2), (3, 2, 0), (1, 1, 1), (2, 3, 5), (2, 2, 300), (8, 2, 24), (9, 3, 33), (40, 4, 700),
    (33, 6, 40), (32, 7, 40), (301, 8, 40), (3, 2, 3000), (2, 301, 40), (4, 70, 130), (6, 333, 24), (8, 99, 300),
    (17, 16, 64), (24, 31, 25), (25, 24, 23), (64, 65, 7), (65, 64, 300), (71, 90, 64), (300, 17, 5), (129, 257, 66),
    (64, 100, 151), (300, 290, 280), (2100, 5, 400), (60, 700, 110), (5, 900, 1000),
]  # fmt: skip
"""m, n, k: nothing in a dimension, few rows, few columns, both; remainders of all tiles; panels; work for threads."""


@pytest.mark.parametrize(("trans_a", "trans_b"), TURNS)
def test_every_algorithm_is_right(trans_a: bool, trans_b: bool) -> None:
    """Each pair of transposes in one dtype, and one of them accumulating into C."""
    generator, dtype = np.random.default_rng(1), "float32" if trans_a == trans_b else "float64"
    for (m, n, k), beta in itertools.product(SHAPES, (0.0, -0.5) if trans_a and trans_b else (0.0,)):
        attr = MatMulAttr(m=m, n=n, k=k, trans_a=trans_a, trans_b=trans_b, beta=beta, dtype=dtype)
        a = generator.standard_normal((k, m) if trans_a else (m, k)).astype(dtype)
        b = generator.standard_normal((n, k) if trans_b else (k, n)).astype(dtype)
        c = np.full((m, n), 2.0 if beta else np.nan, dtype)
        Kernel(attr, implementation(MatMulAttr, "gen"), {"algorithm": "any", "parallel": True}).callable(a, b, c)
        right = (a.T if trans_a else a).astype("f8") @ (b.T if trans_b else b) + beta * 2
        assert np.all(np.abs(c - right) <= 8 * (k + 4) * np.finfo(dtype).eps), attr


@pytest.mark.parametrize(("transposed", "vectors"), [(False, 64), (True, 64), (False, 32)])
def test_few_columns_with_few_registers(transposed: bool, vectors: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles of other machines, in instructions of this one."""
    own = cpu_target.target()
    if own.vector_bytes < vectors:
        processor_skips.skip("it has no such vectors")
    narrow = type(own)(**{**vars(own), "registers": 16, "vector_bytes": vectors})
    monkeypatch.setattr(cpu_target, "target", lambda: narrow)
    for m, n, k in SHAPES[:20]:
        attr = MatMulAttr(m=m, n=n, k=k, trans_b=transposed)
        a, b = array(m, k).astype("f4"), array(*((n, k) if transposed else (k, n)), seed=1).astype("f4")
        c = np.empty((m, n), "f4")
        Kernel(attr, implementation(MatMulAttr, "gen"), {"algorithm": "any"}).callable(a, b, c)
        np.testing.assert_allclose(c, a @ (b.T if transposed else b), rtol=1e-3, atol=1e-3 * (k + 1) ** 0.5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("threads", [1, 2])
def test_symmetric_products(dtype: str, threads: int, restored_threads: int) -> None:
    """They are symmetric to the last bit, with the bits of any product."""
    jk.set_num_threads(threads)
    rows, columns = jk.jit(lambda x: x @ x.T), jk.jit(lambda x: x.T @ x / 2)
    product = jk.jit(lambda x, y: x @ y.T)
    for m, k in ((2, 2), (5, 300), (129, 31), (129, 32), (128, 1100), (301, 130), (500, 40)):
        x = array(m, k).astype(dtype)
        found = rows(x)
        np.testing.assert_array_equal(found, found.T)
        bound = k * float(np.finfo(dtype).eps)
        right: Any = x.astype("f8") @ x.T.astype("f8")
        np.testing.assert_allclose(found, right, rtol=bound, atol=40 * bound)
        np.testing.assert_allclose(columns(x.T.copy()), right / 2, rtol=bound, atol=40 * bound)
        if m > 300:
            np.testing.assert_array_equal(found, product(x, x.copy()))


def test_one_specialization_serves_sizes_of_different_algorithms() -> None:
    """Whichever size it was compiled for."""
    sizes = (4, 5, 6), (300, 2, 200), (200, 150, 180), (3, 400, 90)
    functions: list[Any] = [lambda x, w: x @ w, lambda x, w: np.maximum(x @ w, 0.5) * 2]
    for function in functions:
        for first in sizes:
            compiled = jk.jit(function)
            for m, n, k in (first, *sizes):
                x, w = array(m, k), array(k, n, seed=1)
                np.testing.assert_allclose(compiled(x, w), function(x, w), rtol=1e-9, atol=1e-9)
            assert compiled.stats().compiles <= 2, "a short extent may be a constant of other code"


def test_matmul_selection_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    selected: list[Any] = []

    def counted(attr: Any, **how: Any) -> Any:
        selected.append(attr)
        return choose(attr, **how)

    choose = select.choose_for_class
    monkeypatch.setattr(select, "choose_for_class", counted)
    compiled = jk.jit(lambda x, w, b: np.tanh(x @ w + b))
    compiled(array(30, 40), array(40, 20), array(20))
    assert len(selected) == 1


def test_products_are_kernels_whatever_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a pin selects NumPy, which would end a segment; the best algorithm for exact sizes serves any size."""
    attr = MatMulAttr(m=64, n=256, k=100)
    gen, refer = (implementation(MatMulAttr, name) for name in ("gen", "refer"))
    direct = next(one for one in gen.variants(attr) if one["algorithm"] == "direct")
    exact = select.Choice(gen, direct, "measured")
    monkeypatch.setattr(select, "preferences", lambda *_, **__: iter([select.Choice(refer, {}, "measured"), exact]))
    chosen = select.choose_for_class(attr, in_code=True)
    assert (chosen.implementation.name, chosen.variant["algorithm"]) == ("gen", "any")
    assert select.choose_for_class(attr).implementation.is_reference
    x, w = array(30, 40), array(40, 20)
    with jk.use(matmul="refer"):
        assert "NumPy: matmul" in str(jk.jit(lambda x, w: x @ w).explain(x, w))


def test_texts_of_kernels_are_generated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For all products of a process in equal layouts."""
    jk.jit(lambda x, w: x @ w)(array(9, 8), array(8, 7))
    monkeypatch.setattr(runtime_select, "runtime_select_kernel", None)
    jk.jit(lambda x, w: x @ w)(array(90, 80), array(80, 7))


def test_symmetric_products_have_no_row_epilogue() -> None:
    x, y = array(200, 200), array(200, 200)
    assert jk.jit(lambda x: np.tanh(x.T @ x)).explain(x).kernels == 2
    assert jk.jit(lambda x, y: np.tanh(x.T @ y)).explain(x, y).kernels == 1


@pytest.mark.parametrize("transposed", [False, True])
def test_epilogue_rows_with_several_threads(transposed: bool, restored_threads: int) -> None:
    layer = jk.jit(lambda x, w, b: np.maximum(x @ (w.T if transposed else w) + b, 0) * 2)
    for m, n, k in ((64, 100, 151), (129, 257, 66), (333, 40, 70)):
        x, w, b = array(m, k), array(*((n, k) if transposed else (k, n)), seed=1), array(n, seed=2)
        found = []
        for threads in (1, 2, 3):
            jk.set_num_threads(threads)
            found += [layer(x, w, b) for _ in range(3)]
        np.testing.assert_allclose(found[0], layer.__wrapped__(x, w, b), rtol=1e-9, atol=1e-9)
        for one in found[1:]:
            np.testing.assert_array_equal(one, found[0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tiny_products_are_loop_nests(dtype: str) -> None:
    """They compile in a third of the time, and serve tiny products alone."""
    compiled = jk.jit(lambda x, w: x @ w.swapaxes(-1, -2))
    for lead in ((), (3,)):
        for m, n, k in ((4, 4, 4), (2, 4, 6), (3, 2, 5), (16, 2, 2), (5, 4, 4)):
            x, w = array(*lead, m, k).astype(dtype), array(*lead, n, k, seed=1).astype(dtype)
            plain = x @ w.swapaxes(-1, -2)
            np.testing.assert_allclose(compiled(x, w), plain, rtol=1e-5, atol=1e-5)
            assert ("sum over" in str(compiled.explain(x, w))) == (m * n * k <= matmul_step.MAX_NEST_MULTIPLICATIONS)
