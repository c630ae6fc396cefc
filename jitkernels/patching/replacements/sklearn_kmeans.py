"""`sklearn.cluster`: seeding of k-means and Lloyd's iteration.

Nearest centers come from a register tile of products with argmin, and sums of clusters from SCATTER_ADD. Everything
else, and the random numbers, are scikit-learn's.
"""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.compiler.api.jit import jit
from jitkernels.dispatch.operators import everyday
from jitkernels.patching.conditions import are_matrices, is_matrix, is_plain
from jitkernels.patching.native_kernels import SamplePanels, nearest_rows
from jitkernels.patching.piece import Call, piece
from jitkernels.patching.replacements.sklearn_distances import are_far_from_overflow
from jitkernels.patching.sample_arrays import blobs

_kernel_scatter_add = everyday("scatter_add")

UNPACKED_ITERATIONS = 2
"""Iterations before samples are packed, which takes as long as these save."""
SAMPLES = "dense matrices of float32 and float64 in C order, finite"


def _seeding_calls() -> Iterator[Call]:
    for samples, clusters in ((500, 4), (10_000, 8), (50_000, 8), (50_000, 64)):
        yield Call(
            f"{samples} x 20, {clusters} clusters", "sklearn.cluster:kmeans_plusplus",
            (blobs(samples, 20, clusters), clusters), {"random_state": 0},
        )  # fmt: skip


def _iteration_calls() -> Iterator[Call]:
    for dtype in (np.float32, np.float64):
        for samples, clusters in ((500, 4), (10_000, 8), (50_000, 8), (50_000, 64)):
            x = blobs(samples, 20, clusters, dtype)
            case = f"{np.dtype(dtype).name}, {samples} x 20, {clusters} clusters, up to 10 iterations"
            options = {"init": x[:clusters].copy(), "n_init": 1, "max_iter": 10}
            yield Call(case, "sklearn.cluster:k_means", (x, clusters), options)


def _are_served(x: Any, sample_weight: Any, centers: Any) -> bool:
    return (
        are_matrices(x, centers)
        and is_plain(sample_weight, (x.dtype,))
        and sample_weight.shape == (len(x),)
        and sample_weight.flags.c_contiguous
        and 0 < len(x) < 1 << 31
    )


@jit
def _variances(x: Any) -> Any:
    return np.square(x - x.mean(axis=0)).sum(axis=0) / x.shape[0]


@piece(
    "sklearn.cluster._kmeans:_tolerance",
    serves=SAMPLES,
    calls=lambda: (
        Call(f"{n} x 20", "sklearn.cluster._kmeans:_tolerance", (blobs(n, 20, 8), 1e-4)) for n in (500, 50_000)
    ),
)
def _tolerance(X: Any, tol: Any) -> Any:
    return NotImplemented if not is_matrix(X) or tol == 0 else np.mean(_variances(X)) * tol


@jit
def _running_total(sample_weight: Any, closest: Any) -> Any:
    return np.cumsum(sample_weight * closest)


@piece("sklearn.cluster._kmeans:_kmeans_plusplus", serves=SAMPLES, calls=_seeding_calls)
def _kmeans_plusplus(
    X: Any, n_clusters: Any, x_squared_norms: Any, sample_weight: Any, random_state: Any, n_local_trials: Any = None
) -> Any:
    """Draws the same random numbers as scikit-learn."""
    if not _are_served(X, sample_weight, X) or not are_far_from_overflow(x_squared_norms):
        return NotImplemented
    n = len(X)
    trials = 2 + int(np.log(n_clusters)) if n_local_trials is None else n_local_trials
    indices = np.full(n_clusters, -1, int)
    indices[0] = random_state.choice(n, p=sample_weight / sample_weight.sum())
    distances, spare = np.empty((2, max(trials, 1), n), X.dtype)
    samples = SamplePanels(X)
    samples.closest_squares(X[indices[:1]], np.full(n, np.inf, X.dtype), distances[:1])
    closest = distances[0]
    potential = closest @ sample_weight
    for c in range(1, n_clusters):
        draws = random_state.uniform(size=trials) * potential
        candidates = np.searchsorted(_running_total(sample_weight, closest), draws)
        np.minimum(candidates, n - 1, out=candidates)
        distances, spare = spare, distances
        samples.closest_squares(X[candidates], closest, distances)
        potentials = distances @ sample_weight
        best = np.argmin(potentials)
        potential, closest, indices[c] = potentials[best], distances[best], candidates[best]
    return X[indices], indices


