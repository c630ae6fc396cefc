"""Data-movement functions (transpose, gather and the like): copied from input to result without a buffer.

Such a call needs a kernel only if input and result both have the kernel's layout.
"""

# mypy: disable-error-code="name-defined,no-any-return,assignment"
from jitkernels.codegen.i64_intrinsics import address, load, stack, store
from jitkernels.runtime.abi_layout import (
    MOST_OPERAND_DIMENSIONS,
    TILE_LENGTH,
    TILE_LINES,
    Frame,
    Known,
    Operand,
    Record,
)


def relaid(table: int, frame: int, context: int) -> int:
    """Whether the result has been written: false where it overlaps the input, or the dtype needs two conversions."""
    own = operand(frame, 0)
    out = operand(frame, 1)
    pair = 4 * load(own, 8 * Operand.KIND) + target_of(load(out, 8 * Operand.KIND))
    if load(own, 8 * Operand.COPY):
        return load(record(table, 0), 8 * Record.IN_PLACE) and are_one(own, out)
    if load(address("jk_forms"), 8 * pair) == 0:
        return 0
    match(table, frame, own, out)
    state = 0
    if load(context, 8 * Known.LONG):
        state = PyEval_SaveThread()
    order_by(out, own)
    beside = turned_along(own, out, pair)
    if beside >= 0:
        in_tiles(own, out, pair, beside)
    elif is_dense(out):
        at_once(own, out, pair, 1)
    else:
        order_by(own, out)
        if is_dense(own):
            at_once(out, own, pair, 0)
        else:
            order_by(out, own)
            run_by_run(own, out, pair)
    if state != 0:
        PyEval_RestoreThread(state)
    return 1


def are_one(own: int, out: int) -> int:
    """Whether every element of the input is the same memory as that of the result."""
    same = load(own, 8 * Operand.DATA) == load(out, 8 * Operand.DATA)
    same = same and load(own, 8 * Operand.KIND) == load(out, 8 * Operand.KIND)
    for d in range(load(out, 8 * Operand.DIMENSIONS)):
        same = same and load(own, 8 * (Operand.STRIDES + d)) == load(out, 8 * (Operand.STRIDES + d))
    return same


def match(table: int, frame: int, own: int, out: int) -> int:
    """Give both operands the loop of the result: extents match by symbol; along other ones the input has stride 0."""
    entry = record(table, 1)
    leading = 0
    if load(entry, 8 * Record.LEADS):
        leading = load(frame, 8 * Frame.LEADING)
    dimensions = leading + load(entry, 8 * Record.FIXED)
    strides = stack(MOST_OPERAND_DIMENSIONS)
    for d in range(leading):
        store(strides, 8 * d, load(own, 8 * (Operand.STRIDES + d)))
        store(out, 8 * (Operand.EXTENTS + d), load(own, 8 * (Operand.EXTENTS + d)))
    for d in range(leading, dimensions):
        symbol = load(entry, 8 * (Record.SHAPE + 3 * (d - leading) + 1))
        store(strides, 8 * d, 0)
        for e in range(load(record(table, 0), 8 * Record.FIXED)):
            if load(record(table, 0), 8 * (Record.SHAPE + 3 * e + 1)) == symbol:
                store(strides, 8 * d, load(own, 8 * (Operand.STRIDES + leading + e)))
        store(out, 8 * (Operand.EXTENTS + d), load(frame, 8 * (Frame.EXTENTS + symbol)))
    step = load(out, 8 * Operand.ITEM)
    d = dimensions - 1
    while d >= 0:
        extent = load(out, 8 * (Operand.EXTENTS + d))
        store(own, 8 * (Operand.EXTENTS + d), extent)
        store(own, 8 * (Operand.STRIDES + d), load(strides, 8 * d))
        if load(out, 8 * Operand.DIRECT):
            store(out, 8 * (Operand.STRIDES + d), step)
        step = step * extent
        d -= 1
    store(own, 8 * Operand.DIMENSIONS, dimensions)
    store(out, 8 * Operand.DIMENSIONS, dimensions)
    return 0


def order_by(one: int, other: int) -> int:
    """Reorder the loop to ascending addresses of one operand, for both."""
    dimensions = load(one, 8 * Operand.DIMENSIONS)
    for d in range(dimensions):
        step = load(one, 8 * (Operand.STRIDES + d))
        if step < 0:
            turn_along(one, d)
            turn_along(other, d)
    for d in range(1, dimensions):
        e = d
        while e > 0 and load(one, 8 * (Operand.STRIDES + e - 1)) < load(one, 8 * (Operand.STRIDES + e)):
            exchange(one, e)
            exchange(other, e)
            e -= 1
    return 0


def turn_along(own: int, d: int) -> int:
    """Reverse a dimension."""
    step = load(own, 8 * (Operand.STRIDES + d))
    reach = step * (load(own, 8 * (Operand.EXTENTS + d)) - 1)
    store(own, 8 * Operand.DATA, load(own, 8 * Operand.DATA) + reach)
    store(own, 8 * (Operand.STRIDES + d), -step)
    return 0


def exchange(own: int, d: int) -> int:
    """Swap a dimension with the one before it."""
    for words in range(2):
        place = own + 8 * (Operand.EXTENTS + words * MOST_OPERAND_DIMENSIONS + d)
        kept = load(place)
        store(place, 0, load(place, -8))
        store(place, -8, kept)
    return 0


