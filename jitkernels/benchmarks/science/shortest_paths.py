"""Shortest paths in graphs: by breadth, by a heap, by relaxation, and of all pairs."""

from typing import Any

import numpy as np

from jitkernels.benchmarks.science.science_program import edges, random_graph, science_program, uniform


def bfs_arrays(indptr: Any, indices: Any, source: Any) -> Any:
    n = len(indptr) - 1
    dist = np.full(n, -1)
    dist[source] = 0
    rows = np.repeat(np.arange(n), np.diff(indptr))
    frontier = np.zeros(n, dtype=bool)
    frontier[source] = True
    level = 0
    while frontier.any():
        level += 1
        reached = np.zeros(n, dtype=bool)
        reached[indices[frontier[rows]]] = True
        frontier = reached & (dist < 0)
        dist[frontier] = level
    return dist


def bfs_loops(indptr: Any, indices: Any, source: Any) -> Any:
    n = len(indptr) - 1
    dist = np.full(n, -1, dtype=np.int64)
    queue = np.empty(n, dtype=np.int64)
    queue[0] = source
    dist[source] = 0
    head, tail = 0, 1
    while head < tail:
        u = queue[head]
        head += 1
        for k in range(indptr[u], indptr[u + 1]):
            v = indices[k]
            if dist[v] < 0:
                dist[v] = dist[u] + 1
                queue[tail] = v
                tail += 1
    return dist


science_program(
    lambda n, _: (*random_graph(n, 6)[:2], 0),
    bfs_arrays, bfs_loops,
    size=1500, sizes=(12, 40),
)  # fmt: skip


def dijkstra_loops(indptr: Any, indices: Any, weights: Any, source: Any) -> Any:
    n = indptr.shape[0] - 1
    dist = np.full(n, np.inf)
    key = np.empty(len(indices) + 1)
    node = np.empty(len(indices) + 1, dtype=np.int64)
    dist[source] = 0.0
    key[0] = 0.0
    node[0] = source
    size = 1
    while size > 0:
        d, u = key[0], node[0]
        size -= 1
        last, which = key[size], node[size]
        i = 0
        while True:
            c = 2 * i + 1
            if c >= size:
                break
            if c + 1 < size and key[c + 1] < key[c]:
                c += 1
            if key[c] >= last:
                break
            key[i] = key[c]
            node[i] = node[c]
            i = c
        key[i] = last
        node[i] = which
        if d > dist[u]:
            continue
        for k in range(indptr[u], indptr[u + 1]):
            v = indices[k]
            new = d + weights[k]
            if new < dist[v]:
                dist[v] = new
                i = size
                size += 1
                while i > 0 and key[(i - 1) // 2] > new:
                    key[i] = key[(i - 1) // 2]
                    node[i] = node[(i - 1) // 2]
                    i = (i - 1) // 2
                key[i] = new
                node[i] = v
    return dist


science_program(
    lambda n, _: (*random_graph(n, 6), 0),
    dijkstra_loops,
    size=1500, sizes=(12, 40),
)  # fmt: skip


def floyd_warshall_arrays(d: Any) -> Any:
    for k in range(len(d)):
        d = np.minimum(d, d[:, k, None] + d[None, k, :])
    return d


def floyd_warshall_loops(d: Any) -> Any:
    d = d.copy()
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if d[i, k] + d[k, j] < d[i, j]:
                    d[i, j] = d[i, k] + d[k, j]
    return d


def floyd_warshall_mixed(d: Any) -> Any:
    d = d.copy()
    n = len(d)
    for k in range(n):
        for i in range(n):
            if np.isfinite(d[i, k]):
                d[i] = np.minimum(d[i], d[i, k] + d[k])
    return d


science_program(
    lambda n, _: (np.where(uniform(n, n) < 0.2, uniform(n, n, seed=1), np.inf),),
    floyd_warshall_arrays, floyd_warshall_loops, floyd_warshall_mixed,
    size=150, sizes=(5, 12),
)  # fmt: skip


def bellman_ford_arrays(src: Any, dst: Any, w: Any, n: Any, source: Any) -> Any:
    dist = np.full(n, np.inf)
    dist[source] = 0
    for _ in range(n - 1):
        before = dist.copy()
        np.minimum.at(dist, dst, dist[src] + w)
        if np.array_equal(before, dist):
            break
    return dist


def bellman_ford_loops(src: Any, dst: Any, w: Any, n: Any, source: Any) -> Any:
    dist = np.full(n, np.inf)
    dist[source] = 0.0
    for _ in range(n - 1):
        changed = False
        for e in range(len(src)):
            new = dist[src[e]] + w[e]
            if new < dist[dst[e]]:
                dist[dst[e]] = new
                changed = True
        if not changed:
            break
    return dist


def bellman_ford_mixed(src: Any, dst: Any, w: Any, n: Any, source: Any) -> Any:
    dist = np.full(n, np.inf)
    dist[source] = 0.0
    rounds = 0
    while True:
        better = False
        for u, v, length in zip(src, dst, w, strict=True):
            if dist[u] + length < dist[v]:
                dist[v] = dist[u] + length
                better = True
        rounds += 1
        if not better or rounds == n:
            break
    return dist


science_program(
    lambda n, _: (*edges(n, 6), n, 0),
    bellman_ford_arrays, bellman_ford_loops, bellman_ford_mixed,
    size=1000, sizes=(12, 40),
)  # fmt: skip
