"""Pi by the Monte Carlo method: the share of random points of a square that lie in the circle.

Every contestant draws points with its own generator, as its users would; the error depends on chance and the number of
points alone, so all contestants should have similar errors.
"""

import functools
import math
from typing import Any

import numpy as np

from jitkernels.benchmarks.contest.task import Program, Task

PI_SEED, BLOCK = 7, 1 << 16
TASK = Task(
    name="pi",
    summary="Monte Carlo approximation of pi",
    unit="samples",
    sizes=(10**3, 10**4, 10**5, 10**6, 10**7),
    error=lambda _, answer: abs(float(answer) - math.pi),
    error_words="distance from pi",
)


@TASK.contestant("numpy")
def of_numpy() -> Program:
    def pi(samples: int) -> float:
        generator = np.random.default_rng(PI_SEED)
        hits = 0
        for begin in range(0, samples, BLOCK):
            x, y = generator.random((2, min(BLOCK, samples - begin)), np.float32)
            hits += int(np.count_nonzero(x * x + y * y < 1))
        return 4 * hits / samples

    return pi


@TASK.contestant("numba")
def of_numba() -> Program:
    import random

    import numba

    def pi(samples: int) -> float:
        hits = 0
        for _ in range(samples):
            x = random.random()
            y = random.random()
            if x * x + y * y < 1:
                hits += 1
        return 4 * hits / samples

    return numba.njit(pi)  # type: ignore[no-any-return]


@TASK.contestant("jax")
def of_jax() -> Program:
    import jax

    @functools.partial(jax.jit, static_argnums=0)
    def pi(samples: int) -> Any:
        x, y = jax.random.uniform(jax.random.key(PI_SEED), (2, samples))
        return 4 * jax.numpy.count_nonzero(x * x + y * y < 1) / samples

    return pi  # type: ignore[no-any-return]


@TASK.contestant("torch")
def of_torch() -> Program:
    import torch

    def share(points: Any) -> Any:
        x, y = points
        return (x * x + y * y < 1).sum()

    compiled = torch.compile(share, dynamic=True)

    def pi(samples: int) -> float:
        torch.manual_seed(PI_SEED)
        hits = 0
        for begin in range(0, samples, BLOCK):
            hits += int(compiled(torch.rand(2, min(BLOCK, samples - begin))))
        return 4 * hits / samples

    return pi


@TASK.contestant("tensorflow")
def of_tensorflow() -> Program:
    import tensorflow as tf

    def pi(samples: int) -> Any:
        points = tf.random.stateless_uniform((2, samples), (PI_SEED, PI_SEED))
        hits = tf.math.count_nonzero(tf.reduce_sum(points * points, axis=0) < 1)
        return 4 * hits / samples

    compiled = tf.function(pi, jit_compile=True)
    return lambda samples: compiled(samples).numpy()


@TASK.contestant("triton")
def of_triton() -> Program:
    import torch
    import triton
    import triton.language as tl

    def count(hits: Any, samples: Any, seed: Any, size: tl.constexpr) -> None:
        at = tl.program_id(0) * size + tl.arange(0, size)
        x, y = tl.rand(seed, 2 * at), tl.rand(seed, 2 * at + 1)
        inside = (x * x + y * y < 1) & (at < samples)
        tl.store(hits + tl.program_id(0), tl.sum(inside.to(tl.int32)))

    compiled = triton.jit(count)

    def pi(samples: int) -> float:
        size = 1024
        programs = -(-samples // size)
        hits = torch.empty(programs, dtype=torch.int32, device="cuda" if torch.cuda.is_available() else "cpu")
        compiled[programs,](hits, samples, PI_SEED, size)
        return float(4 * int(hits.sum()) / samples)

    return pi


@TASK.contestant("jitkernels")
def of_jitkernels() -> Program:
    import jitkernels as jk

    @jk.jit
    def inside(x: Any, y: Any) -> Any:
        return np.count_nonzero(x * x + y * y < 1)

    def pi(samples: int) -> float:
        hits, points = 0, np.empty((2, min(BLOCK, samples)), np.float32)
        for begin in range(0, samples, BLOCK):
            x, y = points[:, : min(BLOCK, samples - begin)]
            jk.uniform(x.size, seed=PI_SEED, offset=begin, out=x)
            jk.uniform(y.size, seed=PI_SEED + 1, offset=begin, out=y)
            hits += int(inside(x, y))
        return 4 * hits / samples

    return pi
