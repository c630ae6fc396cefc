"""The tuner's check of a candidate's results against the reference."""

from collections.abc import Sequence

import numpy as np

from jitkernels.attrs.schema import error_bounds
from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.signature import AnyArray

MAX_COMPARED = 1 << 17
"""Elements of an output beyond which evenly spaced samples are compared: comparing takes longer than computing."""


def first_difference(
    attr: KernelAttr,
    before: Sequence[AnyArray],
    expected: Sequence[AnyArray],
    got: Sequence[AnyArray],
    terms: Sequence[AnyArray],
) -> str | None:
    """The first error in the arrays after a call: an input that changed, an output that differs from the reference.

    `terms` are the `error_bounds.terms` of the arrays `before` the call.
    """
    term_sums = iter(terms)
    for parameter, original, reference, array in zip(attr.signature().arrays, before, expected, got, strict=True):
        if not parameter.output:
            if not np.array_equal(array, original):
                return f"it wrote to {parameter.name}, which is an input"
            continue
        step = max(1, array.size // MAX_COMPARED) | 1  # odd, so that it meets every column
        values = parameter.numbers(array), parameter.numbers(reference), next(term_sums)
        actual, other, sums = (flattened.reshape(-1)[::-step] for flattened in values)
        # Both sides may be off by the tolerance, in opposite directions.
        off = error_bounds.beyond(
            actual, other, error_bounds.distance(attr.tolerance(), parameter.dtype, other, sums, 2)
        )
        if off.any():
            flat = array.size - 1 - step * int(np.flatnonzero(off)[-1])
            at = tuple(int(i) for i in np.unravel_index(flat, array.shape))
            return f"{parameter.name}{list(at)} is {array[at]!r}, the reference gives {reference[at]!r}"
    return None
