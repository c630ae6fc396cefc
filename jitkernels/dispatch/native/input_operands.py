"""Read the inputs of a call as operands, and choose the dtype that the kernel computes in."""

# mypy: disable-error-code="name-defined,no-any-return,assignment,index"
from jitkernels.codegen.i64_intrinsics import address, call, load, load8, load32, stack
from jitkernels.runtime.abi_layout import (
    ALIGNED,
    CONTIGUOUS,
    MOST_OPERAND_DIMENSIONS,
    NATIVE,
    NO_ORDER,
    NO_SUBCLASS,
    NOT_SWAPPED,
    Frame,
    Offset,
    Operand,
    Part,
    Record,
    Table,
)


def read_inputs(table: int, slots: int, frame: int) -> int:
    """Read every input as an array of a dtype that `copy_run` supports; choose the dtype of the kernel."""
    inputs = table[Table.INPUTS]
    options = 0
    # First all conversions, which may run Python code that changes other arrays; then read.
    for i in range(inputs):
        given = slots[i]
        entry = record(table, i)
        own = operand(frame, i)
        present = given != 0 and given != address("jk_none")
        own[Operand.ARRAY] = 0
        own[Operand.PRESENT] = present
        leader = entry[Record.LEADER]
        if present == 0 and leader < 0:
            return 0
        if leader >= 0 and operand(frame, leader)[Operand.PRESENT] != present:
            return 0
        if present:
            options += entry[Record.WHEN]
            array = given
            kind = load(given, Offset.TYPE)
            derived = kind != address("jk_ndarray") and is_derived(kind)
            if kind != address("jk_ndarray") and derived == 0:
                if is_number(own, given) == 0:
                    if entry[Record.INTEGER] and kind == address("jk_int"):
                        array = of_int(given)
                    else:
                        array = converted(own, given)
                    if array == 0:
                        PyErr_Clear()
                        return 0
                    own[Operand.OWNED] = array
            elif derived or lies_strangely(given):  # a derived array is not copied
                array = seen_by_numpy(given)
                if array == 0:
                    return 0
                own[Operand.OWNED] = array
            own[Operand.ARRAY] = array
    widths = 0
    halves = 0
    for i in range(inputs):
        own = operand(frame, i)
        array = own[Operand.ARRAY]
        if array != 0:
            weak = load(array, Offset.TYPE) == address("jk_float")
            if load(array, Offset.TYPE) == address("jk_ndarray"):
                if read_array(own, array) == 0:
                    return 0
            kind = own[Operand.KIND]
            if record(table, i)[Record.INTEGER]:
                if weak or kind < 1 or kind > 10:
                    return 0
                if kind == 2:
                    options += record(table, i)[Record.TELLS]
            elif weak == 0:
                widths = widths | width_of(kind)
                if kind == 3 or kind == 4:
                    halves = 1
    if halves and widths == 4:
        widths = 5  # values of float32 that bfloat16 cannot hold
    wide = is_wide(widths)
    if widths > 3:
        if widths & 2:
            return 0
        wide = 0
        if widths == 4 and table[Table.NARROWS]:
            wide = 2
    frame[Frame.WIDE] = wide
    frame[Frame.OPTIONS] = options
    return 1


def is_derived(kind: int) -> int:
    """Whether a type is a known subclass of ndarray that is read as an array."""
    known = address("jk_derived")
    found = 0
    for i in range(4):
        found = found or known[i] == kind
    return found


def width_of(kind: int) -> int:
    """2 for dtypes wider than float32, 1 for narrow floats, 0 for small integers, which take the dtype of the others.

    4 for bfloat16: the call stays bfloat16 if no other input is a float and the kernel supports it.
    """
    if kind == BFLOAT16:
        return 4
    if kind == FLOAT64 or kind == FLOAT64 + SWAPPED or (kind > 4 and kind < FLOAT32):
        return 2
    return kind == FLOAT32 or kind == FLOAT32 + SWAPPED or kind == FLOAT16


def is_wide(widths: int) -> int:
    """Whether a kernel computes operands of these widths in float64."""
    return widths != 1


def is_number(own: int, given: int) -> int:
    """Whether this is a float, or a NumPy scalar, whose value is read in place."""
    kind = load(given, Offset.TYPE)
    number = FLOAT64
    item = 8
    if kind != address("jk_float"):
        scalars = address("jk_scalars")
        i = scalars[0] - 1
        while i >= 0 and scalars[3 * i + 1] != kind:
            i -= 1
        if i < 0:
            return 0
        number = scalars[3 * i + 2]
        item = scalars[3 * i + 3]
        if number == FLOAT16 and HAS_FLOAT16 == 0:
            return 0
    own[Operand.DATA] = given + Offset.FLOAT_VALUE
    number_at(own, number, item)
    return 1


def number_at(own: int, kind: int, item: int) -> int:
    own[Operand.KIND] = kind
    own[Operand.ITEM] = item
    own[Operand.DIMENSIONS] = 0
    own[Operand.CONTIGUOUS] = 1
    own[Operand.ALIGNED] = 1
    return 0


def converted(own: int, given: int) -> int:
    """A new float or array for an integer or a list; 0 for anything else."""
    kind = load(given, Offset.TYPE)
    if kind == address("jk_int") or kind == address("jk_bool"):
        number = PyNumber_Float(given)
        own[Operand.DATA] = number + Offset.FLOAT_VALUE
        number_at(own, FLOAT64, 8)
        return number
    if is_sequence(given) == 0:
        return 0
    function = part(Part.OF_SEQUENCE)
    return call(function, given) if function else 0


