"""Ints of the running code where NumPy takes no others than fit: Python's beside NumPy's, and what elements are set to.

NumPy raises OverflowError for all others. So the code looks, unless their bounds tell, and NumPy computes then.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels.frontends.flow import ranges
from jitkernels.frontends.traced import Traced
from jitkernels.frontends.tracer import Tracer
from jitkernels.graph import construct
from jitkernels.graph.construct import elementwise
from jitkernels.graph.ir import Node

COMPARISONS = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)
"""What takes all of Python's ints, whatever it is beside of."""


def _fits(tracer: Tracer, node: Node, dtype: str) -> bool:
    """Whether an int is surely one of a dtype."""
    if np.can_cast(node.dtype, dtype):
        return True
    found, info = ranges.interval(tracer, node), np.iinfo(dtype)
    return (
        found is not None
        and ranges.lowest(found[0]) >= int(info.min)
        and ranges.highest(found[1]) <= int(info.max)
    )


def check(tracer: Tracer, node: Node, dtype: str) -> None:
    """Have NumPy raise where an int is none of a dtype; floats take all of them."""
    if np.dtype(dtype).kind not in "iu" or _fits(tracer, node, dtype):
        return
    least, most = (int(one) for one in (np.iinfo(dtype).min, np.iinfo(dtype).max))
    lowest, highest = (int(one) for one in (np.iinfo(node.dtype).min, np.iinfo(node.dtype).max))
    if least > lowest:
        tracer.checks.append(elementwise("less", node, construct.constant(least, node.dtype)))
    if most < highest:
        tracer.checks.append(elementwise("greater", node, construct.constant(most, node.dtype)))


def check_assigned(given: Traced, value: Any) -> None:
    """The same for an int of NumPy that is assigned to ints; where these have no sign it wraps instead."""
    is_number = type(value) is Traced and value.is_scalar and not value.is_weak
    if is_number and value.dtype.kind in "iu" and given.dtype.kind == "i":
        check(given.tracer, value.node, given.node.dtype)


def compared(tracer: Tracer, operands: Sequence[Any], loop: tuple[str, ...]) -> tuple[str, ...]:
    """The types in which a comparison is made: 64 bits where one of Python's ints might not fit beside NumPy's."""
    if loop[0] in ("uint64", "int64") or np.dtype(loop[0]).kind not in "iu":
        return loop
    ints = [one for one in operands if type(one) is Traced and one.python is int]
    if all(_fits(tracer, one.node, loop[0]) for one in ints):
        return loop
    return "int64", "int64", *loop[2:]
