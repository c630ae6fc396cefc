"""The fast path: calls on contiguous arrays of one dtype with default options, of elementwise and of row functions.

It needs no conversion, broadcasting or buffer, and none of the operand records of `general`.
"""

# mypy: disable-error-code="name-defined,no-any-return,assignment,index"
from jitkernels.codegen.i64_intrinsics import address, call, load, load32, stack, store, unlikely
from jitkernels.runtime.abi_layout import (
    DTYPES,
    KEY_BASE,
    MOST_CALL_WORDS,
    MOST_OPERANDS,
    Choice,
    Known,
    Offset,
    Outcome,
    Record,
    Table,
)


def elementwise(table: int, arrays: int, given: int, out: int) -> int:
    """The fast path of an elementwise function: a second array must match the first."""
    return whole(table, arrays, given, out, 0)


def of_rows(table: int, arrays: int, given: int, out: int) -> int:
    """The fast path of a row function: the other arrays are vectors of a row's length."""
    return whole(table, arrays, given, out, 1)


def whole(table: int, arrays: int, given: int, out: int, rows: int) -> int:
    """The result of a call on the fast path, or an `Outcome`; inputs from `given` on are absent, `out` may be 0.

    All checks precede all arithmetic, so that few values are live across them.
    """
    if given == 0:
        return Outcome.GENERAL
    first = arrays[0]
    if unlikely(first == 0):
        return Outcome.GENERAL
    if unlikely(load(first, Offset.TYPE) != address("jk_ndarray")):
        return Outcome.GENERAL if rows or out else of_floats(table, arrays, given)
    descr = load(first, Offset.ARRAY_DTYPE)
    if descr != address("jk_float32") and descr != address("jk_float64"):
        return Outcome.GENERAL
    dimensions = load32(first, Offset.ARRAY_DIMENSIONS)
    if load32(first, Offset.ARRAY_FLAGS) & READABLE != READABLE or (rows and dimensions == 0):
        return Outcome.GENERAL
    extents = load(first, Offset.ARRAY_EXTENTS)
    words = stack(MOST_CALL_WORDS)
    words[0] = load(first, Offset.ARRAY_DATA)
    inputs = table[Table.INPUTS]
    at = 1
    options = 0
    for i in range(1, inputs):
        other = arrays[i] if i < given else 0
        present = other != 0
        if rows:
            present = present and other != address("jk_none")
            leader = record(table, i)[Record.LEADER]
            if leader >= 0:
                led = arrays[leader] if leader < given else 0
                if present != (led != 0 and led != address("jk_none")):
                    return Outcome.GENERAL
                options += present * record(table, i)[Record.WHEN]
            elif present == 0:
                return Outcome.GENERAL
        elif present == 0:
            return Outcome.GENERAL
        if present:
            if rows:
                fits = alike(other, descr, 1, extents + 8 * (dimensions - 1), READABLE)
            else:
                fits = alike(other, descr, dimensions, extents, READABLE)
            if fits == 0:
                return Outcome.GENERAL
            words[at] = load(other, Offset.ARRAY_DATA)
            at += 1
    if out == address("jk_none"):
        out = 0
    reduces = rows and table[Table.REDUCES]
    to = descr
    if reduces and record(table, inputs)[Record.INTEGER]:
        to = address("jk_int64")
    if out != 0:
        if alike(out, to, dimensions - reduces, extents, WRITABLE) == 0:
            return Outcome.GENERAL
    lead = 1
    for d in range(dimensions - rows):
        lead = lead * extents[d]
    n = 1
    if rows:
        n = extents[dimensions - 1]
    wide = descr == address("jk_float64")
    if out != 0:
        data = load(out, Offset.ARRAY_DATA)
        first_size = lead * n << (2 + wide)
        size = lead << 3 if reduces else first_size
        one = words[0]
        if (one != data or reduces) and apart(one, first_size, data, size) == 0:
            return Outcome.GENERAL
        for i in range(1, at):
            one = words[i]
            if rows and apart(one, n << (2 + wide), data, size) == 0:
                return Outcome.GENERAL
            if rows == 0 and one != data and apart(one, size, data, size) == 0:
                return Outcome.GENERAL
    if lead * n == 0 or table[Table.EXACT]:
        return Outcome.GENERAL
    if out != 0 and rows == 0:
        if table[Table.MOVES] and words[0] == load(out, Offset.ARRAY_DATA):
            return result_of(out, 0, 0, 0)  # nothing to move
    trails = 0
    behind = 1
    if rows:
        trails = table[Table.TRAILING] >= 0
        if n == 1 and table[Table.MIRRORS]:
            # Rows of one element: treat them as one row of columns, the lanes of vectors.
            behind = lead
            lead = 1
    key = (options * DTYPES + wide + KEY_BASE) << 6 | class_of(lead)
    if rows:
        key = key << 6 | class_of(n)
        if trails:
            key = key << 6 | class_of(behind)
    context = context_of(table, key)
    if unlikely(context == 0):
        return Outcome.PYTHON
    if unlikely(due(context)):
        return Outcome.PYTHON
    out = result_of(out, dimensions - reduces, extents, to)
    if unlikely(out == 0):
        return Outcome.PYTHON
    words[at] = load(out, Offset.ARRAY_DATA)
    words[at + 1] = lead
    at += 2
    if rows:
        words[at] = n
        at += 1
        if trails:
            words[at] = behind
            at += 1
        for i in range(table[Table.OPTIONS] if table[Table.FLOATS] else 0):
            choice = table + 8 * (table[Table.CHOICES] + i * Choice.WORDS)
            if choice[Choice.KIND] == Choice.A_FLOAT:
                words[at] = choice + 8 * (Choice.DEFAULTS + wide)
                at += 1
    return finished(context, words, at, out)


