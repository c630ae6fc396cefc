"""LeNet learns ten digits with Adam: convolutions, pooling, their gradients and the update are one native call.

LeCun, Bottou, Bengio and Haffner: Gradient-based learning applied to document recognition (1998), for the 8x8 images of
scikit-learn: two layers of 3x3 filters, each with maximum pooling, then two layers of neurons.

python examples/lenet_digits.py [picture.png]
"""

import sys

import numpy as np

import jitkernels as jk

TRAINED = 1500
SHAPES = ((3, 3, 1, 16), (16,), (3, 3, 16, 32), (32,), (128, 64), (64,), (64, 10), (10,))


def scores(parameters, images):
    """The ten scores of each image."""
    filters, bias, more_filters, more_bias, weights, term, last, last_term = parameters
    y = jk.max_pool2d(jk.conv2d(images, filters, bias, padding=1, activation="relu"), 2)
    y = jk.max_pool2d(jk.conv2d(y, more_filters, more_bias, padding=1, activation="relu"), 2)
    y = np.maximum(y.reshape(images.shape[0], 128) @ weights + term, 0)
    return y @ last + last_term


def loss(parameters, images, labels):
    """The mean cross entropy of labels, which are rows with a single one."""
    y = scores(parameters, images)
    y = y - y.max(axis=1, keepdims=True)
    return -((y - np.log(np.exp(y).sum(axis=1, keepdims=True))) * labels).sum() / images.shape[0]


@jk.jit
def step(parameters, means, squares, images, labels, rate, time):
    """One step of Adam, which changes parameters, means and squares; the loss before it."""
    value, slopes = jk.value_and_grad(loss)(parameters, images, labels)
    for p, m, v, g in zip(parameters, means, squares, slopes, strict=True):
        m[:] = 0.9 * m + 0.1 * g
        v[:] = 0.999 * v + 0.001 * g * g
        p -= rate * (m / (1 - 0.9**time)) / (np.sqrt(v / (1 - 0.999**time)) + 1e-8)
    return value


def run(steps=600, batch=64, rate=2e-3, seed=0, count=None):
    """The loss of each step, the accuracy on images that were not trained with, and the first filters."""
    from logistic_regression import digits

    images, labels = digits(count)
    rng = np.random.default_rng(seed)
    order, trained = rng.permutation(len(images)), min(TRAINED, len(images) * 4 // 5)
    images, labels = images.reshape(-1, 8, 8, 1)[order], labels[order]
    parameters = [
        rng.normal(scale=(2 / np.prod(shape[:-1])) ** 0.5, size=shape).astype(np.float32)
        if len(shape) > 1
        else np.zeros(shape, np.float32)
        for shape in SHAPES
    ]
    means, squares = ([np.zeros_like(one) for one in parameters] for _ in range(2))
    losses = []
    for time in range(1, steps + 1):
        chosen = rng.choice(trained, batch, replace=False)
        losses.append(float(step(parameters, means, squares, images[chosen], labels[chosen], rate, float(time))))
    right = scores(parameters, images[trained:]).argmax(axis=1) == labels[trained:].argmax(axis=1)
    return losses, float(right.mean()), parameters[0]


def draw(result, path):
    """The loss of each step, and the filters of the first layer."""
    import matplotlib.pyplot as plt

    losses, accuracy, filters = result
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4))
    left.plot(losses)
    left.set(xlabel="step", ylabel="loss", yscale="log", title=f"{100 * accuracy:.1f} % of unseen digits are right")
    rows = filters.reshape(3, 3, 4, 4).transpose(2, 0, 3, 1)  # four by four filters of 3x3
    right.imshow(np.pad(rows, ((0, 0), (0, 1), (0, 0), (0, 1)), constant_values=np.nan).reshape(16, 16), cmap="gray")
    right.set(title="filters of the first layer")
    right.axis("off")
    figure.savefig(path)
    plt.close(figure)


if __name__ == "__main__":
    draw(run(), sys.argv[1] if len(sys.argv) > 1 else "lenet_digits.png")
