"""Spectra: periodograms, short-time transforms, the Goertzel algorithm, cosine transforms."""

from typing import Any

import numpy as np

from jitkernels.benchmarks.science.science_program import science_program, uniform


def periodogram_arrays(x: Any, fs: Any) -> Any:
    n = len(x)
    window = np.hanning(n)
    spectrum = np.abs(np.fft.rfft((x - x.mean()) * window)) ** 2
    spectrum[1:-1] *= 2
    return np.fft.rfftfreq(n, 1 / fs), spectrum / (fs * np.sum(window**2))


def periodogram_mixed(x: Any, fs: Any) -> Any:
    n = x.shape[0]
    w = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(n) / (n - 1))
    X = np.fft.rfft(w * (x - np.mean(x)))  # noqa: N806
    power = np.zeros(n // 2 + 1)
    scale = fs * (w * w).sum()
    for k in range(len(power)):
        power[k] = (X[k].real ** 2 + X[k].imag ** 2) / scale
        if 0 < k < len(power) - 1:
            power[k] *= 2
    return np.arange(n // 2 + 1) * fs / n, power


def welch_arrays(x: Any, nperseg: Any) -> Any:
    step = nperseg // 2
    window = np.hanning(nperseg)
    segments = np.lib.stride_tricks.sliding_window_view(x, nperseg)[::step]
    segments = segments - segments.mean(axis=1, keepdims=True)
    spectra = np.abs(np.fft.rfft(segments * window, axis=1)) ** 2
    return spectra.mean(axis=0) / np.sum(window**2)


def welch_mixed(x: Any, nperseg: Any) -> Any:
    step = nperseg // 2
    window = np.hanning(nperseg)
    total = np.zeros(nperseg // 2 + 1)
    count = 0
    for start in range(0, len(x) - nperseg + 1, step):
        segment = x[start : start + nperseg]
        segment = (segment - segment.mean()) * window
        total += np.abs(np.fft.rfft(segment)) ** 2
        count += 1
    return total / count / (window**2).sum()


def stft_arrays(x: Any, width: Any, hop: Any) -> Any:
    frames = 1 + (len(x) - width) // hop
    index = np.arange(width)[None, :] + hop * np.arange(frames)[:, None]
    return 20 * np.log10(np.abs(np.fft.rfft(x[index] * np.hamming(width), axis=1)) + 1e-9)


def stft_mixed(x: Any, width: Any, hop: Any) -> Any:
    frames = 1 + (len(x) - width) // hop
    window = np.hamming(width)
    out = np.empty((frames, width // 2 + 1))
    for t in range(frames):
        out[t] = 20 * np.log10(np.abs(np.fft.rfft(window * x[t * hop : t * hop + width])) + 1e-9)
    return out


def goertzel_arrays(x: Any, fs: Any, tones: Any) -> Any:
    """The recurrence over time, all tones at once."""
    c = 2 * np.cos(2 * np.pi * tones / fs)
    s1 = np.zeros(len(tones))
    s2 = np.zeros(len(tones))
    for sample in x:
        s1, s2 = sample + c * s1 - s2, s1
    return s1**2 + s2**2 - c * s1 * s2


def goertzel_loops(x: Any, fs: Any, tones: Any) -> Any:
    power = np.zeros(len(tones))
    for k in range(len(tones)):
        c = 2 * np.cos(2 * np.pi * tones[k] / fs)
        s1 = 0.0
        s2 = 0.0
        for i in range(len(x)):
            s = x[i] + c * s1 - s2
            s2 = s1
            s1 = s
        power[k] = s1 * s1 + s2 * s2 - c * s1 * s2
    return power


def cosine_transform_arrays(x: Any) -> Any:
    """The DCT-II of each row, by a Fourier transform of the same length."""
    n = x.shape[1]
    v = np.concatenate([x[:, ::2], x[:, 1::2][:, ::-1]], axis=1)
    V = np.fft.fft(v, axis=1)  # noqa: N806
    return 2 * np.real(V * np.exp(-1j * np.pi * np.arange(n) / (2 * n)))


def cosine_transform_loops(x: Any) -> Any:
    rows, n = x.shape
    table = np.zeros((n, n))
    for k in range(n):
        for i in range(n):
            table[k, i] = 2 * np.cos(np.pi * k * (2 * i + 1) / (2 * n))
    out = np.zeros((rows, n))
    for r in range(rows):
        for k in range(n):
            total = 0.0
            for i in range(n):
                total += table[k, i] * x[r, i]
            out[r, k] = total
    return out


def radix2_arrays(x: Any) -> Any:
    return np.fft.fft(x)


def radix2_loops(x: Any) -> Any:
    """The iterative algorithm of Cooley and Tukey."""
    n = len(x)
    out = np.zeros(n, np.complex128)
    bits = 0
    while (1 << bits) < n:
        bits += 1
    for i in range(n):
        j = 0
        for b in range(bits):
            if i & (1 << b):
                j |= 1 << (bits - 1 - b)
        out[j] = x[i]
    size = 2
    while size <= n:
        half = size // 2
        for start in range(0, n, size):
            for k in range(half):
                w = np.exp(-2j * np.pi * k / size)
                even = out[start + k]
                odd = w * out[start + k + half]
                out[start + k] = even + odd
                out[start + k + half] = even - odd
        size *= 2
    return out


def autocorrelation_arrays(x: Any, lags: Any) -> Any:
    x = x - x.mean()
    n = len(x)
    f = np.fft.rfft(x, 2 * n)
    acf = np.fft.irfft(f * np.conj(f))[:lags]
    return acf / acf[0]


def autocorrelation_loops(x: Any, lags: Any) -> Any:
    n = len(x)
    mean = 0.0
    for i in range(n):
        mean += x[i]
    mean /= n
    acf = np.zeros(lags)
    for lag in range(lags):
        for i in range(n - lag):
            acf[lag] += (x[i] - mean) * (x[i + lag] - mean)
    first = acf[0]
    for lag in range(lags):
        acf[lag] /= first
    return acf


def autocorrelation_mixed(x: Any, lags: Any) -> Any:
    d = x - np.mean(x)
    acf = np.array([np.dot(d[: len(d) - k], d[k:]) for k in range(lags)])
    return acf / acf[0]


science_program(
    lambda n, _: (uniform(2 * n), 100.0), periodogram_arrays, periodogram_mixed, size=1024, sizes=(2, 9, 50)
)
science_program(lambda n, _: (uniform(10 * n), 2 * n), welch_arrays, welch_mixed, size=128, sizes=(2, 9, 16))
science_program(lambda n, _: (uniform(40 * n), 8 * n, 2 * n), stft_arrays, stft_mixed, size=32, sizes=(1, 3, 8))
science_program(
    lambda n, _: (uniform(n), 8000.0, np.array([697.0, 770, 852, 941, 1209, 1336, 1477, 1633])),
    goertzel_arrays, goertzel_loops,
    size=800, sizes=(1, 9, 50),
)  # fmt: skip
science_program(
    lambda n, _: (uniform(20, n),), cosine_transform_arrays, cosine_transform_loops, size=64, sizes=(1, 9, 16)
)
science_program(lambda n, _: (uniform(n),), radix2_arrays, radix2_loops, size=512, sizes=(2, 8, 64))
science_program(
    lambda n, _: (uniform(n), 3), autocorrelation_arrays, autocorrelation_loops, autocorrelation_mixed,
    size=1000, sizes=(4, 9, 50),
)  # fmt: skip
