"""Iterative solvers of linear systems and eigenvalue problems."""

from typing import Any

import numpy as np

from jitkernels.benchmarks.science.science_program import science_program, uniform


def jacobi_iteration_arrays(A: Any, b: Any, tol: Any, maxiter: Any) -> Any:  # noqa: N803
    x = np.zeros_like(b)
    D = np.diag(A)  # noqa: N806
    R = A - np.diagflat(D)  # noqa: N806
    for k in range(maxiter):
        x_new = (b - np.dot(R, x)) / D
        if np.linalg.norm(x_new - x) < tol:
            return x_new, k
        x = x_new
    return x, maxiter


def jacobi_iteration_loops(A: Any, b: Any, tol: Any, maxiter: Any) -> Any:  # noqa: N803
    n = len(b)
    x = np.zeros(n)
    x_new = np.zeros(n)
    for k in range(maxiter):
        change = 0.0
        for i in range(n):
            s = 0.0
            for j in range(n):
                if j != i:
                    s += A[i, j] * x[j]
            x_new[i] = (b[i] - s) / A[i, i]
            change += (x_new[i] - x[i]) ** 2
        if np.sqrt(change) < tol:
            return x_new, k
        x, x_new = x_new, x
    return x, maxiter


def sor_arrays(A: Any, b: Any, omega: Any, tol: Any, maxiter: Any) -> Any:  # noqa: N803
    x = np.zeros(len(b))
    for _ in range(maxiter):
        for i in range(len(b)):
            sigma = A[i, :i] @ x[:i] + A[i, i + 1 :] @ x[i + 1 :]
            x[i] = (1 - omega) * x[i] + omega * (b[i] - sigma) / A[i, i]
        if np.linalg.norm(A @ x - b) < tol:
            break
    return x


def sor_loops(A: Any, b: Any, omega: Any, tol: Any, maxiter: Any) -> Any:  # noqa: N803
    n = b.shape[0]
    x = np.zeros(n)
    residual = tol + 1.0
    step = 0
    while residual >= tol and step < maxiter:
        for i in range(n):
            sigma = 0.0
            for j in range(n):
                if j != i:
                    sigma += A[i, j] * x[j]
            x[i] = (1 - omega) * x[i] + omega * (b[i] - sigma) / A[i, i]
        residual = 0.0
        for i in range(n):
            r = -b[i]
            for j in range(n):
                r += A[i, j] * x[j]
            residual += r * r
        residual = residual**0.5
        step += 1
    return x


def conjugate_gradients_arrays(A: Any, b: Any, tol: Any) -> Any:  # noqa: N803
    x = np.zeros_like(b)
    r = b - A @ x
    p = r.copy()
    rs = r @ r
    for _ in range(len(b)):
        Ap = A @ p  # noqa: N806
        alpha = rs / (p @ Ap)
        x += alpha * p
        r -= alpha * Ap
        rs_new = r @ r
        if np.sqrt(rs_new) < tol:
            break
        p = r + (rs_new / rs) * p
        rs = rs_new
    return x


def conjugate_gradients_loops(A: Any, b: Any, tol: Any) -> Any:  # noqa: N803
    n = b.size
    x = np.zeros(n)
    r = b.copy()
    p = b.copy()
    q = np.zeros(n)
    rs = 0.0
    for i in range(n):
        rs += r[i] * r[i]
    for _ in range(n):
        pq = 0.0
        for i in range(n):
            q[i] = 0.0
            for j in range(n):
                q[i] += A[i, j] * p[j]
            pq += p[i] * q[i]
        alpha = rs / pq
        rs_new = 0.0
        for i in range(n):
            x[i] += alpha * p[i]
            r[i] -= alpha * q[i]
            rs_new += r[i] * r[i]
        if np.sqrt(rs_new) < tol:
            break
        beta = rs_new / rs
        for i in range(n):
            p[i] = r[i] + beta * p[i]
        rs = rs_new
    return x


def conjugate_gradients_mixed(A: Any, b: Any, tol: Any) -> Any:  # noqa: N803
    x = np.zeros(b.shape[0])
    r = b - A.dot(x)
    d = r
    delta = np.dot(r.T, r)
    k = 0
    while k < b.shape[0] and np.sqrt(delta) >= tol:
        q = A.dot(d)
        alpha = delta / np.dot(d, q)
        x = x + alpha * d
        r = r - alpha * q
        delta, old = np.dot(r, r), delta
        d = r + delta / old * d
        k += 1
    return x


def power_iteration_arrays(A: Any, steps: Any) -> Any:  # noqa: N803
    v = np.ones(A.shape[0])
    eigenvalue = 0.0
    for _ in range(steps):
        w = A @ v
        v = w / np.linalg.norm(w)
        eigenvalue = v @ A @ v
    return eigenvalue, v


def power_iteration_loops(A: Any, steps: Any) -> Any:  # noqa: N803
    n = A.shape[0]
    v = np.ones(n)
    w = np.zeros(n)
    eigenvalue = 0.0
    for _ in range(steps):
        norm = 0.0
        for i in range(n):
            w[i] = 0.0
            for j in range(n):
                w[i] += A[i, j] * v[j]
            norm += w[i] ** 2
        norm = np.sqrt(norm)
        for i in range(n):
            v[i] = w[i] / norm
        eigenvalue = 0.0
        for i in range(n):
            for j in range(n):
                eigenvalue += v[i] * A[i, j] * v[j]
    return eigenvalue, v


def _system(n: int) -> tuple[Any, Any]:
    matrix = uniform(n, n)
    return matrix + matrix.T + 2 * n * np.eye(n), uniform(n, seed=1)


science_program(
    lambda n, _: (*_system(n), 1e-10, 100),
    jacobi_iteration_arrays, jacobi_iteration_loops,
    size=80, sizes=(3, 8, 33),
)  # fmt: skip
science_program(lambda n, _: (*_system(n), 1.1, 1e-9, 50), sor_arrays, sor_loops, size=60, sizes=(3, 8, 33))
science_program(
    lambda n, _: (*_system(n), 1e-9),
    conjugate_gradients_arrays, conjugate_gradients_loops, conjugate_gradients_mixed,
    size=100, sizes=(3, 8, 33),
)  # fmt: skip
science_program(lambda n, _: (_system(n)[0], 30), power_iteration_arrays, power_iteration_loops, size=100)
