"""What Python calls: kernels through their context, everyday functions through their table.

Plain elementwise calls are served here at once; all others go through `general`.
"""

# mypy: disable-error-code="name-defined,no-any-return,assignment"
from jitkernels.native.layout import (
    KEY_BASE,
    MOST_OPERANDS,
    MOST_SLOTS,
    Context,
    Frame,
    Known,
    Offset,
    Operand,
    Table,
)
from jitkernels.native.words import address, call, load, load32, stack, store, unlikely

ERROR = 1
"""What `general` returns when Python has an exception set; 0 means that Python must serve the call."""


def jk_launch(self: int, objects: int, given: int, names: int) -> int:
    """What stands behind a kernel: its context's checks and call; Python for arguments that do not pass."""
    context = load(load(self, SLOT), Offset.ARRAY_DATA)
    if given == load(context, 8 * Context.COUNT) and names == 0:
        left = load(context, 8 * Context.COUNTDOWN) - 1
        store(context, 8 * Context.COUNTDOWN, left)
        python = load(context, 8 * Context.PYTHON)
        if left > 0:
            if call(load(context, 8 * Context.CALL), context, objects) == 0:
                if python == address("jk_none"):
                    Py_IncRef(address("jk_none"))
                    return address("jk_none")
                return PyObject_Vectorcall(python, objects, given, 0)
    return PyObject_Vectorcall(load(context, 8 * Context.SLOW), objects, given, names)


def jk_everyday(self: int, objects: int, given: int, names: int) -> int:
    table = load(load(self, SLOT), Offset.ARRAY_DATA)
    slots = stack(MOST_SLOTS)
    if load(address("jk_bypass")) == 0 and sorted_into(table, slots, objects, given, names) != 0:
        result = plain(table, slots)
        if unlikely(result == 0):
            result = general(table, slots)
        if result > ERROR or result < 0:
            return result
        if result == ERROR:
            return 0
    return PyObject_Vectorcall(load(table, 8 * Table.SLOW), objects, given, names)


def sorted_into(table: int, slots: int, objects: int, given: int, names: int) -> int:
    """Arguments by position and name to the slots of their parameters, 0 for absent ones; 0 if they do not fit."""
    count = load(table, 8 * Table.PARAMETERS)
    if unlikely(given > count):
        return 0
    for i in range(given):
        store(slots, 8 * i, load(objects, 8 * i))
    for i in range(given, count):
        store(slots, 8 * i, 0)
    if names != 0:
        for j in range(load(names, Offset.TUPLE_SIZE)):
            name = load(names, Offset.TUPLE_ITEMS + 8 * j)
            place = count - 1
            while place >= 0 and load(table, 8 * Table.NAMES + 8 * place) != name:
                place -= 1
            if unlikely(place < given):
                return 0
            if unlikely(load(slots, 8 * place) != 0):
                return 0
            store(slots, 8 * place, load(objects, 8 * (given + j)))
    return 1


def plain(table: int, slots: int) -> int:
    """Elementwise kernels on whole arrays of one shape and dtype, which need none of the rest; else 0."""
    count = load(table, 8 * Table.ELEMENTWISE)
    if count == 0:
        return 0
    first = load(slots)
    if first == 0:
        return 0
    if load(first, Offset.TYPE) != address("jk_ndarray"):
        return of_floats(table, slots, count)
    descr = load(first, Offset.ARRAY_DTYPE)
    wide = descr == address("jk_float64")
    if wide == 0 and descr != address("jk_float32"):
        return 0
    dimensions = load32(first, Offset.ARRAY_DIMENSIONS)
    extents = load(first, Offset.ARRAY_EXTENTS)
    if load32(first, Offset.ARRAY_FLAGS) & READABLE != READABLE:
        return 0
    n = 1
    for d in range(dimensions):
        n = n * load(extents, 8 * d)
    for i in range(1, count):
        other = load(slots, 8 * i)
        if other == 0:
            return 0
        if load(other, Offset.TYPE) != address("jk_ndarray") or load(other, Offset.ARRAY_DTYPE) != descr:
            return 0
        if alike(other, dimensions, extents, READABLE) == 0:
            return 0
    context = context_of(table, (wide + KEY_BASE) << 6 | class_of(n))
    if context == 0 or n == 0:
        return 0
    entry = load(context, 8 * Known.ENTRY)
    out = load(slots, 8 * count)
    size = n * (4 + 4 * wide)
    if out != 0 and out != address("jk_none"):
        if load(out, Offset.TYPE) != address("jk_ndarray") or load(out, Offset.ARRAY_DTYPE) != descr:
            return 0
        if alike(out, dimensions, extents, WRITABLE) == 0:
            return 0
        data = load(out, Offset.ARRAY_DATA)
        for i in range(count):
            one = load(load(slots, 8 * i), Offset.ARRAY_DATA)
            if one != data and apart(one, size, data, size) == 0:
                return 0
        if unlikely(due(context)):
            return 0
        Py_IncRef(out)
    else:
        if unlikely(due(context)):
            return 0
        Py_IncRef(descr)
        out = PyArray_Empty(dimensions, extents, descr, 0)
        if out == 0:
            PyErr_Clear()
            return 0
        data = load(out, Offset.ARRAY_DATA)
    words = stack(4)
    for i in range(count):
        store(words, 8 * i, load(load(slots, 8 * i), Offset.ARRAY_DATA))
    store(words, 8 * count, data)
    store(words, 8 * (count + 1), n)
    if load(context, 8 * Known.LONG):
        status = invoked(entry, words, count + 2, 1)
    elif count == 1:
        status = call(entry, load(words), data, n)
    else:
        status = call(entry, load(words), load(words, 8), data, n)
    if unlikely(status != 0):
        Py_DecRef(out)
        return 0
    return out


