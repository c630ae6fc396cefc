"""Infer extents from shapes: broadcast leading dimensions, move an axis to the end, lay out each operand's loop."""

# mypy: disable-error-code="name-defined,no-any-return,assignment,index"
from jitkernels.codegen.i64_intrinsics import address, load, load32
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
    inputs = table[Table.INPUTS]
    frame[Frame.MISSING] = 0
    frame[Frame.MOVED] = -1
    frame[Frame.BEHIND] = -1
    frame[Frame.FORTRAN] = 0
    trailing = table[Table.TRAILING]
    if table[Table.MIRRORS]:
        turn_round(frame)
    spread = table[Table.SPREAD]
    products = 0
    for i in range(inputs):
        own = operand(frame, i)
        if own[Operand.PRESENT]:
            entry = record(table, i)
            leads = entry[Record.LEADS]
            fixed = entry[Record.FIXED]
            dimensions = own[Operand.DIMENSIONS]
            if leads and trailing < 0 and frame[Frame.AXIS] != -1:
                if move_axis(frame, own) == 0:
                    return 0
            along = entry[Record.ALONG]
            if along:
                if as_one(frame, entry, own, operand(frame, along - 1)) == 0:
                    return 0
                dimensions = fixed
            if dimensions == fixed - 1 and entry[Record.OPTIONAL]:
                # A vector in place of a matrix of one column, which the result omits as well; or a scalar.
                own[Operand.EXTENTS + dimensions] = 1
                own[Operand.STRIDES + dimensions] = own[Operand.ITEM]
                dimensions += 1
                own[Operand.DIMENSIONS] = dimensions
                if entry[Record.OPTIONAL] == 1:
                    frame[Frame.MISSING] = 1
            own_dimensions = fixed
            if entry[Record.TRAILS]:
                if trail(table, frame, own, fixed, leads) == 0:
                    return 0
                own_dimensions += frame[Frame.BEHIND]
            if dimensions < own_dimensions or (leads == 0 and dimensions > own_dimensions):
                return 0
            if leads:
                if broadcast(frame, own, dimensions - own_dimensions) == 0:
                    return 0
            for e in range(fixed):
                extent = own[Operand.EXTENTS + dimensions - own_dimensions + e] - entry[Record.MORE + e]
                if extent < 0:
                    return 0
                factor = entry[Record.SHAPE + 3 * e]
                place = entry[Record.SHAPE + 3 * e + 1]
                if entry[Record.SHAPE + 3 * e + 2] >= 0:
                    products = 1
                    factor = extent
                elif place >= 0:
                    symbol = frame + 8 * (Frame.EXTENTS + place)
                    if symbol[0] == -1:
                        symbol[0] = extent // factor
                    factor = factor * symbol[0]
                if factor != extent:
                    return 0
    if products and products_agree(table, frame, inputs) == 0:
        return 0
    if spread >= 0:
        total = 1
        for d in range(frame[Frame.LEADING]):
            total = total * frame[Frame.LEAD + d]
        frame[Frame.EXTENTS + spread] = total
    kind = table[Table.PLAIN]
    if (kind == Plain.ELEMENTWISE or kind == Plain.ANY_ORDER) and frame[Frame.LEADING] > 1:
        frame[Frame.FORTRAN] = all_fortran(table, frame, inputs)
    for i in range(inputs):
        own = operand(frame, i)
        if own[Operand.PRESENT]:
            lay_out(table, frame, own, record(table, i))
    return 1


def products_agree(table: int, frame: int, inputs: int) -> int:
    """Whether extents that are products of two symbols match the values of these."""
    for i in range(inputs):
        own = operand(frame, i)
        if own[Operand.PRESENT]:
            entry = record(table, i)
            fixed = entry[Record.FIXED]
            first = own[Operand.DIMENSIONS] - fixed
            if entry[Record.TRAILS]:
                first -= frame[Frame.BEHIND]
            for e in range(fixed):
                last = entry[Record.SHAPE + 3 * e + 2]
                if last >= 0:
                    place = entry[Record.SHAPE + 3 * e + 1]
                    one = frame[Frame.EXTENTS + place]
                    other = frame[Frame.EXTENTS + last]
                    more = entry[Record.MORE + e]
                    wanted = entry[Record.SHAPE + 3 * e] * one * other + more
                    if one < 0 or other < 0 or own[Operand.EXTENTS + first + e] != wanted:
                        return 0
    return 1


