"""The oracle of elementwise kernels that are a few instructions."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import WIDE, oracle


def positive_part(x: AnyArray) -> AnyArray:
    """Return positive elements and NaN; 0.0 for the rest."""
    return np.where(x <= 0, WIDE(0), x)


@oracle
def vadd(attr: Any, x: AnyArray, y: AnyArray) -> list[AnyArray]:
    return [x + y]


@oracle
def vsub(attr: Any, x: AnyArray, y: AnyArray) -> list[AnyArray]:
    return [x - y]


@oracle
def vadd_relu(attr: Any, x: AnyArray, y: AnyArray) -> list[AnyArray]:
    return [positive_part(x + y)]


@oracle
def vrelu(attr: Any, x: AnyArray) -> list[AnyArray]:
    return [positive_part(x)]


@oracle
def videntity(attr: Any, x: AnyArray) -> list[AnyArray]:
    return [x]


@oracle
def vcopy(attr: Any, x: AnyArray) -> list[AnyArray]:
    return [x]


@oracle
def vsquare(attr: Any, x: AnyArray) -> list[AnyArray]:
    return [x * x]


@oracle
def vclip(attr: Any, x: AnyArray) -> list[AnyArray]:
    low, high = WIDE(attr.low), WIDE(attr.high)
    raised = np.where(x < low, low, x)
    return [np.where(raised > high, high, raised)]


@oracle
def vsqrt(attr: Any, x: AnyArray) -> list[AnyArray]:
    return [np.sqrt(x)]


@oracle
def vrsqrt(attr: Any, x: AnyArray) -> list[AnyArray]:
    return [1 / np.sqrt(x)]
