"""Code of matrix products for any size is built only as far as calls need it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import python

import jitkernels as jk
from jitkernels.compiler.ir.dim_bounds import cases
from jitkernels.compiler.ir.symbolic_dims import Scope
from jitkernels.errors import BuildError
from jitkernels.runtime.loading import lazy_link, loader

SIZES = (
    (50, 60, 70),
    (3, 60, 70),
    (300, 300, 300),
    (300, 300, 20),
    (30, 3, 60),
    (1, 2000, 900),
    (64, 200, 30),
    (2000, 20, 40),
)


def array(*shape: int, seed: int = 1) -> Any:
    return np.random.default_rng(seed).random(shape)


def over_time(x: Any, w: Any, u: Any) -> Any:
    """A product that is computed for 64 rounds at once."""
    h = np.zeros(u.shape[0])
    found = np.zeros((x.shape[0], u.shape[0]))
    for t in range(x.shape[0]):
        h = np.tanh(w @ x[t] + u @ h)
        found[t] = h
    return found


FIRST_CALL = """
import numpy as np
import jitkernels as jk
from jitkernels.runtime.loading import loader as load
names = []
built = load.built
load.built = lambda source, **options: names.append(source.name) or built(source, **options)
f = jk.jit(lambda x, w: np.exp(x @ w{transposed}))
for m in {rows}:
    x, w = np.ones((m, 40)), np.ones({shape})
    np.testing.assert_allclose(f(x, w), np.exp(x @ w{transposed}))
    print(*sorted({{name for name in names if name.startswith("matmul")}}))
    names.clear()
print(f.stats().compiles)
"""


@pytest.mark.parametrize(("transposed", "shape"), [("", (40, 50)), (".T", (50, 40))])
def test_calls_build_only_the_parts_they_need(transposed: str, shape: tuple[int, int], tmp_path: Path) -> None:
    """One part serves small sizes; another is built when large ones come, without another trace."""
    given = FIRST_CALL.format(transposed=transposed, shape=shape, rows=(32, 48, 5000, 30, 4000))
    first, *others, compiles = python(given, tmp_path).splitlines()
    assert first.split() == ["matmul_any_size_followed", "matmul_compact"]
    assert others == ["", "matmul_packed_followed", "", ""]
    assert compiles == "1"


def test_own_products_query_no_library(tmp_path: Path) -> None:
    """Exact sizes come first in the static order, then algorithms of any size, then libraries."""
    given = """
import sys
from jitkernels.selection import select as choosing
from jitkernels.attrs.matmul import MatMulAttr
found = choosing.choose_for_class(MatMulAttr(m=50, n=256, k=32, trans_b=True, dtype="float64"), in_code=True)
print(found.implementation.name, found.variant["algorithm"], *(name for name in sys.modules if ".more." in name))
"""
    assert python(given, tmp_path, JITKERNELS_TUNE="off") == "gen any\n"


@pytest.mark.parametrize("transposed", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("threads", [1, 2])
def test_all_sizes_in_any_order(transposed: tuple[bool, bool], threads: int, restored_threads: int) -> None:
    jk.set_num_threads(threads)

    def written(x: Any, w: Any, y: Any) -> Any:
        y += 1
        return (x.T if transposed[0] else x) @ (w.T if transposed[1] else w) * 2, y

    function = jk.jit(written)
    for m, n, k in (*SIZES, *SIZES):
        x, w = array(*((k, m) if transposed[0] else (m, k))), array(*((n, k) if transposed[1] else (k, n)))
        y, z = array(5), array(5)
        for one, other in zip(function(x, w, y), written(x, w, z), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9)


def test_rows_of_the_last_block_of_a_loop(tmp_path: Path) -> None:
    function, w, u = jk.jit(over_time), array(96, 32) / 40, array(96, 96) / 100
    for rounds in (50, 64, 65, 3, 67, 1, 200, 128, 24, 500):
        x = array(rounds, 32, seed=rounds)
        np.testing.assert_allclose(function(x, w, u), over_time(x, w, u), rtol=1e-9)


def test_cases_of_loop_variant_extents() -> None:
    scope = Scope()
    n, r, other = (scope.symbol(name, 100) for name in "nrs")
    scope.loop_variant |= {"r": (1, 64), "s": (0, 7)}
    assert cases((n, 7)) == [(n, 7)]
    assert cases((r, 7)) is None
    scope.few["r"] = 64, n - 64
    assert [[str(one) for one in found] for found in cases((r * n + 1, r, n)) or ()] == [
        [str(n * 64 + 1), "64", str(n)],
        [str(n * n - n * 64 + 1), str(n - 64), str(n)],
    ]
    assert cases((r, other)) is None
    scope.few["s"] = 0, 7
    assert len(cases((r, other)) or ()) == 4


def test_parts_that_cannot_be_built_fall_back_to_numpy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(self: lazy_link.LazyKernel) -> None:
        raise BuildError("there is no compiler any more")

    function = jk.jit(lambda x, w: np.sqrt(x @ w), cache=False)
    function(array(40, 48), array(48, 56))
    monkeypatch.setattr(lazy_link.LazyKernel, "bring", refuse)
    lacking = [one for one in lazy_link._known.values() if not one._words[lazy_link.ENTRY_WORD]]
    x, w = array(1000, 1000), array(1000, 1000)
    np.testing.assert_allclose(function(x, w), np.sqrt(x @ w))
    assert all(not one._words[lazy_link.ENTRY_WORD] for one in lacking)


def test_archives_contain_all_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lazy parts are loaded with their callers."""
    loaded = []
    monkeypatch.setattr(lazy_link.LazyKernel, "bring", lambda self: loaded.append(self))
    one = lazy_link.LazyKernel(load_nest())
    assert one.link.address()
    assert not loaded
    monkeypatch.setattr(loader, "watchers", [lambda *_: None])
    assert one.link.address()
    assert loaded == [one]


def load_nest() -> Any:
    from jitkernels.attrs.matmul import MatMulAttr
    from jitkernels.core.cpu_target import target
    from jitkernels.microkernels.gemm.direct_dynamic import direct_dynamic_kernel

    return direct_dynamic_kernel(MatMulAttr(m=1, n=1, k=1, dtype="float32"), target())
