"""Rows that tests declare for themselves: in the registry for as long as a test wants them, and no longer."""

import contextlib
from collections.abc import Iterator

from jitkernels import registry
from jitkernels.attrs.base import KernelAttr, rows
from jitkernels.kernel_types import KernelType


@contextlib.contextmanager
def put_back(row: type[KernelAttr]) -> Iterator[None]:
    """A row of tests in the registry inside the block; what is planted inside is gone afterwards."""
    kept = dict(registry._implementations[row])
    rows[row.kernel_type] = row
    KernelType._members[row.kernel_type.name] = row.kernel_type
    try:
        yield
    finally:
        registry._implementations[row] = kept
        take_out(row)


def take_out(row: type[KernelAttr]) -> None:
    """A row out of the registry, but for its implementations."""
    rows.pop(row.kernel_type)
    KernelType._members.pop(row.kernel_type.name)
