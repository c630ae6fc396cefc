"""Explicit finite differences on regular grids: heat, waves, advection, Burgers' equation."""

from typing import Any

import numpy as np

from jitkernels.benchmarks.science.science_program import science_program, uniform


def heat_arrays(u: Any, alpha: Any, steps: Any) -> Any:
    u = u.copy()
    for _ in range(steps):
        u[1:-1, 1:-1] += alpha * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * u[1:-1, 1:-1])
    return u


def heat_loops(u: Any, alpha: Any, steps: Any) -> Any:
    n, m = u.shape
    u = u.copy()
    new = u.copy()
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                new[i, j] = u[i, j] + alpha * (u[i + 1, j] + u[i - 1, j] + u[i, j + 1] + u[i, j - 1] - 4.0 * u[i, j])
        u, new = new, u
    return u


def heat_mixed(u: Any, alpha: Any, steps: Any) -> Any:
    for _ in range(steps):
        laplacian = np.zeros_like(u)
        laplacian[1:-1, 1:-1] = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * u[1:-1, 1:-1]
        u = u + alpha * laplacian
    return u


def wave_arrays(u0: Any, c: Any, dt: Any, dx: Any, steps: Any) -> Any:
    r2 = (c * dt / dx) ** 2
    prev = u0
    u = u0.copy()
    for _ in range(steps):
        lap = (
            np.roll(u, 1, axis=0) + np.roll(u, -1, axis=0) + np.roll(u, 1, axis=1) + np.roll(u, -1, axis=1) - 4 * u
        )  # periodic boundaries
        nxt = 2 * u - prev + r2 * lap
        prev, u = u, nxt
    return u


def wave_loops(u0: Any, c: Any, dt: Any, dx: Any, steps: Any) -> Any:
    n, m = u0.shape
    r2 = (c * dt / dx) ** 2
    prev = u0.copy()
    u = u0.copy()
    nxt = np.empty_like(u0)
    for _ in range(steps):
        for i in range(n):
            for j in range(m):
                lap = u[(i - 1) % n, j] + u[(i + 1) % n, j] + u[i, (j - 1) % m] + u[i, (j + 1) % m] - 4 * u[i, j]
                nxt[i, j] = 2 * u[i, j] - prev[i, j] + r2 * lap
        prev, u, nxt = u, nxt, prev
    return u


def wave_mixed(u0: Any, c: Any, dt: Any, dx: Any, steps: Any) -> Any:
    r2 = (c * dt / dx) ** 2
    n, m = u0.shape
    history = np.zeros((3, n + 2, m + 2))
    history[0, 1:-1, 1:-1] = u0
    history[1, 1:-1, 1:-1] = u0
    for step in range(steps):
        old, now, new = step % 3, (step + 1) % 3, (step + 2) % 3
        u = history[now]
        u[0, :] = u[-2, :]
        u[-1, :] = u[1, :]
        u[:, 0] = u[:, -2]
        u[:, -1] = u[:, 1]
        lap = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
        history[new, 1:-1, 1:-1] = 2 * u[1:-1, 1:-1] - history[old, 1:-1, 1:-1] + r2 * lap
    return history[(steps + 1) % 3, 1:-1, 1:-1].copy()


def advection_arrays(q: Any, velocity: Any, dt: Any, dx: Any, steps: Any) -> Any:
    """Lax-Wendroff fluxes with a minmod limiter, periodic."""
    nu = velocity * dt / dx
    for _ in range(steps):
        dq = np.roll(q, -1) - q
        dqm = q - np.roll(q, 1)
        slope = np.where(dq * dqm > 0, np.where(np.abs(dq) < np.abs(dqm), dq, dqm), 0.0)
        flux = q + 0.5 * (1 - nu) * slope
        q = q - nu * (flux - np.roll(flux, 1))
    return q


