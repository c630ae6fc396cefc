"""A neural ODE: a small network tells where a point goes next, learned from a spiral by steps of Runge and Kutta.

python examples/neural_ode.py [picture.png]
"""

import sys

import numpy as np

import jitkernels as jk


def velocity(parameters, points):
    """Where points go."""
    (w1, b1), (w2, b2) = parameters
    return np.tanh(points**3 @ w1 + b1) @ w2 + b2


def moved(parameters, points, dt):
    """Points after a step of the classical fourth order."""
    k1 = velocity(parameters, points)
    k2 = velocity(parameters, points + dt / 2 * k1)
    k3 = velocity(parameters, points + dt / 2 * k2)
    k4 = velocity(parameters, points + dt * k3)
    return points + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def loss(parameters, points, targets, dt):
    """How far points are from where they should be."""
    return ((moved(parameters, points, dt) - targets) ** 2).mean()


@jk.jit
def step(parameters, points, targets, dt, rate, speeds):
    """A step of gradient descent with momentum, which changes parameters and speeds; the loss before it."""
    value, slopes = jk.value_and_grad(loss)(parameters, points, targets, dt)
    for layer, speed, slope in zip(parameters, speeds, slopes, strict=True):
        for p, s, g in zip(layer, speed, slope, strict=True):
            s[:] = 0.9 * s + g
            p -= rate * s
    return value


def spiral(count, dt):
    """A path of ``y' = y**3 @ a``."""
    turn, path = np.array([[-0.1, 2.0], [-2.0, -0.1]]), np.zeros((count, 2))
    path[0] = 2.0, 0.0
    for i in range(1, count):
        now = path[i - 1]
        for _ in range(10):
            now = now + dt / 10 * (now**3 @ turn)
        path[i] = now
    return path


def run(steps=2000, units=50, count=400, dt=0.05, rate=0.02, seed=0):
    """The true path, the one that the network tells from its beginning, and the loss of each step."""
    path = spiral(count + 1, dt)
    rng = np.random.default_rng(seed)
    parameters = [(rng.normal(scale=0.1, size=(n, m)), np.zeros(m)) for n, m in ((2, units), (units, 2))]
    speeds = [tuple(np.zeros_like(parameter) for parameter in layer) for layer in parameters]
    losses = [float(step(parameters, path[:-1], path[1:], dt, rate, speeds)) for _ in range(steps)]
    predicted = [path[:1]]
    for _ in range(count):
        predicted.append(moved(parameters, predicted[-1], dt))
    return path, np.concatenate(predicted), losses


def draw(result, path):
    """Both paths, and the curve of the loss."""
    import matplotlib.pyplot as plt

    true, predicted, losses = result
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    left.plot(*true.T, label="true")
    left.plot(*predicted.T, "--", label="learned")
    left.legend()
    right.semilogy(losses)
    right.set(xlabel="step", ylabel="mean squared error of a step")
    figure.savefig(path, dpi=100)
    plt.close(figure)


if __name__ == "__main__":
    draw(run(), sys.argv[1] if len(sys.argv) > 1 else "neural_ode.png")