def turn_round(frame: int) -> int:
    """Reverse the dimensions and the axis of an array in Fortran order, so that it needs no copy."""
    own = operand(frame, 0)
    array = own[Operand.ARRAY]
    dimensions = own[Operand.DIMENSIONS]
    axis = frame[Frame.AXIS]
    if load(array, Offset.TYPE) != address("jk_ndarray") or axis >= dimensions or axis < -dimensions:
        return 0
    if own[Operand.CONTIGUOUS] or load32(array, Offset.ARRAY_FLAGS) & IN_FORTRAN_ORDER == 0:
        return 0
    mirror(own)
    frame[Frame.AXIS] = -1 - axis if axis < 0 else dimensions - 1 - axis
    frame[Frame.FORTRAN] = 1
    return 1


def trail(table: int, frame: int, own: int, fixed: int, leads: int) -> int:
    """The trailing dimensions, set by the first operand that has some; 0 if another operand's differ."""
    dimensions = own[Operand.DIMENSIONS]
    if frame[Frame.BEHIND] < 0:
        behind = dimensions - fixed
        if leads:
            axis = frame[Frame.AXIS]
            if axis >= dimensions or axis < -dimensions:
                return 0
            behind = -1 - axis if axis < 0 else dimensions - 1 - axis
        if behind < 0:
            return 0
        total = 1
        for d in range(behind):
            extent = own[Operand.EXTENTS + dimensions - behind + d]
            frame[Frame.TRAIL + d] = extent
            total = total * extent
        frame[Frame.BEHIND] = behind
        frame[Frame.EXTENTS + table[Table.TRAILING]] = total
        return 1
    behind = frame[Frame.BEHIND]
    if dimensions < behind:
        return 0
    for d in range(behind):
        if own[Operand.EXTENTS + dimensions - behind + d] != frame[Frame.TRAIL + d]:
            return 0
    return 1


def move_axis(frame: int, own: int) -> int:
    """Move the axis of a call, counted from the end of the first operand, to the end."""
    dimensions = own[Operand.DIMENSIONS]
    axis = frame[Frame.AXIS]
    if frame[Frame.MOVED] < 0:
        if axis >= dimensions or axis < -dimensions:
            return 0
        if axis >= 0:
            axis -= dimensions
        frame[Frame.AXIS] = axis
        frame[Frame.MOVED] = 0
        if axis == -1:
            frame[Frame.MOVED] = -1
            return 1
    if dimensions + axis < 0:
        return 0
    if own[Operand.DIMENSIONS] > 1:
        own[Operand.CONTIGUOUS] = 0
    rotate(own + 8 * Operand.EXTENTS, dimensions + axis, dimensions - 1)
    rotate(own + 8 * Operand.STRIDES, dimensions + axis, dimensions - 1)
    return 1


def rotate(words: int, first: int, last: int) -> int:
    """Move the first word to the end."""
    kept = words[first]
    for d in range(first, last):
        words[d] = words[d + 1]
    words[last] = kept
    return 0


def all_fortran(table: int, frame: int, inputs: int) -> int:
    """Whether all array operands of an elementwise kernel are in Fortran order, equivalent to C order then."""
    fortran = 1
    for i in range(inputs):
        own = operand(frame, i)
        array = own[Operand.ARRAY]
        if (
            array != 0
            and record(table, i)[Record.LEADS]
            and (
                load(array, Offset.TYPE) != address("jk_ndarray")
                or own[Operand.CONTIGUOUS]
                or load32(array, Offset.ARRAY_FLAGS) & IN_FORTRAN_ORDER == 0
                or own[Operand.DIMENSIONS] != frame[Frame.LEADING]
                or lies(array, frame[Frame.LEADING], frame + 8 * Frame.LEAD, 0) == 0
            )
        ):
            fortran = 0
    return fortran


