"""Factorizations of dense matrices and direct solvers of linear systems."""

from typing import Any

import numpy as np

from jitkernels.benchmarks.science.science_program import science_program, uniform


def gauss_arrays(A: Any, b: Any) -> Any:  # noqa: N803
    """Gaussian elimination with partial pivoting."""
    A = A.copy()  # noqa: N806
    b = b.copy()
    n = len(b)
    for k in range(n - 1):
        p = np.argmax(np.abs(A[k:, k])) + k
        if p != k:
            A[[k, p]] = A[[p, k]]
            b[[k, p]] = b[[p, k]]
        for i in range(k + 1, n):
            m = A[i, k] / A[k, k]
            A[i, k:] -= m * A[k, k:]
            b[i] -= m * b[k]
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        x[i] = (b[i] - A[i, i + 1 :] @ x[i + 1 :]) / A[i, i]
    return x


def gauss_loops(A: Any, b: Any) -> Any:  # noqa: N803
    n = len(b)
    A = A.copy()  # noqa: N806
    x = b.copy()
    for k in range(n):
        p = k
        for i in range(k + 1, n):
            if abs(A[i, k]) > abs(A[p, k]):
                p = i
        if p != k:
            for j in range(n):
                tmp = A[k, j]
                A[k, j] = A[p, j]
                A[p, j] = tmp
            x[k], x[p] = x[p], x[k]
        for i in range(k + 1, n):
            m = A[i, k] / A[k, k]
            for j in range(k, n):
                A[i, j] -= m * A[k, j]
            x[i] -= m * x[k]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            x[i] -= A[i, j] * x[j]
        x[i] /= A[i, i]
    return x


def gauss_mixed(A: Any, b: Any) -> Any:  # noqa: N803
    n = A.shape[0]
    M = np.hstack([A, b.reshape(-1, 1)])  # noqa: N806
    for k in range(n):
        p = k + np.abs(M[k:, k]).argmax()
        M[[k, p], :] = M[[p, k], :]
        M[k + 1 :] -= np.outer(M[k + 1 :, k] / M[k, k], M[k])
    x = np.empty(n)
    for i in reversed(range(n)):
        x[i] = (M[i, -1] - np.dot(M[i, i + 1 : n], x[i + 1 :])) / M[i, i]
    return x


def cholesky_factor_arrays(A: Any) -> Any:  # noqa: N803
    n = A.shape[0]
    L = np.zeros((n, n))  # noqa: N806
    for j in range(n):
        L[j, j] = np.sqrt(A[j, j] - np.sum(L[j, :j] ** 2))
        L[j + 1 :, j] = (A[j + 1 :, j] - L[j + 1 :, :j] @ L[j, :j]) / L[j, j]
    return L


def cholesky_factor_loops(A: Any) -> Any:  # noqa: N803
    n = len(A)
    L = np.zeros((n, n))  # noqa: N806
    for i in range(n):
        for j in range(i + 1):
            s = A[i, j]
            for k in range(j):
                s -= L[i, k] * L[j, k]
            if i == j:
                L[i, j] = np.sqrt(s)
            else:
                L[i, j] = s / L[j, j]
    return L


def householder_arrays(A: Any) -> Any:  # noqa: N803
    m, n = A.shape
    R = A.copy()  # noqa: N806
    Q = np.eye(m)  # noqa: N806
    for k in range(n):
        x = R[k:, k]
        v = x.copy()
        v[0] += np.copysign(np.linalg.norm(x), x[0])
        v /= np.linalg.norm(v)
        R[k:, k:] -= 2 * np.outer(v, v @ R[k:, k:])
        Q[:, k:] -= 2 * np.outer(Q[:, k:] @ v, v)
    return Q, np.triu(R)


def householder_loops(A: Any) -> Any:  # noqa: N803
    m, n = A.shape
    R = A.copy()  # noqa: N806
    Q = np.eye(m)  # noqa: N806
    v = np.zeros(m)
    for k in range(n):
        norm = 0.0
        for i in range(k, m):
            norm += R[i, k] ** 2
            v[i] = R[i, k]
        norm = np.sqrt(norm)
        if v[k] >= 0:
            v[k] += norm
        else:
            v[k] -= norm
        length = 0.0
        for i in range(k, m):
            length += v[i] ** 2
        length = np.sqrt(length)
        for i in range(k, m):
            v[i] /= length
        for j in range(k, n):
            s = 0.0
            for i in range(k, m):
                s += v[i] * R[i, j]
            for i in range(k, m):
                R[i, j] -= 2 * s * v[i]
        for i in range(m):
            s = 0.0
            for j in range(k, m):
                s += Q[i, j] * v[j]
            for j in range(k, m):
                Q[i, j] -= 2 * s * v[j]
    for i in range(m):
        for j in range(min(i, n)):
            R[i, j] = 0.0
    return Q, R


