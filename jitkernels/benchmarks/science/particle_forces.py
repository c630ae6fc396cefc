"""Forces between particles: gravity, van der Waals, smoothed hydrodynamics, phases, flocks."""

import math
from typing import Any

import numpy as np

from jitkernels.benchmarks.science.science_program import science_program, uniform


def nbody_arrays(pos: Any, vel: Any, mass: Any, dt: Any, steps: Any) -> Any:
    pos = pos.copy()
    vel = vel.copy()
    for _ in range(steps):
        d = pos[None, :, :] - pos[:, None, :]
        r2 = (d**2).sum(axis=-1) + 1e-3
        w = mass[None, :] * r2**-1.5
        acc = (d * w[:, :, None]).sum(axis=1)
        vel += dt * acc
        pos += dt * vel
    return 0.5 * np.sum(mass[:, None] * vel**2)


def nbody_loops(pos: Any, vel: Any, mass: Any, dt: Any, steps: Any) -> Any:
    pos = pos.copy()
    vel = vel.copy()
    n = pos.shape[0]
    for _ in range(steps):
        for i in range(n):
            ax = ay = az = 0.0
            for j in range(n):
                dx = pos[j, 0] - pos[i, 0]
                dy = pos[j, 1] - pos[i, 1]
                dz = pos[j, 2] - pos[i, 2]
                r2 = dx * dx + dy * dy + dz * dz + 1e-3
                w = mass[j] / (r2 * math.sqrt(r2))
                ax += w * dx
                ay += w * dy
                az += w * dz
            vel[i, 0] += dt * ax
            vel[i, 1] += dt * ay
            vel[i, 2] += dt * az
        for i in range(n):
            for k in range(3):
                pos[i, k] += dt * vel[i, k]
    energy = 0.0
    for i in range(n):
        energy += 0.5 * mass[i] * (vel[i, 0] ** 2 + vel[i, 1] ** 2 + vel[i, 2] ** 2)
    return energy


def nbody_mixed(pos: Any, vel: Any, mass: Any, dt: Any, steps: Any) -> Any:
    pos = pos.copy()
    vel = vel.copy()
    for _ in range(steps):
        for i in range(len(pos)):
            d = pos - pos[i]
            r2 = np.sum(d * d, axis=1) + 1e-3
            vel[i] += dt * (mass / r2**1.5) @ d
        pos += dt * vel
    return 0.5 * (mass * (vel**2).sum(axis=1)).sum()


science_program(
    lambda n, _: (uniform(n, 3), uniform(n, 3, seed=1), uniform(n), 0.01, 5),
    nbody_arrays, nbody_loops, nbody_mixed,
    size=300, sizes=(5, 12),
)  # fmt: skip


def lennard_jones_arrays(pos: Any, box: Any, cutoff: Any) -> Any:
    d = pos[:, None, :] - pos[None, :, :]
    d -= box * np.round(d / box)
    r2 = np.sum(d**2, axis=2)
    np.fill_diagonal(r2, np.inf)
    near = r2 < cutoff**2
    inv6 = np.where(near, 1.0 / r2, 0.0) ** 3
    energy = 2.0 * np.sum(inv6 * (inv6 - 1.0))
    scale = np.where(near, 24.0 * inv6 * (2.0 * inv6 - 1.0) / r2, 0.0)
    force = np.sum(scale[:, :, None] * d, axis=1)
    return energy, force


def lennard_jones_loops(pos: Any, box: Any, cutoff: Any) -> Any:
    n = pos.shape[0]
    force = np.zeros((n, 3))
    energy = 0.0
    rc2 = cutoff * cutoff
    for i in range(n):
        for j in range(i + 1, n):
            dx = pos[i, 0] - pos[j, 0]
            dy = pos[i, 1] - pos[j, 1]
            dz = pos[i, 2] - pos[j, 2]
            dx -= box * round(dx / box)
            dy -= box * round(dy / box)
            dz -= box * round(dz / box)
            r2 = dx * dx + dy * dy + dz * dz
            if r2 < rc2:
                inv2 = 1.0 / r2
                inv6 = inv2 * inv2 * inv2
                energy += 4.0 * inv6 * (inv6 - 1.0)
                f = 24.0 * inv6 * (2.0 * inv6 - 1.0) * inv2
                force[i, 0] += f * dx
                force[i, 1] += f * dy
                force[i, 2] += f * dz
                force[j, 0] -= f * dx
                force[j, 1] -= f * dy
                force[j, 2] -= f * dz
    return energy, force


