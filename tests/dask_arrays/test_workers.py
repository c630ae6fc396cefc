"""Workers: they start warm from what comes with pickles, and die and join, while results stay the same, bit by bit."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster, wait

import jitkernels as jk

OWN_CACHE = """
import os, tempfile
os.environ["JITKERNELS_CACHE_DIR"] = tempfile.mkdtemp(prefix="cache-", dir={folder!r})
os.environ["JITKERNELS_POLICY"] = "reproducible"
"""
WORKERS = 4


def built() -> tuple[int, bool]:
    """How many objects this process has built for its own cache, and whether it has met the compiler."""
    return len([*Path(os.environ["JITKERNELS_CACHE_DIR"]).rglob("*.o")]), "llvmlite" in sys.modules


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Four workers, processes with empty caches of their own."""
    folder = tmp_path_factory.mktemp("caches")
    folder.chmod(0o700)
    script = folder / "own_cache.py"
    script.write_text(OWN_CACHE.format(folder=str(folder)))
    chosen = {"distributed.worker.preload": [str(script)], "distributed.scheduler.allowed-failures": 100}
    with (
        dask.config.set(chosen),
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(autouse=True)
def reproducible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITKERNELS_POLICY", "reproducible")


def two_arrays() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    x, y = rng.random((90, 64)), rng.random(64)
    return da.from_array(x, chunks=(20, 64)), da.from_array(y, chunks=64)


def test_workers_build_nothing(client: Client) -> None:
    weighted = jk.jit(lambda x, y: np.exp(-x * x) * np.sin(y) + x)
    scaled = jk.jit(lambda z, k: np.sqrt(z * k + 1))
    matrix = jk.jit(lambda z: jk.softmax(z) + z.sum(axis=1, keepdims=True))
    x, y = two_arrays()
    for result in (scaled(weighted(x, y), 2.5), matrix(x), x.map_blocks(matrix, dtype=x.dtype)):
        expected = result.compute(scheduler="sync")
        assert np.array_equal(client.compute(result).result(), expected)
    assert {*client.run(built).values()} == {(0, False)}


def test_workers_die_and_join_late(client: Client) -> None:
    """The same bits, whatever happens to the processes that compute them."""
    f = jk.jit(lambda x: np.tanh(x) / (1 + (x * x).sum(axis=1, keepdims=True)))
    x = da.random.default_rng(3).random((WORKERS * 40, 50), chunks=(4, -1))
    result = f(x.map_blocks(slowly, dtype=x.dtype))
    expected = f(x).compute(scheduler="sync")
    computed = client.compute(result)
    time.sleep(0.5)
    before = {*client.run(os.getpid).values()}
    os.kill(min(before), signal.SIGKILL)
    assert np.array_equal(computed.result(timeout=120), expected)
    client.wait_for_workers(WORKERS)
    joined = {*client.run(os.getpid).values()} - before
    assert joined, "the nanny starts another process"
    again = client.compute(f(x + 0), workers=[name for name, pid in client.run(os.getpid).items() if pid in joined])
    wait(again)
    assert np.array_equal(again.result(), expected)


def slowly(block: Any) -> Any:
    time.sleep(0.1)
    return block
