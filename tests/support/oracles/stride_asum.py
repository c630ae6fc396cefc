"""The oracle of STRIDE_ASUM."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import oracle, total


@oracle
def stride_asum(attr: Any, x: AnyArray) -> list[AnyArray]:
    chosen = [j for j in range(attr.n) if j % attr.stride == 0]
    return [total(np.abs(x[:, chosen]), 1)]
