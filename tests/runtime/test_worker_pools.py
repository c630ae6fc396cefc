"""Compiled functions in the pools of `concurrent.futures` and joblib: right results, and no compilation in workers."""

import subprocess
import sys
from pathlib import Path

import pytest
from processes import environment

PROGRAM = """
import importlib, os, pathlib, pickle, sys, tempfile
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
import numpy as np
import jitkernels as jk

scale = 3.0

@jk.jit
def named(x):
    return np.exp(-x) * scale + x

def by_value(k):
    return jk.jit(lambda x: np.sin(x) * k)

def objects(_):
    return len([*pathlib.Path(os.environ["JITKERNELS_CACHE_DIR"]).rglob("*.o")])

def results(pool, functions):
    for f in functions:
        yield from map(f, arrays) if pool is None else pool(f, arrays)

arrays = [np.linspace(0, 1, 5_000) + k for k in range(4)]

if __name__ == "__main__":
    kind, imported = sys.argv[1:]
    if imported:
        importlib.import_module(imported)
    functions = [named, by_value(2.0)] if kind in ("threads", "joblib") else [named]
    if kind == "threads":                       # which compile at once
        expected = [f.__wrapped__(x) for f in functions for x in arrays]
    else:
        expected = [*results(None, functions)]
        pickle.dumps(named)
    if kind not in ("threads", "fork"):
        os.environ["JITKERNELS_CACHE_DIR"] = tempfile.mkdtemp(dir=os.environ["JITKERNELS_CACHE_DIR"])
    if kind == "threads":
        with ThreadPoolExecutor(4) as pool:
            found = [*results(pool.map, functions)]
    elif kind == "joblib":
        from joblib import Parallel, delayed

        def both(f, given):
            return Parallel(n_jobs=2)(delayed(f)(x) for x in given)

        before = both(objects, [0])
        found = [*results(both, functions)]
        assert both(objects, [0]) == before
    else:
        with ProcessPoolExecutor(2, mp_context=get_context(kind)) as pool:
            before = pool.submit(objects, 0).result()
            found = [*results(pool.map, functions)]
            assert pool.submit(objects, 0).result() == before
    for own, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(own, right, rtol=1e-14)
    print("done")
"""
PROCESSES = [(kind, imported) for kind in ("fork", "forkserver", "spawn") for imported in ("", "cloudpickle")]
POOLS = [("threads", ""), ("joblib", ""), *PROCESSES]


@pytest.mark.parametrize(("kind", "imported"), POOLS)
def test_workers_of_pools_compile_nothing(kind: str, imported: str, tmp_path: Path, private_cache: Path) -> None:
    """`imported`: what pickles functions of ``__main__`` by value, and must not do so for pools that pickle by name."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(program), kind, imported],
        capture_output=True, text=True, check=False, env=environment(private_cache), timeout=300,
    )  # fmt: skip
    assert done.stdout == "done\n", done.stderr
