"""Small everyday functions with their own arguments: matrices, lists, dicts, options, numbers."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Function = Callable[..., Any]

_numbers = np.random.default_rng(0)
MATRIX = _numbers.normal(size=(4, 4)) + 4 * np.eye(4)
VECTOR = _numbers.normal(size=4)
POINTS, CENTRES = _numbers.normal(size=(50, 3)), _numbers.normal(size=(4, 3))
WHOLE = _numbers.integers(0, 9, 40)
ALIVE = _numbers.random((8, 8)) > 0.5


def kmeans(p: Any, c: Any) -> Any:
    for _ in range(5):
        d = ((p[:, None, :] - c[None]) ** 2).sum(-1)
        near = d.argmin(axis=1)
        new = np.zeros_like(c)
        n = np.zeros(len(c))
        for i in range(len(p)):
            new[near[i]] += p[i]
            n[near[i]] += 1
        c = new / np.maximum(n, 1)[:, None]
    return c


def pooled(p: Any, k: Any, how: Any) -> Any:
    if how == "mean":
        return p.mean(axis=0) * k
    if how == "max":
        return p.max(axis=0) * k
    return p.sum(axis=0) * k


def over_list(ps: Any, k: Any) -> Any:
    t: Any = 0.0
    for p in ps:
        t += p[:, 0].sum() * k
    return t


def ints(a: Any, b: Any) -> Any:
    n = 0
    while a > 0:
        if a % b == 0:
            n += 1
        a -= 1
    return n


def mathy(a: Any) -> Any:
    return math.sqrt(a) + math.sin(a)


def power_iter(v: Any, n: Any) -> Any:
    a = np.outer(v, v) + np.eye(3)
    for _ in range(n):
        v = a @ v
        v = v / np.linalg.norm(v)
    return v


def rolling_mean(x: Any, w: Any) -> Any:
    out = np.zeros(len(x) - w + 1)
    for i in range(len(out)):
        out[i] = x[i : i + w].mean()
    return out


def insert(xs: Any, v: Any) -> Any:
    i = np.searchsorted(xs, v)
    return i, xs[i] if i < len(xs) else -1.0


def rotate(v: Any) -> Any:
    c, s_ = np.cos(0.3), np.sin(0.3)
    return np.array([[c, -s_, 0], [s_, c, 0], [0, 0, 1.0]]) @ v


def pdist(p: Any) -> Any:
    n = len(p)
    out = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            out[i, j] = out[j, i] = np.sqrt(((p[i] - p[j]) ** 2).sum())
    return out


def inplace(x: Any) -> Any:
    x += 1.0
    x -= 1.0


def lag(x: Any, k: Any) -> Any:
    return np.array([np.dot(x[:-i], x[i:]) / len(x) for i in range(1, k)])


def norms_loop(p: Any) -> Any:
    t: Any = 0.0
    for row in p:
        t += np.linalg.norm(row)
    return t


def cg(a: Any, b: Any) -> Any:
    a = a @ a.T
    x = np.zeros_like(b)
    r = b - a @ x
    p = r.copy()
    rs = r @ r
    for _ in range(10):
        ap = a @ p
        al = rs / (p @ ap)
        x += al * p
        r -= al * ap
        new = r @ r
        if np.sqrt(new) < 1e-10:
            break
        p = r + new / rs * p
        rs = new
    return x


CASES: tuple[tuple[str, Function, tuple[Any, ...]], ...] = (
    ("inv", lambda a: np.linalg.inv(a), (MATRIX,)),
    ("inv_t", lambda a: np.linalg.inv(a).T @ a, (MATRIX,)),
    ("solve", lambda a, b: np.linalg.solve(a, b), (MATRIX, VECTOR)),
    ("det", lambda a: np.linalg.det(a), (MATRIX,)),
    ("sym_eig", lambda a: np.linalg.eigvalsh(a + a.T), (MATRIX,)),
    ("eigh", lambda a: np.linalg.eigh(a @ a.T), (MATRIX,)),
    ("svd", lambda a: np.linalg.svd(a), (MATRIX,)),
    ("qr", lambda a: np.linalg.qr(a), (MATRIX,)),
    ("chol", lambda a: np.linalg.cholesky(a @ a.T), (MATRIX,)),
    ("trace", lambda a: np.trace(a), (MATRIX,)),
    ("transposed", lambda a: a.T.copy(), (MATRIX,)),
    ("diag", lambda a: np.diag(a), (MATRIX,)),
    ("einsum", lambda a, b: np.einsum("ij,j->i", a, b), (MATRIX, VECTOR)),
    ("kron", lambda a: np.kron(a, a), (MATRIX,)),
    ("mpow", lambda a: np.linalg.matrix_power(a, 3), (MATRIX,)),
    ("kmeans", kmeans, (POINTS, CENTRES)),
    ("pooled", pooled, (POINTS, 2.0, "mean")),
    ("over_list", over_list, ([POINTS, POINTS[:10]], 3)),
    ("cross", lambda t: np.cross(t[0] - t[1], t[2] - t[1]), ((POINTS[0], POINTS[1], POINTS[2]),)),
    ("numbers", lambda a, b: a * b + a**2 - b / a, (3, 4.5)),
    ("ints", ints, (17, 5)),
    ("npscalars", lambda a, b: np.sqrt(a * a + b * b), (np.float64(2.0), np.float64(3.0))),
    ("zero_d", lambda a, b: np.hypot(a, b), (np.array(2.0), np.array(3.0))),
    ("mathy", mathy, (2.0,)),
    ("model", lambda par, x: x @ par["w"] + par["b"], ({"w": POINTS[0], "b": 1.0}, POINTS)),
    ("power_iter", power_iter, (POINTS[0], 10)),
    ("rolling_mean", rolling_mean, (POINTS[:, 0], 5)),
    ("modeof", lambda i: np.bincount(i).argmax(), (WHOLE,)),
    ("common_ints", lambda a, b: np.intersect1d(a, b), (WHOLE, WHOLE)),
    ("text", lambda name, v: f"{name} {v.sum():.3f}", ("abc", POINTS[0])),
    ("mask_rows", lambda p, t: p[(p > t).any(axis=1)], (POINTS, 0.5)),
    ("insert", insert, (np.cumsum(np.abs(POINTS[:, 0])), 3.0)),
    ("corr", lambda a, b: np.corrcoef(a, b)[0, 1], (POINTS[:, 0], POINTS[:, 1])),
    ("linfit", lambda a, b: np.polyfit(a, b, 1), (POINTS[:, 0], POINTS[:, 1])),
    ("lstsq", lambda a, b: np.linalg.lstsq(a, a @ b, rcond=None)[0], (POINTS, VECTOR[:3])),
    ("rotate", rotate, (POINTS[0],)),
    ("pdist", pdist, (POINTS,)),
    ("inplace", inplace, (POINTS[:, 0],)),
    ("lag", lag, (POINTS[:, 0].copy(), 4)),
    ("norms_loop", norms_loop, (POINTS,)),
    ("cg", cg, (MATRIX, VECTOR)),
)
"""Names, functions and arguments."""
