"""Programs of scikit-learn with everything patched: the same fits, from the same random numbers."""

from typing import Any

import numpy as np
import pytest
from sklearn.cluster import BisectingKMeans, KMeans, kmeans_plusplus
from sklearn.decomposition import PCA, KernelPCA
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import pairwise_distances, pairwise_kernels, silhouette_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler, scale
from sklearn.svm import SVC

import jitkernels as jk
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.patching.sample_arrays import blobs

DTYPES = (np.float64, np.float32)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("clusters", [1, 3, 17])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_k_means(dtype: Any, clusters: int, is_weighted: bool) -> None:
    x = blobs(1500, 7, 9, dtype)
    weights = np.random.default_rng(1).random(1500) if is_weighted else None

    def fit() -> Any:
        return KMeans(clusters, n_init=2, random_state=3).fit(x, sample_weight=weights)

    theirs = fit()
    with jk.patch():
        ours = fit()
        labels = ours.predict(x)
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    np.testing.assert_array_equal(labels, theirs.labels_)
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, rtol=1e-4, atol=1e-4)
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-4)
    assert (type(ours.inertia_), ours.n_iter_) == (type(theirs.inertia_), theirs.n_iter_)


def test_empty_clusters_are_relocated() -> None:
    x = np.array([[0.0], [0.1], [0.2], [10.0], [10.1], [20.0]])
    centers = np.array([[0.1], [500.0], [900.0]])

    def fit() -> AnyArray:
        return np.sort(KMeans(3, init=centers, n_init=1).fit(x).cluster_centers_.ravel())

    theirs = fit()
    with jk.patch():
        np.testing.assert_allclose(fit(), theirs)


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_change_nothing(threads: int) -> None:
    x, before = blobs(20_000, 20, 12), jk.get_num_threads()
    jk.set_num_threads(threads)
    try:
        with jk.patch():
            centers, indices = kmeans_plusplus(x, 12, random_state=0)
            distances = pairwise_distances(x[:3000])
    finally:
        jk.set_num_threads(before)
    np.testing.assert_array_equal(indices, kmeans_plusplus(x, 12, random_state=0)[1])
    np.testing.assert_array_equal(centers, x[indices])
    np.testing.assert_allclose(distances, pairwise_distances(x[:3000]), rtol=1e-7, atol=1e-7)
    np.testing.assert_array_equal(distances, distances.T)


def programs(x: AnyArray, y: AnyArray) -> dict[str, Any]:
    return {
        "bisecting": BisectingKMeans(4, random_state=0).fit(x).labels_,
        "silhouette": silhouette_score(x, y),
        "pca": np.abs(PCA(3).fit(x).transform(x)),
        "kernel pca": np.abs(KernelPCA(2, kernel="rbf").fit_transform(x)),
        "logistic": LogisticRegression().fit(x, y).predict_proba(x),
        "neighbours": KNeighborsClassifier(algorithm="brute").fit(x, y).predict(x),
        "scaler": StandardScaler().fit_transform(x),
        "scale": scale(x),
        "svc": SVC(kernel=lambda a, b: pairwise_kernels(a, b, metric="rbf")).fit(x, y).predict(x),
    }


@pytest.mark.filterwarnings("ignore:Numerical issues were encountered")
@pytest.mark.parametrize("dtype", DTYPES)
def test_programs(dtype: Any) -> None:
    x = blobs(300, 6, 4, dtype)
    y = KMeans(4, n_init=1, random_state=0).fit(x).labels_
    theirs = programs(x, y)
    with jk.patch():
        ours = programs(x, y)
    for name, expected in theirs.items():
        np.testing.assert_allclose(ours[name], expected, rtol=1e-3, atol=1e-3, err_msg=name)
