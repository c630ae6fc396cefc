"""Branches whose sides do not match: code for the side that the traced call takes; calls that take the other bail out.

The sides of a branch may bind a variable to numbers or arrays of different types, or one of them may not compile.
"""

from typing import Any

import numpy as np

from jitkernels.compiler.capture.control_flow.trace_branch import truth
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir.builder import UnsupportedError, elementwise
from jitkernels.compiler.ir.graph import sorted_nodes

MAX_INTERPRETED_ELEMENTS = 1 << 14
"""Elements of the arguments of a call up to which loops that a condition depends on are interpreted."""


def assumed_side(tracer: Tracer, test: Any, error: UnsupportedError) -> bool | None:
    """The truth of a condition in the traced call, which a runtime guard checks in others; None where that is unknown.

    `error`: why the sides cannot be compiled both.
    """
    if tracer.depth or tracer.differentiates or not tracer.may_assume:
        return None
    condition = truth(tracer, test)
    elements = sum(leaf.size for leaf in tracer.leaves if type(leaf) is np.ndarray)
    if elements > MAX_INTERPRETED_ELEMENTS and any(node.operation == "loop" for node in sorted_nodes([condition])):
        return None
    side = bool(tracer.value(condition))
    tracer.checks.append(elementwise("logical_not", condition) if side else condition)
    tracer.note(f"code for one side of a branch: {error}")
    return side
