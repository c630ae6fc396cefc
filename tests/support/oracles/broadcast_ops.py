"""The oracle of elementwise kernels that broadcast a smaller operand."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import oracle


@oracle
def vscal(attr: Any, a: AnyArray, x: AnyArray) -> list[AnyArray]:
    return [a[0] * x]


@oracle
def vadd_bias(attr: Any, a: AnyArray, x: AnyArray) -> list[AnyArray]:
    return [a[0] + x]


@oracle
def stride_scal(attr: Any, a: AnyArray, x: AnyArray) -> list[AnyArray]:
    return [np.where(np.arange(attr.n) % attr.stride == 0, a[0] * x, x)]


@oracle
def vbroadcast(attr: Any, x: AnyArray) -> list[AnyArray]:
    return [np.tile(x, (attr.h, 1))]


@oracle
def nchw16c_mul_nc(attr: Any, x: AnyArray, y: AnyArray) -> list[AnyArray]:
    return [x * y]
