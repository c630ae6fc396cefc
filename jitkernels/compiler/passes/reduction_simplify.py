"""Reductions of fewer elements, in the order in which they lie in memory.

1. A reduction over axes of extent 1 becomes a view; a sum of floats also adds 0.0.
2. A reduction of a transposed array becomes a reduction of the array over the permuted axes.
3. A reduction of a reduction of the same kind becomes one over the axes of both, if the inner one has one use.
4. ``min``, ``max``, ``any`` and ``all`` of a broadcast reduce before the broadcast; a sum becomes a product with the
   count, for integers, and for floats with ``fast_math``.
5. ``min``, ``max``, ``any``, ``all``, ``argmin`` and ``argmax`` of a lossless cast reduce before the cast.
6. A sum of integers times a constant becomes the sum times the constant, and for floats with ``fast_math``.
7. ``any(not x)`` becomes ``not all(x)``, and ``all(not x)`` becomes ``not any(x)``.
"""

from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import is_at_least, product, same
from jitkernels.compiler.passes.index_maps import broadcast_dimensions, is_permutation
from jitkernels.compiler.passes.matchers import (
    broadcast_like,
    is_bool,
    is_float,
    is_integer,
    replacement_like,
    split_constant_operand,
)
from jitkernels.compiler.passes.pattern_rewriter import MatchContext, RewritePass
from jitkernels.compiler.passes.select_simplify import is_lossless_cast

reduction_simplify_pass = RewritePass("reduction_simplify")
BOOLEAN_REDUCTIONS = ("any", "all")
EXTREMES = ("min", "max")
ARG_EXTREMES = ("argmin", "argmax")


def reduced(kind: str, node: Node, axes: list[int], dtype: str) -> Node:
    """A reduction of `node` over `axes`; a cast if there are none."""
    if not axes:
        return builder.cast(node, dtype)
    shape = [extent for i, extent in enumerate(node.shape) if i not in axes]
    return Node("reduce", (node,), dtype, shape, {"kind": kind, "axes": tuple(sorted(axes))})


@reduction_simplify_pass.rule("reduce")
def rule_1_axes_of_one(node: Node, context: MatchContext) -> Node | None:
    inner, kind, axes = node.inputs[0], node.options["kind"], node.options["axes"]
    single = [axis for axis in axes if same(inner.shape[axis], 1)]
    if not single:
        return None
    if kind in ARG_EXTREMES:
        return broadcast_like(builder.constant(0, node.dtype), node.shape)
    remaining = [axis - sum(removed < axis for removed in single) for axis in axes if axis not in single]
    rest = builder.squeeze(inner, single)
    if kind == "sum" and is_float(node) and not remaining:
        return replacement_like("add", (rest, builder.constant(0.0, node.dtype)), node)
    return reduced(kind, rest, remaining, node.dtype)


@reduction_simplify_pass.rule("reduce")
def rule_2_of_dimensions_in_another_order(node: Node, context: MatchContext) -> Node | None:
    view, kind, axes = node.inputs[0], node.options["kind"], node.options["axes"]
    if view.operation != "view" or not is_permutation(view):
        return None
    array = view.inputs[0]
    view_axis = {steps[0][0]: i for i, (_, steps) in enumerate(view.options["map"]) if steps}
    over = [view_axis[axis] for axis in axes if axis in view_axis]
    result = reduced(kind, array, over, node.dtype)
    result_axes = [axis for axis in range(view.ndim) if axis not in axes]
    back = {view_axis[axis]: i for i, axis in enumerate(result_axes) if axis in view_axis}
    remaining = [i for i in range(array.ndim) if i not in over]
    return builder.view(result, tuple((0, ((back[i], 1),) if i in back else ()) for i in remaining), node.shape)


@reduction_simplify_pass.rule("reduce")
def rule_3_of_reduction(node: Node, context: MatchContext) -> Node | None:
    inner, kind, axes = node.inputs[0], node.options["kind"], node.options["axes"]
    if (
        inner.operation != "reduce"
        or inner.options["kind"] != kind
        or kind in ARG_EXTREMES
        or not context.has_one_use(inner)
    ):
        return None
    array, first = inner.inputs[0], inner.options["axes"]
    if kind not in BOOLEAN_REDUCTIONS and not array.dtype == inner.dtype == node.dtype:
        return None
    remaining = [axis for axis in range(array.ndim) if axis not in first]
    return reduced(kind, array, [*first, *(remaining[axis] for axis in axes)], node.dtype)


@reduction_simplify_pass.rule("reduce")
def rule_4_of_broadcast(node: Node, context: MatchContext) -> Node | None:
    view, kind, axes = node.inputs[0], node.options["kind"], node.options["axes"]
    if view.operation != "view":
        return None
    over = [axis for axis in axes if axis in broadcast_dimensions(view.options["map"], view.shape)]
    exact = is_integer(node) or context.fast_math
    if not over or not (kind in (*BOOLEAN_REDUCTIONS, *EXTREMES) or (kind == "sum" and exact)):
        return None
    if any(not is_at_least(view.shape[axis], 1) for axis in over):
        return None
    shape = [1 if axis in over else extent for axis, extent in enumerate(view.shape)]
    result = reduced(kind, builder.view(view.inputs[0], view.options["map"], shape), list(axes), node.dtype)
    if kind != "sum":
        return result
    count = builder.extent(product(view.shape[axis] for axis in over))
    return replacement_like("multiply", (result, builder.cast(count, node.dtype)), node)


@reduction_simplify_pass.rule("reduce")
def rule_5_before_cast(node: Node, context: MatchContext) -> Node | None:
    wide, kind = node.inputs[0], node.options["kind"]
    if wide.operation != "cast" or kind not in (*BOOLEAN_REDUCTIONS, *EXTREMES, *ARG_EXTREMES):
        return None
    narrow = wide.inputs[0]
    if is_bool(narrow) and kind not in BOOLEAN_REDUCTIONS:
        return None
    if not is_lossless_cast(narrow.dtype, wide.dtype):
        return None
    dtype = narrow.dtype if kind in EXTREMES else node.dtype
    return builder.cast(reduced(kind, narrow, list(node.options["axes"]), dtype), node.dtype)


@reduction_simplify_pass.rule("reduce")
def rule_6_factor_of_sum(node: Node, context: MatchContext) -> Node | None:
    inner = node.inputs[0]
    if node.options["kind"] != "sum" or inner.operation != "multiply" or not context.has_one_use(inner):
        return None
    pair = split_constant_operand(inner)
    if pair is None or (is_float(node) and not context.fast_math):
        return None
    factor = broadcast_like(pair[0], inner.shape)
    if factor is None:
        return None
    total = reduced("sum", factor, list(node.options["axes"]), node.dtype)
    return replacement_like("multiply", (total, builder.constant(pair[2], node.dtype)), node)


@reduction_simplify_pass.rule("reduce")
def rule_7_of_inverted_truths(node: Node, context: MatchContext) -> Node | None:
    inner, kind = node.inputs[0], node.options["kind"]
    if kind not in BOOLEAN_REDUCTIONS or inner.operation not in ("logical_not", "invert") or not is_bool(inner):
        return None
    opposite = "all" if kind == "any" else "any"
    return replacement_like(
        "logical_not", (reduced(opposite, inner.inputs[0], list(node.options["axes"]), "bool"),), node
    )
