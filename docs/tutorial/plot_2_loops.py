"""2. Loops and branches
=====================

Loops over single elements, for which Python takes seconds, compile to the loops that a C programmer would write.
"""

import matplotlib.pyplot as plt
import numpy as np

import jitkernels as jk


@jk.jit
def escape_times(times, most):
    height, width = times.shape
    for i in range(height):
        for j in range(width):
            x, y = 3.0 * j / width - 2.0, 2.0 * i / height - 1.0
            a = b = 0.0
            k = 0
            while k < most and a * a + b * b <= 4.0:
                a, b = a * a - b * b + x, 2.0 * a * b + y
                k += 1
            times[i, j] = k
    return times


times = escape_times(np.zeros((300, 450), np.int64), 200)
figure, axes = plt.subplots()
axes.imshow(np.log1p(times), cmap="magma")
axes.set_axis_off()

# %%
# Scalars have Python's semantics, bit by bit. An index out of bounds, an int overflow of 64 bits or a division by zero
# raise what they raise in Python.


@jk.jit
def element(x, i):
    total = 0.0
    for j in range(i):
        total += x[j]
    return total


try:
    element(np.ones(3), 5)
except IndexError as error:
    print(error)

# %%
# Array expressions in loops
# --------------------------
# A loop around array expressions reuses its buffers. Swapped arrays exchange buffers without a copy.


@jk.jit
def warmed(plate, steps):
    now, new = plate.copy(), plate.copy()
    for _ in range(steps):
        around = now[:-2, 1:-1] + now[2:, 1:-1] + now[1:-1, :-2] + now[1:-1, 2:]
        new[1:-1, 1:-1] = now[1:-1, 1:-1] + 0.2 * (around - 4 * now[1:-1, 1:-1])
        now, new = new, now
    return now


plate = np.zeros((100, 100))
plate[0] = 100.0
print(warmed.explain(plate, 500))
figure, axes = plt.subplots()
axes.imshow(warmed(plate, 500), cmap="inferno")
axes.set_axis_off()

# %%
# Unsupported code falls back to NumPy. With `strict=True` it is an error that names the line and what to write instead.


@jk.jit(strict=True)
def positive(x):
    if x.sum() > 0:
        return x
    return -x


try:
    positive(np.ones(100_000))
except jk.TracingError as error:
    print(error)
