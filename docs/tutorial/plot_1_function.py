"""1. One function, one kernel
===========================

One decorator compiles a function written in NumPy to machine code. Its results stay NumPy's.
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
# The first call traces the function once with proxies of the arrays, which record the operations. The recorded graph is
# compiled, which took
stats = gelu.stats()
print(f"{1e3 * stats.compile_seconds:.0f} ms")

# %%
# Fusion
# ------
# `explain` reports which operations were fused into a kernel. NumPy makes a pass over memory for each of them; this
# code makes one, and intermediates stay in registers.
explanation = gelu.explain(x)
print(explanation)
assert explanation.kernels == 1

# %%
# Reductions are fused as well: each row is read while it is in the cache, and no intermediate array is materialized.


@jk.jit
def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


print(softmax.explain(x))

# %%
# Timing
# ------
# A call with ``out=`` writes its result there and allocates nothing.
from timeit import repeat

out = np.empty_like(x)
for name, call in (
    ("NumPy", lambda: softmax.__wrapped__(x)),
    ("jit", lambda: softmax(x)),
    ("jit, out=", lambda: softmax(x, out=out)),
):
    print(f"{name:10} {1e6 * min(repeat(call, number=5, repeat=5)) / 5:6.0f} us")

# %%
# Specialization
# --------------
# One compilation serves arrays of all sizes. Another dtype, rank or memory layout is compiled again.
for n in range(2, 20):
    softmax(np.ones((n, 2 * n), np.float32))
print(softmax.stats().compiles, "compilations")
softmax(x.astype(np.float64))
print(softmax.stats().compiles, "compilations")

# %%
# The code calls NumPy for operations that the compiler does not implement, and `explain` reports that.


@jk.jit
def ranked(x):
    return np.argpartition(x * 2 + 1, 2)[::-1] * 0.5


print(ranked.explain(np.ones(1000)))
