"""Rows with a numba implementation: which, that it is right, and that warm processes do not import numba."""

import itertools
from pathlib import Path

import numpy as np
import oracles
import pytest
from cases import Failures, Row
from processes import python

import jitkernels as jk
from jitkernels.attrs.schema.registry import UNEARNED, all_schemas, implementation, implementations
from jitkernels.dispatch.kernel import Kernel
from jitkernels.more.numba import WITHOUT
from jitkernels.tools import testing

LEAST = 60
"""Rows that numba implements at least."""
SIZES = 2
"""Cases of each row: the rest is LLVM's, which compiles for any size."""


def rows_by_numba() -> list[Row]:
    return [row for row in all_schemas() if "numba" in implementations(row)]


def ours() -> list[Row]:
    return [row for row in all_schemas() if row.__module__.startswith("jitkernels.")]


def test_number_of_rows_with_numba() -> None:
    assert len([row for row in ours() if "numba" in implementations(row)]) >= LEAST


def test_rows_without_numba_have_a_reason() -> None:
    """Every row without numba has a reason, and no row with it still has one."""
    missing = {row.kernel_type.name for row in ours() if "numba" not in implementations(row)}
    assert missing == set(WITHOUT)
    assert all(WITHOUT.values())


@pytest.mark.parametrize("row", [pytest.param(row, id=row.kernel_type.name.lower()) for row in rows_by_numba()])
def test_agrees_with_the_reference(row: Row) -> None:
    """Values, in-place calls and refused indices of a small and a middle size of each dtype."""
    found, failures, tried = implementation(row, "numba"), Failures(), 0
    listed = [case.attr for case in testing.ci_cases(row)]
    for dtype in ("float32", "float64"):
        own = [attr for attr in listed if attr.fields().get("dtype") == dtype]
        for attr in own[:: max(1, len(own) // SIZES)][:SIZES]:
            if found.reason_against(attr) is None:
                tried += 1
                for variant in found.variants(attr):
                    kernel = Kernel(attr, found, variant)
                    with failures.gathered():
                        testing.check_values(attr, kernel.callable, oracles.expected, label=repr(kernel))
                        testing.check_aliased_arguments(attr, kernel.callable, oracles.expected, label=repr(kernel))
                        testing.check_bad_indices(attr, kernel.callable, label=repr(kernel))
    assert tried
    failures.tell()


def test_threads_do_not_change_results() -> None:
    """Serial and parallel variants give equal results."""
    attr = jk.VExpAttr(n=1 << 18)
    found = implementation(type(attr), "numba")
    x = np.linspace(-5, 5, attr.n, dtype=np.float32)
    results = []
    for variant in found.variants(attr):
        y = np.empty_like(x)
        Kernel(attr, found, variant).callable(x, y)
        results.append(y)
    assert len(results) == 2
    assert all(np.array_equal(one, other) for one, other in itertools.pairwise(results))


def test_numba_is_explained_and_pinned() -> None:
    """Like any other candidate."""
    attr = jk.SoftmaxAttr(rows=4, n=9)
    assert "numba" in str(jk.explain(attr))
    assert "numba" in jk.get_all_candidates(attr)
    with jk.use(implementation="numba"):
        assert jk.explain(attr).winner == "numba"
        x = np.random.default_rng(0).standard_normal((4, 9)).astype("f4")
        expected = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
        assert np.allclose(jk.softmax(x, axis=-1), expected, rtol=1e-5)


def test_online_tuning_does_not_build_numba() -> None:
    """Online tuning neither builds nor waits for what only `jk.tune` measures."""
    from jitkernels.selection.records import Measured, Record
    from jitkernels.selection.select import has_unmeasured_implementations

    attr = jk.VMulAttr(n=1024)
    known = [name for name in implementations(type(attr)) if name not in UNEARNED]
    record = Record(tuple(Measured(name, {}) for name in known), complete=True)
    assert not has_unmeasured_implementations(attr, record)


WARM = """
import sys
import numpy as np
import jitkernels as jk
x = np.linspace(-2, 2, 30, dtype=np.float32).reshape(5, 6)
with jk.use(implementation="numba"):
    found = [jk.softmax(x, axis=-1), jk.vexp(x.ravel()), jk.matmul(x, x.T.copy())]

@jk.jit(backend="numba", strict=True)
def f(x, n):
    total = 0.0
    for i in range(n):
        total += x[i, 0]
    return np.tanh(x).sum(axis=0) + total

found.append(f(np.repeat(x, 400, axis=0), 9))
print([name for name in ("numba", "llvmlite") if name in sys.modules], sum(float(one.sum()) for one in found))
"""


def test_warm_process_imports_no_numba(private_cache: Path) -> None:
    """The second process finds every object: neither numba nor LLVM is imported."""
    cold, warm = python(WARM, private_cache), python(WARM, private_cache)
    assert "numba" in cold
    assert warm.startswith("[]")
    assert cold.partition("]")[2] == warm.partition("]")[2]


def test_cold_process_without_it_imports_no_numba(private_cache: Path) -> None:
    """A process that builds with LLVM imports neither numba nor cffi."""
    code = """
import sys
import numpy as np
import jitkernels as jk
jk.softmax(np.ones((3, 4), np.float32), axis=-1)
jk.jit(lambda x: np.tanh(x).sum(axis=0))(np.ones((500, 400)))
print([name for name in ("numba", "cffi", "jitkernels.codegen.numba_lowering") if name in sys.modules])
"""
    assert python(code, private_cache) == "[]\n"
