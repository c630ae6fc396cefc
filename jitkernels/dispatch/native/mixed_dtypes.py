"""Elementwise functions of scalars and arrays of equal shape but different dtypes or, in one dimension, strides.

Inputs are converted in blocks, until calls on contiguous arrays, with scalars, or with small strides have paid for a
nest with fused casts.
"""

# mypy: disable-error-code="name-defined,no-any-return,assignment,index"
from jitkernels.codegen.i64_intrinsics import address, load, load32, stack, unlikely
from jitkernels.runtime.abi_layout import (
    ADDRESS_BITS,
    ALIGNED,
    APART,
    BACKWARDS,
    CONVERTING,
    EVERY,
    KEY_BASE,
    KIND_BITS,
    MIXED_BLOCK,
    MOST_APART,
    MOST_CALL_WORDS,
    MOST_OPERANDS,
    NUMBER,
    Known,
    Offset,
    Operand,
    Outcome,
    Table,
)


def mixed(table: int, slots: int) -> int:
    """The result, or an `Outcome`. Results that overlap an input take the general path."""
    count = table[Table.INPUTS]
    forms = stack(MOST_OPERANDS)
    places = stack(MOST_OPERANDS)
    own = read_forms(table, slots, forms, places)
    if own < 0 or table[Table.EXACT]:
        return Outcome.GENERAL
    first = slots[own >> 1]
    wide = own & 1
    dimensions = load32(first, Offset.ARRAY_DIMENSIONS)
    extents = load(first, Offset.ARRAY_EXTENTS)
    descr = address("jk_float64") if wide else address("jk_float32")
    item = 4 + 4 * wide
    n = 1
    for d in range(dimensions):
        n = n * extents[d]
    gaps = 0
    numbers = 0
    kinds = 0
    for i in range(count):
        form = forms[i]
        kinds = kinds << KIND_BITS | form
        numbers = numbers or form == NUMBER
        gaps = gaps or form == APART
        if form >= EVERY and load(slots[i], Offset.ARRAY_DTYPE) != descr:
            gaps = 1
    if gaps and numbers:
        return Outcome.GENERAL
    out = slots[count]
    if out == address("jk_none"):
        out = 0
    if out != 0:
        if alike(out, descr, dimensions, extents, WRITABLE) == 0:
            return Outcome.GENERAL
        for i in range(count):
            form = forms[i]
            array = slots[i]
            at = places[i]
            if form != NUMBER and (form != FLOAT32 + wide or at != load(out, Offset.ARRAY_DATA)):
                reach = (n - 1) * step_of(array)
                low = at + min(reach, 0)
                size = max(reach, -reach) + load(load(array, Offset.ARRAY_DTYPE), Offset.DTYPE_BYTES)
                if apart(low, size, load(out, Offset.ARRAY_DATA), n * item) == 0:
                    return Outcome.GENERAL
    if n == 0:
        return Outcome.GENERAL
    key = CONVERTING | kinds << ADDRESS_BITS
    context = context_of(table, (wide + KEY_BASE) << 6 | class_of(n))
    if unlikely(context == 0):
        if gaps == 0:
            table[Table.WANTED] = key
        return Outcome.PYTHON
    long = context[Known.LONG]
    nest = 0
    if gaps == 0:
        key = key | context[Known.ENTRY]
        nest = context_of(table, key)
        if unlikely(nest == 0 or due(nest)):
            table[Table.WANTED] = key
            return Outcome.PYTHON
        if nest[Known.ENTRY] == 0:
            nest = 0
    if nest == 0 and (long or (numbers and n > MIXED_BLOCK)):
        return Outcome.GENERAL
    if unlikely(due(context)):
        return Outcome.PYTHON
    out = result_of(out, dimensions, extents, descr)
    if unlikely(out == 0):
        return Outcome.PYTHON
    words = stack(MOST_CALL_WORDS)
    if nest != 0:
        for i in range(count):
            words[i] = places[i]
        words[count] = load(out, Offset.ARRAY_DATA)
        words[count + 1] = n
        return called_for(out, nest[Known.ENTRY], words, count + 2, long)
    buffers = stack(2 * MIXED_BLOCK + 64)
    start = 0
    while start < n:
        run = min(n - start, MIXED_BLOCK)
        buffer = (buffers + 63) // 64 * 64
        for i in range(count):
            to = buffer
            if forms[i] == NUMBER:  # broadcast into the small block
                to[0] = places[i][0]
                fill(to, item, run)
            else:
                array = slots[i]
                own = load(array, Offset.ARRAY_DTYPE)
                step = step_of(array)
                at = places[i] + start * step
                if own == descr and step == item:
                    to = at
                else:
                    copy_run(4 * load32(own, Offset.DTYPE_NUMBER) + wide, to, item, at, step, run)
            words[i] = to
            if to == buffer:
                buffer += 8 * MIXED_BLOCK + 192  # avoids 4K aliasing: loads would wait for stores
        words[count] = load(out, Offset.ARRAY_DATA) + start * item
        words[count + 1] = run
        if unlikely(called_briefly(context[Known.ENTRY], words, count + 2) != 0):
            Py_DecRef(out)
            return Outcome.PYTHON
        start += run
    return out


