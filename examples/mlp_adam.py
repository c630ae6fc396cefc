"""A network of two hidden layers learns ten digits with Adam: forward, backward and update are one native call.

python examples/mlp_adam.py [picture.png]
"""

import sys
from itertools import pairwise

import numpy as np

import jitkernels as jk

WIDTHS = (64, 128, 64, 10)


def loss(parameters, images, labels):
    """The mean cross entropy of labels, which are rows with a single one."""
    values = images
    for weights, bias in parameters[:-1]:
        values = np.maximum(values @ weights + bias, 0)
    weights, bias = parameters[-1]
    scores = values @ weights + bias
    scores = scores - scores.max(axis=1, keepdims=True)
    logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return -(logs * labels).sum() / images.shape[0]


@jk.jit
def step(parameters, means, squares, images, labels, rate, time):
    """One step of Adam, which changes parameters, means and squares; the loss before it."""
    value, slopes = jk.value_and_grad(loss)(parameters, images, labels)
    for layer, mean, square, slope in zip(parameters, means, squares, slopes, strict=True):
        for p, m, v, g in zip(layer, mean, square, slope, strict=True):
            m[:] = 0.9 * m + 0.1 * g
            v[:] = 0.999 * v + 0.001 * g * g
            p -= rate * (m / (1 - 0.9**time)) / (np.sqrt(v / (1 - 0.999**time)) + 1e-8)
    return value


def run(steps=300, batch=64, rate=1e-3, seed=0, count=None):
    """The loss of each step, and the accuracy on all images after the last one."""
    from logistic_regression import digits

    images, labels = digits(count)
    rng = np.random.default_rng(seed)
    parameters = [
        (rng.normal(scale=(2 / n) ** 0.5, size=(n, m)).astype(np.float32), np.zeros(m, np.float32))
        for n, m in pairwise(WIDTHS)
    ]
    means = [tuple(np.zeros_like(parameter) for parameter in layer) for layer in parameters]
    squares = [tuple(np.zeros_like(parameter) for parameter in layer) for layer in parameters]
    losses = []
    for time in range(1, steps + 1):
        chosen = rng.choice(len(images), batch, replace=False)
        value = step(parameters, means, squares, images[chosen], labels[chosen], rate, float(time))
        losses.append(float(value))
    values = images
    for weights, bias in parameters[:-1]:
        values = np.maximum(values @ weights + bias, 0)
    scores = values @ parameters[-1][0] + parameters[-1][1]
    return losses, float((scores.argmax(axis=1) == labels.argmax(axis=1)).mean())


if __name__ == "__main__":
    from logistic_regression import draw

    draw(run(), sys.argv[1] if len(sys.argv) > 1 else "mlp_adam.png")
