"""Invalid arguments of kernels: each is an error that names it, and nothing is written."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import cases
import numpy as np
import pytest
from test_everyday import example, function_of

import jitkernels as jk
from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.signature import AnyArray, Array, Signature
from jitkernels.errors import ArgumentError, ArgumentTypeError, DataIndexError
from jitkernels.tools import testing
from jitkernels.tools.testing.rejected_arguments import WRONG, assert_rejected, is_equivalent_form, read_only


def _contents(arrays: Sequence[object]) -> list[bytes]:
    return [array.tobytes() for array in arrays if isinstance(array, np.ndarray)]


def _assert_refused(function: Callable[..., Any], arrays: Sequence[object], named: str) -> None:
    caught = assert_rejected(function, arrays, named, "a call")
    assert isinstance(caught, ArgumentError | ArgumentTypeError)


@pytest.mark.parametrize(("row", "name"), cases.every_form_implemented())
def test_invalid_arguments_are_rejected(row: cases.Row, name: str) -> None:
    """Each argument in turn is invalid; the message names kernel, argument and expectation."""
    attr = cases.middle(row, name)
    signature = attr.signature()
    kernel = cases.kernels_of(attr, name)[0]
    failures = cases.Failures()
    for wrong, change in WRONG.items():
        for i, parameter in enumerate(signature.arrays):
            arrays: list[object] = [*signature.sample()]
            arrays[i] = change(signature.sample()[i])
            if is_equivalent_form(arrays[i], signature.sample()[i]):
                continue
            expected = f"{attr.name}: {parameter.name}: expected {parameter.describe()}"
            for function in (kernel.callable, kernel.run):
                with failures.gathered(f"{wrong} {parameter.name}"):
                    _assert_refused(function, arrays, expected)
    failures.tell()


@pytest.mark.parametrize(("row", "name"), cases.every_form_implemented())
def test_wrong_number_of_arguments(row: cases.Row, name: str) -> None:
    attr = cases.middle(row, name)
    kernel = cases.kernels_of(attr, name)[0]
    arrays = attr.signature().sample()
    for given in ([], arrays[:-1], [*arrays, arrays[0]], [*arrays, *arrays, *arrays, *arrays]):
        _assert_refused(kernel.callable, given, f"expected {len(arrays)} arrays, got {len(given)}")
    with pytest.raises(TypeError):
        kernel.callable(*arrays[:-1], **{attr.signature().arrays[-1].name: arrays[-1]})


@pytest.mark.parametrize(("row", "name"), cases.every_form_implemented())
def testread_only(row: cases.Row, name: str) -> None:
    """Outputs must be writeable, inputs need not be."""
    attr = cases.middle(row, name)
    kernel = cases.kernels_of(attr, name)[0]
    signature = attr.signature()
    for i, parameter in enumerate(signature.arrays):
        if parameter.output:
            arrays = signature.sample()
            arrays[i] = read_only(arrays[i])
            _assert_refused(kernel.callable, arrays, f"{attr.name}: {parameter.name}: expected")
    inputs = [read_only(a) if p.role == "in" else a for a, p in zip(signature.sample(), signature.arrays, strict=True)]
    kernel.callable(*inputs)


@pytest.mark.parametrize(("row", "name"), cases.every_form_implemented())
def test_overlap(row: cases.Row, name: str) -> None:
    """An output may share memory with another argument only where both declare ``in_place``, and then wholly."""
    attr = cases.middle(row, name)
    kernel = cases.kernels_of(attr, name)[0]
    signature = attr.signature()
    for i, output in enumerate(signature.arrays):
        for j, other in enumerate(signature.arrays):
            if not output.output or i == j:
                continue
            for distance in (0, 1, -1):
                if distance == 0 and _may_be_same(output, other):
                    continue
                if distance < 0 and math.prod(other.shape) == 1:
                    continue  # a number before the output is no part of it
                arrays = _overlapping(signature, i, j, distance)
                for function in (kernel.callable, kernel.run):
                    _assert_refused(function, arrays, output.name)


def _may_be_same(one: Array, other: Array) -> bool:
    return one.in_place and other.in_place


def _overlapping(signature: Signature, i: int, j: int, distance: int) -> list[AnyArray]:
    """Arguments of which j begins so many elements behind the beginning of i."""
    arrays = signature.sample()
    item, step = max(arrays[i].itemsize, arrays[j].itemsize), arrays[j].itemsize
    room = np.zeros(2 * item + max(arrays[i].nbytes, arrays[j].nbytes) + 64, np.uint8)
    first = item + (-room.ctypes.data) % item
    for position, offset in ((i, first), (j, first + distance * step)):
        shared: AnyArray = np.ndarray(arrays[position].shape, arrays[position].dtype, buffer=room, offset=offset)
        arrays[position] = shared
    return arrays


def takes_integers(row: cases.Row) -> bool:
    return any(argument.dtype == "int64" for argument in row.arrays)


@pytest.mark.parametrize(
    ("row", "name"), [case for case in cases.every_implementation() if takes_integers(case.values[0])]
)
def test_bad_indices(row: cases.Row, name: str) -> None:
    attr = cases.middle(row, name)
    for kernel in cases.kernels_of(attr, name):
        testing.check_bad_indices(attr, kernel.callable, label=repr(kernel))
        testing.check_bad_indices(attr, kernel.run, label=repr(kernel))


@pytest.mark.parametrize("row", [p for p in cases.every_row() if takes_integers(p.values[0])])
def test_indices_into_empty_tables(row: Any) -> None:
    """No index is valid, and the message names no range."""
    _, given = example(row)
    for argument in row.arrays:
        if argument.picks is None:
            continue
        for _ in range(2):
            with pytest.raises(
                DataIndexError, match=rf"{argument.name}: expected none \({argument.picks} has no rows\)"
            ):
                function_of(row)(**given | {argument.picks: given[argument.picks][:0]})


class _Own(np.ndarray[Any, Any]):
    """A subclass of ndarray, as NumPy's users make them."""


