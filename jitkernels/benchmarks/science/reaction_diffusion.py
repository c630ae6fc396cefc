"""Reactions and diffusion, and cellular automata."""

from typing import Any

import numpy as np

from jitkernels.benchmarks.science.science_program import science_program, uniform


def _laplacian(a: Any) -> Any:
    return np.roll(a, 1, 0) + np.roll(a, -1, 0) + np.roll(a, 1, 1) + np.roll(a, -1, 1) - 4 * a


def gray_scott_arrays(u: Any, v: Any, feed: Any, kill: Any, steps: Any) -> Any:
    for _ in range(steps):
        uvv = u * v**2
        u, v = (u + 0.16 * _laplacian(u) - uvv + feed * (1 - u), v + 0.08 * _laplacian(v) + uvv - (feed + kill) * v)
    return u, v


def gray_scott_loops(u: Any, v: Any, feed: Any, kill: Any, steps: Any) -> Any:
    n = u.shape[0]
    u, v = u.copy(), v.copy()
    u2, v2 = np.empty((n, n)), np.empty((n, n))
    for _ in range(steps):
        for i in range(n):
            up, down = (i - 1) % n, (i + 1) % n
            for j in range(n):
                left, right = (j - 1) % n, (j + 1) % n
                lu = u[up, j] + u[down, j] + u[i, left] + u[i, right] - 4 * u[i, j]
                lv = v[up, j] + v[down, j] + v[i, left] + v[i, right] - 4 * v[i, j]
                uvv = u[i, j] * v[i, j] * v[i, j]
                u2[i, j] = u[i, j] + 0.16 * lu - uvv + feed * (1 - u[i, j])
                v2[i, j] = v[i, j] + 0.08 * lv + uvv - (feed + kill) * v[i, j]
        u, u2 = u2, u
        v, v2 = v2, v
    return u, v


def gray_scott_mixed(u: Any, v: Any, feed: Any, kill: Any, steps: Any) -> Any:
    U = np.pad(u, 1, mode="wrap")  # noqa: N806
    V = np.pad(v, 1, mode="wrap")  # noqa: N806
    for _ in range(steps):
        for Z in (U, V):  # noqa: N806
            Z[0, :] = Z[-2, :]
            Z[-1, :] = Z[1, :]
            Z[:, 0] = Z[:, -2]
            Z[:, -1] = Z[:, 1]
        Lu = U[:-2, 1:-1] + U[1:-1, :-2] - 4 * U[1:-1, 1:-1] + U[1:-1, 2:] + U[2:, 1:-1]  # noqa: N806
        Lv = V[:-2, 1:-1] + V[1:-1, :-2] - 4 * V[1:-1, 1:-1] + V[1:-1, 2:] + V[2:, 1:-1]  # noqa: N806
        a, b = U[1:-1, 1:-1], V[1:-1, 1:-1]
        uvv = a * b * b
        a += 0.16 * Lu - uvv + feed * (1 - a)
        b += 0.08 * Lv + uvv - (feed + kill) * b
    return U[1:-1, 1:-1].copy(), V[1:-1, 1:-1].copy()


def game_of_life_arrays(board: Any, generations: Any) -> Any:
    for _ in range(generations):
        neighbors = sum(
            np.roll(np.roll(board, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i != 0 or j != 0)
        )
        board = (neighbors == 3) | (board & (neighbors == 2))
    return board


def game_of_life_loops(board: Any, generations: Any) -> Any:
    n, m = board.shape
    board = board.copy()
    for _ in range(generations):
        new = np.zeros_like(board)
        for i in range(n):
            for j in range(m):
                alive = 0
                for di in range(-1, 2):
                    for dj in range(-1, 2):
                        if di != 0 or dj != 0:
                            alive += board[(i + di) % n, (j + dj) % m]
                if alive == 3 or (alive == 2 and board[i, j] == 1):
                    new[i, j] = 1
        board = new
    return board


def ising_arrays(spins: Any, randoms: Any, beta: Any) -> Any:
    """Metropolis sweeps on a checkerboard: one random number a site and sweep."""
    s = spins.copy()
    n, m = s.shape
    i, j = np.indices((n, m))
    colors = ((i + j) % 2 == 0, (i + j) % 2 == 1)
    magnetization = []
    for sweep in range(len(randoms)):
        for mask in colors:
            field = np.roll(s, 1, 0) + np.roll(s, -1, 0) + np.roll(s, 1, 1) + np.roll(s, -1, 1)
            flip = mask & (randoms[sweep] < np.exp(-2.0 * beta * s * field))
            s = np.where(flip, -s, s)
        magnetization.append(np.abs(s.mean()))
    return s, np.array(magnetization)


def ising_loops(spins: Any, randoms: Any, beta: Any) -> Any:
    s = spins.copy()
    n, m = s.shape
    sweeps = randoms.shape[0]
    magnetization = np.zeros(sweeps)
    for sweep in range(sweeps):
        for color in range(2):
            for i in range(n):
                for j in range(m):
                    if (i + j) % 2 == color:
                        field = s[(i + 1) % n, j] + s[(i - 1) % n, j] + s[i, (j + 1) % m] + s[i, (j - 1) % m]
                        if randoms[sweep, i, j] < np.exp(-2.0 * beta * s[i, j] * field):
                            s[i, j] = -s[i, j]
        total = 0
        for i in range(n):
            for j in range(m):
                total += s[i, j]
        magnetization[sweep] = abs(total / (n * m))
    return s, magnetization


science_program(
    lambda n, _: (1 - 0.5 * uniform(n, n), 0.25 * uniform(n, n, seed=1), 0.035, 0.065, 20),
    gray_scott_arrays, gray_scott_loops, gray_scott_mixed,
    size=80, sizes=(3, 8, 33),
)  # fmt: skip
science_program(
    lambda n, dtype: ((uniform(n, n + 1) > 0.6).astype(dtype), 10),
    game_of_life_arrays, game_of_life_loops,
    size=64, sizes=(4, 11, 34), dtypes=("int64",),
)  # fmt: skip
science_program(
    lambda n, dtype: (np.where(uniform(n, n) > 0.5, 1, -1).astype(dtype), uniform(10, n, n, seed=2), 0.4),
    ising_arrays, ising_loops,
    size=64, sizes=(4, 10, 34), dtypes=("int64",),
)  # fmt: skip
