"""Images by their geometry: distances, components, warps, seams, fractals and noise."""

import math
from typing import Any

import numpy as np

from jitkernels.benchmarks.science.science_program import science_program, uniform


def distance_mixed(mask: Any) -> Any:
    h, w = mask.shape
    f = np.where(mask, 0.0, 1e6)
    index = np.arange(h)
    columns = np.empty((h, w))
    for j in range(w):
        columns[:, j] = (f[:, j][None, :] + (index[:, None] - index[None, :]) ** 2).min(axis=1)
    index = np.arange(w)
    out = np.empty((h, w))
    for i in range(h):
        out[i] = np.sqrt(np.min(columns[i] + (index[:, None] - index) ** 2, axis=1))
    return out


science_program(
    lambda n, _: (uniform(n, n) < 0.1,),
    distance_mixed,
    size=120, sizes=(9, 12),
)  # fmt: skip


def labelling_arrays(mask: Any) -> Any:
    h, w = mask.shape
    label = np.where(mask, np.arange(h * w).reshape(h, w), -1)
    while True:
        p = np.pad(label, 1, constant_values=-1)
        new = np.maximum.reduce([label, p[:-2, 1:-1], p[2:, 1:-1], p[1:-1, :-2], p[1:-1, 2:]])
        new = np.where(mask, new, -1)
        if np.all(new == label):
            break
        label = new
    return label


science_program(
    lambda n, _: (uniform(n, n) < 0.55,),
    labelling_arrays,
    size=100, sizes=(9, 12),
)  # fmt: skip


def warp_arrays(img: Any, angle: Any, scale: Any) -> Any:
    h, w = img.shape
    yy, xx = np.mgrid[0:h, 0:w]
    cy, cx = (h - 1) / 2, (w - 1) / 2
    c, s = np.cos(angle) / scale, np.sin(angle) / scale
    y = c * (yy - cy) - s * (xx - cx) + cy
    x = s * (yy - cy) + c * (xx - cx) + cx
    inside = (y >= 0) & (y <= h - 1) & (x >= 0) & (x <= w - 1)
    y0 = np.clip(np.floor(y).astype(int), 0, h - 2)
    x0 = np.clip(np.floor(x).astype(int), 0, w - 2)
    fy, fx = y - y0, x - x0
    out = (1 - fy) * ((1 - fx) * img[y0, x0] + fx * img[y0, x0 + 1]) + fy * (
        (1 - fx) * img[y0 + 1, x0] + fx * img[y0 + 1, x0 + 1]
    )
    return np.where(inside, out, 0.0)


def warp_loops(img: Any, angle: Any, scale: Any) -> Any:
    h, w = img.shape
    out = np.zeros_like(img)
    cy, cx = (h - 1) / 2, (w - 1) / 2
    c, s = math.cos(angle) / scale, math.sin(angle) / scale
    for i in range(h):
        for j in range(w):
            y = c * (i - cy) - s * (j - cx) + cy
            x = s * (i - cy) + c * (j - cx) + cx
            if y < 0 or x < 0 or y > h - 1 or x > w - 1:
                continue
            y0 = min(int(y), h - 2)
            x0 = min(int(x), w - 2)
            fy, fx = y - y0, x - x0
            top = (1 - fx) * img[y0, x0] + fx * img[y0, x0 + 1]
            bottom = (1 - fx) * img[y0 + 1, x0] + fx * img[y0 + 1, x0 + 1]
            out[i, j] = (1 - fy) * top + fy * bottom
    return out


science_program(
    lambda n, _: (uniform(n, n), 0.3, 1.1),
    warp_arrays, warp_loops,
    size=200, sizes=(5, 12),
)  # fmt: skip


def julia_mixed(h: Any, w: Any, c: Any, most: Any) -> Any:
    times = np.zeros((h, w), dtype=np.int64)
    for i, y in enumerate(np.linspace(-1.2, 1.2, h)):
        z = np.linspace(-1.6, 1.6, w) + 1j * y
        for _ in range(most):
            inside = z.real**2 + z.imag**2 <= 4
            if not inside.any():
                break
            z = np.where(inside, z * z + c, z)
            times[i] += inside
    return times


