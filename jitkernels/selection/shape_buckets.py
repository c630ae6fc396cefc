"""What is measured on behalf of a tuning class: one member of it, and none where there is nothing to measure."""

import dataclasses
import functools
import math
from collections.abc import Callable

from jitkernels.attrs.base import KernelAttr
from jitkernels.errors import AttrError

MOST_MEASURED = 1 << 28
"""Bytes of arrays beyond which only who asks for it measures: drawing and checking take longer than timing."""

OUTER_BYTES = 1 << 22
"""Arrays of so many bytes lie in the outer caches, where speed hangs on their places and on neighbours."""

LEAST_FOR_THREADS = 2e-5
"""Seconds of a serial call that are over before a thread has woken up: nobody takes or times threads beside it."""


@functools.lru_cache(maxsize=256)
def class_of(attr: KernelAttr) -> KernelAttr:
    """The tuning class of an attr, remembered for a while: one call asks for it again and again."""
    return attr.tuning_class()


def nbytes(attr: KernelAttr) -> int:
    """Bytes of all arrays of a call."""
    return sum(array.nbytes for array in attr.signature().arrays)


def least_seconds(attr: KernelAttr) -> float:
    """What a call takes on one thread of the fastest imaginable machine."""
    return nbytes(attr) / 1e11 + attr.operations() / 5e11


def has_elements(attr: KernelAttr) -> bool:
    """Whether a call has anything to do: some array of no elements means that it has (almost) nothing."""
    return all(math.prod(array.shape) > 0 for array in attr.signature().arrays)


@functools.lru_cache(maxsize=256)
def measured_member(attr: KernelAttr) -> KernelAttr:
    """The member of an attr's tuning class that is measured on behalf of all.

    A power of two is a special size: aligned, without tails, and with rows that compete for the same cache
    sets; most multiples of it are. So every extent is taken at three quarters of it, the middle of the class, and
    where it is not small at what leaves five of every vector besides. Rows whose fields do not allow that are
    measured at the class itself.
    """
    return _member(attr, lambda extent: 3 * extent // 4 | (5 if extent >= 8 else 0))


def smallest_member(attr: KernelAttr) -> KernelAttr:
    """The member of an attr's tuning class whose calls cost least, where any of them may be made."""
    return _member(attr, lambda extent: extent // 2 + 1)


def share_of_smallest(attr: KernelAttr) -> float:
    """What the smallest member of a class costs at least of what its largest does: half for every extent."""
    return 0.5 ** sum(value > 2 for _, value in attr.signature().integers)


def _member(attr: KernelAttr, changed: Callable[[int], int]) -> KernelAttr:
    of_class = class_of(attr)
    extents = {name: changed(extent) for name, extent in of_class.extents().items() if extent > 2}
    try:
        member = dataclasses.replace(of_class, **extents)  # type: ignore[type-var]  # subclasses are dataclasses
    except AttrError:
        return of_class
    return member if class_of(member) == of_class else of_class
