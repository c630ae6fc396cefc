"""Size classes: buckets of shapes, and the member of each that is measured."""

import dataclasses
import functools
import math
from collections.abc import Callable

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.errors import AttrError

MAX_MEASURED = 1 << 28
"""Bytes of arrays beyond which only explicit tuning measures: generating and checking them takes longer than timing."""

OUTER_BYTES = 1 << 22
"""Bytes beyond which arrays are in the outer caches, where speed depends on their addresses and on other processes."""

MIN_SECONDS_FOR_THREADS = 2e-5
"""Seconds of a serial call that ends before a thread has woken up: below it, no parallel variant is used or timed."""
MIN_SECONDS_FOR_AWAKE_THREADS = 2e-6
"""The same in compiled programs, whose threads spin between one parallel kernel and the next."""


@functools.lru_cache(maxsize=256)
def class_of(attr: KernelAttr) -> KernelAttr:
    """The size class of an attr, cached, as one call needs it several times."""
    return attr.size_class()


def nbytes(attr: KernelAttr) -> int:
    """Bytes of all arrays of a call."""
    return sum(array.nbytes for array in attr.signature().arrays)


def least_seconds(attr: KernelAttr) -> float:
    """A lower bound of the time of a call on one thread of any machine."""
    return nbytes(attr) / 1e11 + attr.operations() / 5e11


def has_elements(attr: KernelAttr) -> bool:
    """Whether a call has work to do: with an empty array it has (almost) none."""
    return all(math.prod(array.shape) > 0 for array in attr.signature().arrays)


@functools.lru_cache(maxsize=256)
def measured_member(attr: KernelAttr) -> KernelAttr:
    """The member of an attr's size class that is measured on behalf of all.

    A power of two is a special size: aligned, without remainders, and with rows that compete for the same cache sets;
    most multiples of it are. So every extent is measured at three quarters of it, the middle of the class, and larger
    ones leave a remainder of five in every vector. Rows whose fields do not allow that are measured at the class
    itself.
    """
    return _member(attr, lambda extent: 3 * extent // 4 | (5 if extent >= 8 else 0))


def smallest_member(attr: KernelAttr) -> KernelAttr:
    """The member of an attr's size class whose calls cost least, a bound for calls of unknown size."""
    return _member(attr, lambda extent: extent // 2 + 1)


def share_of_smallest(attr: KernelAttr) -> float:
    """A lower bound of the smallest member's cost relative to the largest's: half per extent."""
    return 0.5 ** sum(value > 2 for _, value in attr.signature().integers)


def _member(attr: KernelAttr, changed: Callable[[int], int]) -> KernelAttr:
    of_class = class_of(attr)
    extents = {name: changed(extent) for name, extent in of_class.extents().items() if extent > 2}
    try:
        member = dataclasses.replace(of_class, **extents)  # type: ignore[type-var]  # subclasses are dataclasses
    except AttrError:
        return of_class
    return member if class_of(member) == of_class else of_class
