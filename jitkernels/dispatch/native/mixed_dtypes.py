"""Elementwise functions of scalars and arrays of equal shape but different dtypes or, in one dimension, strides.

Inputs are converted in blocks, until calls on contiguous arrays, with scalars, or with small strides have paid for a
nest with fused casts.
"""

# mypy: disable-error-code="name-defined,no-any-return,assignment,index"
from jitkernels.codegen.i64_intrinsics import address, load, load32, stack, unlikely
from jitkernels.runtime.abi_layout import ContextWords, Offset, Operand, OperatorTable, Outcome


def mixed(table: int, slots: int) -> int:
    """The result, or an `Outcome`. Results that overlap an input take the general path."""
    count = table[OperatorTable.INPUTS]
    forms = stack(MAX_OPERANDS)
    addresses = stack(MAX_OPERANDS)
    lead = read_forms(table, slots, forms, addresses)
    if lead < 0 or table[OperatorTable.EXACT]:
        return Outcome.GENERAL
    first = slots[lead >> 1]
    wide = lead & 1
    dimensions = load32(first, Offset.ARRAY_DIMENSIONS)
    extents = load(first, Offset.ARRAY_EXTENTS)
    descr = address("jk_float64") if wide else address("jk_float32")
    n = product(extents, dimensions)
    kinds = pack_forms(slots, forms, count, descr)
    if kinds < 0 and has_scalar(forms, count):
        return Outcome.GENERAL
    out = slots[count]
    if out == address("jk_none"):
        out = 0
    if out != 0:
        if has_layout(out, descr, dimensions, extents, WRITABLE) == 0:
            return Outcome.GENERAL
        if overlaps_input(slots, forms, addresses, count, out, n):
            return Outcome.GENERAL
    if n == 0:
        return Outcome.GENERAL
    context = context_at(table, (wide + KEY_BASE) << 6 | size_class(n))
    if unlikely(context == 0):
        if kinds >= 0:
            table[OperatorTable.WANTED] = CONVERTING | kinds << ADDRESS_BITS
        return Outcome.PYTHON
    nest = find_nest(table, context, kinds) if kinds >= 0 else 0
    if unlikely(nest < 0):
        return Outcome.PYTHON
    if nest == 0 and (context[ContextWords.LONG] or (n > MIXED_BLOCK and has_scalar(forms, count))):
        return Outcome.GENERAL
    if unlikely(count_down(context)):
        return Outcome.PYTHON
    out = result_array(out, dimensions, extents, descr)
    if unlikely(out == 0):
        return Outcome.PYTHON
    if nest == 0:
        return convert_in_blocks(slots, forms, addresses, count, context, out, n)
    words = stack(MAX_CALL_WORDS)
    for i in range(count):
        words[i] = addresses[i]
    words[count] = load(out, Offset.ARRAY_DATA)
    words[count + 1] = n
    return call_entry_for(out, nest[ContextWords.ENTRY], words, count + 2, context[ContextWords.LONG])


def pack_forms(slots: int, forms: int, count: int, descr: int) -> int:
    """The forms of all inputs in the key of a nest with fused casts; -1 if no nest supports them."""
    kinds = 0
    for i in range(count):
        if forms[i] == APART or (forms[i] >= EVERY and load(slots[i], Offset.ARRAY_DTYPE) != descr):
            return -1
        kinds = kinds << KIND_BITS | forms[i]
    return kinds


def has_scalar(forms: int, count: int) -> int:
    for i in range(count):
        if forms[i] == NUMBER:
            return 1
    return 0


def overlaps_input(slots: int, forms: int, addresses: int, count: int, out: int, n: int) -> int:
    """Whether a result overlaps an input in a way that elementwise loops do not support."""
    descr = load(out, Offset.ARRAY_DTYPE)
    data = load(out, Offset.ARRAY_DATA)
    for i in range(count):
        if forms[i] != NUMBER and (forms[i] != load32(descr, Offset.DTYPE_NUMBER) or addresses[i] != data):
            reach = (n - 1) * byte_stride(slots[i])
            size = max(reach, -reach) + load(load(slots[i], Offset.ARRAY_DTYPE), Offset.DTYPE_BYTES)
            if disjoint(addresses[i] + min(reach, 0), size, data, n * load(descr, Offset.DTYPE_BYTES)) == 0:
                return 1
    return 0


def find_nest(table: int, context: int, kinds: int) -> int:
    """The context of the nest with fused casts; 0 if there is none, -1 if Python must decide whether to build it."""
    key = CONVERTING | kinds << ADDRESS_BITS | context[ContextWords.ENTRY]
    nest = context_at(table, key)
    if unlikely(nest == 0 or count_down(nest)):
        table[OperatorTable.WANTED] = key
        return -1
    return nest if nest[ContextWords.ENTRY] != 0 else 0


