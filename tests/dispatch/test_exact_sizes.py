"""Everyday calls with a kernel for their exact sizes, which blocks of rows must not reach."""

from pathlib import Path
from typing import Any

import cases
import numpy as np
import pytest
from test_everyday import SAME_VALUES, arrays_only, as_tuple, assert_right, example, function_of, in_dtype
from test_everyday_out import passed

import jitkernels as jk
from jitkernels.attrs.schema.registry import implementation
from jitkernels.attrs.schema.schema_queries import inputs_of
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.dispatch import operators
from jitkernels.dispatch.kernel import Kernel
from jitkernels.dispatch.kernel_cache import KernelFuncs
from jitkernels.tools import testing

Row = Any


@pytest.mark.parametrize("row", cases.every_form())
def test_exact_size_kernels_are_called_with_all_rows(row: Row, fresh: Path) -> None:
    """Also for operands that pass through a buffer."""
    attr, given = example(row)
    holder = operators._holder(attr.name)
    if holder._table is None:
        return  # Python serves its everyday calls
    forms = {name: make for name, make in SAME_VALUES.items() if name not in ("subclass", "byte_swapped")}
    for form, make in {**forms, "single": lambda value: value, "wide": as_wide}.items():
        used = arrays_only(given, make)
        call = row.call(**used)
        function_of(row)(**used)
        holder._register_exact(call.attr, earned=True)
        outs = tuple(testing.Guarded(out, "end") for out in function_results(row, used))
        function_of(row)(**used, out=passed(tuple(guard.array for guard in outs)))
        assert all(guard.intact() for guard in outs), form
        results = [guard.array for guard in outs]
        if form == "wide" and inputs_of(row):  # sums that a row promises to round to its dtype are other ones there
            assert_right(row, passed(tuple(results)), used, "float64", slack=4)
        else:
            assert_right(row, passed(in_dtype(results, "float32")), given, slack=4)


def as_wide(value: AnyArray) -> AnyArray:
    return value.astype(np.float64) if value.dtype.kind == "f" else value


def function_results(row: Row, given: dict[str, Any]) -> tuple[AnyArray, ...]:
    """Arrays like the results of a call, to be written to."""
    return tuple(np.zeros_like(result) for result in as_tuple(function_of(row)(**given)))


def test_exact_size_kernels_may_be_the_reference(fresh: Path) -> None:
    """It has no machine code for the dispatcher: the kernel of the class serves, and not Python."""
    attr = jk.MatMulAttr(m=7, n=9, k=5)
    a, b, _ = attr.signature().sample()
    right = a.astype(np.float64) @ b
    holder = operators._holder("matmul")
    jk.matmul(a, b)
    for _ in range(2):  # the first look tells the price
        holder._register_exact(attr, earned=True)
    kernel = KernelFuncs.cache().at(attr).__self__  # type: ignore[attr-defined]
    assert kernel.exact
    np.testing.assert_allclose(jk.matmul(a, b), right, rtol=1e-4)
    kernel.replace_code(Kernel(attr, implementation(type(attr), "refer"), {}))
    for _ in range(2):
        holder._register_exact(attr, earned=False)
        np.testing.assert_allclose(jk.matmul(a, b), right, rtol=1e-4)
