"""4. A network that reads digits
==============================

A network of two layers learns the 1,797 digits that come with scikit-learn, by Adam.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import jitkernels as jk

digits = load_digits()
images = (digits.data / 16).astype(np.float32)
labels = np.eye(10, dtype=np.float32)[digits.target]


def scores(parameters, images):
    (w1, b1), (w2, b2) = parameters
    return np.maximum(images @ w1 + b1, 0) @ w2 + b2


def loss(parameters, images, labels):
    """The mean cross entropy."""
    logits = scores(parameters, images)
    logits = logits - logits.max(axis=1, keepdims=True)
    logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return -(logs * labels).sum() / images.shape[0]


# %%
# The step updates its arguments in place, as NumPy would.


@jk.jit
def step(parameters, means, squares, images, labels, time):
    value, slopes = jk.value_and_grad(loss)(parameters, images, labels)
    for layer, mean, square, slope in zip(parameters, means, squares, slopes, strict=True):
        for p, m, v, g in zip(layer, mean, square, slope, strict=True):
            m[:] = 0.9 * m + 0.1 * g
            v[:] = 0.999 * v + 0.001 * g * g
            p -= 0.002 * (m / (1 - 0.9**time)) / (np.sqrt(v / (1 - 0.999**time)) + 1e-8)
    return value


rng = np.random.default_rng(0)
parameters = [
    (rng.normal(scale=(2 / n) ** 0.5, size=(n, m)).astype(np.float32), np.zeros(m, np.float32))
    for n, m in ((64, 64), (64, 10))
]
means = [tuple(np.zeros_like(one) for one in layer) for layer in parameters]
squares = [tuple(np.zeros_like(one) for one in layer) for layer in parameters]
losses = []
for time in range(1, 251):
    chosen = rng.choice(1500, 64, replace=False)
    losses.append(step(parameters, means, squares, images[chosen], labels[chosen], float(time)))

# %%
# 1,500 images are the training set; the others are the test set.
right = scores(parameters, images[1500:]).argmax(axis=1) == digits.target[1500:]
print(f"test accuracy: {100 * right.mean():.1f} %")
assert right.mean() > 0.8
figure, axes = plt.subplots()
axes.plot(losses)
axes.set(xlabel="step", ylabel="loss", yscale="log")

# %%
# The number of kernels of a step, the memory between them, and the compile time:
stats = step.stats()
print(f"{stats.kernels} kernels, {stats.arena_bytes:,} bytes between them, compiled in {stats.compile_seconds:.2f} s")
