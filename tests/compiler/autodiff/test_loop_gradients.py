"""Derivatives of compiled loops against finite differences: carried state, writes, breaks, nested loops."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from differences import agree, difference

import jitkernels as jk

PROGRAMS: dict[str, Any] = {}


def program(*given: Any) -> Callable[[Any], Any]:
    """A program that gives a float, and its arguments; derivatives are by those that are floats."""

    def kept(function: Any) -> Any:
        PROGRAMS[function.__name__] = function, given
        return function

    return kept


def normal(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).normal(size=shape)


@program(0.7, 20)
def numbers(x: Any, n: Any) -> Any:
    y = 1.0
    for _ in range(n):
        y = y * x + np.sin(y)
    return y


@program(normal(12), 0.9)
def recurrence(x: Any, a: Any) -> Any:
    y = np.zeros(x.shape[0])
    y[0] = x[0]
    for i in range(1, x.shape[0]):
        y[i] = a * y[i - 1] * y[i - 1] * 0.1 + np.tanh(x[i])
    return np.sum(y * y)


@program(normal(9, 9), 0.1, 12)
def heated(u: Any, k: Any, n: Any) -> Any:
    for _ in range(n):
        u[1:-1, 1:-1] += k * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    return np.sum(u**2)


@program(normal(5, 5), 0.25, 9)
def gauss_seidel(a: Any, w: Any, n: Any) -> Any:
    for _ in range(n):
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                a[i, j] += w * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1] - 4.0 * a[i, j])
    return np.sum(a * a)


@program(normal(10, 2), normal(2, 8) * 0.5, normal(2, 8) * 0.5)
def lstm(xs: Any, w: Any, r: Any) -> Any:
    h, c = np.zeros(2), np.zeros(2)
    for t in range(xs.shape[0]):
        z = xs[t] @ w + h @ r
        i, f, o = 1 / (1 + np.exp(-z[:2])), 1 / (1 + np.exp(-z[2:4])), 1 / (1 + np.exp(-z[4:6]))
        c = f * c + i * np.tanh(z[6:])
        h = o * np.tanh(c)
    return np.sum(h * h)


@program(normal(9, 2), normal(2, 2) * 0.3, normal(2, 2) * 0.1 + np.eye(2))
def kalman(z: Any, f: Any, q: Any) -> Any:
    x, p, found = np.zeros(2), np.eye(2), 0.0
    for t in range(z.shape[0]):
        x, p = f @ x, f @ p @ f.T + q
        y, s = z[t] - x, p + 0.5 * np.eye(2)
        det = s[0, 0] * s[1, 1] - s[0, 1] * s[1, 0]
        inverse = np.zeros((2, 2))
        inverse[0, 0] = s[1, 1] / det
        inverse[1, 1] = s[0, 0] / det
        inverse[0, 1] = -s[0, 1] / det
        inverse[1, 0] = -s[1, 0] / det
        found = found + y @ inverse @ y + np.log(np.abs(det))
        k = p @ inverse
        x, p = x + k @ y, p - k @ p
    return found


@program(normal(5, 2), np.linspace(1.0, 2.0, 5), 10)
def bodies(p: Any, m: Any, n: Any) -> Any:
    v = np.zeros_like(p)
    for _ in range(n):
        d = p[:, None, :] - p[None, :, :]
        r = np.sum(d * d, axis=2) + 0.5
        v = v - 0.05 * np.sum(d * (m[None, :] / (r * np.sqrt(r)))[:, :, None], axis=1)
        p = p + 0.05 * v
    return np.sum(p * p) + np.sum(v * v)


@program(np.linspace(1.5, 3.0, 9))
def newton(a: Any) -> Any:
    """A loop until convergence, in each round of another one."""
    s = 0.0
    for i in range(a.shape[0]):
        x = 1.0
        while abs(x * x - a[i]) > 1e-13:
            x = 0.5 * (x + a[i] / x)
        s = s * 0.5 + x
    return s


@program(normal(6, 6) * 0.1)
def fixed_point(a: Any) -> Any:
    x, far = np.ones(6), 1.0
    while far > 1e-10:
        y = 0.5 * np.tanh(a @ x) + 0.1 * x + 0.3
        far = np.sum((y - x) ** 2)
        x = y
    return np.sum(x * x)


@program(normal(11), 4)
def jumping(x: Any, n: Any) -> Any:
    """Branches that change arrays, loops in them, and rounds that are left early."""
    s, y = 0.1, np.ones(11)
    for k in range(n):
        for i in range(x.shape[0]):
            if s * s > 40.0:
                break
            if x[i] > 0:
                for j in range(i):
                    y[i] = y[j] * 0.9 + x[j] * y[i] * 0.1
            elif x[i] < -0.5:
                y[i] = np.sin(y[i]) * x[i] + k
            else:
                continue
            s = s + y[i] * y[i] * 0.3
    return s * s


@program(normal(9, 9) + 9 * np.eye(9))
def cholesky(a: Any) -> Any:
    n = a.shape[0]
    found = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            found[i, j] = (a[i, j] - np.sum(found[i, :j] * found[j, :j])) / found[j, j]
        found[i, i] = np.sqrt(a[i, i] - np.sum(found[i, :i] * found[i, :i]))
    return np.sum(found * np.cos(found))


@program(normal(9, 9) + 9 * np.eye(9))
def lu(a: Any) -> Any:
    n = a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] = a[i, k] / a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    return np.sum(a * np.sin(a))


@program(normal(20))
def steps(x: Any) -> Any:
    """Counts by other steps than one, and ints that rounds carry."""
    s, p = 0.5, 0
    for i in range(x.shape[0] - 1, 1, -2):
        if x[i] > 0:
            p = p + 1
        s = s * x[i] + np.cos(x[i - 2]) * x[p]
    for i in range(1, x.shape[0], 3):
        s = s * 0.9 + x[i]
    return s


@program(normal(5), 3.0, 10)
def swapped(a: Any, k: Any, n: Any) -> Any:
    b = np.zeros(5)
    for _ in range(n):
        b[1:] = a[:-1] * k * 0.3
        b[0] = np.sin(a[0])
        a, b = b, a
    return np.sum(a * b) + np.sum(a * a)


@program(normal(10))
def explicit(x: Any) -> Any:
    def body(c: Any, v: Any) -> Any:
        c = c * 0.9 + np.sin(v) * c + v
        return c, c * v

    c, ys = jk.scan(body, 0.3, x)
    u = jk.fori_loop(0, 9, lambda i, u: np.sin(u) * x + u * 0.5, x)
    w, _ = jk.while_loop(lambda s: s[1] < 9, lambda s: (np.cos(s[0]) * x + s[0] * 0.5, s[1] + 1), (x, 0))
    return c + np.sum(ys * ys) + np.sum(u * w)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: Any) -> None:
    """Differentiate by all float arguments, and compute the value beside the gradient."""
    function, given = PROGRAMS[name]
    places = [i for i, one in enumerate(given) if not isinstance(one, int)]
    value, found = jk.value_and_grad(function, argnums=tuple(places))(*given)

    def of(i: int, one: Any) -> Any:
        copies = [np.array(other) if isinstance(other, np.ndarray) else other for other in given]
        copies[i] = one if isinstance(given[i], np.ndarray) else float(one)
        return function(*copies)

    assert np.isclose(value, of(places[0], np.array(given[places[0]])), rtol=1e-12)
    for place, one in zip(places, found, strict=True):
        agree(one, difference(lambda x, place=place: of(place, x), np.asarray(given[place], float)))


@pytest.mark.parametrize("rounds", [0, 1, 100_000])
def test_trip_counts(rounds: Any) -> None:
    """Loops of zero, one and very many iterations, whose number is unknown at compile time."""

    def grown(x: Any, n: Any) -> Any:
        y, i = x, 0
        while i < n:
            y = y + x * 1e-5
            y = y * 0.99999
            i = i + 1
        return y * y

    def counted(x: Any, n: Any) -> Any:
        y = x
        for _ in range(n):
            y = (y + x * 1e-5) * 0.99999
        return y * y

    slope = counted(1.0, rounds)
    for function in (grown, counted):
        for x in (1.0, 2.0):  # both are homogeneous
            agree(jk.grad(function)(x, rounds), 2 * x * slope, 1e-10)


@pytest.mark.parametrize("name", PROGRAMS)
def test_forward(name: Any) -> None:
    """Forward mode gives the value, and the gradient's directional derivative."""
    function, given = PROGRAMS[name]
    places = [i for i, one in enumerate(given) if not isinstance(one, int)]
    value, found = jk.value_and_grad(function, argnums=tuple(places))(*given)
    along = [np.random.default_rng(i).normal(size=np.shape(given[i])) for i in places]
    along = [one if one.ndim else float(one) for one in along]

    def of(*floats: Any) -> Any:
        return function(*floats, *given[len(floats) :])

    here, moved = jk.jvp(of, tuple(given[i] for i in places), tuple(along))
    assert np.isclose(here, value, rtol=1e-12)
    agree(moved, sum(np.sum(one * other) for one, other in zip(found, along, strict=True)), 1e-10)


@pytest.mark.parametrize("name", ["recurrence", "heated", "gauss_seidel", "newton", "jumping", "explicit"])
def test_second_order(name: Any) -> None:
    """Derivatives of gradients, backwards and forwards."""
    function, (x, *others) = PROGRAMS[name]
    weights = np.random.default_rng(7).normal(size=x.shape)

    def first(one: Any) -> Any:
        return np.sum(jk.grad(function)(one, *others) * weights)

    expected = difference(lambda one: float(first(one)), x)
    agree(jk.grad(first)(x), expected)
    agree(jk.jvp(first, (x,), (weights,))[1], np.sum(expected * weights))
