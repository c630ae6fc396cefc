"""The structure of graphs: ranks, components, triangles, cores, levels, trees, colors."""

from typing import Any

import numpy as np

from jitkernels.benchmarks.science.science_program import random_graph, science_program, uniform


def pagerank_arrays(indptr: Any, indices: Any, damping: Any, rounds: Any) -> Any:
    n = len(indptr) - 1
    degree = np.diff(indptr)
    rows = np.repeat(np.arange(n), degree)
    rank = np.full(n, 1.0 / n)
    for _ in range(rounds):
        share = np.where(degree > 0, rank / np.maximum(degree, 1), 0.0)
        new = np.zeros(n)
        np.add.at(new, indices, share[rows])
        dangling = rank[degree == 0].sum()
        rank = (1 - damping) / n + damping * (new + dangling / n)
    return rank


def pagerank_loops(indptr: Any, indices: Any, damping: Any, rounds: Any) -> Any:
    n = len(indptr) - 1
    rank = np.full(n, 1.0 / n)
    for _ in range(rounds):
        new = np.zeros(n)
        dangling = 0.0
        for u in range(n):
            degree = indptr[u + 1] - indptr[u]
            if degree == 0:
                dangling += rank[u]
            else:
                share = rank[u] / degree
                for k in range(indptr[u], indptr[u + 1]):
                    new[indices[k]] += share
        for u in range(n):
            rank[u] = (1 - damping) / n + damping * (new[u] + dangling / n)
    return rank


def pagerank_mixed(indptr: Any, indices: Any, damping: Any, rounds: Any) -> Any:
    n = len(indptr) - 1
    count = indptr[1:] - indptr[:-1]
    degree = np.maximum(count, 1)
    rank = np.ones(n) / n
    for _ in range(rounds):
        share = rank / degree
        new = np.zeros(n)
        for u in range(n):
            new[u] = share[indices[indptr[u] : indptr[u + 1]]].sum()
        dangling = np.sum(rank[count == 0])
        new = (1 - damping) / n + damping * (new + dangling / n)
        rank = new
    return rank


science_program(
    lambda n, _: (*random_graph(n, 10)[:2], 0.85, 30),
    pagerank_arrays, pagerank_loops, pagerank_mixed,
    size=1500, sizes=(12, 40),
)  # fmt: skip


def components_arrays(a: Any, b: Any, n: Any) -> Any:
    label = np.arange(n)
    while True:
        low = np.minimum(label[a], label[b])
        new = label.copy()
        np.minimum.at(new, a, low)
        np.minimum.at(new, b, low)
        new = new[new]
        if (new == label).all():
            break
        label = new
    return label


def components_loops(a: Any, b: Any, n: Any) -> Any:
    parent = np.arange(n)
    for e in range(len(a)):
        u, v = a[e], b[e]
        while parent[u] != u:
            parent[u] = parent[parent[u]]
            u = parent[u]
        while parent[v] != v:
            parent[v] = parent[parent[v]]
            v = parent[v]
        if u < v:
            parent[v] = u
        else:
            parent[u] = v
    for i in range(n):
        parent[i] = parent[parent[i]]
    return parent


