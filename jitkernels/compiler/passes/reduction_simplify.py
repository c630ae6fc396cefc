"""Reductions: less to reduce, in the place where it lies.

1. Over axes of one element a reduction is nothing but a view; a sum of floats adds it to 0.0.
2. A reduction of an array with its dimensions in another order is one over the other axes.
3. A reduction of a reduction of the same kind is one over the axes of both, if nothing else reads the inner one.
4. Extremes and truths of what is broadcast are found before; its sum is so many times it, of integers, and of floats
   with ``fast_math``.
5. Extremes and truths are found before a cast that loses nothing.
6. A sum of integers times a number is the sum times the number, and of floats with ``fast_math``.
7. ``any`` of ``not x`` is ``not all x``, and the reverse.
"""

from jitkernels.graph import construct
from jitkernels.graph.extents import product, same
from jitkernels.graph.ir import Node
from jitkernels.graph.passes.choices import loses_nothing
from jitkernels.graph.passes.maps import only_places, repeated_dimensions
from jitkernels.graph.passes.matching import is_bool, is_float, is_integer, made, shaped, with_number
from jitkernels.graph.passes.regions import is_at_least
from jitkernels.graph.passes.rewriting import Facts, Rewriting

reductions = Rewriting("reductions")
TRUTHS = ("any", "all")
EXTREMES = ("min", "max")
PLACES = ("argmin", "argmax")


def reduced(kind: str, node: Node, axes: list[int], dtype: str) -> Node:
    """A reduction over some axes, which may be none."""
    if not axes:
        return construct.cast(node, dtype)
    shape = [extent for i, extent in enumerate(node.shape) if i not in axes]
    return Node("reduce", (node,), dtype, shape, {"kind": kind, "axes": tuple(sorted(axes))})


@reductions.rule("reduce")
def rule_1_axes_of_one(node: Node, facts: Facts) -> Node | None:
    inner, kind, axes = node.inputs[0], node.options["kind"], node.options["axes"]
    single = [axis for axis in axes if same(inner.shape[axis], 1)]
    if not single:
        return None
    if kind in PLACES:
        return shaped(construct.constant(0, node.dtype), node.shape)
    left = [axis - sum(one < axis for one in single) for axis in axes if axis not in single]
    rest = construct.squeeze(inner, single)
    if kind == "sum" and is_float(node) and not left:
        return made("add", (rest, construct.constant(0.0, node.dtype)), node)
    return reduced(kind, rest, left, node.dtype)


@reductions.rule("reduce")
def rule_2_of_dimensions_in_another_order(node: Node, facts: Facts) -> Node | None:
    shown, kind, axes = node.inputs[0], node.options["kind"], node.options["axes"]
    if shown.operation != "view" or not only_places(shown):
        return None
    array = shown.inputs[0]
    place = {steps[0][0]: i for i, (_, steps) in enumerate(shown.options["map"]) if steps}
    over = [place[axis] for axis in axes if axis in place]
    result = reduced(kind, array, over, node.dtype)
    kept = [axis for axis in range(shown.ndim) if axis not in axes]
    back = {place[axis]: i for i, axis in enumerate(kept) if axis in place}
    left = [i for i in range(array.ndim) if i not in over]
    return construct.view(result, tuple((0, ((back[i], 1),) if i in back else ()) for i in left), node.shape)


@reductions.rule("reduce")
def rule_3_of_reduction(node: Node, facts: Facts) -> Node | None:
    inner, kind, axes = node.inputs[0], node.options["kind"], node.options["axes"]
    if (
        inner.operation != "reduce"
        or inner.options["kind"] != kind
        or kind in PLACES
        or not facts.is_read_once(inner)
    ):
        return None
    array, first = inner.inputs[0], inner.options["axes"]
    if kind not in TRUTHS and not array.dtype == inner.dtype == node.dtype:
        return None
    kept = [axis for axis in range(array.ndim) if axis not in first]
    return reduced(kind, array, [*first, *(kept[axis] for axis in axes)], node.dtype)


@reductions.rule("reduce")
def rule_4_of_broadcast(node: Node, facts: Facts) -> Node | None:
    shown, kind, axes = node.inputs[0], node.options["kind"], node.options["axes"]
    if shown.operation != "view":
        return None
    over = [axis for axis in axes if axis in repeated_dimensions(shown.options["map"], shown.shape)]
    exact = is_integer(node) or facts.fast_math
    if not over or not (kind in (*TRUTHS, *EXTREMES) or (kind == "sum" and exact)):
        return None
    if any(not is_at_least(shown.shape[axis], 1) for axis in over):
        return None
    shape = [1 if axis in over else extent for axis, extent in enumerate(shown.shape)]
    one = reduced(kind, construct.view(shown.inputs[0], shown.options["map"], shape), list(axes), node.dtype)
    if kind != "sum":
        return one
    count = construct.extent(product(shown.shape[axis] for axis in over))
    return made("multiply", (one, construct.cast(count, node.dtype)), node)


@reductions.rule("reduce")
def rule_5_before_cast(node: Node, facts: Facts) -> Node | None:
    wide, kind = node.inputs[0], node.options["kind"]
    if wide.operation != "cast" or kind not in (*TRUTHS, *EXTREMES, *PLACES):
        return None
    narrow = wide.inputs[0]
    if is_bool(narrow) and kind not in TRUTHS:
        return None
    if not loses_nothing(narrow.dtype, wide.dtype):
        return None
    dtype = narrow.dtype if kind in EXTREMES else node.dtype
    return construct.cast(reduced(kind, narrow, list(node.options["axes"]), dtype), node.dtype)


@reductions.rule("reduce")
def rule_6_factor_of_sum(node: Node, facts: Facts) -> Node | None:
    inner = node.inputs[0]
    if node.options["kind"] != "sum" or inner.operation != "multiply" or not facts.is_read_once(inner):
        return None
    pair = with_number(inner)
    if pair is None or (is_float(node) and not facts.fast_math):
        return None
    whole = shaped(pair[0], inner.shape)
    if whole is None:
        return None
    total = reduced("sum", whole, list(node.options["axes"]), node.dtype)
    return made("multiply", (total, construct.constant(pair[2], node.dtype)), node)


@reductions.rule("reduce")
def rule_7_of_inverted_truths(node: Node, facts: Facts) -> Node | None:
    inner, kind = node.inputs[0], node.options["kind"]
    if kind not in TRUTHS or inner.operation not in ("logical_not", "invert") or not is_bool(inner):
        return None
    opposite = "all" if kind == "any" else "any"
    return made(
        "logical_not", (reduced(opposite, inner.inputs[0], list(node.options["axes"]), "bool"),), node
    )