def result_of(out: int, dimensions: int, extents: int, descr: int) -> int:
    """The passed result, or a new array; a new reference. 0 if the allocation fails."""
    if out != 0:
        store(out, Offset.REFERENCES, load(out, Offset.REFERENCES) + 1)
        return out
    Py_IncRef(descr)
    made = PyArray_Empty(dimensions, extents, descr, 0)
    if unlikely(made == 0):
        PyErr_Clear()
    return made


def finished(context: int, words: int, count: int, out: int) -> int:
    """Call the kernel of a context with these words; returns the result, or that Python must serve the call."""
    return called_for(out, context[Known.ENTRY], words, count, context[Known.LONG])


def called_for(out: int, entry: int, words: int, count: int, long: int) -> int:
    """As `finished`, for an entry address."""
    if long:
        status = invoked(entry, words, count, 1)
    else:
        status = called_briefly(entry, words, count)
    if unlikely(status != 0):
        Py_DecRef(out)
        return Outcome.PYTHON
    return out


def called_briefly(entry: int, words: int, count: int) -> int:
    """Call the entry with `count` words, hardly ever more than four."""
    if count == 3:
        return call(entry, words[0], words[1], words[2])
    if count == 4:
        return call(entry, words[0], words[1], words[2], words[3])
    return called(entry, words, count)


def of_floats(table: int, numbers: int, given: int) -> int:
    """An elementwise function of scalars only: all of them NumPy's float32, or none, nor a float16."""
    narrow = load(numbers[0], Offset.TYPE) == address("jk_float32_type")
    count = table[Table.INPUTS]
    if given != count or table[Table.EXACT]:
        return Outcome.GENERAL
    words = stack(MOST_CALL_WORDS)
    values = stack(MOST_OPERANDS)
    for i in range(count):
        number = numbers[i]
        if number == 0:
            return Outcome.GENERAL
        kind = load(number, Offset.TYPE)
        place = number + Offset.FLOAT_VALUE
        if narrow:
            if kind != address("jk_float32_type"):
                return Outcome.GENERAL
        elif kind != address("jk_float") and kind != address("jk_float64_type"):
            if kind != address("jk_int") and kind != address("jk_bool") and is_integer_of_numpy(number) == 0:
                return Outcome.GENERAL
            place = values + 8 * i
            if float_of(number, place) == 0:
                return Outcome.GENERAL
        words[i] = place
    wide = narrow == 0
    context = context_of(table, (wide + KEY_BASE) << 6)
    if unlikely(context == 0):
        return Outcome.PYTHON
    if unlikely(due(context)):
        return Outcome.PYTHON
    descr = address("jk_float64") if wide else address("jk_float32")
    out = result_of(0, 0, 0, descr)
    if unlikely(out == 0):
        return Outcome.PYTHON
    words[count] = load(out, Offset.ARRAY_DATA)
    words[count + 1] = 1
    return finished(context, words, count + 2, out)


def alike(array: int, descr: int, dimensions: int, extents: int, flags: int) -> int:
    """Whether this is an array of that dtype, these extents and these flags."""
    if load(array, Offset.TYPE) != address("jk_ndarray") or load(array, Offset.ARRAY_DTYPE) != descr:
        return 0
    return lies(array, dimensions, extents, flags)


def lies(array: int, dimensions: int, extents: int, flags: int) -> int:
    """Whether an array has these extents and flags."""
    if load32(array, Offset.ARRAY_FLAGS) & flags != flags or load32(array, Offset.ARRAY_DIMENSIONS) != dimensions:
        return 0
    own = load(array, Offset.ARRAY_EXTENTS)
    for d in range(dimensions):
        if own[d] != extents[d]:
            return 0
    return 1


def apart(one: int, one_bytes: int, other: int, other_bytes: int) -> int:
    """Whether two ranges of memory are disjoint."""
    return one + one_bytes <= other or other + other_bytes <= one


def invoked(entry: int, words: int, count: int, long: int) -> int:
    """Call the entry with `count` words; long work releases the interpreter lock."""
    if long:
        state = PyEval_SaveThread()
        status = called(entry, words, count)
        PyEval_RestoreThread(state)
        return status
    return called(entry, words, count)


FUNCTIONS = (
    elementwise,
    of_rows,
    whole,
    result_of,
    finished,
    called_for,
    called_briefly,
    of_floats,
    alike,
    lies,
    apart,
    invoked,
)
