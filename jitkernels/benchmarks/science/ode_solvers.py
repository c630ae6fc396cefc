"""Ordinary differential equations and systems of nonlinear equations."""

from typing import Any

import numpy as np

from jitkernels.benchmarks.science.science_program import science_program, uniform


def _lorenz(y: Any) -> Any:
    return np.array([10.0 * (y[1] - y[0]), y[0] * (28.0 - y[2]) - y[1], y[0] * y[1] - 8.0 / 3.0 * y[2]])


def lorenz_arrays(y0: Any, dt: Any, steps: Any) -> Any:
    """The classic Runge-Kutta method."""
    trajectory = np.empty((steps + 1, 3))
    trajectory[0] = y0
    for i in range(steps):
        y = trajectory[i]
        k1 = _lorenz(y)
        k2 = _lorenz(y + dt / 2 * k1)
        k3 = _lorenz(y + dt / 2 * k2)
        k4 = _lorenz(y + dt * k3)
        trajectory[i + 1] = y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return trajectory


def _slopes(x: float, y: float, z: float) -> tuple[float, float, float]:
    return 10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z


def lorenz_loops(y0: Any, dt: Any, steps: Any) -> Any:
    out = np.empty((steps + 1, 3))
    x, y, z = y0[0], y0[1], y0[2]
    out[0, 0], out[0, 1], out[0, 2] = x, y, z
    for i in range(steps):
        a1, b1, c1 = _slopes(x, y, z)
        a2, b2, c2 = _slopes(x + dt / 2 * a1, y + dt / 2 * b1, z + dt / 2 * c1)
        a3, b3, c3 = _slopes(x + dt / 2 * a2, y + dt / 2 * b2, z + dt / 2 * c2)
        a4, b4, c4 = _slopes(x + dt * a3, y + dt * b3, z + dt * c3)
        x += dt / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
        y += dt / 6 * (b1 + 2 * b2 + 2 * b3 + b4)
        z += dt / 6 * (c1 + 2 * c2 + 2 * c3 + c4)
        out[i + 1, 0] = x
        out[i + 1, 1] = y
        out[i + 1, 2] = z
    return out


def lorenz_mixed(y0: Any, dt: Any, steps: Any) -> Any:
    def f(u: Any) -> Any:
        x, y, z = u
        return np.array([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z])

    u = y0
    result = [u]
    for _ in range(steps):
        k1 = f(u)
        k2 = f(u + 0.5 * dt * k1)
        k3 = f(u + 0.5 * dt * k2)
        k4 = f(u + dt * k3)
        u = u + dt * (k1 + 2 * k2 + 2 * k3 + k4) / 6
        result.append(u)
    return np.array(result)


def adaptive_arrays(y0: Any, t1: Any, tol: Any) -> Any:
    """Bogacki-Shampine steps of adapted size: coupled pendulums."""

    def f(y: Any) -> Any:
        n = len(y) // 2
        q, p = y[:n], y[n:]
        force = -np.sin(q)
        force[:-1] += 0.5 * (q[1:] - q[:-1])
        force[1:] -= 0.5 * (q[1:] - q[:-1])
        return np.concatenate([p, force])

    t, h, y = 0.0, 0.1, y0.copy()
    k1 = f(y)
    accepted = 0
    while t < t1:
        h = min(h, t1 - t)
        k2 = f(y + 0.5 * h * k1)
        k3 = f(y + 0.75 * h * k2)
        new = y + h * (2 / 9 * k1 + 1 / 3 * k2 + 4 / 9 * k3)
        k4 = f(new)
        error = np.max(np.abs(h * (-5 / 72 * k1 + 1 / 12 * k2 + 1 / 9 * k3 - 1 / 8 * k4)))
        if error <= tol:
            t, y, k1 = t + h, new, k4
            accepted += 1
        h *= min(5.0, max(0.2, 0.9 * (tol / max(error, 1e-16)) ** (1 / 3)))
    return y, accepted


def _pendulums(y: Any, out: Any) -> None:
    n = len(y) // 2
    for i in range(n):
        out[i] = y[n + i]
        force = -np.sin(y[i])
        if i < n - 1:
            force += 0.5 * (y[i + 1] - y[i])
        if i > 0:
            force -= 0.5 * (y[i] - y[i - 1])
        out[n + i] = force


