"""What a kernel must refuse: arguments that are wrong in one way each, with an error that says which, and no write."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitkernels.attrs.base import KernelAttr
from jitkernels.errors import JitKernelsError
from jitkernels.signature import AnyArray
from jitkernels.testing.checks import Function

Form = Callable[[AnyArray], Any]


def strided(value: AnyArray) -> AnyArray:
    """The same values with gaps between them."""
    return np.repeat(value, 3, axis=-1)[..., ::3]


def backwards(value: AnyArray) -> AnyArray:
    """The same values, the first of them last in memory."""
    return value[::-1].copy()[::-1]


def unaligned(value: AnyArray) -> AnyArray:
    """The same values at an odd address; with gaps where single bytes lie anywhere."""
    if value.itemsize == 1:
        return strided(value)
    room = np.zeros(value.nbytes + 1, np.uint8)
    array: AnyArray = np.ndarray(value.shape, value.dtype, buffer=room, offset=1)
    array[...] = value
    return array


def read_only(value: AnyArray) -> AnyArray:
    """The same values in memory that may not be written."""
    value = value.copy()
    value.flags.writeable = False
    return value


def fortran(value: AnyArray) -> AnyArray:
    """The same values, the columns together in memory; backwards where there is one dimension."""
    return np.asfortranarray(value) if value.ndim > 1 else value[::-1]


def flat(value: AnyArray) -> AnyArray:
    """The same values in one dimension; in two where there is one."""
    return value.reshape(-1).copy() if value.ndim > 1 else value[:, np.newaxis].copy()


def swapped(value: AnyArray) -> AnyArray:
    """The same values in the other order of bytes."""
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
"""Arguments that fit no array of at least two elements along each dimension."""


def check_refusals(attr: KernelAttr, function: Function, *, label: str = "") -> int:
    """Arguments that do not fit are refused by name, and no call that is refused has written anything.

    Returns how many calls were refused. Every extent of the attr must be at least 2.
    """
    signature = attr.signature()
    tried = 0
    for i, parameter in enumerate(signature.arrays):
        expected = f"{attr.name}: {parameter.name}: expected {parameter.describe()}"
        for name, form in (WRONG | ({"read-only": read_only} if parameter.output else {})).items():
            arrays: list[Any] = [*signature.sample()]
            fits = arrays[i]
            arrays[i] = form(fits)
            if is_alike(arrays[i], fits):
                continue
            assert_refused(function, arrays, expected, f"{label} with {parameter.name} {name}")
            tried += 1
        for j, other in enumerate(signature.arrays):
            if parameter.output and i != j and other.dtype == parameter.dtype:
                arrays = [*signature.sample()]
                room = np.zeros(max(arrays[i].size, arrays[j].size) + 1, parameter.numpy)
                arrays[i] = room[: arrays[i].size].reshape(arrays[i].shape)
                arrays[j] = room[1 : 1 + arrays[j].size].reshape(arrays[j].shape)
                what = f"{label} with {parameter.name} over {other.name}"
                assert_refused(function, arrays, parameter.name, what)
                tried += 1
                if other.output and other.shape == parameter.shape:
                    arrays = [*signature.sample()]
                    arrays[i] = arrays[j]
                    what = f"{label} with {parameter.name} as {other.name}"
                    assert_refused(function, arrays, parameter.name, what)
                    tried += 1
    arrays = [*signature.sample()]
    for given in ([], arrays[:-1], [*arrays, arrays[0]]):
        expected = f"expected {len(arrays)} arrays, got {len(given)}"
        assert_refused(function, given, expected, f"{label} with {len(given)} arrays")
        tried += 1
    return tried


def is_alike(value: Any, fits: AnyArray) -> bool:
    """Whether a form made no difference, as layouts make none to a single element or, some of them, to a single row."""
    same = isinstance(value, np.ndarray) and (value.dtype, value.shape) == (fits.dtype, fits.shape)
    return same and bool(value.flags.carray)


def assert_refused(
    function: Function, given: Sequence[Any], named: str, label: str, **more: Any
) -> JitKernelsError:
    """The error of ours that the call raises; it has the name, and nothing was written."""
    before = _contents([*given, *more.values()])
    caught = None
    try:
        function(*given, **more)
    except JitKernelsError as error:
        caught = error
    assert caught is not None, f"{label} was accepted"
    assert named in str(caught), f"{label}: {str(caught)!r} does not name {named!r}"
    assert before == _contents([*given, *more.values()]), f"{label} was refused, but something was written"
    return caught


def _contents(values: list[Any]) -> list[bytes]:
    return [value.tobytes() for value in values if isinstance(value, np.ndarray)]
