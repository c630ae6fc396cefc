"""Calls on whole arrays of one dtype, which need no conversion: elementwise, functions of rows, numbers alone."""

# mypy: disable-error-code="name-defined,no-any-return,assignment"
from jitkernels.native.layout import (
    KEY_BASE,
    MOST_CALL_WORDS,
    Choice,
    Known,
    Offset,
    Record,
    Table,
)
from jitkernels.native.words import address, call, load, load32, stack, store, unlikely


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


def plain_rows(table: int, slots: int) -> int:
    """Functions of rows on whole arrays of one dtype, with vectors beside them and all options left out; else 0."""
    inputs = load(table, 8 * Table.INPUTS)
    last = load(table, 8 * Table.PARAMETERS) - 1
    first = load(slots)
    if first == 0 or load(table, 8 * Table.EXACT):
        return 0
    if load(first, Offset.TYPE) != address("jk_ndarray"):
        return 0
    for i in range(inputs, last):
        if load(slots, 8 * i) != 0:
            return 0
    descr = load(first, Offset.ARRAY_DTYPE)
    wide = descr == address("jk_float64")
    if wide == 0 and descr != address("jk_float32"):
        return 0
    dimensions = load32(first, Offset.ARRAY_DIMENSIONS)
    if dimensions == 0 or load32(first, Offset.ARRAY_FLAGS) & READABLE != READABLE:
        return 0
    extents = load(first, Offset.ARRAY_EXTENTS)
    n = load(extents, 8 * (dimensions - 1))
    rows = 1
    for d in range(dimensions - 1):
        rows = rows * load(extents, 8 * d)
    if rows == 0 or n == 0:
        return 0
    words = stack(MOST_CALL_WORDS)
    store(words, 0, load(first, Offset.ARRAY_DATA))
    at = 1
    options = 0
    for i in range(1, inputs):
        other = load(slots, 8 * i)
        present = other != 0 and other != address("jk_none")
        leader = load(record(table, i), 8 * Record.LEADER)
        if present:
            if load(other, Offset.TYPE) != address("jk_ndarray") or load(other, Offset.ARRAY_DTYPE) != descr:
                return 0
            if alike(other, 1, extents + 8 * (dimensions - 1), READABLE) == 0:
                return 0
            store(words, 8 * at, load(other, Offset.ARRAY_DATA))
            at += 1
            options += load(record(table, i), 8 * Record.WHEN)
        if leader < 0 and present == 0:
            return 0
        if leader >= 0:
            led = load(slots, 8 * leader)
            if present != (led != 0 and led != address("jk_none")):
                return 0
    key = ((options * 2 + wide + KEY_BASE) << 6 | class_of(rows)) << 6 | class_of(n)
    context = context_of(table, key)
    if context == 0:
        return 0
    if unlikely(due(context)):
        return 0
    out = load(slots, 8 * last)
    if out != 0 and out != address("jk_none"):
        if load(out, Offset.TYPE) != address("jk_ndarray") or load(out, Offset.ARRAY_DTYPE) != descr:
            return 0
        if alike(out, dimensions, extents, WRITABLE) == 0:
            return 0
        data = load(out, Offset.ARRAY_DATA)
        item = 4 + 4 * wide
        if load(words) != data and apart(load(words), rows * n * item, data, rows * n * item) == 0:
            return 0
        for i in range(1, at):
            if apart(load(words, 8 * i), n * item, data, rows * n * item) == 0:
                return 0
        Py_IncRef(out)
    else:
        Py_IncRef(descr)
        out = PyArray_Empty(dimensions, extents, descr, 0)
        if out == 0:
            PyErr_Clear()
            return 0
        data = load(out, Offset.ARRAY_DATA)
    store(words, 8 * at, data)
    store(words, 8 * (at + 1), rows)
    store(words, 8 * (at + 2), n)
    at += 3
    for i in range(load(table, 8 * Table.OPTIONS)):
        choice = table + 8 * (load(table, 8 * Table.CHOICES) + i * Choice.WORDS)
        if load(choice, 8 * Choice.KIND) == Choice.A_FLOAT:
            store(words, 8 * at, choice + 8 * Choice.DEFAULT)
            at += 1
    status = invoked(load(context, 8 * Known.ENTRY), words, at, load(context, 8 * Known.LONG))
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


FUNCTIONS = (
    plain,
    plain_rows,
    of_floats,
    alike,
    apart,
    invoked,
)
