"""Logistic regression of ten digits by gradient descent: the gradient is that of the loss, compiled with the step.

python examples/logistic_regression.py [picture.png]
"""

import sys

import numpy as np

import jitkernels as jk


def loss(weights, bias, images, labels):
    """The mean cross entropy of labels, which are rows with a single one."""
    scores = images @ weights + bias
    scores = scores - scores.max(axis=1, keepdims=True)
    logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return -(logs * labels).sum() / images.shape[0]


@jk.jit
def step(weights, bias, images, labels, rate):
    """Weights and bias after a step, and the loss before it."""
    value, (by_weights, by_bias) = jk.value_and_grad(loss, argnums=(0, 1))(weights, bias, images, labels)
    return weights - rate * by_weights, bias - rate * by_bias, value


def digits(count=None):
    """Images of 64 pixels between 0 and 1, and labels as rows with a single one."""
    from sklearn.datasets import load_digits

    dataset = load_digits()
    return (dataset.data[:count] / 16).astype(np.float32), np.eye(10, dtype=np.float32)[dataset.target[:count]]


def run(steps=300, rate=2.0, count=None):
    """The loss of each step, and the accuracy after the last one."""
    images, labels = digits(count)
    weights, bias = np.zeros((64, 10), np.float32), np.zeros(10, np.float32)
    losses = []
    for _ in range(steps):
        weights, bias, value = step(weights, bias, images, labels, rate)
        losses.append(float(value))
    right = (images @ weights + bias).argmax(axis=1) == labels.argmax(axis=1)
    return losses, float(right.mean())


def draw(result, path):
    """The curve of the loss."""
    import matplotlib.pyplot as plt

    losses, right = result
    figure, axes = plt.subplots(figsize=(6, 4))
    axes.semilogy(losses)
    axes.set(xlabel="step", ylabel="cross entropy", title=f"{right:.1%} of the digits are classified correctly")
    figure.savefig(path, dpi=100)
    plt.close(figure)


if __name__ == "__main__":
    draw(run(), sys.argv[1] if len(sys.argv) > 1 else "logistic_regression.png")
