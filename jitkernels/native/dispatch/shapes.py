"""Extents from shapes: leading dimensions broadcast, an axis goes to the end, and how each operand lies in its loop."""

# mypy: disable-error-code="name-defined,no-any-return,assignment"
from jitkernels.native.layout import (
    IN_FORTRAN_ORDER,
    MOST_OPERAND_DIMENSIONS,
    Frame,
    Offset,
    Operand,
    Plain,
    Record,
    Table,
)
from jitkernels.native.words import address, load, load32, store


def operand(frame: int, number: int) -> int:
    return frame + 8 * (Frame.WORDS + number * Operand.WORDS)


def record(table: int, number: int) -> int:
    return table + 8 * (Table.RECORDS + number * Record.WORDS)


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
                extent = load(own, 8 * (Operand.EXTENTS + dimensions - fixed + e)) - load(
                    entry, 8 * (Record.MORE + e)
                )
                if extent < 0:
                    return 0
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
    if load(table, 8 * Table.PLAIN) == Plain.ELEMENTWISE and load(frame, 8 * Frame.LEADING) > 1:
        store(frame, 8 * Frame.FORTRAN, all_fortran(frame, inputs))
    for i in range(inputs):
        own = operand(frame, i)
        if load(own, 8 * Operand.PRESENT):
            lay_out(table, frame, own, record(table, i))
    return 1


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
            or lies(array, load(frame, 8 * Frame.LEADING), frame + 8 * Frame.LEAD, 0) == 0
        ):
            fortran = 0
    return fortran


def lay_out(table: int, frame: int, own: int, entry: int) -> int:
    """Loop extents and strides of an operand (0 where it is broadcast), and whether the kernel takes it as it is."""
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


FUNCTIONS = (
    operand,
    record,
    bind_inputs,
    move_axis,
    rotate,
    broadcast,
    all_fortran,
    lay_out,
    mirror,
    lies_in_order,
    lies_turned,
)
