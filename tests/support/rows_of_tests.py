"""Rows that tests declare, in the registry only during the test."""

import contextlib
from collections.abc import Iterator

from jitkernels.attrs.schema import registry
from jitkernels.attrs.schema.base import KernelAttr, schemas
from jitkernels.attrs.schema.kernel_types import KernelType


@contextlib.contextmanager
def put_back(row: type[KernelAttr]) -> Iterator[None]:
    """Register a row of tests inside the block; remove it and its implementations afterwards."""
    before = dict(registry._implementations[row])
    schemas[row.kernel_type] = row
    KernelType._members[row.kernel_type.name] = row.kernel_type
    try:
        yield
    finally:
        registry._implementations[row] = before
        take_out(row)


def take_out(row: type[KernelAttr]) -> None:
    """Remove a row from the registry, except its implementations."""
    schemas.pop(row.kernel_type)
    KernelType._members.pop(row.kernel_type.name)
