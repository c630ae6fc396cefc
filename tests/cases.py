"""The cases of the suite, generated from the registry: a new row or implementation is in them by itself."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from jitkernels import testing
from jitkernels.attrs.base import KernelAttr
from jitkernels.kernel import Kernel
from jitkernels.registry import all_rows, implementation, implementations

OBJECTS = 0 if os.environ.get("JITKERNELS_TEST_FULL") == "1" else 40
"""How many objects beyond those of the "ci" cases an implementation may cost; 0 for any number."""

Row = type[KernelAttr]


def every_row() -> Sequence[Any]:
    """One parameter per row, such as ``vexp``."""
    return [pytest.param(row, id=row.kernel_type.name.lower()) for row in all_rows()]


def every_implementation() -> Sequence[Any]:
    """One parameter (row, name) per implementation, such as ``vexp-mkl``."""
    return [
        pytest.param(row, name, id=f"{row.kernel_type.name.lower()}-{name}")
        for row in all_rows()
        for name in implementations(row)
    ]


def every_middle() -> Sequence[Any]:
    """One parameter (attr, name) per implementation and dtype, at the middle case of the row."""
    return list(_parameters(_middles_in_scope))


def every_attr() -> Sequence[Any]:
    """One parameter (attr, name) per implementation, case and size, such as ``vexp-mkl-n17-float32``."""
    return list(_parameters(_affordable))


def middles(row: Row) -> list[KernelAttr]:
    """The middle "ci" case of each dtype."""
    dtypes = dict.fromkeys(case.attr.fields()["dtype"] for case in testing.ci_cases(row))
    return [testing.middle(row, dtype) for dtype in dtypes]


def _middles_in_scope(row: Row, name: str) -> list[KernelAttr]:
    """The middle cases, or, where an implementation does not compute one, the middle of those it does."""
    found = []
    for attr in middles(row):
        dtype = attr.fields()["dtype"]
        mine = [other for other in in_scope(row, name) if other.fields()["dtype"] == dtype]
        found.append(attr if attr in mine or not mine else mine[len(mine) // 2])
    return found


def _parameters(attrs: Callable[[Row, str], Sequence[KernelAttr]]) -> Iterator[Any]:
    for row in all_rows():
        for name in implementations(row):
            for attr in _in_scope(row, name, attrs(row, name)):
                yield pytest.param(attr, name, id=f"{attr.name}-{name}-{_fields(attr)}")


def in_scope(row: Row, name: str) -> list[KernelAttr]:
    """The "ci" attrs that an implementation computes here; all of them if it cannot be used for any."""
    return _in_scope(row, name, [case.attr for case in testing.ci_cases(row)])


def _in_scope(row: Row, name: str, attrs: Sequence[KernelAttr]) -> list[KernelAttr]:
    """Leave out what an implementation does not compute anywhere, such as a maximum by a library of sums.

    One that cannot be used for any attr lacks its library: its middle cases stay, skipped with the reason.
    """
    found = implementation(row, name)
    usable_at_all = any(found.reason_against(case.attr) is None for case in testing.ci_cases(row))
    if not usable_at_all:
        return [attr for attr in attrs if attr in middles(row)]
    return [attr for attr in attrs if found.reason_against(attr) is None]


def _fields(attr: KernelAttr) -> str:
    fields = attr.fields()
    parts = [f"{key}{value}" for key, value in fields.items() if key != "dtype"]
    return "-".join([*parts, fields["dtype"]])


_around: dict[Row, list[KernelAttr]] = {}


def _affordable(row: Row, name: str) -> list[KernelAttr]:
    """All attrs of a row, or, where an implementation compiles each size anew, evenly chosen ones."""
    if row not in _around:
        _around[row] = testing.attrs_around(row)
    attrs = _around[row]
    if name == "refer" or not OBJECTS:
        return attrs
    basic = {case.attr for case in testing.ci_cases(row)}
    known = {text for attr in basic for text in _texts(attr, name)}
    costly = [attr for attr in attrs if attr not in basic and not _texts(attr, name) <= known]
    new = {text for attr in costly for text in _texts(attr, name)}
    step = max(1, -(-len(new) // OBJECTS)) if len(new) > OBJECTS else 1
    dropped = {attr for i, attr in enumerate(costly) if i % step}
    return [attr for attr in attrs if attr not in dropped]


def _texts(attr: KernelAttr, name: str) -> set[str]:
    """The sources of all variants; empty if there are none for this attr, which its test will tell."""
    found = implementation(type(attr), name)
    if found.reason_against(attr) is not None:
        return set()
    return {found.function(attr, **variant).text for variant in found.variants(attr)}


def usable(attr: KernelAttr, name: str) -> None:
    """Skip the test, with the reason, where the implementation cannot be used at all."""
    reason = implementation(type(attr), name).reason_against(attr)
    if reason is not None:
        pytest.skip(f"{name} of {attr.name}: {reason}")


def kernels_of(attr: KernelAttr, name: str) -> list[Kernel]:
    """The kernels of all variants of an implementation; skips where it cannot be used."""
    usable(attr, name)
    found = implementation(type(attr), name)
    return [Kernel(attr, found, variant) for variant in found.variants(attr)]
