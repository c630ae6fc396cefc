"""The oracle of MATMUL."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import WIDE, oracle


@oracle
def matmul(attr: Any, a: AnyArray, b: AnyArray, c: Any = None) -> list[AnyArray]:
    narrow: Any = np.float64 if attr.dtype == "float32" else WIDE  # in long double NumPy uses its own loop, no BLAS
    left: Any = (a.T if attr.trans_a else a).astype(narrow)
    right: Any = (b.T if attr.trans_b else b).astype(narrow)
    product = (left @ right).astype(WIDE)
    return [product + WIDE(attr.beta) * c if attr.beta else product]
