"""The dispatcher behind ``jk.softmax`` and its like: from any ordinary call to a kernel's entry, in machine code.

One object serves every everyday function; what a function takes stands in its table (`jitkernels.native.layout`).
A call passes through: arguments to their slots, inputs to operands (lists and numbers through NumPy's own
conversions), one dtype, extents from shapes, a context by (dtype, options, size class), results allocated or checked,
then the entry. Operands that do not lie as the kernel wants them (other dtypes, strides, broadcasts, an axis in the
middle) pass through a buffer in blocks that stay in the first-level cache. Whatever is wrong or rare goes to Python,
which raises the error or does the same (`jitkernels.attrs.binding`); nothing has been written then.

These functions are translated by `jitkernels.native.words`; all values are 64-bit words.
"""

# mypy: disable-error-code="name-defined"
# ruff: noqa: F821
from jitkernels.native.layout import (
    BUFFER_BYTES,
    MOST_OPERAND_DIMENSIONS,
    Choice,
    Context,
    Frame,
    Known,
    Offset,
    Operand,
    Record,
    Table,
)
from jitkernels.native.words import address, call, leading_zeros, load, load8, load32, stack, store, unlikely

ERROR = 1
"""What `general` returns when Python has an exception set; 0 means that Python must serve the call."""


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


def jk_launch(self: int, objects: int, given: int) -> int:
    """What stands behind a kernel: its context's checks and call; Python for arguments that do not pass."""
    context = load(load(self, SLOT), Offset.ARRAY_DATA)
    if given == load(context, 8 * Context.COUNT):
        left = load(context, 8 * Context.COUNTDOWN) - 1
        store(context, 8 * Context.COUNTDOWN, left)
        python = load(context, 8 * Context.PYTHON)
        if left > 0:
            if call(load(context, 8 * Context.CALL), context, objects) == 0:
                if python == address("jk_none"):
                    Py_IncRef(address("jk_none"))
                    return address("jk_none")
                return PyObject_Vectorcall(python, objects, given, 0)
    return PyObject_Vectorcall(load(context, 8 * Context.SLOW), objects, given, 0)


def sorted_into(table: int, slots: int, objects: int, given: int, names: int) -> int:
    """Arguments by position and name to the slots of their parameters; 0 for absent ones. Returns 0 if they do not fit."""
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


def context_of(table: int, key: int) -> int:
    """The context of a key, or 0."""
    mask = load(table, 8 * Table.MASK)
    keys = load(table, 8 * Table.KEYS)
    place = hashed(key) & mask
    while 1:
        found = load(keys, 16 * place)
        if found == key:
            return load(keys, 16 * place + 8)
        if found == 0:
            return 0
        place = (place + 1) & mask
    return 0


def hashed(key: int) -> int:
    return (key * 0x9E3779B97F4A7C1) >> 32


def class_of(extent: int) -> int:
    """The power of two that an extent goes up to."""
    return 64 - leading_zeros(extent - 1) if extent > 1 else 0


def due(context: int) -> int:
    """Count a call; true when Python asked to see this one."""
    left = load(context, 8 * Known.COUNTDOWN) - 1
    store(context, 8 * Known.COUNTDOWN, left)
    return left <= 0


def apart(one: int, one_bytes: int, other: int, other_bytes: int) -> int:
    """Whether two ranges of memory do not overlap."""
    return one + one_bytes <= other or other + other_bytes <= one


def plain(table: int, slots: int) -> int:
    """Elementwise kernels on whole arrays of one shape and dtype, which need none of the rest; else 0."""
    count = load(table, 8 * Table.ELEMENTWISE)
    if count == 0:
        return 0
    first = load(slots)
    if first == 0:
        return 0
    if load(first, Offset.TYPE) != address("jk_ndarray"):
        return 0
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


def operand(frame: int, number: int) -> int:
    return frame + 8 * (Frame.WORDS + number * Operand.WORDS)


def record(table: int, number: int) -> int:
    return table + 8 * (Table.RECORDS + number * Record.WORDS)


def served(table: int, slots: int, frame: int) -> int:
    if read_inputs(table, slots, frame) == 0:
        return 0
    if read_options(table, slots, frame) == 0:
        return 0
    if bind_inputs(table, frame) == 0:
        return 0
    context = find_context(table, frame)
    if context == 0:
        return 0
    if unlikely(due(context)):
        return 0
    return with_results(table, slots, frame, context)


