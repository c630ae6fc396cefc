"""bfloat16 mixed with dtypes that NumPy does not promote it with, in all rows that take floats."""

import contextlib
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.registry import all_schemas
from jitkernels.attrs.schema.schema_queries import inputs_of
from jitkernels.errors import JitKernelsError
from jitkernels.tools import testing

ml_dtypes = pytest.importorskip("ml_dtypes")
NUMBER = np.dtype(ml_dtypes.bfloat16)
ROWS = [
    pytest.param(row, id=row.kernel_type.name.lower())
    for row in all_schemas()
    if sum(a.dtype is None for a in inputs_of(row)) > 1
]
JOINED = {"int16": "float32", "float16": "float32", "int32": "float64"}


@pytest.mark.parametrize("row", ROWS)
def test_bfloat16_promotes_as_float32(row: type[KernelAttr]) -> None:
    """In plain calls, those that Python serves, and those without results: the same dtype, and values."""
    given = example(row)
    floats = [a.name for a in inputs_of(row) if a.dtype is None and a.name in given]
    if len(floats) < 2:
        return
    function = getattr(jk, row.kernel_type.name.lower())
    first, second = floats[:2]
    for dtype, wanted in JOINED.items():
        with np.errstate(all="ignore"):
            mixed = given | {name: given[name].astype(wanted) for name in floats}
            mixed |= {first: given[first].astype(NUMBER), second: np.abs(given[second]).astype(dtype)}
            plain = {k: v.astype(wanted) if k in floats else v for k, v in mixed.items()}
        for name in floats[2:]:
            mixed[name] = mixed[name].astype(np.float16 if wanted == "float32" else wanted)
            plain[name] = mixed[name].astype(wanted)
        expected = function(**plain)
        for _ in range(2):
            for got, right in zip(as_tuple(function(**mixed)), as_tuple(expected), strict=True):
                assert got.dtype == right.dtype, dtype
                np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-5, err_msg=dtype)


def example(row: type[KernelAttr]) -> dict[str, Any]:
    """An everyday call of small arrays of float32."""
    for attr in (testing.middle(row, "float32"), *(case.attr for case in testing.ci_cases(row))):
        given = testing.named(attr)
        with contextlib.suppress(JitKernelsError):
            if row.call(**given).attr.fields().get("dtype", "float32") == "float32":
                return given
    raise AssertionError(f"no ci case of {row.__name__} can be requested by an everyday call")


def as_tuple(results: object) -> tuple[np.ndarray, ...]:
    return results if isinstance(results, tuple) else (np.asarray(results),)
