"""Filters of images: edges, blur that keeps edges, medians, box sums, morphology, error diffusion."""

import math
from typing import Any

import numpy as np

from jitkernels.benchmarks.science.science_program import science_program, uniform


def picture(n: int) -> Any:
    """Return a grey image of waves with noise, from 0 to 255."""
    y, x = np.mgrid[0:n, 0:n] / n
    return np.clip(128 + 60 * np.sin(9 * x) * np.cos(7 * y) + 40 * (uniform(n, n) - 0.5), 0, 255)


def sobel_arrays(img: Any) -> Any:
    gx = (img[:-2, 2:] + 2 * img[1:-1, 2:] + img[2:, 2:]) - (img[:-2, :-2] + 2 * img[1:-1, :-2] + img[2:, :-2])
    gy = (img[2:, :-2] + 2 * img[2:, 1:-1] + img[2:, 2:]) - (img[:-2, :-2] + 2 * img[:-2, 1:-1] + img[:-2, 2:])
    out = np.zeros_like(img)
    out[1:-1, 1:-1] = np.hypot(gx, gy)
    return out / out.max() * 255


def sobel_loops(img: Any) -> Any:
    h, w = img.shape
    out = np.zeros((h, w))
    top = 0.0
    for i in range(1, h - 1):
        for j in range(1, w - 1):
            gx = gy = 0.0
            for a in range(-1, 2):
                for b in range(-1, 2):
                    weight = 2 if a == 0 or b == 0 else 1
                    gx += b * weight * img[i + a, j + b]
                    gy += a * weight * img[i + a, j + b]
            out[i, j] = math.sqrt(gx * gx + gy * gy)
            top = max(top, out[i, j])
    for i in range(h):
        for j in range(w):
            out[i, j] = out[i, j] / top * 255
    return out


def sobel_mixed(img: Any) -> Any:
    kx = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]])
    ky = kx.T
    out = np.zeros_like(img)
    for i in range(1, img.shape[0] - 1):
        for j in range(1, img.shape[1] - 1):
            patch = img[i - 1 : i + 2, j - 1 : j + 2]
            out[i, j] = np.sqrt(np.sum(patch * kx) ** 2 + np.sum(patch * ky) ** 2)
    return out * (255 / out.max())


science_program(
    lambda n, _: (picture(n),),
    sobel_arrays, sobel_loops, sobel_mixed,
    size=200, sizes=(5, 12),
)  # fmt: skip


def bilateral_arrays(img: Any, r: Any, sigma_s: Any, sigma_r: Any) -> Any:
    padded = np.pad(img, r, mode="edge")
    h, w = img.shape
    total = np.zeros_like(img)
    norm = np.zeros_like(img)
    for dy in range(-r, r + 1):
        for dx in range(-r, r + 1):
            shifted = padded[r + dy : r + dy + h, r + dx : r + dx + w]
            weight = np.exp(-(dx**2 + dy**2) / (2 * sigma_s**2) - (shifted - img) ** 2 / (2 * sigma_r**2))
            total += weight * shifted
            norm += weight
    return total / norm


def bilateral_loops(img: Any, r: Any, sigma_s: Any, sigma_r: Any) -> Any:
    h, w = img.shape
    out = np.empty_like(img)
    for i in range(h):
        for j in range(w):
            s = n = 0.0
            for a in range(i - r, i + r + 1):
                for b in range(j - r, j + r + 1):
                    near = img[min(max(a, 0), h - 1), min(max(b, 0), w - 1)]
                    d = near - img[i, j]
                    g = math.exp(
                        -((a - i) ** 2 + (b - j) ** 2) / (2 * sigma_s * sigma_s) - d * d / (2 * sigma_r * sigma_r)
                    )
                    s += g * near
                    n += g
            out[i, j] = s / n
    return out


def bilateral_mixed(img: Any, r: Any, sigma_s: Any, sigma_r: Any) -> Any:
    ax = np.arange(-r, r + 1)
    space = np.exp(-(ax[:, None] ** 2 + ax[None, :] ** 2) / (2 * sigma_s**2))
    padded = np.pad(img, r, mode="edge")
    out = np.zeros(img.shape)
    for i in range(img.shape[0]):
        for j in range(img.shape[1]):
            patch = padded[i : i + 2 * r + 1, j : j + 2 * r + 1]
            weights = space * np.exp(-((patch - img[i, j]) ** 2) / (2 * sigma_r**2))
            out[i, j] = (weights * patch).sum() / weights.sum()
    return out


science_program(
    lambda n, _: (picture(n), 3, 2.0, 25.0),
    bilateral_arrays, bilateral_loops, bilateral_mixed,
    size=96, sizes=(5, 12),
)  # fmt: skip


def median_arrays(img: Any) -> Any:
    h, w = img.shape
    shifts = [img[i : i + h - 2, j : j + w - 2] for i in range(3) for j in range(3)]
    out = img.copy()
    out[1:-1, 1:-1] = np.median(np.stack(shifts), axis=0)
    return out


def median_loops(img: Any) -> Any:
    h, w = img.shape
    out = img.copy()
    window = np.zeros(9)
    for i in range(1, h - 1):
        for j in range(1, w - 1):
            k = 0
            for a in range(-1, 2):
                for b in range(-1, 2):
                    v = img[i + a, j + b]
                    m = k - 1
                    while m >= 0 and window[m] > v:
                        window[m + 1] = window[m]
                        m -= 1
                    window[m + 1] = v
                    k += 1
            out[i, j] = window[4]
    return out


