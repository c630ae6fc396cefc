"""The truth about elementwise kernels of a vector and something smaller."""

from typing import Any

from jitkernels.signature import AnyArray
from oracles import oracle


@oracle
def vscal(attr: Any, a: AnyArray, x: AnyArray) -> list[AnyArray]:
    return [a[0] * x]


@oracle
def vadd_bias(attr: Any, a: AnyArray, x: AnyArray) -> list[AnyArray]:
    return [a[0] + x]


@oracle
def nchw16c_mul_nc(attr: Any, x: AnyArray, y: AnyArray) -> list[AnyArray]:
    return [x * y]
