"""Particles beside grids and trees: cells, charges on a mesh, chains, quadtrees, histograms."""

import math
from typing import Any

import numpy as np

from jitkernels.benchmarks.science.science_program import science_program, uniform


def build_tree(pos: Any, mass: Any) -> Any:
    n = len(pos)
    size = 8 * n + 64
    child = np.full((size, 4), -1, dtype=np.int64)
    body = np.full(size, -1, dtype=np.int64)
    center = np.zeros((size, 2))
    total = np.zeros(size)
    cx = np.zeros(size)
    cy = np.zeros(size)
    half = np.zeros(size)
    cx[0] = cy[0] = half[0] = 0.5
    used = 1
    for i in range(n):
        node = 0
        carried = i
        while True:
            if total[node] == 0.0 and body[node] == -1:
                body[node] = carried
                break
            if body[node] >= 0:
                old = body[node]
                body[node] = -2
                for q in range(4):
                    child[node, q] = used
                    half[used] = half[node] / 2
                    cx[used] = cx[node] + half[used] * (1 if q & 1 else -1)
                    cy[used] = cy[node] + half[used] * (1 if q & 2 else -1)
                    used += 1
                q = (1 if pos[old, 0] > cx[node] else 0) + (2 if pos[old, 1] > cy[node] else 0)
                body[child[node, q]] = old
            q = (1 if pos[carried, 0] > cx[node] else 0) + (2 if pos[carried, 1] > cy[node] else 0)
            node = child[node, q]
    for node in range(used - 1, -1, -1):
        b = body[node]
        if b >= 0:
            total[node] = mass[b]
            center[node] = pos[b]
        elif b == -2:
            for q in range(4):
                c = child[node, q]
                total[node] += total[c]
                center[node] += total[c] * center[c]
            center[node] /= total[node]
    return child, body, center, total, half


def cell_list_loops(pos: Any, cutoff: Any) -> Any:
    n = pos.shape[0]
    m = int(1.0 / cutoff)
    head = np.full((m, m), -1, dtype=np.int64)
    link = np.full(n, -1, dtype=np.int64)
    for i in range(n):
        ci = int(pos[i, 0] * m)
        cj = int(pos[i, 1] * m)
        link[i] = head[ci, cj]
        head[ci, cj] = i
    count = np.zeros(n, dtype=np.int64)
    for i in range(n):
        ci = int(pos[i, 0] * m)
        cj = int(pos[i, 1] * m)
        for a in range(max(ci - 1, 0), min(ci + 2, m)):
            for b in range(max(cj - 1, 0), min(cj + 2, m)):
                j = head[a, b]
                while j != -1:
                    if j != i:
                        dx = pos[i, 0] - pos[j, 0]
                        dy = pos[i, 1] - pos[j, 1]
                        if dx * dx + dy * dy < cutoff * cutoff:
                            count[i] += 1
                    j = link[j]
    return count


science_program(
    lambda n, _: (uniform(n, 2), 0.05),
    cell_list_loops,
    size=3000, sizes=(12, 40),
)  # fmt: skip


def pic_arrays(x: Any, v: Any, cells: Any, dt: Any, steps: Any) -> Any:
    n = len(x)
    for _ in range(steps):
        left = np.floor(x).astype(int)
        frac = x - left
        left = left % cells
        rho = np.bincount(left, weights=1 - frac, minlength=cells)
        rho += np.bincount((left + 1) % cells, weights=frac, minlength=cells)
        rho = rho * cells / n - 1.0
        field = np.cumsum(rho)
        field -= field.mean()
        force = field[left] * (1 - frac) + field[(left + 1) % cells] * frac
        v = v - dt * force
        x = (x + dt * v) % cells
    return x, v, field


def pic_loops(x: Any, v: Any, cells: Any, dt: Any, steps: Any) -> Any:
    x = x.copy()
    v = v.copy()
    n = x.shape[0]
    field = np.zeros(cells)
    rho = np.zeros(cells)
    for _ in range(steps):
        rho[:] = 0.0
        for p in range(n):
            i = int(x[p])
            f = x[p] - i
            rho[i % cells] += 1.0 - f
            rho[(i + 1) % cells] += f
        total = 0.0
        mean = 0.0
        for i in range(cells):
            total += rho[i] * cells / n - 1.0
            field[i] = total
            mean += total
        mean /= cells
        for i in range(cells):
            field[i] -= mean
        for p in range(n):
            i = int(x[p])
            f = x[p] - i
            e = field[i % cells] * (1.0 - f) + field[(i + 1) % cells] * f
            v[p] -= dt * e
            x[p] += dt * v[p]
            if x[p] >= cells:
                x[p] -= cells
            elif x[p] < 0:
                x[p] += cells
    return x, v, field


def pic_mixed(x: Any, v: Any, cells: Any, dt: Any, steps: Any) -> Any:
    x = x.copy()
    v = v.copy()
    field = np.zeros(cells)
    for _ in range(steps):
        i = x.astype(np.int64)
        f = x - i
        rho = np.zeros(cells)
        np.add.at(rho, i % cells, 1.0 - f)
        np.add.at(rho, (i + 1) % cells, f)
        rho = rho * cells / x.size - 1.0
        for k in range(cells):
            field[k] = field[k - 1] + rho[k] if k > 0 else rho[k]
        field -= field.mean()
        v -= dt * (field[i % cells] * (1.0 - f) + field[(i + 1) % cells] * f)
        x += dt * v
        x %= cells
    return x, v, field


