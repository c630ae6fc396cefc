"""Arrays of a result: which are new arrays of another order, and whether possible aliases have equal elements."""

from typing import Any

import numpy as np

from jitkernels.compiler.capture.functionalization import View
from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.graph import Node


def transposed_axes(view: View) -> tuple[int, ...] | None:
    """The axes by which a view transposes a whole new array of C order; None for another view."""
    parent, storage = view.parent, view.storage
    is_single = parent is not None and parent.parent is None and type(view) is View and not view.is_readonly
    if not is_single or storage.order is not None or view.map is None or len(view.map) != len(view.shape):
        return None
    axes = [0] * len(view.shape)
    for axis, (start, steps) in enumerate(view.map):
        if start != 0 or len(steps) != 1 or steps[0][1] != 1:
            return None
        axes[steps[0][0]] = axis
    extents = storage.node.shape
    is_whole = sorted(axes) == [*range(len(axes))] and all(
        symbolic_dims.same(extent, extents[axis]) for extent, axis in zip(view.shape, axes, strict=True)
    )
    return tuple(axes) if is_whole else None


def owned_result(value: Any, bases: set[Node]) -> Any:
    """A traced array as a result of a front end's graph: a copy of a view of an argument or of another result.

    `bases`: the arrays of the results so far, to which it adds. Python builds results that are other views than
    transposes at each call, so that these are copied, too.
    """
    if value.view.parent is not None and transposed_axes(value.view) is None:
        return value.copy()
    base = value.node
    while base.operation in ("view", "reshape"):
        base = base.inputs[0]
    is_shared = base in bases or base.operation == "input"
    bases.add(base)
    return value.copy() if is_shared else value


def are_equal(left: Node, right: Node) -> Node:
    """A node that says whether two arrays that may alias have equal elements; then NumPy decides."""
    equal = builder.elementwise("equal", left, right)
    if np.dtype(left.dtype).kind == "f":
        both_nan = [builder.elementwise("isnan", node) for node in (left, right)]
        equal = builder.elementwise("logical_or", equal, builder.elementwise("logical_and", *both_nan))
    return builder.reduce("all", equal, range(equal.ndim))
