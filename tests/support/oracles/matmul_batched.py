"""The oracle of MATMUL_BATCHED."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import WIDE, oracle


@oracle
def matmul_batched(attr: Any, a: AnyArray, b: AnyArray) -> list[AnyArray]:
    narrow: Any = np.float64 if attr.dtype == "float32" else WIDE  # in long double NumPy uses its own loop, no BLAS
    left, right = a.astype(narrow), b.astype(narrow)
    letters = ("ikm" if attr.trans_a else "imk") + "," + ("ink" if attr.trans_b else "ikn")
    return [np.einsum(f"{letters}->imn", left, right).astype(WIDE)]
