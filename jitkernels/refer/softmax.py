"""NumPy references of SOFTMAX, LOG_SOFTMAX and CROSS_ENTROPY."""

import numpy as np

from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.attrs.softmax import CrossEntropyAttr, LogSoftmaxAttr, SoftmaxAttr


@implements(SoftmaxAttr, compiles=True)
def softmax(attr: SoftmaxAttr, x: AnyArray, y: AnyArray) -> None:
    if attr.rows * attr.remain == 0:
        return
    with np.errstate(all="ignore"):
        exponentials = np.exp(x - x.max(axis=1, keepdims=True))
        np.divide(exponentials, _sums(exponentials), out=y)


@implements(LogSoftmaxAttr, compiles=True)
def log_softmax(attr: LogSoftmaxAttr, x: AnyArray, y: AnyArray) -> None:
    if attr.rows * attr.remain == 0:
        return
    with np.errstate(all="ignore"):
        differences = x - x.max(axis=1, keepdims=True)
        np.subtract(differences, np.log(_sums(np.exp(differences))), out=y)


@implements(CrossEntropyAttr)
def cross_entropy(attr: CrossEntropyAttr, logits: AnyArray, labels: AnyArray, loss: AnyArray) -> None:
    if attr.rows == 0:
        return
    with np.errstate(all="ignore"):
        largest = logits.max(axis=1)
        differences = logits - largest[:, np.newaxis]
        mine = np.take_along_axis(differences, labels[:, np.newaxis], axis=1)[:, 0]
        np.subtract(np.log(np.exp(differences).sum(axis=1)), mine, out=loss)


def _sums(x: AnyArray) -> AnyArray:
    """Sums along the middle axis, moved to the end: NumPy adds pairwise only there."""
    sums: AnyArray = np.swapaxes(x, 1, 2).copy().sum(axis=-1)
    return sums[:, np.newaxis]
