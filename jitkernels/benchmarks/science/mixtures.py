"""Clusters, mixtures and densities of samples."""

import math
from typing import Any

import numpy as np

from jitkernels.benchmarks.science.science_program import science_program, uniform


def kmeans_arrays(x: Any, centers: Any, rounds: Any) -> Any:
    for _ in range(rounds):
        dist = ((x[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2)
        label = dist.argmin(axis=1)
        centers = np.array([x[label == k].mean(axis=0) for k in range(len(centers))])
    return centers, label


def kmeans_loops(x: Any, centers: Any, rounds: Any) -> Any:
    centers = centers.copy()
    n, d = x.shape
    k = centers.shape[0]
    label = np.zeros(n, dtype=np.int64)
    for _ in range(rounds):
        for i in range(n):
            best = np.inf
            for c in range(k):
                dist = 0.0
                for f in range(d):
                    dist += (x[i, f] - centers[c, f]) ** 2
                if dist < best:
                    best = dist
                    label[i] = c
        sums = np.zeros((k, d))
        count = np.zeros(k)
        for i in range(n):
            count[label[i]] += 1
            for f in range(d):
                sums[label[i], f] += x[i, f]
        for c in range(k):
            if count[c] > 0:
                for f in range(d):
                    centers[c, f] = sums[c, f] / count[c]
    return centers, label


science_program(
    lambda n, _: (uniform(n, 4), uniform(n, 4)[:3].copy(), 10),
    kmeans_arrays, kmeans_loops,
    size=2000, sizes=(30, 40),
)  # fmt: skip


def mixture_arrays(x: Any, weight: Any, mean: Any, var: Any, rounds: Any) -> Any:
    history = np.empty(rounds)
    for r in range(rounds):
        density = weight * np.exp(-0.5 * (x[:, None] - mean) ** 2 / var) / np.sqrt(2 * np.pi * var)
        total = density.sum(axis=1, keepdims=True)
        resp = density / total
        count = resp.sum(axis=0)
        weight = count / len(x)
        mean = (resp * x[:, None]).sum(axis=0) / count
        var = (resp * (x[:, None] - mean) ** 2).sum(axis=0) / count
        history[r] = np.log(total).sum()
    return weight, mean, var, history


def mixture_loops(x: Any, weight: Any, mean: Any, var: Any, rounds: Any) -> Any:
    weight = weight.copy()
    mean = mean.copy()
    var = var.copy()
    n = x.shape[0]
    k = mean.shape[0]
    resp = np.zeros((n, k))
    history = np.zeros(rounds)
    for r in range(rounds):
        loglik = 0.0
        for i in range(n):
            total = 0.0
            for c in range(k):
                d = x[i] - mean[c]
                resp[i, c] = weight[c] * math.exp(-0.5 * d * d / var[c]) / math.sqrt(2 * math.pi * var[c])
                total += resp[i, c]
            for c in range(k):
                resp[i, c] /= total
            loglik += math.log(total)
        for c in range(k):
            count = 0.0
            s = 0.0
            for i in range(n):
                count += resp[i, c]
                s += resp[i, c] * x[i]
            m = s / count
            v = 0.0
            for i in range(n):
                v += resp[i, c] * (x[i] - m) ** 2
            weight[c], mean[c], var[c] = count / n, m, v / count
        history[r] = loglik
    return weight, mean, var, history


def mixture_mixed(x: Any, weight: Any, mean: Any, var: Any, rounds: Any) -> Any:
    weight = weight.copy()
    mean = mean.copy()
    var = var.copy()
    k = len(mean)
    history = []
    for _ in range(rounds):
        resp = np.zeros((k, len(x)))
        for c in range(k):
            resp[c] = weight[c] / np.sqrt(2 * np.pi * var[c]) * np.exp(-((x - mean[c]) ** 2) / (2 * var[c]))
        total = resp.sum(axis=0)
        resp /= total
        for c in range(k):
            n = resp[c].sum()
            weight[c] = n / len(x)
            mean[c] = np.dot(resp[c], x) / n
            var[c] = np.dot(resp[c], (x - mean[c]) ** 2) / n
        loglik = np.sum(np.log(total))
        history.append(loglik)
    return weight, mean, var, np.array(history)


science_program(
    lambda n, _: (np.sqrt(uniform(n)), np.array([0.5, 0.5]), np.array([0.2, 0.8]), np.array([0.1, 0.1]), 30),
    mixture_arrays, mixture_loops, mixture_mixed,
    size=2000, sizes=(30, 40), rtol=1e-7,
)  # fmt: skip


def density_arrays(data: Any, grid: Any, width: Any) -> Any:
    z = (grid[:, None] - data[None, :]) / width
    return np.exp(-0.5 * z**2).sum(axis=1) / (len(data) * width * np.sqrt(2 * np.pi))


def density_loops(data: Any, grid: Any, width: Any) -> Any:
    out = np.zeros(len(grid))
    for i in range(len(grid)):
        s = 0.0
        for j in range(len(data)):
            z = (grid[i] - data[j]) / width
            s += math.exp(-0.5 * z * z)
        out[i] = s / (len(data) * width * math.sqrt(2 * math.pi))
    return out


def density_mixed(data: Any, grid: Any, width: Any) -> Any:
    out = np.zeros_like(grid)
    for x in data:
        out += np.exp(-0.5 * ((grid - x) / width) ** 2)
    return out / (data.size * width * np.sqrt(2 * np.pi))


science_program(
    lambda n, _: (6 * uniform(n) - 3, np.linspace(-4, 4, 200), 0.2),
    density_arrays, density_loops, density_mixed,
    size=2000, sizes=(5, 12),
)  # fmt: skip
