"""Infer extents from shapes: broadcast leading dimensions, move an axis to the end, lay out each operand's loop."""

# mypy: disable-error-code="name-defined,no-any-return,assignment"
from jitkernels.codegen.i64_intrinsics import address, load, load32, store
from jitkernels.runtime.abi_layout import (
    IN_FORTRAN_ORDER,
    MOST_OPERAND_DIMENSIONS,
    Frame,
    Offset,
    Operand,
    Plain,
    Record,
    Table,
)


def operand(frame: int, number: int) -> int:
    return frame + 8 * (Frame.WORDS + number * Operand.WORDS)


def record(table: int, number: int) -> int:
    return table + 8 * (Table.RECORDS + number * Record.WORDS)


def bind_inputs(table: int, frame: int) -> int:
    """Broadcast leading dimensions, check all other extents, and put every operand in the order of its loop.

    Extents that options determine are already set.
    """
    inputs = load(table, 8 * Table.INPUTS)
    store(frame, 8 * Frame.MISSING, 0)
    store(frame, 8 * Frame.MOVED, -1)
    store(frame, 8 * Frame.BEHIND, -1)
    store(frame, 8 * Frame.FORTRAN, 0)
    trailing = load(table, 8 * Table.TRAILING)
    if load(table, 8 * Table.MIRRORS):
        turn_round(frame)
    spread = load(table, 8 * Table.SPREAD)
    products = 0
    for i in range(inputs):
        own = operand(frame, i)
        if load(own, 8 * Operand.PRESENT):
            entry = record(table, i)
            leads = load(entry, 8 * Record.LEADS)
            fixed = load(entry, 8 * Record.FIXED)
            dimensions = load(own, 8 * Operand.DIMENSIONS)
            if leads and trailing < 0 and load(frame, 8 * Frame.AXIS) != -1:
                if move_axis(frame, own) == 0:
                    return 0
            along = load(entry, 8 * Record.ALONG)
            if along:
                if as_one(frame, entry, own, operand(frame, along - 1)) == 0:
                    return 0
                dimensions = fixed
            if dimensions == fixed - 1 and load(entry, 8 * Record.OPTIONAL):
                # A vector in place of a matrix of one column, which the result omits as well; or a scalar.
                store(own, 8 * (Operand.EXTENTS + dimensions), 1)
                store(own, 8 * (Operand.STRIDES + dimensions), load(own, 8 * Operand.ITEM))
                dimensions += 1
                store(own, 8 * Operand.DIMENSIONS, dimensions)
                if load(entry, 8 * Record.OPTIONAL) == 1:
                    store(frame, 8 * Frame.MISSING, 1)
            own_dimensions = fixed
            if load(entry, 8 * Record.TRAILS):
                if trail(table, frame, own, fixed, leads) == 0:
                    return 0
                own_dimensions += load(frame, 8 * Frame.BEHIND)
            if dimensions < own_dimensions or (leads == 0 and dimensions > own_dimensions):
                return 0
            if leads:
                if broadcast(frame, own, dimensions - own_dimensions) == 0:
                    return 0
            for e in range(fixed):
                extent = load(own, 8 * (Operand.EXTENTS + dimensions - own_dimensions + e)) - load(
                    entry, 8 * (Record.MORE + e)
                )
                if extent < 0:
                    return 0
                factor = load(entry, 8 * (Record.SHAPE + 3 * e))
                place = load(entry, 8 * (Record.SHAPE + 3 * e + 1))
                if load(entry, 8 * (Record.SHAPE + 3 * e + 2)) >= 0:
                    products = 1
                    factor = extent
                elif place >= 0:
                    symbol = frame + 8 * (Frame.EXTENTS + place)
                    if load(symbol) == -1:
                        store(symbol, 0, extent // factor)
                    factor = factor * load(symbol)
                if factor != extent:
                    return 0
    if products and products_agree(table, frame, inputs) == 0:
        return 0
    if spread >= 0:
        total = 1
        for d in range(load(frame, 8 * Frame.LEADING)):
            total = total * load(frame, 8 * (Frame.LEAD + d))
        store(frame, 8 * (Frame.EXTENTS + spread), total)
    kind = load(table, 8 * Table.PLAIN)
    if (kind == Plain.ELEMENTWISE or kind == Plain.ANY_ORDER) and load(frame, 8 * Frame.LEADING) > 1:
        store(frame, 8 * Frame.FORTRAN, all_fortran(table, frame, inputs))
    for i in range(inputs):
        own = operand(frame, i)
        if load(own, 8 * Operand.PRESENT):
            lay_out(table, frame, own, record(table, i))
    return 1


def products_agree(table: int, frame: int, inputs: int) -> int:
    """Whether extents that are products of two symbols match the values of these."""
    for i in range(inputs):
        own = operand(frame, i)
        if load(own, 8 * Operand.PRESENT):
            entry = record(table, i)
            fixed = load(entry, 8 * Record.FIXED)
            first = load(own, 8 * Operand.DIMENSIONS) - fixed
            if load(entry, 8 * Record.TRAILS):
                first -= load(frame, 8 * Frame.BEHIND)
            for e in range(fixed):
                last = load(entry, 8 * (Record.SHAPE + 3 * e + 2))
                if last >= 0:
                    place = load(entry, 8 * (Record.SHAPE + 3 * e + 1))
                    one = load(frame, 8 * (Frame.EXTENTS + place))
                    other = load(frame, 8 * (Frame.EXTENTS + last))
                    more = load(entry, 8 * (Record.MORE + e))
                    wanted = load(entry, 8 * (Record.SHAPE + 3 * e)) * one * other + more
                    if one < 0 or other < 0 or load(own, 8 * (Operand.EXTENTS + first + e)) != wanted:
                        return 0
    return 1


def turn_round(frame: int) -> int:
    """Reverse the dimensions and the axis of an array in Fortran order, so that it needs no copy."""
    own = operand(frame, 0)
    array = load(own, 8 * Operand.ARRAY)
    dimensions = load(own, 8 * Operand.DIMENSIONS)
    axis = load(frame, 8 * Frame.AXIS)
    if load(array, Offset.TYPE) != address("jk_ndarray") or axis >= dimensions or axis < -dimensions:
        return 0
    if load(own, 8 * Operand.CONTIGUOUS) or load32(array, Offset.ARRAY_FLAGS) & IN_FORTRAN_ORDER == 0:
        return 0
    mirror(own)
    store(frame, 8 * Frame.AXIS, -1 - axis if axis < 0 else dimensions - 1 - axis)
    store(frame, 8 * Frame.FORTRAN, 1)
    return 1


def trail(table: int, frame: int, own: int, fixed: int, leads: int) -> int:
    """The trailing dimensions, set by the first operand that has some; 0 if another operand's differ."""
    dimensions = load(own, 8 * Operand.DIMENSIONS)
    if load(frame, 8 * Frame.BEHIND) < 0:
        behind = dimensions - fixed
        if leads:
            axis = load(frame, 8 * Frame.AXIS)
            if axis >= dimensions or axis < -dimensions:
                return 0
            behind = -1 - axis if axis < 0 else dimensions - 1 - axis
        if behind < 0:
            return 0
        total = 1
        for d in range(behind):
            extent = load(own, 8 * (Operand.EXTENTS + dimensions - behind + d))
            store(frame, 8 * (Frame.TRAIL + d), extent)
            total = total * extent
        store(frame, 8 * Frame.BEHIND, behind)
        store(frame, 8 * (Frame.EXTENTS + load(table, 8 * Table.TRAILING)), total)
        return 1
    behind = load(frame, 8 * Frame.BEHIND)
    if dimensions < behind:
        return 0
    for d in range(behind):
        if load(own, 8 * (Operand.EXTENTS + dimensions - behind + d)) != load(frame, 8 * (Frame.TRAIL + d)):
            return 0
    return 1


def move_axis(frame: int, own: int) -> int:
    """Move the axis of a call, counted from the end of the first operand, to the end."""
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
    """Move the first word to the end."""
    kept = load(words, 8 * first)
    for d in range(first, last):
        store(words, 8 * d, load(words, 8 * (d + 1)))
    store(words, 8 * last, kept)
    return 0


def all_fortran(table: int, frame: int, inputs: int) -> int:
    """Whether all array operands of an elementwise kernel are in Fortran order, equivalent to C order then."""
    fortran = 1
    for i in range(inputs):
        own = operand(frame, i)
        array = load(own, 8 * Operand.ARRAY)
        if (
            array != 0
            and load(record(table, i), 8 * Record.LEADS)
            and (
                load(array, Offset.TYPE) != address("jk_ndarray")
                or load(own, 8 * Operand.CONTIGUOUS)
                or load32(array, Offset.ARRAY_FLAGS) & IN_FORTRAN_ORDER == 0
                or load(own, 8 * Operand.DIMENSIONS) != load(frame, 8 * Frame.LEADING)
                or lies(array, load(frame, 8 * Frame.LEADING), frame + 8 * Frame.LEAD, 0) == 0
            )
        ):
            fortran = 0
    return fortran


def lay_out(table: int, frame: int, own: int, entry: int) -> int:
    """Compute loop extents and strides of an operand (0 if broadcast), and whether the kernel can read it directly."""
    dimensions = load(own, 8 * Operand.DIMENSIONS)
    fixed = load(entry, 8 * Record.FIXED)
    if load(entry, 8 * Record.TRAILS):
        fixed += load(frame, 8 * Frame.BEHIND)
    wanted = wanted_of(frame, entry)
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
    direct = direct and load(own, 8 * Operand.ALIGNED)
    if load(frame, 8 * Frame.FORTRAN) and load(table, 8 * Table.MIRRORS) == 0:
        mirror(own)
        same = 1
        store(own, 8 * Operand.CONTIGUOUS, 1)
    if direct and (same == 0 or load(own, 8 * Operand.CONTIGUOUS) == 0):
        direct = lies_in_order(own)
    store(own, 8 * Operand.TURNED, 0)
    turns = load(entry, 8 * Record.TURN) != 0 and load(own, 8 * Operand.ALIGNED)
    if direct == 0 and turns and load(own, 8 * Operand.KIND) == wanted:
        if (fixed == 2 or load(own, 8 * Operand.DIMENSIONS) == 2) and lies_turned(own):
            direct = 1
            store(own, 8 * Operand.TURNED, 1)
            store(frame, 8 * Frame.OPTIONS, load(frame, 8 * Frame.OPTIONS) + load(entry, 8 * Record.TURN))
    store(own, 8 * Operand.DIRECT, direct)
    return 0


def wanted_of(frame: int, entry: int) -> int:
    """NumPy's type number of the dtype that the kernel expects."""
    integer = load(entry, 8 * Record.INTEGER)
    unless = load(entry, 8 * Record.UNLESS)
    if integer == 0 or (unless and load(operand(frame, unless - 1), 8 * Operand.PRESENT)):
        return FLOAT32 + load(frame, 8 * Frame.WIDE)
    factor = load(entry, 8 * Record.VARIES)
    if factor and load(frame, 8 * Frame.OPTIONS) // factor & 1:
        return integer
    return integer - 1


def mirror(own: int) -> int:
    """Reverse the dimensions of an operand."""
    last = load(own, 8 * Operand.DIMENSIONS) - 1
    for d in range((last + 1) // 2):
        for words in range(2):
            place = own + 8 * (Operand.EXTENTS + words * MOST_OPERAND_DIMENSIONS)
            kept = load(place, 8 * d)
            store(place, 8 * d, load(place, 8 * (last - d)))
            store(place, 8 * (last - d), kept)
    return 0


def lies_in_order(own: int) -> int:
    """Whether the elements are contiguous in loop order."""
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
    """Whether matrices are stored as transposes of contiguous ones."""
    item = load(own, 8 * Operand.ITEM)
    last = load(own, 8 * Operand.DIMENSIONS) - 1
    rows = load(own, 8 * (Operand.EXTENTS + last - 1))
    if load(own, 8 * (Operand.STRIDES + last - 1)) != item:
        return 0
    if load(own, 8 * (Operand.STRIDES + last)) != item * rows:
        return 0
    step = item * rows * load(own, 8 * (Operand.EXTENTS + last))
    d = last - 2
    while d >= 0:
        extent = load(own, 8 * (Operand.EXTENTS + d))
        if extent != 1 and load(own, 8 * (Operand.STRIDES + d)) != step:
            return 0
        step = step * extent
        d -= 1
    return 1


FUNCTIONS = (
    operand,
    record,
    bind_inputs,
    products_agree,
    turn_round,
    trail,
    move_axis,
    rotate,
    all_fortran,
    lay_out,
    wanted_of,
    mirror,
    lies_in_order,
    lies_turned,
)