def julia_loops(h: Any, w: Any, c: Any, most: Any) -> Any:
    times = np.zeros((h, w), dtype=np.int64)
    for i in range(h):
        for j in range(w):
            z = complex(-1.6 + 3.2 * j / (w - 1), -1.2 + 2.4 * i / (h - 1))
            k = 0
            while k < most and abs(z) <= 2.0:
                z = z * z + c
                k += 1
            times[i, j] = k
    return times


science_program(
    lambda n, _: (n, n, -0.8 + 0.156j, 60),
    julia_mixed, julia_loops,
    size=160, sizes=(5, 12),
)  # fmt: skip


def perlin_arrays(gradients: Any, size: Any, cells: Any) -> Any:
    t = np.arange(size) * cells / size
    i = t.astype(int)
    f = t - i
    fade = f**3 * (f * (f * 6 - 15) + 10)

    def corner(dy: Any, dx: Any) -> Any:
        g = gradients[i[:, None] + dy, i[None, :] + dx]
        return g[..., 0] * (f[:, None] - dy) + g[..., 1] * (f[None, :] - dx)

    top = corner(0, 0) * (1 - fade) + corner(0, 1) * fade
    bottom = corner(1, 0) * (1 - fade) + corner(1, 1) * fade
    return top * (1 - fade[:, None]) + bottom * fade[:, None]


def perlin_loops(gradients: Any, size: Any, cells: Any) -> Any:
    out = np.zeros((size, size))
    for a in range(size):
        for b in range(size):
            y, x = a * cells / size, b * cells / size
            i, j = int(y), int(x)
            fy, fx = y - i, x - j
            n00 = gradients[i, j, 0] * fy + gradients[i, j, 1] * fx
            n01 = gradients[i, j + 1, 0] * fy + gradients[i, j + 1, 1] * (fx - 1)
            n10 = gradients[i + 1, j, 0] * (fy - 1) + gradients[i + 1, j, 1] * fx
            n11 = gradients[i + 1, j + 1, 0] * (fy - 1) + gradients[i + 1, j + 1, 1] * (fx - 1)
            u = fx * fx * fx * (fx * (fx * 6 - 15) + 10)
            v = fy * fy * fy * (fy * (fy * 6 - 15) + 10)
            out[a, b] = (n00 * (1 - u) + n01 * u) * (1 - v) + (n10 * (1 - u) + n11 * u) * v
    return out


science_program(
    lambda n, _: (uniform(17, 17, 2), n, 16),
    perlin_arrays, perlin_loops,
    size=160, sizes=(5, 12),
)  # fmt: skip


def seam_loops(energy: Any, count: Any) -> Any:
    h, w = energy.shape
    img = energy.copy()
    cost = np.zeros((h, w))
    total = 0.0
    for k in range(count):
        width = w - k
        for j in range(width):
            cost[0, j] = img[0, j]
        for i in range(1, h):
            for j in range(width):
                best = cost[i - 1, j]
                if j > 0:
                    best = min(best, cost[i - 1, j - 1])
                if j < width - 1:
                    best = min(best, cost[i - 1, j + 1])
                cost[i, j] = img[i, j] + best
        j = 0
        for b in range(1, width):
            if cost[h - 1, b] < cost[h - 1, j]:
                j = b
        total += cost[h - 1, j]
        for i in range(h - 1, -1, -1):
            for b in range(j, width - 1):
                img[i, b] = img[i, b + 1]
            if i > 0:
                best = j
                if j > 0 and cost[i - 1, j - 1] <= cost[i - 1, best]:
                    best = j - 1
                if j < width - 1 and cost[i - 1, j + 1] < cost[i - 1, best]:
                    best = j + 1
                j = best
    return img[:, : w - count], total


science_program(
    lambda n, _: (uniform(n, n), 3),
    seam_loops,
    size=120, sizes=(9, 12),
)  # fmt: skip
