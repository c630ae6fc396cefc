"""The two floating-point formats of the functions of this folder, and the functions that one formula makes for both."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from jitkernels.core.frozen_dataclass import frozen_dataclass


@frozen_dataclass
class FloatFormat:
    """A binary format: its NumPy types, the bits of the fraction, and the bias of the exponent."""

    number: Any
    integer: Any
    unsigned: Any
    fraction_bits: int
    bias: int

    @property
    def sign(self) -> Any:
        """The mask of the sign bit."""
        return self.integer(np.iinfo(self.integer).min)

    @property
    def exponent(self) -> Any:
        """The mask of the sign and exponent bits."""
        return self.integer(-(1 << self.fraction_bits))


FORMATS = {
    "float32": FloatFormat(np.float32, np.int32, np.uint32, 23, 127),
    "float64": FloatFormat(np.float64, np.int64, np.uint64, 52, 1023),
}
Factory = Callable[..., Any]
Number = TypeVar("Number", np.float32, np.float64)


def coefficients(number: type[Number], *values: float) -> tuple[Number, ...]:
    """Round coefficients, lowest power first, to a type; functions read them as ``C[2]``, a constant."""
    return tuple(map(number, values))


def for_both(factory: Factory, *choices: Sequence[Any], name: str = "", doc: str = "") -> tuple[Any, Any]:
    """Return the functions that ``factory(format, ...)`` makes for float32 and float64.

    `choices` are pairs: what the factory takes for each. Caches know a function by its module and `name`, by default
    that in the factory.
    """
    functions = []
    for i, (dtype, form) in enumerate(FORMATS.items()):
        function = factory(form, *(pair[i] for pair in choices))
        function.__name__ = function.__qualname__ = f"{name or function.__name__}_{dtype}"
        function.__doc__ = doc or function.__doc__
        functions.append(function)
    return functions[0], functions[1]
