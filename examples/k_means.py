"""k-means: points in a plane go to the nearest of some centres, which move to the middle of their points.

python examples/k_means.py [picture.png]
"""

import sys

import numpy as np

import jitkernels as jk


@jk.jit
def moved(points, centres):
    """The centres after a round, the number of each point's centre, and the mean squared distance to it."""
    differences = points[:, None, :] - centres[None, :, :]
    distances = (differences * differences).sum(axis=-1)
    nearest = distances.argmin(axis=1)
    belongs = (nearest[:, None] == np.arange(centres.shape[0])).astype(points.dtype)
    counts = belongs.sum(axis=0)
    means = belongs.T @ points / np.maximum(counts, 1)[:, None]
    return np.where(counts[:, None] > 0, means, centres), nearest, distances.min(axis=1).mean()


def run(count=3000, groups=5, iterations=30, seed=0):
    """Points, centres, the number of each point's centre, and the mean squared distance of each round."""
    rng = np.random.default_rng(seed)
    middles = rng.uniform(-10, 10, (groups, 2))
    points = (middles[rng.integers(groups, size=count)] + rng.normal(size=(count, 2))).astype(np.float32)
    centres = points[rng.choice(count, groups, replace=False)]
    errors = []
    for _ in range(iterations):
        centres, nearest, error = moved(points, centres)
        errors.append(float(error))
    return points, centres, nearest, errors


def draw(result, path):
    """The points in colours, their centres, and how the distance fell."""
    import matplotlib.pyplot as plt

    points, centres, nearest, errors = result
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    left.scatter(*points.T, c=nearest, s=3, cmap="tab10")
    left.scatter(*centres.T, c="black", marker="x")
    right.plot(errors)
    right.set(xlabel="round", ylabel="mean squared distance")
    figure.savefig(path, dpi=100)
    plt.close(figure)


if __name__ == "__main__":
    draw(run(), sys.argv[1] if len(sys.argv) > 1 else "k_means.png")
