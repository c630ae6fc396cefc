"""Functions of numbers refuse what Python refuses: complex numbers, bools of NumPy, arrays without dimensions."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jitted import same

import jitkernels as jk

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "float": lambda x: float(x),
    "int": lambda x: int(x),
    "round": lambda x: round(x),
    "round to tenths": lambda x: round(x, 1),
    "floor": lambda x: math.floor(x),
    "ceil": lambda x: math.ceil(x),
    "trunc": lambda x: math.trunc(x),
    "sqrt": lambda x: math.sqrt(x),
    "hypot": lambda x: math.hypot(x, 1),
    "gcd": lambda x: math.gcd(x, 4),
    "factorial": lambda x: math.factorial(x),
    "isqrt": lambda x: math.isqrt(x),
    "ldexp": lambda x: math.ldexp(2.0, x),
    "scale": lambda x: math.ldexp(x, 2),
}
NUMBERS: dict[str, Callable[[Any], Any]] = {
    "element": lambda x: x[0],
    "number": lambda x: x[0].item(),
    "complex": lambda x: complex(x[0]),
    "sum": lambda x: x.sum(),
    "0-d": lambda x: np.array(x[0]),
}


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32", "float64", "complex128"])
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.per_push(40)
def test_number_type_errors(function: str, number: str, dtype: str) -> None:
    apply, make = FUNCTIONS[function], NUMBERS[number]

    def of_element(x: Any) -> Any:
        return apply(make(x))

    def of_argument(x: Any) -> Any:
        return apply(x)

    x = np.array([3, 1, 2]).astype(dtype)
    for compiled_function, argument in ((of_element, x), (of_argument, make(x))):
        same(outcome(jk.jit(compiled_function), argument), outcome(compiled_function, argument))


def outcome(function: Callable[..., Any], argument: Any) -> Any:
    """The result, or the type of the exception."""
    try:
        return function(argument)
    except Exception as error:  # noqa: BLE001  # whatever Python raises
        return type(error)
