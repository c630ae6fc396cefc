"""Images by their values: histograms, thresholds, votes, colors."""

import math
from typing import Any

import numpy as np

from jitkernels.benchmarks.science.science_program import science_program, uniform


def equalize_arrays(img: Any) -> Any:
    hist = np.bincount(img.ravel(), minlength=256)
    cdf = hist.cumsum()
    low = cdf[cdf > 0].min()
    table = np.clip(np.round((cdf - low) / (img.size - low) * 255), 0, 255).astype(np.uint8)
    return table[img].astype(np.int64)


def equalize_loops(img: Any) -> Any:
    h, w = img.shape
    hist = np.zeros(256, dtype=np.int64)
    for i in range(h):
        for j in range(w):
            hist[img[i, j]] += 1
    table = np.zeros(256, dtype=np.uint8)
    low = -1
    total = 0
    for v in range(256):
        total += hist[v]
        if low < 0 and total > 0:
            low = total
        table[v] = round(max(total - low, 0) / (h * w - low) * 255)
    out = np.empty_like(img)
    for i in range(h):
        for j in range(w):
            out[i, j] = table[img[i, j]]
    return out.astype(np.int64)


science_program(
    lambda n, _: ((256 * uniform(n, n) ** 2).astype(np.uint8),),
    equalize_arrays, equalize_loops,
    size=256, sizes=(5, 12),
)  # fmt: skip


def otsu_arrays(img: Any) -> Any:
    hist, edges = np.histogram(img, bins=256, range=(0, 256))
    p = hist / hist.sum()
    centers = (edges[:-1] + edges[1:]) / 2
    w0 = np.cumsum(p)
    m = np.cumsum(p * centers)
    between = (m[-1] * w0 - m) ** 2 / np.maximum(w0 * (1 - w0), 1e-12)
    t = centers[np.argmax(between)]
    return t - 0.5


def otsu_loops(img: Any) -> Any:
    hist = np.zeros(256)
    h, w = img.shape
    for i in range(h):
        for j in range(w):
            hist[int(img[i, j])] += 1
    total = h * w
    mean = 0.0
    for v in range(256):
        mean += v * hist[v]
    below = 0.0
    sum_below = 0.0
    best = 0.0
    threshold = 0
    for v in range(256):
        below += hist[v]
        if below == 0:
            continue
        above = total - below
        if above == 0:
            break
        sum_below += v * hist[v]
        gap = sum_below / below - (mean - sum_below) / above
        score = below * above * gap * gap
        if score > best:
            best = score
            threshold = v
    return float(threshold)


science_program(
    lambda n, _: (255 * uniform(n, n) ** 2,),
    otsu_arrays, otsu_loops,
    size=256, sizes=(9, 12),
)  # fmt: skip


def hough_mixed(img: Any, angles: Any) -> Any:
    theta = np.arange(angles) * np.pi / angles
    c, s = np.cos(theta), np.sin(theta)
    far = int(np.hypot(img.shape[0], img.shape[1])) + 1
    votes = np.zeros((2 * far + 1, angles), dtype=np.int64)
    columns = np.arange(angles)
    for i, j in np.argwhere(img):
        rho = np.rint(j * c + i * s).astype(np.int64) + far
        votes[rho, columns] += 1
    return votes, votes.max()


def hough_loops(img: Any, angles: Any) -> Any:
    h, w = img.shape
    far = int(math.sqrt(h * h + w * w)) + 1
    votes = np.zeros((2 * far + 1, angles), dtype=np.int64)
    for i in range(h):
        for j in range(w):
            if img[i, j]:
                for t in range(angles):
                    theta = t * math.pi / angles
                    rho = j * math.cos(theta) + i * math.sin(theta)
                    votes[int(round(rho)) + far, t] += 1
    best = 0
    for r in range(2 * far + 1):
        for t in range(angles):
            if votes[r, t] > best:
                best = votes[r, t]
    return votes, best


science_program(
    lambda n, _: (uniform(n, n) < 0.03, 180),
    hough_mixed, hough_loops,
    size=128, sizes=(9, 12),
)  # fmt: skip


def hsv_arrays(rgb: Any) -> Any:
    r, g, b = rgb[..., 0], rgb[..., 1], rgb[..., 2]
    v = rgb.max(axis=-1)
    span = v - rgb.min(axis=-1)
    safe = np.where(span == 0, 1, span)
    h = np.select([v == r, v == g], [(g - b) / safe, 2 + (b - r) / safe], default=4 + (r - g) / safe)
    h = np.where(span == 0, 0, (h / 6) % 1.0)
    s = np.where(v == 0, 0, span / np.where(v == 0, 1, v))
    return np.stack([h, s, v], axis=-1)


def hsv_loops(rgb: Any) -> Any:
    n, m, _ = rgb.shape
    out = np.zeros((n, m, 3))
    for i in range(n):
        for j in range(m):
            r, g, b = rgb[i, j]
            v = max(r, g, b)
            span = v - min(r, g, b)
            if span == 0:
                h = 0.0
            elif v == r:
                h = ((g - b) / span / 6) % 1.0
            elif v == g:
                h = (2 + (b - r) / span) / 6
            else:
                h = (4 + (r - g) / span) / 6
            out[i, j, 0] = h
            out[i, j, 1] = 0 if v == 0 else span / v
            out[i, j, 2] = v
    return out


science_program(
    lambda n, _: (uniform(n, n, 3),),
    hsv_arrays, hsv_loops,
    size=200, sizes=(5, 12),
)  # fmt: skip


def demosaic_arrays(raw: Any) -> Any:
    h, w = raw.shape
    rgb = np.zeros((h, w, 3))
    rgb[0::2, 0::2, 0] = raw[0::2, 0::2]
    rgb[0::2, 1::2, 1] = raw[0::2, 1::2]
    rgb[1::2, 0::2, 1] = raw[1::2, 0::2]
    rgb[1::2, 1::2, 2] = raw[1::2, 1::2]
    known = rgb != 0
    for c in range(3):
        p = np.pad(rgb[:, :, c], 1)
        k = np.pad(known[:, :, c].astype(float), 1)
        total = np.zeros((h, w))
        count = np.zeros((h, w))
        for dy in range(3):
            for dx in range(3):
                total += p[dy : dy + h, dx : dx + w]
                count += k[dy : dy + h, dx : dx + w]
        rgb[:, :, c] = np.where(known[:, :, c], rgb[:, :, c], total / count)
    return rgb


def demosaic_loops(raw: Any) -> Any:
    h, w = raw.shape
    rgb = np.zeros((h, w, 3))
    total = np.zeros(3)
    count = np.zeros(3)
    for i in range(h):
        for j in range(w):
            total[:] = 0
            count[:] = 0
            for a in range(max(i - 1, 0), min(i + 2, h)):
                for b in range(max(j - 1, 0), min(j + 2, w)):
                    c = a % 2 + b % 2
                    total[c] += raw[a, b]
                    count[c] += 1
            for c in range(3):
                rgb[i, j, c] = total[c] / count[c]
            rgb[i, j, i % 2 + j % 2] = raw[i, j]
    return rgb


science_program(
    lambda n, _: (uniform(n, n) + 0.1,),
    demosaic_arrays, demosaic_loops,
    size=200, sizes=(6, 12),
)  # fmt: skip