def median_mixed(img: Any) -> Any:
    out = img.copy()
    for i in range(1, img.shape[0] - 1):
        for j in range(1, img.shape[1] - 1):
            out[i, j] = np.median(img[i - 1 : i + 2, j - 1 : j + 2])
    return out


science_program(
    lambda n, _: (picture(n),),
    median_arrays, median_loops, median_mixed,
    size=128, sizes=(5, 12),
)  # fmt: skip


def opening_arrays(mask: Any, r: Any) -> Any:
    def shifted(m: Any, op: Any, fill: Any) -> Any:
        p = np.pad(m, r, constant_values=fill)
        out = m.copy()
        for dy in range(2 * r + 1):
            for dx in range(2 * r + 1):
                out = op(out, p[dy : dy + m.shape[0], dx : dx + m.shape[1]])
        return out

    return shifted(shifted(mask, np.logical_and, True), np.logical_or, False) * 1


def opening_loops(mask: Any, r: Any) -> Any:
    h, w = mask.shape
    eroded = np.zeros((h, w), dtype=np.bool_)
    for i in range(h):
        for j in range(w):
            keep = True
            for a in range(max(i - r, 0), min(i + r + 1, h)):
                for b in range(max(j - r, 0), min(j + r + 1, w)):
                    if not mask[a, b]:
                        keep = False
            eroded[i, j] = keep
    out = np.zeros((h, w), dtype=np.bool_)
    for i in range(h):
        for j in range(w):
            if eroded[i, j]:
                for a in range(max(i - r, 0), min(i + r + 1, h)):
                    for b in range(max(j - r, 0), min(j + r + 1, w)):
                        out[a, b] = True
    return out * 1


def opening_mixed(mask: Any, r: Any) -> Any:
    h, w = mask.shape
    eroded = np.empty_like(mask)
    for i in range(h):
        for j in range(w):
            eroded[i, j] = mask[max(i - r, 0) : i + r + 1, max(j - r, 0) : j + r + 1].all()
    out = np.zeros_like(mask)
    for i in range(h):
        for j in range(w):
            out[i, j] = np.any(eroded[max(i - r, 0) : i + r + 1, max(j - r, 0) : j + r + 1])
    return out * 1


science_program(
    lambda n, _: (picture(n) > 120, 2),
    opening_arrays, opening_loops, opening_mixed,
    size=200, sizes=(5, 12),
)  # fmt: skip


def box_blur_arrays(img: Any, r: Any) -> Any:
    s = np.zeros((img.shape[0] + 1, img.shape[1] + 1))
    s[1:, 1:] = img.cumsum(axis=0).cumsum(axis=1)
    k = 2 * r + 1
    return (s[k:, k:] - s[:-k, k:] - s[k:, :-k] + s[:-k, :-k]) / k**2


def box_blur_loops(img: Any, r: Any) -> Any:
    h, w = img.shape
    s = np.zeros((h + 1, w + 1))
    for i in range(h):
        row = 0.0
        for j in range(w):
            row += img[i, j]
            s[i + 1, j + 1] = s[i, j + 1] + row
    k = 2 * r + 1
    out = np.zeros((h - k + 1, w - k + 1))
    for i in range(h - k + 1):
        for j in range(w - k + 1):
            out[i, j] = (s[i + k, j + k] - s[i, j + k] - s[i + k, j] + s[i, j]) / (k * k)
    return out


def box_blur_mixed(img: Any, r: Any) -> Any:
    out = np.empty((img.shape[0] - 2 * r, img.shape[1] - 2 * r))
    for i in range(out.shape[0]):
        rows = img[i : i + 2 * r + 1].mean(axis=0)
        c = np.concatenate(([0.0], np.cumsum(rows)))
        out[i] = (c[2 * r + 1 :] - c[: -2 * r - 1]) / (2 * r + 1)
    return out


science_program(
    lambda n, _: (uniform(n, n), 2),
    box_blur_arrays, box_blur_loops, box_blur_mixed,
    size=300, sizes=(8, 12),
)  # fmt: skip


def dither_loops(img: Any) -> Any:
    h, w = img.shape
    a = img.copy()
    for y in range(h):
        for x in range(w):
            old = a[y, x]
            new = 255.0 if old > 127.5 else 0.0
            a[y, x] = new
            err = old - new
            if x + 1 < w:
                a[y, x + 1] += err * 7 / 16
            if y + 1 < h:
                if x > 0:
                    a[y + 1, x - 1] += err * 3 / 16
                a[y + 1, x] += err * 5 / 16
                if x + 1 < w:
                    a[y + 1, x + 1] += err / 16
    return a


def dither_mixed(img: Any) -> Any:
    p = np.pad(img.astype(np.float64), ((0, 1), (1, 1)))
    weights = np.array([3, 5, 1]) / 16
    for y in range(img.shape[0]):
        for x in range(1, img.shape[1] + 1):
            old = p[y, x]
            p[y, x] = np.round(old / 255) * 255
            err = old - p[y, x]
            p[y, x + 1] += err * 7 / 16
            p[y + 1, x - 1 : x + 2] += err * weights
    return p[:-1, 1:-1].copy()


science_program(
    lambda n, _: (picture(n),),
    dither_loops, dither_mixed,
    size=200, sizes=(5, 12),
)  # fmt: skip
