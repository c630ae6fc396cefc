"""NumPy's functions in one-line losses, by function: the differentiated function, and its argument."""

from typing import Any

import numpy as np

windows_of = np.lib.stride_tricks.sliding_window_view
add_at, subtract_at = np.add.at, np.subtract.at
random = np.random.default_rng(3)
x, positive, table = random.normal(size=6), random.uniform(1, 3, 6), random.normal(size=(3, 4))
square = random.normal(size=(4, 4))
symmetric = square @ square.T + 4 * np.eye(4)


def weighed(result: Any) -> Any:
    """Return a float whose derivative differs for each element of an array."""
    return np.sum(result * np.cos(np.arange(result.size)).reshape(result.shape))


def added_at(x: Any) -> Any:
    z = np.ones(4)
    add_at(z, [0, 1, 1], x[:3])
    subtract_at(z, [3, 3], x[4:])
    return weighed(z**3)


def sorted_in_place(x: Any) -> Any:
    x.sort()
    return weighed(x**2)


def filled(a: Any) -> Any:
    np.fill_diagonal(a, 2 * a[0, 1])
    return weighed(a**2)


def scattered(x: Any) -> Any:
    z = np.zeros(6)
    z[[4, 1, 4]] = x[:3] ** 2
    z[2] = x[5]
    return weighed(z + z**2)


