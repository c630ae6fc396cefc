"""For each rewrite rule of each pass, expressions before and after: the cases of `test_passes.py`."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import elementwise as e
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.ir.symbolic_dims import Scope

N, M = 6, 4
"""The symbols' values when expressions are built; they are evaluated with other values, too."""


@dataclass
class Given:
    """Inputs: floats, integers and bools of n elements, matrices of n by m, a row of m, and a number."""

    scope: Scope = field(default_factory=Scope)
    inputs: list[Node] = field(default_factory=list)

    def __post_init__(self) -> None:
        n, m = self.scope.symbol("n", N), self.scope.symbol("m", M)
        self.n, self.m = n, m
        self.x, self.y, self.z = (self._input("float32", n) for _ in range(3))
        self.i, self.j = self._input("int32", n), self._input("int32", n)
        self.u, self.p, self.q = self._input("uint8", n), self._input("bool", n), self._input("bool", n)
        self.h, self.d = self._input("float16", n), self._input("float64", n)
        self.a, self.b = self._input("float32", n, m), self._input("float32", n, m)
        self.w = self._input("float32", n, n)
        self.t, self.r, self.s = self._input("int64", n, m), self._input("float32", m), self._input("float32")

    def _input(self, dtype: str, *shape: Any) -> Node:
        self.inputs.append(Node("input", (), dtype, shape, {"index": len(self.inputs)}))
        return self.inputs[-1]


Roots = Any
"""A node, a tuple of nodes, or a `Graph`."""


class Case(NamedTuple):
    """An expression before and after its rule; `loose`: equal as real numbers are, not bit by bit."""

    rule: str
    make: Callable[[Given], tuple[Roots, Roots]]
    fast_math: bool = False
    loose: bool = False


def graph_of(given: Given, roots: Roots) -> Graph:
    if isinstance(roots, Graph):
        return roots
    return Graph(tuple(given.inputs), roots if isinstance(roots, tuple) else (roots,))


def c(value: Any, dtype: str = "float32") -> Node:
    return builder.constant(value, dtype)


def spread(node: Node, *shape: Any) -> Node:
    return builder.broadcast_to(node, shape)


def whole(node: Node, shape: tuple[Any, ...]) -> Node:
    """Return a reshape, also if it is the identity."""
    return Node("reshape", (node,), node.dtype, shape)


def flip(node: Node) -> Node:
    """Reverse a vector."""
    return builder.view(node, ((node.shape[0] - 1, ((0, -1),)),), node.shape)


def logistic(x: Node) -> Node:
    """Return the sigmoid by an exponential that cannot overflow."""
    small = e("exp", e("negative", e("absolute", x)))
    return e("divide", e("where", e("less", x, 0.0), small, 1.0), e("add", 1.0, small))


def part(node: Node, start: Any, count: Any) -> Node:
    """Return a slice of a vector, or rows of a matrix."""
    index_map = ((start, ((0, 1),)), *builder.identity_map(node.ndim)[1:])
    return builder.view(node, index_map, (count, *node.shape[1:]))


def update(node: Node, value: Node, start: Any, count: Any) -> Node:
    index_map = ((start, ((0, 1),)), *builder.identity_map(node.ndim)[1:])
    return Node(
        "update", (node, value), node.dtype, node.shape, {"map": index_map, "extents": (count, *node.shape[1:])}
    )


def reduced(kind: str, node: Node, *axes: int) -> Node:
    return builder.reduce(kind, node, axes)


def neg(node: Node) -> Node:
    return e("negative", node)


def exp(node: Node) -> Node:
    return e("exp", node)


def cast(node: Node, dtype: str) -> Node:
    """Return a cast, also to the same dtype."""
    return Node("cast", (node,), dtype, node.shape)


def root_of_power(x: Node) -> Node:
    """Return ``x ** 0.5`` as NumPy computes it."""
    return e("where", e("equal", x, -math.inf), math.inf, e("sqrt", e("add", x, 0.0)))


def three_halves(x: Node) -> Node:
    """Return ``x ** 1.5``."""
    base = e("where", e("equal", x, -math.inf), math.inf, x)
    return e("multiply", base, e("sqrt", base))


def minus_three_halves(x: Node) -> Node:
    """Return ``x ** -1.5``."""
    base = e("where", e("equal", x, -math.inf), math.inf, x)
    return e("divide", e("reciprocal", base), e("sqrt", base))


