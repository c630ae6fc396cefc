"""Fluids in two dimensions: shallow water, a cavity with a moving lid, a lattice Boltzmann method."""

from typing import Any

import numpy as np

from jitkernels.benchmarks.science.science_program import science_program, uniform


def shallow_water_arrays(h: Any, dt: Any, dx: Any, steps: Any) -> Any:
    g = 9.81
    h = h.copy()
    u = np.zeros_like(h)
    v = np.zeros_like(h)
    for _ in range(steps):
        dhdx = np.zeros_like(h)
        dhdy = np.zeros_like(h)
        dhdx[:, 1:-1] = (h[:, 2:] - h[:, :-2]) / (2 * dx)
        dhdy[1:-1, :] = (h[2:, :] - h[:-2, :]) / (2 * dx)
        u -= dt * g * dhdx
        v -= dt * g * dhdy
        u[:, 0] = u[:, -1] = 0
        v[0, :] = v[-1, :] = 0
        hu, hv = h * u, h * v
        h[1:-1, 1:-1] -= dt * ((hu[1:-1, 2:] - hu[1:-1, :-2]) / (2 * dx) + (hv[2:, 1:-1] - hv[:-2, 1:-1]) / (2 * dx))
    return h, u, v


def shallow_water_loops(h: Any, dt: Any, dx: Any, steps: Any) -> Any:
    g = 9.81
    ny, nx = h.shape
    h = h.copy()
    u = np.zeros((ny, nx))
    v = np.zeros((ny, nx))
    hu = np.zeros((ny, nx))
    hv = np.zeros((ny, nx))
    for _ in range(steps):
        for i in range(ny):
            for j in range(1, nx - 1):
                u[i, j] -= dt * g * (h[i, j + 1] - h[i, j - 1]) / (2 * dx)
        for i in range(1, ny - 1):
            for j in range(nx):
                v[i, j] -= dt * g * (h[i + 1, j] - h[i - 1, j]) / (2 * dx)
        for i in range(ny):
            for j in range(nx):
                hu[i, j] = h[i, j] * u[i, j]
                hv[i, j] = h[i, j] * v[i, j]
        for i in range(1, ny - 1):
            for j in range(1, nx - 1):
                dhu = (hu[i, j + 1] - hu[i, j - 1]) / (2 * dx)
                dhv = (hv[i + 1, j] - hv[i - 1, j]) / (2 * dx)
                h[i, j] -= dt * (dhu + dhv)
    return h, u, v


def cavity_arrays(n: Any, steps: Any, sweeps: Any, dt: Any, nu: Any) -> Any:
    """Lid-driven cavity: pressure by sweeps of Jacobi, then the velocities."""
    dx = 2.0 / (n - 1)
    u = np.zeros((n, n))
    v = np.zeros((n, n))
    p = np.zeros((n, n))
    b = np.zeros((n, n))
    for _ in range(steps):
        ux = (u[1:-1, 2:] - u[1:-1, :-2]) / (2 * dx)
        vy = (v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * dx)
        uy = (u[2:, 1:-1] - u[:-2, 1:-1]) / (2 * dx)
        vx = (v[1:-1, 2:] - v[1:-1, :-2]) / (2 * dx)
        b[1:-1, 1:-1] = (ux + vy) / dt - ux**2 - 2 * uy * vx - vy**2
        for _ in range(sweeps):
            pn = p.copy()
            p[1:-1, 1:-1] = 0.25 * (pn[1:-1, 2:] + pn[1:-1, :-2] + pn[2:, 1:-1] + pn[:-2, 1:-1] - dx**2 * b[1:-1, 1:-1])
            p[:, -1] = p[:, -2]
            p[0, :] = p[1, :]
            p[:, 0] = p[:, 1]
            p[-1, :] = 0
        un, vn = u.copy(), v.copy()
        for w, wn, dp in ((u, un, p[1:-1, 2:] - p[1:-1, :-2]), (v, vn, p[2:, 1:-1] - p[:-2, 1:-1])):
            w[1:-1, 1:-1] = (
                wn[1:-1, 1:-1]
                - un[1:-1, 1:-1] * dt / dx * (wn[1:-1, 1:-1] - wn[1:-1, :-2])
                - vn[1:-1, 1:-1] * dt / dx * (wn[1:-1, 1:-1] - wn[:-2, 1:-1])
                - dt / (2 * dx) * dp
                + nu * dt / dx**2
                * (wn[1:-1, 2:] + wn[1:-1, :-2] + wn[2:, 1:-1] + wn[:-2, 1:-1] - 4 * wn[1:-1, 1:-1])
            )  # fmt: skip
        u[0, :] = u[:, 0] = u[:, -1] = 0
        u[-1, :] = 1
        v[0, :] = v[-1, :] = v[:, 0] = v[:, -1] = 0
    return u, v, p


