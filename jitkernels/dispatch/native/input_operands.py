"""Read the inputs of a call as operands, and choose the dtype that the kernel computes in."""

# mypy: disable-error-code="name-defined,no-any-return,assignment,index"
from jitkernels.codegen.i64_intrinsics import address, call, load, load8, load32, stack
from jitkernels.runtime.abi_layout import DispatcherPart, Frame, Offset, Operand, OperandSpec, OperatorTable


def read_inputs(table: int, slots: int, frame: int) -> int:
    """Read every input as an array of a dtype that `copy_run` supports; choose the dtype of the kernel."""
    frame[Frame.OPTIONS] = 0
    # First all conversions, which may run Python code that changes other arrays; then read.
    for i in range(table[OperatorTable.INPUTS]):
        value = slots[i]
        argument = argument_at(table, i)
        operand = operand_at(frame, i)
        present = value != 0 and value != address("jk_none")
        operand[Operand.ARRAY] = 0
        operand[Operand.PRESENT] = present
        leader = argument[OperandSpec.LEADER]
        if present == 0 and leader < 0:
            return 0
        if leader >= 0 and operand_at(frame, leader)[Operand.PRESENT] != present:
            return 0
        if present:
            frame[Frame.OPTIONS] += argument[OperandSpec.WHEN]
            array = to_array(argument, operand, value)
            if array == 0:
                return 0
            operand[Operand.ARRAY] = array
    return read_dtypes(table, frame)


def to_array(argument: int, operand: int, value: int) -> int:
    """The array or scalar object to read an input from: the input itself, or a new object; 0 on failure."""
    kind = load(value, Offset.TYPE)
    if kind == address("jk_ndarray") and is_byte_swapped(value) == 0:
        return value
    if kind == address("jk_ndarray") or is_known_subclass(kind):  # such an array is not copied
        array = PyArray_CheckFromAny(value, 0, 0, 0, ALIGNED | NOT_SWAPPED | NO_SUBCLASS, 0)
    elif read_scalar(operand, value):
        return value
    elif argument[OperandSpec.INTEGER] and kind == address("jk_int"):
        array = array_of_int(value)
    else:
        array = convert_input(operand, value)
    if array == 0:
        PyErr_Clear()
        return 0
    operand[Operand.OWNED] = array
    return array


def read_dtypes(table: int, frame: int) -> int:
    """Read the arrays; choose the dtype that the kernel computes in, and the options that dtypes determine."""
    widths = 0
    kinds = 0
    has_int16 = 0
    for i in range(table[OperatorTable.INPUTS]):
        operand = operand_at(frame, i)
        array = operand[Operand.ARRAY]
        if array != 0:
            is_weak = load(array, Offset.TYPE) == address("jk_float")
            if load(array, Offset.TYPE) == address("jk_ndarray"):
                if read_array(operand, array) == 0:
                    return 0
            kind = operand[Operand.KIND]
            if argument_at(table, i)[OperandSpec.INTEGER]:
                if is_weak or kind < 1 or kind > 10:
                    return 0
                if kind == 2:
                    frame[Frame.OPTIONS] += argument_at(table, i)[OperandSpec.TELLS]
            elif is_weak == 0:
                kinds = kinds | 1 << kind
                widths = widths | dtype_width(kind)
                has_int16 = has_int16 or kind == 3 or kind == 4
    if has_int16 and widths == 4:
        widths = 5  # values of float32 that bfloat16 cannot hold
    wide = computes_float64(widths)
    if widths > 3:
        if widths & 2:
            return 0
        wide = 2 if widths == 4 and table[OperatorTable.KEEPS] & KEEPS_BFLOAT16 else 0
    if kinds != 0 and kinds < 1 << FLOAT32 and table[OperatorTable.KEEPS] & KEEPS_INTEGERS:
        wide = stored_integer(kinds)
        if wide == 0:
            return 0
    frame[Frame.WIDE] = wide
    return 1


def stored_integer(kinds: int) -> int:
    """The index in `DTYPES` of the integers that hold those of a set of type numbers; 0 if there are none."""
    if kinds & (1 << 8 | 1 << 10):
        return 0 if kinds & (1 << 1 | 1 << 3 | 1 << 5 | 1 << 7 | 1 << 9) else 5
    return 4 if kinds & (1 << 6 | 1 << 7 | 1 << 9) else 3


def is_known_subclass(kind: int) -> int:
    """Whether a type is a known subclass of ndarray that is read as an array."""
    for i in range(4):
        if address("jk_derived")[i] == kind:
            return 1
    return 0


def dtype_width(kind: int) -> int:
    """2 for dtypes wider than float32, 1 for narrow floats, 0 for small integers, which take the dtype of the others.

    4 for bfloat16: the call stays bfloat16 if no other input is a float and the kernel supports it.
    """
    if kind == BFLOAT16:
        return 4
    if kind == FLOAT64 or kind == FLOAT64 + SWAPPED or (kind > 4 and kind < FLOAT32):
        return 2
    return kind == FLOAT32 or kind == FLOAT32 + SWAPPED or kind == FLOAT16


def computes_float64(widths: int) -> int:
    """Whether a kernel computes operands of these widths in float64."""
    return widths != 1


def read_scalar(operand: int, value: int) -> int:
    """Whether this is a float, or a NumPy scalar, whose value is read in place."""
    kind = load(value, Offset.TYPE)
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
    operand[Operand.DATA] = value + Offset.FLOAT_VALUE
    set_scalar(operand, number, item)
    return 1


