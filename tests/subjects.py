"""The kernels once more, right and in plain NumPy, for `test_mutants` to break one line at a time.

They work like compiled kernels where that matters: a main loop and a tail, the dtype's own range and rounding,
sums in a wider type, and outputs that may be inputs.
"""

from typing import Any

import numpy as np

from jitkernels.signature import AnyArray

WIDE = np.longdouble


def vmul(attr: Any, x: AnyArray, y: AnyArray, z: AnyArray) -> None:
    main = attr.n - attr.n % 8
    z[:main] = x[:main] * y[:main]
    z[main:] = x[main:] * y[main:]


def vexp(attr: Any, x: AnyArray, y: AnyArray) -> None:
    main = attr.n - attr.n % 8
    for part in (slice(0, main), slice(main, attr.n)):
        y[part] = np.exp(x[part])


def vsigmoid(attr: Any, x: AnyArray, y: AnyArray) -> None:
    y[...] = sigmoid(x)


def sigmoid(x: AnyArray) -> AnyArray:
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0, small, np.ones_like(x)) / (1 + small))


def relu(x: AnyArray) -> AnyArray:
    return np.asarray(np.maximum(x, 0))


def identity(x: AnyArray) -> AnyArray:
    return x


def softmax(attr: Any, x: AnyArray, y: AnyArray) -> None:
    if x.size == 0:
        return
    largest = x.max(axis=-1, keepdims=True)
    terms = np.exp(x - largest)
    total = terms.sum(axis=-1, keepdims=True, dtype=WIDE)
    y[...] = terms / total


def layer_norm(attr: Any, x: AnyArray, *rest: AnyArray) -> None:
    if x.size == 0:
        return
    *affine, y = rest
    wide = x.astype(WIDE)
    near = wide - wide[:, :1]
    centred = near - near.sum(axis=-1, keepdims=True) / attr.n
    variance = np.square(centred).sum(axis=-1, keepdims=True) / attr.n
    z = centred / np.sqrt(variance + attr.eps)
    y[...] = z * affine[0] + affine[1] if affine else z


def seq_pool(attr: Any, x: AnyArray, y: AnyArray) -> None:
    if attr.pool == "max":
        y[...] = x.max(axis=0)
        return
    total = x.sum(axis=0, dtype=WIDE)
    divisor = {"sum": 1, "mean": attr.h, "sqrt": np.sqrt(WIDE(attr.h))}[attr.pool]
    y[...] = total / divisor


def emb_seq_pool(attr: Any, table: AnyArray, ids: AnyArray, out: AnyArray) -> None:
    attr.check_data((table, ids, out))
    if ids.size == 0:
        out[...] = 0
        return
    rows = table.take(ids, axis=0, mode="clip")
    if attr.pool == "max":
        pooled = rows.max(axis=0)
    else:
        pooled = rows.sum(axis=0, dtype=WIDE) / (attr.idx_h if attr.pool == "mean" else 1)
    out[...] = pooled.reshape(-1)


def lstm_ctht(attr: Any, gates: AnyArray, ct_1: AnyArray, *rest: AnyArray) -> None:
    *peephole, ct, ht = rest
    act: dict[str, Any] = {"sigmoid": sigmoid, "tanh": np.tanh, "relu": relu, "identity": identity}
    c, i, f, o = gates.reshape(4, attr.d)
    if peephole:
        w_i, w_f, w_o = peephole[0].reshape(3, attr.d)
        i = i + w_i * ct_1
        f = f + w_f * ct_1
    new = act[attr.act_cand](c) * act[attr.act_gate](i) + ct_1 * act[attr.act_gate](f)
    if peephole:
        o = o + w_o * new
    ct[...] = new
    ht[...] = act[attr.act_cell](new) * act[attr.act_gate](o)


def matmul(attr: Any, a: AnyArray, b: AnyArray, c: AnyArray) -> None:
    left = a.T if attr.trans_a else a
    right = b.T if attr.trans_b else b
    product = left @ right
    if attr.beta:
        product += a.dtype.type(attr.beta) * c
    c[...] = product