def of_floats(table: int, slots: int, count: int) -> int:
    """An elementwise kernel of nothing but floats of Python, or of NumPy; else 0."""
    kind = load(load(slots), Offset.TYPE)
    wide = kind == address("jk_float") or kind == address("jk_float64_type")
    if wide == 0 and kind != address("jk_float32_type"):
        return 0
    context = context_of(table, (wide + KEY_BASE) << 6)
    if context == 0 or load(slots, 8 * count) != 0:
        return 0
    words = stack(4)
    for i in range(count):
        number = load(slots, 8 * i)
        if number == 0:
            return 0
        if load(number, Offset.TYPE) != kind:
            return 0
        store(words, 8 * i, number + Offset.FLOAT_VALUE)
    if unlikely(due(context)):
        return 0
    descr = address("jk_float64") if wide else address("jk_float32")
    Py_IncRef(descr)
    out = PyArray_Empty(0, 0, descr, 0)
    if out == 0:
        PyErr_Clear()
        return 0
    data = load(out, Offset.ARRAY_DATA)
    entry = load(context, 8 * Known.ENTRY)
    if count == 1:
        status = call(entry, load(words), data, 1)
    else:
        status = call(entry, load(words), load(words, 8), data, 1)
    if unlikely(status != 0):
        Py_DecRef(out)
        return 0
    return out


def alike(array: int, dimensions: int, extents: int, flags: int) -> int:
    """Whether an array has these extents, and lies as the flags say."""
    if (
        load32(array, Offset.ARRAY_FLAGS) & flags != flags
        or load32(array, Offset.ARRAY_DIMENSIONS) != dimensions
    ):
        return 0
    own = load(array, Offset.ARRAY_EXTENTS)
    for d in range(dimensions):
        if load(own, 8 * d) != load(extents, 8 * d):
            return 0
    return 1


def apart(one: int, one_bytes: int, other: int, other_bytes: int) -> int:
    """Whether two ranges of memory do not overlap."""
    return one + one_bytes <= other or other + other_bytes <= one


def invoked(entry: int, words: int, count: int, long: int) -> int:
    """Call the entry with so many words; long work releases the interpreter lock."""
    if long:
        state = PyEval_SaveThread()
        status = called(entry, words, count)
        PyEval_RestoreThread(state)
        return status
    return called(entry, words, count)


def general(table: int, slots: int) -> int:
    """Any call: the results, `ERROR`, or 0 if Python must serve it. Releases whatever it made on the way."""
    frame = stack(Frame.WORDS + MOST_OPERANDS * Operand.WORDS)
    count = load(table, 8 * Table.INPUTS) + load(table, 8 * Table.OUTPUTS)
    for i in range(count):
        store(operand(frame, i), 8 * Operand.OWNED, 0)
        store(operand(frame, i), 8 * Operand.COPY, 0)
    store(frame, 8 * Frame.MEMORY, 0)
    result = served(table, slots, frame)
    for i in range(count):
        if load(operand(frame, i), 8 * Operand.OWNED) != 0:
            Py_DecRef(load(operand(frame, i), 8 * Operand.OWNED))
    if load(frame, 8 * Frame.MEMORY) != 0:
        free(load(frame, 8 * Frame.MEMORY))
    return result


def served(table: int, slots: int, frame: int) -> int:
    if read_inputs(table, slots, frame) == 0:
        return 0
    if read_options(table, slots, frame) == 0:
        return 0
    if bind_inputs(table, frame) == 0:
        return 0
    context = find_context(table, frame)
    if context == 0:
        if load(frame, 8 * Frame.EMPTY) == 0:
            return 0
    elif unlikely(due(context)):
        return 0
    return with_results(table, slots, frame, context)


FUNCTIONS = (
    jk_launch,
    jk_everyday,
    sorted_into,
    plain,
    of_floats,
    alike,
    apart,
    invoked,
    general,
    served,
)
