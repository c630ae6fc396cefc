"""Algorithms on sparse matrices: assembly, transposition, triangular systems, iterations."""

from typing import Any

import numpy as np

from jitkernels.benchmarks.science.science_program import science_program, uniform
from jitkernels.benchmarks.science.sparse_products import coo, csr


def transpose_csr_arrays(data: Any, indices: Any, indptr: Any, n: Any) -> Any:
    rows = np.repeat(np.arange(n), np.diff(indptr))
    order = np.argsort(indices, kind="stable")
    counts = np.bincount(indices, minlength=n)
    return data[order], rows[order], np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])


def transpose_csr_loops(data: Any, indices: Any, indptr: Any, n: Any) -> Any:
    nnz = len(data)
    new_indptr = np.zeros(n + 1, np.int64)
    for k in range(nnz):
        new_indptr[indices[k] + 1] += 1
    for i in range(n):
        new_indptr[i + 1] += new_indptr[i]
    position = new_indptr.copy()
    new_data = np.empty(nnz)
    new_indices = np.empty(nnz, np.int64)
    for i in range(n):
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            new_data[position[j]] = data[k]
            new_indices[position[j]] = i
            position[j] += 1
    return new_data, new_indices, new_indptr


def lower_solve_arrays(data: Any, indices: Any, indptr: Any, b: Any) -> Any:
    """Solve a lower triangular system; the diagonal is the last element of each row."""
    x = np.zeros_like(b)
    for i in range(len(b)):
        row = slice(indptr[i], indptr[i + 1] - 1)
        x[i] = (b[i] - np.dot(data[row], x[indices[row]])) / data[indptr[i + 1] - 1]
    return x


def lower_solve_loops(data: Any, indices: Any, indptr: Any, b: Any) -> Any:
    n = b.shape[0]
    x = np.zeros(n)
    for i in range(n):
        s = b[i]
        for k in range(indptr[i], indptr[i + 1] - 1):
            s -= data[k] * x[indices[k]]
        x[i] = s / data[indptr[i + 1] - 1]
    return x


def csr_gauss_seidel_arrays(data: Any, indices: Any, indptr: Any, b: Any, sweeps: Any) -> Any:
    x = np.zeros(len(b))
    for _ in range(sweeps):
        for i in range(len(b)):
            cols = indices[indptr[i] : indptr[i + 1]]
            vals = data[indptr[i] : indptr[i + 1]]
            diagonal = vals[cols == i].sum()
            x[i] += (b[i] - vals @ x[cols]) / diagonal
    return x


def csr_gauss_seidel_loops(data: Any, indices: Any, indptr: Any, b: Any, sweeps: Any) -> Any:
    n = len(b)
    x = np.zeros(n)
    for _ in range(sweeps):
        for i in range(n):
            s = b[i]
            diagonal = 1.0
            for k in range(indptr[i], indptr[i + 1]):
                j = indices[k]
                if j == i:
                    diagonal = data[k]
                else:
                    s -= data[k] * x[j]
            x[i] = s / diagonal
    return x


def _matvec(data: Any, indices: Any, indptr: Any, x: Any) -> Any:
    n = len(indptr) - 1
    y = np.zeros(n)
    for i in range(n):
        for k in range(indptr[i], indptr[i + 1]):
            y[i] += data[k] * x[indices[k]]
    return y


def csr_conjugate_gradients_arrays(data: Any, indices: Any, indptr: Any, b: Any, tol: Any) -> Any:
    rows = np.repeat(np.arange(len(b)), np.diff(indptr))
    x = np.zeros_like(b)
    r = b.copy()
    p = r.copy()
    rho = r @ r
    for _ in range(200):
        q = np.bincount(rows, weights=data * p[indices], minlength=len(b))
        alpha = rho / (p @ q)
        x += alpha * p
        r -= alpha * q
        rho_new = r @ r
        if np.sqrt(rho_new) < tol:
            break
        p = r + rho_new / rho * p
        rho = rho_new
    return x


def csr_conjugate_gradients_loops(data: Any, indices: Any, indptr: Any, b: Any, tol: Any) -> Any:
    n = len(b)
    x = np.zeros(n)
    r = b.copy()
    p = b.copy()
    rho = 0.0
    for i in range(n):
        rho += r[i] ** 2
    for _ in range(200):
        q = _matvec(data, indices, indptr, p)
        pq = 0.0
        for i in range(n):
            pq += p[i] * q[i]
        alpha = rho / pq
        rho_new = 0.0
        for i in range(n):
            x[i] += alpha * p[i]
            r[i] -= alpha * q[i]
            rho_new += r[i] ** 2
        if np.sqrt(rho_new) < tol:
            break
        for i in range(n):
            p[i] = r[i] + rho_new / rho * p[i]
        rho = rho_new
    return x


def csr_conjugate_gradients_mixed(data: Any, indices: Any, indptr: Any, b: Any, tol: Any) -> Any:
    x = np.zeros_like(b)
    r = b - _matvec(data, indices, indptr, x)
    p = r
    for _ in range(200):
        q = _matvec(data, indices, indptr, p)
        alpha = np.dot(r, r) / np.dot(p, q)
        x = x + alpha * p
        r_new = r - alpha * q
        if np.linalg.norm(r_new) < tol:
            break
        beta = np.dot(r_new, r_new) / np.dot(r, r)
        r = r_new
        p = r + beta * p
    return x