def is_dense(own: int) -> int:
    """Whether `transfer` can use its memory as the buffer: contiguous floats in loop order."""
    kind = load(own, 8 * Operand.KIND)
    return (kind == FLOAT32 or kind == FLOAT64) and lies_in_order(own)


def at_once(own: int, buffer: int, pair: int, reading: int) -> int:
    """Copy all elements of an operand from or to a contiguous one."""
    store(own, 8 * Operand.PAIR, pair)
    store(own, 8 * Operand.WANTED, load(buffer, 8 * Operand.KIND))
    store(own, 8 * Operand.BASE, load(buffer, 8 * Operand.DATA))
    collapse(own)
    return transfer(own, 0, elements_of(own), reading)


def turned_along(own: int, out: int, pair: int) -> int:
    """The dimension along which the input is contiguous and the result is not; -1 where one transfer does it all."""
    form = load(address("jk_forms"), 8 * pair)
    item = form & 15
    last = load(out, 8 * Operand.DIMENSIONS) - 1
    if item < 4 or (form & SAME and is_dense(out)) or load(own, 8 * (Operand.STRIDES + last)) == item:
        return -1
    if load(out, 8 * (Operand.EXTENTS + last)) < SQUARE:
        return -1
    d = last - 1
    while d >= 0 and (load(own, 8 * (Operand.STRIDES + d)) != item or load(out, 8 * (Operand.EXTENTS + d)) < SQUARE):
        d -= 1
    return d


def in_tiles(own: int, out: int, pair: int, beside: int) -> int:
    """Transpose tiles of a dimension and the last one in registers, then copy them row by row to the result."""
    last = load(out, 8 * Operand.DIMENSIONS) - 1
    item = load(address("jk_forms"), 8 * pair) & 15
    lines = load(out, 8 * (Operand.EXTENTS + beside))
    length = load(out, 8 * (Operand.EXTENTS + last))
    step = load(own, 8 * (Operand.STRIDES + last))
    to_step = load(out, 8 * (Operand.STRIDES + last))
    to_line = load(out, 8 * (Operand.STRIDES + beside))
    tile = stack((TILE_LINES + SQUARE) * (TILE_LENGTH + SQUARE))
    index = stack(MOST_OPERAND_DIMENSIONS)
    for d in range(last):
        store(index, 8 * d, 0)
    at = load(own, 8 * Operand.DATA)
    to = load(out, 8 * Operand.DATA)
    further = 1
    while further:
        line = 0
        while line < lines:
            height = lines - line if lines - line < TILE_LINES + SQUARE else TILE_LINES
            first = 0
            while first < length:
                width = length - first if length - first < TILE_LENGTH + SQUARE else TILE_LENGTH
                transpose(item, tile, width * item, at + line * item + first * step, step, width, height)
                place = to + line * to_line + first * to_step
                for i in range(height):
                    copy_run(pair, place + i * to_line, to_step, tile + i * width * item, item, width)
                first += width
            line += height
        further = 0
        d = last - 1
        while d >= 0 and further == 0:
            if d != beside:
                here = load(index, 8 * d) + 1
                at += load(own, 8 * (Operand.STRIDES + d))
                to += load(out, 8 * (Operand.STRIDES + d))
                further = 1
                if here == load(out, 8 * (Operand.EXTENTS + d)):
                    at -= here * load(own, 8 * (Operand.STRIDES + d))
                    to -= here * load(out, 8 * (Operand.STRIDES + d))
                    here = 0
                    further = 0
                store(index, 8 * d, here)
            d -= 1
    return 0


def run_by_run(own: int, out: int, pair: int) -> int:
    """Both strided: copy along the last dimension, or along the last two at once where rows are contiguous."""
    last = load(out, 8 * Operand.DIMENSIONS) - 1
    length = load(out, 8 * (Operand.EXTENTS + last))
    step = load(own, 8 * (Operand.STRIDES + last))
    to_step = load(out, 8 * (Operand.STRIDES + last))
    form = load(address("jk_forms"), 8 * pair)
    item = form & 15
    together = form & SAME and step == item and to_step == item and length * item >= LEAST_ROW and last > 0
    outer = last - 1 if together else last
    index = stack(MOST_OPERAND_DIMENSIONS)
    for d in range(outer):
        store(index, 8 * d, 0)
    at = load(own, 8 * Operand.DATA)
    to = load(out, 8 * Operand.DATA)
    d = 0
    while d >= 0:
        if together:
            across = load(own, 8 * (Operand.STRIDES + outer))
            to_across = load(out, 8 * (Operand.STRIDES + outer))
            rows(length * item, to, to_across, at, across, load(out, 8 * (Operand.EXTENTS + outer)))
        else:
            copy_run(pair, to, to_step, at, step, length)
        d = outer - 1
        further = 0
        while d >= 0 and further == 0:
            here = load(index, 8 * d) + 1
            at += load(own, 8 * (Operand.STRIDES + d))
            to += load(out, 8 * (Operand.STRIDES + d))
            further = 1
            if here == load(out, 8 * (Operand.EXTENTS + d)):
                at -= here * load(own, 8 * (Operand.STRIDES + d))
                to -= here * load(out, 8 * (Operand.STRIDES + d))
                here = 0
                further = 0
            store(index, 8 * d, here)
            d -= 1
        if further:
            d = 0
    return 0


FUNCTIONS = (
    relaid,
    are_one,
    match,
    order_by,
    turn_along,
    exchange,
    is_dense,
    at_once,
    turned_along,
    in_tiles,
    run_by_run,
)
