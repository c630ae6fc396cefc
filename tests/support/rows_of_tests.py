"""Rows that tests declare, in the registry only during the test."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import jitkernels
from jitkernels.attrs.schema import registry
from jitkernels.attrs.schema.base import KernelAttr, schemas
from jitkernels.attrs.schema.kernel_types import KernelType

TESTS = Path(__file__).parents[1]


@contextlib.contextmanager
def put_back(row: type[KernelAttr]) -> Iterator[None]:
    """Register a row of tests inside the block; remove it and its implementations afterwards."""
    before = dict(registry._implementations[row])
    put_in(row)
    try:
        yield
    finally:
        registry._implementations[row] = before
        take_out(row)


def put_in(row: type[KernelAttr]) -> None:
    """Register a row that was taken out."""
    schemas[row.kernel_type] = row
    KernelType._members[row.kernel_type.name] = row.kernel_type


def take_out(row: type[KernelAttr]) -> None:
    """Remove a row from the registry, except its implementations, and its names from the package."""
    schemas.pop(row.kernel_type)
    KernelType._members.pop(row.kernel_type.name)
    for name in (row.__name__, row.kernel_type.name.lower()):
        vars(jitkernels).pop(name, None)  # which the package keeps once it has looked them up


def registered() -> list[str]:
    """The rows that modules below this folder's parent have registered, plug-ins excluded."""
    return [row.__name__ for row in schemas.known() if _is_of_tests(row)]


def _is_of_tests(row: type[KernelAttr]) -> bool:
    place = Path(getattr(sys.modules.get(row.__module__), "__file__", None) or "/")
    return place.is_relative_to(TESTS) and not place.is_relative_to(TESTS / "plugin")


def unknown_names(package: ModuleType) -> set[str]:
    """The public names in the package's namespace that are neither modules, nor listed, nor those of a known row."""
    theirs = {name for row in schemas.values() for name in (row.__name__, row.kernel_type.name.lower())}
    found = {
        name for name, value in vars(package).items() if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    return found - {*package.__all__} - theirs - {"Any"}
