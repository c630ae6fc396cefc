"""Poisson's equation: red-black relaxation, a V-cycle of multigrid, and a spectral solver."""

from typing import Any

import numpy as np

from jitkernels.benchmarks.science.science_program import science_program, uniform


def red_black_arrays(u: Any, f: Any, h: Any, sweeps: Any) -> Any:
    u = u.copy()
    for _ in range(sweeps):
        for a, b in ((1, 1), (2, 2), (1, 2), (2, 1)):
            u[a:-1:2, b:-1:2] = 0.25 * (
                u[a - 1 : -2 : 2, b:-1:2] + u[a + 1 :: 2, b:-1:2] + u[a:-1:2, b - 1 : -2 : 2] + u[a:-1:2, b + 1 :: 2]
                - h * h * f[a:-1:2, b:-1:2]
            )  # fmt: skip
    return u


def red_black_loops(u: Any, f: Any, h: Any, sweeps: Any) -> Any:
    n, m = u.shape
    u = u.copy()
    for _ in range(sweeps):
        for color in range(2):
            for i in range(1, n - 1):
                for j in range(1 + (i + 1 + color) % 2, m - 1, 2):
                    u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - h * h * f[i, j])
    return u


def _smooth(u: Any, f: Any, h: Any, sweeps: Any) -> Any:
    for _ in range(sweeps):
        new = u.copy()
        new[1:-1] = u[1:-1] + 2 / 3 * (0.5 * (u[:-2] + u[2:] + h * h * f[1:-1]) - u[1:-1])
        u = new
    return u


def _residual(u: Any, f: Any, h: Any) -> Any:
    r = np.zeros_like(u)
    r[1:-1] = f[1:-1] + (u[:-2] - 2 * u[1:-1] + u[2:]) / h**2
    return r


def _v_cycle(u: Any, f: Any, h: Any, level: int) -> Any:
    u = _smooth(u, f, h, 3)
    if level == 0:
        return _smooth(u, f, h, 10)
    r = _residual(u, f, h)
    coarse = np.zeros(len(u) // 2 + 1)
    coarse[1:-1] = 0.25 * (r[1:-2:2] + 2 * r[2:-1:2] + r[3::2])
    e = _v_cycle(np.zeros_like(coarse), coarse, 2 * h, level - 1)
    fine = np.zeros_like(u)
    fine[::2] = e
    fine[1::2] = 0.5 * (e[:-1] + e[1:])
    return _smooth(u + fine, f, h, 3)


def v_cycles_arrays(f: Any, cycles: Any) -> Any:
    h = 1.0 / (len(f) - 1)
    u = np.zeros_like(f)
    for _ in range(cycles):
        u = _v_cycle(u, f, h, 3)
    return u


def _relaxed(u: Any, f: Any, h: Any, sweeps: Any) -> None:
    n = len(u)
    for _ in range(sweeps):
        left = u[0]
        for i in range(1, n - 1):
            here = u[i]
            u[i] = here + 2 / 3 * (0.5 * (left + u[i + 1] + h * h * f[i]) - here)
            left = here


def v_cycles_loops(f: Any, cycles: Any) -> Any:
    n = len(f)
    levels = 4
    us = np.zeros((levels, n))
    fs = np.zeros((levels, n))
    fs[0] = f
    for _ in range(cycles):
        m, h = n, 1.0 / (n - 1)
        for level in range(levels - 1):
            u, right = us[level, :m], fs[level, :m]
            _relaxed(u, right, h, 3)
            half = m // 2 + 1
            for i in range(1, half - 1):
                total = 0.0
                for k in range(-1, 2):
                    j = 2 * i + k
                    r = right[j] + (u[j - 1] - 2 * u[j] + u[j + 1]) / h**2
                    total += 0.5 * r if k == 0 else 0.25 * r
                fs[level + 1, i] = total
            us[level + 1, :half] = 0.0
            m, h = half, 2 * h
        _relaxed(us[levels - 1, :m], fs[levels - 1, :m], h, 13)
        for level in range(levels - 2, -1, -1):
            e = us[level + 1]
            fine = 2 * (m - 1) + 1
            for i in range(m):
                us[level, 2 * i] += e[i]
            for i in range(m - 1):
                us[level, 2 * i + 1] += 0.5 * (e[i] + e[i + 1])
            m, h = fine, h / 2
            _relaxed(us[level, :m], fs[level, :m], h, 3)
    return us[0].copy()


def spectral_poisson_arrays(f: Any, length: Any) -> Any:
    n, m = f.shape
    kx = 2 * np.pi * np.fft.fftfreq(n, length / n)
    ky = 2 * np.pi * np.fft.fftfreq(m, length / m)
    k2 = kx[:, None] ** 2 + ky[None, :] ** 2
    k2[0, 0] = 1.0
    u_hat = -np.fft.fft2(f) / k2
    u_hat[0, 0] = 0
    return np.real(np.fft.ifft2(u_hat))


def spectral_poisson_mixed(f: Any, length: Any) -> Any:
    n, m = f.shape
    F = np.fft.rfft2(f)  # noqa: N806
    for i in range(n):
        a = i if i < n - i else i - n
        for j in range(m // 2 + 1):
            k2 = (2 * np.pi / length) ** 2 * (a * a + j * j)
            if k2 > 0:
                F[i, j] = -F[i, j] / k2
            else:
                F[i, j] = 0.0
    return np.fft.irfft2(F, s=(n, m))


science_program(
    lambda n, _: (uniform(n, n + 2), uniform(n, n + 2, seed=1), 0.1, 10),
    red_black_arrays, red_black_loops,
    size=100, sizes=(4, 9, 32),
)  # fmt: skip
science_program(
    lambda n, _: (np.sin(np.arange(8 * n + 1) / n), 5), v_cycles_arrays, v_cycles_loops, size=64, sizes=(2, 5, 16)
)
science_program(
    lambda n, _: (uniform(n, n) - 0.5, 6.28), spectral_poisson_arrays, spectral_poisson_mixed,
    size=64, sizes=(4, 7, 24),
)  # fmt: skip
