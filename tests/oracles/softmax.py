"""The truth about SOFTMAX."""

from typing import Any

import numpy as np

from jitkernels.signature import AnyArray
from oracles import exp, oracle, total


@oracle
def softmax(attr: Any, x: AnyArray) -> list[AnyArray]:
    if x.size == 0:
        return [x]
    terms = exp(x - x.max(axis=-1, keepdims=True))
    return [terms / total(terms, -1)[:, np.newaxis]]
