"""A function with nested callees: orbits, a spline, statistics and a little optics."""

import math
from typing import Any

import numpy as np


def _clamped(value: Any, low: Any, high: Any) -> Any:
    if value < low:
        return low
    if value > high:
        return high
    return value


def _norm(x: Any, y: Any, z: Any) -> Any:
    return math.sqrt(x * x + y * y + z * z)


def _pull(distance: Any, mass: Any) -> Any:
    if distance < 1e-3:
        return 0.0
    return mass / (distance * distance * distance)


def _next_random(state: Any) -> Any:
    return state * 16807 % 2147483647


def _interpolated(xs: Any, ys: Any, x: Any) -> Any:
    low, high = 0, xs.shape[0] - 1
    if x <= xs[0]:
        return ys[0]
    if x >= xs[high]:
        return ys[high]
    while high - low > 1:
        middle = (low + high) // 2
        if xs[middle] > x:
            high = middle
        else:
            low = middle
    share = (x - xs[low]) / (xs[high] - xs[low])
    return ys[low] + share * (ys[high] - ys[low])


def _tridiagonal(lower: Any, diagonal: Any, upper: Any, right: Any) -> Any:
    n = diagonal.shape[0]
    c, d = np.zeros(n), np.zeros(n)
    c[0], d[0] = upper[0] / diagonal[0], right[0] / diagonal[0]
    for i in range(1, n):
        factor = diagonal[i] - lower[i] * c[i - 1]
        c[i] = upper[i] / factor
        d[i] = (right[i] - lower[i] * d[i - 1]) / factor
    for i in range(n - 2, -1, -1):
        d[i] -= c[i] * d[i + 1]
    return d


def _moments(values: Any) -> Any:
    mean = values.mean()
    centred = values - mean
    variance = np.mean(centred * centred)
    skew = 0.0
    if variance > 1e-12:
        skew = np.mean(centred**3) / variance**1.5
    return mean, variance, skew


def _refracted(cosine: Any, ratio: Any) -> Any:
    square = 1.0 - ratio * ratio * (1.0 - cosine * cosine)
    if square < 0.0:
        return -1.0
    return math.sqrt(square)


def _reflectance(cosine: Any, ratio: Any) -> Any:
    inside = _refracted(cosine, ratio)
    if inside < 0.0:
        return 1.0
    parallel = (cosine - ratio * inside) / (cosine + ratio * inside)
    across = (ratio * cosine - inside) / (ratio * cosine + inside)
    return 0.5 * (parallel * parallel + across * across)


def helped(positions: Any, speeds: Any, xs: Any, ys: Any, steps: Any) -> Any:
    """Some two hundred lines with their callees, each of which is inlined at its call."""
    count = positions.shape[0]
    n = xs.shape[0]
    report = np.zeros(14)

    # Orbits with pairwise attraction, and shorter steps where two bodies are near.
    closest = 1e300
    for t in range(steps):
        for i in range(count):
            ax = ay = az = 0.0
            for j in range(count):
                if i == j:
                    continue
                dx = positions[j, 0] - positions[i, 0]
                dy = positions[j, 1] - positions[i, 1]
                dz = positions[j, 2] - positions[i, 2]
                distance = _norm(dx, dy, dz)
                closest = min(closest, distance)
                pull = _pull(distance, 1.0 / count)
                ax, ay, az = ax + pull * dx, ay + pull * dy, az + pull * dz
            h = _clamped(0.1 * closest, 1e-4, 1e-2)
            speeds[i, 0] += h * ax
            speeds[i, 1] += h * ay
            speeds[i, 2] += h * az
        positions += 0.01 * speeds
        if t % 10 == 9:
            speeds *= 0.99
    report[0] = closest
    report[1] = np.sum(speeds * speeds)

    # A spline through the points: its second derivatives solve a tridiagonal system.
    lower, diagonal, upper, right = np.zeros(n), np.ones(n), np.zeros(n), np.zeros(n)
    for i in range(1, n - 1):
        before, after = xs[i] - xs[i - 1], xs[i + 1] - xs[i]
        lower[i], diagonal[i], upper[i] = before, 2.0 * (before + after), after
        right[i] = 6.0 * ((ys[i + 1] - ys[i]) / after - (ys[i] - ys[i - 1]) / before)
    curvature = _tridiagonal(lower, diagonal, upper, right)
    bent = 0
    for i in range(1, n):
        if curvature[i] * curvature[i - 1] < 0.0:
            bent += 1
    report[2] = bent
    report[3] = np.max(np.abs(curvature))

    # Random numbers mapped through the table, and their spread.
    state = 4711
    drawn = np.zeros(steps * 4)
    for k in range(steps * 4):
        state = _next_random(state)
        where = xs[0] + (xs[n - 1] - xs[0]) * (state / 2147483647.0)
        drawn[k] = _interpolated(xs, ys, where)
    mean, variance, skew = _moments(drawn)
    report[4] = mean
    report[5] = variance
    report[6] = skew

    # Clip outliers until none are left.
    iterations = 0
    while iterations < 10:
        mean, variance, skew = _moments(drawn)
        limit = 2.0 * math.sqrt(variance)
        moved = 0
        for k in range(drawn.shape[0]):
            value = _clamped(drawn[k], mean - limit, mean + limit)
            if value != drawn[k]:
                drawn[k] = value
                moved += 1
        iterations += 1
        if moved == 0:
            break
    report[7] = iterations
    report[8] = variance

    # Light through a stack of plates, at several angles.
    through = np.zeros(32)
    for a in range(32):
        cosine = math.cos(a * math.pi / 64.0)
        light = 1.0
        for plate in range(6):
            ratio = 1.0 / 1.5 if plate % 2 == 0 else 1.5
            light *= 1.0 - _reflectance(cosine, ratio)
            refracted = _refracted(cosine, ratio)
            if refracted < 0.0:
                light = 0.0
                break
            cosine = refracted
        through[a] = light
    report[9] = through.max()
    report[10] = np.sum(through > 0.5)

    # Where the table crosses a level, by bisection in each interval.
    crossings = 0
    level = ys.mean()
    for i in range(n - 1):
        low, high = xs[i], xs[i + 1]
        if (ys[i] - level) * (ys[i + 1] - level) > 0.0:
            continue
        while high - low > 1e-9:
            middle = 0.5 * (low + high)
            if (_interpolated(xs, ys, middle) - level) * (ys[i] - level) > 0.0:
                low = middle
            else:
                high = middle
        crossings += 1
        report[11] += low
    report[12] = crossings
    report[13] = state % 1000
    return drawn, through, curvature, report
