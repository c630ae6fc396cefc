"""The rule by which kernels map over leading dimensions, for all op schemas: references give the same row by row."""

from typing import Any

import numpy as np
import pytest

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.registry import all_schemas, implementation
from jitkernels.compiler.schedule.batch_independence import batch_symbol, row_inputs
from jitkernels.errors import AttrError
from jitkernels.tools.testing.data import PLAIN, sample

COUNT = 3
"""Rows of a batch."""
SCHEMAS = [schema for schema in all_schemas() if any(argument.spreads for argument in schema.arrays)]
NOT_MAPPED = frozenset({"CONV2D_BACKWARD_WEIGHTS", "HISTOGRAM", "NORMAL", "UNIFORM"})
"""Sums over the leading dimensions, and numbers that differ by position."""


def outputs_of(attr: KernelAttr, inputs: list[Any]) -> list[Any]:
    """The outputs of a schema's reference."""
    outputs = [np.zeros(one.shape, one.numpy) for one in attr.signature().outputs]
    implementation(type(attr), "refer").function(attr, *attr.signature().as_declared([*inputs, *outputs]))
    return outputs


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.kernel_type.name.lower())
def test_rows_are_independent(schema: type[KernelAttr]) -> None:
    checked = False
    for case in list(schema.sweep())[:12]:
        symbol = batch_symbol(case.attr)
        rows = None if symbol is None else row_inputs(case.attr, symbol)
        if symbol is None or rows is None or case.attr.operations() > 1e7:
            continue
        try:
            whole, one = (type(case.attr)(**{**case.attr.fields(), symbol: count}) for count in (COUNT, 1))
        except AttrError:
            continue
        pairs = zip(sample(whole, PLAIN["random"]), whole.signature().arrays, strict=True)
        inputs = [array for array, each in pairs if each.role == "in"]
        expected = outputs_of(whole, [np.array(array) for array in inputs])
        for row in range(COUNT):
            own = [np.array(array[row : row + 1] if i in rows else array) for i, array in enumerate(inputs)]
            own = [array.reshape(each.shape) for array, each in zip(own, one.signature().inputs, strict=True)]
            for got, all_rows in zip(outputs_of(one, own), expected, strict=True):
                np.testing.assert_allclose(got, all_rows[row : row + 1].reshape(got.shape), rtol=1e-3, atol=1e-3)
        checked = True
    assert checked or schema.kernel_type.name in NOT_MAPPED, "no case, though the schema has leading dimensions"
