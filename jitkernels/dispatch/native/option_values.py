"""Options of a call: to the key of its context, to the words that the kernel gets, or to its extents."""

# mypy: disable-error-code="name-defined,no-any-return,assignment"
from jitkernels.native.layout import (
    MOST_OPERAND_DIMENSIONS,
    Choice,
    Frame,
    Offset,
    Table,
)
from jitkernels.native.words import address, load, store


def read_options(table: int, slots: int, frame: int) -> int:
    """Everything that is no array; floats as nearest in the dtype of the call."""
    inputs = load(table, 8 * Table.INPUTS)
    options = load(frame, 8 * Frame.OPTIONS)
    store(frame, 8 * Frame.AXIS, -1)
    store(frame, 8 * Frame.LEADING, 0)
    for s in range(load(table, 8 * Table.SYMBOLS)):
        store(frame, 8 * (Frame.EXTENTS + s), -1)
    floats = 0
    for i in range(load(table, 8 * Table.OPTIONS)):
        given = load(slots, 8 * (inputs + i))
        entry = table + 8 * (load(table, 8 * Table.CHOICES) + i * Choice.WORDS)
        kind = load(entry, 8 * Choice.KIND)
        if kind == Choice.OF_VALUES:
            chosen = 0
            if given != 0:
                chosen = place_among(entry, given)
                if chosen == load(entry, 8 * Choice.COUNT):
                    return 0
                chosen = chosen % load(entry, 8 * Choice.DIFFERENT)
            options += chosen * load(entry, 8 * Choice.FACTOR)
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
            out = load(slots, 8 * (load(table, 8 * Table.PARAMETERS) - 1))
            if read_dtype(entry, given, out, frame) == 0:
                return 0
        else:
            if read_float(entry, given, frame, frame + 8 * (Frame.FLOATS + floats)) == 0:
                return 0
            floats += 1
    store(frame, 8 * Frame.OPTIONS, options)
    return 1


def place_among(entry: int, given: int) -> int:
    """Which of its objects an option is; their number if it is none of them."""
    count = load(entry, 8 * Choice.COUNT)
    place = 0
    while place < count and load(entry, 8 * (Choice.VALUES + place)) != given:
        place += 1
    return place


def an_int(given: int, place: int) -> int:
    """The number that Python's or NumPy's integer is, to a place; 0 for anything else."""
    if load(given, Offset.TYPE) != address("jk_int") and is_integer_of_numpy(given) == 0:
        return 0
    number = PyLong_AsLong(given)
    if number == -1 and PyErr_Occurred() != 0:
        PyErr_Clear()
        return 0
    store(place, 0, number)
    return 1


def is_integer_of_numpy(given: int) -> int:
    """Whether this is an integer of NumPy, which Python's own functions take as one of theirs."""
    scalars = address("jk_scalars")
    kind = load(given, Offset.TYPE)
    for i in range(load(scalars)):
        if load(scalars, 24 * i + 8) == kind:
            number = load(scalars, 24 * i + 16)
            return number > BOOL and number < FLOAT32
    return 0


def read_float(entry: int, given: int, frame: int, value: int) -> int:
    """A float, or its default, to where the kernel reads it."""
    store(value, 0, load(entry, 8 * (Choice.DEFAULTS + (load(frame, 8 * Frame.WIDE) == 1))))
    if given != 0:
        if real_number(given, value) == 0:
            return 0
        if load(frame, 8 * Frame.WIDE) != 1:
            exact = load(value)
            store(value, 0, nearest_single(exact))
            if load(value) << 1 == 0 and exact << 1 != 0:
                store(value, 0, load(value) | LEAST_SINGLE_BITS)  # what is not 0 does not become it
        bits = load(value)
        if bits & INFINITY_BITS == INFINITY_BITS:
            return 0
        if bits < 0 and (load(entry, 8 * Choice.COUNT) != 0 or bits << 1 == 0):
            return 0
        if bits > load(entry, 8 * Choice.MOST):
            return 0
    return 1


def real_number(given: int, place: int) -> int:
    """The number that Python's or NumPy's float or integer is, to a place; 0 for anything else."""
    kind = load(given, Offset.TYPE)
    if kind == address("jk_float") or kind == address("jk_float64_type"):
        store(place, 0, load(given, Offset.FLOAT_VALUE))
        return 1
    if kind != address("jk_int") and kind != address("jk_float32_type") and is_integer_of_numpy(given) == 0:
        return 0
    return float_of(given, place)


def float_of(given: int, place: int) -> int:
    """The float that Python makes of a number, to a place; 0 where it makes none."""
    number = PyNumber_Float(given)
    if number == 0:
        PyErr_Clear()
        return 0
    store(place, 0, load(number, Offset.FLOAT_VALUE))
    Py_DecRef(number)
    return 1


def read_int(entry: int, given: int, frame: int) -> int:
    """An int within its limits, or its default, as an extent."""
    place = frame + 8 * (Frame.EXTENTS + load(entry, 8 * Choice.FACTOR))
    if given == 0:
        store(place, 0, load(entry, 8 * Choice.VALUES))
        return load(entry, 8 * Choice.COUNT)
    if an_int(given, place) == 0:
        return 0
    return load(place) >= load(entry, 8 * Choice.LEAST) and load(place) <= load(entry, 8 * Choice.MOST)


def read_shape(given: int, frame: int) -> int:
    """The leading dimensions that a call names: an int, or several."""
    if given == 0:
        return 0
    if is_sequence(given) == 0:
        store(frame, 8 * Frame.LEADING, 1)
        return an_int(given, frame + 8 * Frame.LEAD) and load(frame, 8 * Frame.LEAD) >= 0
    count = load(given, Offset.TUPLE_SIZE)
    if count > MOST_OPERAND_DIMENSIONS - 2:
        return 0
    store(frame, 8 * Frame.LEADING, count)
    for d in range(count):
        place = frame + 8 * (Frame.LEAD + d)
        if an_int(load(items_of(given), 8 * d), place) == 0:
            return 0
        if load(place) < 0:
            return 0
    return 1


def read_dtype(entry: int, given: int, out: int, frame: int) -> int:
    """The dtype that a call names, or else that of the result it gave, or else the wider one."""
    if given == 0 or given == address("jk_none"):
        if out != 0:
            if load(out, Offset.TYPE) == address("jk_ndarray"):
                store(frame, 8 * Frame.WIDE, load(out, Offset.ARRAY_DTYPE) != address("jk_float32"))
        return 1
    place = place_among(entry, given)
    store(frame, 8 * Frame.WIDE, 2 * place >= load(entry, 8 * Choice.COUNT))
    return place < load(entry, 8 * Choice.COUNT)


FUNCTIONS = (
    read_options,
    place_among,
    an_int,
    is_integer_of_numpy,
    read_float,
    real_number,
    float_of,
    read_int,
    read_shape,
    read_dtype,
)
