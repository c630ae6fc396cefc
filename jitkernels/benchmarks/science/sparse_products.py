"""Products of sparse matrices in the common formats: CSR, COO, CSC, ELL, diagonals."""

from typing import Any

import numpy as np

from jitkernels.benchmarks.science.science_program import science_program, uniform


def csr_matvec_arrays(data: Any, indices: Any, indptr: Any, x: Any) -> Any:
    n = len(indptr) - 1
    y = np.zeros(n)
    for i in range(n):
        a, b = indptr[i], indptr[i + 1]
        y[i] = data[a:b] @ x[indices[a:b]]
    return y


def csr_matvec_loops(data: Any, indices: Any, indptr: Any, x: Any) -> Any:
    n = len(indptr) - 1
    y = np.zeros(n)
    for i in range(n):
        s = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            s += data[k] * x[indices[k]]
        y[i] = s
    return y


def csr_matvec_mixed(data: Any, indices: Any, indptr: Any, x: Any) -> Any:
    y = np.zeros(len(indptr) - 1)
    rows = np.repeat(np.arange(len(y)), np.diff(indptr))
    np.add.at(y, rows, data * x[indices])
    return y


def csr_rowsum_arrays(data: Any, indices: Any, indptr: Any, x: Any) -> Any:
    """The same product by the sums of segments; every row has an element."""
    return np.add.reduceat(data * x[indices], indptr[:-1])


def csr_rowsum_loops(data: Any, indices: Any, indptr: Any, x: Any) -> Any:
    y = np.zeros(len(indptr) - 1)
    for i in range(len(y)):
        for j, a in zip(indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]):  # noqa: B905
            y[i] += a * x[j]
    return y


def coo_matvec_arrays(rows: Any, cols: Any, data: Any, x: Any, n: Any) -> Any:
    return np.bincount(rows, weights=data * x[cols], minlength=n)


def coo_matvec_loops(rows: Any, cols: Any, data: Any, x: Any, n: Any) -> Any:
    y = np.zeros(n)
    for k in range(len(data)):
        y[rows[k]] += data[k] * x[cols[k]]
    return y


def coo_matvec_mixed(rows: Any, cols: Any, data: Any, x: Any, n: Any) -> Any:
    y = np.zeros(n)
    for r, c, v in zip(rows, cols, data):  # noqa: B905
        y[r] += v * x[c]
    return y


def csc_matvec_arrays(data: Any, indices: Any, indptr: Any, x: Any) -> Any:
    y = np.zeros(len(x))
    for j in range(len(x)):
        a, b = indptr[j], indptr[j + 1]
        y[indices[a:b]] += data[a:b] * x[j]
    return y


def csc_matvec_loops(data: Any, indices: Any, indptr: Any, x: Any) -> Any:
    n = x.shape[0]
    y = np.zeros(n)
    for j in range(n):
        xj = x[j]
        for k in range(indptr[j], indptr[j + 1]):
            y[indices[k]] += data[k] * xj
    return y


def ell_matvec_arrays(values: Any, columns: Any, x: Any) -> Any:
    return (values * x[columns]).sum(axis=1)


def ell_matvec_loops(values: Any, columns: Any, x: Any) -> Any:
    n, width = values.shape
    y = np.zeros(n)
    for i in range(n):
        for k in range(width):
            y[i] += values[i, k] * x[columns[i, k]]
    return y


def ell_matvec_mixed(values: Any, columns: Any, x: Any) -> Any:
    y = np.zeros(values.shape[0])
    for k in range(values.shape[1]):
        y += values[:, k] * x[columns[:, k]]
    return y


def csr_matmat_arrays(data: Any, indices: Any, indptr: Any, X: Any) -> Any:  # noqa: N803
    Y = np.zeros((len(indptr) - 1, X.shape[1]))  # noqa: N806
    for i in range(len(indptr) - 1):
        a, b = indptr[i], indptr[i + 1]
        Y[i] = data[a:b] @ X[indices[a:b]]
    return Y