FUNCTIONS: dict[Any, list[tuple[Any, Any]]] = {
    np.sort: [
        (lambda x: weighed(np.sort(x) ** 2), x), (lambda x: weighed(np.sort(x, axis=0)), table),
        (lambda x: weighed(np.sort(x, axis=None) ** 2), table), (sorted_in_place, x),
    ],
    np.partition: [(lambda x: np.sum(np.partition(x, 3)[:3] ** 2), x)],
    np.median: [(lambda x: np.median(x) ** 2, x), (lambda x: weighed(np.median(x, axis=1, keepdims=True) ** 2), table)],
    np.quantile: [(lambda x: weighed(np.quantile(x, [0.2, 0.55], axis=0) ** 2), table)],
    np.percentile: [(lambda x: np.percentile(x, 30) ** 2, x)],
    np.interp: [
        (lambda f: weighed(np.interp(np.linspace(-1, 4, 7), np.arange(4.0), f) ** 2), x[:4]),
        (lambda q: weighed(np.interp(q, np.arange(6.0), positive) ** 2), np.array([0.3, 1.7, 2.2, 4.9])),
        (lambda q: weighed(np.interp(np.linspace(0.1, 2, 6), q, x[:4]) ** 2), np.array([0.0, 0.75, 1.55, 2.2])),
        (lambda f: weighed(np.interp(positive, np.arange(4.0), f, period=4.0)), x[:4]),
        (lambda f: weighed(np.interp(positive, np.arange(1.0), f) ** 2), x[:1]),
        (lambda f: weighed(np.interp(positive * 3, np.arange(6.0), f, left=-1.0, right=2.0)), x),
    ],
    np.correlate: [
        (lambda x: weighed(np.correlate(x, x[:3], "same")), x), (lambda x: weighed(np.correlate(x[:2], x)), x),
    ],
    np.bincount: [
        (lambda x: weighed(np.bincount(np.array([1, 0, 3, 1]), x[:4] ** 2, minlength=5) ** 2), x),
    ],
    np.convolve: [
        (lambda x: weighed(np.convolve(x, x[:3])), x), (lambda x: weighed(np.convolve(x[:2], x, "same")), x),
    ],
    np.kron: [(lambda x: weighed(np.kron(x, x)), x), (lambda x: weighed(np.kron(x, positive)), table)],
    np.average: [
        (lambda x: np.average(x, weights=positive) ** 2, x), (lambda w: np.average(positive, weights=w), positive),
    ],
    np.nanmean: [(lambda x: weighed(np.nanmean(np.where(x > 0, x, np.nan), axis=0) ** 2), np.abs(table))],
    np.logaddexp.reduce: [
        (np.logaddexp.reduce, x), (lambda x: weighed(np.logaddexp.reduce(x, axis=1, keepdims=True)), table),
    ],
    np.linalg.inv: [(lambda x: weighed(np.linalg.inv(x)), symmetric)],
    np.linalg.det: [(lambda x: np.linalg.det(x) / 100, symmetric), (np.linalg.det, square)],
    np.linalg.slogdet: [(lambda x: np.linalg.slogdet(x)[1], symmetric)],
    np.linalg.solve: [
        (lambda x: weighed(np.linalg.solve(x, np.arange(4.0))), symmetric),
        (lambda b: weighed(np.linalg.solve(symmetric, b) ** 2), square),
        (lambda x: weighed(np.linalg.solve(np.stack([x, x.T @ x]), np.ones(4))), symmetric),
    ],
    np.linalg.cholesky: [
        (lambda x: weighed(np.linalg.cholesky(x)), symmetric),
        (lambda x: weighed(np.linalg.cholesky(x, upper=True)), symmetric),
    ],
    np.linalg.eigvalsh: [(lambda x: weighed(np.linalg.eigvalsh(x)), symmetric)],
    np.linalg.eigh: [
        (lambda x: weighed(np.linalg.eigh(x)[1] ** 2), symmetric),
        (lambda x: weighed(np.linalg.eigh(x, "U").eigenvalues ** 2), symmetric),
    ],
    np.linalg.norm: [
        (np.linalg.norm, x), (lambda x: weighed(np.linalg.norm(x, axis=1)), table),
        (lambda x: np.linalg.norm(x, "fro"), table), (lambda x: np.linalg.norm(x, 1), x),
        (lambda x: np.linalg.norm(x, np.inf), x), (lambda x: np.linalg.norm(x, 3), x),
    ],
    np.cumsum: [(lambda x: weighed(np.cumsum(x, axis=1) ** 2), table)],
    np.cumprod: [(lambda x: weighed(np.cumprod(x)), x), (lambda x: weighed(np.cumprod(x, axis=0)), table)],
    np.maximum.accumulate: [(lambda x: weighed(np.maximum.accumulate(x) ** 2), x)],
    np.minimum.accumulate: [(lambda x: weighed(np.minimum.accumulate(x, axis=1) ** 2), table)],
    windows_of: [(lambda x: weighed(windows_of(x, 3) ** 2), x), (lambda x: weighed(windows_of(x, (2, 2)) ** 2), table)],
    np.take: [
        (lambda x: weighed(np.take(x, [0, 1, 1, 4]) ** 2), x),
        (lambda x: weighed(np.take(x, [1, 0, 1], axis=1)), table),
        (lambda x: weighed(x[[2, 0, 1]]), x), (lambda x: np.sum(x**2) + 0 * x[[2, 0, 1]][1], x),
        (lambda x: x[np.argmax(x)] ** 2, x), (lambda x: weighed(x[np.triu_indices(4)] ** 2), square),
        (lambda x: weighed(np.take_along_axis(x, np.argsort(x, axis=1), 1) ** 2), table),
        (lambda x: weighed(x[:, np.array([[0, 3], [1, 1]])] ** 2), table),
    ],
    np.put_along_axis: [(scattered, x), (added_at, x), (filled, square)],
    np.prod: [
        (np.prod, x), (np.prod, np.array([0.0, 2.0, 3.0])), (np.prod, np.array([0.0, 2.0, 0.0])),
        (lambda x: weighed(np.prod(x, axis=(0, 2))), random.normal(size=(2, 3, 2))),
        (lambda x: weighed(np.cumprod(x)), np.array([0.5, 0.0, 2.0, 0.0, 3.0])),
    ],
    np.max: [(lambda x: np.max(x) ** 2, x), (lambda x: weighed(np.min(x, axis=1) ** 2), table), (np.ptp, x)],
    np.matmul: [
        (lambda x: weighed(x @ x @ x), square), (lambda x: weighed(x @ positive[:4]), square),
        (lambda x: np.inner(x, x), x), (lambda x: np.vecdot(x, x), x),
        (lambda x: weighed(np.tensordot(x, x, 1)), square),
        (lambda x: np.einsum("ij,kj->", x, x), table), (lambda x: weighed(np.linalg.matrix_power(x, 3)), square),
        (lambda x: weighed(np.linalg.multi_dot([x, symmetric, x])), square), (lambda x: np.trace(x @ x), square),
        (lambda x: weighed(np.matmul(np.stack([x, x]), x)), square), (lambda x: weighed(np.outer(x, x)), x),
        (lambda x: weighed(np.cross(x[:3], x[3:])), x),
    ],
    np.diff: [
        (lambda x: weighed(np.diff(x, 2) ** 2), x), (lambda x: weighed(np.gradient(x) ** 2), x),
        (lambda x: np.trapezoid(x**2), x),
    ],
    np.concatenate: [
        (lambda x: weighed(np.pad(x, 2) ** 2), x), (lambda x: weighed(np.pad(x, 2, mode="reflect") ** 2), x),
        (lambda x: weighed(np.tile(x, 3) ** 2), x), (lambda x: weighed(np.repeat(x, 3) ** 2), x),
        (lambda x: weighed(np.roll(x, 2) ** 2), x), (lambda x: weighed(np.vstack([x, x * 2]) ** 2), x),
        (lambda x: weighed(np.split(x, 2)[1] ** 2), x), (lambda x: weighed(np.rot90(x)[::-1] ** 2), table),
        (lambda x: weighed(np.tril(x) ** 2), table), (lambda x: weighed(np.diag(x) ** 2), x),
        (lambda x: weighed(x.T.reshape(2, 6)[:, ::2] ** 2), table), (lambda x: weighed(np.diagonal(x) ** 2), square),
        (lambda x: weighed(np.broadcast_to(x, (2, 6))[1:] ** 2), x),
    ],
    np.where: [
        (lambda x: weighed(np.select([x > 1, x < 0], [x**2, x * 3], x)), x),
        (lambda x: weighed(np.clip(x, -0.5, 0.5)), x),
        (lambda x: np.sum(x[x > 0] ** 2), x), (lambda x: weighed(np.nan_to_num(x) ** 2), x),
        (lambda x: np.nansum(x**2), x),
    ],
    np.var: [
        (lambda x: weighed(np.cov(x)), table), (lambda x: weighed(np.corrcoef(x)), table), (np.std, x),
        (lambda x: np.var(x, ddof=1), x), (lambda x: weighed(np.mean(x, axis=0) ** 2), table),
    ],
    np.astype: [(lambda x: weighed(x.astype(np.float64) * np.float32(0.5)), x), (lambda x: weighed(np.sinc(x)), x)],
    np.sinc: [(lambda x: weighed(np.sinc(x) ** 2), np.array([0.0, 0.1, 1.0])), (lambda x: np.sinc(x[0]) ** 2, x * 0)],
    np.vander: [(lambda x: weighed(np.vander(x, 3)), x), (lambda x: np.polyval(x, 0.7), x)],
}  # fmt: skip
NONE = {
    np.histogram: (lambda x: weighed(np.histogram(x, 3)[1]), x), np.i0: (lambda x: weighed(np.i0(x)), x),
    np.linalg.svd: (lambda x: weighed(np.linalg.svd(x, compute_uv=False)), table),
    np.linalg.pinv: (lambda x: weighed(np.linalg.pinv(x)), table),
}  # fmt: skip
"""Some functions without derivative rules, which fall back to NumPy."""
