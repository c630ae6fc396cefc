"""Structured arrays of a call: the views of their fields, which are the leaves of the call."""

import ctypes
import itertools
from typing import Any

import numpy as np

from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.runtime.abi_layout import WRITEABLE, Offset


class _Memory:
    """The memory of a record for `numpy.asarray`, which otherwise copies it."""

    def __init__(self, record: Any) -> None:
        self.record = record
        self.__array_interface__ = {
            "data": (address_of(record), not record.flags.writeable),
            "typestr": f"|V{record.itemsize}",
            "shape": (),
            "version": 3,
        }


def address_of(record: Any) -> int:
    """The address of the memory of a record; its own array interface is that of a copy where it owns the memory."""
    return int(np.frombuffer(record, np.uint8).ctypes.data)


def has_known_layout(value: Any) -> bool:
    """Whether the address of a record's memory, and the flags, are where compiled code reads them."""
    address, flags = (
        kind.from_address(id(value) + offset).value
        for kind, offset in ((ctypes.c_int64, Offset.RECORD_DATA), (ctypes.c_int32, Offset.RECORD_FLAGS))
    )
    return address == address_of(value) and bool(flags & WRITEABLE) == value.flags.writeable


def is_structured(value: Any) -> bool:
    """Whether a value is an array or record with fields, of a class of NumPy that adds nothing to them."""
    return type(value) in (np.ndarray, np.void) and value.dtype.names is not None


def has_structured_arrays(structure: Any) -> bool:
    """Whether the structure of a call has structured arrays."""
    return type(structure) is tuple and (structure[:1] == ("structured",) or any(map(has_structured_arrays, structure)))


def fields_of(value: Any) -> list[Any]:
    """The fields of an array, or of a record, as arrays. Raises UnsupportedError for fields that are no numbers."""
    array = value
    if type(value) is np.void:
        array = np.asarray(_Memory(value)).view(value.dtype)
    fields = {name: array[name] for name in value.dtype.names}
    for name, field in fields.items():
        if field.dtype.names is not None or field.shape != array.shape:
            raise UnsupportedError(f"an argument with a field {name!r} that is no number")
    places = sorted((offset, offset + kind.itemsize) for kind, offset, *_ in value.dtype.fields.values())
    if any(end > begin for (_, end), (begin, _) in itertools.pairwise(places)):
        raise UnsupportedError("an argument with fields that overlap")
    return list(fields.values())


def are_interleaved(first: Any, other: Any) -> bool:
    """Whether two arrays are distinct parts of the same records, so that no element of one overlaps one of the other.

    Both walk through memory by the same strides, and the records, which begin where the first of the parts does and end
    where the last one does, do not overlap each other.
    """
    if first.shape != other.shape or first.strides != other.strides:
        return False
    low, high = sorted((array.ctypes.data, array.ctypes.data + array.itemsize) for array in (first, other))
    return bool(low[1] <= high[0]) and not overlaps_itself(first, high[1] - low[0])


def overlaps_itself(array: Any, size: int) -> bool:
    """Whether elements of `size` bytes, at the addresses of an array's, may overlap each other."""
    reach = 0
    for step, extent in sorted((abs(step), extent) for step, extent in zip(array.strides, array.shape, strict=True)):
        if extent > 1:
            if step < reach + size:
                return True
            reach += step * (extent - 1)
    return False
