"""Programs whose windows, blocks and rows go to numbers that are passed beside the arrays."""
# ruff: noqa: N803, N806  # as people write them

from typing import Any

import numpy as np
from sized_programs import matrix, sized, vector


@sized(lambda n, more: (n + more, matrix(n, 7)))
def rows_of_a_number(N: int, u: Any) -> None:
    for j in range(1, N - 1):
        u[j] = u[j] * 2


@sized(lambda n, more: (n + more, matrix(5, n)))
def suffix_sums(N: int, u: Any) -> Any:
    t = 0.0
    for j in range(N):
        t += u[3, j:N].sum()
    return t


@sized(lambda n, more: (n + more, vector(2 * n)))
def pooling_1d(n: int, x: Any) -> Any:
    out = np.zeros(n)
    for i in range(n):
        out[i] = np.max(x[2 * i : 2 * i + 2])
    return out


@sized(lambda n, more: (n + more, vector(n)))
def moving_average(n: int, x: Any) -> Any:
    out = np.zeros(n)
    for i in range(n):
        out[i] = x[max(i - 2, 0) : min(i + 3, n)].mean()
    return out


@sized(lambda n, more: (n + more, vector(n + 4)))
def moving_sums(n: int, x: Any) -> Any:
    out = np.zeros(n)
    for i in range(n):
        out[i] = np.sum(x[i : i + 5])
    return out


@sized(lambda n, more: (4, n + more, vector(4 * n)))
def blocked_sums(B: int, n: int, x: Any) -> Any:
    out = np.zeros(n)
    for i in range(n):
        out[i] = x[i * B : (i + 1) * B].sum()
    return out


@sized(lambda n, more: (n + more, 3, matrix(n + 2), matrix(3)))
def convolution_2d(N: int, K: int, x: Any, w: Any) -> Any:
    out = np.zeros((N, N))
    for i in range(N):
        for j in range(N):
            out[i, j] = np.sum(x[i : i + K, j : j + K] * w)
    return out


