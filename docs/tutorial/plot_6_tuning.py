"""6. Profiling and tuning
=======================

With ``profile=True`` compiled code counts the time of each kernel, and `tune` measures variants of the kernels that
take most of it.
"""

import matplotlib.pyplot as plt
import numpy as np

import jitkernels as jk


@jk.jit(profile=True)
def recurrent(x, w, u, b):
    """The hidden states of an LSTM over a sequence."""
    n = u.shape[1]
    h, c = np.zeros(n), np.zeros(n)
    states = np.zeros((x.shape[0], n))
    for t in range(x.shape[0]):
        z = w @ x[t] + u @ h + b
        i, f, o = 1.0 / (1.0 + np.exp(-z[: 3 * n])).reshape(3, n)
        c = f * c + i * np.tanh(z[3 * n :])
        h = o * np.tanh(c)
        states[t] = h
    return states


rng = np.random.default_rng(0)
arguments = rng.random((50, 32)), rng.random((256, 32)) / 9, rng.random((256, 64)) / 9, rng.random(256)
for _ in range(20):
    recurrent(*arguments)
print(recurrent.stats())

# %%
# The product with the state takes most of the time. Kernels inside of the loop are indented: the time of the loop
# includes theirs.
times = [one for one in recurrent.stats().times if one.inside]
names = [one.kernel.removeprefix("loop nest: ") for one in times]
figure, axes = plt.subplots(layout="constrained")
axes.barh(range(len(times)), [100 * one.share for one in times])
axes.set_yticks(range(len(times)), [name if len(name) < 30 else f"{name[:27]}..." for name in names])
axes.invert_yaxis()
axes.set_xlabel("% of the time")

# %%
# Measuring
# ---------
# Without arguments `tune` takes the calls that were counted. A variant whose results differ from those of unfused code
# is discarded; the best one is recorded, and used in other processes, too.
try:
    for measurement in recurrent.tune(seconds=1.0):
        print(measurement)
except jk.NotUsableError as error:  # where measurements are switched off
    print(error)

# %%
# Sizes that never change can be constants of the code, which is then compiled for each.


@jk.jit(exact_sizes=True)
def layer(x, w):
    return np.maximum(x @ w, 0)


print(layer.explain(np.ones((1, 16)), np.ones((16, 16))))
