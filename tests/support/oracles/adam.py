"""The oracle of ADAM and ADAMW."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import WIDE, oracle


@oracle
def adam(
    attr: Any, param: AnyArray, grad: AnyArray, mom1: AnyArray, mom2: AnyArray, mom2_max: Any = None
) -> list[AnyArray]:
    lr, beta1, beta2, eps = WIDE(attr.lr), WIDE(attr.beta1), WIDE(attr.beta2), WIDE(attr.eps)
    mom1 = beta1 * mom1 + (1 - beta1) * grad
    mom2 = beta2 * mom2 + (1 - beta2) * grad**2
    largest = [] if mom2_max is None else [np.maximum(mom2_max, mom2)]
    corrected = [*largest, mom2][0] / (1 - WIDE(attr.beta2_pow))
    step = mom1 / (1 - WIDE(attr.beta1_pow)) / (np.sqrt(corrected) + eps)
    return [param - lr * step, mom1, mom2, *largest]


@oracle
def adamw(attr: Any, param: AnyArray, grad: AnyArray, *moments: AnyArray, **named: AnyArray) -> list[AnyArray]:
    decayed = param * (1 - WIDE(attr.lr) * WIDE(attr.coeff))
    return adam(attr, decayed, grad, *moments, **named)