def adaptive_loops(y0: Any, t1: Any, tol: Any) -> Any:
    m = len(y0)
    y = y0.copy()
    k1, k2, k3, k4 = np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m)
    stage = np.zeros(m)
    t = 0.0
    h = 0.1
    accepted = 0
    _pendulums(y, k1)
    while t < t1:
        h = min(h, t1 - t)
        for i in range(m):
            stage[i] = y[i] + 0.5 * h * k1[i]
        _pendulums(stage, k2)
        for i in range(m):
            stage[i] = y[i] + 0.75 * h * k2[i]
        _pendulums(stage, k3)
        for i in range(m):
            stage[i] = y[i] + h * (2 / 9 * k1[i] + 1 / 3 * k2[i] + 4 / 9 * k3[i])
        _pendulums(stage, k4)
        error = 0.0
        for i in range(m):
            e = abs(h * (-5 / 72 * k1[i] + 1 / 12 * k2[i] + 1 / 9 * k3[i] - 1 / 8 * k4[i]))
            if e > error:
                error = e
        if error <= tol:
            t += h
            accepted += 1
            for i in range(m):
                y[i] = stage[i]
                k1[i] = k4[i]
        h *= min(5.0, max(0.2, 0.9 * (tol / max(error, 1e-16)) ** (1 / 3)))
    return y, accepted


def newton_arrays(x0: Any, tol: Any, maxiter: Any) -> Any:
    """Broyden's tridiagonal system by Newton's method."""
    x = x0.copy()
    n = len(x)
    for k in range(maxiter):  # noqa: B007
        F = (3 - 2 * x) * x + 1  # noqa: N806
        F[1:] -= x[:-1]
        F[:-1] -= 2 * x[1:]
        J = np.diag(3 - 4 * x) + np.diag(-np.ones(n - 1), -1) + np.diag(-2 * np.ones(n - 1), 1)  # noqa: N806
        dx = np.linalg.solve(J, -F)
        x += dx
        if np.max(np.abs(dx)) < tol:
            break
    return x, k


def newton_loops(x0: Any, tol: Any, maxiter: Any) -> Any:
    n = x0.shape[0]
    x = x0.copy()
    F = np.zeros(n)  # noqa: N806
    d = np.zeros(n)
    for k in range(maxiter):  # noqa: B007
        for i in range(n):
            value = (3 - 2 * x[i]) * x[i] + 1
            if i > 0:
                value -= x[i - 1]
            if i < n - 1:
                value -= 2 * x[i + 1]
            F[i] = -value
            d[i] = 3 - 4 * x[i]
        for i in range(1, n):
            m = -1.0 / d[i - 1]
            d[i] -= m * -2.0
            F[i] -= m * F[i - 1]
        F[n - 1] /= d[n - 1]
        for i in range(n - 2, -1, -1):
            F[i] = (F[i] + 2.0 * F[i + 1]) / d[i]
        largest = 0.0
        for i in range(n):
            x[i] += F[i]
            largest = max(largest, abs(F[i]))
        if largest < tol:
            break
    return x, k


def crank_nicolson_arrays(u: Any, r: Any, steps: Any) -> Any:
    n = len(u)
    A = (1 + r) * np.eye(n) - r / 2 * (np.eye(n, k=1) + np.eye(n, k=-1))  # noqa: N806
    B = (1 - r) * np.eye(n) + r / 2 * (np.eye(n, k=1) + np.eye(n, k=-1))  # noqa: N806
    M = np.linalg.solve(A, B)  # noqa: N806
    for _ in range(steps):
        u = M @ u
    return u


def crank_nicolson_loops(u: Any, r: Any, steps: Any) -> Any:
    n = u.size
    u = u.copy()
    c = np.empty(n)
    d = np.empty(n)
    for _ in range(steps):
        for i in range(n):
            left = u[i - 1] if i > 0 else 0.0
            right = u[i + 1] if i + 1 < n else 0.0
            rhs = (1 - r) * u[i] + r / 2 * (left + right)
            if i == 0:
                c[0] = -r / 2 / (1 + r)
                d[0] = rhs / (1 + r)
            else:
                den = (1 + r) + r / 2 * c[i - 1]
                c[i] = -r / 2 / den
                d[i] = (rhs + r / 2 * d[i - 1]) / den
        u[n - 1] = d[n - 1]
        for i in range(n - 2, -1, -1):
            u[i] = d[i] - c[i] * u[i + 1]
    return u


science_program(
    lambda n, _: (1 + uniform(3), 0.01, n), lorenz_arrays, lorenz_loops, lorenz_mixed, size=500, sizes=(1, 5, 60)
)
science_program(lambda n, _: (uniform(2 * n), 5.0, 1e-5), adaptive_arrays, adaptive_loops, size=50, sizes=(2, 7, 20))
science_program(lambda n, _: (-uniform(n), 1e-10, 20), newton_arrays, newton_loops, size=60, sizes=(2, 7, 20))
science_program(
    lambda n, _: (uniform(n), 0.3, 30), crank_nicolson_arrays, crank_nicolson_loops, size=100, sizes=(2, 7, 20)
)
