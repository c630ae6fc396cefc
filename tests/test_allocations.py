"""Calls with ``out=`` ask nobody for memory: neither the C library, nor the system, nor Python for an object."""

import platform
import shutil
import subprocess
from pathlib import Path

import pytest
from processes import python

COUNTER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/types.h>

static volatile long count;
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static void one(void) { __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED); }
long counted(void) { return count; }
void *malloc(size_t size) { one(); return __libc_malloc(size); }
void *calloc(size_t n, size_t size) { one(); return __libc_calloc(n, size); }
void *realloc(void *p, size_t size) { one(); return __libc_realloc(p, size); }
void *memalign(size_t a, size_t size) { one(); return __libc_memalign(a, size); }
void *aligned_alloc(size_t a, size_t size) { return memalign(a, size); }
int posix_memalign(void **place, size_t a, size_t size) { *place = memalign(a, size); return *place ? 0 : 12; }
void *mmap(void *at, size_t size, int may, int how, int file, off_t from) {
    static void *(*own)(void *, size_t, int, int, int, off_t);
    if (!own) own = dlsym(RTLD_NEXT, "mmap");
    one();
    return own(at, size, may, how, file, from);
}
"""

CALLS = """
import ctypes
import numpy as np
import jitkernels as jk
from jitkernels.benchmark import whole_programs

counted = ctypes.CDLL(None).counted
random = np.random.default_rng(0)

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
    before = counted()
    for _ in rounds:
        pass
    nothing, before = counted() - before, counted()
    for _ in rounds:
        call()
    counts[name] = counted() - before - nothing
    assert np.array_equal(out, expected), name
before = counted()
for _ in rounds:
    np.empty(3)
assert counted() - before >= 100, "nothing is counted"
print(counts)
"""


def test_nothing_is_allocated(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None or platform.libc_ver()[0] != "glibc":
        pytest.skip("there is no C compiler, or another C library than GNU's")
    (tmp_path / "counter.c").write_text(COUNTER)
    library = tmp_path / "counter.so"
    build = [compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(tmp_path / "counter.c"), "-ldl"]
    built = subprocess.run(build, capture_output=True, text=True, check=False)
    if built.returncode:
        pytest.skip(f"the counter cannot be built: {built.stderr}")
    told = python(CALLS, LD_PRELOAD=str(library), PYTHONMALLOC="malloc", JITKERNELS_NUM_THREADS="1")
    assert set(eval(told).values()) == {0}, told