def seen_by_numpy(given: int) -> int:
    """A base-class array that can be read directly, a copy if need be; 0 on failure."""
    array = PyArray_CheckFromAny(given, 0, 0, 0, ALIGNED | NOT_SWAPPED | NO_SUBCLASS, 0)
    if array == 0:
        PyErr_Clear()
    return array


def of_int(given: int) -> int:
    """A new 0-d array for a Python int; 0 if int64 cannot hold it."""
    number = stack(1)
    if an_int(given, number) == 0:
        return 0
    Py_IncRef(address("jk_int64"))
    array = PyArray_Empty(0, number, address("jk_int64"), 0)
    if array != 0:
        load(array, Offset.ARRAY_DATA)[0] = number[0]
    return array


def of_sequence(given: int) -> int:
    """A new array for a list or a tuple; 0 on failure."""
    array = of_python_numbers(given)
    return array if array != 0 else PyArray_CheckFromAny(given, 0, 0, 0, ALIGNED | NOT_SWAPPED, 0)


def of_python_numbers(given: int) -> int:
    """A new array for floats or ints in a list, or in a list of equal lists; 0 for anything else."""
    rows = load(given, Offset.TUPLE_SIZE)
    nested = 0
    columns = rows
    if rows != 0:
        nested = is_sequence(items_of(given)[0])
        if nested:
            columns = load(items_of(given)[0], Offset.TUPLE_SIZE)
    if rows == 0 or columns == 0:
        return 0
    kind = load(items_of(items_of(given)[0] if nested else given)[0], Offset.TYPE)
    if kind != address("jk_float") and kind != address("jk_int"):
        return 0
    for i in range(rows if nested else 1):
        row = items_of(given)[i] if nested else given
        if is_sequence(row) == 0:
            return 0
        if load(row, Offset.TUPLE_SIZE) != columns:
            return 0
        items = items_of(row)
        for j in range(columns):
            if load(items[j], Offset.TYPE) != kind:
                return 0
    descr = address("jk_float64") if kind == address("jk_float") else address("jk_int64")
    extents = stack(2)
    extents[0] = rows
    extents[1] = columns
    Py_IncRef(descr)
    array = PyArray_Empty(1 + nested, extents, descr, 0)
    if array == 0:
        PyErr_Clear()
        return 0
    data = load(array, Offset.ARRAY_DATA)
    for i in range(rows if nested else 1):
        items = items_of(items_of(given)[i] if nested else given)
        for j in range(columns):
            if kind == address("jk_float"):
                data[j] = load(items[j], Offset.FLOAT_VALUE)
            elif an_int(items[j], data + 8 * j) == 0:
                Py_DecRef(array)
                return 0
        data += 8 * columns
    return array


def is_sequence(given: int) -> int:
    """Whether this is a list or a tuple, not a subclass."""
    return load(given, Offset.TYPE) == address("jk_list") or load(given, Offset.TYPE) == address("jk_tuple")


def items_of(sequence: int) -> int:
    """The address of the items of a list or a tuple."""
    if load(sequence, Offset.TYPE) == address("jk_list"):
        return load(sequence, Offset.LIST_ITEMS)
    return sequence + Offset.TUPLE_ITEMS


def readable_kind(descr: int) -> int:
    """NumPy's type number of a dtype that `copy_run` supports, -1 for others."""
    kind = load32(descr, Offset.DTYPE_NUMBER)
    order = load8(descr, Offset.DTYPE_ORDER)
    if kind < 0 or (kind > FLOAT64 and (kind != FLOAT16 or HAS_FLOAT16 == 0)):
        return -1
    if order == NATIVE or order == NO_ORDER:
        return kind
    return kind + SWAPPED if kind == FLOAT32 or kind == FLOAT64 else -1


def lies_strangely(array: int) -> int:
    """Whether integers or halves are byte-swapped: NumPy copies them then."""
    descr = load(array, Offset.ARRAY_DTYPE)
    kind = load32(descr, Offset.DTYPE_NUMBER)
    order = load8(descr, Offset.DTYPE_ORDER)
    if kind < 0 or kind == FLOAT32 or kind == FLOAT64 or (kind > FLOAT64 and kind != FLOAT16):
        return 0
    return order != NATIVE and order != NO_ORDER


def read_array(own: int, array: int) -> int:
    """Read the fields of an ndarray; 0 if `copy_run` does not support it."""
    descr = load(array, Offset.ARRAY_DTYPE)
    kind = readable_kind(descr)
    if kind < 0 and descr == address("jk_bfloat16")[0]:
        kind = BFLOAT16
    flags = load32(array, Offset.ARRAY_FLAGS)
    dimensions = load32(array, Offset.ARRAY_DIMENSIONS)
    if kind < 0 or dimensions > MOST_OPERAND_DIMENSIONS - 2:
        return 0
    own[Operand.DATA] = load(array, Offset.ARRAY_DATA)
    own[Operand.KIND] = kind
    own[Operand.ITEM] = load(descr, Offset.DTYPE_BYTES)
    own[Operand.DIMENSIONS] = dimensions
    own[Operand.CONTIGUOUS] = flags & CONTIGUOUS
    own[Operand.ALIGNED] = flags & ALIGNED
    extents = load(array, Offset.ARRAY_EXTENTS)
    strides = load(array, Offset.ARRAY_STRIDES)
    for d in range(dimensions):
        own[Operand.EXTENTS + d] = extents[d]
        own[Operand.STRIDES + d] = strides[d]
    return 1


FUNCTIONS = (
    read_inputs,
    is_derived,
    width_of,
    is_wide,
    is_number,
    number_at,
    converted,
    seen_by_numpy,
    of_int,
    of_sequence,
    of_python_numbers,
    is_sequence,
    items_of,
    readable_kind,
    lies_strangely,
    read_array,
)
