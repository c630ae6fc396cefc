"""Empty operands: refused or served as by the reference, in compiled code as well."""

import dataclasses
from collections.abc import Iterator
from functools import partial
from typing import Any

import cases
import numpy as np
import pytest
from test_everyday import as_tuple, example, function_of
from test_everyday_forms import bits
from test_peers import is_served_by_compiled_code

import jitkernels as jk
from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.registry import all_schemas
from jitkernels.benchmarks.peers import ordinary_calls_of
from jitkernels.errors import JitKernelsError
from jitkernels.tools import testing

Row = Any


def without_elements(row: Row) -> Iterator[tuple[KernelAttr, dict[str, Any]]]:
    """Attrs of which one or two extents are 0, and the arguments of a call that asks for such."""
    attr, _ = example(row)
    sizes = [name for name, _ in attr.signature().integers]
    pairs = [{one, other} for i, one in enumerate(sizes) for other in sizes[i:]]
    for names in pairs:
        try:
            empty = dataclasses.replace(attr, **dict.fromkeys(names, 0))  # type: ignore[type-var]
            yield empty, testing.named(empty, 0)
        except (JitKernelsError, ValueError):  # what a row does not have, or has no samples of
            continue


@pytest.mark.parametrize("row", cases.every_row())
def test_calls_without_elements(row: Row) -> None:
    """Errors repeat; valid calls go through Python once, and give the same result without it."""
    function = function_of(row)
    for attr, given in without_elements(row):
        try:
            row.call(**given)
            with jk.use(implementation="refer"), np.errstate(all="ignore"):
                right = as_tuple(function(**given))
        except JitKernelsError as error:
            for _ in range(3):
                with pytest.raises(type(error)):
                    function(**given)
            continue
        for _ in range(3):
            got = as_tuple(function(**given))
            assert [(a.shape, a.dtype) for a in got] == [(a.shape, a.dtype) for a in right], attr
            for one, other in zip(got, right, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6, err_msg=attr.text())
        assert bits(function(**given)) == bits(got)
        assert is_served_by_compiled_code(partial(function, **given)), attr


def indices_of(row: Row) -> list[Any]:
    """The inputs that hold indices into others."""
    return [a for a in row.arrays if a.role == "in" and isinstance(a.domain[1], str)]


INDEXED_ROWS = [
    row for row in all_schemas() if row.__module__ != "toy" and indices_of(row) and ordinary_calls_of(row, 24)
]
"""All but what another test module of the process has registered for itself."""


@pytest.mark.parametrize("row", INDEXED_ROWS, ids=lambda row: row.kernel_type.name.lower())
@pytest.mark.parametrize("width", [0, 3])
@pytest.mark.parametrize("wrong", [-1, 4, 1 << 62])
def test_indices_out_of_bounds_are_rejected(row: Row, width: int, wrong: int) -> None:
    """For any width of the rows, also 0, where no result depends on them; at the first call and later ones."""
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
