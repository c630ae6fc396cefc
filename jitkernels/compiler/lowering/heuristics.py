"""How a nest is made where nothing was measured: guesses from its operations, and from the call that was traced."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from jitkernels.graph import cones, extents
from jitkernels.graph.construct import IndexMap
from jitkernels.graph.emit.memory import Array, is_near
from jitkernels.graph.ir import Node
from jitkernels.graph.nests import Nest
from jitkernels.graph.pieces import BY_NUMBERS

STREAM_BYTES = 1 << 24
"""Results of this size go past the caches: few machines keep them and what they are made of."""
LONG_ROWS = 128
"""Columns from which on it counts little what is done once for a row."""
SHORT_BYTES = 512
"""What steps of four vectors leave of a row of less takes as long as what they do of it."""
CALCULATING = 12
"""Additions for each column, from which on two vectors at once keep the processor as busy as four."""
REGISTERS = 16
"""Vectors that a step may read and write: as many again are computed with, and processors have 32."""
LONG = frozenset({
    "log", "log2", "log10", "log1p", "cbrt", "sinh", "arcsinh", "arccosh", "arctan2", "tan", "arcsin", "arccos",
    "arctan", "hypot", "fmod", "remainder",
})  # fmt: skip
"""Functions of which two vectors at once keep the processor busy: four run no faster, and take LLVM twice as long."""
LONG_IN = {
    "float32": LONG | {"sin", "cos", "power", "exp", "expm1"},
    "float64": LONG | {"arctanh", "floor_divide"},
}
"""Those of which that holds in one precision alone are there too."""


def stream(nest: Nest) -> int:
    """From how many bytes of the result on it pays to write past the caches: never, where computing takes longer."""
    return STREAM_BYTES if nest.cost < 24 else 0


def is_stencil(nest: Nest) -> bool:
    """Whether an array is read at several places for one of results, most of which no line of the cache begins at."""
    return not any(cone.reductions for cone in nest.cones) and any(
        cone.leaves[key].shape and _are_near([*places.values()])
        for cone in nest.cones
        for key, places in cone.places.items()
        if key in cone.leaves
    )


def _are_near(places: Sequence[IndexMap]) -> bool:
    """Whether two of the places begin a number of elements apart, not whole parts or rows of an array."""
    return any(_is_near(one, other) for one, other in combinations(places, 2))


def _is_near(one: IndexMap, other: IndexMap) -> bool:
    pairs = [*zip(one, other, strict=True)]
    if any(isinstance(a - b, extents.Extent) for (a, _), (b, _) in pairs):
        return False
    return any(bool(steps or others) for (a, steps), (b, others) in pairs if steps != others or a - b)


def unroll(nest: Nest, arrays: Mapping[int, Array]) -> int:
    """How many vectors a step takes."""
    if any(cones.adds(store.cone.root) for store in nest.stores):
        return 1  # lanes take their turns
    is_long = bool(nest.rows) and extents.value_of(extents.product(nest.columns)) >= LONG_ROWS
    cost = nest.cost_of_columns if is_long else nest.cost
    reduces = any(cone.reductions for cone in nest.cones)
    is_short = reduces and nest.row_now * nest.widest < SHORT_BYTES
    most = 4
    # Code for a single row serves all lengths, also those of large arrays, of which steps of two would make less.
    if is_short and (nest.rows or nest.cost_of_columns >= CALCULATING):
        most = 2
    if not nest.rows and any(map(_is_long, nest.nodes)):
        most = 2
    most = most if cost < 24 else 2 if cost < 60 else 1
    moved = 0 if reduces else _moved(nest, arrays)
    while most > 1 and most * moved > REGISTERS:
        most //= 2
    return most


def _moved(nest: Nest, arrays: Mapping[int, Array]) -> int:
    """Vectors that are read and written for one of results: several for lanes that are near but not side by side."""
    read: dict[Any, int] = {}
    written = 0
    for store in nest.stores:
        if store.region != BY_NUMBERS:
            own = store.region or cones.identity(store.cone.root.ndim)
            written += _vectors(arrays[id(store.target)], own)
        for key, leaf in store.cone.leaves.items():
            for name, place in store.cone.places[key].items() if leaf.shape and key in arrays else ():
                read[key, name] = _vectors(arrays[key], place)
    return written + sum(read.values())


def _vectors(array: Array, place: IndexMap) -> int:
    apart = [
        step * stride for stride, (_, moves) in zip(array.strides, place, strict=True) for _, step in moves
    ]
    return min((abs(int(one)) for one in apart if is_near(one)), default=1)


def _is_long(node: Node) -> bool:
    return node.operation in LONG_IN.get(node.dtype, LONG)
