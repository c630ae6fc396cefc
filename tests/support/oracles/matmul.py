"""The truth about MATMUL."""

from typing import Any

import numpy as np

from jitkernels.signature import AnyArray
from oracles import WIDE, oracle


@oracle
def matmul(attr: Any, a: AnyArray, b: AnyArray, c: Any = None) -> list[AnyArray]:
    narrow: Any = np.float64 if attr.dtype == "float32" else WIDE  # long double is NumPy's plain loop
    left: Any = (a.T if attr.trans_a else a).astype(narrow)
    right: Any = (b.T if attr.trans_b else b).astype(narrow)
    product = (left @ right).astype(WIDE)
    return [product + WIDE(attr.beta) * c if attr.beta else product]
