"""How a nest is made where nothing was measured: guesses from its operations, and from the call that was traced."""

import numpy as np

from jitkernels.graph import extents
from jitkernels.graph.schedule import Nest

STREAM_BYTES = 1 << 24
"""Results of this size go past the caches: few machines keep them and what they are made of."""
LONG_ROWS = 128
"""Columns from which on it counts little what is done once for a row."""
SHORT_BYTES = 512
"""What steps of four vectors leave of a row of less takes as long as what they do of it."""
CALCULATING = 12
"""Additions for each column, from which on two vectors at once keep the processor as busy as four."""


def stream(nest: Nest) -> int:
    """From how many bytes of the result on it pays to write past the caches: never, where computing takes longer."""
    return STREAM_BYTES if nest.cost < 24 else 0


def unroll(nest: Nest) -> int:
    """How many vectors a step takes."""
    is_long = bool(nest.rows) and extents.value_of(extents.product(nest.columns)) >= LONG_ROWS
    cost = nest.cost_of_columns if is_long else nest.cost
    most = 4
    # Code for a single row serves all lengths, also those of large arrays, of which steps of two would make less.
    if _is_short(nest) and (nest.rows or nest.cost_of_columns >= CALCULATING):
        most = 2
    return most if cost < 24 else 2 if cost < 60 else 1


def _is_short(nest: Nest) -> bool:
    """Whether rows that are reduced are short."""
    reduced = [
        extents.product(node.inputs[0].shape[axis] for axis in node.options["axes"])
        for cone in nest.cones
        for node in cone.reductions
    ]
    if not reduced:
        return False
    longest = max(map(extents.value_of, [extents.product(nest.columns), *reduced]))
    kept = (node for cone in nest.cones for node in (cone.root, *cone.leaves.values()))
    return longest * max(np.dtype(node.dtype).itemsize for node in kept) < SHORT_BYTES
