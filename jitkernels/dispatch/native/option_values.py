"""Read the options of a call into the key of its context, the words of the kernel, or its extents."""

# mypy: disable-error-code="name-defined,no-any-return,assignment,index"
from jitkernels.codegen.i64_intrinsics import address, load, load32
from jitkernels.runtime.abi_layout import Frame, Offset, OperatorTable, OptionSpec


def read_options(table: int, slots: int, frame: int) -> int:
    """Read all arguments but arrays; floats are rounded to the dtype of the call."""
    inputs = table[OperatorTable.INPUTS]
    frame[Frame.AXIS] = -1
    frame[Frame.LEADING] = 0
    for s in range(table[OperatorTable.SYMBOLS]):
        frame[Frame.EXTENTS + s] = -1
    floats = 0
    for i in range(table[OperatorTable.OPTIONS]):
        value = slots[inputs + i]
        option = table + 8 * (table[OperatorTable.CHOICES] + i * OptionSpec.WORDS)
        kind = option[OptionSpec.KIND]
        if kind == OptionSpec.OF_VALUES:
            if value != 0:
                index = index_of_value(option, value)
                if index == option[OptionSpec.COUNT]:
                    return 0
                frame[Frame.OPTIONS] += index % option[OptionSpec.DIFFERENT] * option[OptionSpec.FACTOR]
        elif kind == OptionSpec.AXIS:
            if value != 0:
                if read_integer(value, frame + 8 * Frame.AXIS) == 0:
                    return 0
        elif kind == OptionSpec.AN_INT:
            if read_int_option(option, value, frame) == 0:
                return 0
        elif kind == OptionSpec.A_SHAPE:
            if read_shape(value, frame) == 0:
                return 0
        elif kind == OptionSpec.A_DTYPE:
            out = slots[table[OperatorTable.PARAMETERS] - 1]
            if read_dtype(option, value, out, frame) == 0:
                return 0
        else:
            if read_float(option, value, frame, frame + 8 * (Frame.FLOATS + floats)) == 0:
                return 0
            floats += 1
    return 1


def index_of_value(option: int, value: int) -> int:
    """The index of an option among its allowed objects; their number if it is none of them."""
    count = option[OptionSpec.COUNT]
    index = 0
    while index < count and option[OptionSpec.VALUES + index] != value:
        index += 1
    return index


def read_integer(value: int, target: int) -> int:
    """Store the value of a Python or NumPy integer at `target`; 0 for anything else."""
    if load(value, Offset.TYPE) != address("jk_int") and is_numpy_integer(value) == 0:
        return 0
    number = PyLong_AsLong(value)
    if number == -1 and PyErr_Occurred() != 0:
        PyErr_Clear()
        return 0
    target[0] = number
    return 1


def is_numpy_integer(value: int) -> int:
    """Whether this is a NumPy integer, which Python's own functions accept as an int."""
    scalars = address("jk_scalars")
    kind = load(value, Offset.TYPE)
    for i in range(scalars[0]):
        if scalars[3 * i + 1] == kind:
            number = scalars[3 * i + 2]
            return number > BOOL and number < FLOAT32
    return 0


def read_float(option: int, value: int, frame: int, target: int) -> int:
    """Store a float within its limits, or its default, where the kernel reads it."""
    target[0] = option[OptionSpec.DEFAULTS + (frame[Frame.WIDE] == 1)]
    if value != 0:
        if read_real(value, target) == 0:
            return 0
        key = ordered_bits(target[0])
        if key < option[OptionSpec.COUNT] or key > option[OptionSpec.MOST]:
            return 0
        if frame[Frame.WIDE] != 1:
            exact = target[0]
            target[0] = nearest_single(exact)
            if target[0] << 1 == 0 and exact << 1 != 0:
                target[0] = target[0] | MIN_SINGLE_BITS  # a nonzero value never becomes 0
        bits = target[0]
        if bits & INFINITY_BITS == INFINITY_BITS:
            return 0
        if bits << 1 == 0:
            target[0] = 0  # minus zero is zero
    return 1


def ordered_bits(bits: int) -> int:
    """The bits of a float as an integer with the same order; see `jitkernels.dispatch.option_types.ordered`."""
    if bits < 0:
        return -(bits & MAGNITUDE_BITS)
    return bits


def read_real(value: int, target: int) -> int:
    """Store the value of a Python or NumPy float or integer at `target`; 0 for anything else."""
    kind = load(value, Offset.TYPE)
    if kind == address("jk_float") or kind == address("jk_float64_type"):
        target[0] = load(value, Offset.FLOAT_VALUE)
        return 1
    if kind != address("jk_int") and kind != address("jk_float32_type") and is_numpy_integer(value) == 0:
        return 0
    return to_float(value, target)


def to_float(value: int, target: int) -> int:
    """Store Python's float of a number at `target`; 0 if the conversion fails."""
    number = PyNumber_Float(value)
    if number == 0:
        PyErr_Clear()
        return 0
    target[0] = load(number, Offset.FLOAT_VALUE)
    Py_DecRef(number)
    return 1


def read_int_option(option: int, value: int, frame: int) -> int:
    """Store an int within its limits, or its default, as an extent."""
    target = frame + 8 * (Frame.EXTENTS + option[OptionSpec.FACTOR])
    if value == 0:
        target[0] = option[OptionSpec.VALUES]
        return option[OptionSpec.COUNT]
    if read_integer(value, target) == 0:
        return 0
    return target[0] >= option[OptionSpec.LEAST] and target[0] <= option[OptionSpec.MOST]


def read_shape(value: int, frame: int) -> int:
    """Read the leading dimensions that a call passes: an int or a tuple of ints."""
    if value == 0:
        return 0
    if is_sequence(value) == 0:
        frame[Frame.LEADING] = 1
        return read_integer(value, frame + 8 * Frame.LEAD) and frame[Frame.LEAD] >= 0
    count = load(value, Offset.TUPLE_SIZE)
    if count > MAX_OPERAND_DIMENSIONS - 2:
        return 0
    frame[Frame.LEADING] = count
    for d in range(count):
        target = frame + 8 * (Frame.LEAD + d)
        if read_integer(items_of(value)[d], target) == 0:
            return 0
        if target[0] < 0:
            return 0
    return 1


def read_dtype(option: int, value: int, out: int, frame: int) -> int:
    """Read the dtype that a call passes; else that of its `out`, else the wider one."""
    if value == 0 or value == address("jk_none"):
        if out != 0:
            if load(out, Offset.TYPE) == address("jk_ndarray"):
                frame[Frame.WIDE] = load32(load(out, Offset.ARRAY_DTYPE), Offset.DTYPE_NUMBER) != FLOAT32
        return 1
    index = index_of_value(option, value)
    frame[Frame.WIDE] = 2 * index >= option[OptionSpec.COUNT]
    return index < option[OptionSpec.COUNT]
