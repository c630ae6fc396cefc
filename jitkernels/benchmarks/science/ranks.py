"""Statistics of ranks and of survival times."""

import math
from typing import Any

import numpy as np

from jitkernels.benchmarks.science.science_program import science_program, uniform


def mann_whitney_mixed(x: Any, y: Any) -> Any:
    data = np.concatenate((x, y))
    order = np.argsort(data, kind="stable")
    n = len(data)
    ranks = np.empty(n)
    i = 0
    while i < n:
        j = i
        while j + 1 < n and data[order[j + 1]] == data[order[i]]:
            j += 1
        for k in range(i, j + 1):
            ranks[order[k]] = 0.5 * (i + j) + 1
        i = j + 1
    return ranks[: len(x)].sum() - len(x) * (len(x) + 1) / 2


def mann_whitney_loops(x: Any, y: Any) -> Any:
    n, m = len(x), len(y)
    u = 0.0
    for i in range(n):
        for j in range(m):
            if x[i] > y[j]:
                u += 1.0
            elif x[i] == y[j]:
                u += 0.5
    return u


science_program(
    lambda n, _: (np.round(uniform(n), 1), np.round(uniform(n + 3), 1)),
    mann_whitney_mixed, mann_whitney_loops,
    size=600, sizes=(5, 12),
)  # fmt: skip


def kaplan_meier_mixed(time: Any, event: Any) -> Any:
    s = 1.0
    curve = []
    for t in np.unique(time):
        at_risk = np.sum(time >= t)
        deaths = np.sum((time == t) & event)
        if deaths > 0:
            s *= 1 - deaths / at_risk
            curve.append(s)
    return np.array(curve)


def kaplan_meier_loops(time: Any, event: Any) -> Any:
    n = len(time)
    order = np.argsort(time)
    survival = np.zeros(n)
    found = 0
    s = 1.0
    i = 0
    while i < n:
        t = time[order[i]]
        at_risk = n - i
        deaths = 0
        while i < n and time[order[i]] == t:
            if event[order[i]]:
                deaths += 1
            i += 1
        if deaths > 0:
            s *= 1.0 - deaths / at_risk
            survival[found] = s
            found += 1
    return survival[:found]


science_program(
    lambda n, _: (np.ceil(20 * uniform(n)), uniform(n, seed=1) < 0.7),
    kaplan_meier_mixed, kaplan_meier_loops,
    size=2000, sizes=(12, 40),
)  # fmt: skip


def spearman_arrays(x: Any) -> Any:
    ranks = np.argsort(np.argsort(x, axis=0), axis=0).astype(float)
    centred = ranks - ranks.mean(axis=0)
    cov = centred.T @ centred / (len(x) - 1)
    sd = np.sqrt(np.diag(cov))
    return cov / np.outer(sd, sd)


def spearman_loops(x: Any) -> Any:
    n, d = x.shape
    ranks = np.zeros((n, d))
    for k in range(d):
        for i in range(n):
            below = 0
            for j in range(n):
                if x[j, k] < x[i, k]:
                    below += 1
            ranks[i, k] = below
    out = np.eye(d)
    mean = (n - 1) / 2.0
    for a in range(d):
        for b in range(a):
            sab = saa = sbb = 0.0
            for i in range(n):
                u = ranks[i, a] - mean
                v = ranks[i, b] - mean
                sab += u * v
                saa += u * u
                sbb += v * v
            out[a, b] = out[b, a] = sab / math.sqrt(saa * sbb)
    return out


def spearman_mixed(x: Any) -> Any:
    d = x.shape[1]
    ranks = np.empty_like(x)
    for k in range(d):
        order = np.argsort(x[:, k])
        ranks[order, k] = np.arange(len(x))
    return np.corrcoef(ranks, rowvar=False)


science_program(
    lambda n, _: (uniform(n, 12),),
    spearman_arrays, spearman_loops, spearman_mixed,
    size=300, sizes=(15, 30),
)  # fmt: skip


def robust_arrays(x: Any) -> Any:
    med = np.median(x)
    mad = np.median(np.abs(x - med)) * 1.4826
    kept = x[np.abs(x - med) < 3 * mad]
    return med, mad, kept.mean(), len(kept)


def robust_loops(x: Any) -> Any:
    s = np.sort(x)
    n = len(s)
    med = s[n // 2] if n % 2 == 1 else 0.5 * (s[n // 2 - 1] + s[n // 2])
    dev = np.empty(n)
    for i in range(n):
        dev[i] = abs(s[i] - med)
    dev.sort()
    mad = 1.4826 * (dev[n // 2] if n % 2 == 1 else 0.5 * (dev[n // 2 - 1] + dev[n // 2]))
    total = 0.0
    kept = 0
    for i in range(n):
        if abs(x[i] - med) < 3 * mad:
            total += x[i]
            kept += 1
    return med, mad, total / kept, kept


science_program(
    lambda n, _: (np.tan(3 * uniform(n) - 1.5),),
    robust_arrays, robust_loops,
    size=5001, sizes=(15, 31),
)  # fmt: skip
