"""What is measured on behalf of a tuning class: one member of it, and none where there is nothing to measure."""

import dataclasses
import math

from jitkernels.attrs.base import KernelAttr
from jitkernels.errors import AttrError

MOST_MEASURED = 1 << 28
"""Bytes of arrays beyond which only who asks for it measures: drawing and checking take longer than timing."""
EXACT = 8
"""Extents up to this are classes of their own, or nearly: they are measured as they are."""


def nbytes(attr: KernelAttr) -> int:
    """Bytes of all arrays of a call."""
    return sum(array.nbytes for array in attr.signature().arrays)


def has_elements(attr: KernelAttr) -> bool:
    """Whether a call has anything to do: some array of no elements means that it has (almost) nothing."""
    return all(math.prod(array.shape) > 0 for array in attr.signature().arrays)


def measured_member(attr: KernelAttr) -> KernelAttr:
    """The member of an attr's tuning class that is measured on behalf of all.

    A power of two is a special size: aligned, without tails, and with rows that compete for the same cache
    sets. So extents are taken at five eighths of it and one more, in the lower half of the class as most sizes
    are. Rows whose fields do not allow that are measured at the class itself.
    """
    of_class = attr.tuning_class()
    extents = {
        name: 5 * value // 8 + 1
        for name, value in of_class.fields().items()
        if type(value) is int and value > EXACT
    }
    try:
        member = dataclasses.replace(of_class, **extents)  # type: ignore[type-var]  # subclasses are dataclasses
    except AttrError:
        return of_class
    return member if member.tuning_class() == of_class else of_class
