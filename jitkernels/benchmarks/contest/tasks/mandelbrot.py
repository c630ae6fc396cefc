"""The Mandelbrot set: for each point of a square grid, how many of 64 steps z = z * z + c stay within |z| <= 2."""

import functools
from typing import Any

import numpy as np

from jitkernels.benchmarks.contest.task import Program, Task

MANDELBROT_STEPS = 64
LEFT, RIGHT, LOWER, UPPER = -2.0, 0.5, -1.25, 1.25


def grid(size: int) -> tuple[Any, Any]:
    """Return the real parts of the columns and the imaginary parts of the rows."""
    return np.linspace(LEFT, RIGHT, size)[np.newaxis, :], np.linspace(LOWER, UPPER, size)[:, np.newaxis]


def steps_of(real: Any, imaginary: Any) -> Any:
    """Count the steps of all points at once, in NumPy."""
    x = real + 0 * imaginary
    y = 0 * real + imaginary
    count = np.zeros(x.shape, np.int32)
    a, b = x, y
    for _ in range(MANDELBROT_STEPS):
        inside = x * x + y * y <= 4
        count += inside
        x, y = np.where(inside, x * x - y * y + a, x), np.where(inside, 2 * x * y + b, y)
    return count


def count_by_point(real: Any, imaginary: Any) -> Any:
    """Count the steps point by point, in loops."""
    count = np.zeros((imaginary.size, real.size), np.int32)
    for row in range(imaginary.size):
        for column in range(real.size):
            a, b = real[0, column], imaginary[row, 0]
            x, y, steps = a, b, 0
            while steps < MANDELBROT_STEPS and x * x + y * y <= 4:
                x, y = x * x - y * y + a, 2 * x * y + b
                steps += 1
            count[row, column] = steps
    return count


@functools.cache
def _truth(size: int) -> Any:
    return steps_of(*grid(size))


TASK = Task(
    name="mandelbrot",
    summary="Mandelbrot set of size x size points, 64 steps, float64",
    unit="points along a side",
    sizes=(16, 64, 256, 512),
    error=lambda size, answer: float(np.mean(np.asarray(answer) != _truth(size))),
    error_words="share of points whose count differs from NumPy's",
)


@TASK.contestant("numpy")
def of_numpy() -> Program:
    return lambda size: steps_of(*grid(size))


@TASK.contestant("numba")
def of_numba() -> Program:
    import numba

    compiled = numba.njit(count_by_point)
    return lambda size: compiled(*grid(size))


@TASK.contestant("jax")
def of_jax() -> Program:
    import jax

    jax.config.update("jax_enable_x64", True)

    def steps(real: Any, imaginary: Any) -> Any:
        a, b = jax.numpy.broadcast_arrays(real, imaginary)

        def step(_: Any, state: Any) -> Any:
            x, y, count = state
            inside = x * x + y * y <= 4
            x, y = jax.numpy.where(inside, x * x - y * y + a, x), jax.numpy.where(inside, 2 * x * y + b, y)
            return x, y, count + inside

        return jax.lax.fori_loop(0, MANDELBROT_STEPS, step, (a, b, jax.numpy.zeros(a.shape, "int32")))[2]

    compiled = jax.jit(steps)
    return lambda size: compiled(*grid(size))


@TASK.contestant("torch")
def of_torch() -> Program:
    import torch

    def steps(real: Any, imaginary: Any) -> Any:
        a, b = torch.broadcast_tensors(real, imaginary)
        x, y, count = a, b, torch.zeros(a.shape, dtype=torch.int32)
        for _ in range(MANDELBROT_STEPS):
            inside = x * x + y * y <= 4
            count = count + inside
            x, y = torch.where(inside, x * x - y * y + a, x), torch.where(inside, 2 * x * y + b, y)
        return count

    compiled = torch.compile(steps)
    return lambda size: compiled(*map(torch.from_numpy, grid(size))).numpy()


@TASK.contestant("tensorflow")
def of_tensorflow() -> Program:
    import tensorflow as tf

    def steps(real: Any, imaginary: Any) -> Any:
        a, b = real + 0 * imaginary, 0 * real + imaginary
        x, y, count = a, b, tf.zeros_like(a, tf.int32)
        for _ in tf.range(MANDELBROT_STEPS):
            inside = x * x + y * y <= 4
            count += tf.cast(inside, tf.int32)
            x, y = tf.where(inside, x * x - y * y + a, x), tf.where(inside, 2 * x * y + b, y)
        return count

    compiled = tf.function(steps, jit_compile=True)
    return lambda size: compiled(*grid(size)).numpy()


@TASK.contestant("jitkernels")
def of_jitkernels() -> Program:
    import jitkernels as jk

    compiled = jk.jit(steps_of)
    return lambda size: compiled(*grid(size))