def read_inputs(table: int, slots: int, frame: int) -> int:
    """Every input as an aligned array of a dtype that `copy_run` knows; decides the dtype of the kernel."""
    inputs = load(table, 8 * Table.INPUTS)
    options = 0
    # First all conversions, which may run Python code that changes other arrays, then all reading.
    for i in range(inputs):
        given = load(slots, 8 * i)
        entry = record(table, i)
        own = operand(frame, i)
        present = given != 0 and given != address("jk_none")
        store(own, 8 * Operand.ARRAY, 0)
        store(own, 8 * Operand.PRESENT, present)
        leader = load(entry, 8 * Record.LEADER)
        if present == 0 and leader < 0:
            return 0
        if leader >= 0 and load(operand(frame, leader), 8 * Operand.PRESENT) != present:
            return 0
        if present:
            options += load(entry, 8 * Record.WHEN)
            array = given
            if load(given, Offset.TYPE) != address("jk_ndarray"):
                if is_number(own, given) == 0:
                    array = converted(own, given)
                    if array == 0:
                        PyErr_Clear()
                        return 0
                    store(own, 8 * Operand.OWNED, array)
            store(own, 8 * Operand.ARRAY, array)
    wide = 0
    narrow = 0
    for i in range(inputs):
        own = operand(frame, i)
        array = load(own, 8 * Operand.ARRAY)
        if array != 0:
            weak = load(array, Offset.TYPE) == address("jk_float")
            if load(array, Offset.TYPE) == address("jk_ndarray"):
                if read_array(own, array) == 0:
                    return 0
            kind = load(own, 8 * Operand.KIND)
            if load(record(table, i), 8 * Record.INTEGER):
                if weak or kind < 1 or kind > 9 or kind == 8:
                    return 0
            elif weak == 0:
                if kind == FLOAT64 or (kind > 4 and kind < FLOAT32):
                    wide = 1
                if kind == FLOAT32 or kind == FLOAT16:
                    narrow = 1
    store(frame, 8 * Frame.WIDE, 0 if narrow and wide == 0 else 1)
    store(frame, 8 * Frame.OPTIONS, options)
    return 1


def is_number(own: int, given: int) -> int:
    """Whether this is a float, or a number of NumPy, whose value is read where it lies."""
    kind = load(given, Offset.TYPE)
    number = FLOAT64
    item = 8
    if kind != address("jk_float"):
        scalars = address("jk_scalars")
        i = load(scalars) - 1
        while i >= 0 and load(scalars, 24 * i + 8) != kind:
            i -= 1
        if i < 0:
            return 0
        number = load(scalars, 24 * i + 16)
        item = load(scalars, 24 * i + 24)
    store(own, 8 * Operand.DATA, given + Offset.FLOAT_VALUE)
    number_at(own, number, item)
    return 1


def number_at(own: int, kind: int, item: int) -> int:
    store(own, 8 * Operand.KIND, kind)
    store(own, 8 * Operand.ITEM, item)
    store(own, 8 * Operand.DIMENSIONS, 0)
    store(own, 8 * Operand.CONTIGUOUS, 1)
    return 0


def converted(own: int, given: int) -> int:
    """A new float or array for an integer or a list; 0 for anything else."""
    kind = load(given, Offset.TYPE)
    if kind == address("jk_int") or kind == address("jk_bool"):
        number = PyNumber_Float(given)
        store(own, 8 * Operand.DATA, number + Offset.FLOAT_VALUE)
        number_at(own, FLOAT64, 8)
        return number
    if kind == address("jk_list"):
        count = load(given, Offset.TUPLE_SIZE)
        items = load(given, Offset.LIST_ITEMS)
    elif kind == address("jk_tuple"):
        count = load(given, Offset.TUPLE_SIZE)
        items = given + Offset.TUPLE_ITEMS
    else:
        return 0
    for i in range(count):
        if load(load(items, 8 * i), Offset.TYPE) != address("jk_float"):
            return PyArray_FromAny(given, 0, 0, 0, ALIGNED, 0)
    Py_IncRef(address("jk_float64"))
    extent = stack(1)
    store(extent, 0, count)
    array = PyArray_Empty(1, extent, address("jk_float64"), 0)
    if array != 0:
        data = load(array, Offset.ARRAY_DATA)
        for i in range(count):
            store(data, 8 * i, load(load(items, 8 * i), Offset.FLOAT_VALUE))
    return array


def read_array(own: int, array: int) -> int:
    """What an ndarray says of itself; 0 where it is nothing that `copy_run` takes."""
    descr = load(array, Offset.ARRAY_DTYPE)
    kind = load32(descr, Offset.DTYPE_NUMBER)
    order = load8(descr, Offset.DTYPE_ORDER)
    flags = load32(array, Offset.ARRAY_FLAGS)
    dimensions = load32(array, Offset.ARRAY_DIMENSIONS)
    if kind < 0 or (kind > FLOAT64 and (kind != FLOAT16 or HAS_FLOAT16 == 0)):
        return 0
    if (
        (order != NATIVE and order != NO_ORDER)
        or flags & ALIGNED == 0
        or dimensions > MOST_OPERAND_DIMENSIONS - 2
    ):
        return 0
    store(own, 8 * Operand.DATA, load(array, Offset.ARRAY_DATA))
    store(own, 8 * Operand.KIND, kind)
    store(own, 8 * Operand.ITEM, load(descr, Offset.DTYPE_BYTES))
    store(own, 8 * Operand.DIMENSIONS, dimensions)
    store(own, 8 * Operand.CONTIGUOUS, flags & CONTIGUOUS)
    extents = load(array, Offset.ARRAY_EXTENTS)
    strides = load(array, Offset.ARRAY_STRIDES)
    for d in range(dimensions):
        store(own, 8 * (Operand.EXTENTS + d), load(extents, 8 * d))
        store(own, 8 * (Operand.STRIDES + d), load(strides, 8 * d))
    return 1


