"""Read the options of a call into the key of its context, the words of the kernel, or its extents."""

# mypy: disable-error-code="name-defined,no-any-return,assignment,index"
from jitkernels.codegen.i64_intrinsics import address, load, load32
from jitkernels.runtime.abi_layout import MOST_OPERAND_DIMENSIONS, Choice, Frame, Offset, Table


def read_options(table: int, slots: int, frame: int) -> int:
    """Read all arguments but arrays; floats are rounded to the dtype of the call."""
    inputs = table[Table.INPUTS]
    options = frame[Frame.OPTIONS]
    frame[Frame.AXIS] = -1
    frame[Frame.LEADING] = 0
    for s in range(table[Table.SYMBOLS]):
        frame[Frame.EXTENTS + s] = -1
    floats = 0
    for i in range(table[Table.OPTIONS]):
        given = slots[inputs + i]
        entry = table + 8 * (table[Table.CHOICES] + i * Choice.WORDS)
        kind = entry[Choice.KIND]
        if kind == Choice.OF_VALUES:
            chosen = 0
            if given != 0:
                chosen = place_among(entry, given)
                if chosen == entry[Choice.COUNT]:
                    return 0
                chosen = chosen % entry[Choice.DIFFERENT]
            options += chosen * entry[Choice.FACTOR]
        elif kind == Choice.AXIS:
            if given != 0:
                if an_int(given, frame + 8 * Frame.AXIS) == 0:
                    return 0
        elif kind == Choice.AN_INT:
            if read_int(entry, given, frame) == 0:
                return 0
        elif kind == Choice.A_SHAPE:
            if read_shape(given, frame) == 0:
                return 0
        elif kind == Choice.A_DTYPE:
            out = slots[table[Table.PARAMETERS] - 1]
            if read_dtype(entry, given, out, frame) == 0:
                return 0
        else:
            if read_float(entry, given, frame, frame + 8 * (Frame.FLOATS + floats)) == 0:
                return 0
            floats += 1
    frame[Frame.OPTIONS] = options
    return 1


def place_among(entry: int, given: int) -> int:
    """The index of an option among its allowed objects; their number if it is none of them."""
    count = entry[Choice.COUNT]
    place = 0
    while place < count and entry[Choice.VALUES + place] != given:
        place += 1
    return place


def an_int(given: int, place: int) -> int:
    """Store the value of a Python or NumPy integer at `place`; 0 for anything else."""
    if load(given, Offset.TYPE) != address("jk_int") and is_integer_of_numpy(given) == 0:
        return 0
    number = PyLong_AsLong(given)
    if number == -1 and PyErr_Occurred() != 0:
        PyErr_Clear()
        return 0
    place[0] = number
    return 1


def is_integer_of_numpy(given: int) -> int:
    """Whether this is a NumPy integer, which Python's own functions accept as an int."""
    scalars = address("jk_scalars")
    kind = load(given, Offset.TYPE)
    for i in range(scalars[0]):
        if scalars[3 * i + 1] == kind:
            number = scalars[3 * i + 2]
            return number > BOOL and number < FLOAT32
    return 0


def read_float(entry: int, given: int, frame: int, value: int) -> int:
    """Store a float within its limits, or its default, where the kernel reads it."""
    value[0] = entry[Choice.DEFAULTS + (frame[Frame.WIDE] == 1)]
    if given != 0:
        if real_number(given, value) == 0:
            return 0
        key = ordered(value[0])
        if key < entry[Choice.COUNT] or key > entry[Choice.MOST]:
            return 0
        if frame[Frame.WIDE] != 1:
            exact = value[0]
            value[0] = nearest_single(exact)
            if value[0] << 1 == 0 and exact << 1 != 0:
                value[0] = value[0] | LEAST_SINGLE_BITS  # a nonzero value never becomes 0
        bits = value[0]
        if bits & INFINITY_BITS == INFINITY_BITS:
            return 0
        if bits << 1 == 0:
            value[0] = 0  # minus zero is zero
    return 1


def ordered(bits: int) -> int:
    """The bits of a float as an integer with the same order; see `jitkernels.dispatch.option_types.ordered`."""
    if bits < 0:
        return 0 - (bits & MAGNITUDE_BITS)
    return bits


def real_number(given: int, place: int) -> int:
    """Store the value of a Python or NumPy float or integer at `place`; 0 for anything else."""
    kind = load(given, Offset.TYPE)
    if kind == address("jk_float") or kind == address("jk_float64_type"):
        place[0] = load(given, Offset.FLOAT_VALUE)
        return 1
    if kind != address("jk_int") and kind != address("jk_float32_type") and is_integer_of_numpy(given) == 0:
        return 0
    return float_of(given, place)


def float_of(given: int, place: int) -> int:
    """Store Python's float of a number at `place`; 0 if the conversion fails."""
    number = PyNumber_Float(given)
    if number == 0:
        PyErr_Clear()
        return 0
    place[0] = load(number, Offset.FLOAT_VALUE)
    Py_DecRef(number)
    return 1


def read_int(entry: int, given: int, frame: int) -> int:
    """Store an int within its limits, or its default, as an extent."""
    place = frame + 8 * (Frame.EXTENTS + entry[Choice.FACTOR])
    if given == 0:
        place[0] = entry[Choice.VALUES]
        return entry[Choice.COUNT]
    if an_int(given, place) == 0:
        return 0
    return place[0] >= entry[Choice.LEAST] and place[0] <= entry[Choice.MOST]


def read_shape(given: int, frame: int) -> int:
    """Read the leading dimensions that a call passes: an int or a tuple of ints."""
    if given == 0:
        return 0
    if is_sequence(given) == 0:
        frame[Frame.LEADING] = 1
        return an_int(given, frame + 8 * Frame.LEAD) and frame[Frame.LEAD] >= 0
    count = load(given, Offset.TUPLE_SIZE)
    if count > MOST_OPERAND_DIMENSIONS - 2:
        return 0
    frame[Frame.LEADING] = count
    for d in range(count):
        place = frame + 8 * (Frame.LEAD + d)
        if an_int(items_of(given)[d], place) == 0:
            return 0
        if place[0] < 0:
            return 0
    return 1


def read_dtype(entry: int, given: int, out: int, frame: int) -> int:
    """Read the dtype that a call passes; else that of its `out`, else the wider one."""
    if given == 0 or given == address("jk_none"):
        if out != 0:
            if load(out, Offset.TYPE) == address("jk_ndarray"):
                frame[Frame.WIDE] = load32(load(out, Offset.ARRAY_DTYPE), Offset.DTYPE_NUMBER) != FLOAT32
        return 1
    place = place_among(entry, given)
    frame[Frame.WIDE] = 2 * place >= entry[Choice.COUNT]
    return place < entry[Choice.COUNT]


FUNCTIONS = (
    read_options,
    place_among,
    an_int,
    is_integer_of_numpy,
    read_float,
    ordered,
    real_number,
    float_of,
    read_int,
    read_shape,
    read_dtype,
)
