"""The fast path: calls on contiguous arrays of one dtype with default options, of elementwise and of row functions.

It needs no conversion, broadcasting or buffer, and none of the operand descriptors of `general`.
"""

# mypy: disable-error-code="name-defined,no-any-return,assignment,index"
from jitkernels.codegen.i64_intrinsics import address, call, load, load32, stack, unlikely
from jitkernels.runtime.abi_layout import ContextWords, Offset, OperandSpec, OperatorTable, OptionSpec, Outcome


def elementwise(table: int, arrays: int, given: int, out: int) -> int:
    """The fast path of an elementwise function: a second array must match the first."""
    return run_fast_path(table, arrays, given, out, 0)


def of_rows(table: int, arrays: int, given: int, out: int) -> int:
    """The fast path of a row function: the other arrays are vectors of a row's length."""
    return run_fast_path(table, arrays, given, out, 1)


def run_fast_path(table: int, arrays: int, given: int, out: int, rows: int) -> int:
    """The result of a call on the fast path, or an `Outcome`; inputs from `given` on are absent, `out` may be 0.

    All checks precede all arithmetic, so that few values are live across them.
    """
    first = arrays[0] if given else 0
    if unlikely(first == 0):
        return Outcome.GENERAL
    if unlikely(load(first, Offset.TYPE) != address("jk_ndarray")):
        return Outcome.GENERAL if rows or out else call_on_scalars(table, arrays, given)
    descr = load(first, Offset.ARRAY_DTYPE)
    if descr != address("jk_float32") and descr != address("jk_float64"):
        return Outcome.GENERAL
    dimensions = load32(first, Offset.ARRAY_DIMENSIONS)
    if load32(first, Offset.ARRAY_FLAGS) & READABLE != READABLE or (rows and dimensions == 0):
        return Outcome.GENERAL
    words = stack(MAX_CALL_WORDS)
    count = read_arrays(table, arrays, given, rows, words)
    if count == 0:
        return Outcome.GENERAL
    options = count >> 8
    count = count & 255
    if out == address("jk_none"):
        out = 0
    extents = load(first, Offset.ARRAY_EXTENTS)
    reduces = rows and table[OperatorTable.REDUCES]
    out_descr = descr
    if reduces and argument_at(table, table[OperatorTable.INPUTS])[OperandSpec.INTEGER]:
        out_descr = address("jk_int64")
    if out != 0 and has_layout(out, out_descr, dimensions - reduces, extents, WRITABLE) == 0:
        return Outcome.GENERAL
    lead = product(extents, dimensions - rows)
    n = extents[dimensions - 1] if rows else 1
    wide = descr == address("jk_float64")
    if out != 0 and overlaps_arrays(words, count, out, rows, reduces, lead, n << (2 + wide)):
        return Outcome.GENERAL
    if lead * n == 0 or table[OperatorTable.EXACT]:
        return Outcome.GENERAL
    if out != 0 and rows == 0 and table[OperatorTable.MOVES] and words[0] == load(out, Offset.ARRAY_DATA):
        return result_array(out, 0, 0, 0)  # nothing to move
    trailing = 1
    if rows and n == 1 and table[OperatorTable.MIRRORS]:
        # Rows of one element: treat them as one row of columns, the lanes of vectors.
        trailing = lead
        lead = 1
    key = (options * DTYPES + wide + KEY_BASE) << 6 | size_class(lead)
    if rows:
        key = key << 6 | size_class(n)
        if table[OperatorTable.TRAILING] >= 0:
            key = key << 6 | size_class(trailing)
    context = context_at(table, key)
    if unlikely(context == 0 or count_down(context)):
        return Outcome.PYTHON
    out = result_array(out, dimensions - reduces, extents, out_descr)
    if unlikely(out == 0):
        return Outcome.PYTHON
    words[count] = load(out, Offset.ARRAY_DATA)
    words[count + 1] = lead
    count = append_row_words(table, words, count + 2, n, trailing, wide) if rows else count + 2
    return call_entry_for(out, context[ContextWords.ENTRY], words, count, context[ContextWords.LONG])


def read_arrays(table: int, arrays: int, given: int, rows: int, words: int) -> int:
    """Store the addresses of the inputs; return their number, and the options of the key shifted by 8.

    0 if an array has another layout than the fast path takes.
    """
    first = arrays[0]
    descr = load(first, Offset.ARRAY_DTYPE)
    dimensions = load32(first, Offset.ARRAY_DIMENSIONS)
    extents = load(first, Offset.ARRAY_EXTENTS)
    words[0] = load(first, Offset.ARRAY_DATA)
    count = 1
    options = 0
    for i in range(1, table[OperatorTable.INPUTS]):
        other = arrays[i] if i < given else 0
        present = other != 0
        if rows:
            present = present and other != address("jk_none")
            leader = argument_at(table, i)[OperandSpec.LEADER]
            if leader >= 0:
                leading = arrays[leader] if leader < given else 0
                if present != (leading != 0 and leading != address("jk_none")):
                    return 0
                options += present * argument_at(table, i)[OperandSpec.WHEN]
            elif present == 0:
                return 0
        elif present == 0:
            return 0
        if present:
            if rows:
                fits = has_layout(other, descr, 1, extents + 8 * (dimensions - 1), READABLE)
            else:
                fits = has_layout(other, descr, dimensions, extents, READABLE)
            if fits == 0:
                return 0
            words[count] = load(other, Offset.ARRAY_DATA)
            count += 1
    return count | options << 8