def windows(node: Node, width: int) -> Node:
    return builder.view(node, ((0, ((0, 1), (1, 1))),), (node.shape[0] - width + 1, width))


CASES: list[Case] = [
    # constant_folding
    Case("constant_folding.rule_1_operation_of_constants", lambda g: (e("multiply", g.x, e("add", c(2.0), c(3.0))), e("multiply", g.x, 5.0))),
    Case("constant_folding.rule_1_operation_of_constants", lambda g: (e("add", g.u, e("add", c(200, "uint8"), c(100, "uint8"))), e("add", g.u, 44))),
    Case("constant_folding.rule_1_operation_of_constants", lambda g: (e("sqrt", spread(c(4.0), g.n)), spread(c(2.0), g.n))),
    Case("constant_folding.rule_2_cast_of_constant", lambda g: (e("add", g.d, cast(c(0.1), "float64")), e("add", g.d, 0.10000000149011612))),
    Case("constant_folding.rule_3_cast_of_extent", lambda g: (e("divide", g.d, cast(builder.extent(g.n), "float64")), e("divide", g.d, builder.extent(g.n, "float64")))),
    Case("constant_folding.rule_4_reshape_of_constant", lambda g: (whole(spread(c(2.0), g.n, g.m), (g.m, g.n)), spread(c(2.0), g.m, g.n))),
    Case("constant_folding.rule_5_update_with_the_same_constant", lambda g: (update(spread(c(0.0), g.n), c(0.0), 1, 2), spread(c(0.0), g.n))),
    # algebraic_simplify
    Case("algebraic_simplify.rule_1_times_one", lambda g: (e("multiply", g.x, 1.0), g.x)),
    Case("algebraic_simplify.rule_1_times_one", lambda g: (e("multiply", 1, g.i), g.i)),
    Case("algebraic_simplify.rule_1_times_one", lambda g: (e("divide", g.a, spread(c(1.0), g.m)), g.a)),
    Case("algebraic_simplify.rule_2_plus_zero", lambda g: (e("subtract", g.x, 0.0), g.x)),
    Case("algebraic_simplify.rule_2_plus_zero", lambda g: (e("add", -0.0, g.x), g.x)),
    Case("algebraic_simplify.rule_2_plus_zero", lambda g: (e("add", g.i, 0), g.i)),
    Case("algebraic_simplify.rule_3_times_zero", lambda g: (e("multiply", g.i, 0), spread(c(0, "int32"), g.n))),
    Case("algebraic_simplify.rule_4_minus_itself", lambda g: (e("subtract", g.i, g.i), spread(c(0, "int32"), g.n))),
    Case("algebraic_simplify.rule_5_double_sign", lambda g: (neg(neg(g.x)), g.x)),
    Case("algebraic_simplify.rule_5_double_sign", lambda g: (e("positive", g.u), g.u)),
    Case("algebraic_simplify.rule_6_sign_that_is_lost", lambda g: (e("absolute", e("absolute", g.x)), e("absolute", g.x))),
    Case("algebraic_simplify.rule_6_sign_that_is_lost", lambda g: (e("fabs", neg(g.x)), e("fabs", g.x))),
    Case("algebraic_simplify.rule_6_sign_that_is_lost", lambda g: (e("absolute", e("square", g.x)), e("square", g.x))),
    Case("algebraic_simplify.rule_6_sign_that_is_lost", lambda g: (e("absolute", g.u), g.u)),
    Case("algebraic_simplify.rule_7_negative_term", lambda g: (e("add", g.x, neg(g.y)), e("subtract", g.x, g.y))),
    Case("algebraic_simplify.rule_7_negative_term", lambda g: (e("add", neg(g.x), g.y), e("subtract", g.y, g.x))),
    Case("algebraic_simplify.rule_7_negative_term", lambda g: (e("subtract", g.i, neg(g.j)), e("add", g.i, g.j))),
    Case("algebraic_simplify.rule_8_negative_factors", lambda g: (e("divide", neg(g.x), neg(g.y)), e("divide", g.x, g.y))),
    Case("algebraic_simplify.rule_9_times_minus_one", lambda g: (e("multiply", -1.0, g.x), neg(g.x))),
    Case("algebraic_simplify.rule_9_times_minus_one", lambda g: (e("divide", g.x, -1.0), neg(g.x))),
    Case("algebraic_simplify.rule_10_zero_minus", lambda g: (e("subtract", -0.0, g.x), neg(g.x))),
    Case("algebraic_simplify.rule_10_zero_minus", lambda g: (e("subtract", 0, g.i), neg(g.i))),
    Case("algebraic_simplify.rule_11_constants_together", lambda g: (e("add", e("add", 100, g.u), 200), e("add", g.u, 44))),
    Case("algebraic_simplify.rule_11_constants_together", lambda g: (e("multiply", e("multiply", g.i, 3), 5), e("multiply", g.i, 15))),
    Case("algebraic_simplify.rule_12_square_of_signed", lambda g: (e("square", neg(g.x)), e("square", g.x))),
    Case("algebraic_simplify.rule_13_rounded_already", lambda g: (e("ceil", e("floor", g.x)), e("floor", g.x))),
    # select_simplify
    Case("select_simplify.rule_1_choice_that_is_known", lambda g: (e("where", True, g.x, g.y), g.x)),
    Case("select_simplify.rule_1_choice_that_is_known", lambda g: (e("where", g.p, g.x, g.x), g.x)),
    Case("select_simplify.rule_1_choice_that_is_known", lambda g: (e("where", spread(c(False, "bool"), g.n, g.m), g.a, g.r), spread(g.r, g.n, g.m))),
    Case("select_simplify.rule_2_inverted_condition", lambda g: (e("where", e("logical_not", g.p), g.x, g.y), e("where", g.p, g.y, g.x))),
    Case("select_simplify.rule_3_choice_of_truths", lambda g: (e("where", g.p, True, False), g.p)),
    Case("select_simplify.rule_3_choice_of_truths", lambda g: (e("where", g.p, False, True), e("logical_not", g.p))),
    Case("select_simplify.rule_4_with_itself", lambda g: (e("maximum", g.x, g.x), g.x)),
    Case("select_simplify.rule_4_with_itself", lambda g: (e("bitwise_xor", g.i, g.i), spread(c(0, "int32"), g.n))),
    Case("select_simplify.rule_4_with_itself", lambda g: (e("logical_or", g.p, g.p), g.p)),
    Case("select_simplify.rule_5_none_or_all_bits", lambda g: (e("bitwise_and", g.i, -1), g.i)),
    Case("select_simplify.rule_5_none_or_all_bits", lambda g: (e("bitwise_or", 255, g.u), spread(c(255, "uint8"), g.n))),
    Case("select_simplify.rule_5_none_or_all_bits", lambda g: (e("logical_and", g.p, True), g.p)),
    Case("select_simplify.rule_5_none_or_all_bits", lambda g: (e("left_shift", g.i, 0), g.i)),
    Case("select_simplify.rule_6_twice_inverted", lambda g: (e("invert", e("invert", g.i)), g.i)),
    Case("select_simplify.rule_6_twice_inverted", lambda g: (e("logical_not", e("invert", g.p)), g.p)),
    Case("select_simplify.rule_7_inverted_comparison", lambda g: (e("logical_not", e("equal", g.x, g.y)), e("not_equal", g.x, g.y))),
    Case("select_simplify.rule_7_inverted_comparison", lambda g: (e("invert", e("less", g.i, g.j)), e("greater_equal", g.i, g.j))),
    Case("select_simplify.rule_8_truth_compared", lambda g: (e("not_equal", cast(g.p, "float32"), 0.0), g.p)),
    Case("select_simplify.rule_8_truth_compared", lambda g: (e("equal", False, g.p), e("logical_not", g.p))),
    Case("select_simplify.rule_9_compared_with_itself", lambda g: (e("less_equal", g.i, g.i), spread(c(True, "bool"), g.n))),
    Case("select_simplify.rule_10_cast_of_cast", lambda g: (cast(g.x, "float32"), g.x)),
    Case("select_simplify.rule_10_cast_of_cast", lambda g: (cast(cast(g.x, "float64"), "float32"), g.x)),
    Case("select_simplify.rule_10_cast_of_cast", lambda g: (cast(cast(g.t, "int32"), "int8"), cast(g.t, "int8"))),
    Case("select_simplify.rule_11_narrow_arithmetic", lambda g: (cast(e("divide", cast(g.x, "float64"), c(3.0, "float64")), "float32"), e("divide", g.x, 3.0))),
    Case("select_simplify.rule_11_narrow_arithmetic", lambda g: (cast(e("multiply", cast(g.h, "float32"), cast(g.h, "float32")), "float16"), e("square", g.h))),
    Case("select_simplify.rule_12_one_bound", lambda g: (e("minimum", e("minimum", g.x, 3.0), 2.0), e("minimum", g.x, 2.0))),
    Case("select_simplify.rule_12_one_bound", lambda g: (e("maximum", e("maximum", g.i, 0), 2), e("maximum", g.i, 2))),
    # strength_reduction
    Case("strength_reduction.rule_1_power_of_zero_or_one", lambda g: (e("power", g.x, 0.0), spread(c(1.0), g.n))),
    Case("strength_reduction.rule_1_power_of_zero_or_one", lambda g: (e("power", 1.0, g.x), spread(c(1.0), g.n))),
    Case("strength_reduction.rule_1_power_of_zero_or_one", lambda g: (e("power", g.x, 1.0), g.x)),
    Case("strength_reduction.rule_2_power_by_products", lambda g: (e("power", g.x, 2.0), e("square", g.x)), loose=True),
    Case("strength_reduction.rule_2_power_by_products", lambda g: (e("power", g.x, 3.0), e("multiply", g.x, e("square", g.x))), loose=True),
    Case("strength_reduction.rule_2_power_by_products", lambda g: (e("power", g.x, 4.0), e("square", e("square", g.x))), loose=True),
    Case("strength_reduction.rule_3_power_of_reciprocal", lambda g: (e("power", g.x, -1.0), e("reciprocal", g.x)), loose=True),
    Case("strength_reduction.rule_3_power_of_reciprocal", lambda g: (e("power", g.x, -2.0), e("square", e("reciprocal", g.x))), loose=True),
    Case("strength_reduction.rule_3_power_of_reciprocal", lambda g: (e("power", g.d, -3.0), e("divide", e("divide", e("reciprocal", g.d), g.d), g.d)), loose=True),
    Case("strength_reduction.rule_4_power_by_root", lambda g: (e("power", g.x, 0.5), e("sqrt", g.x)), loose=True),
    Case("strength_reduction.rule_4_power_by_root", lambda g: (e("power", g.d, -0.5), e("reciprocal", root_of_power(g.d))), loose=True),
    Case("strength_reduction.rule_4_power_by_root", lambda g: (e("power", g.d, 1.5), three_halves(g.d)), loose=True),
    Case("strength_reduction.rule_4_power_by_root", lambda g: (e("power", g.d, -1.5), minus_three_halves(g.d)), loose=True),
    Case("strength_reduction.rule_5_power_of_two", lambda g: (e("power", 2.0, g.x), e("exp2", g.x)), loose=True),
    Case("strength_reduction.rule_6_square", lambda g: (e("multiply", g.x, g.x), e("square", g.x))),
    Case("strength_reduction.rule_7_reciprocal", lambda g: (e("divide", 1.0, g.x), e("reciprocal", g.x))),
    Case("strength_reduction.rule_8_division_by_power_of_two", lambda g: (e("divide", g.x, -8.0), e("multiply", g.x, -0.125))),
    Case("strength_reduction.rule_8_division_by_power_of_two", lambda g: (e("divide", g.h, 2.0**15), e("multiply", g.h, 2.0**-15))),
    Case("strength_reduction.rule_9_quotient_by_shift", lambda g: (e("floor_divide", g.i, 8), e("right_shift", g.i, 3))),
    Case("strength_reduction.rule_10_remainder_by_mask", lambda g: (e("remainder", g.i, 8), e("bitwise_and", g.i, 7))),
    Case("strength_reduction.rule_11_doubled", lambda g: (e("multiply", 2.0, g.x), e("add", g.x, g.x))),
    Case("strength_reduction.rule_12_sigmoid", lambda g: (logistic(g.x), e("sigmoid", g.x)), loose=True),
    Case("strength_reduction.rule_12_sigmoid", lambda g: (logistic(g.d), e("sigmoid", g.d)), loose=True),
    # fast_math
    Case("fast_math.rule_1_no_special_values", lambda g: (e("multiply", g.x, 0.0), spread(c(0.0), g.n)), fast_math=True),
    Case("fast_math.rule_1_no_special_values", lambda g: (e("subtract", g.x, g.x), spread(c(0.0), g.n)), fast_math=True),
    Case("fast_math.rule_1_no_special_values", lambda g: (e("add", g.x, 0.0), g.x), fast_math=True),
    Case("fast_math.rule_1_no_special_values", lambda g: (e("divide", g.x, g.x), spread(c(1.0), g.n)), fast_math=True),
    Case("fast_math.rule_2_times_reciprocal", lambda g: (e("divide", g.d, 3.0), e("multiply", g.d, 1 / 3)), fast_math=True),
    Case("fast_math.rule_2_times_reciprocal", lambda g: (e("divide", g.a, g.r), e("multiply", g.a, e("reciprocal", g.r))), fast_math=True),
    Case("fast_math.rule_3_constants_together", lambda g: (e("multiply", e("multiply", g.x, 3.0), 5.0), e("multiply", g.x, 15.0)), fast_math=True),
    Case("fast_math.rule_4_common_factor", lambda g: (e("add", e("multiply", g.x, g.y), e("multiply", g.z, g.x)), e("multiply", g.x, e("add", g.y, g.z))), fast_math=True),
    Case("fast_math.rule_4_common_factor", lambda g: (e("subtract", e("divide", g.x, g.z), e("divide", g.y, g.z)), e("divide", e("subtract", g.x, g.y), g.z)), fast_math=True),
    Case("fast_math.rule_5_bare_roots", lambda g: (e("power", g.x, -0.5), e("reciprocal", e("sqrt", g.x))), fast_math=True),
    Case("fast_math.rule_5_bare_roots", lambda g: (e("power", g.x, 1.5), e("multiply", g.x, e("sqrt", g.x))), fast_math=True),
    Case("fast_math.rule_5_bare_roots", lambda g: (e("power", g.x, 1 / 3), e("cbrt", g.x)), fast_math=True),
    Case("fast_math.rule_6_whole_powers", lambda g: (e("power", g.x, -3.0), e("reciprocal", e("multiply", g.x, e("square", g.x)))), fast_math=True),
    Case("fast_math.rule_7_inverse_functions", lambda g: (e("log", exp(g.x)), g.x), fast_math=True),
    # cse
    Case("cse.rule_1_equal_keys", lambda g: (e("divide", exp(g.x), e("add", exp(g.x), g.y)), twice(exp(g.x), lambda v: e("divide", v, e("add", v, g.y))))),
    Case("cse.rule_2_operands_in_order", lambda g: (e("divide", exp(e("multiply", g.x, g.y)), e("multiply", g.y, g.x)), twice(e("multiply", g.x, g.y), lambda v: e("divide", exp(v), v)))),
    Case("cse.rule_3_mirrored", lambda g: (e("where", e("less", g.x, g.y), g.z, cast(e("greater", g.y, g.x), "float32")), twice(e("less", g.x, g.y), lambda v: e("where", v, g.z, cast(v, "float32"))))),
    # canonicalize_chains
    Case("canonicalize_chains.rule_1_flattened", lambda g: (e("subtract", e("add", g.x, g.y), e("add", g.x, g.z)), e("subtract", e("subtract", e("add", g.x, g.y), g.x), g.z)), fast_math=True),
    Case("canonicalize_chains.rule_2_small_first", lambda g: (e("add", e("add", g.i, 1), e("add", g.j, 2)), e("add", e("add", c(3, "int32"), g.i), g.j))),
    Case("canonicalize_chains.rule_2_small_first", lambda g: (e("multiply", e("multiply", e("multiply", g.a, g.r), g.b), g.s), e("multiply", e("multiply", e("multiply", g.s, g.r), g.a), g.b)), fast_math=True),
    Case("canonicalize_chains.rule_3_products_last", lambda g: (e("add", e("add", e("multiply", g.x, g.y), e("square", g.z)), g.x), e("add", e("add", g.x, e("multiply", g.x, g.y)), e("square", g.z))), fast_math=True),
    # view_simplify
    Case("view_simplify.rule_1_view_of_view", lambda g: ((lambda v: (bare_view(v, v), v))(flip(g.x)), (g.x, flip(g.x)))),
    Case("view_simplify.rule_2_reshape_of_reshape", lambda g: (whole(whole(g.a, (g.n * g.m,)), (g.m, g.n)), whole(g.a, (g.m, g.n)))),
    Case("view_simplify.rule_3_reshape_of_ones", lambda g: (whole(g.a, (g.n, g.m)), g.a)),
    Case("view_simplify.rule_3_reshape_of_ones", lambda g: (whole(g.x, (g.n, 1)), builder.expand_dims(g.x, (1,)))),
    Case("view_simplify.rule_4_operands_before_broadcast", lambda g: (e("add", g.a, spread(g.r, g.n, g.m)), e("add", g.a, g.r))),
    Case("view_simplify.rule_5_computed_before_broadcast", lambda g: (exp(spread(g.r, g.n, g.m)), spread(exp(g.r), g.n, g.m))),
    Case("view_simplify.rule_6_concatenations", lambda g: (joined(joined(g.x, g.y), g.z), joined(g.x, g.y, g.z))),
    Case("view_simplify.rule_7_reshape_of_view_with_ones", lambda g: (whole(builder.expand_dims(g.a, (1,)), (g.n * g.m,)), whole(g.a, (g.n * g.m,)))),
    Case("view_simplify.rule_8_reshape_by_merging_all", lambda g: (whole(matmul(g.w, g.a), (g.m, g.n)), builder.view(whole(matmul(g.w, g.a), (g.n * g.m,)), ((0, ((0, g.n), (1, 1))),), (g.m, g.n)))),
    # view_motion
    Case("view_motion.rule_1_view_of_elementwise", lambda g: (builder.transpose(e("add", g.a, g.r)), e("add", builder.transpose(g.a), builder.expand_dims(g.r, (1,))))),
    Case("view_motion.rule_1_view_of_elementwise", lambda g: (flip(exp(flip(cast(g.x, "float64")))), exp(cast(g.x, "float64")))),
    Case("view_motion.rule_2_view_of_cheap", lambda g: twice_read(g, lambda v: part(neg(g.x), 1, g.n - 1), lambda v: neg(part(g.x, 1, g.n - 1)))),
    Case("view_motion.rule_2_view_of_cheap", lambda g: (exp(windows(e("maximum", g.x, 0.0), 2)), exp(e("maximum", windows(g.x, 2), 0.0)))),
    Case("view_motion.rule_3_reshape_of_elementwise", lambda g: (reduced("max", whole(e("multiply", exp(g.a), g.s), (g.n * g.m,)), 0), reduced("max", e("multiply", exp(whole(g.a, (g.n * g.m,))), g.s), 0))),
    # update_forwarding
    Case("update_forwarding.rule_1_update_of_all", lambda g: (update(g.x, g.s, 0, g.n), spread(g.s, g.n))),
    Case("update_forwarding.rule_2_view_of_what_was_written", lambda g: (part(update(g.x, exp(part(g.y, 0, g.n - 2)), 1, g.n - 2), 1, g.n - 2), exp(part(g.y, 0, g.n - 2)))),
    Case("update_forwarding.rule_2_view_of_what_was_written", lambda g: (part(update(g.a, part(g.b, 0, g.n - 1), 1, g.n - 1), 1, 1), part(g.b, 0, 1))),
    Case("update_forwarding.rule_3_view_beside", lambda g: (part(update(g.a, g.s, 1, g.n - 2), g.n - 1, 1), part(g.a, g.n - 1, 1))),
    Case("update_forwarding.rule_4_written_over", lambda g: (update(update(g.x, g.s, 1, 2), part(g.y, 0, 3), 0, 3), update(g.x, part(g.y, 0, 3), 0, 3))),
    Case("update_forwarding.rule_5_written_as_it_is", lambda g: (update(g.x, part(g.x, 1, 3), 1, 3), g.x)),
    Case("update_forwarding.rule_6_update_of_nothing", lambda g: (update(g.x, g.s, 1, 0), g.x)),
    # reduction_simplify
    Case("reduction_simplify.rule_1_axes_of_one", lambda g: (reduced("sum", part(g.a, 0, 1), 0), e("add", builder.view(g.a, ((0, ()), (0, ((0, 1),))), (g.m,)), 0.0))),
    Case("reduction_simplify.rule_1_axes_of_one", lambda g: (reduced("argmax", builder.expand_dims(g.x, (1,)), 1), spread(c(0, "int64"), g.n))),
    Case("reduction_simplify.rule_2_of_dimensions_in_another_order", lambda g: (reduced("max", builder.transpose(g.a), 0), reduced("max", g.a, 1))),
    Case("reduction_simplify.rule_3_of_reduction", lambda g: (reduced("max", reduced("max", g.a, 1), 0), reduced("max", g.a, 0, 1))),
    Case("reduction_simplify.rule_4_of_broadcast", lambda g: (reduced("min", spread(g.r, g.n, g.m), 0), g.r)),
    Case("reduction_simplify.rule_4_of_broadcast", lambda g: (reduced("sum", spread(reduced("sum", g.t, 0), g.n, g.m), 0), e("multiply", reduced("sum", g.t, 0), builder.extent(g.n)))),
    Case("reduction_simplify.rule_5_before_cast", lambda g: (reduced("max", cast(g.x, "float64"), 0), cast(reduced("max", g.x, 0), "float64"))),
    Case("reduction_simplify.rule_6_factor_of_sum", lambda g: (reduced("sum", e("multiply", g.t, 3), 1), e("multiply", reduced("sum", g.t, 1), 3))),
    Case("reduction_simplify.rule_7_of_inverted_truths", lambda g: (reduced("any", e("logical_not", g.p), 0), e("logical_not", reduced("all", g.p, 0)))),
    Case("select_simplify.rule_1_choice_that_is_known", lambda g: (e("where", g.p, c(True, "bool"), c(True, "bool")), spread(c(True, "bool"), g.n))),
    Case("select_simplify.rule_10_cast_of_cast", lambda g: (cast(cast(g.i, "float64"), "float32"), cast(g.i, "float32"))),
    Case("fast_math.rule_5_bare_roots", lambda g: (e("power", g.x, -1 / 3), e("reciprocal", e("cbrt", g.x))), fast_math=True),
    Case("fast_math.rule_6_whole_powers", lambda g: (e("power", g.x, 6.0), twice(e("square", g.x), lambda v: e("multiply", v, e("square", v)))), fast_math=True),
    Case("view_simplify.rule_6_concatenations", lambda g: (joined(g.x), g.x)),
    Case("view_motion.rule_1_view_of_elementwise", lambda g: (matmul(part(e("add", g.w, g.s), 0, 2), g.w), matmul(e("add", part(g.w, 0, 2), g.s), g.w))),
    Case("view_motion.rule_3_reshape_of_elementwise", lambda g: (exp(whole(exp(update(g.w, g.s, 1, 2)), (g.n * g.n,))), exp(exp(whole(update(g.w, g.s, 1, 2), (g.n * g.n,)))))),
    Case("update_forwarding.rule_2_view_of_what_was_written", lambda g: (flip(part(update(g.x, part(g.y, 0, 4), 1, 4), 2, 2)), builder.view(g.y, ((2, ((0, -1),)),), (2,)))),
    Case("update_forwarding.rule_2_view_of_what_was_written", lambda g: (every_other(update_of(g.x, part(g.y, 0, 2), every_other(g.x, 0, 2)), 0, 2), part(g.y, 0, 2))),
    Case("update_forwarding.rule_2_view_of_what_was_written", lambda g: (column(update_of(g.a, g.x, column(g.a, 1)), 1), g.x)),
    Case("update_forwarding.rule_2_view_of_what_was_written", lambda g: (columns(update_of(g.a, g.x, column(g.a, 1)), 1, 1), builder.expand_dims(g.x, (1,)))),
    Case("update_forwarding.rule_3_view_beside", lambda g: (every_other(update_of(g.x, g.s, every_other(g.x, 0, 2)), 1, 2), every_other(g.x, 1, 2))),
    Case("update_forwarding.rule_3_view_beside", lambda g: (column(update_of(g.a, g.x, column(g.a, 1)), 2), column(g.a, 2))),
    Case("update_forwarding.rule_3_view_beside", lambda g: (column(update_of(g.a, g.x, column(g.a, 2)), 1), column(g.a, 1))),
    Case("update_forwarding.rule_4_written_over", lambda g: (update_of(update_of(g.x, g.s, every_other(g.x, 0, 2)), part(g.y, 0, 2), every_other(g.x, 0, 2)), update_of(g.x, part(g.y, 0, 2), every_other(g.x, 0, 2)))),
    Case("reduction_simplify.rule_1_axes_of_one", lambda g: (reduced("max", part(g.w, 0, 1), 0, 1), reduced("max", builder.squeeze(part(g.w, 0, 1), (0,)), 0))),
    Case("reduction_simplify.rule_1_axes_of_one", lambda g: (reduced("sum", part(g.t, 0, 1), 0), builder.squeeze(part(g.t, 0, 1), (0,)))),
    Case("reduction_simplify.rule_2_of_dimensions_in_another_order", lambda g: (reduced("argmax", builder.transpose(g.a), 1), reduced("argmax", g.a, 0))),
    Case("reduction_simplify.rule_3_of_reduction", lambda g: (reduced("any", reduced("any", g.a, 1), 0), reduced("any", g.a, 0, 1))),
    Case("reduction_simplify.rule_4_of_broadcast", lambda g: (reduced("sum", spread(g.r, g.n, g.m), 0), e("multiply", g.r, builder.extent(g.n, "float32"))), fast_math=True),
    Case("reduction_simplify.rule_5_before_cast", lambda g: (reduced("any", cast(g.x, "float64"), 0), reduced("any", g.x, 0))),
    Case("reduction_simplify.rule_6_factor_of_sum", lambda g: (reduced("sum", e("multiply", g.a, 3.0), 1), e("multiply", reduced("sum", g.a, 1), 3.0)), fast_math=True),
    Case("reduction_simplify.rule_7_of_inverted_truths", lambda g: (reduced("all", e("logical_not", g.x), 0), e("logical_not", reduced("any", g.x, 0)))),
    Case("view_motion.rule_3_reshape_of_elementwise", lambda g: (exp(whole(exp(matmul(g.w, builder.transpose(g.w))), (g.n * g.n,))), exp(exp(whole(matmul(g.w, builder.transpose(g.w)), (g.n * g.n,)))))),
    Case("reduction_simplify.rule_1_axes_of_one", lambda g: (reduced("sum", part(g.w, 0, 1), 0, 1), reduced("sum", builder.squeeze(part(g.w, 0, 1), (0,)), 0))),
    Case("reduction_simplify.rule_5_before_cast", lambda g: (reduced("any", cast(g.p, "int32"), 0), reduced("any", g.p, 0))),
    Case("reduction_simplify.rule_7_of_inverted_truths", lambda g: (reduced("any", e("invert", g.p), 0), e("logical_not", reduced("all", g.p, 0)))),
    Case("update_forwarding.rule_3_view_beside", lambda g: (steps(update_of(g.x, g.s, every_other(g.x, 0, 2)), 4), steps(g.x, 4))),
    # writeback_simplify
    Case("writeback_simplify.rule_1_argument_written_to_itself", lambda g: (Graph(tuple(g.inputs), (g.x,), ((g.x, g.x), (g.y, g.x))), Graph(tuple(g.inputs), (g.x,), ((g.y, g.x),)))),
]  # fmt: skip