@pytest.mark.parametrize(("row", "name"), cases.every_form_implemented())
def test_subclasses_and_dtypes_with_metadata(row: cases.Row, name: str) -> None:
    """The compiled checks do not know them, but Python accepts them."""
    attr = cases.middle(row, name)
    for kernel in cases.kernels_of(attr, name)[:1]:
        expected = attr.signature().sample()
        kernel.callable(*expected)
        for make in (_as_own, _with_metadata):
            arrays = [make(array) for array in attr.signature().sample()]
            kernel.callable(*arrays)
            assert _contents(arrays) == _contents(expected)


def _as_own(array: AnyArray) -> AnyArray:
    return array.view(_Own)


def _with_metadata(array: AnyArray) -> AnyArray:
    return array.view(np.dtype(array.dtype, metadata={"unit": "m"}))


@pytest.mark.parametrize("row", cases.every_row())
def test_get_default_best_checks_arguments(row: type[KernelAttr]) -> None:
    """The callables of users make the same checks."""
    attr = cases.middles(row)[0]
    function = jk.KernelFuncs.cache().at(attr)
    _assert_refused(function, [None] * len(attr.signature().arrays), attr.name)


@pytest.mark.parametrize("attr", ["text", None, 5, KernelAttr])
def test_objects_that_are_no_attr_are_rejected(attr: Any) -> None:
    with pytest.raises(ArgumentTypeError):
        jk.KernelFuncs.cache().at(attr)


@pytest.mark.parametrize("row", cases.every_row())
def test_invalid_fields_are_rejected(row: type[KernelAttr]) -> None:
    """Each field of an attr refuses what it cannot be."""
    fields = cases.middles(row)[0].fields()
    for key, value in fields.items():
        wrong: object
        for wrong in (None, -1, "no", 1.5, [], float("nan"), True, 1 << 64, ">f4"):
            if _fits_field(value, wrong) or (wrong is None and getattr(row, key, "") is None):
                continue
            with pytest.raises(jk.errors.AttrError) as caught:
                row(**fields | {key: wrong})
            assert key in str(caught.value) or "bytes" in str(caught.value)


def _fits_field(value: object, wrong: object) -> bool:
    """A float takes numbers, a flag takes flags; everything else in the list is wrong for everything."""
    if isinstance(value, bool):
        return wrong is True
    return isinstance(value, float) and type(wrong) in (int, float) and wrong == wrong
