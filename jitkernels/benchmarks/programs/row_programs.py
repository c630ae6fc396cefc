"""Row programs: a sum or maximum of each row, and a second pass over the row."""

from typing import Any

import numpy as np

from jitkernels.benchmarks.programs.benchmark_program import loop_of, program
from jitkernels.benchmarks.programs.inputs import matrices, rows, values, with_columns
from jitkernels.benchmarks.programs.parallel import prange


@program(matrices(1))
def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@loop_of(softmax)
def softmax_loop(x: Any) -> Any:
    out = np.empty_like(x)
    for i in prange(x.shape[0]):
        top = x[i, 0]
        for j in range(x.shape[1]):
            top = max(top, x[i, j])
        total = x.dtype.type(0)
        for j in range(x.shape[1]):
            out[i, j] = np.exp(x[i, j] - top)
            total += out[i, j]
        for j in range(x.shape[1]):
            out[i, j] /= total
    return out


@program(with_columns((0.5, 1.5), (-1, 1)))
def layer_norm(x: Any, scale: Any, bias: Any) -> Any:
    mean = x.mean(axis=-1, keepdims=True)
    variance = x.var(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * scale + bias


@loop_of(layer_norm)
def layer_norm_loop(x: Any, scale: Any, bias: Any) -> Any:
    out = np.empty_like(x)
    n = x.dtype.type(x.shape[1])
    for i in prange(x.shape[0]):
        total, squares = x.dtype.type(0), x.dtype.type(0)
        for j in range(x.shape[1]):
            total += x[i, j]
        mean = total / n
        for j in range(x.shape[1]):
            squares += (x[i, j] - mean) ** 2
        factor = 1.0 / np.sqrt(squares / n + 1e-5)
        for j in range(x.shape[1]):
            out[i, j] = (x[i, j] - mean) * factor * scale[j] + bias[j]
    return out


@program(with_columns((0.5, 1.5)))
def rms_norm(x: Any, scale: Any) -> Any:
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-6) * scale


@loop_of(rms_norm)
def rms_norm_loop(x: Any, scale: Any) -> Any:
    out = np.empty_like(x)
    for i in prange(x.shape[0]):
        squares = x.dtype.type(0)
        for j in range(x.shape[1]):
            squares += x[i, j] * x[i, j]
        factor = 1.0 / np.sqrt(squares / x.dtype.type(x.shape[1]) + 1e-6)
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] * factor * scale[j]
    return out


@program(matrices(1))
def log_sum_exp(x: Any) -> Any:
    top = x.max(axis=-1, keepdims=True)
    return np.log(np.exp(x - top).sum(axis=-1)) + top[:, 0]


@loop_of(log_sum_exp)
def log_sum_exp_loop(x: Any) -> Any:
    out = np.empty(x.shape[0], x.dtype)
    for i in prange(x.shape[0]):
        top = x[i, 0]
        for j in range(x.shape[1]):
            top = max(top, x[i, j])
        total = x.dtype.type(0)
        for j in range(x.shape[1]):
            total += np.exp(x[i, j] - top)
        out[i] = np.log(total) + top
    return out


@program(matrices(1))
def variance(x: Any) -> Any:
    return ((x - x.mean(axis=-1, keepdims=True)) ** 2).mean(axis=-1)


@loop_of(variance)
def variance_loop(x: Any) -> Any:
    out = np.empty(x.shape[0], x.dtype)
    n = x.dtype.type(x.shape[1])
    for i in prange(x.shape[0]):
        total, squares = x.dtype.type(0), x.dtype.type(0)
        for j in range(x.shape[1]):
            total += x[i, j]
        for j in range(x.shape[1]):
            squares += (x[i, j] - total / n) ** 2
        out[i] = squares / n
    return out


@program(matrices(2))
def cosine_similarity(a: Any, b: Any) -> Any:
    return (a * b).sum(axis=-1) / (np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1))


@loop_of(cosine_similarity)
def cosine_similarity_loop(a: Any, b: Any) -> Any:
    out = np.empty(a.shape[0], a.dtype)
    for i in prange(a.shape[0]):
        product, left, right = a.dtype.type(0), a.dtype.type(0), a.dtype.type(0)
        for j in range(a.shape[1]):
            product += a[i, j] * b[i, j]
            left += a[i, j] * a[i, j]
            right += b[i, j] * b[i, j]
        out[i] = product / (np.sqrt(left) * np.sqrt(right))
    return out


def queries_and_keys(elements: int, dtype: str) -> tuple[Any, ...]:
    """Return queries and keys with as many scores as elements, of at most 64 features."""
    queries, keys = rows(elements)
    features = min(64, keys)
    return values((queries, features), dtype, -1, 1), values((keys, features), dtype, -1, 1, 1)


@program(queries_and_keys)
def attention_weights(q: Any, k: Any) -> Any:
    scores = q @ k.T * q.shape[-1] ** -0.5
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@loop_of(attention_weights)
def attention_weights_loop(q: Any, k: Any) -> Any:
    out = np.dot(q, k.T)
    factor = q.dtype.type(q.shape[1]) ** -0.5
    for i in prange(out.shape[0]):
        top = out[i, 0]
        for j in range(out.shape[1]):
            top = max(top, out[i, j])
        total = q.dtype.type(0)
        for j in range(out.shape[1]):
            out[i, j] = np.exp((out[i, j] - top) * factor)
            total += out[i, j]
        for j in range(out.shape[1]):
            out[i, j] /= total
    return out
