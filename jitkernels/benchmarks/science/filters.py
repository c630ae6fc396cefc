"""Filters of signals: convolution by transforms, recursive and polynomial filters."""

from typing import Any

import numpy as np

from jitkernels.benchmarks.science.science_program import science_program, uniform


def fft_convolution_arrays(x: Any, h: Any) -> Any:
    n = len(x) + len(h) - 1
    size = 1
    while size < n:
        size *= 2
    return np.fft.irfft(np.fft.rfft(x, size) * np.fft.rfft(h, size), size)[:n]


def fft_convolution_loops(x: Any, h: Any) -> Any:
    n, m = len(x), len(h)
    y = np.zeros(n + m - 1)
    for i in range(n):
        for j in range(m):
            y[i + j] += x[i] * h[j]
    return y


def fft_convolution_mixed(x: Any, h: Any) -> Any:
    return np.convolve(x, h)


def biquad_arrays(x: Any, b: Any, a: Any) -> Any:
    """A recursive filter of second order on each of many channels."""
    y = np.zeros_like(x)
    z1 = np.zeros(x.shape[1])
    z2 = np.zeros(x.shape[1])
    for t in range(len(x)):
        y[t] = b[0] * x[t] + z1
        z1 = b[1] * x[t] - a[1] * y[t] + z2
        z2 = b[2] * x[t] - a[2] * y[t]
    return y


def biquad_loops(x: Any, b: Any, a: Any) -> Any:
    n, channels = x.shape
    y = np.zeros((n, channels))
    for c in range(channels):
        z1 = 0.0
        z2 = 0.0
        for t in range(n):
            v = x[t, c]
            out = b[0] * v + z1
            z1 = b[1] * v - a[1] * out + z2
            z2 = b[2] * v - a[2] * out
            y[t, c] = out
    return y


def iir_arrays(x: Any, b: Any, a: Any) -> Any:
    """The difference equation of any order, as its definition."""
    y = np.zeros(len(x))
    for n in range(len(x)):
        y[n] = np.sum(b[: n + 1] * x[n::-1][: len(b)])
        y[n] -= np.sum(a[1 : n + 1] * y[:n][::-1][: len(a) - 1])
    return y


def iir_loops(x: Any, b: Any, a: Any) -> Any:
    y = np.zeros(len(x))
    for n in range(len(x)):
        for k in range(len(b)):
            if n - k >= 0:
                y[n] += b[k] * x[n - k]
        for k in range(1, len(a)):
            if n - k >= 0:
                y[n] -= a[k] * y[n - k]
    return y


def savitzky_golay_arrays(y: Any, half: Any) -> Any:
    """Quadratic smoothing: the coefficients by the pseudoinverse, the ends reflected."""
    k = np.arange(-half, half + 1)
    A = np.vander(k, 3, increasing=True).astype(float)  # noqa: N806
    m = np.linalg.solve(A.T @ A, A.T)[0]
    first = y[0] - np.abs(y[1 : half + 1][::-1] - y[0])
    last = y[-1] + np.abs(y[-half - 1 : -1][::-1] - y[-1])
    padded = np.concatenate((first, y, last))
    return np.convolve(m[::-1], padded, mode="valid")


def savitzky_golay_loops(y: Any, half: Any) -> Any:
    width = 2 * half + 1
    s2 = 0.0
    s4 = 0.0
    for k in range(-half, half + 1):
        s2 += k**2
        s4 += k**4
    n = len(y)
    out = np.zeros(n)
    for i in range(n):
        total = 0.0
        for k in range(-half, half + 1):
            j = i + k
            if j < 0:
                value = y[0] - abs(y[-j] - y[0])
            elif j >= n:
                value = y[n - 1] + abs(y[2 * (n - 1) - j] - y[n - 1])
            else:
                value = y[j]
            total += (s4 - s2 * k * k) / (width * s4 - s2 * s2) * value
        out[i] = total
    return out


def moving_average_arrays(x: Any, width: Any) -> Any:
    c = np.cumsum(np.insert(x, 0, 0.0))
    return (c[width:] - c[:-width]) / width


def moving_average_loops(x: Any, width: Any) -> Any:
    n = len(x) - width + 1
    out = np.zeros(n)
    total = 0.0
    for i in range(width):
        total += x[i]
    out[0] = total / width
    for i in range(1, n):
        total += x[i + width - 1] - x[i - 1]
        out[i] = total / width
    return out


def moving_average_mixed(x: Any, width: Any) -> Any:
    return np.lib.stride_tricks.sliding_window_view(x, width).mean(axis=1)


def exponential_arrays(x: Any, alpha: Any) -> Any:
    """Exponential smoothing with a trend (Holt)."""
    level, trend = x[0], x[1] - x[0]
    out = np.empty_like(x)
    for t, value in enumerate(x):
        previous = level
        level = alpha * value + (1 - alpha) * (level + trend)
        trend = 0.1 * (level - previous) + 0.9 * trend
        out[t] = level
    return out


def exponential_loops(x: Any, alpha: Any) -> Any:
    n = x.shape[0]
    out = np.zeros(n)
    level = x[0]
    trend = x[1] - x[0]
    for t in range(n):
        new = alpha * x[t] + (1 - alpha) * (level + trend)
        trend = 0.1 * (new - level) + 0.9 * trend
        level = new
        out[t] = new
    return out


COEFFICIENTS = (np.array([0.2, 0.4, 0.2]), np.array([1.0, -0.3, 0.1]))

science_program(
    lambda n, _: (uniform(4 * n), uniform(n, seed=1)),
    fft_convolution_arrays, fft_convolution_loops, fft_convolution_mixed,
    size=128, sizes=(1, 9, 30),
)  # fmt: skip
science_program(lambda n, _: (uniform(n, 32), *COEFFICIENTS), biquad_arrays, biquad_loops, size=500, sizes=(1, 9, 30))
science_program(lambda n, _: (uniform(n), *COEFFICIENTS), iir_arrays, iir_loops, size=500, sizes=(4, 9, 30))
science_program(
    lambda n, _: (uniform(8 * n), n // 2 + 1), savitzky_golay_arrays, savitzky_golay_loops, size=20, sizes=(2, 5, 9)
)
science_program(
    lambda n, _: (uniform(20 * n), n), moving_average_arrays, moving_average_loops, moving_average_mixed,
    size=50, sizes=(1, 4, 9),
)  # fmt: skip
science_program(lambda n, _: (uniform(n), 0.3), exponential_arrays, exponential_loops, size=2000, sizes=(2, 9, 30))