def advection_loops(q: Any, velocity: Any, dt: Any, dx: Any, steps: Any) -> Any:
    n = len(q)
    nu = velocity * dt / dx
    q = q.copy()
    flux = np.zeros(n)
    for _ in range(steps):
        for i in range(n):
            right = q[i + 1] if i < n - 1 else q[0]
            left = q[i - 1] if i > 0 else q[n - 1]
            dq = right - q[i]
            dqm = q[i] - left
            slope = 0.0
            if dq * dqm > 0:
                slope = dq if abs(dq) < abs(dqm) else dqm
            flux[i] = q[i] + 0.5 * (1 - nu) * slope
        last = flux[n - 1]
        for i in range(n):
            q[i] -= nu * (flux[i] - last)
            last = flux[i]
    return q


def burgers_arrays(u: Any, v: Any, nu: Any, dt: Any, dx: Any, steps: Any) -> Any:
    u, v = u.copy(), v.copy()
    for _ in range(steps):
        un, vn = u.copy(), v.copy()
        inner = (slice(1, -1), slice(1, -1))
        for w, wn in ((u, un), (v, vn)):
            w[inner] = (
                wn[inner]
                - dt / dx * un[inner] * (wn[inner] - wn[:-2, 1:-1])
                - dt / dx * vn[inner] * (wn[inner] - wn[1:-1, :-2])
                + nu * dt / dx**2 * (wn[2:, 1:-1] + wn[:-2, 1:-1] + wn[1:-1, 2:] + wn[1:-1, :-2] - 4 * wn[inner])
            )
        u[0, :] = u[-1, :] = u[:, 0] = u[:, -1] = 1.0
        v[0, :] = v[-1, :] = v[:, 0] = v[:, -1] = 1.0
    return u, v


def burgers_loops(u: Any, v: Any, nu: Any, dt: Any, dx: Any, steps: Any) -> Any:
    ny, nx = u.shape
    u = u.copy()
    v = v.copy()
    for _ in range(steps):
        un = u.copy()
        vn = v.copy()
        for i in range(1, ny - 1):
            for j in range(1, nx - 1):
                a = un[i, j]
                b = vn[i, j]
                lap_u = un[i + 1, j] + un[i - 1, j] + un[i, j + 1] + un[i, j - 1] - 4 * a
                lap_v = vn[i + 1, j] + vn[i - 1, j] + vn[i, j + 1] + vn[i, j - 1] - 4 * b
                u[i, j] = a - dt / dx * (a * (a - un[i - 1, j]) + b * (a - un[i, j - 1])) + nu * dt / dx**2 * lap_u
                v[i, j] = b - dt / dx * (a * (b - vn[i - 1, j]) + b * (b - vn[i, j - 1])) + nu * dt / dx**2 * lap_v
        for i in range(ny):
            u[i, 0] = u[i, nx - 1] = v[i, 0] = v[i, nx - 1] = 1.0
        for j in range(nx):
            u[0, j] = u[ny - 1, j] = v[0, j] = v[ny - 1, j] = 1.0
    return u, v


science_program(
    lambda n, dtype: (uniform(n, n + 2, dtype=dtype), 0.1, 20),
    heat_arrays, heat_loops, heat_mixed,
    size=100, sizes=(3, 8, 33), dtypes=("float64", "float32"),
)  # fmt: skip
science_program(
    lambda n, dtype: (uniform(n, n + 3, dtype=dtype), 1.0, 0.1, 0.2, 20),
    wave_arrays, wave_loops, wave_mixed,
    size=100, sizes=(3, 8, 33),
)  # fmt: skip
science_program(
    lambda n, dtype: (uniform(n, dtype=dtype), 1.0, 0.005, 0.01, 50),
    advection_arrays, advection_loops,
    size=2000, sizes=(3, 8, 65),
)  # fmt: skip
science_program(
    lambda n, dtype: (1 + uniform(n, n, dtype=dtype), 1 + uniform(n, n, dtype=dtype, seed=1), 0.05, 0.001, 0.05, 10),
    burgers_arrays, burgers_loops,
    size=80, sizes=(4, 9, 33),
)  # fmt: skip
