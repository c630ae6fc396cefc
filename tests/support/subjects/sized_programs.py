"""Programs whose loops go to numbers that are passed beside the arrays, as in PolyBench and most scientific code."""
# ruff: noqa: N803, N806, B007, F841  # as people write them

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Sized(NamedTuple):
    """A function and its arguments: arrays of `n` elements along each dimension, and sizes that are `more` than `n`."""

    function: Callable[..., Any]
    make: Callable[[int, int], tuple[Any, ...]]


SIZED: list[Sized] = []


def sized(make: Callable[[int, int], tuple[Any, ...]]) -> Callable[[Any], Any]:
    """Add a program with what makes its arguments."""

    def keep(function: Any) -> Any:
        SIZED.append(Sized(function, make))
        return function

    return keep


def vector(n: int, seed: int = 0) -> Any:
    return np.random.default_rng(n + seed).random(n)


def matrix(n: int, m: int | None = None, seed: int = 0) -> Any:
    return np.random.default_rng(n + seed).random((n, n if m is None else m))


def positive(n: int) -> Any:
    made = matrix(n)
    return made @ made.T + n * np.eye(n)


@sized(lambda n, more: (3, n + more, vector(n), vector(n, 1)))
def jacobi_1d(TSTEPS: int, N: int, A: Any, B: Any) -> None:
    for t in range(1, TSTEPS):
        for i in range(1, N - 1):
            B[i] = 0.33333 * (A[i - 1] + A[i] + A[i + 1])
        for i in range(1, N - 1):
            A[i] = 0.33333 * (B[i - 1] + B[i] + B[i + 1])


@sized(lambda n, more: (10, n + more, vector(n), vector(n, 1)))
def jacobi_1d_of_slices(TSTEPS: int, N: int, A: Any, B: Any) -> None:
    for t in range(1, TSTEPS):
        B[1 : N - 1] = 0.33333 * (A[: N - 2] + A[1 : N - 1] + A[2:N])
        A[1 : N - 1] = 0.33333 * (B[: N - 2] + B[1 : N - 1] + B[2:N])


@sized(lambda n, more: (10, n + more, matrix(n), matrix(n, seed=1)))
def jacobi_2d(TSTEPS: int, N: int, A: Any, B: Any) -> None:
    for t in range(1, TSTEPS):
        for i in range(1, N - 1):
            B[i, 1:-1] = 0.2 * (A[i, 1:-1] + A[i, :-2] + A[i, 2:] + A[i + 1, 1:-1] + A[i - 1, 1:-1])
        for i in range(1, N - 1):
            A[i, 1:-1] = 0.2 * (B[i, 1:-1] + B[i, :-2] + B[i, 2:] + B[i + 1, 1:-1] + B[i - 1, 1:-1])


@sized(lambda n, more: (3, n + more, np.random.default_rng(n).random((n, 6, 7))))
def heat_3d(TSTEPS: int, N: int, A: Any) -> Any:
    B = A.copy()
    for t in range(1, TSTEPS + 9):
        for i in range(1, N - 1):
            B[i, 1:-1, 1:-1] = (
                0.125 * (A[i + 1, 1:-1, 1:-1] - 2.0 * A[i, 1:-1, 1:-1] + A[i - 1, 1:-1, 1:-1])
                + 0.125 * (A[i, 2:, 1:-1] - 2.0 * A[i, 1:-1, 1:-1] + A[i, :-2, 1:-1])
                + A[i, 1:-1, 1:-1]
            )
        A[:] = B
    return A


@sized(lambda n, more: (10, n + more, matrix(n)))
def seidel_2d(TSTEPS: int, N: int, A: Any) -> None:
    for t in range(TSTEPS - 1):
        for i in range(1, N - 1):
            A[i, 1:-1] += (
                A[i - 1, :-2] + A[i - 1, 1:-1] + A[i - 1, 2:] + A[i, 2:] + A[i + 1, :-2] + A[i + 1, 1:-1]
                + A[i + 1, 2:]
            )  # fmt: skip
            for j in range(1, N - 1):
                A[i, j] += A[i, j - 1]
                A[i, j] /= 9.0


