"""Whether a candidate computes what the reference does, as far as the tuner looks."""

from collections.abc import Sequence

import numpy as np

from jitkernels import accuracy
from jitkernels.attrs.base import KernelAttr
from jitkernels.signature import AnyArray

MOST_COMPARED = 1 << 17
"""Elements of an output beyond which evenly chosen ones are compared: comparing takes longer than computing."""


def first_difference(
    attr: KernelAttr,
    given: Sequence[AnyArray],
    expected: Sequence[AnyArray],
    got: Sequence[AnyArray],
    terms: Sequence[AnyArray],
) -> str | None:
    """What is wrong with the arrays after a call: an input that changed, an output that is not the reference's.

    `terms` are those that `accuracy.terms` finds in what was given.
    """
    sums = iter(terms)
    for parameter, before, right, value in zip(attr.signature().arrays, given, expected, got, strict=True):
        if not parameter.output:
            if not np.array_equal(value, before):
                return f"it wrote to {parameter.name}, which is an input"
            continue
        step = max(1, value.size // MOST_COMPARED) | 1  # odd, so that it meets every column
        held = parameter.numbers(value), parameter.numbers(right), next(sums)
        some, other, of = (array.reshape(-1)[::-step] for array in held)
        # Both sides may be off by the tolerance, in opposite directions.
        off = accuracy.beyond(some, other, accuracy.distance(attr.tolerance(), parameter.dtype, other, of, 2))
        if off.any():
            flat = value.size - 1 - step * int(np.flatnonzero(off)[-1])
            at = tuple(int(i) for i in np.unravel_index(flat, value.shape))
            return f"{parameter.name}{list(at)} is {value[at]!r}, the reference gives {right[at]!r}"
    return None
