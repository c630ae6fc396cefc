"""Loop directions for in-place updates: `a[1:] -= a[:-1]` runs backwards.

An element that is read at a distance from the stored one must not be overwritten before. Where in every loop all such
dependence distances have one sign, the loop runs in that direction, and no copy is made. Lanes are loaded before any
of them is stored. Loops with a direction are sequential: they run whole.
"""

from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.dim_bounds import traced_product
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import Number, same
from jitkernels.compiler.schedule.fusion_region import FusionRegion
from jitkernels.runtime.threads.num_threads import get_num_threads

FEW_THREADS = 2
"""More threads take less time with a copy than one does without it."""
MIN_SHARED_LOOP_ELEMENTS = 1 << 16
"""The least elements for which several threads would share a loop, about."""

Directions = dict[int, int]
"""By dimension of an output: 1 where its loop must run forwards, -1 where backwards."""


def directions_of(region: FusionRegion, target_map: IndexMap, read: list[Node]) -> Directions | None:
    """Return loop directions for an output stored at the access map `target_map` of an array that `read` leaves alias.

    None if there are none, or if they would cost more than a copy.
    """
    if region.reductions or any(node.operation in ("scan", "placed") for node in region.nodes):
        return None
    size = traced_product(region.root.shape)
    if size >= MIN_SHARED_LOOP_ELEMENTS and get_num_threads() > FEW_THREADS:
        return None
    result: Directions = {}
    for leaf in read:
        for access_map in region.access_maps[leaf].values():
            distances = _dependence_distances(access_map, target_map, region.root.ndim)
            if distances is None:
                return None
            for loop, distance in distances.items():
                if result.setdefault(loop, distance) * distance < 0:
                    return None
    return {loop: 1 if distance > 0 else -1 for loop, distance in result.items()}


def _dependence_distances(access_map: IndexMap, target_map: IndexMap, ndim: int) -> dict[int, int] | None:
    """The dependence distance of each loop, from a load at an access map to a store; None if not constant.

    Both must depend on every loop by the same coefficients, each dimension on one loop.
    """
    result: dict[int, int] = {}
    loops: set[int] = set()
    for (read, moves), (written, terms) in zip(access_map, target_map, strict=True):
        offset = read - written
        if not terms and not moves:
            if isinstance(offset, symbolic_dims.Extent):
                return None
            if offset:
                return {}  # disjoint elements
            continue
        if len(terms) != 1 or len(moves) != 1:
            return None
        (loop, coefficient), (other, move) = *terms, *moves
        if loop != other or not same(coefficient, move) or loop in loops or not 0 <= loop < ndim:
            return None
        loops.add(loop)
        distance = _iterations(offset, coefficient)
        if distance is None:
            return None
        if distance:
            result[loop] = distance
    return result if len(loops) == ndim else None


def _iterations(offset: Number, coefficient: Number) -> int | None:
    """A distance in iterations; None if it is unknown or no multiple of the coefficient."""
    if isinstance(coefficient, symbolic_dims.Extent) or not coefficient:
        return None
    if isinstance(offset, symbolic_dims.Extent):
        return 0 if same(offset, 0) else None
    return None if offset % coefficient else offset // coefficient