@sized(lambda n, more: (10, n + more, matrix(n)))
def adi(TSTEPS: int, N: int, u: Any) -> None:
    v = np.zeros(u.shape, dtype=u.dtype)
    p = np.zeros(u.shape, dtype=u.dtype)
    q = np.zeros(u.shape, dtype=u.dtype)
    a, b, c, d, e, f = -0.3, 1.6, -0.3, -0.2, 1.4, -0.2
    for t in range(1, TSTEPS + 1):
        v[0, 1 : N - 1] = 1.0
        p[1 : N - 1, 0] = 0.0
        q[1 : N - 1, 0] = v[0, 1 : N - 1]
        for j in range(1, N - 1):
            p[1 : N - 1, j] = -c / (a * p[1 : N - 1, j - 1] + b)
            q[1 : N - 1, j] = (
                -d * u[j, 0 : N - 2] + (1.0 + 2.0 * d) * u[j, 1 : N - 1] - f * u[j, 2:N]
                - a * q[1 : N - 1, j - 1]
            ) / (a * p[1 : N - 1, j - 1] + b)  # fmt: skip
        v[N - 1, 1 : N - 1] = 1.0
        for j in range(N - 2, 0, -1):
            v[j, 1 : N - 1] = p[1 : N - 1, j] * v[j + 1, 1 : N - 1] + q[1 : N - 1, j]
        u[1 : N - 1, 0] = 1.0
        for j in range(1, N - 1):
            u[1 : N - 1, j] += 0.1 * v[j, 1 : N - 1]


@sized(lambda n, more: (n + more, float(n), matrix(n + 5, n)))
def covariance(M: int, float_n: float, data: Any) -> Any:
    mean = np.mean(data, axis=0)
    data -= mean
    cov = np.zeros((M, M), dtype=data.dtype)
    for i in range(M):
        cov[i:M, i] = data[:, i] @ data[:, i:M] / (float_n - 1.0)
        cov[i, i:M] = data[:, i] @ data[:, i:M] / (float_n - 1.0)
    return cov


@sized(lambda n, more: (n + more, float(n), matrix(n + 5, n)))
def covariance_by_transfer(M: int, float_n: float, data: Any) -> Any:
    data -= np.mean(data, axis=0)
    cov = np.zeros((M, M), dtype=data.dtype)
    for i in range(M):
        cov[i:M, i] = cov[i, i:M] = data[:, i] @ data[:, i:M] / (float_n - 1.0)
    return cov


@sized(lambda n, more: (n + more, float(n), matrix(n + 5, n)))
def correlation(M: int, float_n: float, data: Any) -> Any:
    mean = np.mean(data, axis=0)
    stddev = np.std(data, axis=0)
    stddev[stddev <= 0.1] = 1.0
    data -= mean
    data /= np.sqrt(float_n) * stddev
    corr = np.eye(M, dtype=data.dtype)
    for i in range(M - 1):
        corr[i + 1 : M, i] = corr[i, i + 1 : M] = data[:, i] @ data[:, i + 1 : M]
    return corr


@sized(lambda n, more: (n + more, matrix(n)))
def floyd_warshall(N: int, path: Any) -> None:
    for k in range(N):
        path[:] = np.minimum(path[:], np.add.outer(path[:, k], path[k, :]))


@sized(lambda n, more: (n + more, matrix(n)))
def floyd_warshall_by_rows(N: int, path: Any) -> None:
    for k in range(N):
        for i in range(N):
            path[i, :] = np.minimum(path[i, :], path[i, k] + path[k, :])


@sized(lambda n, more: (n + more, positive(n)))
def lu(N: int, A: Any) -> None:
    for i in range(N):
        for j in range(i):
            A[i, j] -= A[i, :j] @ A[:j, j]
            A[i, j] /= A[j, j]
        for j in range(i, N):
            A[i, j] -= A[i, :i] @ A[:i, j]


@sized(lambda n, more: (n + more, positive(n), vector(n)))
def ludcmp(N: int, A: Any, b: Any) -> Any:
    x = np.zeros_like(b)
    y = np.zeros_like(b)
    for i in range(N):
        for j in range(i):
            A[i, j] -= A[i, :j] @ A[:j, j]
            A[i, j] /= A[j, j]
        for j in range(i, N):
            A[i, j] -= A[i, :i] @ A[:i, j]
    for i in range(N):
        y[i] = b[i] - A[i, :i] @ y[:i]
    for i in range(N - 1, -1, -1):
        x[i] = (y[i] - A[i, i + 1 :] @ x[i + 1 :]) / A[i, i]
    return x, y


