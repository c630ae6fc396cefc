"""Expressions that rewrite rules must not change, and why: the cases of `test_passes.py`."""

import math
from collections.abc import Callable
from typing import Any

from rule_cases import (
    Given,
    Roots,
    again,
    also,
    c,
    cast,
    column,
    columns,
    diagonal,
    every_other,
    exp,
    flip,
    in_place,
    joined,
    matmul,
    neg,
    part,
    reduced,
    row,
    spread,
    steps,
    update,
    update_of,
    whole,
    windows,
)

from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import elementwise as e
from jitkernels.compiler.ir.graph import Node

STAYING: dict[str, Callable[[Given], Roots]] = {
    "-0.0 + 0.0 is 0.0": lambda g: e("add", g.x, 0.0),
    "-0.0 - -0.0 is 0.0": lambda g: e("subtract", g.x, -0.0),
    "inf * 0 is NaN": lambda g: e("multiply", g.x, 0.0),
    "inf - inf is NaN": lambda g: e("subtract", g.x, g.x),
    "0.0 - 0.0 is 0.0": lambda g: e("subtract", 0.0, g.x),
    "0 / 0 is NaN": lambda g: e("divide", g.x, g.x),
    "sums are rounded one by one": lambda g: e("add", e("add", g.x, 0.1), 0.2),
    "products are rounded one by one": lambda g: e("multiply", e("multiply", g.x, 0.1), 0.3),
    "distributing rounds otherwise": lambda g: e("add", e("multiply", g.x, g.y), e("multiply", g.x, g.z)),
    "the inverse of 3 is rounded": lambda g: e("divide", g.x, 3.0),
    "the inverse of a row is rounded": lambda g: e("divide", g.a, g.r),
    "log is rounded": lambda g: exp(e("log", g.x)),
    "squares of integers wrap": lambda g: e("absolute", e("square", g.i)),
    "one sign alone": lambda g: e("multiply", neg(g.x), g.y),
    "floats that are whole are not known": lambda g: e("floor", e("multiply", g.x, 3.0)),
    "floats are rounded by //": lambda g: e("floor_divide", g.x, 1.0),
    "NaN is not less and not greater": lambda g: e("logical_not", e("less", g.x, g.y)),
    "NaN is not equal to itself": lambda g: e("equal", g.x, g.x),
    "nor less or equal": lambda g: e("less_equal", g.x, g.x),
    "integers have more bits than one": lambda g: e("logical_not", e("logical_not", g.i)),
    "not of integers is no inversion": lambda g: e("where", cast(e("invert", g.i), "bool"), g.x, g.y),
    "0.0 and -0.0 are both largest": lambda g: e("maximum", e("maximum", g.x, 0.0), -0.0),
    "NaN is larger and smaller": lambda g: e("maximum", e("maximum", g.x, math.nan), 1.0),
    "bits of others": lambda g: e("bitwise_and", g.i, 255),
    "all bits but one": lambda g: e("bitwise_or", g.u, 254),
    "xor with all bits": lambda g: e("bitwise_xor", g.i, -1),
    "a number, not a truth": lambda g: e("equal", g.u, 1),
    "truths are 0 or 1": lambda g: e("equal", cast(g.p, "int32"), 2),
    "a cast to whole numbers": lambda g: cast(cast(g.x, "int64"), "float32"),
    "a cast to fewer bits": lambda g: cast(cast(g.d, "float32"), "float64"),
    "a cast to wrapped integers": lambda g: cast(cast(g.i, "int8"), "int32"),
    "int64 has more bits than float64": lambda g: cast(cast(g.t, "float64"), "int64"),
    "wider first, then whole": lambda g: cast(cast(g.x, "float64"), "int32"),
    "truths of rounded numbers": lambda g: cast(cast(g.d, "float16"), "bool"),
    "operands that are wide": lambda g: cast(e("add", g.d, cast(g.x, "float64")), "float32"),
    "a constant that is wide": lambda g: cast(e("add", cast(g.x, "float64"), 0.1), "float32"),
    "functions that are rounded": lambda g: cast(exp(cast(g.x, "float64")), "float32"),
    "int32 does not fit": lambda g: cast(e("multiply", cast(g.i, "float64"), cast(g.j, "float64")), "float32"),
    "powers of floats above 4": lambda g: e("power", g.x, 5.0),
    "powers of floats below -3": lambda g: e("power", g.x, -4.0),
    "other roots": lambda g: e("power", g.x, 1 / 3),
    "powers of others": lambda g: e("power", 3.0, g.x),
    "quotients by negative numbers": lambda g: e("floor_divide", g.i, -8),
    "remainders of negative numbers": lambda g: e("remainder", g.i, -8),
    "quotients by others": lambda g: e("floor_divide", g.i, 6),
    "remainders of others": lambda g: e("remainder", g.u, 10),
    "remainders of floats": lambda g: e("remainder", g.x, 8.0),
    "what takes long, for windows": lambda g: windows(exp(g.x), 2),
    "what takes long and is read": lambda g: also(exp(g.x), lambda v: e("sqrt", flip(v))),
    "two arrays that are read": lambda g: also(e("add", g.x, g.y), lambda v: e("sqrt", flip(v))),
    "cheap, but given back": lambda g: also(neg(g.x), flip),
    "transposes of products": lambda g: matmul(builder.transpose(e("add", g.a, g.b)), g.a),
    "reshapes of what is broadcast": lambda g: reduced("max", whole(e("add", g.a, g.r), (g.n * g.m,)), 0),
    "reshapes that are given back": lambda g: whole(exp(g.a), (g.n * g.m,)),
    "reshapes of transposes": lambda g: reduced("max", whole(exp(builder.transpose(g.a)), (g.n * g.m,)), 0),
    "regions in part": lambda g: part(update(g.x, part(g.y, 0, 2), 1, 2), 2, 3),
    "updates in part": lambda g: update(update(g.x, part(g.y, 0, 2), 1, 2), part(g.z, 0, 2), 2, 2),
    "updates that are read": lambda g: also(update(g.x, g.s, 1, 2), lambda v: update(v, part(g.z, 0, 3), 0, 3)),
    "another region": lambda g: update(g.x, part(g.x, 0, 3), 1, 3),
    "another array": lambda g: update(g.x, part(g.y, 1, 3), 1, 3),
    "constants of another sign": lambda g: update(spread(c(0.0), g.n), c(-0.0), 1, 2),
    "sums of what is broadcast": lambda g: reduced("sum", spread(g.r, g.n, g.m), 0),
    "products of what is broadcast": lambda g: reduced("prod", spread(reduced("sum", g.t, 0), g.n, g.m), 0),
    "sums of products": lambda g: reduced("sum", e("multiply", g.a, 3.0), 0),
    "sums of casts": lambda g: reduced("sum", cast(g.x, "float64"), 0),
    "largest of rounded": lambda g: reduced("max", cast(g.d, "float32"), 0),
    "reductions of others": lambda g: reduced("max", reduced("sum", g.a, 1), 0),
    "reductions that are read": lambda g: also(reduced("max", g.a, 1), lambda v: reduced("max", v, 0)),
    "reductions of regions": lambda g: reduced("max", part(g.a, 1, 2), 0),
    "concatenations along others": lambda g: joined(sideways(g.a, g.b), sideways(g.b, g.a)),
    "truths of extents": lambda g: cast(builder.extent(g.n), "bool"),
    "extents that are small": lambda g: cast(builder.extent(g.n, "int8"), "int64"),
    "constants that are written": lambda g: update(spread(c(0.0), g.n), g.s, 1, 2),
    "another choice": lambda g: e("where", e("logical_not", g.x), g.y, g.z),
    "a choice of numbers": lambda g: e("where", g.p, 1.0, 0.0),
    "a choice of one truth": lambda g: e("where", g.p, g.q, True),
    "integers that are added": lambda g: cast(e("add", cast(g.u, "int32"), cast(e("invert", g.u), "int32")), "float32"),
    "one bound alone": lambda g: e("maximum", e("maximum", g.x, g.y), 2.0),
    "quotients of two": lambda g: e("floor_divide", g.i, g.j),
    "remainders of two": lambda g: e("remainder", g.i, g.j),
    "quotients by 0": lambda g: e("floor_divide", g.i, 0),
    "integers twice": lambda g: e("multiply", g.i, 2),
    "chains of truths": lambda g: e("add", e("add", cast(g.a, "bool"), e("isnan", g.a)), cast(g.r, "bool")),
    "products of integers": lambda g: e("add", e("add", e("multiply", g.i, g.j), g.j), g.i),
    "squares of integers in products": lambda g: e("multiply", e("multiply", e("square", g.i), g.j), g.i),
    "sums that are read": lambda g: also(e("add", g.i, g.j), lambda v: e("subtract", g.i, v)),
    "sums twice": lambda g: doubled(e("add", g.i, g.j)),
    "concatenations that are read": lambda g: also(joined(g.x, g.y), lambda v: joined(v, g.z)),
    "cheap of what is no input": lambda g: also(neg(exp(g.x)), lambda v: e("sqrt", flip(v))),
    "cheap, but reduced": lambda g: also(neg(g.x), lambda v: reduced("max", flip(v), 0)),
    "cheap, but transposed for a product": lambda g: also(neg(g.w), lambda v: matmul(builder.transpose(v), g.a)),
    "written windows": lambda g: windows(update_of(g.x, g.s, windows(g.x, 2)), 2),
    "written again and again": lambda g: again(update_of(g.x, part(g.y, 0, 3), again(g.x))),
    "written at one place": lambda g: in_place(update_of(g.x, part(g.y, 0, 3), in_place(g.x))),
    "what takes long, at one place": lambda g: in_place(exp(g.x)),
    "flipped beyond": lambda g: flip(part(update(g.x, part(g.y, 0, 2), 1, 2), 0, 3)),
    "columns beyond": lambda g: columns(update_of(g.a, g.x, column(g.a, 1)), 1, 2),
    "more columns": lambda g: columns(update_of(g.a, g.x, column(g.a, 1)), 0, 2),
    "some of every other": lambda g: part(update_of(g.x, part(g.y, 0, 2), every_other(g.x, 0, 2)), 0, 2),
    "every other of some": lambda g: every_other(update_of(g.x, g.s, every_other(g.x, 0, 2)), g.n - 3, 2),
    "steps of unknown sign": lambda g: steps(update(g.x, part(g.y, 0, 4), 0, 4), g.n - g.m - 1),
    "written diagonals": lambda g: part(update_of(g.w, g.x, diagonal(g.w)), 1, 1),
    "reductions of flipped": lambda g: reduced("max", flip(g.x), 0),
    "reductions of rows": lambda g: reduced("max", row(g.a, 0), 0),
    "reductions of windows": lambda g: reduced("max", windows(g.x, 2), 0),
    "reductions of every other": lambda g: reduced("max", every_other(g.x, 0, 3), 0),
    "reductions of diagonals": lambda g: reduced("max", diagonal(g.w), 0),
    "reductions of what may be empty": lambda g: reduced("max", spread(g.r, g.n - 2, g.m), 0),
    "places of places": lambda g: reduced("argmax", reduced("argmax", g.t, 1), 0),
    "sums in other dtypes": lambda g: reduced("sum", wide_sum(g.a), 0),
    "largest of truths": lambda g: reduced("max", cast(g.p, "int32"), 0),
    "largest of inverted": lambda g: reduced("max", e("logical_not", g.p), 0),
    "truths of inverted bits": lambda g: reduced("any", e("invert", g.i), 0),
    "largest of products": lambda g: reduced("max", e("multiply", g.t, 3), 1),
    "products that are read": lambda g: also(e("multiply", g.t, 3), lambda v: reduced("sum", v, 1)),
    "sums of two products": lambda g: reduced(
        "sum", e("multiply", g.t, builder.expand_dims(reduced("sum", g.t, 1), (1,))), 1
    ),
    "different inputs": lambda g: e("subtract", exp(g.x), exp(g.y)),
    "different orders": lambda g: e("add", e("subtract", g.x, g.y), e("subtract", g.y, g.x)),
    "orders of extremes": lambda g: e("add", e("maximum", g.x, g.y), e("maximum", g.y, g.x)),
    "functions that are called": lambda g: e("add", called(g.x), called(g.x)),
}
"""Expressions that rules must not change without `fast_math`, and why."""