def gram_schmidt_arrays(A: Any) -> Any:  # noqa: N803
    m, n = A.shape
    Q = np.zeros((m, n))  # noqa: N806
    R = np.zeros((n, n))  # noqa: N806
    for j in range(n):
        v = A[:, j].copy()
        for i in range(j):
            R[i, j] = Q[:, i] @ v
            v -= R[i, j] * Q[:, i]
        R[j, j] = np.linalg.norm(v)
        Q[:, j] = v / R[j, j]
    return Q, R


def gram_schmidt_loops(A: Any) -> Any:  # noqa: N803
    m, n = A.shape
    Q = A.copy()  # noqa: N806
    R = np.zeros((n, n))  # noqa: N806
    for j in range(n):
        norm = 0.0
        for i in range(m):
            norm += Q[i, j] * Q[i, j]
        R[j, j] = np.sqrt(norm)
        for i in range(m):
            Q[i, j] /= R[j, j]
        for k in range(j + 1, n):
            dot = 0.0
            for i in range(m):
                dot += Q[i, j] * Q[i, k]
            R[j, k] = dot
            for i in range(m):
                Q[i, k] -= dot * Q[i, j]
    return Q, R


def thomas_arrays(a: Any, b: Any, c: Any, d: Any) -> Any:
    """Many tridiagonal systems at once: one a column."""
    n = len(d)
    cp = np.zeros_like(d)
    dp = np.zeros_like(d)
    cp[0] = c[0] / b[0]
    dp[0] = d[0] / b[0]
    for i in range(1, n):
        denominator = b[i] - a[i] * cp[i - 1]
        cp[i] = c[i] / denominator
        dp[i] = (d[i] - a[i] * dp[i - 1]) / denominator
    x = np.zeros_like(d)
    x[-1] = dp[-1]
    for i in range(n - 2, -1, -1):
        x[i] = dp[i] - cp[i] * x[i + 1]
    return x


def thomas_loops(a: Any, b: Any, c: Any, d: Any) -> Any:
    n, m = d.shape
    cp = np.zeros(n)
    x = np.zeros((n, m))
    for j in range(m):
        cp[0] = c[0, j] / b[0, j]
        x[0, j] = d[0, j] / b[0, j]
        for i in range(1, n):
            den = b[i, j] - a[i, j] * cp[i - 1]
            cp[i] = c[i, j] / den
            x[i, j] = (d[i, j] - a[i, j] * x[i - 1, j]) / den
        for i in range(n - 2, -1, -1):
            x[i, j] -= cp[i] * x[i + 1, j]
    return x


def _definite(n: int) -> Any:
    matrix = uniform(n, n)
    return matrix @ matrix.T + n * np.eye(n)


science_program(
    lambda n, _: (uniform(n, n), uniform(n)),
    gauss_arrays,
    gauss_loops,
    gauss_mixed,
    size=60,
    sizes=(3, 8, 20),
    rtol=1e-7,
)
science_program(lambda n, _: (_definite(n),), cholesky_factor_arrays, cholesky_factor_loops, size=80, sizes=(1, 8, 33))
science_program(
    lambda n, _: (uniform(n + 4, n),), householder_arrays, householder_loops, size=40, sizes=(1, 8, 20), rtol=1e-7
)
science_program(
    lambda n, _: (uniform(n + 20, n),), gram_schmidt_arrays, gram_schmidt_loops, size=40, sizes=(1, 8, 20), rtol=1e-7
)
science_program(
    lambda n, _: (uniform(n, 40), 4 + uniform(n, 40, seed=1), uniform(n, 40, seed=2), uniform(n, 40, seed=3)),
    thomas_arrays, thomas_loops,
    size=200, sizes=(2, 8, 33),
)  # fmt: skip
