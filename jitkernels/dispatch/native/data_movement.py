"""Data-movement functions (transpose, gather and the like): copied from input to result without a buffer.

Such a call needs a kernel only if input and result both have the kernel's layout.
"""

# mypy: disable-error-code="name-defined,no-any-return,assignment,index"
from jitkernels.codegen.i64_intrinsics import address, stack
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
    pair = 4 * own[Operand.KIND] + target_of(out[Operand.KIND])
    if own[Operand.COPY]:
        return record(table, 0)[Record.IN_PLACE] and are_one(own, out)
    if address("jk_forms")[pair] == 0:
        return 0
    match(table, frame, own, out)
    state = 0
    if context[Known.LONG]:
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
    same = own[Operand.DATA] == out[Operand.DATA]
    same = same and own[Operand.KIND] == out[Operand.KIND]
    for d in range(out[Operand.DIMENSIONS]):
        same = same and own[Operand.STRIDES + d] == out[Operand.STRIDES + d]
    return same


def match(table: int, frame: int, own: int, out: int) -> int:
    """Give both operands the loop of the result: extents match by symbol; along other ones the input has stride 0."""
    entry = record(table, 1)
    leading = 0
    if entry[Record.LEADS]:
        leading = frame[Frame.LEADING]
    dimensions = leading + entry[Record.FIXED]
    strides = stack(MOST_OPERAND_DIMENSIONS)
    for d in range(leading):
        strides[d] = own[Operand.STRIDES + d]
        out[Operand.EXTENTS + d] = own[Operand.EXTENTS + d]
    for d in range(leading, dimensions):
        symbol = entry[Record.SHAPE + 3 * (d - leading) + 1]
        strides[d] = 0
        for e in range(record(table, 0)[Record.FIXED]):
            if record(table, 0)[Record.SHAPE + 3 * e + 1] == symbol:
                strides[d] = own[Operand.STRIDES + leading + e]
        out[Operand.EXTENTS + d] = frame[Frame.EXTENTS + symbol]
    step = out[Operand.ITEM]
    d = dimensions - 1
    while d >= 0:
        extent = out[Operand.EXTENTS + d]
        own[Operand.EXTENTS + d] = extent
        own[Operand.STRIDES + d] = strides[d]
        if out[Operand.DIRECT]:
            out[Operand.STRIDES + d] = step
        step = step * extent
        d -= 1
    own[Operand.DIMENSIONS] = dimensions
    out[Operand.DIMENSIONS] = dimensions
    return 0


def order_by(one: int, other: int) -> int:
    """Reorder the loop to ascending addresses of one operand, for both."""
    dimensions = one[Operand.DIMENSIONS]
    for d in range(dimensions):
        step = one[Operand.STRIDES + d]
        if step < 0:
            turn_along(one, d)
            turn_along(other, d)
    for d in range(1, dimensions):
        e = d
        while e > 0 and one[Operand.STRIDES + e - 1] < one[Operand.STRIDES + e]:
            exchange(one, e)
            exchange(other, e)
            e -= 1
    return 0


def turn_along(own: int, d: int) -> int:
    """Reverse a dimension."""
    step = own[Operand.STRIDES + d]
    reach = step * (own[Operand.EXTENTS + d] - 1)
    own[Operand.DATA] += reach
    own[Operand.STRIDES + d] = -step
    return 0


def exchange(own: int, d: int) -> int:
    """Swap a dimension with the one before it."""
    for words in range(2):
        place = own + 8 * (Operand.EXTENTS + words * MOST_OPERAND_DIMENSIONS + d)
        kept = place[0]
        place[0] = place[-1]
        place[-1] = kept
    return 0


def is_dense(own: int) -> int:
    """Whether `transfer` can use its memory as the buffer: contiguous floats in loop order."""
    kind = own[Operand.KIND]
    return (kind == FLOAT32 or kind == FLOAT64) and lies_in_order(own)


def at_once(own: int, buffer: int, pair: int, reading: int) -> int:
    """Copy all elements of an operand from or to a contiguous one."""
    own[Operand.PAIR] = pair
    own[Operand.WANTED] = buffer[Operand.KIND]
    own[Operand.BASE] = buffer[Operand.DATA]
    collapse(own)
    return transfer(own, 0, elements_of(own), reading)


def turned_along(own: int, out: int, pair: int) -> int:
    """The dimension along which the input is contiguous and the result is not; -1 where one transfer does it all."""
    form = address("jk_forms")[pair]
    item = form & 15
    last = out[Operand.DIMENSIONS] - 1
    if item < 4 or (form & SAME and is_dense(out)) or own[Operand.STRIDES + last] == item:
        return -1
    if out[Operand.EXTENTS + last] < SQUARE:
        return -1
    d = last - 1
    while d >= 0 and (own[Operand.STRIDES + d] != item or out[Operand.EXTENTS + d] < SQUARE):
        d -= 1
    return d


def in_tiles(own: int, out: int, pair: int, beside: int) -> int:
    """Transpose tiles of a dimension and the last one in registers, then copy them row by row to the result."""
    last = out[Operand.DIMENSIONS] - 1
    item = address("jk_forms")[pair] & 15
    lines = out[Operand.EXTENTS + beside]
    length = out[Operand.EXTENTS + last]
    step = own[Operand.STRIDES + last]
    to_step = out[Operand.STRIDES + last]
    to_line = out[Operand.STRIDES + beside]
    tile = stack((TILE_LINES + SQUARE) * (TILE_LENGTH + SQUARE))
    index = stack(MOST_OPERAND_DIMENSIONS)
    for d in range(last):
        index[d] = 0
    at = own[Operand.DATA]
    to = out[Operand.DATA]
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
                here = index[d] + 1
                at += own[Operand.STRIDES + d]
                to += out[Operand.STRIDES + d]
                further = 1
                if here == out[Operand.EXTENTS + d]:
                    at -= here * own[Operand.STRIDES + d]
                    to -= here * out[Operand.STRIDES + d]
                    here = 0
                    further = 0
                index[d] = here
            d -= 1
    return 0


def run_by_run(own: int, out: int, pair: int) -> int:
    """Both strided: copy along the last dimension, or along the last two at once where rows are contiguous."""
    last = out[Operand.DIMENSIONS] - 1
    length = out[Operand.EXTENTS + last]
    step = own[Operand.STRIDES + last]
    to_step = out[Operand.STRIDES + last]
    form = address("jk_forms")[pair]
    item = form & 15
    together = form & SAME and step == item and to_step == item and length * item >= LEAST_ROW and last > 0
    outer = last - 1 if together else last
    index = stack(MOST_OPERAND_DIMENSIONS)
    for d in range(outer):
        index[d] = 0
    at = own[Operand.DATA]
    to = out[Operand.DATA]
    d = 0
    while d >= 0:
        if together:
            across = own[Operand.STRIDES + outer]
            to_across = out[Operand.STRIDES + outer]
            rows(length * item, to, to_across, at, across, out[Operand.EXTENTS + outer])
        else:
            copy_run(pair, to, to_step, at, step, length)
        d = outer - 1
        further = 0
        while d >= 0 and further == 0:
            here = index[d] + 1
            at += own[Operand.STRIDES + d]
            to += out[Operand.STRIDES + d]
            further = 1
            if here == out[Operand.EXTENTS + d]:
                at -= here * own[Operand.STRIDES + d]
                to -= here * out[Operand.STRIDES + d]
                here = 0
                further = 0
            index[d] = here
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
