"""Compiled functions in Ray's tasks and actors: right results, and workers that compile nothing."""

import subprocess
import sys
import tempfile
from pathlib import Path

from processes import environment

PROGRAM = """
import os, pathlib, sys, tempfile
import numpy as np
import ray
import jitkernels as jk

scale = 3.0

@jk.jit
def named(x):
    return np.exp(-x) * scale + x

def made(k):
    def plain(x):
        return np.log1p(x)
    return jk.jit(lambda x: plain(x) * k)

def built():
    return len([*pathlib.Path(os.environ["JITKERNELS_CACHE_DIR"]).rglob("*.o")]), "llvmlite" in sys.modules

@ray.remote
def task(x):
    return named(x)                             # as a global name of a task

@ray.remote
def applied(function, x):
    return function(x), built()                 # as an argument

@ray.remote
class Actor:
    def __init__(self, function):
        self.function, self.total = function, 0.0

    def add(self, x):
        self.total += float(self.function(x).sum())
        return self.function, self.total, built()

if __name__ == "__main__":
    arrays = [np.linspace(0, 1, 5_000) + k for k in range(4)]
    functions = [named, made(2.0), jk.grad(lambda x: (np.sin(x) * x).sum())]
    expected = {f: [f(x) for x in arrays] for f in functions}
    empty = tempfile.mkdtemp(dir=os.environ["JITKERNELS_CACHE_DIR"])
    own = {"JITKERNELS_CACHE_DIR": empty, "PYTHONPATH": os.environ["PYTHONPATH"]}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": own})
    for x, right in zip(arrays, expected[named], strict=True):
        assert np.array_equal(ray.get(task.remote(x)), right)
    for f in functions:
        for (found, counted), right in zip(ray.get([applied.remote(f, x) for x in arrays]), expected[f], strict=True):
            assert np.array_equal(found, right) and counted == (0, False), counted
        shared = ray.put(f)                     # as an object of the store
        assert np.array_equal(ray.get(applied.remote(shared, ray.put(arrays[0])))[0], expected[f][0])
    actor = Actor.remote(functions[1])
    for x, right in zip(arrays, np.cumsum([y.sum() for y in expected[functions[1]]]), strict=True):
        function, total, counted = ray.get(actor.add.remote(x))
        assert np.isclose(total, right, rtol=1e-12) and counted == (0, False)
    assert np.array_equal(function(arrays[0]), expected[functions[1]][0])    # which came back
    ray.shutdown()
    print("done")
"""


def test_tasks_and_actors_compile_nothing(tmp_path: Path, private_cache: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    with tempfile.TemporaryDirectory() as short:  # Ray makes sockets in it, whose paths must not be long
        variables = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled", "RAY_TMPDIR": short}
        done = subprocess.run(
            [sys.executable, str(program)],
            capture_output=True, text=True, check=False, env=environment(private_cache, **variables), timeout=300,
        )  # fmt: skip
    assert done.stdout.endswith("done\n"), done.stdout + done.stderr
