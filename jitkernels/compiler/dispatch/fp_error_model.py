"""Floating-point error model: the errors each operation may raise in NumPy and in compiled code."""

from collections.abc import Collection, Iterable

import numpy as np

from jitkernels.compiler.codegen.core.fp_special_guards import is_guarded
from jitkernels.compiler.ir.elementwise_ops import SCALARS
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.ir.ops import keeps_fp_flags_exact

WORDS = {"divide": "divide by zero", "over": "overflow", "invalid": "invalid value"}
ARITHMETIC = frozenset(
    {
        "input", "constant", "extent", "view", "reshape", "update", "add", "subtract", "multiply", "divide", "square",
        "reciprocal", "sqrt", "negative", "positive", "absolute", "fabs", "copysign",
    }
)  # fmt: skip
"""Float operations that are single instructions, with NumPy's errors; and operations that compute nothing."""
SILENT = frozenset(
    {
        "floor", "ceil", "trunc", "rint", "signbit", "heaviside", "equal", "not_equal", "isnan", "isinf",
        "isfinite", "where", "logical_and", "logical_or", "logical_xor", "logical_not",
    }
)  # fmt: skip
"""Operations that neither fail nor raise flags."""
MOVING_OPERATIONS = frozenset({"concatenate", "gather", "iota", "item", "placed", "scatter"})
"""Operations that only move data."""
FAULTY = {"remainder": tuple(WORDS), "fmod": tuple(WORDS)}
"""Spurious kinds of errors of guarded functions, where these are not ``invalid`` and ``over``."""
POLES = frozenset({"divide", "reciprocal", "floor_divide", "power", "log", "log2", "log10", "log1p", "arctanh"})
"""Operations that divide by zero."""
OVERFLOWING = frozenset(
    {
        "add", "subtract", "multiply", "divide", "square", "reciprocal", "cast", "floor_divide", "power", "exp", "exp2",
        "expm1", "sinh", "cosh", "hypot", "logaddexp", "logaddexp2",
    }
)  # fmt: skip
"""Float operations whose results may overflow."""
SAFE = frozenset(
    {
        "input", "constant", "extent", "view", "reshape", "update", "negative", "positive", "absolute", "fabs",
        "copysign", "sign", "less", "less_equal", "greater", "greater_equal", "maximum", "minimum", "fmax", "fmin",
    }
)  # fmt: skip
"""Operations that never fail in NumPy, besides the silent ones."""
NAMED = frozenset({*(name for name, scalar in SCALARS.items() if isinstance(scalar.numpy, np.ufunc)), "cast"})
"""Operations whose names appear in NumPy's warnings."""


def unsure(graph: Graph | None, *, watched: bool, partial: Iterable[str] = ()) -> Collection[str]:
    """The kinds of errors whose flags the code of a graph may raise where nothing fails in NumPy.

    `watched`: the code overwrites arguments, and guards its functions at special values. `partial`: operations that the
    code runs on all elements, and NumPy on those under a mask.
    """
    if graph is None or (not watched and not any(map(keeps_fp_flags_exact, graph))):
        return WORDS
    kinds = {kind for operation in partial for kind in kinds_of(operation)}
    of_sums: set[int] = set()
    for node in graph:
        kinds.update(_unsure(node, watched=watched))
        if node.operation == "reduce" or any(id(operand) in of_sums for operand in node.inputs):
            of_sums.add(id(node))
        if node.operation == "divide" and id(node.inputs[1]) in of_sums:
            return WORDS  # the code multiplies by the reciprocal, which may overflow where the quotient does not
    return kinds


def _unsure(node: Node, *, watched: bool) -> Collection[str]:
    """The kinds for one node."""
    kinds, operation = tuple(operand.dtype for operand in node.inputs), node.operation
    if "float16" in (*kinds, node.dtype):
        return WORDS  # float16 conversions compare, which raises flags
    if operation in ARITHMETIC or operation in SILENT or operation in MOVING_OPERATIONS:
        return ()
    if operation == "cast":
        return () if node.dtype in ("float32", "float64") else WORDS
    if operation in ("reduce", "scan"):
        # Compensated sums have NaN terms for infinities, extremes compare NaN, and products use another order.
        return ("invalid", "over") if node.options["kind"] == "prod" else ("invalid",)
    if is_guarded(operation, kinds):
        return () if watched else FAULTY.get(operation, ("invalid", "over"))
    return WORDS


def kinds_of(operation: str) -> Iterable[str]:
    """The kinds of errors that an operation may have in NumPy."""
    if operation in SAFE or operation in SILENT or operation in MOVING_OPERATIONS:
        return ()
    others = [kind for kind, known in (("divide", POLES), ("over", OVERFLOWING)) if operation in known]
    return ("invalid", *others) if operation in NAMED else ("invalid", "divide", "over")


def operations_by_kind(graph: Iterable[Node]) -> dict[str, str]:
    """The operation that NumPy would name for each kind of errors, where only one operation can raise it."""
    failing: dict[str, set[str]] = {"divide": set(), "over": set(), "invalid": set()}
    for node in graph:
        for kind in kinds_of(node.operation):
            failing[kind].add(node.operation)
    return {
        kind: min(operations) for kind, operations in failing.items() if len(operations) == 1 and operations <= NAMED
    }