science_program(
    lambda n, _: (64 * uniform(n), uniform(n, seed=1) - 0.5, 64, 0.1, 5),
    pic_arrays, pic_loops, pic_mixed,
    size=20000, sizes=(12, 40), rtol=1e-7,
)  # fmt: skip


def lattice_arrays(x: Any, v: Any, alpha: Any, dt: Any, steps: Any) -> Any:
    def force(x: Any) -> Any:
        s = np.diff(x)
        t = s + alpha * s**2
        f = np.zeros_like(x)
        f[1:-1] = t[1:] - t[:-1]
        return f

    f = force(x)
    energy = np.empty(steps)
    for n in range(steps):
        v = v + 0.5 * dt * f
        x = x + dt * v
        f = force(x)
        v = v + 0.5 * dt * f
        s = np.diff(x)
        energy[n] = 0.5 * np.sum(v**2) + np.sum(0.5 * s**2 + alpha / 3 * s**3)
    return x, v, energy


def lattice_loops(x: Any, v: Any, alpha: Any, dt: Any, steps: Any) -> Any:
    x = x.copy()
    v = v.copy()
    n = len(x)
    f = np.zeros(n)
    energy = np.zeros(steps)
    for step in range(-1, steps):
        if step >= 0:
            for i in range(n):
                v[i] += 0.5 * dt * f[i]
                x[i] += dt * v[i]
        for i in range(1, n - 1):
            right = x[i + 1] - x[i]
            left = x[i] - x[i - 1]
            f[i] = right + alpha * right * right - left - alpha * left * left
        if step >= 0:
            e = 0.0
            for i in range(n):
                v[i] += 0.5 * dt * f[i]
                e += 0.5 * v[i] * v[i]
            for i in range(n - 1):
                s = x[i + 1] - x[i]
                e += 0.5 * s * s + alpha / 3 * s * s * s
            energy[step] = e
    return x, v, energy


science_program(
    lambda n, _: (np.sin(np.pi * np.arange(n) / (n - 1)), np.zeros(n), 0.25, 0.05, 200),
    lattice_arrays, lattice_loops,
    size=512, sizes=(5, 12),
)  # fmt: skip


def pair_distribution_loops(pos: Any, box: Any, bins: Any) -> Any:
    n = len(pos)
    hist = np.zeros(bins)
    width = 0.5 * box / bins
    for i in range(n):
        for j in range(i):
            r2 = 0.0
            for k in range(3):
                d = pos[i, k] - pos[j, k]
                if d > 0.5 * box:
                    d -= box
                elif d < -0.5 * box:
                    d += box
                r2 += d * d
            b = int(math.sqrt(r2) / width)
            if b < bins:
                hist[b] += 1
    for b in range(bins):
        shell = 4.0 / 3.0 * math.pi * width**3 * ((b + 1) ** 3 - b**3)
        hist[b] /= shell * n * (n - 1) / 2 / box**3
    return hist


science_program(
    lambda n, _: (10 * uniform(n, 3), 10.0, 50),
    pair_distribution_loops,
    size=500, sizes=(5, 12),
)  # fmt: skip


def barnes_hut_loops(pos: Any, mass: Any, theta: Any) -> Any:
    child, body, center, total, half = build_tree(pos, mass)
    acc = np.zeros_like(pos)
    stack = np.zeros(256, dtype=np.int64)
    for i in range(len(pos)):
        top = 1
        stack[0] = 0
        while top > 0:
            top -= 1
            node = stack[top]
            if total[node] == 0.0 or body[node] == i:
                continue
            dx = center[node, 0] - pos[i, 0]
            dy = center[node, 1] - pos[i, 1]
            r2 = dx * dx + dy * dy + 1e-6
            if body[node] >= 0 or 4 * half[node] ** 2 < theta**2 * r2:
                w = total[node] / (r2 * np.sqrt(r2))
                acc[i, 0] += w * dx
                acc[i, 1] += w * dy
            else:
                for q in range(4):
                    stack[top] = child[node, q]
                    top += 1
    return acc


def barnes_hut_mixed(pos: Any, mass: Any, theta: Any) -> Any:
    child, body, center, total, half = build_tree(pos, mass)
    acc = np.zeros_like(pos)
    for i, p in enumerate(pos):
        pending = [0]
        while pending:
            node = pending.pop()
            if total[node] == 0 or body[node] == i:
                continue
            d = center[node] - p
            r2 = d @ d + 1e-6
            if body[node] >= 0 or (2 * half[node]) ** 2 < theta**2 * r2:
                acc[i] += total[node] * d / r2**1.5
            else:
                pending.extend(child[node])
    return acc


science_program(
    lambda n, _: (uniform(n, 2), uniform(n) + 0.5, 0.5),
    barnes_hut_loops, barnes_hut_mixed,
    size=800, sizes=(5, 12),
)  # fmt: skip
