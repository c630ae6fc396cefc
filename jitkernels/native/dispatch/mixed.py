"""Elementwise functions of arrays alike but for their dtypes, and for gaps where they have one dimension.

They are brought together in blocks, until calls on whole arrays have paid for a nest that converts what it reads.
"""

# mypy: disable-error-code="name-defined,no-any-return,assignment"
from jitkernels.native.layout import (
    ADDRESS_BITS,
    ALIGNED,
    CONVERTING,
    KEY_BASE,
    KIND_BITS,
    MIXED_BLOCK,
    MOST_CALL_WORDS,
    Known,
    Offset,
    Outcome,
    Table,
)
from jitkernels.native.words import address, load, load32, stack, store, unlikely


def mixed(table: int, slots: int) -> int:
    """The result, or an `Outcome`. Results that lie where an input does are left to the general way."""
    first = load(slots)
    count = load(table, 8 * Table.INPUTS)
    if first == 0 or load(table, 8 * Table.EXACT):
        return Outcome.GENERAL
    if load(first, Offset.TYPE) != address("jk_ndarray"):
        return Outcome.GENERAL
    dimensions = load32(first, Offset.ARRAY_DIMENSIONS)
    extents = load(first, Offset.ARRAY_EXTENTS)
    widths = 0
    kinds = 0
    gaps = 0
    for i in range(count):
        array = load(slots, 8 * i)
        if array == 0:
            return Outcome.GENERAL
        if load(array, Offset.TYPE) != address("jk_ndarray"):
            return Outcome.GENERAL
        kind = readable_kind(load(array, Offset.ARRAY_DTYPE))
        if kind < 0:
            return Outcome.GENERAL
        if lies(array, dimensions, extents, READABLE) == 0:
            if dimensions != 1 or lies(array, 1, extents, ALIGNED) == 0:
                return Outcome.GENERAL
            gaps = 1
        widths = widths | width_of(kind)
        kinds = kinds << KIND_BITS | kind
    wide = is_wide(widths)
    descr = address("jk_float64") if wide else address("jk_float32")
    item = 4 + 4 * wide
    n = 1
    for d in range(dimensions):
        n = n * load(extents, 8 * d)
    out = load(slots, 8 * count)
    if out == address("jk_none"):
        out = 0
    if out != 0:
        if alike(out, descr, dimensions, extents, WRITABLE) == 0:
            return Outcome.GENERAL
        for i in range(count):
            array = load(slots, 8 * i)
            reach = (n - 1) * step_of(array)
            low = load(array, Offset.ARRAY_DATA) + min(reach, 0)
            size = max(reach, -reach) + load(load(array, Offset.ARRAY_DTYPE), Offset.DTYPE_BYTES)
            if apart(low, size, load(out, Offset.ARRAY_DATA), n * item) == 0:
                return Outcome.GENERAL
    if n == 0:
        return Outcome.GENERAL
    key = CONVERTING | kinds << ADDRESS_BITS
    context = context_of(table, (wide + KEY_BASE) << 6 | class_of(n))
    if unlikely(context == 0):
        store(table, 8 * Table.WANTED, key)
        return Outcome.PYTHON
    if load(context, 8 * Known.LONG):
        return Outcome.GENERAL
    if unlikely(due(context)):
        return Outcome.PYTHON
    nest = 0
    if gaps == 0:
        key = key | load(context, 8 * Known.ENTRY)
        nest = context_of(table, key)
        if unlikely(nest == 0 or due(nest)):
            store(table, 8 * Table.WANTED, key)
            return Outcome.PYTHON
    out = result_of(out, dimensions, extents, descr)
    if unlikely(out == 0):
        return Outcome.PYTHON
    words = stack(MOST_CALL_WORDS)
    if gaps == 0 and load(nest, 8 * Known.ENTRY) != 0:
        for i in range(count):
            store(words, 8 * i, load(load(slots, 8 * i), Offset.ARRAY_DATA))
        store(words, 8 * count, load(out, Offset.ARRAY_DATA))
        store(words, 8 * (count + 1), n)
        return finished(nest, words, count + 2, out)
    buffers = stack(2 * MIXED_BLOCK + 64)
    start = 0
    while start < n:
        run = min(n - start, MIXED_BLOCK)
        buffer = (buffers + 63) // 64 * 64
        for i in range(count):
            array = load(slots, 8 * i)
            own = load(array, Offset.ARRAY_DTYPE)
            step = step_of(array)
            at = load(array, Offset.ARRAY_DATA) + start * step
            if own == descr and step == item:
                store(words, 8 * i, at)
            else:
                copy_run(4 * load32(own, Offset.DTYPE_NUMBER) + wide, buffer, item, at, step, run)
                store(words, 8 * i, buffer)
                buffer += 8 * MIXED_BLOCK + 192  # not a multiple of a page apart: loads would wait for stores
        store(words, 8 * count, load(out, Offset.ARRAY_DATA) + start * item)
        store(words, 8 * (count + 1), run)
        if unlikely(called_briefly(load(context, 8 * Known.ENTRY), words, count + 2) != 0):
            Py_DecRef(out)
            return Outcome.PYTHON
        start += run
    return out


def step_of(array: int) -> int:
    """Bytes from one element to the next; only with one dimension there may be gaps."""
    if load32(array, Offset.ARRAY_DIMENSIONS) == 1:
        return load(load(array, Offset.ARRAY_STRIDES))
    return load(load(array, Offset.ARRAY_DTYPE), Offset.DTYPE_BYTES)


FUNCTIONS = (mixed, step_of)