def read_options(table: int, slots: int, frame: int) -> int:
    """Options to their part of the key; floats to the words that the kernel gets, nearest in its dtype."""
    inputs = load(table, 8 * Table.INPUTS)
    options = load(frame, 8 * Frame.OPTIONS)
    store(frame, 8 * Frame.AXIS, -1)
    floats = 0
    for i in range(load(table, 8 * Table.OPTIONS)):
        given = load(slots, 8 * (inputs + i))
        entry = table + 8 * (load(table, 8 * Table.CHOICES) + i * Choice.WORDS)
        kind = load(entry, 8 * Choice.KIND)
        if kind == Choice.OF_VALUES:
            chosen = load(entry, 8 * Choice.DEFAULT)
            if given != 0:
                count = load(entry, 8 * Choice.COUNT)
                chosen = 0
                while chosen < count and load(entry, 8 * (Choice.VALUES + chosen)) != given:
                    chosen += 1
                if chosen == count:
                    return 0
            options += chosen * load(entry, 8 * Choice.FACTOR)
        elif kind == Choice.AXIS:
            if given != 0:
                if load(given, Offset.TYPE) != address("jk_int"):
                    return 0
                axis = PyLong_AsLong(given)
                if axis == -1 and PyErr_Occurred() != 0:
                    PyErr_Clear()
                    return 0
                store(frame, 8 * Frame.AXIS, axis)
        else:
            value = frame + 8 * (Frame.FLOATS + floats)
            store(value, 0, load(entry, 8 * Choice.DEFAULT))
            if given != 0:
                if load(given, Offset.TYPE) != address("jk_float"):
                    return 0
                store(value, 0, load(given, Offset.FLOAT_VALUE))
                if load(frame, 8 * Frame.WIDE) == 0:
                    copy_run(TO_FLOAT32, value, 0, value, 0, 1)
                    copy_run(TO_FLOAT64, value, 0, value, 0, 1)
                bits = load(value)
                if bits & INFINITY_BITS == INFINITY_BITS:
                    return 0
                if bits < 0 and (load(entry, 8 * Choice.COUNT) != 0 or bits << 1 == 0):
                    return 0
            floats += 1
    store(frame, 8 * Frame.OPTIONS, options)
    return 1


