"""Which operations may fail how, in NumPy and in compiled code: what can be told where NumPy cannot be asked."""

from collections.abc import Collection, Iterable

import numpy as np

from jitkernels.graph.cones import is_delicate
from jitkernels.graph.emit.watched import is_watched
from jitkernels.graph.ir import Graph, Node
from jitkernels.graph.scalars import SCALARS

WORDS = {"divide": "divide by zero", "over": "overflow", "invalid": "invalid value"}
ARITHMETIC = frozenset(
    {
        "input", "constant", "extent", "view", "reshape", "update", "add", "subtract", "multiply", "divide", "square",
        "reciprocal", "sqrt", "negative", "positive", "absolute", "fabs", "copysign",
    }
)  # fmt: skip
"""Operations of floats that are the processor's own, which fail where NumPy's do; and those that compute nothing."""
SILENT = frozenset(
    {
        "floor", "ceil", "trunc", "rint", "signbit", "heaviside", "equal", "not_equal", "isnan", "isinf",
        "isfinite", "where", "logical_and", "logical_or", "logical_xor", "logical_not",
    }
)  # fmt: skip
"""Operations that neither fail nor set flags."""
MOVING = frozenset({"concatenate", "gather", "iota", "item", "placed", "scatter"})
"""Operations that do nothing to numbers."""
FAULTY = {"remainder": tuple(WORDS), "fmod": tuple(WORDS)}
"""Kinds that functions which are not watched may tell in vain, where these are not ``invalid`` and ``over``."""
POLES = frozenset(
    {"divide", "reciprocal", "floor_divide", "power", "log", "log2", "log10", "log1p", "arctanh"}
)
"""Operations that divide by zero."""
OVERFLOWING = frozenset(
    {
        "add", "subtract", "multiply", "divide", "square", "reciprocal", "cast", "floor_divide", "power", "exp", "exp2",
        "expm1", "sinh", "cosh", "hypot", "logaddexp", "logaddexp2",
    }
)  # fmt: skip
"""Operations of floats whose results may be too large."""
SAFE = frozenset(
    {
        "input", "constant", "extent", "view", "reshape", "update", "negative", "positive", "absolute", "fabs",
        "copysign", "sign", "less", "less_equal", "greater", "greater_equal", "maximum", "minimum", "fmax", "fmin",
    }
)  # fmt: skip
"""Operations that never fail in NumPy, beside silent ones."""
NAMED = frozenset({*(name for name, scalar in SCALARS.items() if isinstance(scalar.numpy, np.ufunc)), "cast"})
"""Operations that have the names by which NumPy warns."""


def unsure(graph: Graph | None, *, watched: bool, partial: Iterable[str] = ()) -> Collection[str]:
    """The kinds of errors for which flags may be set by code of a graph where nothing fails in NumPy.

    `watched`: it is code that overwrites arguments, whose functions are watched. `partial`: operations that are done
    for all elements, and in NumPy for those that a mask chooses.
    """
    if graph is None or (not watched and not any(map(is_delicate, graph))):
        return WORDS
    found = {kind for operation in partial for kind in kinds_of(operation)}
    of_sums: set[int] = set()
    for node in graph:
        found.update(_unsure(node, watched=watched))
        if node.operation == "reduce" or any(id(one) in of_sums for one in node.inputs):
            of_sums.add(id(node))
        if node.operation == "divide" and id(node.inputs[1]) in of_sums:
            return WORDS  # it takes the reciprocal, which a sum need not have
    return found


def _unsure(node: Node, *, watched: bool) -> Collection[str]:
    """The kinds for one node."""
    kinds, operation = tuple(one.dtype for one in node.inputs), node.operation
    if "float16" in (*kinds, node.dtype):
        return WORDS  # which takes comparisons
    if operation in ARITHMETIC or operation in SILENT or operation in MOVING:
        return ()
    if operation == "cast":
        return () if node.dtype in ("float32", "float64") else WORDS
    if operation in ("reduce", "scan"):
        # What sums keep beside them is NaN for infinities, as extremes compare NaN; products go in another order.
        return ("invalid", "over") if node.options["kind"] == "prod" else ("invalid",)
    if is_watched(operation, kinds):
        return () if watched else FAULTY.get(operation, ("invalid", "over"))
    return WORDS


def kinds_of(operation: str) -> Iterable[str]:
    """The kinds of errors that an operation may have in NumPy."""
    if operation in SAFE or operation in SILENT or operation in MOVING:
        return ()
    others = [kind for kind, known in (("divide", POLES), ("over", OVERFLOWING)) if operation in known]
    return ("invalid", *others) if operation in NAMED else ("invalid", "divide", "over")


def names(graph: Iterable[Node]) -> dict[str, str]:
    """The operation that NumPy would name for each kind of errors, where there is only one that may fail so."""
    failing: dict[str, set[str]] = {"divide": set(), "over": set(), "invalid": set()}
    for node in graph:
        for kind in kinds_of(node.operation):
            failing[kind].add(node.operation)
    return {kind: min(found) for kind, found in failing.items() if len(found) == 1 and found <= NAMED}
