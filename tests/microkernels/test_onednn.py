"""oneDNN: discovery, its caller's thread, primitives that are cached per shape and valid after a fork."""

import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from processes import python

import jitkernels as jk
from jitkernels.attrs.schema.registry import implementation
from jitkernels.more.onednn import library


@pytest.fixture(autouse=True)
def _require_onednn() -> None:
    found, reason = library.status()
    if not found:
        pytest.skip(reason)


def kernel(attr: Any) -> Any:
    from jitkernels.dispatch.kernel import Kernel

    found = implementation(type(attr), "onednn")
    return Kernel(attr, found, found.variants(attr)[0]).callable


def rows(count: int, n: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal((count, n)).astype(np.float32)


def softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def test_status_has_version_and_path() -> None:
    found, text = library.status()
    assert found
    assert text.startswith("oneDNN 3.")


def test_a_library_with_its_own_threads_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_version", lambda found: SimpleNamespace(major=3, minor=13, patch=0, cpu_runtime=4))
    library.library.cache_clear()
    try:
        found, reason = library.status()
        attr = jk.SoftmaxAttr(rows=3, n=8)
        refused = implementation(jk.SoftmaxAttr, "onednn").reason_against(attr)
    finally:
        library.library.cache_clear()
    assert not found
    assert "its threads are not those of OpenMP" in reason
    assert refused == reason


def test_more_shapes_than_the_cache_holds() -> None:
    """All are right, also the first ones when they return."""
    for n in [*range(1, 101), *range(1, 101, 9)]:
        x = rows(3, n, n)
        y = np.empty_like(x)
        kernel(jk.SoftmaxAttr(rows=3, n=n))(x, y)
        np.testing.assert_allclose(y, softmax(x), rtol=1e-5, atol=1e-30)


def test_many_threads_with_few_shapes() -> None:
    """More callers than slots for their shapes, each with its own arrays."""
    wrong: list[str] = []

    def work(seed: int) -> None:
        for n in (40, 41, 300):
            x = rows(50, n, seed)
            y = np.empty_like(x)
            call = kernel(jk.SoftmaxAttr(rows=50, n=n))
            for _ in range(50):
                call(x, y)
                if not np.allclose(y, softmax(x), rtol=1e-5, atol=1e-30):
                    wrong.append(f"{seed} {n}")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


FORKS = """
import os, threading
import numpy as np
import jitkernels as jk
from test_onednn import kernel, rows, softmax
x = rows(60, 500)
small = {n: (kernel(jk.SoftmaxAttr(rows=3, n=n)), rows(3, n)) for n in range(1, 200)}
going = True
def work(first):
    while going:
        for n in range(first, 200, 3):
            call, given = small[n]
            call(given, np.empty_like(given))
threads = [threading.Thread(target=work, args=(first,)) for first in (1, 2, 3)]
for thread in threads: thread.start()
failed = 0
for turn in range(20):
    child = os.fork()
    if child == 0:
        ok = True
        for n in (turn + 1, 150 - turn):
            call, given = small[n]
            y = np.empty_like(given)
            call(given, y)
            ok &= np.allclose(y, softmax(given), rtol=1e-5, atol=1e-30)
        os._exit(0 if ok else 1)
    failed += os.waitpid(child, 0)[1] != 0
going = False
for thread in threads: thread.join()
print(failed)
"""


def test_forks_while_primitives_are_created() -> None:
    assert python(FORKS) == "0\n"


ALONE = """
import os
import numpy as np
import jitkernels as jk
from test_onednn import kernel, rows
from jitkernels.runtime.threads import team_size as openmp
found, _ = openmp.runtime()
before = found.omp_get_max_threads(), len(os.listdir("/proc/self/task"))
x = rows(512, 1000)
kernel(jk.SoftmaxAttr(rows=512, n=1000))(x, np.empty_like(x))
a = rows(400, 400).reshape(400, 400)
kernel(jk.MatMulAttr(m=400, n=400, k=400))(a, a, np.empty_like(a))
after = found.omp_get_max_threads(), len(os.listdir("/proc/self/task"))
print(before == after, before[0])
"""


def test_no_threads_are_started_and_openmp_is_unchanged() -> None:
    assert python(ALONE, OMP_NUM_THREADS="4") == "True 4\n"


def test_special_rows_that_primitives_compute_wrong() -> None:
    """NaN, infinities, subnormal results and equal numbers, each amid ordinary rows."""
    x = rows(12, 100)
    x[2, 7], x[4, 99], x[6], x[8, 5], x[10, 3] = np.nan, np.inf, -np.inf, -np.inf, x[10].max() + 95
    y = x.copy()
    kernel(jk.SoftmaxAttr(rows=12, n=100))(y, y)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(y, softmax(x.astype(np.float64)), rtol=1e-5, atol=1e-44)
    assert np.isnan(y[[2, 4, 6]]).all()
    flat = rows(9, 1000)
    flat[[1, 2, 7]] = np.float32(123.4)
    z = np.empty_like(flat)
    kernel(jk.LayerNormAttr(rows=9, n=1000, affine=False))(flat, z)
    assert (z[[1, 2, 7]] == 0).all()
    assert abs(z[[0, 3, 8]].std(axis=1) - 1).max() < 1e-3


@pytest.mark.parametrize("row", [jk.LSTMAttr, jk.GRUAttr])
def test_concurrent_recurrences_of_many_shapes(row: Any) -> None:
    """More callers and shapes than the cache holds, with weights reordered by oneDNN."""
    wrong: list[str] = []

    def work(seed: int) -> None:
        generator = np.random.default_rng(seed)
        for hidden in range(1, 30, 4):
            attr = row(steps=3, batch=2, input=5, hidden=hidden, bias=seed % 2 == 0, initial=seed % 3 == 0)
            arrays = [generator.uniform(-1, 1, a.shape).astype(np.float32) for a in attr.signature().arrays]
            wanted = [array.copy() for array in arrays]
            kernel(attr)(*arrays)
            jk.get_refer(attr)(*wanted)
            if not all(np.allclose(a, b, atol=1e-5) for a, b in zip(arrays, wanted, strict=True)):
                wrong.append(str(attr))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("row", [jk.LSTMAttr, jk.GRUAttr])
@pytest.mark.parametrize(("steps", "inputs"), [(0, 3), (1, 3), (4, 3), (4, 0)])
def test_recurrences_ignore_unused_weights(row: Any, steps: int, inputs: int) -> None:
    """Weights of the state are unused before there is a state, and empty inputs are no inputs."""
    attr = row(steps=steps, batch=2, input=inputs, hidden=5)
    arrays = [np.full(array.shape, 0.25, np.float32) for array in attr.signature().arrays]
    arrays[2][3, 1] = np.inf
    wanted = [array.copy() for array in arrays]
    kernel(attr)(*arrays)
    jk.get_refer(attr)(*wanted)
    for array, right in zip(arrays, wanted, strict=True):
        np.testing.assert_allclose(array, right, rtol=1e-5)
