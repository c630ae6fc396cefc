"""Elementwise everyday functions of contiguous rows, broadcast rows or columns, and scalars."""

import itertools
from collections.abc import Callable
from typing import Any

import cases
import numpy as np
import pytest
from test_everyday import as_tuple, function_of
from test_everyday_forms import bits, compiled

from jitkernels.attrs.schema.schema_queries import inputs_of, outputs_of
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers.array_layouts import columns

Row = Any
SHAPES = (("float32", (5, 100)), ("float32", (2, 4097)), ("float64", (3, 63)), ("float64", (1, 700)))
FORMS: dict[str, Callable[[AnyArray], Any]] = {
    "whole": lambda value: value,
    "columns": columns,
    "row": lambda value: value[:1],
    "column": lambda value: value[:, :1],
    "number": lambda value: value[0, 0],
    "float of Python": lambda value: float(value[0, 0]),
}


def elementwise() -> list[Any]:
    """The rows of one or two arrays, and perhaps numbers, which have leading dimensions alone."""
    return [
        param
        for param in cases.every_row()
        if 1 <= sum(not a.is_number for a in inputs_of(param.values[0])) <= 2
        and all(
            a.is_number or (a.spreads and not a.fixed and a.trailing is None and a.dtype is None)
            for a in (*inputs_of(param.values[0]), *outputs_of(param.values[0]))
        )
    ]


@pytest.mark.parametrize("row", elementwise())
def test_rows_have_the_bits_of_whole_arrays(row: Row) -> None:
    """For any form of the other operands; memory beside the rows of a result stays unchanged."""
    function, inputs = function_of(row), inputs_of(row)
    generator = np.random.default_rng(3)
    needed = {"stride": 3} if "stride" in row.options else {}
    for dtype, shape in SHAPES:
        values = [generator.uniform(0.5, 1.5, () if a.is_number else shape).astype(dtype) for a in inputs]
        choices = [("whole",) if a.is_number else FORMS for a in inputs]
        for chosen in itertools.product(*choices):
            given = [FORMS[form](value) for form, value in zip(chosen, values, strict=True)]
            lead = np.broadcast_shapes(*map(np.shape, given))
            plain = [
                g if a.is_number else np.ascontiguousarray(np.broadcast_to(np.asarray(g, dtype), lead))
                for g, a in zip(given, inputs, strict=True)
            ]
            if not any(map(np.ndim, given)):
                continue  # the dtype would be that of numbers of Python
            right = as_tuple(compiled(function, *plain, **needed))
            assert bits(compiled(function, *given, **needed)) == bits(right), (shape, chosen)
            if len(lead) == 2 and len(right) == 1:
                room = np.full((lead[0], lead[1] + 3), 7, right[0].dtype)
                compiled(function, *given, **needed, out=room[:, :-3])
                assert bits(room[:, :-3]) == bits(right), (shape, chosen)
                assert np.all(room[:, -3:] == 7)
