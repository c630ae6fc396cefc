"""bfloat16 of ml_dtypes in everyday calls of the rows that store it: results, dtypes, other operands, errors."""

from collections.abc import Callable
from typing import Any

import numpy as np
import oracles
import pytest

import jitkernels as jk
from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.registry import all_schemas, implementation
from jitkernels.attrs.schema.schema_queries import inputs_of
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.core import bfloat16
from jitkernels.dispatch.kernel import Kernel
from jitkernels.errors import ArgumentTypeError, JitKernelsError
from jitkernels.tools import testing

ml_dtypes = pytest.importorskip("ml_dtypes")
NUMBER = np.dtype(ml_dtypes.bfloat16)
ROWS = [
    pytest.param(row, id=row.kernel_type.name.lower())
    for row in all_schemas()
    if "dtype" in row.known_fields() and bfloat16.BFLOAT16_NAME in row.known_fields()["dtype"].dtypes
]


def example(row: type[KernelAttr]) -> tuple[KernelAttr, dict[str, Any]]:
    """An attr, and an everyday call that comes to it."""
    floats = {a.name for a in inputs_of(row) if a.dtype is None}
    attrs = [case.attr for case in testing.ci_cases(row) if case.attr.fields()["dtype"] == bfloat16.BFLOAT16_NAME]
    for attr in [testing.middle(row, bfloat16.BFLOAT16_NAME), *reversed(attrs)]:
        named = testing.named(attr)
        given = {key: v.view(NUMBER) if key in floats else v for key, v in named.items()}
        try:
            if row.call(**given).attr == attr:
                return attr, given
        except JitKernelsError:
            pass
    raise AssertionError(f"no ci case of {row.__name__} can be requested by an everyday call")


def function_of(row: type[KernelAttr]) -> Any:
    return getattr(jk, row.kernel_type.name.lower())


def assert_right(row: type[KernelAttr], got: AnyArray, given: dict[str, Any]) -> None:
    call = row.call(**given)
    (output,) = call.attr.signature().outputs
    inputs = iter(call.inputs)
    arrays = [next(inputs) if p.role == "in" else np.zeros(p.shape, p.numpy) for p in call.attr.signature().arrays]
    truth = testing.expected.Truth.by(oracles.expected, call.attr, arrays)
    assert call.attr.fields()["dtype"] == bfloat16.BFLOAT16_NAME
    assert (type(got), got.dtype) == (np.ndarray, NUMBER)
    back = np.moveaxis(got, given["axis"], -1) if call.finish else got
    truth.assert_close([np.ascontiguousarray(back).reshape(output.shape)], call.attr.text())


@pytest.mark.parametrize("row", ROWS)
def test_everyday_calls_with_bfloat16(row: type[KernelAttr]) -> None:
    """Again and again, so that the compiled dispatcher serves it too; in any layout; into ``out``."""
    _, given = example(row)
    function = function_of(row)
    for _ in range(4):
        got = function(**given)
        assert_right(row, got, given)
    first = inputs_of(row)[0].name
    for form in (
        testing.rejected_arguments.strided,
        testing.rejected_arguments.backwards,
        testing.rejected_arguments.unaligned,
        np.asfortranarray,
    ):
        for _ in range(2):
            assert_right(row, function(**given | {first: form(given[first])}), given)
    for dtype in (NUMBER, np.dtype(np.float32), np.dtype(np.float64)):
        for _ in range(2):
            out = np.zeros(got.shape, dtype)
            assert function(**given, out=out) is out
            assert np.array_equal(out.astype(np.float64), got.astype(np.float64))
    gaps = np.zeros((*got.shape, 2), NUMBER)[..., 0]
    function(**given, out=gaps)
    assert np.array_equal(gaps.astype(np.float64), got.astype(np.float64))


