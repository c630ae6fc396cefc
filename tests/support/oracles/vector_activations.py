"""The oracle of elementwise activations."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import WIDE, oracle, sigmoid
from oracles.vector_functions import ROOT_OF_PI, erfc


@oracle
def vgelu(attr: Any, x: AnyArray) -> list[AnyArray]:
    if attr.form == "erf":
        return [x * erfc(-x * np.sqrt(WIDE(0.5))) / 2]
    root = np.sqrt(WIDE(2)) / ROOT_OF_PI
    return [x * sigmoid(2 * root * (x + WIDE("0.044715") * x**3))]


@oracle
def vsilu(attr: Any, x: AnyArray) -> list[AnyArray]:
    return [x * sigmoid(x)]


@oracle
def vsoftplus(attr: Any, x: AnyArray) -> list[AnyArray]:
    return [np.where(x > 0, x, WIDE(0)) + np.log1p(np.exp(-np.abs(x)))]


@oracle
def swiglu(attr: Any, a: AnyArray, b: AnyArray) -> list[AnyArray]:
    return [a * sigmoid(a) * b]