def bind_inputs(table: int, frame: int) -> int:
    """Leading dimensions broadcast, all other extents agree; every operand in the order of its loop."""
    inputs = load(table, 8 * Table.INPUTS)
    for s in range(load(table, 8 * Table.SYMBOLS)):
        store(frame, 8 * (Frame.EXTENTS + s), -1)
    store(frame, 8 * Frame.LEADING, 0)
    store(frame, 8 * Frame.MISSING, 0)
    store(frame, 8 * Frame.MOVED, -1)
    spread = load(table, 8 * Table.SPREAD)
    for i in range(inputs):
        own = operand(frame, i)
        if load(own, 8 * Operand.PRESENT):
            entry = record(table, i)
            leads = load(entry, 8 * Record.LEADS)
            fixed = load(entry, 8 * Record.FIXED)
            dimensions = load(own, 8 * Operand.DIMENSIONS)
            if leads and load(frame, 8 * Frame.AXIS) != -1:
                if move_axis(frame, own) == 0:
                    return 0
            if dimensions == fixed - 1 and load(entry, 8 * Record.OPTIONAL):
                # A vector where a matrix of one column may stand: that column, and none in the result.
                store(own, 8 * (Operand.EXTENTS + dimensions), 1)
                store(own, 8 * (Operand.STRIDES + dimensions), load(own, 8 * Operand.ITEM))
                dimensions += 1
                store(own, 8 * Operand.DIMENSIONS, dimensions)
                store(frame, 8 * Frame.MISSING, 1)
            if dimensions < fixed or (leads == 0 and dimensions > fixed):
                return 0
            if leads:
                if broadcast(frame, own, dimensions - fixed) == 0:
                    return 0
            for e in range(fixed):
                extent = load(own, 8 * (Operand.EXTENTS + dimensions - fixed + e))
                factor = load(entry, 8 * (Record.SHAPE + 3 * e))
                symbol = frame + 8 * (Frame.EXTENTS + load(entry, 8 * (Record.SHAPE + 3 * e + 1)))
                if load(symbol) == -1:
                    store(symbol, 0, extent // factor)
                if load(symbol) * factor != extent:
                    return 0
    if spread >= 0:
        total = 1
        for d in range(load(frame, 8 * Frame.LEADING)):
            total = total * load(frame, 8 * (Frame.LEAD + d))
        store(frame, 8 * (Frame.EXTENTS + spread), total)
    store(frame, 8 * Frame.FORTRAN, 0)
    if load(table, 8 * Table.ELEMENTWISE) and load(frame, 8 * Frame.LEADING) > 1:
        store(frame, 8 * Frame.FORTRAN, all_fortran(frame, inputs))
    for i in range(inputs):
        own = operand(frame, i)
        if load(own, 8 * Operand.PRESENT):
            lay_out(table, frame, own, record(table, i))
    return 1


def all_fortran(frame: int, inputs: int) -> int:
    """Whether all operands of an elementwise kernel lie in Fortran order: that is as good as C order then."""
    fortran = 1
    for i in range(inputs):
        own = operand(frame, i)
        array = load(own, 8 * Operand.ARRAY)
        if (
            load(array, Offset.TYPE) != address("jk_ndarray")
            or load(own, 8 * Operand.CONTIGUOUS)
            or load32(array, Offset.ARRAY_FLAGS) & IN_FORTRAN_ORDER == 0
            or load(own, 8 * Operand.DIMENSIONS) != load(frame, 8 * Frame.LEADING)
            or alike(array, load(frame, 8 * Frame.LEADING), frame + 8 * Frame.LEAD, 0) == 0
        ):
            fortran = 0
    return fortran


def move_axis(frame: int, own: int) -> int:
    """The axis of a call, counted from the end by the first operand, to the end."""
    dimensions = load(own, 8 * Operand.DIMENSIONS)
    axis = load(frame, 8 * Frame.AXIS)
    if load(frame, 8 * Frame.MOVED) < 0:
        if axis >= dimensions or axis < -dimensions:
            return 0
        if axis >= 0:
            axis -= dimensions
        store(frame, 8 * Frame.AXIS, axis)
        store(frame, 8 * Frame.MOVED, 0)
        if axis == -1:
            store(frame, 8 * Frame.MOVED, -1)
            return 1
    if dimensions + axis < 0:
        return 0
    if load(own, 8 * Operand.DIMENSIONS) > 1:
        store(own, 8 * Operand.CONTIGUOUS, 0)
    rotate(own + 8 * Operand.EXTENTS, dimensions + axis, dimensions - 1)
    rotate(own + 8 * Operand.STRIDES, dimensions + axis, dimensions - 1)
    return 1


def rotate(words: int, first: int, last: int) -> int:
    """The first word to the end, those behind it one forward."""
    kept = load(words, 8 * first)
    for d in range(first, last):
        store(words, 8 * d, load(words, 8 * (d + 1)))
    store(words, 8 * last, kept)
    return 0


def broadcast(frame: int, own: int, leading: int) -> int:
    """Widen the common leading dimensions by those of an operand; 0 where they do not broadcast."""
    common = load(frame, 8 * Frame.LEADING)
    while common < leading:
        for d in range(common):
            at = common - d
            store(frame, 8 * (Frame.LEAD + at), load(frame, 8 * (Frame.LEAD + at - 1)))
        store(frame, 8 * Frame.LEAD, 1)
        common += 1
    store(frame, 8 * Frame.LEADING, common)
    for d in range(leading):
        place = frame + 8 * (Frame.LEAD + common - leading + d)
        extent = load(own, 8 * (Operand.EXTENTS + d))
        if extent != load(place):
            if load(place) == 1:
                store(place, 0, extent)
            elif extent != 1:
                return 0
    return 1


def lay_out(table: int, frame: int, own: int, entry: int) -> int:
    """Loop extents and strides of an operand (broadcast ones with stride 0), and whether the kernel can take it as it is."""
    dimensions = load(own, 8 * Operand.DIMENSIONS)
    fixed = load(entry, 8 * Record.FIXED)
    wanted = 7
    if load(entry, 8 * Record.INTEGER) == 0:
        wanted = FLOAT32 + load(frame, 8 * Frame.WIDE)
    store(own, 8 * Operand.WANTED, wanted)
    inner = 1
    for d in range(dimensions - fixed, dimensions):
        inner = inner * load(own, 8 * (Operand.EXTENTS + d))
    store(own, 8 * Operand.INNER, inner)
    same = 1
    if load(entry, 8 * Record.LEADS):
        leading = dimensions - fixed
        common = load(frame, 8 * Frame.LEADING)
        grown = common - leading
        if grown > 0:
            same = 0
            at = dimensions - 1
            while at >= 0:
                store(own, 8 * (Operand.EXTENTS + at + grown), load(own, 8 * (Operand.EXTENTS + at)))
                store(own, 8 * (Operand.STRIDES + at + grown), load(own, 8 * (Operand.STRIDES + at)))
                at -= 1
            for d in range(grown):
                store(own, 8 * (Operand.EXTENTS + d), 1)
                store(own, 8 * (Operand.STRIDES + d), 0)
            store(own, 8 * Operand.DIMENSIONS, dimensions + grown)
        for d in range(common):
            extent = load(frame, 8 * (Frame.LEAD + d))
            if load(own, 8 * (Operand.EXTENTS + d)) != extent:
                same = 0
                store(own, 8 * (Operand.EXTENTS + d), extent)
                store(own, 8 * (Operand.STRIDES + d), 0)
    direct = load(own, 8 * Operand.KIND) == wanted
    if wanted == 7 and load(own, 8 * Operand.KIND) == 9:
        direct = 1
    if load(frame, 8 * Frame.FORTRAN):
        mirror(own)
        same = 1
        store(own, 8 * Operand.CONTIGUOUS, 1)
    if direct and (same == 0 or load(own, 8 * Operand.CONTIGUOUS) == 0):
        direct = lies_in_order(own)
    store(own, 8 * Operand.TURNED, 0)
    if direct == 0 and load(entry, 8 * Record.TURN) != 0 and load(own, 8 * Operand.KIND) == wanted:
        if load(own, 8 * Operand.DIMENSIONS) == 2 and lies_turned(own):
            direct = 1
            store(own, 8 * Operand.TURNED, 1)
            store(frame, 8 * Frame.OPTIONS, load(frame, 8 * Frame.OPTIONS) + load(entry, 8 * Record.TURN))
    store(own, 8 * Operand.DIRECT, direct)
    return 0


def mirror(own: int) -> int:
    """The dimensions of an operand the other way round."""
    last = load(own, 8 * Operand.DIMENSIONS) - 1
    for d in range((last + 1) // 2):
        for words in range(2):
            place = own + 8 * (Operand.EXTENTS + words * MOST_OPERAND_DIMENSIONS)
            kept = load(place, 8 * d)
            store(place, 8 * d, load(place, 8 * (last - d)))
            store(place, 8 * (last - d), kept)
    return 0


def lies_in_order(own: int) -> int:
    """Whether the elements follow one another in the order of the loop."""
    step = load(own, 8 * Operand.ITEM)
    d = load(own, 8 * Operand.DIMENSIONS) - 1
    while d >= 0:
        extent = load(own, 8 * (Operand.EXTENTS + d))
        if extent != 1 and load(own, 8 * (Operand.STRIDES + d)) != step:
            return 0
        step = step * extent
        d -= 1
    return 1


def lies_turned(own: int) -> int:
    """Whether a matrix lies as the transpose of one in order."""
    item = load(own, 8 * Operand.ITEM)
    rows = load(own, 8 * Operand.EXTENTS)
    return load(own, 8 * Operand.STRIDES) == item and load(own, 8 * (Operand.STRIDES + 1)) == item * rows


def find_context(table: int, frame: int) -> int:
    """The context of these options, dtype and extents: of exactly these if there is one, else of their class."""
    top = load(frame, 8 * Frame.OPTIONS) * 2 + load(frame, 8 * Frame.WIDE) + KEY_BASE
    symbols = load(table, 8 * Table.SYMBOLS)
    empty = 0
    exact = top
    classes = top
    largest = 0
    for s in range(symbols):
        extent = load(frame, 8 * (Frame.EXTENTS + s))
        empty = empty or extent == 0
        exact = exact << EXACT_BITS | extent
        classes = classes << 6 | class_of(extent)
        largest = max(largest, extent)
    store(frame, 8 * Frame.EMPTY, empty)
    if load(table, 8 * Table.EXACT) and largest < 1 << EXACT_BITS:
        context = context_of(table, exact | 1 << 62)
        if context != 0:
            return context
    return context_of(table, classes)


def with_results(table: int, slots: int, frame: int, context: int) -> int:
    """Allocate or check the results, compute, and give them back."""
    inputs = load(table, 8 * Table.INPUTS)
    outputs = load(table, 8 * Table.OUTPUTS)
    given = load(slots, 8 * (load(table, 8 * Table.PARAMETERS) - 1))
    if given == address("jk_none"):
        given = 0
    items = stack(1)
    store(items, 0, given)
    if given != 0 and outputs > 1:
        if load(given, Offset.TYPE) != address("jk_tuple") or load(given, Offset.TUPLE_SIZE) != outputs:
            return 0
        items = given + Offset.TUPLE_ITEMS
    nothing = 1
    for i in range(outputs):
        total = natural(table, frame, record(table, inputs + i), operand(frame, inputs + i))
        nothing = nothing and total == 0
    if load(frame, 8 * Frame.EMPTY) and (nothing == 0 or load(table, 8 * Table.SPREAD) < 0):
        return 0
    for i in range(outputs):
        own = operand(frame, inputs + i)
        if given != 0:
            if accept(frame, own, load(items, 8 * i)) == 0:
                return 0
        else:
            descr = address("jk_float64") if load(frame, 8 * Frame.WIDE) else address("jk_float32")
            Py_IncRef(descr)
            array = PyArray_Empty(
                load(own, 8 * Operand.DIMENSIONS),
                own + 8 * Operand.EXTENTS,
                descr,
                load(frame, 8 * Frame.FORTRAN),
            )
            if array == 0:
                PyErr_Clear()
                return 0
            store(own, 8 * Operand.OWNED, array)
            store(own, 8 * Operand.ARRAY, array)
            store(own, 8 * Operand.DATA, load(array, Offset.ARRAY_DATA))
            store(own, 8 * Operand.KIND, FLOAT32 + load(frame, 8 * Frame.WIDE))
            store(own, 8 * Operand.ITEM, 4 + 4 * load(frame, 8 * Frame.WIDE))
            store(own, 8 * Operand.CONTIGUOUS, 1)
            if load(frame, 8 * Frame.MOVED) >= 0:
                read_array(own, array)
        lay_out_result(frame, own)
    if given != 0:
        if keep_apart(table, frame) == 0:
            return 0
    if nothing == 0:
        if computed(table, frame, context) == 0:
            return 0
    if given != 0:
        Py_IncRef(given)
        return given
    if outputs == 1:
        array = load(operand(frame, inputs), 8 * Operand.OWNED)
        store(operand(frame, inputs), 8 * Operand.OWNED, 0)
        return array
    both = PyTuple_New(outputs)
    if both == 0:
        return ERROR
    for i in range(outputs):
        store(both, Offset.TUPLE_ITEMS + 8 * i, load(operand(frame, inputs + i), 8 * Operand.OWNED))
        store(operand(frame, inputs + i), 8 * Operand.OWNED, 0)
    return both


def natural(table: int, frame: int, entry: int, own: int) -> int:
    """The shape of a result as the caller sees it; returns its number of elements."""
    dimensions = 0
    total = 1
    if load(entry, 8 * Record.LEADS):
        dimensions = load(frame, 8 * Frame.LEADING)
        for d in range(dimensions):
            store(own, 8 * (Operand.EXTENTS + d), load(frame, 8 * (Frame.LEAD + d)))
            total = total * load(frame, 8 * (Frame.LEAD + d))
    fixed = load(entry, 8 * Record.FIXED)
    inner = 1
    for e in range(fixed):
        factor = load(entry, 8 * (Record.SHAPE + 3 * e))
        extent = factor * load(frame, 8 * (Frame.EXTENTS + load(entry, 8 * (Record.SHAPE + 3 * e + 1))))
        second = load(entry, 8 * (Record.SHAPE + 3 * e + 2))
        if second >= 0:
            extent = extent * load(frame, 8 * (Frame.EXTENTS + second))
        inner = inner * extent
        if e < fixed - 1 or load(entry, 8 * Record.OPTIONAL) == 0 or load(frame, 8 * Frame.MISSING) == 0:
            store(own, 8 * (Operand.EXTENTS + dimensions), extent)
            dimensions += 1
    store(own, 8 * Operand.INNER, inner)
    store(own, 8 * Operand.DIMENSIONS, dimensions)
    if load(frame, 8 * Frame.MOVED) >= 0:
        # The extent of the axis, now last, back to where the caller has it.
        kept = load(own, 8 * (Operand.EXTENTS + dimensions - 1))
        place = dimensions + load(frame, 8 * Frame.AXIS)
        d = dimensions - 1
        while d > place:
            store(own, 8 * (Operand.EXTENTS + d), load(own, 8 * (Operand.EXTENTS + d - 1)))
            d -= 1
        store(own, 8 * (Operand.EXTENTS + place), kept)
    return total * inner


def accept(frame: int, own: int, array: int) -> int:
    """A result that the caller gave: right shape, writeable, of a float dtype; 0 if not."""
    if load(array, Offset.TYPE) != address("jk_ndarray"):
        return 0
    dimensions = load(own, 8 * Operand.DIMENSIONS)
    if alike(array, dimensions, own + 8 * Operand.EXTENTS, WRITEABLE | ALIGNED) == 0:
        return 0
    if read_array(own, array) == 0:
        return 0
    kind = load(own, 8 * Operand.KIND)
    if kind != FLOAT32 and kind != FLOAT64 and (kind != FLOAT16 or load(frame, 8 * Frame.WIDE)):
        return 0
    store(own, 8 * Operand.ARRAY, array)
    return 1


def lay_out_result(frame: int, own: int) -> int:
    """Loop extents and strides of a result, and whether the kernel can write it as it is."""
    dimensions = load(own, 8 * Operand.DIMENSIONS)
    wanted = FLOAT32 + load(frame, 8 * Frame.WIDE)
    store(own, 8 * Operand.WANTED, wanted)
    store(own, 8 * Operand.TURNED, 0)
    direct = load(own, 8 * Operand.KIND) == wanted
    if load(frame, 8 * Frame.MOVED) >= 0:
        place = dimensions + load(frame, 8 * Frame.AXIS)
        rotate(own + 8 * Operand.EXTENTS, place, dimensions - 1)
        rotate(own + 8 * Operand.STRIDES, place, dimensions - 1)
        direct = direct and lies_in_order(own)
    elif load(frame, 8 * Frame.FORTRAN) and load(own, 8 * Operand.OWNED) == 0:
        mirror(own)
        direct = direct and lies_in_order(own)
    elif direct and load(own, 8 * Operand.CONTIGUOUS) == 0:
        direct = lies_in_order(own)
    store(own, 8 * Operand.DIRECT, direct)
    return 0


def keep_apart(table: int, frame: int) -> int:
    """Inputs that a given result would overwrite are copied first; results that share memory are Python's to refuse."""
    inputs = load(table, 8 * Table.INPUTS)
    both = inputs + load(table, 8 * Table.OUTPUTS)
    for i in range(both):
        own = operand(frame, i)
        if load(own, 8 * Operand.ARRAY) != 0:
            low = load(own, 8 * Operand.DATA)
            high = low + load(own, 8 * Operand.ITEM)
            for d in range(load(own, 8 * Operand.DIMENSIONS)):
                reach = load(own, 8 * (Operand.STRIDES + d)) * (load(own, 8 * (Operand.EXTENTS + d)) - 1)
                if reach > 0:
                    high += reach
                else:
                    low += reach
            store(own, 8 * Operand.LOW, low)
            store(own, 8 * Operand.HIGH, high)
    for o in range(inputs, both):
        out = operand(frame, o)
        for i in range(both):
            own = operand(frame, i)
            if i != o and load(own, 8 * Operand.ARRAY) != 0:
                if load(own, 8 * Operand.LOW) < load(out, 8 * Operand.HIGH) and load(
                    out, 8 * Operand.LOW
                ) < load(own, 8 * Operand.HIGH):
                    if i >= inputs:
                        return 0
                    same = load(own, 8 * Operand.DIRECT) and load(out, 8 * Operand.DIRECT)
                    same = same and load(own, 8 * Operand.DATA) == load(out, 8 * Operand.DATA)
                    same = same and load(record(table, i), 8 * Record.IN_PLACE)
                    if same == 0 or load(record(table, o), 8 * Record.IN_PLACE) == 0:
                        if load(own, 8 * Operand.TURNED):
                            return 0
                        store(own, 8 * Operand.COPY, 1)
                        store(own, 8 * Operand.DIRECT, 0)
    return 1


def computed(table: int, frame: int, context: int) -> int:
    """Call the entry: at once where every operand lies as it should, else block by block through a buffer."""
    both = load(table, 8 * Table.INPUTS) + load(table, 8 * Table.OUTPUTS)
    words = stack(MOST_CALL_WORDS)
    direct = 1
    whole = load(table, 8 * Table.SPREAD) < 0
    widest = 1
    buffered = 0
    for i in range(both):
        own = operand(frame, i)
        if load(own, 8 * Operand.ARRAY) != 0:
            store(own, 8 * Operand.BASE, load(own, 8 * Operand.DATA))
            if load(own, 8 * Operand.DIRECT) == 0:
                direct = 0
                buffered += 1
                widest = max(widest, load(own, 8 * Operand.INNER))
                store(own, 8 * Operand.PAIR, pair_of(own, i >= load(table, 8 * Table.INPUTS)))
                collapse(own)
            whole = whole or load(own, 8 * Operand.TURNED)
    if direct:
        return launch(table, frame, context, words, -1)
    for i in range(load(table, 8 * Table.INPUTS)):
        own = operand(frame, i)
        if load(own, 8 * Operand.ARRAY) != 0:
            if load(own, 8 * Operand.DIRECT) == 0 and load(own, 8 * Operand.COPY):
                whole = 1
    lead = 1
    spread = load(table, 8 * Table.SPREAD)
    if spread >= 0:
        lead = load(frame, 8 * (Frame.EXTENTS + spread))
    step = lead
    if whole == 0:
        step = min(lead, max(1, BUFFER_BYTES // 8 // widest))
    total = 0
    for i in range(both):
        own = operand(frame, i)
        if load(own, 8 * Operand.ARRAY) != 0 and load(own, 8 * Operand.DIRECT) == 0:
            count = load(own, 8 * Operand.INNER)
            if load(record(table, i), 8 * Record.LEADS):
                count = count * step
            store(own, 8 * Operand.BASE, total)
            total += (count * 8 + 127) // 64 * 64
    area = (stack(STACK_BUFFER_BYTES // 8 + 8) + 63) // 64 * 64
    if total > STACK_BUFFER_BYTES:
        memory = malloc(total + 64)
        if memory == 0:
            return 0
        store(frame, 8 * Frame.MEMORY, memory)
        area = (memory + 63) // 64 * 64
    for i in range(both):
        own = operand(frame, i)
        if load(own, 8 * Operand.ARRAY) != 0 and load(own, 8 * Operand.DIRECT) == 0:
            store(own, 8 * Operand.BASE, load(own, 8 * Operand.BASE) + area)
            if i < load(table, 8 * Table.INPUTS) and load(record(table, i), 8 * Record.LEADS) == 0:
                transfer(own, 0, load(own, 8 * Operand.INNER), 1)
    start = 0
    while start < lead:
        count = min(step, lead - start)
        if one_block(table, frame, context, words, start, count) == 0:
            return 0
        start += count
    return 1


def one_block(table: int, frame: int, context: int, words: int, start: int, count: int) -> int:
    inputs = load(table, 8 * Table.INPUTS)
    both = inputs + load(table, 8 * Table.OUTPUTS)
    for i in range(both):
        own = operand(frame, i)
        if load(own, 8 * Operand.ARRAY) != 0:
            inner = load(own, 8 * Operand.INNER)
            if load(record(table, i), 8 * Record.LEADS):
                if load(own, 8 * Operand.DIRECT):
                    item = load(own, 8 * Operand.ITEM)
                    store(own, 8 * Operand.BASE, load(own, 8 * Operand.DATA) + start * inner * item)
                elif i < inputs:
                    transfer(own, start * inner, count * inner, 1)
    if launch(table, frame, context, words, count) == 0:
        return 0
    for i in range(inputs, both):
        own = operand(frame, i)
        if load(own, 8 * Operand.DIRECT) == 0:
            inner = load(own, 8 * Operand.INNER)
            if load(record(table, i), 8 * Record.LEADS):
                transfer(own, start * inner, count * inner, 0)
            else:
                transfer(own, 0, inner, 0)
    return 1


def launch(table: int, frame: int, context: int, words: int, lead: int) -> int:
    """The words of one call, with `lead` in place of the leading extent unless negative; 0 if the kernel refused."""
    both = load(table, 8 * Table.INPUTS) + load(table, 8 * Table.OUTPUTS)
    at = 0
    for i in range(both):
        own = operand(frame, i)
        if load(own, 8 * Operand.ARRAY) != 0:
            store(words, 8 * at, load(own, 8 * Operand.BASE))
            at += 1
    spread = load(table, 8 * Table.SPREAD)
    for s in range(load(table, 8 * Table.SYMBOLS)):
        extent = load(frame, 8 * (Frame.EXTENTS + s))
        if s == spread and lead >= 0:
            extent = lead
        store(words, 8 * at, extent)
        at += 1
    for f in range(load(table, 8 * Table.FLOATS)):
        store(words, 8 * at, frame + 8 * (Frame.FLOATS + f))
        at += 1
    return invoked(load(context, 8 * Known.ENTRY), words, at, load(context, 8 * Known.LONG)) == 0


def pair_of(own: int, output: int) -> int:
    """What `copy_run` calls the conversion between an operand and its buffer."""
    kind = load(own, 8 * Operand.KIND)
    wanted = load(own, 8 * Operand.WANTED)
    if output:
        return 4 * wanted + target_of(kind)
    return 4 * kind + target_of(wanted)


def target_of(kind: int) -> int:
    if kind == FLOAT32:
        return 0
    if kind == FLOAT64:
        return 1
    return 2 if kind == 7 else 3


def collapse(own: int) -> int:
    """Neighbouring dimensions that lie as one become one; those of extent 1 go."""
    kept = 0
    for d in range(load(own, 8 * Operand.DIMENSIONS)):
        extent = load(own, 8 * (Operand.EXTENTS + d))
        stride = load(own, 8 * (Operand.STRIDES + d))
        if extent != 1:
            merged = 0
            if kept > 0:
                before = load(own, 8 * (Operand.STRIDES + kept - 1))
                if before == stride * extent:
                    merged = 1
                    extent = extent * load(own, 8 * (Operand.EXTENTS + kept - 1))
                    kept -= 1
            store(own, 8 * (Operand.EXTENTS + kept), extent)
            store(own, 8 * (Operand.STRIDES + kept), stride)
            kept += 1
    if kept == 0:
        store(own, 8 * Operand.EXTENTS, 1)
        store(own, 8 * Operand.STRIDES, 0)
        kept = 1
    store(own, 8 * Operand.DIMENSIONS, kept)
    return 0


def transfer(own: int, start: int, count: int, reading: int) -> int:
    """Elements `start` to `start + count` of an operand's loop between its memory and the start of its buffer."""
    last = load(own, 8 * Operand.DIMENSIONS) - 1
    length = load(own, 8 * (Operand.EXTENTS + last))
    stride = load(own, 8 * (Operand.STRIDES + last))
    item = 4 if load(own, 8 * Operand.WANTED) == FLOAT32 else 8
    pair = load(own, 8 * Operand.PAIR)
    buffer = load(own, 8 * Operand.BASE)
    index = stack(MOST_OPERAND_DIMENSIONS)
    outer = start // length
    within = start - outer * length
    at = load(own, 8 * Operand.DATA)
    d = last - 1
    while d >= 0:
        extent = load(own, 8 * (Operand.EXTENTS + d))
        here = outer % extent
        outer = outer // extent
        store(index, 8 * d, here)
        at += here * load(own, 8 * (Operand.STRIDES + d))
        d -= 1
    while count > 0:
        run = min(count, length - within)
        if reading and stride == 0:
            copy_run(pair, buffer, item, at, 0, 1)
            fill(buffer, item, run)
        elif reading:
            copy_run(pair, buffer, item, at + within * stride, stride, run)
        else:
            copy_run(pair, at + within * stride, stride, buffer, item, run)
        buffer += run * item
        count -= run
        within = 0
        d = last - 1
        going = 1
        while d >= 0 and going:
            here = load(index, 8 * d) + 1
            at += load(own, 8 * (Operand.STRIDES + d))
            going = 0
            if here == load(own, 8 * (Operand.EXTENTS + d)):
                at -= here * load(own, 8 * (Operand.STRIDES + d))
                here = 0
                going = 1
            store(index, 8 * d, here)
            d -= 1
    return 0


FUNCTIONS = (
    jk_launch, jk_everyday, sorted_into, context_of, hashed, class_of, due, apart, plain, alike, invoked, general, operand, record,
    served, read_inputs, is_number, number_at, converted, read_array, read_options, bind_inputs, move_axis, rotate, broadcast, all_fortran, lay_out,
    mirror, lies_in_order, lies_turned, find_context, with_results, natural, accept, lay_out_result, keep_apart, computed,
    one_block, launch, pair_of, target_of, collapse, transfer,
)  # fmt: skip