@pytest.mark.parametrize("row", ROWS)
def test_promotion_with_wider_floats(row: type[KernelAttr]) -> None:
    """As NumPy promotes it; integers and Python's numbers leave it what it is."""
    _, given = example(row)
    floats = [a.name for a in inputs_of(row) if a.dtype is None]
    for dtype in (np.float32, np.float64):
        wide = {key: value.astype(dtype) if key in floats else value for key, value in given.items()}
        for name in floats if len(floats) > 1 else ():
            for _ in range(3):
                got = function_of(row)(**wide | {name: given[name]})
                assert got.dtype == dtype
                np.testing.assert_array_equal(got, function_of(row)(**wide))
    if len(floats) > 1:
        ones = {floats[-1]: np.ones(given[floats[-1]].shape, np.int8)}
        got = function_of(row)(**given | ones)
        assert_right(row, got, given | {floats[-1]: ones[floats[-1]].astype(NUMBER)})


@pytest.mark.parametrize("row", ROWS)
def test_kernels_accept_uint16_bits_and_bfloat16_arrays(row: type[KernelAttr]) -> None:
    """A kernel's arrays are uint16, or of another package's dtype with these bits."""
    attr = testing.middle(row, bfloat16.BFLOAT16_NAME)
    arrays = attr.signature().sample()
    numbers = [
        a.view(NUMBER) if p.dtype == bfloat16.BFLOAT16_NAME else a
        for p, a in zip(attr.signature().arrays, arrays, strict=True)
    ]
    for name in ("gen", "refer"):
        kernel = Kernel(attr, implementation(row, name), implementation(row, name).variants(attr)[0])
        results = []
        for given in (arrays, numbers):
            used = [array.copy() for array in given]
            kernel.callable(*used)
            results.append(used[-1].view(np.uint16))
        np.testing.assert_array_equal(results[0], results[1])


@pytest.mark.parametrize("row", ROWS)
def test_everyday_calls_treat_uint16_as_integers(row: type[KernelAttr]) -> None:
    """Only an attr declares uint16 to be bits of bfloat16; bfloat16 outputs reject wider results."""
    _, given = example(row)
    floats = [a.name for a in inputs_of(row) if a.dtype is None]
    whole = given | {name: np.ones(given[name].shape, np.uint16) for name in floats}
    assert function_of(row)(**whole).dtype == np.float64
    got = function_of(row)(**given)
    for out in (np.zeros(got.shape, np.uint16), np.zeros(got.shape, np.int32)):
        with pytest.raises(ArgumentTypeError, match="out: expected"):
            function_of(row)(**given, out=out)
    wide = {key: value.astype(np.float32) if key in floats else value for key, value in given.items()}
    with pytest.raises(ArgumentTypeError, match="out: expected"):
        function_of(row)(**wide, out=np.zeros(got.shape, NUMBER))


LAYOUTS: dict[str, Callable[[AnyArray], Any]] = {
    "whole": lambda x: x,
    "strided": lambda x: x[::3],
    "backwards": lambda x: x[::-1],
    "unaligned": testing.rejected_arguments.unaligned,
    "Fortran": lambda x: x.reshape(8, -1).T,
    "broadcast": lambda x: np.broadcast_to(x[:31], (5, 31)),
    "few": lambda x: x[5:12],
    "one": lambda x: x[7].reshape(()),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_rows_without_bfloat16_compute_in_float32(name: str) -> None:
    """Convert as for float16: every number, in any layout, alone and beside float32."""
    every = np.arange(1 << 16, dtype=np.uint16).view(NUMBER)
    x = LAYOUTS[name](every[np.isfinite(every.astype(np.float32))][:65024])
    single = x.astype(np.float32)
    for _ in range(3):
        for got, right in (
            (jk.vrelu(x), jk.vrelu(single)),
            (jk.vadd(x, np.ones(x.shape[-1:], np.float32)), jk.vadd(single, np.float32(1))),
            (jk.vadd(x, np.ones(x.shape[-1:], np.int8)), jk.vadd(single, np.float32(1))),
        ):
            assert got.dtype == np.float32
            np.testing.assert_array_equal(got, right)


def test_long_dot_products_do_not_drift() -> None:
    """A million products of one sign: an accumulator of float32 alone would drift."""
    x = np.full(1 << 20, 1.0078125).astype(NUMBER)
    assert abs(float(jk.dot(x, x)) / float(np.square(x.astype(np.float64)).sum()) - 1) < 2.0**-8
