"""Peers of SOFTMAX in NumPy, SciPy, torch, JAX and onnxruntime."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.attrs.softmax import CrossEntropyAttr, LogSoftmaxAttr, SoftmaxAttr
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import LAYOUTS, in_dtypes, in_layouts, shape, values, with_outs
from jitkernels.benchmarks.peers.compiled import of_jax, of_onnxruntime, of_torch, stored, stored_tensor


@equivalent(SoftmaxAttr)
def softmax(x: Any, axis: int = -1, out: Any = None) -> Any:
    x = np.asarray(x)
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return np.divide(e, e.sum(axis=axis, keepdims=True), out=out)


@equivalent(LogSoftmaxAttr)
def log_softmax(x: Any, axis: int = -1, out: Any = None) -> Any:
    x = np.asarray(x)
    differences = x - x.max(axis=axis, keepdims=True)
    return np.subtract(differences, np.log(np.exp(differences).sum(axis=axis, keepdims=True)), out=out)


@equivalent(CrossEntropyAttr)
def cross_entropy(logits: Any, labels: Any, out: Any = None) -> Any:
    losses = log_softmax(logits)
    label_losses = np.take_along_axis(losses, np.broadcast_to(labels, losses.shape[:-1])[..., np.newaxis], axis=-1)[
        ..., 0
    ]
    return np.negative(label_losses, out=out)


peer(SoftmaxAttr)(lambda _, x, y: partial(softmax, x, 1, y))


@peer(SoftmaxAttr, name="scipy")
def scipy_softmax(attr: SoftmaxAttr, x: AnyArray, y: AnyArray) -> Bound:
    from scipy.special import softmax

    return stored(y, softmax, x, 1)


of_torch(SoftmaxAttr, lambda _, torch, x, y: partial(torch.softmax, x, 1, out=y))
peer(LogSoftmaxAttr)(lambda _, x, y: partial(log_softmax, x, 1, y))


@peer(LogSoftmaxAttr, name="scipy")
def scipy_log_softmax(attr: LogSoftmaxAttr, x: AnyArray, y: AnyArray) -> Bound:
    from scipy.special import log_softmax

    return stored(y, log_softmax, x, 1)


of_torch(LogSoftmaxAttr, lambda _, torch, x, y: partial(torch.log_softmax, x, 1, out=y))
peer(CrossEntropyAttr)(lambda _, logits, labels, loss: partial(cross_entropy, logits, labels, loss))


@partial(of_torch, CrossEntropyAttr)
def torch_cross_entropy(attr: CrossEntropyAttr, torch: Any, logits: Any, labels: Any, loss: Any) -> Bound:
    losses = partial(torch.nn.functional.cross_entropy, reduction="none")
    return stored_tensor(loss, losses, logits, labels)


of_jax(SoftmaxAttr, lambda _, jax, x: jax.nn.softmax(x, 1))
of_jax(LogSoftmaxAttr, lambda _, jax, x: jax.nn.log_softmax(x, 1))
of_onnxruntime(SoftmaxAttr, lambda _: ("Softmax", ("x",), {"axis": 1}))
of_onnxruntime(LogSoftmaxAttr, lambda _: ("LogSoftmax", ("x",), {"axis": 1}))


def _jax_cross_entropy(attr: Any, jax: Any, logits: Any, labels: Any) -> Any:
    of_rows = jax.numpy.arange(attr.rows)
    return jax.scipy.special.logsumexp(logits, 1) - logits[of_rows, labels]


of_jax(CrossEntropyAttr, _jax_cross_entropy)


@ordinary_calls(LogSoftmaxAttr)
@ordinary_calls(SoftmaxAttr)
def distributions(elements: int) -> Iterator[OrdinaryCall]:
    x, y = values(elements), values(shape(elements, 2))
    yield OrdinaryCall("2-D", (y,))
    yield OrdinaryCall("1-D", (x,))
    yield OrdinaryCall("axis=-1", (y,), {"axis": -1})
    yield OrdinaryCall("axis by position", (y, -1))
    for dimensions in (2, 3, 4, 5):
        cube = values(shape(elements, dimensions))
        for axis in range(dimensions):
            yield OrdinaryCall(f"{dimensions}-D, axis={axis}", (cube,), {"axis": axis})
    yield from in_dtypes(y, bools=False)
    yield from in_layouts(y)
    yield OrdinaryCall("transposed", (y.T,))
    yield OrdinaryCall("transposed, axis=0", (y.T,), {"axis": 0})
    yield OrdinaryCall("empty", (y[:0],))
    yield from with_outs((y, -1), 2, y)
    yield OrdinaryCall("axis=-1, out", (y,), {"axis": -1, "out": np.zeros_like(y)})
    yield OrdinaryCall("axis=0, out", (y,), {"axis": 0, "out": np.zeros_like(y)})
    yield OrdinaryCall("in place", (y,), {"out": y})
    room = values(elements + 1)
    yield OrdinaryCall("out overlaps", (room[:-1],), {"out": room[1:]})


@ordinary_calls(CrossEntropyAttr)
def classified(elements: int) -> Iterator[OrdinaryCall]:
    y = values(shape(elements, 2))
    rows, n = y.shape
    labels = np.random.default_rng(1).integers(0, n, rows)
    yield OrdinaryCall("2-D", (y, labels))
    yield OrdinaryCall("1-D", (y[0], labels[0]))
    yield OrdinaryCall("by name", (y,), {"labels": labels})
    cube = values(shape(elements, 3))
    yield OrdinaryCall("3-D", (cube, np.zeros(cube.shape[:-1], np.int64)))
    yield from in_dtypes(y, fixed=(labels,), bools=False)
    yield OrdinaryCall("int32 labels", (y, labels.astype(np.int32)))
    for name, form in LAYOUTS.items():
        yield OrdinaryCall(name, (form(y), labels))
        yield OrdinaryCall(f"labels {name}", (y, form(labels)))
    yield OrdinaryCall("transposed", (y.T, np.zeros(n, np.int64)))
    yield OrdinaryCall("empty", (y[:0], labels[:0]))
    yield from with_outs((y, labels), 2, np.zeros(rows, y.dtype))
