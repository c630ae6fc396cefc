"""Gravitating bodies: ten leapfrog steps of softened gravity in three dimensions, float64."""

import functools
from typing import Any

import numpy as np

from jitkernels.benchmarks.contest.measures import distance
from jitkernels.benchmarks.contest.task import Program, Task

NBODY_STEPS, PACE, SOFT = 10, 1e-3, 1e-2


def bodies(size: int) -> tuple[Any, ...]:
    """Return positions and velocities by coordinate, and masses."""
    drawn = np.random.default_rng(3).normal(size=(6, size))
    return (*drawn, np.full(size, 1.0 / size))


def step(x: Any, y: Any, z: Any, u: Any, v: Any, w: Any, mass: Any) -> Any:
    """One step in NumPy: half a kick by the pull of all other bodies, a drift, half a kick, merged."""
    dx, dy, dz = (x[np.newaxis] - x[:, np.newaxis], y[np.newaxis] - y[:, np.newaxis], z[np.newaxis] - z[:, np.newaxis])
    square = dx * dx + dy * dy + dz * dz + SOFT
    pull = mass / (square * np.sqrt(square))
    u = u + PACE * (dx * pull).sum(axis=1)
    v = v + PACE * (dy * pull).sum(axis=1)
    w = w + PACE * (dz * pull).sum(axis=1)
    return x + PACE * u, y + PACE * v, z + PACE * w, u, v, w


def loop(x: Any, y: Any, z: Any, u: Any, v: Any, w: Any, mass: Any) -> Any:
    """One step, body by body."""
    u, v, w = u.copy(), v.copy(), w.copy()
    for i in range(x.size):
        a = b = c = 0.0
        for j in range(x.size):
            dx, dy, dz = x[j] - x[i], y[j] - y[i], z[j] - z[i]
            square = dx * dx + dy * dy + dz * dz + SOFT
            pull = mass[j] / (square * np.sqrt(square))
            a += dx * pull
            b += dy * pull
            c += dz * pull
        u[i] += PACE * a
        v[i] += PACE * b
        w[i] += PACE * c
    return x + PACE * u, y + PACE * v, z + PACE * w, u, v, w


def after(size: int, advance: Any, dtype: Any = np.float64) -> Any:
    """Return the positions of the bodies after all steps."""
    *state, mass = (array.astype(dtype) for array in bodies(size))
    for _ in range(NBODY_STEPS):
        state = advance(*state, mass)
    return np.stack([np.asarray(coordinate) for coordinate in state[:3]])


@functools.cache
def _truth(size: int) -> Any:
    return after(size, step, np.longdouble)


TASK = Task(
    name="nbody",
    summary="10 leapfrog steps of gravitating bodies, float64",
    unit="bodies",
    sizes=(16, 64, 256, 1024),
    error=lambda size, answer: distance(answer, _truth(size)),
    error_words="largest difference from positions in long double",
)


@TASK.contestant("numpy")
def of_numpy() -> Program:
    return lambda size: after(size, step)


@TASK.contestant("numba")
def of_numba() -> Program:
    import numba

    compiled = numba.njit(loop, fastmath=True)
    return lambda size: after(size, compiled)


@TASK.contestant("jax")
def of_jax() -> Program:
    import jax

    jax.config.update("jax_enable_x64", True)
    by_jax = functools.partial(step_of_tensors, root=jax.numpy.sqrt, total=jax.numpy.sum)
    compiled = jax.jit(by_jax)
    return lambda size: after(size, compiled)


@TASK.contestant("torch")
def of_torch() -> Program:
    import torch

    compiled = torch.compile(functools.partial(step_of_tensors, root=torch.sqrt, total=torch.sum), dynamic=True)

    def program(size: int) -> Any:
        *state, mass = map(torch.from_numpy, bodies(size))
        for _ in range(NBODY_STEPS):
            state = compiled(*state, mass)
        return torch.stack(list(state[:3])).numpy()

    return program


@TASK.contestant("tensorflow")
def of_tensorflow() -> Program:
    import tensorflow as tf

    compiled = tf.function(functools.partial(step_of_tensors, root=tf.sqrt, total=tf.reduce_sum), jit_compile=True)
    return lambda size: after(size, compiled)


def step_of_tensors(*state: Any, root: Any, total: Any) -> Any:
    """One step in operations common to all tensor libraries, with a square root and a sum along an axis."""
    x, y, z, u, v, w, mass = state
    dx, dy, dz = x[None, :] - x[:, None], y[None, :] - y[:, None], z[None, :] - z[:, None]
    square = dx * dx + dy * dy + dz * dz + SOFT
    pull = mass / (square * root(square))
    u = u + PACE * total(dx * pull, 1)
    v = v + PACE * total(dy * pull, 1)
    w = w + PACE * total(dz * pull, 1)
    return x + PACE * u, y + PACE * v, z + PACE * w, u, v, w


@TASK.contestant("jitkernels")
def of_jitkernels() -> Program:
    import jitkernels as jk

    compiled = jk.jit(step)
    return lambda size: after(size, compiled)