science_program(
    lambda n, _: (*np.random.default_rng(n).integers(0, n, (2, 2 * n // 3)), n),
    components_arrays, components_loops,
    size=3000, sizes=(12, 40),
)  # fmt: skip


def triangles_arrays(indptr: Any, indices: Any) -> Any:
    n = len(indptr) - 1
    a = np.zeros((n, n))
    a[np.repeat(np.arange(n), np.diff(indptr)), indices] = 1
    return np.rint(np.sum((a @ a) * a) / 6).astype(np.int64)


def triangles_loops(indptr: Any, indices: Any) -> Any:
    n = len(indptr) - 1
    count = 0
    for u in range(n):
        for k in range(indptr[u], indptr[u + 1]):
            v = indices[k]
            if v <= u:
                continue
            i, j = indptr[u], indptr[v]
            while i < indptr[u + 1] and j < indptr[v + 1]:
                if indices[i] == indices[j]:
                    if indices[i] > v:
                        count += 1
                    i += 1
                    j += 1
                elif indices[i] < indices[j]:
                    i += 1
                else:
                    j += 1
    return count


def triangles_mixed(indptr: Any, indices: Any) -> Any:
    n = len(indptr) - 1
    mark = np.zeros(n, dtype=bool)
    count: Any = 0
    for u in range(n):
        near = indices[indptr[u] : indptr[u + 1]]
        mark[near] = True
        for v in near:
            if v > u:
                other = indices[indptr[v] : indptr[v + 1]]
                count += np.count_nonzero(mark[other] & (other > v))
        mark[near] = False
    return count


science_program(
    lambda n, _: random_graph(n, 20)[:2],
    triangles_arrays, triangles_loops, triangles_mixed,
    size=400, sizes=(25, 40),
)  # fmt: skip


def core_numbers_arrays(indptr: Any, indices: Any) -> Any:
    n = len(indptr) - 1
    rows = np.repeat(np.arange(n), np.diff(indptr))
    core = np.zeros(n, dtype=int)
    alive = np.ones(n, dtype=bool)
    k = 0
    while alive.any():
        degree = np.bincount(rows, weights=alive[indices] & alive[rows], minlength=n)
        drop = alive & (degree <= k)
        if drop.any():
            core[drop] = k
            alive &= ~drop
        else:
            k += 1
    return core


def core_numbers_loops(indptr: Any, indices: Any) -> Any:
    n = len(indptr) - 1
    degree = np.empty(n, dtype=np.int64)
    for i in range(n):
        degree[i] = indptr[i + 1] - indptr[i]
    removed = np.zeros(n, dtype=np.bool_)
    core = np.zeros(n, dtype=np.int64)
    k = 0
    for _ in range(n):
        u = -1
        for v in range(n):
            if not removed[v] and (u < 0 or degree[v] < degree[u]):
                u = v
        k = max(k, degree[u])
        core[u] = k
        removed[u] = True
        for e in range(indptr[u], indptr[u + 1]):
            if not removed[indices[e]]:
                degree[indices[e]] -= 1
    return core


science_program(
    lambda n, _: random_graph(n, 20)[:2],
    core_numbers_arrays, core_numbers_loops,
    size=400, sizes=(25, 40),
)  # fmt: skip


def betweenness_loops(indptr: Any, indices: Any) -> Any:
    n = len(indptr) - 1
    score = np.zeros(n)
    for s in range(n):
        dist = np.full(n, -1)
        sigma = np.zeros(n)
        delta = np.zeros(n)
        order = np.zeros(n, dtype=np.int64)
        dist[s] = 0
        sigma[s] = 1.0
        order[0] = s
        head, tail = 0, 1
        while head < tail:
            u = order[head]
            head += 1
            for k in range(indptr[u], indptr[u + 1]):
                v = indices[k]
                if dist[v] < 0:
                    dist[v] = dist[u] + 1
                    order[tail] = v
                    tail += 1
                if dist[v] == dist[u] + 1:
                    sigma[v] += sigma[u]
        for t in range(tail - 1, 0, -1):
            w = order[t]
            for k in range(indptr[w], indptr[w + 1]):
                u = indices[k]
                if dist[u] == dist[w] - 1:
                    delta[u] += sigma[u] / sigma[w] * (1.0 + delta[w])
            score[w] += delta[w]
    return score / 2


science_program(
    lambda n, _: random_graph(n, 6)[:2],
    betweenness_loops,
    size=200, sizes=(12, 40),
)  # fmt: skip


def coloring_loops(indptr: Any, indices: Any) -> Any:
    n = len(indptr) - 1
    color = np.full(n, -1, dtype=np.int64)
    seen = np.full(n, -1, dtype=np.int64)
    for u in range(n):
        for k in range(indptr[u], indptr[u + 1]):
            c = color[indices[k]]
            if c >= 0:
                seen[c] = u
        c = 0
        while seen[c] == u:
            c += 1
        color[u] = c
    return color


science_program(
    lambda n, _: random_graph(n, 10)[:2],
    coloring_loops,
    size=1500, sizes=(12, 40),
)  # fmt: skip


def label_propagation_loops(indptr: Any, indices: Any, rounds: Any) -> Any:
    n = len(indptr) - 1
    label = np.arange(n)
    votes = np.zeros(n, dtype=np.int64)
    for _ in range(rounds):
        changed = 0
        for u in range(n):
            best, most = label[u], 0
            for k in range(indptr[u], indptr[u + 1]):
                c = label[indices[k]]
                votes[c] += 1
                if votes[c] > most or (votes[c] == most and c < best):
                    best, most = c, votes[c]
            for k in range(indptr[u], indptr[u + 1]):
                votes[label[indices[k]]] = 0
            if best != label[u]:
                label[u] = best
                changed += 1
        if changed == 0:
            break
    return label


science_program(
    lambda n, _: (*random_graph(n, 10)[:2], 5),
    label_propagation_loops,
    size=1000, sizes=(12, 40),
)  # fmt: skip


def prim_arrays(d: Any) -> Any:
    n = len(d)
    inside = np.zeros(n, dtype=bool)
    best = d[0].copy()
    parent = np.zeros(n, dtype=int)
    inside[0] = True
    total = 0.0
    for _ in range(n - 1):
        u = np.argmin(np.where(inside, np.inf, best))
        total += best[u]
        inside[u] = True
        closer = (d[u] < best) & ~inside
        best[closer] = d[u][closer]
        parent[closer] = u
    return total, parent


def prim_loops(d: Any) -> Any:
    n = d.shape[0]
    inside = np.zeros(n, dtype=np.bool_)
    best = np.full(n, np.inf)
    parent = np.zeros(n, dtype=np.int64)
    best[0] = 0.0
    total = 0.0
    for _ in range(n):
        u = -1
        for v in range(n):
            if not inside[v] and (u == -1 or best[v] < best[u]):
                u = v
        inside[u] = True
        total += best[u]
        for v in range(n):
            if not inside[v] and d[u, v] < best[v]:
                best[v] = d[u, v]
                parent[v] = u
    return total, parent


science_program(
    lambda n, _: (np.abs(uniform(n, 1) - uniform(1, n, seed=1)) + np.eye(n),),
    prim_arrays, prim_loops,
    size=400, sizes=(5, 12),
)  # fmt: skip