def cavity_loops(n: Any, steps: Any, sweeps: Any, dt: Any, nu: Any) -> Any:
    dx = 2.0 / (n - 1)
    u = np.zeros((n, n))
    v = np.zeros((n, n))
    p = np.zeros((n, n))
    b = np.zeros((n, n))
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                ux = (u[i, j + 1] - u[i, j - 1]) / (2 * dx)
                vy = (v[i + 1, j] - v[i - 1, j]) / (2 * dx)
                uy = (u[i + 1, j] - u[i - 1, j]) / (2 * dx)
                vx = (v[i, j + 1] - v[i, j - 1]) / (2 * dx)
                b[i, j] = (ux + vy) / dt - ux * ux - 2 * uy * vx - vy * vy
        for _ in range(sweeps):
            pn = p.copy()
            for i in range(1, n - 1):
                for j in range(1, n - 1):
                    p[i, j] = 0.25 * (pn[i, j + 1] + pn[i, j - 1] + pn[i + 1, j] + pn[i - 1, j] - dx * dx * b[i, j])
            for i in range(n):
                p[i, n - 1] = p[i, n - 2]
            for j in range(n):
                p[0, j] = p[1, j]
            for i in range(n):
                p[i, 0] = p[i, 1]
            for j in range(n):
                p[n - 1, j] = 0.0
        un = u.copy()
        vn = v.copy()
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                a, c = un[i, j], vn[i, j]
                lap_u = un[i, j + 1] + un[i, j - 1] + un[i + 1, j] + un[i - 1, j] - 4 * a
                lap_v = vn[i, j + 1] + vn[i, j - 1] + vn[i + 1, j] + vn[i - 1, j] - 4 * c
                u[i, j] = (
                    a - a * dt / dx * (a - un[i, j - 1]) - c * dt / dx * (a - un[i - 1, j])
                    - dt / (2 * dx) * (p[i, j + 1] - p[i, j - 1]) + nu * dt / dx**2 * lap_u
                )  # fmt: skip
                v[i, j] = (
                    c - a * dt / dx * (c - vn[i, j - 1]) - c * dt / dx * (c - vn[i - 1, j])
                    - dt / (2 * dx) * (p[i + 1, j] - p[i - 1, j]) + nu * dt / dx**2 * lap_v
                )  # fmt: skip
        u[0, :] = 0.0
        u[:, 0] = 0.0
        u[:, n - 1] = 0.0
        u[n - 1, :] = 1.0
    return u, v, p


CX = np.array([0, 1, 0, -1, 0, 1, -1, -1, 1])
CY = np.array([0, 0, 1, 0, -1, 1, 1, -1, -1])
WEIGHTS = np.array([4 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 36, 1 / 36, 1 / 36, 1 / 36])


def lattice_boltzmann_arrays(f: Any, tau: Any, steps: Any) -> Any:
    f = f.copy()
    for _ in range(steps):
        for k, cx, cy in zip(range(9), CX, CY, strict=True):
            f[k] = np.roll(np.roll(f[k], cx, axis=1), cy, axis=0)
        rho = f.sum(axis=0)
        ux = np.sum(f * CX[:, None, None], axis=0) / rho
        uy = np.sum(f * CY[:, None, None], axis=0) / rho
        feq = np.zeros_like(f)
        for k, cx, cy, w in zip(range(9), CX, CY, WEIGHTS, strict=True):
            cu = cx * ux + cy * uy
            feq[k] = rho * w * (1 + 3 * cu + 9 * cu**2 / 2 - 3 * (ux**2 + uy**2) / 2)
        f += -(1.0 / tau) * (f - feq)
    return f, ux, uy


def lattice_boltzmann_loops(f: Any, tau: Any, steps: Any) -> Any:
    _, ny, nx = f.shape
    f = f.copy()
    g = np.empty_like(f)
    ux = np.zeros((ny, nx))
    uy = np.zeros((ny, nx))
    for _ in range(steps):
        for k in range(9):
            for i in range(ny):
                for j in range(nx):
                    g[k, i, j] = f[k, (i - CY[k]) % ny, (j - CX[k]) % nx]
        for i in range(ny):
            for j in range(nx):
                rho = 0.0
                mx = 0.0
                my = 0.0
                for k in range(9):
                    rho += g[k, i, j]
                    mx += CX[k] * g[k, i, j]
                    my += CY[k] * g[k, i, j]
                vx = mx / rho
                vy = my / rho
                ux[i, j] = vx
                uy[i, j] = vy
                square = vx * vx + vy * vy
                for k in range(9):
                    cu = CX[k] * vx + CY[k] * vy
                    feq = rho * WEIGHTS[k] * (1 + 3 * cu + 9 * cu * cu / 2 - 3 * square / 2)
                    g[k, i, j] -= (1.0 / tau) * (g[k, i, j] - feq)
        f, g = g, f
    return f, ux, uy


science_program(
    lambda n, _: (1 + 0.1 * uniform(n, n + 1), 0.001, 0.1, 20),
    shallow_water_arrays, shallow_water_loops,
    size=80, sizes=(4, 9, 33),
)  # fmt: skip
science_program(
    lambda n, _: (n, 5, 20, 0.001, 0.1),
    cavity_arrays, cavity_loops,
    size=41, sizes=(5, 12, 21),
)  # fmt: skip
science_program(
    lambda n, _: (1 + 0.1 * uniform(9, n, n + 2), 0.6, 5),
    lattice_boltzmann_arrays, lattice_boltzmann_loops,
    size=48, sizes=(3, 9, 20),
)  # fmt: skip