def twice(node: Node, make: Callable[[Node], Node]) -> Node:
    """Return an expression that reads one node several times."""
    return make(node)


def twice_read(given: Given, before: Callable[[Any], Node], after: Callable[[Any], Node]) -> tuple[Roots, Roots]:
    negated = neg(given.x)
    shown = part(negated, 1, given.n - 1)
    return (exp(shown), negated), (exp(after(given)), negated)


def bare_view(view: Node, like: Node) -> Node:
    """Return a view of a view that is not yet one view."""
    return Node("view", (view,), view.dtype, view.shape, {"map": like.options["map"]})


def joined(*nodes: Node) -> Node:
    count: Any = sum((node.shape[0] for node in nodes[1:]), nodes[0].shape[0])
    return Node("concatenate", nodes, nodes[0].dtype, (count, *nodes[0].shape[1:]), {"axis": 0})


def update_of(node: Node, value: Node, region: Node) -> Node:
    """Return an update of the region of a view."""
    options = {"map": region.options["map"], "extents": region.shape}
    return Node("update", (node, value), node.dtype, node.shape, options)


def every_other(node: Node, start: Any, count: Any) -> Node:
    return builder.view(node, ((start, ((0, 2),)),), (count,))


def column(node: Node, i: Any) -> Node:
    return builder.view(node, ((0, ((0, 1),)), (i, ())), node.shape[:1])


def columns(node: Node, start: Any, count: Any) -> Node:
    return builder.view(node, ((0, ((0, 1),)), (start, ((1, 1),))), (node.shape[0], count))


def diagonal(node: Node) -> Node:
    return builder.view(node, ((0, ((0, 1),)), (0, ((0, 1),))), node.shape[:1])


def again(node: Node) -> Node:
    """Return one element three times."""
    return builder.view(node, ((1, ()),), (3,))


def in_place(node: Node) -> Node:
    """Return the same node through steps of zero."""
    return builder.view(node, ((1, ((0, 0),)),), (3,))


def steps(node: Node, step: Any) -> Node:
    """Return two elements at a distance of one step."""
    return builder.view(node, ((1, ((0, step),)),), (2,))


def row(node: Node, i: Any) -> Node:
    return builder.view(node, ((i, ()), (0, ((0, 1),))), node.shape[1:])


def matmul(first: Node, second: Node) -> Node:
    return Node("matmul", (first, second), first.dtype, (*first.shape[:-1], second.shape[-1]))


def also(node: Node, *others: Callable[[Node], Node]) -> tuple[Node, ...]:
    """Return a node as a second result."""
    return (node, *(make(node) for make in others))
