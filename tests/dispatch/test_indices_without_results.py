"""Indices are bounds-checked also where no element of a result depends on them."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.attrs.schema.registry import all_schemas
from jitkernels.benchmarks.peers import ordinary_calls_of
from jitkernels.errors import JitKernelsError

Row = Any


def indices_of(row: Row) -> list[Any]:
    """The inputs that hold indices into others."""
    return [a for a in row.arrays if a.role == "in" and isinstance(a.domain[1], str)]


ROWS = [row for row in all_schemas() if row.__module__ != "toy" and indices_of(row) and ordinary_calls_of(row, 24)]
"""All but what another test module of the process has registered for itself."""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.kernel_type.name.lower())
@pytest.mark.parametrize("width", [0, 3])
@pytest.mark.parametrize("wrong", [-1, 4, 1 << 62])
def test_indices_out_of_bounds_are_rejected(row: Row, width: int, wrong: int) -> None:
    """For any width of the rows, at the first call and later ones."""
    name = row.kernel_type.name.lower()
    (index,) = indices_of(row)
    arguments = dict(zip(row.parameters().parameters, ordinary_calls_of(row, 24)[0].arguments, strict=False))
    for key, value in arguments.items():
        if isinstance(value, np.ndarray):
            ids = np.full((2,) * value.ndim, wrong)
            cut = np.zeros((4 if key != "grad" and key != "x" else 2, width)[: value.ndim], value.dtype)
            arguments[key] = ids if key == index.name else cut
    for _ in range(3):
        with pytest.raises(JitKernelsError, match=index.name if width else None):
            getattr(jk, name)(**arguments)
