"""Materialize operands by NumPy: dtypes that the buffer does not support, and broadcasts to another input.

Buffers hold floats and int64; narrower integers, which are range-checked, and bfloat16 are materialized.
"""

# mypy: disable-error-code="name-defined,no-any-return,assignment,index"
from jitkernels.codegen.i64_intrinsics import address, call, load
from jitkernels.runtime.abi_layout import DispatcherPart, Offset, Operand


def materialize(operand: int, expected: int) -> int:
    """Materialize an operand's loop in a new array of a kernel's dtype, which it owns; 0 on failure."""
    function = part_address(DispatcherPart.COPIED)
    array = call(function, operand, expected) if function else 0
    if array == 0:
        return 0
    if operand[Operand.OWNED] != 0:
        Py_DecRef(operand[Operand.OWNED])
    operand[Operand.OWNED] = array
    return read_array(operand, array)


def copied(operand: int, expected: int) -> int:
    """A new array of the elements that an operand's loop reads; 0 for integers out of range, or without memory."""
    kind = operand[Operand.KIND]
    descr = address("jk_bfloat16")[0]
    if kind == BFLOAT16:
        Py_IncRef(descr)
    else:
        descr = PyArray_DescrFromType(kind)
    extents = operand + 8 * Operand.EXTENTS
    strides = operand + 8 * Operand.STRIDES
    dimensions = operand[Operand.DIMENSIONS]
    view = PyArray_NewFromDescr(address("jk_ndarray"), descr, dimensions, extents, strides, operand[Operand.DATA], 0, 0)
    if view == 0:
        PyErr_Clear()
        return 0
    array = 0
    if expected > 7 or kind == expected or all_in_range(operand, view, expected):
        array = copy_in_dtype(view, descr_of(expected))
    Py_DecRef(view)
    return array


def copy_in_dtype(view: int, descr: int) -> int:
    """A contiguous copy in a dtype; 0 if the allocation fails."""
    Py_IncRef(descr)
    array = PyArray_CheckFromAny(view, descr, 0, 0, CONTIGUOUS | ALIGNED | NOT_SWAPPED | FORCED | COPY, 0)
    if array == 0:
        PyErr_Clear()
    return array


def all_in_range(operand: int, view: int, expected: int) -> int:
    """Whether all integers are in the range of int8, uint8, int32 or int64, where others wrap to negative ones."""
    array = copy_in_dtype(view, address("jk_int64"))
    if array == 0:
        return 0
    data = load(array, Offset.ARRAY_DATA)
    least = 0
    most = 0
    for i in range(element_count(operand)):
        number = data[i]
        least = min(least, number)
        most = max(most, number)
    Py_DecRef(array)
    if expected == 7:
        return least == 0 or operand[Operand.KIND] & 1
    if expected == 2:
        return least == 0 and most < 1 << 8
    end = 1 << 31 if expected == 5 else 1 << 7
    return least >= -end and most < end
