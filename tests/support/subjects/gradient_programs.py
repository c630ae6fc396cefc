"""Common losses, small and smooth at the tested points: functions of float arrays, and the arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np

Program = Callable[..., Any]
PROGRAMS: dict[str, tuple[Any, tuple[Any, ...]]] = {}
"""By name, functions that return floats or arrays, and arguments, all of them differentiable."""
windows_of = np.lib.stride_tricks.sliding_window_view
triangular = np.tril(np.ones((4, 4), bool))
labels = np.array([2, 0, 1, 2, 1])
rows, columns = np.array([0, 1, 2, 3, 0, 2]), np.array([1, 0, 2, 1, 2, 2])
ratings = np.array([3.0, 1.0, 4.0, 2.0, 5.0, 2.5])


def normal(*shape: int, seed: int = 0, scale: float = 1.0, centre: float = 0.0) -> Any:
    return centre + scale * np.random.default_rng([*shape, seed]).normal(size=shape)


SECOND = {
    "network_of_rectifiers", "softmax_cross_entropy", "layer_norm", "robust_regression", "matrix_factorisation",
    "energy_of_particles", "convolution_by_windows", "heat_over_steps", "survival", "rosenbrock", "writes",
}  # fmt: skip
"""Programs whose second derivatives the tests compile; those of others run in NumPy, operation by operation."""


def at(*arrays: Any) -> Callable[[Program], Program]:
    """Register a program with its arguments."""

    def enter(function: Program) -> Program:
        PROGRAMS[function.__name__] = function, arrays
        return function

    return enter


@at(normal(3), normal(1), normal(6, 3))
def logistic_regression(w: Any, b: Any, x: Any) -> Any:
    z = x @ w + b[0]
    return np.mean(np.logaddexp(0.0, z) - z * (np.arange(6) % 2)) + 0.1 * np.sum(w**2)


def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def silu(x: Any) -> Any:
    return x / (1 + np.exp(-x))


def elu(x: Any) -> Any:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


@at(normal(4, 3), normal(3, 5), normal(5), normal(5, 4), normal(4, 4), normal(4, 2))
def network_of_activations(x: Any, a: Any, bias: Any, b: Any, c: Any, d: Any) -> Any:
    h = gelu(x @ a + bias)
    h = silu(h @ b)
    h = elu(h @ c) + np.logaddexp(h, 0)
    return np.mean((np.arctan(h) @ d) ** 2)


@at(normal(4, 3), normal(3, 6), normal(6, 2, centre=0.5), np.array([0.3, 0.2]))
def network_of_rectifiers(x: Any, a: Any, b: Any, slopes: Any) -> Any:
    h = x @ a
    h = np.maximum(h, slopes[0] * h)
    return np.sum(np.abs(h @ b)) + np.sum(np.clip(h, -0.3, 0.4) ** 2) * slopes[1]


@at(normal(5, 4), normal(4, 3), normal(3))
def softmax_cross_entropy(x: Any, w: Any, b: Any) -> Any:
    z = x @ w + b
    z = z - z.max(axis=1, keepdims=True)
    logs = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
    return -np.mean(logs[np.arange(5), labels])


@at(normal(3, 4), normal(4), normal(4))
def layer_norm(x: Any, scale: Any, shift: Any) -> Any:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5) * scale + shift


@at(normal(4, 3), normal(3, 3, seed=1), normal(3, 3, seed=2), normal(3, 3, seed=3))
def causal_attention(x: Any, q: Any, k: Any, v: Any) -> Any:
    scores = (x @ q) @ (x @ k).T / np.sqrt(3.0)
    scores = np.where(triangular, scores, -1e30)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ (x @ v)


@at(normal(7, 2), normal(3, 2), normal(3, 2, scale=0.3), normal(3))
def gaussian_mixture(x: Any, means: Any, logs: Any, logits: Any) -> Any:
    apart = (x[:, None, :] - means) * np.exp(-logs)
    parts = logits - 0.5 * np.sum(apart**2, axis=-1) - np.sum(logs, axis=-1)
    return np.sum(np.logaddexp.reduce(parts, axis=1)) - 7 * np.logaddexp.reduce(logits)


@at(normal(9, 2), normal(2), normal(9, scale=3.0), np.array([0.7]))
def robust_regression(x: Any, w: Any, y: Any, limit: Any) -> Any:
    residual = y - x @ w
    size = np.abs(residual)
    huber = np.where(size < limit, 0.5 * residual**2, limit * (size - 0.5 * limit))
    return np.sum(huber) + np.sum(np.hypot(residual, 1.0)) + np.median(size)


@at(normal(4, 2), normal(3, 2), normal(4))
def matrix_factorisation(u: Any, v: Any, bias: Any) -> Any:
    guess = np.sum(u[rows] * v[columns], axis=1) + bias[rows]
    return np.sum((guess - ratings) ** 2) + 0.1 * (np.linalg.norm(u) + np.linalg.norm(v))


@at(normal(6), np.array([0.1, 0.9, 2.1, 2.9, 4.1, 4.9]), np.linspace(0.3, 4.6, 8))
def piecewise_linear_fit(heights: Any, knots: Any, x: Any) -> Any:
    fit = np.interp(x, knots, heights)
    return np.sum((fit - np.sin(x)) ** 2) + 0.1 * np.sum(np.diff(heights, 2) ** 2)


@at(normal(8, 4), normal(4, 2))
def principal_components(x: Any, w: Any) -> Any:
    centred = x - x.mean(axis=0)
    covariance = centred.T @ centred / 8
    explained = np.trace(np.linalg.solve(w.T @ w, w.T @ covariance @ w))
    return -explained + np.sum(np.sqrt(np.linalg.eigvalsh(covariance)))


@at(normal(5, 5), normal(2, 2, 2), normal(2))
def convolution_by_slices(image: Any, kernels: Any, bias: Any) -> Any:
    total = np.zeros((2, 4, 4)) + bias[:, None, None]
    for i in range(2):
        for j in range(2):
            total = total + kernels[:, i, j][:, None, None] * image[i : i + 4, j : j + 4]
    active = np.maximum(total, 0.05)
    return active.reshape(2, 2, 2, 2, 2).max(axis=(2, 4))


@at(normal(9), normal(3), normal(4))
def convolution_by_windows(signal: Any, kernel: Any, other: Any) -> Any:
    return np.convolve(np.tanh(windows_of(signal, 3) @ kernel), other)


@at(1.3 * np.stack(np.meshgrid([0.0, 1.0, 2.0], [0.0, 1.0]), axis=-1).reshape(6, 2) + normal(6, 2, scale=0.1))
def energy_of_particles(x: Any) -> Any:
    first, second = np.triu_indices(6, 1)
    apart = np.sum((x[first] - x[second]) ** 2, axis=1)
    attraction = 1 / apart**3
    return np.sum(4 * (attraction**2 - attraction)) + 0.5 * np.sum(np.linalg.norm(x, axis=1))


@at(normal(6, 3), normal(6), np.array([0.4]))
def ridge_in_closed_form(x: Any, y: Any, penalty: Any) -> Any:
    w = np.linalg.solve(x.T @ x + penalty[0] * np.eye(3), x.T @ y)
    return np.mean((x @ w - y) ** 2)


@at(np.linspace(0.0, 2.0, 5) + normal(5, scale=0.1), normal(5), np.array([0.2, -0.1, -1.0]))
def gaussian_process(x: Any, y: Any, logs: Any) -> Any:
    apart = (x[:, None] - x) / np.exp(logs[0])
    kernel = np.exp(logs[1] - 0.5 * apart**2) + np.exp(logs[2]) * np.eye(5)
    factor = np.linalg.cholesky(kernel)
    white = np.linalg.solve(factor, y)
    return 0.5 * white @ white + np.sum(np.log(np.diagonal(factor))) + np.linalg.slogdet(kernel)[1]


@at(normal(7), np.array([0.2]))
def heat_over_steps(u: Any, rate: Any) -> Any:
    for _ in range(3):
        new = u.copy()
        new[1:-1] += rate[0] * (u[2:] - 2 * u[1:-1] + u[:-2])
        u = new
    return u


@at(normal(4, 2), normal(2, 12, scale=0.5), normal(3, 12, scale=0.5), normal(12))
def lstm_over_sequence(x: Any, w: Any, r: Any, b: Any) -> Any:
    h, c = np.zeros(3), np.zeros(3)
    for one in x:
        z = one @ w + h @ r + b
        gates = 1 / (1 + np.exp(-z[:9]))
        c = gates[:3] * c + gates[3:6] * np.tanh(z[9:])
        h = gates[6:] * np.tanh(c)
    return h


@at(normal(7), normal(7, centre=0.3, seed=4), normal(7, seed=5))
def distance_of_distributions(x: Any, y: Any, weights: Any) -> Any:
    gap = np.sort(x) - np.sort(y)
    heavy = np.exp(weights - weights.max())
    return np.mean(np.sqrt(gap**2 + 0.1)) + np.percentile(x, 30) ** 2 + np.average(y, weights=heavy)


@at(normal(6, 2), normal(2))
def survival(x: Any, w: Any) -> Any:
    risk = x @ w
    at_risk = np.cumsum(np.exp(risk)[::-1])[::-1]
    return -np.sum(risk[::2] - np.log(at_risk[::2])) + np.sum(np.maximum.accumulate(risk))


@at(normal(5), normal(6))
def stick_breaking(logits: Any, x: Any) -> Any:
    parts = 1 / (1 + np.exp(-logits))
    left = np.cumprod(1 - parts)
    weights = np.concatenate([parts[:1], parts[1:] * left[:-1], left[-1:]])
    return np.log(weights @ np.exp(x)) + np.prod(x) * np.cumprod(x)[3]


@at(np.array([1.1, 0.2]), normal(5), np.array([0.3, 0.5]))
def kalman_likelihood(state: Any, seen: Any, logs: Any) -> Any:
    moves, noise = np.array([[1.0, 0.1], [0.0, 0.9]]), np.exp(logs)
    spread, total = np.eye(2), 0.0
    for i in range(2):
        state = moves @ state
        spread = moves @ spread @ moves.T + noise[0] * np.eye(2)
        expected = spread[0, 0] + noise[1]
        missed = seen[i] - state[0]
        total = total + missed**2 / expected + np.log(expected)
        gain = spread[:, 0] / expected
        state = state + gain * missed
        spread = spread - np.outer(gain, spread[0])
    return total + np.log(np.linalg.det(spread)) + np.sum(np.linalg.inv(spread))


@at(normal(5, 3), normal(4), np.array([0.5]))
def embeddings(table: Any, scores: Any, temperature: Any) -> Any:
    words = np.array([[0, 2, 2], [1, 4, 0], [3, 3, 3], [4, 0, 1]])
    means = table[words].mean(axis=1)
    unit = means / np.linalg.norm(means, axis=1, keepdims=True)
    alike = unit @ unit.T / temperature[0]
    return np.sum(np.tanh(alike) * scores) + np.var(table, ddof=1)


@at(normal(5))
def rosenbrock(x: Any) -> Any:
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


@at(normal(5), normal(2))
def writes(x: Any, y: Any) -> Any:
    z = np.zeros_like(x)
    z[1:] = x[:-1] * 2
    z[0] = y[0]
    z[::2] *= y[1]
    z += x
    z[[3, 1]] = z[[1, 2]] * y
    z[z > 1e9] = 0
    return np.sum(z**3)


@at(np.array([100.0, 103.0]), np.array([0.02, 0.2, 1.5]))
def option_on_a_lattice(prices: Any, market: Any) -> Any:
    rate, spread, time = market[0], market[1], market[2]
    up = np.exp(spread * np.sqrt(time / 3))
    chance = (np.exp(rate * time / 3) - 1 / up) / (up - 1 / up)
    values = np.maximum(prices[0] * up ** np.arange(-3.0, 4.0, 2.0) - prices[1], 0.0)
    for _ in range(3):
        values = np.exp(-rate * time / 3) * (chance * values[1:] + (1 - chance) * values[:-1])
    return values


@at(normal(4), normal(4, centre=3.0))
def joins(x: Any, y: Any) -> Any:
    z = np.concatenate([x, y[::-1], x * y])
    total = np.sum(np.cumsum(z) ** 2) + z.max() + np.einsum("i,j,i->", x, y, y)
    return total + np.stack([x, y], axis=1).T.reshape(-1)[2:5].sum() + np.kron(x, y)[::3].prod()
