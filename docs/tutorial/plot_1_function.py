"""1. One function, one kernel
===========================

A function that is written in NumPy becomes machine code by one decorator. Its results stay NumPy's.
"""

import numpy as np

import jitkernels as jk


@jk.jit
def gelu(x):
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))


x = np.random.default_rng(0).normal(size=(512, 512)).astype(np.float32)
y = gelu(x)
assert np.allclose(y, gelu.__wrapped__(x), atol=1e-6)

# %%
# The first call runs the function once with objects that stand for arrays and record what is done to them. What was
# recorded is compiled, which took
stats = gelu.stats()
print(f"{1e3 * stats.compile_seconds:.0f} ms")

# %%
# What became of it
# -----------------
# `explain` tells which operations became one kernel. NumPy makes a pass over memory for each of them; this code makes
# one, and values between stay in registers.
told = gelu.explain(x)
print(told)
assert told.kernels == 1

# %%
# Reductions are fused as well: here each row is read while it is in the cache, and nothing lies between in memory.


@jk.jit
def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


print(softmax.explain(x))

# %%
# How long it takes
# -----------------
# Results go where you say by ``out=``; such a call allocates nothing.
from timeit import repeat

out = np.empty_like(x)
for name, call in (
    ("NumPy", lambda: softmax.__wrapped__(x)),
    ("jit", lambda: softmax(x)),
    ("jit, out=", lambda: softmax(x, out=out)),
):
    print(f"{name:10} {1e6 * min(repeat(call, number=5, repeat=5)) / 5:6.0f} us")

# %%
# All sizes, and what else there may be
# -------------------------------------
# One compilation serves arrays of all sizes. Code is made again for another dtype, number of dimensions, or layout.
for n in range(2, 20):
    softmax(np.ones((n, 2 * n), np.float32))
print(softmax.stats().compiles, "compilations")
softmax(x.astype(np.float64))
print(softmax.stats().compiles, "compilations")

# %%
# What the compiler does not know is NumPy's, which the code calls, and `explain` says so.


@jk.jit
def ranked(x):
    return np.argsort(x * 2 + 1)[::-1] * 0.5


print(ranked.explain(np.ones(1000)))
