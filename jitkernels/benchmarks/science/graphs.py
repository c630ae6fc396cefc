"""Random graphs, as the rows of sparse matrices, for programs on graphs."""

from typing import Any

import numpy as np


def random_graph(n: int, degree: int) -> Any:
    """Return indptr, indices and weights of an undirected graph, rows in order."""
    rng = np.random.default_rng(n)
    a, b = rng.integers(0, n, (2, n * degree // 2))
    a, b = a[a != b], b[a != b]
    weights = np.full((n, n), np.inf)
    weights[a, b] = weights[b, a] = np.minimum(rng.random(len(a)), 1.0)
    weights = np.minimum(weights, weights.T)
    source, target = np.nonzero(np.isfinite(weights))
    return np.searchsorted(source, np.arange(n + 1)), target, weights[source, target]


def edges(n: int, degree: int) -> Any:
    """Return source, target and weight of each edge of such a graph."""
    indptr, indices, weights = random_graph(n, degree)
    return np.repeat(np.arange(n), np.diff(indptr)), indices, weights
