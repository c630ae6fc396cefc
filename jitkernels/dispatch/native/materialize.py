"""Materialize operands by NumPy: dtypes that the buffer does not support, and broadcasts to another input.

Buffers hold floats and int64; narrower integers, which are range-checked, and bfloat16 are materialized.
"""

# mypy: disable-error-code="name-defined,no-any-return,assignment,index"
from jitkernels.codegen.i64_intrinsics import address, call, load
from jitkernels.runtime.abi_layout import ALIGNED, CONTIGUOUS, COPY, FORCED, NOT_SWAPPED, Offset, Operand, Part


def apart_from_caller(own: int, wanted: int) -> int:
    """Materialize an operand's loop in a new array of a kernel's dtype, which it owns; 0 on failure."""
    function = part(Part.COPIED)
    array = call(function, own, wanted) if function else 0
    if array == 0:
        return 0
    if own[Operand.OWNED] != 0:
        Py_DecRef(own[Operand.OWNED])
    own[Operand.OWNED] = array
    return read_array(own, array)


def copied(own: int, wanted: int) -> int:
    """A new array of the elements that an operand's loop reads; 0 for integers out of range, or without memory."""
    kind = own[Operand.KIND]
    descr = address("jk_bfloat16")[0]
    if kind == BFLOAT16:
        Py_IncRef(descr)
    else:
        descr = PyArray_DescrFromType(kind)
    view = PyArray_NewFromDescr(
        address("jk_ndarray"),
        descr,
        own[Operand.DIMENSIONS],
        own + 8 * Operand.EXTENTS,
        own + 8 * Operand.STRIDES,
        own[Operand.DATA],
        0,
        0,
    )
    if view == 0:
        PyErr_Clear()
        return 0
    array = 0
    if wanted > 7 or kind == wanted or all_fit(own, view, wanted):
        array = in_dtype(view, descr_of(wanted))
    Py_DecRef(view)
    return array


def in_dtype(view: int, descr: int) -> int:
    """A contiguous copy in a dtype; 0 if the allocation fails."""
    Py_IncRef(descr)
    array = PyArray_CheckFromAny(view, descr, 0, 0, CONTIGUOUS | ALIGNED | NOT_SWAPPED | FORCED | COPY, 0)
    if array == 0:
        PyErr_Clear()
    return array


def all_fit(own: int, view: int, wanted: int) -> int:
    """Whether all integers are in the range of int8, uint8, int32 or int64, where others wrap to negative ones."""
    array = in_dtype(view, address("jk_int64"))
    if array == 0:
        return 0
    data = load(array, Offset.ARRAY_DATA)
    least = 0
    most = 0
    for i in range(elements_of(own)):
        number = data[i]
        least = min(least, number)
        most = max(most, number)
    Py_DecRef(array)
    if wanted == 7:
        return least == 0 or own[Operand.KIND] & 1
    if wanted == 2:
        return least == 0 and most < 1 << 8
    end = 1 << 31 if wanted == 5 else 1 << 7
    return least >= -end and most < end


FUNCTIONS = (apart_from_caller, copied, in_dtype, all_fit)
