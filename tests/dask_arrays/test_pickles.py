"""Pickles of compiled functions: by name and by value, with their objects, for other processes and other CPUs."""

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import cloudpickle
import dask.array as da
import numpy as np
import pytest
from processes import environment

import jitkernels as jk
from jitkernels.codegen import kernel_archive
from jitkernels.core import cpu_target
from jitkernels.runtime.loading import object_payload

CHILD = """
import pathlib, sys, pickle
import numpy as np
function = pickle.loads(pathlib.Path(sys.argv[1]).read_bytes())
result = function(np.linspace(0, 1, 10_000))
pathlib.Path(sys.argv[2]).write_bytes(result.tobytes())
import os
print(len([*pathlib.Path(os.environ["JITKERNELS_CACHE_DIR"]).rglob("*.o")]), "llvmlite" in sys.modules)
print(function.__dask_tokenize__())
"""
X = np.linspace(0, 1, 10_000)
"""What the child calls the function with."""
scale = 3.0


def child(function: Any, folder: Path, **settings: str) -> tuple[list[str], bytes]:
    """What another process with an empty cache prints, and the bytes of its result."""
    source, target, cache = folder / "function.pickle", folder / "result", folder / "own"
    source.write_bytes(cloudpickle.dumps(function))
    cache.mkdir(mode=0o700)
    done = subprocess.run(
        [sys.executable, "-P", "-c", CHILD, str(source), str(target)],
        capture_output=True, text=True, check=True, env=environment(cache, **settings),
    )  # fmt: skip
    return done.stdout.splitlines(), target.read_bytes()


def functions() -> dict[str, Any]:
    k = np.linspace(1, 2, 10_000)

    def helper(x: Any) -> Any:
        return np.log1p(x) * scale

    squared = jk.jit(lambda x: x * x)
    return {
        "global": jk.jit(lambda x: np.exp(-x) * scale),
        "closure": jk.jit(lambda x: np.sin(x) * k),
        "helper": jk.jit(lambda x: helper(x) + 1),
        "derivative": jk.grad(lambda x: (np.sin(x) * x).sum()),
        "nested": jk.jit(lambda x: squared(x) + 1),
    }


@pytest.mark.parametrize("name", functions())
def test_another_process_builds_nothing(name: str, tmp_path: Path) -> None:
    function = functions()[name]
    expected = function(X)
    (line, token), result = child(function, tmp_path)
    assert line == "0 False"
    assert result == expected.tobytes()
    assert token == function.__dask_tokenize__()
    assert len(cloudpickle.dumps(function)) < 200_000


def test_another_cpu_compiles(tmp_path: Path) -> None:
    """Objects for a CPU with more features are left out."""
    function = functions()["global"]
    expected = function(X)
    removed = next(name for name in ("avx512f", "avx2", "neon") if name in cpu_target.target().features)
    (line, _), result = child(function, tmp_path, JITKERNELS_CPU_FEATURES="-" + removed)
    assert line.endswith(" True")
    np.testing.assert_allclose(np.frombuffer(result), expected, rtol=1e-14)


def test_one_process_keeps_one_function() -> None:
    function = functions()["closure"]
    restored = pickle.loads(cloudpickle.dumps(function))
    assert pickle.loads(cloudpickle.dumps(function)) is restored
    assert pickle.loads(cloudpickle.dumps(restored)) is restored
    other = functions()["closure"]
    assert other.__dask_tokenize__() == function.__dask_tokenize__()


def test_a_function_that_refers_to_itself() -> None:
    def countdown(x: Any) -> Any:
        return x if countdown is None else x + 1

    function = jk.jit(countdown)
    restored = pickle.loads(cloudpickle.dumps(function))
    assert np.array_equal(restored(X), X + 1)


def test_tasks_send_little() -> None:
    """A task is sent with its function, of at most 200 kB, and less than half of that for a few operations."""
    f = jk.jit(lambda x, y: np.exp(-x * x) * np.sin(y) + np.cosh(x))
    result = f(da.ones((90, 64), chunks=(20, 64)), da.ones(64, chunks=64))
    block = result.dask.layers[result.name].task.func
    assert 10_000 < len(cloudpickle.dumps(block)) < 100_000


def test_pickles_are_snapshots() -> None:
    captured = np.array([2.0])
    function = jk.jit(lambda x: x * captured)
    content = cloudpickle.dumps(function)
    captured[0] = 3.0
    assert pickle.loads(content)(np.ones(3)).tolist() == [2.0] * 3
    assert function(np.ones(3)).tolist() == [3.0] * 3


def test_damaged_objects_are_compiled_again() -> None:
    key = "0" * 64
    payload = object_payload.payload_with({key: b"not compressed"})
    assert object_payload.received(payload.identity, payload.content[:-1] + b"?")
    assert kernel_archive.carried.find(key) is None
    assert object_payload.received(*payload)
    assert key in kernel_archive.carried.objects
    del kernel_archive.carried.objects[key]
    assert object_payload.received(*payload)
    assert key in kernel_archive.carried.objects, "objects that were dropped are admitted again"
    del kernel_archive.carried.objects[key]