def convert_in_blocks(slots: int, forms: int, addresses: int, count: int, context: int, out: int, n: int) -> int:
    """Convert blocks of the inputs to the dtype of the result, and call the kernel on each block."""
    words = stack(MAX_CALL_WORDS)
    buffers = (stack(2 * MIXED_BLOCK + 64) + 63) // 64 * 64
    descr = load(out, Offset.ARRAY_DTYPE)
    item = load(descr, Offset.DTYPE_BYTES)
    start = 0
    while start < n:
        run = min(n - start, MIXED_BLOCK)
        buffer = buffers
        for i in range(count):
            target = buffer
            if forms[i] == NUMBER:  # broadcast into the small block
                target[0] = addresses[i][0]
                fill(target, item, run)
            else:
                dtype = load(slots[i], Offset.ARRAY_DTYPE)
                stride = byte_stride(slots[i])
                source = addresses[i] + start * stride
                if dtype == descr and stride == item:
                    target = source
                else:
                    pair = 4 * load32(dtype, Offset.DTYPE_NUMBER) + (item == 8)
                    copy_run(pair, target, item, source, stride, run)
            words[i] = target
            if target == buffer:
                buffer += 8 * MIXED_BLOCK + 192  # avoids 4K aliasing: loads would wait for stores
        words[count] = load(out, Offset.ARRAY_DATA) + start * item
        words[count + 1] = run
        if unlikely(call_few_words(context[ContextWords.ENTRY], words, count + 2) != 0):
            Py_DecRef(out)
            return Outcome.PYTHON
        start += run
    return out


def read_forms(table: int, slots: int, forms: int, addresses: int) -> int:
    """Read the form of each input in the key of a nest, or `APART` for large strides, and its address.

    Returns twice the index of the first array, plus 1 for float64; -1 for calls that are not supported here. Scalars
    are stored after the addresses, in the kernel's dtype.
    """
    operand = stack(Operand.WORDS)
    count = table[OperatorTable.INPUTS]
    lead = 0
    while lead < count and is_array(slots[lead]) == 0:
        lead += 1
    if lead == count:
        return -1
    dimensions = load32(slots[lead], Offset.ARRAY_DIMENSIONS)
    extents = load(slots[lead], Offset.ARRAY_EXTENTS)
    widths = 0
    for i in range(count):
        value = slots[i]
        if value == 0:
            return -1
        if is_array(value):
            kind = kind_of(load(value, Offset.ARRAY_DTYPE))
            if kind < 0 or kind == FLOAT32 + SWAPPED or kind == FLOAT64 + SWAPPED:
                return -1
            form = kind
            if has_shape(value, dimensions, extents, READABLE) == 0:
                if dimensions != 1 or has_shape(value, 1, extents, ALIGNED) == 0:
                    return -1
                form = strided_form(value)
            addresses[i] = load(value, Offset.ARRAY_DATA)
            forms[i] = form
            widths = widths | dtype_width(kind)
        else:
            kind = scalar_kind(operand, value, addresses + 8 * (i + count))
            if kind < 0:
                return -1
            if load(value, Offset.TYPE) != address("jk_float") and operand[Operand.PRESENT]:
                widths = widths | dtype_width(kind)
            addresses[i] = operand[Operand.DATA]
            forms[i] = NUMBER | (kind + 1) << KIND_BITS
    wide = computes_float64(widths)
    for i in range(count):
        if forms[i] >> KIND_BITS != 0:
            scalar = addresses + 8 * (i + count)
            copy_run(4 * (forms[i] >> KIND_BITS) - 4 + wide, scalar, 4 + 4 * wide, addresses[i], 0, 1)
            addresses[i] = scalar
            forms[i] = NUMBER
    return 2 * lead + wide


def strided_form(array: int) -> int:
    """The form of a strided array of one dimension."""
    item = load(load(array, Offset.ARRAY_DTYPE), Offset.DTYPE_BYTES)
    if byte_stride(array) == -item:
        return BACKWARDS
    stride = byte_stride(array) // item
    if stride >= 2 and stride <= MAX_APART and stride * item == byte_stride(array):
        return EVERY + stride - 2
    return APART


def is_array(value: int) -> int:
    """Whether this is an array with at least one dimension."""
    if value == 0:
        return 0
    if load(value, Offset.TYPE) != address("jk_ndarray"):
        return 0
    return load32(value, Offset.ARRAY_DIMENSIONS) != 0


def scalar_kind(operand: int, value: int, target: int) -> int:
    """The type number of a Python or NumPy scalar, and its address; -1 for anything else.

    An int is converted to a float at `target`, and not PRESENT: it does not take part in dtype promotion.
    """
    operand[Operand.PRESENT] = 1
    kind = load(value, Offset.TYPE)
    if kind == address("jk_ndarray"):
        if load32(value, Offset.ARRAY_FLAGS) & ALIGNED == 0:
            return -1
        operand[Operand.DATA] = load(value, Offset.ARRAY_DATA)
        return kind_of(load(value, Offset.ARRAY_DTYPE))
    if kind == address("jk_int") or kind == address("jk_bool"):
        if to_float(value, target) == 0:
            return -1
        operand[Operand.DATA] = target
        operand[Operand.PRESENT] = 0
        return FLOAT64
    return operand[Operand.KIND] if read_scalar(operand, value) else -1


def byte_stride(array: int) -> int:
    """The byte stride between elements; only 1-d arrays may be strided."""
    if load32(array, Offset.ARRAY_DIMENSIONS) == 1:
        return load(array, Offset.ARRAY_STRIDES)[0]
    return load(load(array, Offset.ARRAY_DTYPE), Offset.DTYPE_BYTES)