def lay_out(table: int, frame: int, own: int, entry: int) -> int:
    """Compute loop extents and strides of an operand (0 if broadcast), and whether the kernel can read it directly."""
    dimensions = own[Operand.DIMENSIONS]
    fixed = entry[Record.FIXED]
    if entry[Record.TRAILS]:
        fixed += frame[Frame.BEHIND]
    wanted = wanted_of(frame, entry)
    own[Operand.WANTED] = wanted
    inner = 1
    for d in range(dimensions - fixed, dimensions):
        inner = inner * own[Operand.EXTENTS + d]
    own[Operand.INNER] = inner
    same = 1
    if entry[Record.LEADS]:
        leading = dimensions - fixed
        common = frame[Frame.LEADING]
        grown = common - leading
        if grown > 0:
            same = 0
            at = dimensions - 1
            while at >= 0:
                own[Operand.EXTENTS + at + grown] = own[Operand.EXTENTS + at]
                own[Operand.STRIDES + at + grown] = own[Operand.STRIDES + at]
                at -= 1
            for d in range(grown):
                own[Operand.EXTENTS + d] = 1
                own[Operand.STRIDES + d] = 0
            own[Operand.DIMENSIONS] = dimensions + grown
        for d in range(common):
            extent = frame[Frame.LEAD + d]
            if own[Operand.EXTENTS + d] != extent:
                same = 0
                own[Operand.EXTENTS + d] = extent
                own[Operand.STRIDES + d] = 0
    direct = own[Operand.KIND] == wanted
    if wanted == 7 and own[Operand.KIND] == 9:
        direct = 1
    direct = direct and own[Operand.ALIGNED]
    if frame[Frame.FORTRAN] and table[Table.MIRRORS] == 0:
        mirror(own)
        same = 1
        own[Operand.CONTIGUOUS] = 1
    if direct and (same == 0 or own[Operand.CONTIGUOUS] == 0):
        direct = lies_in_order(own)
    own[Operand.TURNED] = 0
    turns = entry[Record.TURN] != 0 and own[Operand.ALIGNED]
    if direct == 0 and turns and own[Operand.KIND] == wanted:
        if (fixed == 2 or own[Operand.DIMENSIONS] == 2) and lies_turned(own):
            direct = 1
            own[Operand.TURNED] = 1
            frame[Frame.OPTIONS] += entry[Record.TURN]
    own[Operand.DIRECT] = direct
    return 0


def wanted_of(frame: int, entry: int) -> int:
    """NumPy's type number of the dtype that the kernel expects."""
    integer = entry[Record.INTEGER]
    unless = entry[Record.UNLESS]
    if integer == 0 or (unless and operand(frame, unless - 1)[Operand.PRESENT]):
        return FLOAT32 + frame[Frame.WIDE]
    factor = entry[Record.VARIES]
    if factor and frame[Frame.OPTIONS] // factor & 1:
        return integer
    return integer - 1


def mirror(own: int) -> int:
    """Reverse the dimensions of an operand."""
    last = own[Operand.DIMENSIONS] - 1
    for d in range((last + 1) // 2):
        for words in range(2):
            place = own + 8 * (Operand.EXTENTS + words * MOST_OPERAND_DIMENSIONS)
            kept = place[d]
            place[d] = place[last - d]
            place[last - d] = kept
    return 0


def lies_in_order(own: int) -> int:
    """Whether the elements are contiguous in loop order."""
    step = own[Operand.ITEM]
    d = own[Operand.DIMENSIONS] - 1
    while d >= 0:
        extent = own[Operand.EXTENTS + d]
        if extent != 1 and own[Operand.STRIDES + d] != step:
            return 0
        step = step * extent
        d -= 1
    return 1


def lies_turned(own: int) -> int:
    """Whether matrices are stored as transposes of contiguous ones."""
    item = own[Operand.ITEM]
    last = own[Operand.DIMENSIONS] - 1
    rows = own[Operand.EXTENTS + last - 1]
    if own[Operand.STRIDES + last - 1] != item:
        return 0
    if own[Operand.STRIDES + last] != item * rows:
        return 0
    step = item * rows * own[Operand.EXTENTS + last]
    d = last - 2
    while d >= 0:
        extent = own[Operand.EXTENTS + d]
        if extent != 1 and own[Operand.STRIDES + d] != step:
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
