"""The programs of `whole_programs` as a JAX expert writes them: loops by `lax`, everything else by whole arrays.

Each has one form or several, of which the fastest counts. Arrays are converted to JAX before, nothing is written to
them, and trip counts are constants.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_cpu_enable_async_dispatch", False)  # avoid a handover to another thread in each call

Array = Any
compiled: Callable[..., Callable[..., Any]] = jax.jit


def _mean_of_four(a: Array) -> Array:
    return 0.25 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])


@partial(jax.jit, static_argnums=2)
def jacobi(a: Array, b: Array, steps: int) -> Array:
    def step(_: Any, both: Any) -> Any:
        a, b = both
        b = b.at[1:-1, 1:-1].set(_mean_of_four(a))
        return a.at[1:-1, 1:-1].set(_mean_of_four(b)), b

    return lax.fori_loop(0, steps, step, (a, b))[0]


def _seidel(row: Callable[[Array, Array], Array], a: Array, steps: int) -> Array:
    """Scan over rows: `row` computes the inner elements of a row from its left edge and the rows before it."""

    def of_row(above: Array, rows: Any) -> Any:
        here, below = rows
        known = above[:-2] + above[1:-1] + above[2:] + here[1:-1] + here[2:] + below[:-2] + below[1:-1] + below[2:]
        new = here.at[1:-1].set(row(here[0], known))
        return new, new

    def step(_: Any, a: Array) -> Array:
        return a.at[1:-1].set(lax.scan(of_row, a[0], (a[1:-1], a[2:]))[1])

    return lax.fori_loop(0, steps, step, a)


def _by_scan(first: Array, known: Array) -> Array:
    def inner(left: Array, others: Array) -> Any:
        left = (left + others) / 9.0
        return left, left

    return lax.scan(inner, first, known)[1]


def _by_associative_scan(first: Array, known: Array) -> Array:
    def both(first: Any, second: Any) -> Any:
        return first[0] * second[0], first[1] * second[0] + second[1]

    factors, sums = lax.associative_scan(both, (jnp.full_like(known, 1.0 / 9.0), known / 9.0))
    return factors * first + sums


gauss_seidel = (
    jax.jit(partial(_seidel, _by_scan), static_argnums=1),
    jax.jit(partial(_seidel, _by_associative_scan), static_argnums=1),
)


def _heat(source: Array, target: Array) -> Array:
    inner = source[1:-1, 1:-1, 1:-1]
    return target.at[1:-1, 1:-1, 1:-1].set(
        inner
        + 0.125 * (source[2:, 1:-1, 1:-1] - 2.0 * inner + source[:-2, 1:-1, 1:-1])
        + 0.125 * (source[1:-1, 2:, 1:-1] - 2.0 * inner + source[1:-1, :-2, 1:-1])
        + 0.125 * (source[1:-1, 1:-1, 2:] - 2.0 * inner + source[1:-1, 1:-1, :-2])
    )


@partial(jax.jit, static_argnums=2)
def heat_3d(a: Array, b: Array, steps: int) -> Array:
    def step(_: Any, both: Any) -> Any:
        a, b = both
        b = _heat(a, b)
        return _heat(b, a), b

    return lax.fori_loop(0, steps, step, (a, b))[0]


@compiled
def fdtd(ex: Array, ey: Array, hz: Array, source: Array) -> Array:
    def step(fields: Any, edge: Array) -> Any:
        ex, ey, hz = fields
        ey = ey.at[0, :].set(edge)
        ey = ey.at[1:, :].add(-0.5 * (hz[1:, :] - hz[:-1, :]))
        ex = ex.at[:, 1:].add(-0.5 * (hz[:, 1:] - hz[:, :-1]))
        hz = hz.at[:-1, :-1].add(-0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]))
        return (ex, ey, hz), None

    return lax.scan(step, (ex, ey, hz), source)[0][2]


@compiled
def floyd_warshall(path: Array) -> Array:
    def by(k: Array, path: Array) -> Array:
        return jnp.minimum(path, path[:, k, None] + path[None, k, :])

    return lax.fori_loop(0, path.shape[0], by, path)


@compiled
def cholesky(a: Array) -> Array:
    n = a.shape[0]

    def column(j: Array, low: Array) -> Array:
        rest = a[:, j] - low @ low[j]
        return low.at[:, j].set(jnp.where(jnp.arange(n) >= j, rest / jnp.sqrt(rest[j]), 0.0))

    return lax.fori_loop(0, n, column, jnp.zeros_like(a))


@compiled
def lu(a: Array) -> Array:
    n = a.shape[0]

    def eliminate(k: Array, a: Array) -> Array:
        behind = jnp.arange(n) > k
        factors = jnp.where(behind, a[:, k] / a[k, k], 0.0)
        a = a - factors[:, None] * jnp.where(behind, a[k], 0.0)[None, :]
        return a.at[:, k].set(jnp.where(behind, factors, a[:, k]))

    return lax.fori_loop(0, n - 1, eliminate, a)


@compiled
def triangular_solve(low: Array, b: Array) -> Array:
    def row(i: Array, x: Array) -> Array:
        return x.at[i].set((b[i] - low[i] @ x) / low[i, i])

    return lax.fori_loop(0, low.shape[0], row, jnp.zeros_like(b))


def _plane(times: Array) -> Any:
    height, width = times.shape
    x, y = 3.0 * jnp.arange(width) / width - 2.0, 2.0 * jnp.arange(height) / height - 1.0
    return jnp.broadcast_arrays(x[None, :], y[:, None])


@partial(jax.jit, static_argnums=1)
def _mandelbrot_together(times: Array, most: int) -> Array:
    x, y = _plane(times)

    def step(state: Any) -> Any:
        k, a, b, times, stays = state
        a, b = jnp.where(stays, a * a - b * b + x, a), jnp.where(stays, 2.0 * a * b + y, b)
        times = times + stays
        return k + 1, a, b, times, stays & (a * a + b * b <= 4.0)

    def goes_on(state: Any) -> Array:
        return (state[0] < most) & state[4].any()

    start = 0, jnp.zeros_like(x), jnp.zeros_like(x), jnp.zeros_like(times), jnp.ones(times.shape, bool)
    return lax.while_loop(goes_on, step, start)[3]


@partial(jax.jit, static_argnums=1)
def _mandelbrot_by_point(times: Array, most: int) -> Array:
    def count_at(at: Any) -> Array:
        x, y = at

        def step(state: Any) -> Any:
            k, a, b = state
            return k + 1, a * a - b * b + x, 2.0 * a * b + y

        def goes_on(state: Any) -> Array:
            return (state[0] < most) & (state[1] * state[1] + state[2] * state[2] <= 4.0)

        return lax.while_loop(goes_on, step, (0, 0.0, 0.0))[0]

    x, y = _plane(times)
    return lax.map(count_at, (x.ravel(), y.ravel())).reshape(times.shape)


mandelbrot = _mandelbrot_together, _mandelbrot_by_point


@partial(jax.jit, static_argnums=3)
def bodies(x: Array, v: Array, mass: Array, steps: int) -> Array:
    def step(_: Any, state: Any) -> Any:
        x, v = state
        differences = x[None, :, :] - x[:, None, :]
        square = (differences * differences).sum(-1) + 0.01
        pull = mass[None, :] / (square * jnp.sqrt(square))
        v = v + 0.01 * (pull[:, :, None] * differences).sum(1)
        return x + 0.01 * v, v

    return lax.fori_loop(0, steps, step, (x, v))[0]


@partial(jax.jit, static_argnums=1)
def life(g: Array, steps: int) -> Array:
    def step(_: Any, g: Array) -> Array:
        count = (
            g[:-2, :-2] + g[:-2, 1:-1] + g[:-2, 2:] + g[1:-1, :-2] + g[1:-1, 2:]
            + g[2:, :-2] + g[2:, 1:-1] + g[2:, 2:]
        )  # fmt: skip
        new = (count == 3) | ((count == 2) & (g[1:-1, 1:-1] == 1))
        return g.at[1:-1, 1:-1].set(new.astype(g.dtype))

    return lax.fori_loop(0, steps, step, g)


@compiled
def _alignment_by_rows(first: Array, second: Array, gap: Array) -> Array:
    """Along a row, the propagation from the left is a running maximum of the propagation from above."""
    falls = gap * jnp.arange(1, second.shape[0] + 1)

    def row(above: Array, letter: Array) -> Any:
        score = jnp.where(second == letter, 2.0, -1.0)
        found = jnp.maximum(jnp.maximum(above[:-1] + score, above[1:] - gap), 0.0)
        here = jnp.concatenate((above[:1], lax.cummax(found + falls) - falls))
        return here, here.max()

    return lax.scan(row, jnp.zeros(second.shape[0] + 1), first)[1].max()


@compiled
def _alignment_by_diagonals(first: Array, second: Array, gap: Array) -> Array:
    """The elements of an antidiagonal are independent."""
    n, m = first.shape[0], second.shape[0]
    rows = jnp.arange(n + 1)
    letters = jnp.concatenate((first[:1], first))

    def diagonal(state: Any, number: Array) -> Any:
        last, before = state
        column = number - rows
        inside = (rows > 0) & (column > 0) & (column <= m)
        score = jnp.where(letters == second[jnp.clip(column - 1, 0, m - 1)], 2.0, -1.0)
        found = jnp.maximum(jnp.roll(before, 1) + score, jnp.maximum(jnp.roll(last, 1), last) - gap)
        here = jnp.where(inside, jnp.maximum(found, 0.0), 0.0)
        return (here, last), here.max()

    nothing = jnp.zeros(n + 1)
    return lax.scan(diagonal, (nothing, nothing), jnp.arange(2, n + m + 1))[1].max()


smith_waterman = _alignment_by_rows, _alignment_by_diagonals


@compiled
def kalman(z: Array, f: Array, q: Array, r: Array) -> Array:
    n = f.shape[0]

    def step(state: Any, seen: Array) -> Any:
        x, p = state
        x = f @ x
        p = f @ p @ f.T + q
        gain = p[:, 0] / (p[0, 0] + r)
        x = x + gain * (seen - x[0])
        return (x, p - jnp.outer(gain, p[0])), x

    return lax.scan(step, (jnp.zeros(n), jnp.eye(n)), z)[1]


@compiled
def lstm(x: Array, w: Array, u: Array, b: Array) -> Array:
    n = u.shape[1]

    def step(state: Any, given: Array) -> Any:
        h, c = state
        z = given + u @ h
        i, f, o = 1.0 / (1.0 + jnp.exp(-z[: 3 * n])).reshape(3, n)
        c = f * c + i * jnp.tanh(z[3 * n :])
        h = o * jnp.tanh(c)
        return (h, c), h

    return lax.scan(step, (jnp.zeros(n), jnp.zeros(n)), x @ w.T + b)[1]


def forms_of(name: str) -> tuple[Callable[..., Any], ...]:
    """Return the compiled forms of a program."""
    function = globals()[name]
    return function if isinstance(function, tuple) else (function,)


def call_of(form: Callable[..., Any], arguments: tuple[Any, ...]) -> Callable[[], Any]:
    """Return a call with JAX arrays that waits for its result."""
    converted = [jnp.asarray(value) if hasattr(value, "shape") else value for value in arguments]
    return lambda: jax.block_until_ready(form(*converted))