def lennard_jones_mixed(pos: Any, box: Any, cutoff: Any) -> Any:
    n = len(pos)
    force = np.zeros_like(pos)
    energy = 0.0
    for i in range(n - 1):
        d = pos[i] - pos[i + 1 :]
        d = d - box * np.rint(d / box)
        r2 = (d * d).sum(axis=1)
        inv6 = np.where(r2 < cutoff**2, r2**-3, 0.0)
        energy += np.sum(4.0 * inv6 * (inv6 - 1.0))
        f = (24.0 * inv6 * (2.0 * inv6 - 1.0) / r2)[:, None] * d
        force[i] += f.sum(axis=0)
        force[i + 1 :] -= f
    return energy, force


science_program(
    lambda n, _: (np.indices((n, n, n)).reshape(3, -1).T * 1.2 + 0.05 * uniform(n**3, 3), n * 1.2, 2.5),
    lennard_jones_arrays, lennard_jones_loops, lennard_jones_mixed,
    size=6, sizes=(3, 4),
)  # fmt: skip


def sph_density_arrays(pos: Any, mass: Any, h: Any) -> Any:
    r = np.sqrt(((pos[:, None] - pos[None, :]) ** 2).sum(-1))
    q = r / h
    sigma = 1.0 / (np.pi * h**3)
    w = np.zeros_like(q)
    inner = q <= 1
    outer = (q > 1) & (q <= 2)
    w[inner] = 1 - 1.5 * q[inner] ** 2 + 0.75 * q[inner] ** 3
    w[outer] = 0.25 * (2 - q[outer]) ** 3
    rho = sigma * w @ mass
    pressure = 1000.0 * ((rho / rho.mean()) ** 7 - 1.0)
    return rho, pressure


def sph_density_loops(pos: Any, mass: Any, h: Any) -> Any:
    n = len(pos)
    rho = np.zeros(n)
    sigma = 1.0 / (np.pi * h**3)
    for i in range(n):
        for j in range(n):
            r2 = 0.0
            for k in range(3):
                r2 += (pos[i, k] - pos[j, k]) ** 2
            q = np.sqrt(r2) / h
            if q <= 1.0:
                rho[i] += mass[j] * sigma * (1.0 - 1.5 * q * q + 0.75 * q * q * q)
            elif q <= 2.0:
                rho[i] += mass[j] * sigma * 0.25 * (2.0 - q) ** 3
    mean = 0.0
    for i in range(n):
        mean += rho[i]
    mean /= n
    pressure = np.empty(n)
    for i in range(n):
        pressure[i] = 1000.0 * ((rho[i] / mean) ** 7 - 1.0)
    return rho, pressure


def sph_density_mixed(pos: Any, mass: Any, h: Any) -> Any:
    sigma = 1.0 / (np.pi * h**3)
    rho = np.empty(len(pos))
    for i, p in enumerate(pos):
        q = np.linalg.norm(pos - p, axis=1) / h
        w = np.where(q <= 1, 1 - 1.5 * q**2 + 0.75 * q**3, np.where(q <= 2, 0.25 * (2 - q) ** 3, 0))
        rho[i] = sigma * np.dot(w, mass)
    pressure = 1000.0 * ((rho / rho.mean()) ** 7 - 1.0)
    return rho, pressure


science_program(
    lambda n, _: (uniform(n, 3), uniform(n), 0.15),
    sph_density_arrays, sph_density_loops, sph_density_mixed,
    size=500, sizes=(5, 12), rtol=1e-8,
)  # fmt: skip


def kuramoto_arrays(theta: Any, omega: Any, coupling: Any, dt: Any, steps: Any) -> Any:
    order = []
    for _ in range(steps):
        pull = np.sin(theta[None, :] - theta[:, None]).mean(axis=1)
        theta = (theta + dt * (omega + coupling * pull)) % (2 * np.pi)
        order.append(np.abs(np.exp(1j * theta).mean()))
    return theta, np.array(order)


def kuramoto_loops(theta: Any, omega: Any, coupling: Any, dt: Any, steps: Any) -> Any:
    theta = theta.copy()
    n = theta.size
    order = np.zeros(steps)
    for t in range(steps):
        rate = np.zeros(n)
        for i in range(n):
            s = 0.0
            for j in range(n):
                s += math.sin(theta[j] - theta[i])
            rate[i] = omega[i] + coupling * s / n
        c = s = 0.0
        for i in range(n):
            theta[i] = (theta[i] + dt * rate[i]) % (2 * math.pi)
            c += math.cos(theta[i])
            s += math.sin(theta[i])
        order[t] = math.sqrt(c * c + s * s) / n
    return theta, order


science_program(
    lambda n, _: (6 * uniform(n), uniform(n, seed=1), 2.0, 0.02, 20),
    kuramoto_arrays, kuramoto_loops,
    size=200, sizes=(5, 12),
)  # fmt: skip
