"""In which direction loops have to go where a nest writes over what it reads: `a[1:] -= a[:-1]` from the end on.

An element that is read at some distance of the one that is written must not be written before. Where in every loop
all such distances have one sign, that loop goes towards them, and nothing is kept apart. Steps of a loop that are lanes
are read before any of them is written. What runs in parts at once has no direction: loops that have one run whole.
"""

from jitkernels.graph import extents
from jitkernels.graph.cones import Cone
from jitkernels.graph.construct import IndexMap
from jitkernels.graph.extents import Number, same
from jitkernels.native.threads import get_num_threads

FEW_THREADS = 2
"""More of them take less time to write and read a copy together than one does without it."""
LARGE = 1 << 16
"""Elements from which on several threads would share a loop, about."""

Directions = dict[int, int]
"""For dimensions of a root: 1 where its loop has to go forwards, -1 where backwards."""


def directions_of(cone: Cone, region: IndexMap, read: list[int]) -> Directions | None:
    """Directions for what is stored in a region of an array, of which leaves with these ids are read.

    None where there are none, or where they would cost more than they save.
    """
    if cone.reductions or any(node.operation in ("scan", "placed") for node in cone.nodes):
        return None
    size = extents.value_of(extents.product(cone.root.shape))
    if size >= LARGE and get_num_threads() > FEW_THREADS:
        return None
    found: Directions = {}
    for key in read:
        for place in cone.places[key].values():
            distances = _distances(place, region, cone.root.ndim)
            if distances is None:
                return None
            for loop, distance in distances.items():
                if found.setdefault(loop, distance) * distance < 0:
                    return None
    return {loop: 1 if distance > 0 else -1 for loop, distance in found.items()}


def _distances(place: IndexMap, region: IndexMap, ndim: int) -> dict[int, int] | None:
    """How many steps of each loop later what is read at a place is written, if that is the same in all steps.

    Where both go along every loop by the same steps, each dimension along one of its own.
    """
    found: dict[int, int] = {}
    loops: set[int] = set()
    for (read, moves), (written, steps) in zip(place, region, strict=True):
        apart = read - written
        if not steps and not moves:
            if isinstance(apart, extents.Extent):
                return None
            if apart:
                return {}  # other elements altogether
            continue
        if len(steps) != 1 or len(moves) != 1:
            return None
        (loop, step), (other, move) = *steps, *moves
        if loop != other or not same(step, move) or loop in loops or not 0 <= loop < ndim:
            return None
        loops.add(loop)
        distance = _whole(apart, step)
        if distance is None:
            return None
        if distance:
            found[loop] = distance
    return found if len(loops) == ndim else None


def _whole(apart: Number, step: Number) -> int | None:
    """A distance in steps; None where it is not known, or not a number of them."""
    if isinstance(step, extents.Extent) or not step:
        return None
    if isinstance(apart, extents.Extent):
        return 0 if same(apart, 0) else None
    return None if apart % step else apart // step
