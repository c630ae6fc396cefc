"""Statistics, learning and simulation: all pairs of points, reductions of many terms, several results."""

from math import isqrt
from typing import Any

import numpy as np

from jitkernels.benchmarks.programs.benchmark_program import loop_of, program
from jitkernels.benchmarks.programs.inputs import samples, values
from jitkernels.benchmarks.programs.parallel import prange

FEATURES, DIMENSIONS, CLUSTERS = 16, 3, 8


@program(samples(FEATURES))
def correlation(x: Any) -> Any:
    centred = x - x.mean(axis=0)
    scaled = centred / np.sqrt((centred * centred).sum(axis=0))
    return scaled.T @ scaled


@loop_of(correlation)
def correlation_loop(x: Any) -> Any:
    mean, squares = np.zeros(x.shape[1], x.dtype), np.zeros(x.shape[1], x.dtype)
    for i in range(x.shape[0]):
        mean += x[i]
    mean /= x.dtype.type(x.shape[0])
    scaled = np.empty_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            scaled[i, j] = x[i, j] - mean[j]
            squares[j] += scaled[i, j] * scaled[i, j]
    factor = 1.0 / np.sqrt(squares)
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            scaled[i, j] *= factor[j]
    return np.dot(scaled.T, scaled)


def points_and_centres(elements: int, dtype: str) -> tuple[Any, ...]:
    """Return points and centres with as many differences as elements."""
    points = max(1, elements // (DIMENSIONS * CLUSTERS))
    return values((points, DIMENSIONS), dtype), values((CLUSTERS, DIMENSIONS), dtype, seed=1)


@program(points_and_centres)
def k_means_step(points: Any, centres: Any) -> Any:
    distances = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=-1)
    return distances.argmin(axis=1), distances.min(axis=1)


@loop_of(k_means_step)
def k_means_step_loop(points: Any, centres: Any) -> Any:
    nearest, least = np.empty(points.shape[0], np.intp), np.empty(points.shape[0], points.dtype)
    for i in prange(points.shape[0]):
        best, where = points.dtype.type(np.inf), 0
        for j in range(centres.shape[0]):
            distance = points.dtype.type(0)
            for k in range(points.shape[1]):
                distance += (points[i, k] - centres[j, k]) ** 2
            if distance < best:
                best, where = distance, j
        nearest[i], least[i] = where, best
    return nearest, least


def _labels(count: int, features: int, dtype: str) -> Any:
    return (values(count, "float64", seed=1) < 0.5).astype(dtype)


def _weights(count: int, features: int, dtype: str) -> Any:
    return values(features, dtype, -1, 1, seed=2)


@program(samples(FEATURES, _labels, _weights))
def logistic_gradient(x: Any, labels: Any, weights: Any) -> Any:
    predicted = 1.0 / (1.0 + np.exp(-(x @ weights)))
    return x.T @ (predicted - labels) / x.shape[0]


@loop_of(logistic_gradient)
def logistic_gradient_loop(x: Any, labels: Any, weights: Any) -> Any:
    out = np.zeros_like(weights)
    for i in range(x.shape[0]):
        total = x.dtype.type(0)
        for j in range(x.shape[1]):
            total += x[i, j] * weights[j]
        error = 1.0 / (1.0 + np.exp(-total)) - labels[i]
        for j in range(x.shape[1]):
            out[j] += error * x[i, j]
    return out / x.dtype.type(x.shape[0])


def moments(elements: int, dtype: str) -> tuple[Any, ...]:
    parameter, gradient, first = (values(elements, dtype, -1, 1, seed) for seed in range(3))
    return parameter, gradient, first, values(elements, dtype, 0, 1, 3), 1e-3


@program(
    moments,
    "parameter - rate * (0.9 * first + 0.1 * gradient) / (sqrt(0.999 * second + 0.001 * gradient * gradient) + 1e-8)",
    "0.9 * first + 0.1 * gradient",
    "0.999 * second + 0.001 * gradient * gradient",
)
def adam_step(parameter: Any, gradient: Any, first: Any, second: Any, rate: Any) -> Any:
    first = 0.9 * first + 0.1 * gradient
    second = 0.999 * second + 0.001 * gradient * gradient
    return parameter - rate * first / (np.sqrt(second) + 1e-8), first, second


@loop_of(adam_step)
def adam_step_loop(parameter: Any, gradient: Any, first: Any, second: Any, rate: Any) -> Any:
    new, new_first, new_second = np.empty_like(parameter), np.empty_like(first), np.empty_like(second)
    for i in prange(parameter.size):
        m = 0.9 * first[i] + 0.1 * gradient[i]
        v = 0.999 * second[i] + 0.001 * gradient[i] * gradient[i]
        new[i] = parameter[i] - rate * m / (np.sqrt(v) + 1e-8)
        new_first[i], new_second[i] = m, v
    return new, new_first, new_second


def bodies(elements: int, dtype: str) -> tuple[Any, ...]:
    """Return bodies with as many differences as elements."""
    count = max(2, isqrt(elements // DIMENSIONS))
    return values((count, DIMENSIONS), dtype, -1, 1), values(count, dtype, 0.1, 1, 1)


@program(bodies)
def forces_of_bodies(positions: Any, masses: Any) -> Any:
    differences = positions[None, :, :] - positions[:, None, :]
    squares = (differences * differences).sum(axis=-1) + 0.01
    return (differences * (masses * squares**-1.5)[:, :, None]).sum(axis=1)


@loop_of(forces_of_bodies)
def forces_of_bodies_loop(positions: Any, masses: Any) -> Any:
    out = np.zeros_like(positions)
    for i in prange(positions.shape[0]):
        x, y, z = positions[i, 0], positions[i, 1], positions[i, 2]
        for j in range(positions.shape[0]):
            dx, dy, dz = positions[j, 0] - x, positions[j, 1] - y, positions[j, 2] - z
            square = dx * dx + dy * dy + dz * dz + 0.01
            factor = masses[j] / (square * np.sqrt(square))
            out[i, 0] += factor * dx
            out[i, 1] += factor * dy
            out[i, 2] += factor * dz
    return out
