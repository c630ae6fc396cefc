"""The oracle of SOFTMAX, LOG_SOFTMAX and CROSS_ENTROPY."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import exp, oracle, total


@oracle
def softmax(attr: Any, x: AnyArray) -> list[AnyArray]:
    if x.size == 0:
        return [x]
    terms = exp(x - x.max(axis=1, keepdims=True))
    return [terms / total(terms, 1)[:, np.newaxis]]


@oracle
def log_softmax(attr: Any, x: AnyArray) -> list[AnyArray]:
    if x.size == 0:
        return [x]
    differences = x - x.max(axis=1, keepdims=True)
    return [differences - np.log(total(exp(differences), 1))[:, np.newaxis]]


@oracle
def cross_entropy(attr: Any, logits: AnyArray, labels: AnyArray) -> list[AnyArray]:
    if logits.size == 0:
        return [logits[:, 0] if attr.n else np.zeros(0)]
    differences = logits - logits.max(axis=1, keepdims=True)
    label_terms = differences[np.arange(attr.rows), labels]
    return [np.log(total(exp(differences), 1)) - label_terms]