@jit
def _inertia(x: Any, sample_weight: Any, centers: Any, labels: Any) -> Any:
    differences = x - centers[labels]
    return ((differences * differences).sum(axis=1) * sample_weight).sum()


class _Steps:
    """The two steps of Lloyd's iteration on the same samples."""

    def __init__(self, x: AnyArray, sample_weight: AnyArray) -> None:
        self.x, self.sample_weight = x, sample_weight
        self.panels: SamplePanels | None = None
        self.iterations = 0
        self.is_weighted = not bool(np.all(sample_weight == 1))
        self.weighted = x * sample_weight[:, np.newaxis] if self.is_weighted else x

    def assign(self, centers: AnyArray, labels: AnyArray) -> None:
        self.iterations += 1
        if self.iterations <= UNPACKED_ITERATIONS:
            nearest_rows(self.x, centers, labels)
            return
        self.panels = self.panels or SamplePanels(self.x)
        self.panels.label(centers, labels)

    def update(self, centers: AnyArray, labels: AnyArray) -> AnyArray:
        """The means of the clusters; empty ones are relocated as scikit-learn does it."""
        count = len(centers)
        sums = _kernel_scatter_add(np.zeros_like(centers), labels, self.weighted)
        weights = np.bincount(labels, self.sample_weight if self.is_weighted else None, count).astype(centers.dtype)
        if not weights.all():
            common = import_module("sklearn.cluster._k_means_common")
            common._relocate_empty_clusters_dense(self.x, self.sample_weight, centers, sums, weights, labels)
        is_empty = weights <= 0
        new: AnyArray = sums * (1 / np.where(is_empty, 1, weights))[:, np.newaxis]  # as scikit-learn rounds it
        if is_empty.any():
            new[is_empty] = new[np.argmax(weights)]
        return new


@piece("sklearn.cluster._kmeans:_kmeans_single_lloyd", serves=f"{SAMPLES}, not verbose", calls=_iteration_calls)
def _kmeans_single_lloyd(
    X: Any, sample_weight: Any, centers_init: Any, max_iter: Any = 300, verbose: Any = False, tol: Any = 1e-4,
    n_threads: Any = 1,
) -> Any:  # fmt: skip
    if verbose or not _are_served(X, sample_weight, centers_init):
        return NotImplemented
    steps = _Steps(X, sample_weight)
    centers = centers_init
    labels, old_labels = np.full((2, len(X)), -1, np.int32)
    is_strict, iteration = False, 0
    for iteration in range(max_iter):  # noqa: B007, it is the number of iterations afterwards
        steps.assign(centers, labels)
        new_centers = steps.update(centers, labels)
        shift = float(np.square(new_centers - centers).sum())
        centers = new_centers
        is_strict = np.array_equal(labels, old_labels)
        if is_strict or shift <= tol:
            break
        old_labels[:] = labels
    if not is_strict:
        steps.assign(centers, labels)
    return labels, float(_inertia(X, sample_weight, centers, labels)), centers, iteration + 1


def _prediction_calls() -> Iterator[Call]:
    for samples, clusters in ((500, 4), (50_000, 8), (50_000, 64)):
        x = blobs(samples, 20, clusters)
        arguments = (x, np.ones(samples), x[:clusters].copy())
        yield Call(f"{samples} x 20, {clusters} clusters", "sklearn.cluster._kmeans:_labels_inertia", arguments)


@piece("sklearn.cluster._kmeans:_labels_inertia", serves=SAMPLES, calls=_prediction_calls)
def _labels_inertia(X: Any, sample_weight: Any, centers: Any, n_threads: Any = 1, return_inertia: Any = True) -> Any:
    if not _are_served(X, sample_weight, centers):
        return NotImplemented
    labels = np.empty(len(X), np.int32)
    nearest_rows(X, centers, labels)
    if not return_inertia:
        return labels
    return labels, float(_inertia(X, sample_weight, centers, labels))