def overlaps_arrays(words: int, count: int, out: int, rows: int, reduces: int, lead: int, row_bytes: int) -> int:
    """Whether a result overlaps an input in a way that kernels do not support."""
    data = load(out, Offset.ARRAY_DATA)
    first_bytes = lead * row_bytes
    out_bytes = lead << 3 if reduces else first_bytes
    if (words[0] != data or reduces) and disjoint(words[0], first_bytes, data, out_bytes) == 0:
        return 1
    for i in range(1, count):
        if rows and disjoint(words[i], row_bytes, data, out_bytes) == 0:
            return 1
        if rows == 0 and words[i] != data and disjoint(words[i], out_bytes, data, out_bytes) == 0:
            return 1
    return 0


def append_row_words(table: int, words: int, count: int, n: int, trailing: int, wide: int) -> int:
    """Append the extents of rows, and the addresses of the defaults of floats; return the number of words."""
    words[count] = n
    count += 1
    if table[OperatorTable.TRAILING] >= 0:
        words[count] = trailing
        count += 1
    for i in range(table[OperatorTable.OPTIONS] if table[OperatorTable.FLOATS] else 0):
        option = table + 8 * (table[OperatorTable.CHOICES] + i * OptionSpec.WORDS)
        if option[OptionSpec.KIND] == OptionSpec.A_FLOAT:
            words[count] = option + 8 * (OptionSpec.DEFAULTS + wide)
            count += 1
    return count


def result_array(out: int, dimensions: int, extents: int, descr: int) -> int:
    """The passed result, or a new array; a new reference. 0 if the allocation fails."""
    if out != 0:
        out[Offset.REFERENCES // 8] += 1
        return out
    Py_IncRef(descr)
    array = PyArray_Empty(dimensions, extents, descr, 0)
    if unlikely(array == 0):
        PyErr_Clear()
    return array


def call_entry_for(out: int, entry: int, words: int, count: int, long: int) -> int:
    """Call an entry with these words; return the result, or that Python must serve the call."""
    if long:
        status = call_entry(entry, words, count, 1)
    else:
        status = call_few_words(entry, words, count)
    if unlikely(status != 0):
        Py_DecRef(out)
        return Outcome.PYTHON
    return out


def call_few_words(entry: int, words: int, count: int) -> int:
    """Call the entry with `count` words, hardly ever more than four."""
    if count == 3:
        return call(entry, words[0], words[1], words[2])
    if count == 4:
        return call(entry, words[0], words[1], words[2], words[3])
    return call_words(entry, words, count)


def call_on_scalars(table: int, numbers: int, given: int) -> int:
    """An elementwise function of scalars only: all of them NumPy's float32, or none, nor a float16."""
    narrow = load(numbers[0], Offset.TYPE) == address("jk_float32_type")
    count = table[OperatorTable.INPUTS]
    if given != count or table[OperatorTable.EXACT]:
        return Outcome.GENERAL
    words = stack(MAX_CALL_WORDS)
    values = stack(MAX_OPERANDS)
    for i in range(count):
        number = numbers[i]
        if number == 0:
            return Outcome.GENERAL
        kind = load(number, Offset.TYPE)
        value = number + Offset.FLOAT_VALUE
        if narrow:
            if kind != address("jk_float32_type"):
                return Outcome.GENERAL
        elif kind != address("jk_float") and kind != address("jk_float64_type"):
            if kind != address("jk_int") and kind != address("jk_bool") and is_numpy_integer(number) == 0:
                return Outcome.GENERAL
            value = values + 8 * i
            if to_float(number, value) == 0:
                return Outcome.GENERAL
        words[i] = value
    wide = narrow == 0
    context = context_at(table, (wide + KEY_BASE) << 6)
    if unlikely(context == 0 or count_down(context)):
        return Outcome.PYTHON
    descr = address("jk_float64") if wide else address("jk_float32")
    out = result_array(0, 0, 0, descr)
    if unlikely(out == 0):
        return Outcome.PYTHON
    words[count] = load(out, Offset.ARRAY_DATA)
    words[count + 1] = 1
    return call_entry_for(out, context[ContextWords.ENTRY], words, count + 2, context[ContextWords.LONG])


def has_layout(array: int, descr: int, dimensions: int, extents: int, flags: int) -> int:
    """Whether this is an array of that dtype, these extents and these flags."""
    if load(array, Offset.TYPE) != address("jk_ndarray") or load(array, Offset.ARRAY_DTYPE) != descr:
        return 0
    return has_shape(array, dimensions, extents, flags)


def has_shape(array: int, dimensions: int, extents: int, flags: int) -> int:
    """Whether an array has these extents and flags."""
    if load32(array, Offset.ARRAY_FLAGS) & flags != flags or load32(array, Offset.ARRAY_DIMENSIONS) != dimensions:
        return 0
    for d in range(dimensions):
        if load(array, Offset.ARRAY_EXTENTS)[d] != extents[d]:
            return 0
    return 1


def disjoint(one: int, one_bytes: int, other: int, other_bytes: int) -> int:
    """Whether two ranges of memory are disjoint."""
    return one + one_bytes <= other or other + other_bytes <= one


def call_entry(entry: int, words: int, count: int, long: int) -> int:
    """Call the entry with `count` words; long work releases the interpreter lock."""
    if long:
        state = PyEval_SaveThread()
        status = call_words(entry, words, count)
        PyEval_RestoreThread(state)
        return status
    return call_words(entry, words, count)