@sized(lambda n, more: (np.random.default_rng(n).random((3, 2 * n, 2 * n + 1, 4)),))
def maxpool2d(x: Any) -> Any:
    output = np.zeros([x.shape[0], x.shape[1] // 2, x.shape[2] // 2, x.shape[3]], dtype=x.dtype)
    for i in range(x.shape[1] // 2):
        for j in range(x.shape[2] // 2):
            output[:, i, j, :] = np.max(x[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2, :], axis=(1, 2))
    return output


@sized(
    lambda n, more: (np.random.default_rng(n).random((3, n, n + 1, 2)), np.random.default_rng(n).random((3, 3, 2, 4)))
)
def conv2d(images: Any, weights: Any) -> Any:
    K = weights.shape[0]
    N = images.shape[0]
    H_out = images.shape[1] - K + 1
    W_out = images.shape[2] - K + 1
    C_out = weights.shape[3]
    output = np.zeros((N, H_out, W_out, C_out), dtype=np.float64)
    for i in range(H_out):
        for j in range(W_out):
            output[:, i, j, :] = np.sum(
                images[:, i : i + K, j : j + K, :, np.newaxis] * weights[np.newaxis, :, :, :], axis=(1, 2, 3)
            )
    return output


@sized(lambda n, more: (n + more, n - 1, vector(n)))
def both_bounds_unknown(n: int, m: int, x: Any) -> Any:
    t = 0.0
    for i in range(n):
        t += x[i:m].sum() + x[m - i : n].sum()
    return t


@sized(lambda n, more: (n + more, vector(n)))
def negative_bounds(n: int, x: Any) -> Any:
    t = 0.0
    for i in range(n):
        t += x[-i:].sum() + 2 * x[: -i - 1].sum() + 3 * x[i - 5 : -2].sum()
    return t


@sized(lambda n, more: (n + more, 3, vector(n)))
def steps(n: int, s: int, x: Any) -> Any:
    t = 0.0
    for i in range(n):
        t += x[i:n:3].sum() + x[n - i :: -2].sum() + x[: i - 4 : 2].sum()
    return t


@sized(lambda n, more: (n + more, matrix(n)))
def asserted(N: int, u: Any) -> None:
    assert u.shape == (N, N)
    for i in range(1, N - 1):
        u[i, 1 : N - 1] = u[i - 1, : N - 2] + u[i + 1, 2:N]


@sized(lambda n, more: (n + more, matrix(n)))
def raised(N: int, u: Any) -> None:
    if u.shape[0] != N:
        raise ValueError(f"expected {N} rows, got {u.shape[0]}")
    for i in range(1, N):
        u[i] += u[i - 1]


@sized(lambda n, more: (n + more, n - 2, vector(n), vector(n, 1)))
def ranges_of_two(n: int, m: int, x: Any, y: Any) -> None:
    for i in range(m, n):
        x[i - m :] = x[i - m :] + y[: n - i + m].sum()


@sized(lambda n, more: (n + more, n - 7, n + 3 + more, matrix(n)))
def window_of_a_matrix(n: int, first: int, last: int, a: Any) -> Any:
    out = np.zeros(n)
    for i in range(n):
        out[i] = a[i, first:last].sum() + a[first:last, i].max()
    return out


@sized(lambda n, more: (n + 2, n + more, matrix(n), matrix(n, n + 2)))
def syrk(M: int, N: int, C: Any, A: Any) -> None:
    for i in range(N):
        C[i, : i + 1] *= 1.2
        for k in range(M):
            C[i, : i + 1] += 1.5 * A[i, k] * A[: i + 1, k]


@sized(lambda n, more: (n + 2, n + more, matrix(n), matrix(n, n + 2), matrix(n, n + 2, 1)))
def syr2k(M: int, N: int, C: Any, A: Any, B: Any) -> None:
    for i in range(N):
        C[i, : i + 1] *= 1.2
        for k in range(M):
            C[i, : i + 1] += A[: i + 1, k] * 1.5 * B[i, k] + B[: i + 1, k] * 1.5 * A[i, k]


@sized(lambda n, more: (n + more, n + 3, matrix(n), matrix(n, n + 3)))
def trmm(M: int, N: int, A: Any, B: Any) -> None:
    for i in range(M):
        for j in range(N):
            B[i, j] += np.dot(A[i + 1 :, i], B[i + 1 :, j])
    B *= 1.5


@sized(lambda n, more: (n + more, n + 3, matrix(n, n + 3), matrix(n), matrix(n, n + 3, 1)))
def symm(M: int, N: int, C: Any, A: Any, B: Any) -> None:
    temp2 = np.empty((N,), dtype=C.dtype)
    C *= 1.2
    for i in range(M):
        for j in range(N):
            C[:i, j] += 1.5 * B[i, j] * A[i, :i]
            temp2[j] = B[:i, j] @ A[i, :i]
        C[i, :] += 1.5 * B[i, :] * A[i, i] + 1.5 * temp2


@sized(lambda n, more: (n + more, 4, vector(n)))
def blocks(N: int, B: int, x: Any) -> Any:
    out = np.zeros(N)
    for i in range(0, N, B):
        out[i : i + B] = x[i : i + B] * 2.0
    return out


@sized(lambda n, more: (n + more, 5, vector(n)))
def blocks_of_a_while_loop(N: int, B: int, x: Any) -> Any:
    total = 0.0
    i = 0
    while i < N:
        total += x[i : i + B].sum() * (i + 1)
        i += B
    return total


@sized(lambda n, more: (n + more, 2, np.random.default_rng(n).random((2, 2 * n, 2 * n))))
def average_pool(N: int, S: int, x: Any) -> Any:
    out = np.zeros((x.shape[0], N, N))
    for i in range(N):
        for j in range(N):
            out[:, i, j] = x[:, i * S : (i + 1) * S, j * S : (j + 1) * S].mean(axis=(1, 2))
    return out


@sized(lambda n, more: (n + more, 1, matrix(n)))
def median_window(N: int, r: int, x: Any) -> Any:
    out = np.zeros((N, N))
    for i in range(N):
        for j in range(N):
            window = x[max(i - r, 0) : min(i + r + 1, N), max(j - r, 0) : min(j + r + 1, N)]
            out[i, j] = window.max() - window.min()
    return out


@sized(lambda n, more: (n + more, 3, vector(n), vector(7)))
def padded_convolution(N: int, half: int, x: Any, w: Any) -> Any:
    out = np.zeros(N)
    for i in range(N):
        out[i] = x[max(i - half, 0) : i + half + 1].sum() * w[half]
    return out


@sized(lambda n, more: (n + more, n // 2, matrix(n)))
def halves(N: int, M: int, a: Any) -> Any:
    for i in range(M):
        a[i] += a[N - 1 - i]
        a[i // 2, i:N] = a[2 * i, i:N] + a[i % 3, i:N]
    return a


@sized(lambda n, more: (n + more, matrix(n)))
def rows_of_pairs(N: int, u: Any) -> Any:
    total = np.zeros(u.shape[1])
    for i in range(N):
        total += u[i - i % 2] * u[i // 2]
    return total
