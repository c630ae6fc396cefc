"""Steps of optimizers: new values of parameters from their gradients."""

from typing import Any

import numpy as np

from jitkernels.onnx.operator_registry import operator
from jitkernels.onnx.values import like

PREVIEW = "ai.onnx.preview.training"


@operator("Momentum", domain=PREVIEW)
def momentum(rate: Any, steps: Any, *values: Any, node: Any = None) -> Any:
    settings, count = node.attributes, len(values) // 3
    xs, gradients, velocities = (values[k * count : (k + 1) * count] for k in range(3))
    new_xs, new_velocities = [], []
    for x, gradient, velocity in zip(xs, gradients, velocities, strict=True):
        slope = gradient + like(settings["norm_coefficient"], x) * x
        beta = np.where(steps > 0, like(settings["beta"], x), like(1, x))
        moved = like(settings["alpha"], x) * velocity + beta * slope
        nesterov = settings["mode"] == "nesterov"
        step = slope + like(settings["alpha"], x) * moved if nesterov else moved
        new_xs.append(x - rate * step)
        new_velocities.append(moved)
    return (*new_xs, *new_velocities)


@operator("Adagrad", domain=PREVIEW)
def adagrad(rate: Any, steps: Any, *values: Any, node: Any = None) -> Any:
    settings, count = node.attributes, len(values) // 3
    xs, gradients, sums = (values[k * count : (k + 1) * count] for k in range(3))
    new_xs, new_sums = [], []
    for x, gradient, total in zip(xs, gradients, sums, strict=True):
        slope = gradient + like(settings.get("norm_coefficient", 0.0), x) * x
        decayed = rate / (like(1, x) + steps.astype(x.dtype) * like(settings.get("decay_factor", 0.0), x))
        total = total + slope * slope
        new_xs.append(x - decayed * slope / (np.sqrt(total) + like(settings.get("epsilon", 1e-6), x)))
        new_sums.append(total)
    return (*new_xs, *new_sums)


@operator("Adam", domain=PREVIEW)
def adam(rate: Any, steps: Any, *values: Any, node: Any = None) -> Any:
    settings, count = node.attributes, len(values) // 4
    xs, gradients, means, squares = (values[k * count : (k + 1) * count] for k in range(4))
    alpha, beta = settings.get("alpha", 0.9), settings.get("beta", 0.999)
    results: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
    for x, gradient, mean, square in zip(xs, gradients, means, squares, strict=True):
        slope = gradient + like(settings.get("norm_coefficient", 0.0), x) * x
        mean = like(alpha, x) * mean + like(1 - alpha, x) * slope
        square = like(beta, x) * square + like(1 - beta, x) * slope * slope
        power = steps.astype(x.dtype)
        correction = np.sqrt(like(1, x) - np.power(like(beta, x), power)) / (
            like(1, x) - np.power(like(alpha, x), power)
        )
        own_rate = np.where(steps > 0, rate * correction, rate)
        new = x - own_rate * mean / (np.sqrt(square) + like(settings.get("epsilon", 1e-6), x))
        new = new * like(1 - settings.get("norm_coefficient_post", 0.0), x)
        for listed, one in zip(results, (new, mean, square), strict=True):
            listed.append(one)
    return tuple(one for listed in results for one in listed)