def set_scalar(operand: int, kind: int, item: int) -> int:
    """Set the dtype of a scalar operand."""
    operand[Operand.KIND] = kind
    operand[Operand.ITEM] = item
    operand[Operand.DIMENSIONS] = 0
    operand[Operand.CONTIGUOUS] = 1
    operand[Operand.ALIGNED] = 1
    return 0


def convert_input(operand: int, value: int) -> int:
    """A new float or array for an integer or a list; 0 for anything else."""
    kind = load(value, Offset.TYPE)
    if kind == address("jk_int") or kind == address("jk_bool"):
        number = PyNumber_Float(value)
        operand[Operand.DATA] = number + Offset.FLOAT_VALUE
        set_scalar(operand, FLOAT64, 8)
        return number
    if is_sequence(value) == 0:
        return 0
    function = part_address(DispatcherPart.OF_SEQUENCE)
    return call(function, value) if function else 0


def array_of_int(value: int) -> int:
    """A new 0-d array for a Python int; 0 if int64 cannot hold it."""
    number = stack(1)
    if read_integer(value, number) == 0:
        return 0
    Py_IncRef(address("jk_int64"))
    array = PyArray_Empty(0, number, address("jk_int64"), 0)
    if array != 0:
        load(array, Offset.ARRAY_DATA)[0] = number[0]
    return array


def of_sequence(value: int) -> int:
    """A new array for a list or a tuple; 0 on failure."""
    array = array_of_numbers(value)
    return array if array != 0 else PyArray_CheckFromAny(value, 0, 0, 0, ALIGNED | NOT_SWAPPED, 0)


def array_of_numbers(value: int) -> int:
    """A new array for floats or ints in a list, or in a list of equal lists; 0 for anything else."""
    rows = load(value, Offset.TUPLE_SIZE)
    if rows == 0:
        return 0
    nested = is_sequence(items_of(value)[0])
    first = items_of(value)[0] if nested else value
    columns = load(first, Offset.TUPLE_SIZE)
    if columns == 0:
        return 0
    kind = load(items_of(first)[0], Offset.TYPE)
    if kind != address("jk_float") and kind != address("jk_int"):
        return 0
    for i in range(rows if nested else 1):
        row = items_of(value)[i] if nested else value
        if is_sequence(row) == 0:
            return 0
        if load(row, Offset.TUPLE_SIZE) != columns:
            return 0
        for j in range(columns):
            if load(items_of(row)[j], Offset.TYPE) != kind:
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
        items = items_of(items_of(value)[i] if nested else value)
        for j in range(columns):
            if kind == address("jk_float"):
                data[j] = load(items[j], Offset.FLOAT_VALUE)
            elif read_integer(items[j], data + 8 * j) == 0:
                Py_DecRef(array)
                return 0
        data += 8 * columns
    return array


def is_sequence(value: int) -> int:
    """Whether this is a list or a tuple, not a subclass."""
    return load(value, Offset.TYPE) == address("jk_list") or load(value, Offset.TYPE) == address("jk_tuple")


def items_of(sequence: int) -> int:
    """The address of the items of a list or a tuple."""
    if load(sequence, Offset.TYPE) == address("jk_list"):
        return load(sequence, Offset.LIST_ITEMS)
    return sequence + Offset.TUPLE_ITEMS


def kind_of(descr: int) -> int:
    """NumPy's type number of a dtype that `copy_run` supports, -1 for others."""
    kind = load32(descr, Offset.DTYPE_NUMBER)
    order = load8(descr, Offset.DTYPE_ORDER)
    if kind < 0 or (kind > FLOAT64 and (kind != FLOAT16 or HAS_FLOAT16 == 0)):
        return -1
    if order == NATIVE or order == NO_ORDER:
        return kind
    return kind + SWAPPED if kind == FLOAT32 or kind == FLOAT64 else -1


def is_byte_swapped(array: int) -> int:
    """Whether integers or halves are byte-swapped: NumPy copies them then."""
    descr = load(array, Offset.ARRAY_DTYPE)
    kind = load32(descr, Offset.DTYPE_NUMBER)
    order = load8(descr, Offset.DTYPE_ORDER)
    if kind < 0 or kind == FLOAT32 or kind == FLOAT64 or (kind > FLOAT64 and kind != FLOAT16):
        return 0
    return order != NATIVE and order != NO_ORDER


def read_array(operand: int, array: int) -> int:
    """Read the fields of an ndarray; 0 if `copy_run` does not support it."""
    descr = load(array, Offset.ARRAY_DTYPE)
    kind = kind_of(descr)
    if kind < 0 and descr == address("jk_bfloat16")[0]:
        kind = BFLOAT16
    flags = load32(array, Offset.ARRAY_FLAGS)
    dimensions = load32(array, Offset.ARRAY_DIMENSIONS)
    if kind < 0 or dimensions > MAX_OPERAND_DIMENSIONS - 2:
        return 0
    operand[Operand.DATA] = load(array, Offset.ARRAY_DATA)
    operand[Operand.KIND] = kind
    operand[Operand.ITEM] = load(descr, Offset.DTYPE_BYTES)
    operand[Operand.DIMENSIONS] = dimensions
    operand[Operand.CONTIGUOUS] = flags & CONTIGUOUS
    operand[Operand.ALIGNED] = flags & ALIGNED
    extents = load(array, Offset.ARRAY_EXTENTS)
    strides = load(array, Offset.ARRAY_STRIDES)
    for d in range(dimensions):
        operand[Operand.EXTENTS + d] = extents[d]
        operand[Operand.STRIDES + d] = strides[d]
    return 1