def read_forms(table: int, slots: int, forms: int, places: int) -> int:
    """Read the form of each input in the key of a nest, or `APART` for large strides, and its address.

    Returns twice the index of the first array, plus 1 for float64; -1 for calls that are not supported here. Scalars
    are stored after the addresses, in the kernel's dtype.
    """
    own = stack(Operand.WORDS)
    count = table[Table.INPUTS]
    lead = 0
    while lead < count and is_array(slots[lead]) == 0:
        lead += 1
    if lead == count:
        return -1
    first = slots[lead]
    dimensions = load32(first, Offset.ARRAY_DIMENSIONS)
    widths = 0
    for i in range(count):
        given = slots[i]
        if is_array(given):
            descr = load(given, Offset.ARRAY_DTYPE)
            kind = readable_kind(descr)
            if kind < 0 or kind == FLOAT32 + SWAPPED or kind == FLOAT64 + SWAPPED:
                return -1
            form = kind
            if lies(given, dimensions, load(first, Offset.ARRAY_EXTENTS), READABLE) == 0:
                if dimensions != 1 or lies(given, 1, load(first, Offset.ARRAY_EXTENTS), ALIGNED) == 0:
                    return -1
                item = load(descr, Offset.DTYPE_BYTES)
                often = step_of(given) // item
                form = APART
                if often >= 2 and often <= MOST_APART and often * item == step_of(given):
                    form = EVERY + often - 2
                if step_of(given) == -item:
                    form = BACKWARDS
            places[i] = load(given, Offset.ARRAY_DATA)
            forms[i] = form
            widths = widths | width_of(kind)
        elif given == 0:
            return -1
        else:
            kind = a_number(own, given, places + 8 * (i + count))
            if kind < 0:
                return -1
            if load(given, Offset.TYPE) != address("jk_float") and own[Operand.PRESENT]:
                widths = widths | width_of(kind)
            places[i] = own[Operand.DATA]
            forms[i] = NUMBER | (kind + 1) << KIND_BITS
    wide = is_wide(widths)
    for i in range(count):
        form = forms[i]
        if form >> KIND_BITS != 0:
            place = places + 8 * (i + count)
            copy_run(4 * (form >> KIND_BITS) - 4 + wide, place, 4 + 4 * wide, places[i], 0, 1)
            places[i] = place
            forms[i] = NUMBER
    return 2 * lead + wide


def is_array(given: int) -> int:
    """Whether this is an array with at least one dimension."""
    if given == 0:
        return 0
    if load(given, Offset.TYPE) != address("jk_ndarray"):
        return 0
    return load32(given, Offset.ARRAY_DIMENSIONS) != 0


def a_number(own: int, given: int, place: int) -> int:
    """The type number of a Python or NumPy scalar, and its address; -1 for anything else.

    An int is converted to a float at `place`, and not PRESENT: it does not take part in dtype promotion.
    """
    own[Operand.PRESENT] = 1
    kind = load(given, Offset.TYPE)
    if kind == address("jk_ndarray"):
        if load32(given, Offset.ARRAY_FLAGS) & ALIGNED == 0:
            return -1
        own[Operand.DATA] = load(given, Offset.ARRAY_DATA)
        return readable_kind(load(given, Offset.ARRAY_DTYPE))
    if kind == address("jk_int") or kind == address("jk_bool"):
        if float_of(given, place) == 0:
            return -1
        own[Operand.DATA] = place
        own[Operand.PRESENT] = 0
        return FLOAT64
    return own[Operand.KIND] if is_number(own, given) else -1


def step_of(array: int) -> int:
    """The byte stride between elements; only 1-d arrays may be strided."""
    if load32(array, Offset.ARRAY_DIMENSIONS) == 1:
        return load(array, Offset.ARRAY_STRIDES)[0]
    return load(load(array, Offset.ARRAY_DTYPE), Offset.DTYPE_BYTES)


FUNCTIONS = (mixed, read_forms, is_array, a_number, step_of)
