"""The oracle of elementwise kernels."""

from typing import Any

from jitkernels.attrs.schema.signature import AnyArray
from oracles import exp, oracle, sigmoid


@oracle
def vmul(attr: Any, x: AnyArray, y: AnyArray) -> list[AnyArray]:
    return [x * y]


@oracle
def vexp(attr: Any, x: AnyArray) -> list[AnyArray]:
    return [exp(x)]


@oracle
def vsigmoid(attr: Any, x: AnyArray) -> list[AnyArray]:
    return [sigmoid(x)]