def csr_matmat_loops(data: Any, indices: Any, indptr: Any, X: Any) -> Any:  # noqa: N803
    n, m = len(indptr) - 1, X.shape[1]
    Y = np.zeros((n, m))  # noqa: N806
    for i in range(n):
        for k in range(indptr[i], indptr[i + 1]):
            for j in range(m):
                Y[i, j] += data[k] * X[indices[k], j]
    return Y


def csr_matmat_mixed(data: Any, indices: Any, indptr: Any, X: Any) -> Any:  # noqa: N803
    Y = np.zeros((len(indptr) - 1, X.shape[1]))  # noqa: N806
    for i in range(len(Y)):
        for k in range(indptr[i], indptr[i + 1]):
            Y[i] += data[k] * X[indices[k]]
    return Y


def diagonals_matvec_arrays(diagonals: Any, offsets: Any, x: Any) -> Any:
    n = len(x)
    y = np.zeros(n)
    for d in range(len(offsets)):
        k = offsets[d]
        if k >= 0:
            y[: n - k] += diagonals[d, : n - k] * x[k:]
        else:
            y[-k:] += diagonals[d, : n + k] * x[:k]
    return y


def diagonals_matvec_loops(diagonals: Any, offsets: Any, x: Any) -> Any:
    n = len(x)
    y = np.zeros(n)
    for d in range(offsets.size):
        k = offsets[d]
        for i in range(max(0, -k), min(n, n - k)):
            y[i] += diagonals[d, i + min(k, 0)] * x[i + k]
    return y


def csr(n: int, row: int = 7, seed: int = 0) -> tuple[Any, Any, Any]:
    """Return data, indices and indptr of a random n x n matrix with up to `row` elements a row and its diagonal."""
    generator = np.random.default_rng([seed, n])
    counts = np.minimum(1 + generator.integers(0, row, n), n)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    rows = []
    for i, count in enumerate(counts):
        others = np.delete(np.arange(n), i)
        rows.append(np.sort(np.append(generator.choice(others, count - 1, replace=False), i)))
    return generator.random(indptr[-1]), np.concatenate(rows), indptr


def coo(n: int) -> tuple[Any, Any, Any]:
    data, indices, indptr = csr(n)
    return np.repeat(np.arange(n), np.diff(indptr)), indices, data


science_program(
    lambda n, _: (*csr(n), uniform(n)),
    csr_matvec_arrays,
    csr_matvec_loops,
    csr_matvec_mixed,
    size=1000,
    sizes=(1, 8, 40),
)
science_program(lambda n, _: (*csr(n), uniform(n)), csr_rowsum_arrays, csr_rowsum_loops, size=1000, sizes=(1, 8, 40))
science_program(
    lambda n, _: (*coo(n), uniform(n), n),
    coo_matvec_arrays,
    coo_matvec_loops,
    coo_matvec_mixed,
    size=1000,
    sizes=(1, 8, 40),
)
science_program(lambda n, _: (*csr(n), uniform(n)), csc_matvec_arrays, csc_matvec_loops, size=1000, sizes=(1, 8, 40))
science_program(
    lambda n, _: (uniform(n, 7), np.random.default_rng(n).integers(0, n, (n, 7)), uniform(n)),
    ell_matvec_arrays, ell_matvec_loops, ell_matvec_mixed,
    size=1000, sizes=(1, 8, 40),
)  # fmt: skip
science_program(
    lambda n, _: (*csr(n), uniform(n, 16)), csr_matmat_arrays, csr_matmat_loops, csr_matmat_mixed,
    size=400, sizes=(1, 8, 40),
)  # fmt: skip
science_program(
    lambda n, _: (uniform(5, n), np.array([-2, -1, 0, 1, 2]), uniform(n)),
    diagonals_matvec_arrays, diagonals_matvec_loops,
    size=2000, sizes=(3, 8, 40),
)  # fmt: skip
