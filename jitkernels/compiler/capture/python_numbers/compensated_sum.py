"""`sum` of Python floats, which Python 3.12 and later compute by compensated summation.

Source: Neumaier, "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen", ZAMM 54 (1974), as in
CPython's ``bltinmodule.c``.
"""

import math
import sys
from typing import Any

from jitkernels.compiler.capture.control_flow.loop_state import kind_of
from jitkernels.compiler.capture.control_flow.tagged_union import TaggedUnion
from jitkernels.compiler.capture.override_registry import SERVICES
from jitkernels.compiler.ir.builder import UnsupportedError

COMPENSATES = sys.version_info >= (3, 12)
"""Whether the sums of this Python are compensated."""


WHOLE = (int, bool)


def sum_step(total: Any, compensation: Any, element: Any) -> tuple[Any, Any]:
    """Add an element: the new sum, and its compensation.

    Python's floats are compensated; ints are added as they are. A number of NumPy makes the sum one of NumPy's.
    """
    if type(element) is TaggedUnion:
        raise UnsupportedError("sum of numbers of several types")
    is_float, kind = kind_of(total) is float, kind_of(element)
    if is_float and kind is float:
        result: tuple[Any, Any] = SERVICES["traced copy"](compensated)(total, compensation, element)
        return result
    if is_float and kind not in WHOLE:
        return sum_end(total, compensation) + element, 0.0
    return total + element, compensation


def sum_end(total: Any, compensation: Any) -> Any:
    """The sum with its compensation."""
    if kind_of(total) is not float or type(compensation) is float:
        return total
    return SERVICES["traced copy"](finished)(total, compensation)


def compensated(total: Any, compensation: Any, x: Any) -> tuple[Any, Any]:
    """Add x: the new sum, and the sum of all rounding errors."""
    after = total + x
    if abs(total) >= abs(x):
        compensation += (total - after) + x
    else:
        compensation += (x - after) + total
    return after, compensation


def finished(total: Any, compensation: Any) -> Any:
    """The sum with its compensation, unless that is not finite or would lose the sign of a zero."""
    if compensation != 0.0 and math.isfinite(compensation):
        total += compensation
    return total
