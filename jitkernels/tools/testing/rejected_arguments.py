"""Checks of argument validation: calls with one bad argument raise an error that names it, and write nothing."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.errors import JitKernelsError
from jitkernels.tools.testing.checks import Function

Form = Callable[[AnyArray], Any]


def strided(value: AnyArray) -> AnyArray:
    """Return the same values with gaps between them."""
    return np.repeat(value, 3, axis=-1)[..., ::3]


def backwards(value: AnyArray) -> AnyArray:
    """Return the same values with negative strides."""
    return value[::-1].copy()[::-1]


def unaligned(value: AnyArray) -> AnyArray:
    """Return the same values at an odd address; single bytes, which are always aligned, get gaps instead."""
    if value.itemsize == 1:
        return strided(value)
    room = np.zeros(value.nbytes + 1, np.uint8)
    array: AnyArray = np.ndarray(value.shape, value.dtype, buffer=room, offset=1)
    array[...] = value
    return array


def read_only(value: AnyArray) -> AnyArray:
    """Return the same values in read-only memory."""
    value = value.copy()
    value.flags.writeable = False
    return value


def fortran(value: AnyArray) -> AnyArray:
    """Return the same values in column-major order; in one dimension, with a negative stride."""
    return np.asfortranarray(value) if value.ndim > 1 else value[::-1]


def flat(value: AnyArray) -> AnyArray:
    """Return the same values in one dimension; in two if they had one."""
    return value.reshape(-1).copy() if value.ndim > 1 else value[:, np.newaxis].copy()


def swapped(value: AnyArray) -> AnyArray:
    """Return the same values in the opposite byte order."""
    return value.astype(value.dtype.newbyteorder()) if value.itemsize > 1 else value.astype(np.bool_)


WRONG: dict[str, Form] = {
    "None": lambda _: None,
    "a list": lambda value: value.tolist(),
    "a memoryview": lambda value: value.data,
    "text": lambda _: "text",
    "a number": lambda value: value.reshape(-1)[0] if value.size else value.dtype.type(0),
    "float16": lambda value: value.astype(np.float16),
    "the other width": lambda value: value.astype(
        f"{value.dtype.kind}{4 if value.itemsize == 8 else 2 * value.itemsize}"
    ),
    "complex": lambda value: value.astype(np.complex128),
    "objects": lambda value: value.astype(object),
    "other bits": lambda value: value.view(f"{'i' if value.dtype.kind == 'u' else 'u'}{value.itemsize}"),
    "swapped": swapped,
    "longer": lambda value: np.concatenate([value, value]),
    "shorter": lambda value: np.ascontiguousarray(value[:-1]),
    "empty": lambda value: value[:0].copy(),
    "one dimension more": lambda value: value[np.newaxis].copy(),
    "no dimensions": lambda value: value.reshape(-1)[0:1].reshape(()).copy(),
    "flat": flat,
    "fortran": fortran,
    "strided": strided,
    "backwards": backwards,
    "unaligned": unaligned,
}
"""Forms that are invalid for every array of at least two elements along each dimension."""


def check_rejections(attr: KernelAttr, function: Function, *, label: str = "") -> int:
    """Check that bad arguments are rejected by name, and that rejected calls write nothing.

    Returns the number of rejected calls. Every extent of the attr must be at least 2.
    """
    signature = attr.signature()
    tried = 0
    for i, parameter in enumerate(signature.arrays):
        expected = f"{attr.name}: {parameter.name}: expected {parameter.describe()}"
        for name, form in (WRONG | ({"read-only": read_only} if parameter.output else {})).items():
            arrays: list[Any] = [*signature.sample()]
            fits = arrays[i]
            arrays[i] = form(fits)
            if is_equivalent_form(arrays[i], fits):
                continue
            assert_rejected(function, arrays, expected, f"{label} with {parameter.name} {name}")
            tried += 1
        for j, other in enumerate(signature.arrays):
            if parameter.output and i != j and other.dtype == parameter.dtype:
                arrays = [*signature.sample()]
                room = np.zeros(max(arrays[i].size, arrays[j].size) + 1, parameter.numpy)
                arrays[i] = room[: arrays[i].size].reshape(arrays[i].shape)
                arrays[j] = room[1 : 1 + arrays[j].size].reshape(arrays[j].shape)
                what = f"{label} with {parameter.name} over {other.name}"
                assert_rejected(function, arrays, parameter.name, what)
                tried += 1
                if other.output and other.shape == parameter.shape:
                    arrays = [*signature.sample()]
                    arrays[i] = arrays[j]
                    what = f"{label} with {parameter.name} as {other.name}"
                    assert_rejected(function, arrays, parameter.name, what)
                    tried += 1
    arrays = [*signature.sample()]
    for arguments in ([], arrays[:-1], [*arrays, arrays[0]]):
        expected = f"expected {len(arrays)} arrays, got {len(arguments)}"
        assert_rejected(function, arguments, expected, f"{label} with {len(arguments)} arrays")
        tried += 1
    return tried


def is_equivalent_form(value: Any, fits: AnyArray) -> bool:
    """Return whether a form equals the original, as layouts do for a single element or a single row."""
    same = isinstance(value, np.ndarray) and (value.dtype, value.shape) == (fits.dtype, fits.shape)
    return same and bool(value.flags.carray)


def assert_rejected(
    function: Function, arguments: Sequence[Any], named: str, label: str, **more: Any
) -> JitKernelsError:
    """Check that the call raises one of the package's errors, which contains `named`, and writes nothing."""
    before = _contents([*arguments, *more.values()])
    caught = None
    try:
        function(*arguments, **more)
    except JitKernelsError as error:
        caught = error
    assert caught is not None, f"{label} was accepted"
    assert named in str(caught), f"{label}: {str(caught)!r} does not name {named!r}"
    assert before == _contents([*arguments, *more.values()]), f"{label} was rejected, but something was written"
    return caught


def _contents(values: list[Any]) -> list[bytes]:
    return [value.tobytes() for value in values if isinstance(value, np.ndarray)]