def sideways(*nodes: Node) -> Node:
    count: Any = nodes[0].shape[1] + nodes[1].shape[1]
    return Node("concatenate", nodes, nodes[0].dtype, (nodes[0].shape[0], count), {"axis": 1})


def called(node: Node) -> Node:
    return Node("call", (node,), node.dtype, node.shape, {"function": math.sin})


def doubled(node: Node) -> Node:
    return e("add", node, node)


def wide_sum(node: Node) -> Node:
    return Node("reduce", (node,), "float64", node.shape[:1], {"kind": "sum", "axes": (1,)})


STAYING_FAST: dict[str, Callable[[Given], Roots]] = {
    "quotients of as many": lambda g: e("divide", g.x, g.y),
    "quotients by 0": lambda g: e("divide", g.x, 0.0),
    "quotients by inf": lambda g: e("divide", g.x, math.inf),
    "products that are read": lambda g: also(e("multiply", g.x, g.y), lambda v: e("add", v, e("multiply", g.x, g.z))),
    "more products that are read": lambda g: also(
        e("multiply", g.x, g.y), lambda v: e("add", e("multiply", g.x, g.z), v)
    ),
    "products twice": lambda g: doubled(e("multiply", g.x, g.y)),
    "integers": lambda g: e("add", e("multiply", g.i, g.j), e("multiply", g.i, e("invert", g.j))),
    "one function twice": lambda g: e("log", e("log", g.x)),
    "powers of two": lambda g: (e("power", g.x, g.y), e("power", g.x, 0.3), e("power", g.x, 65.0)),
}
"""The same with `fast_math`."""