@sized(lambda n, more: (n + more, positive(n)))
def cholesky(N: int, A: Any) -> None:
    A[0, 0] = np.sqrt(A[0, 0])
    for i in range(1, N):
        for j in range(i):
            A[i, j] -= np.dot(A[i, :j], A[j, :j])
            A[i, j] /= A[j, j]
        A[i, i] -= np.dot(A[i, :i], A[i, :i])
        A[i, i] = np.sqrt(A[i, i])


@sized(lambda n, more: (n + more, positive(n), np.zeros(n), vector(n)))
def trisolv(N: int, L: Any, x: Any, b: Any) -> None:
    for i in range(N):
        x[i] = (b[i] - L[i, :i] @ x[:i]) / L[i, i]


@sized(lambda n, more: (n + more, vector(n) / n))
def durbin(N: int, r: Any) -> Any:
    y = np.zeros_like(r)
    alpha = -r[0]
    beta = 1.0
    y[0] = -r[0]
    for k in range(1, N):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


@sized(lambda n, more: (n + 5, n + more, matrix(n + 5, n)))
def gramschmidt(M: int, N: int, A: Any) -> Any:
    Q = np.zeros_like(A)
    R = np.zeros((N, N), dtype=A.dtype)
    for k in range(N):
        nrm = np.dot(A[:, k], A[:, k])
        R[k, k] = np.sqrt(nrm)
        Q[:, k] = A[:, k] / R[k, k]
        for j in range(k + 1, N):
            R[k, j] = np.dot(Q[:, k], A[:, j])
            A[:, j] -= Q[:, k] * R[k, j]
    return Q, R


@sized(lambda n, more: (n + more, np.random.default_rng(n).integers(0, 4, n)))
def nussinov(N: int, seq: Any) -> Any:
    table = np.zeros((N, N), np.int32)
    for i in range(N - 1, -1, -1):
        for j in range(i + 1, N):
            if j - 1 >= 0:
                table[i, j] = max(table[i, j], table[i, j - 1])
            if i + 1 < N:
                table[i, j] = max(table[i, j], table[i + 1, j])
            if j - 1 >= 0 and i + 1 < N:
                if i < j - 1:
                    table[i, j] = max(table[i, j], table[i + 1, j - 1] + (1 if seq[i] + seq[j] == 3 else 0))
                else:
                    table[i, j] = max(table[i, j], table[i + 1, j - 1])
            for k in range(i + 1, j):
                table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])
    return table


@sized(lambda n, more: (n + more, n + 2, matrix(n, n + 2)))
def deriche(W: int, H: int, img: Any) -> Any:
    y1 = np.zeros_like(img)
    y1[:, 0] = img[:, 0]
    y1[:, 1] = 0.3 * img[:, 1] + 0.2 * img[:, 0] + 0.5 * y1[:, 0]
    for j in range(2, H):
        y1[:, j] = 0.3 * img[:, j] + 0.2 * img[:, j - 1] + 0.5 * y1[:, j - 1] - 0.1 * y1[:, j - 2]
    out = np.zeros_like(img)
    out[-1, :] = y1[-1, :]
    for i in range(W - 2, -1, -1):
        out[i, :] = 0.5 * y1[i + 1, :] + 0.4 * out[i + 1, :]
    return out


@sized(lambda n, more: (9, n + more, n + 2, matrix(n, n + 2), matrix(n, n + 2, 1), matrix(n, n + 2, 2), vector(9)))
def fdtd_2d(TMAX: int, NX: int, NY: int, ex: Any, ey: Any, hz: Any, _fict_: Any) -> None:
    for t in range(TMAX):
        ey[0, :] = _fict_[t]
        for i in range(1, NX):
            ey[i, :] -= 0.5 * (hz[i, :] - hz[i - 1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        for i in range(NX - 1):
            hz[i, : NY - 1] -= 0.7 * (ex[i, 1:NY] - ex[i, : NY - 1] + ey[i + 1, : NY - 1] - ey[i, : NY - 1])
