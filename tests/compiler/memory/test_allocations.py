"""Calls with ``out=`` allocate nothing: neither from the C library, nor the system, nor Python."""

import platform
import shutil
import subprocess
from pathlib import Path

import pytest
from processes import python

CALLS = """
import ctypes
import numpy as np
import jitkernels as jk
from jitkernels.benchmarks import whole_programs

random = np.random.default_rng(0)

calls = ctypes.CDLL(None).jk_allocations

def network(width, layers, rows):
    weights = [random.normal(size=(width, width)).astype("f4") / width for _ in range(layers)]
    biases = [random.normal(size=width).astype("f4") for _ in range(layers)]
    return weights, biases, random.normal(size=(rows, width)).astype("f4")

def mlp(weights, biases, x):
    for w, b in zip(weights, biases):
        x = np.maximum(x @ w + b, 0)
    return x

def smoothed(u, steps):
    v = u.copy()
    for _ in range(steps):
        v[1:-1] = 0.5 * (v[:-2] + v[2:])
    return v

def loss(w, x):
    return np.mean(np.tanh(x @ w) ** 2)

x = random.random((300, 64))
cases = {
    "MLP of width 16": (mlp, network(16, 2, 1)),
    "MLP of width 128": (mlp, network(128, 4, 1)),
    "MLP of width 128, 64 rows": (mlp, network(128, 4, 64)),
    "columns": (lambda x: (x - x.mean(axis=0)) / x.std(axis=0), (x,)),
    "product": (lambda x: np.tanh(x @ x.T) @ x, (x,)),
    "loop": (smoothed, (random.random(5000), 30)),
    "lstm": (whole_programs.lstm, whole_programs.PROGRAMS[whole_programs.lstm]()),
    "derivative": (jk.grad(loss), (random.random((64, 20)), x)),
    "gradient": (lambda w, x: jk.grad(loss)(w, x), (random.random((64, 20)), x)),
}
counts = {}
for name, (function, given) in cases.items():
    compiled = jk.jit(function)
    expected, out = compiled(*given), np.empty_like(np.asarray(function(*given)))
    names = [f"given{i}" for i in range(len(given))]
    known = {"compiled": compiled, "out": out, **dict(zip(names, given))}
    exec(f"def call(): compiled({', '.join(names)}, out=out)", known)  # Python makes a dict of what has two stars
    call = known["call"]
    for _ in range(5):
        call()
    rounds = [None] * 100
    before = calls()
    for _ in rounds:
        pass
    nothing, before = calls() - before, calls()
    for _ in rounds:
        call()
    counts[name] = calls() - before - nothing
    assert np.array_equal(out, expected), name
before = calls()
for _ in rounds:
    np.empty(3)
assert calls() - before >= 100, "nothing is counted"
print(counts)
"""


def test_warm_calls_allocate_nothing(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None or platform.libc_ver()[0] != "glibc":
        pytest.skip("there is no C compiler, or another C library than GNU's")
    library = str(tmp_path / "allocations.so")
    source = str(Path(__file__).with_name("allocations.c"))
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    output = python(CALLS, LD_PRELOAD=library, PYTHONMALLOC="malloc", JITKERNELS_NUM_THREADS="1")
    assert set(eval(output).values()) == {0}, output