def assembly_arrays(nodes: Any, triangles: Any) -> Any:
    """The dense stiffness matrix of linear finite elements."""
    n = len(nodes)
    K = np.zeros((n, n))  # noqa: N806
    p = nodes[triangles]
    edges = np.stack([p[:, 2] - p[:, 1], p[:, 0] - p[:, 2], p[:, 1] - p[:, 0]], axis=1)
    area = 0.5 * np.abs(edges[:, 0, 0] * edges[:, 1, 1] - edges[:, 0, 1] * edges[:, 1, 0])
    local = np.einsum("tik,tjk->tij", edges, edges) / (4 * area[:, None, None])
    for i in range(3):
        for j in range(3):
            np.add.at(K, (triangles[:, i], triangles[:, j]), local[:, i, j])
    return K


def assembly_loops(nodes: Any, triangles: Any) -> Any:
    n = len(nodes)
    K = np.zeros((n, n))  # noqa: N806
    ex = np.zeros(3)
    ey = np.zeros(3)
    for t in range(len(triangles)):
        for i in range(3):
            a = triangles[t, (i + 1) % 3]
            b = triangles[t, (i + 2) % 3]
            ex[i] = nodes[b, 0] - nodes[a, 0]
            ey[i] = nodes[b, 1] - nodes[a, 1]
        area = 0.5 * abs(ex[0] * ey[1] - ey[0] * ex[1])
        for i in range(3):
            for j in range(3):
                K[triangles[t, i], triangles[t, j]] += (ex[i] * ex[j] + ey[i] * ey[j]) / (4 * area)
    return K


def assembly_mixed(nodes: Any, triangles: Any) -> Any:
    K = np.zeros((len(nodes), len(nodes)))  # noqa: N806
    for tri in triangles:
        p = nodes[tri]
        e = np.array([p[2] - p[1], p[0] - p[2], p[1] - p[0]])
        area = 0.5 * abs(e[0, 0] * e[1, 1] - e[0, 1] * e[1, 0])
        K[np.ix_(tri, tri)] += e @ e.T / (4 * area)
    return K


def coo_to_csr_arrays(rows: Any, cols: Any, data: Any, n: Any) -> Any:
    order = np.lexsort((cols, rows))
    indptr = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=n), out=indptr[1:])
    return data[order], cols[order], indptr


def coo_to_csr_loops(rows: Any, cols: Any, data: Any, n: Any) -> Any:
    nnz = len(rows)
    indptr = np.zeros(n + 1, dtype=np.int64)
    for r in rows:
        indptr[r + 1] += 1
    for i in range(n):
        indptr[i + 1] += indptr[i]
    fill = np.zeros(n, dtype=np.int64)
    out_cols = np.empty(nnz, dtype=np.int64)
    out = np.empty(nnz)
    for k in range(nnz):
        r = rows[k]
        p = indptr[r] + fill[r]
        while p > indptr[r] and out_cols[p - 1] > cols[k]:
            out_cols[p] = out_cols[p - 1]
            out[p] = out[p - 1]
            p -= 1
        out_cols[p] = cols[k]
        out[p] = data[k]
        fill[r] += 1
    return out, out_cols, indptr


def _lower(n: int) -> tuple[Any, Any, Any]:
    """Return a random lower triangular matrix in CSR."""
    dense = np.tril(uniform(n, n) < 6 / n, -1) * uniform(n, n, seed=1) + np.eye(n) * (4 + uniform(n, seed=2))
    return _compressed(dense)


def _laplacian(n: int) -> tuple[Any, Any, Any]:
    line = 2.1 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    return _compressed(np.kron(line, np.eye(n)) + np.kron(np.eye(n), line))


def _compressed(dense: Any) -> tuple[Any, Any, Any]:
    rows, cols = np.nonzero(dense)
    return dense[rows, cols], cols, np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(dense)))])


def _mesh(n: int) -> tuple[Any, Any]:
    grid = np.stack(np.meshgrid(np.arange(n + 1.0), np.arange(n + 1.0)), axis=-1).reshape(-1, 2)
    corner = (np.arange(n)[:, None] * (n + 1) + np.arange(n)).reshape(-1, 1)
    return grid + 0.2 * uniform(*grid.shape), np.concatenate(
        [corner + np.array([0, 1, n + 1]), corner + np.array([1, n + 2, n + 1])]
    )


def _shuffled(n: int) -> tuple[Any, Any, Any]:
    rows, cols, data = coo(n)
    order = np.random.default_rng(n).permutation(len(rows))
    return rows[order], cols[order], data[order]


science_program(lambda n, _: (*csr(n), n), transpose_csr_arrays, transpose_csr_loops, size=1000, sizes=(1, 8, 40))
science_program(
    lambda n, _: (*_lower(n), uniform(n)), lower_solve_arrays, lower_solve_loops, size=400, sizes=(1, 8, 40)
)
science_program(
    lambda n, _: (*_lower(n), uniform(n), 5),
    csr_gauss_seidel_arrays,
    csr_gauss_seidel_loops,
    size=300,
    sizes=(1, 8, 40),
)
science_program(
    lambda n, _: (*_laplacian(n), uniform(n * n), 1e-8),
    csr_conjugate_gradients_arrays, csr_conjugate_gradients_loops, csr_conjugate_gradients_mixed,
    size=20, sizes=(2, 5, 9),
)  # fmt: skip
science_program(lambda n, _: _mesh(n), assembly_arrays, assembly_loops, assembly_mixed, size=12, sizes=(1, 3, 6))
science_program(lambda n, _: (*_shuffled(n), n), coo_to_csr_arrays, coo_to_csr_loops, size=1000, sizes=(1, 8, 40))
