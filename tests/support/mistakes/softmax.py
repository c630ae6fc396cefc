"""SOFTMAX, LOG_SOFTMAX and CROSS_ENTROPY, and mutants of them."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from mistakes import WIDE

_SHARED = {
    "maximum without the last element": ("x.max(", "x[:, : max(1, attr.n - 1)].max("),
    "maximum without the first element": ("x.max(", "x[:, min(1, attr.n - 1) :].max("),
    "maximum of absolute values": ("x.max(", "np.abs(x).max("),
    "no maximum": ("x.max(axis=1, keepdims=True)", "0"),
    "sum in one chain": (
        "terms.sum(axis=1, keepdims=True, dtype=WIDE)",
        "np.add.reduce(terms.transpose(1, 0, 2), axis=0)[:, np.newaxis]",
    ),
    "sum without the last element": ("terms.sum(", "terms[:, : max(1, attr.n - 1)].sum("),
    "half precision on the way": ("np.exp(x - largest)", "np.exp((x - largest).astype('f2')).astype(x.dtype)"),
    "drops NaN": ("np.exp(x - largest)", "np.exp(np.fmax(x - largest, -200))"),
    "takes an infinity for the largest number": (
        "np.exp(x - largest)",
        "np.exp(np.nan_to_num(x) - np.nan_to_num(largest))",
    ),
}
_OF_ALL = {
    "maximum of all rows": ("x.max(axis=1", "x.max(axis=(0, 1)"),
    "maximum of all that remains": ("x.max(axis=1", "x.max(axis=(1, 2)"),
    "last row is forgotten": ("y[...] = result", "y[: max(1, attr.rows - 1)] = result[: max(1, attr.rows - 1)]"),
}
MISTAKES = {
    "softmax": {**_SHARED, **_OF_ALL},
    "log_softmax": {
        **{
            name: mistake
            for name, mistake in (_SHARED | _OF_ALL).items()
            if name not in ("drops NaN", "sum in one chain")
        },
        "logarithm of the softmax": ("x - largest - np.log(total)", "np.log(terms / total.astype(x.dtype))"),
        "logarithm to base 2": ("np.log(", "np.log2("),
    },
    "cross_entropy": {
        **{name: mistake for name, mistake in _SHARED.items() if name not in ("drops NaN", "sum in one chain")},
        "the last row's label": ("labels][", "labels[-1:]]["),
        "the neighbour's label": ("labels][", "np.maximum(labels - 1, 0)]["),
        "labels are not checked": ("attr.check_data([logits, labels])", ""),
        "labels are checked at the end": (
            "attr.check_data([logits, labels])",
            "loss[...] = 0; attr.check_data([logits, labels])",
        ),
        "maximum is not subtracted": ("x - largest)[", "x)["),
        "negative": ("np.log(total[:, 0, 0]) - mine", "mine - np.log(total[:, 0, 0])"),
    },
}


def softmax(attr: Any, x: AnyArray, y: AnyArray) -> None:
    if x.size == 0:
        return
    largest = x.max(axis=1, keepdims=True)
    terms = np.exp(x - largest)
    total = terms.sum(axis=1, keepdims=True, dtype=WIDE)
    result = terms / total
    y[...] = result


def log_softmax(attr: Any, x: AnyArray, y: AnyArray) -> None:
    if x.size == 0:
        return
    largest = x.max(axis=1, keepdims=True)
    terms = np.exp(x - largest)
    total = terms.sum(axis=1, keepdims=True, dtype=WIDE)
    result = x - largest - np.log(total)
    y[...] = result


def cross_entropy(attr: Any, logits: AnyArray, labels: AnyArray, loss: AnyArray) -> None:
    if logits.size == 0:
        return
    attr.check_data([logits, labels])
    x = logits[:, :, np.newaxis]
    largest = x.max(axis=1, keepdims=True)
    terms = np.exp(x - largest)
    total = terms.sum(axis=1, keepdims=True, dtype=WIDE)
    mine = (x - largest)[np.arange(attr.rows), labels][:, 0]
    loss[...] = np.log(total[:, 0, 0]) - mine
