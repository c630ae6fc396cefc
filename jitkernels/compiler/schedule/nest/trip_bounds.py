"""Bounds of trip counts that guards imply: what code need not test, and how much it has to allow for."""

from jitkernels.compiler.ir import dim_proofs, symbolic_dims
from jitkernels.compiler.ir.symbolic_dims import Extent, Number


def least_steps(extent: Number) -> int:
    """The least trip count that guards imply."""
    if not isinstance(extent, Extent):
        return int(extent)
    result = symbolic_dims.least_of(extent) or 0
    for guard in extent.scope.guards.values():
        difference = dim_proofs.constant_sum(extent, guard.extent, -1)
        if guard.sign in (">", ">=") and difference is not None:
            result = max(result, difference + (guard.sign == ">"))
    return result


def most_steps(extent: Number) -> int | None:
    """The largest trip count that guards imply; None if they do not bound it."""
    if not isinstance(extent, Extent):
        return int(extent)
    bounds = []
    for guard in extent.scope.guards.values():
        total = dim_proofs.constant_sum(extent, guard.extent)
        if guard.sign in (">", ">=", "==") and total is not None:
            bounds.append(total - (guard.sign == ">"))
        difference = dim_proofs.constant_sum(extent, guard.extent, -1)
        if guard.sign == "==" and difference is not None:
            bounds.append(difference)
    return min(bounds, default=None)
