"""Branches whose sides do not match: code for the side that the traced call takes; calls that take the other bail out.

The sides of a branch may bind a variable to numbers or arrays of different types, or one of them may not compile.
"""

from typing import Any

import numpy as np

from jitkernels.compiler.capture.control_flow.branch_phi import BranchMismatchError
from jitkernels.compiler.capture.control_flow.trace_branch import truth
from jitkernels.compiler.capture.source_locations import place_of, placed
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir.builder import UnsupportedError, elementwise
from jitkernels.compiler.ir.graph import sorted_nodes
from jitkernels.compiler.ir.regions import regions_of, walk_nodes
from jitkernels.compiler.ir.unsupported import ConcretizationError

CURE = (
    "expected numbers, or arrays of one dtype and shape, where the condition is known only when the compiled code "
    "runs. Write `np.where(condition, a, b)` for a choice between elements, or take the branch outside of the "
    "compiled function"
)
"""Advice for branches whose sides do not match."""
MAX_ASSUMED_BRANCHES = 4
"""Branches of a function of which code has one side: code for one path of many would bail out of most calls."""
MAX_INTERPRETED_ELEMENTS = 1 << 14
"""Elements of the arguments of a call up to which loops that a condition depends on are interpreted."""


def assumed_side(tracer: Tracer, test: Any, error: UnsupportedError) -> bool | None:
    """The truth of a condition in the traced call, which a runtime guard checks in others; None where that is unknown.

    `error`: why the sides cannot be compiled both.
    """
    if tracer.depth or tracer.differentiates or not tracer.assumable_branches:
        return None
    condition = truth(tracer, test)
    nodes = sorted_nodes([condition])
    inside = [node for flow in nodes for region in regions_of(flow) for node in walk_nodes(region)]
    elements = sum(leaf.size for leaf in tracer.leaves if type(leaf) is np.ndarray)
    if elements > MAX_INTERPRETED_ELEMENTS and any(node.operation == "loop" for node in nodes):
        return None
    if any(node.operation == "native_call" for node in (*nodes, *inside)):
        return None  # C functions may have side effects, and run in the call
    side = bool(tracer.value(condition))
    tracer.assumable_branches -= 1
    tracer.checks.append(elementwise("logical_not", condition) if side else condition)
    tracer.note(f"code for one side of a branch: {error}")
    return side


def described(tracer: Tracer, test: Any, error: UnsupportedError, line: int) -> UnsupportedError:
    """The error to raise where a branch whose condition only the compiled code knows cannot be compiled."""
    if isinstance(error, BranchMismatchError):
        text = f"{place_of(error, line)}: {error}: {CURE}"
        return error if error.is_placed else BranchMismatchError(text, is_placed=True)
    if tracer.depth:
        return error
    reason = placed(error, line)
    tracer.note(str(reason))
    try:
        bool(test)  # raises an error that names the source line
    except ConcretizationError as error_at_line:
        text = f"{error_at_line}. Why both sides cannot be compiled: {reason}"
        return ConcretizationError(text, is_placed=True)
    return error
