"""Results of a call: allocate or check them, resolve overlap with inputs, compute."""

# mypy: disable-error-code="name-defined,no-any-return,assignment,index"
from jitkernels.codegen.i64_intrinsics import address, call, load, load8, load32, stack
from jitkernels.runtime.abi_layout import (
    MOST_CALL_WORDS,
    NATIVE,
    NO_ORDER,
    WRITEABLE,
    Frame,
    Known,
    Offset,
    Operand,
    Outcome,
    Part,
    Record,
    Table,
)


def with_results(table: int, slots: int, frame: int, context: int) -> int:
    """Allocate or check the results, compute, and return them."""
    inputs = table[Table.INPUTS]
    outputs = table[Table.OUTPUTS]
    given = slots[table[Table.PARAMETERS] - 1]
    if given == address("jk_none"):
        given = 0
    nothing = 1
    present = 0
    for i in range(outputs):
        own = operand(frame, inputs + i)
        leader = record(table, inputs + i)[Record.LEADER]
        here = 1
        asked = record(table, inputs + i)[Record.WHEN]
        if leader >= 0:
            here = operand(frame, leader)[Operand.PRESENT]
        elif asked:
            here = frame[Frame.OPTIONS] // asked % 2
        own[Operand.PRESENT] = here
        own[Operand.ARRAY] = 0
        if here:
            total = natural(table, frame, record(table, inputs + i), own)
            nothing = nothing and total == 0
            present += 1
    items = stack(1)
    items[0] = given
    if given != 0 and present > 1:
        if load(given, Offset.TYPE) != address("jk_tuple") or load(given, Offset.TUPLE_SIZE) != present:
            return 0
        items = given + Offset.TUPLE_ITEMS
    if nothing:
        # Inputs that results do not depend on are checked all the same, such as indices.
        nothing = frame[Frame.EMPTY] & table[Table.HIDDEN] == 0
    if context == 0:
        if nothing == 0:
            return 0
        table[Table.MISSED] = 0
    for i in range(outputs):
        own = operand(frame, inputs + i)
        if own[Operand.PRESENT] == 0:
            continue
        own[Operand.BESIDE] = 0
        if given != 0:
            if takes_copies(frame, record(table, inputs + i), own, items[0]):
                own[Operand.BESIDE] = items[0]
            elif accept(frame, record(table, inputs + i), own, items[0]) == 0:
                return 0
            items += 8
        if given == 0 or own[Operand.BESIDE] != 0:
            kind = wanted_of(frame, record(table, inputs + i))
            descr = descr_of(kind)
            Py_IncRef(descr)
            array = PyArray_Empty(own[Operand.DIMENSIONS], own + 8 * Operand.EXTENTS, descr, frame[Frame.FORTRAN])
            if array == 0:
                PyErr_Clear()
                return 0
            own[Operand.OWNED] = array
            own[Operand.ARRAY] = array
            own[Operand.DATA] = load(array, Offset.ARRAY_DATA)
            own[Operand.KIND] = kind
            own[Operand.ITEM] = load(descr, Offset.DTYPE_BYTES)
            own[Operand.CONTIGUOUS] = 1
            own[Operand.ALIGNED] = 1
            if frame[Frame.MOVED] >= 0:
                read_array(own, array)
        lay_out_result(frame, record(table, inputs + i), own)
    if given != 0:
        if keep_apart(table, frame) == 0:
            return 0
    if nothing == 0:
        if computed(table, frame, context) == 0:
            return 0
    if given != 0:
        for i in range(outputs):
            own = operand(frame, inputs + i)
            if own[Operand.PRESENT] and own[Operand.BESIDE] != 0:
                if PyArray_CopyInto(own[Operand.BESIDE], own[Operand.OWNED]) != 0:
                    return Outcome.ERROR
        Py_IncRef(given)
        return given
    if present == 1:
        array = operand(frame, inputs)[Operand.OWNED]
        operand(frame, inputs)[Operand.OWNED] = 0
        return array
    both = PyTuple_New(present)
    if both == 0:
        return Outcome.ERROR
    place = both + Offset.TUPLE_ITEMS
    for i in range(outputs):
        own = operand(frame, inputs + i)
        if own[Operand.PRESENT]:
            place[0] = own[Operand.OWNED]
            own[Operand.OWNED] = 0
            place += 8
    return both


def descr_of(kind: int) -> int:
    """NumPy's dtype object of a result, by type number."""
    if kind == FLOAT32:
        return address("jk_float32")
    if kind == FLOAT64:
        return address("jk_float64")
    if kind == BFLOAT16:
        return address("jk_bfloat16")[0]
    if kind == 1:
        return address("jk_int8")
    if kind == 2:
        return address("jk_uint8")
    return address("jk_int32") if kind == 5 else address("jk_int64")


def natural(table: int, frame: int, entry: int, own: int) -> int:
    """Compute the shape of a result as the caller sees it; returns its number of elements."""
    dimensions = 0
    total = 1
    if entry[Record.LEADS]:
        dimensions = frame[Frame.LEADING]
        for d in range(dimensions):
            own[Operand.EXTENTS + d] = frame[Frame.LEAD + d]
            total = total * frame[Frame.LEAD + d]
    fixed = entry[Record.FIXED]
    inner = 1
    for e in range(fixed):
        extent = entry[Record.SHAPE + 3 * e]
        first = entry[Record.SHAPE + 3 * e + 1]
        if first >= 0:
            extent = extent * frame[Frame.EXTENTS + first]
        second = entry[Record.SHAPE + 3 * e + 2]
        if second >= 0:
            extent = extent * frame[Frame.EXTENTS + second]
        extent += entry[Record.MORE + e]
        inner = inner * extent
        if e < fixed - 1 or entry[Record.OPTIONAL] == 0 or frame[Frame.MISSING] == 0:
            own[Operand.EXTENTS + dimensions] = extent
            dimensions += 1
    if entry[Record.TRAILS]:
        for d in range(frame[Frame.BEHIND]):
            extent = frame[Frame.TRAIL + d]
            inner = inner * extent
            own[Operand.EXTENTS + dimensions] = extent
            dimensions += 1
    own[Operand.INNER] = inner
    own[Operand.DIMENSIONS] = dimensions
    if frame[Frame.FORTRAN] and table[Table.MIRRORS]:
        mirror(own)
    if fixed and frame[Frame.MOVED] >= 0:
        # Move the extent of the axis, now last, back to the caller's position.
        kept = own[Operand.EXTENTS + dimensions - 1]
        place = dimensions + frame[Frame.AXIS]
        d = dimensions - 1
        while d > place:
            own[Operand.EXTENTS + d] = own[Operand.EXTENTS + d - 1]
            d -= 1
        own[Operand.EXTENTS + place] = kept
    return total * inner


def accept(frame: int, entry: int, own: int, array: int) -> int:
    """Check a result that the caller passed: shape, writeable, a float dtype or the result's own; 0 if it fails."""
    if load(array, Offset.TYPE) != address("jk_ndarray") and is_derived(load(array, Offset.TYPE)) == 0:
        return 0
    dimensions = own[Operand.DIMENSIONS]
    if lies(array, dimensions, own + 8 * Operand.EXTENTS, WRITEABLE) == 0:
        return 0
    if read_array(own, array) == 0:
        return 0
    kind = own[Operand.KIND]
    wanted = wanted_of(frame, entry)
    if wanted < FLOAT32 or wanted == BFLOAT16:
        if kind != wanted:
            return 0
    elif kind != FLOAT32 and kind != FLOAT64 and (kind != FLOAT16 or frame[Frame.WIDE]):
        return 0
    if own[Operand.CONTIGUOUS] == 0:
        if folds(own):
            return 0
    own[Operand.ARRAY] = array
    return 1


def takes_copies(frame: int, entry: int, own: int, array: int) -> int:
    """Whether it is valid for a result but byte-swapped: NumPy then copies a new result into it."""
    if load(array, Offset.TYPE) != address("jk_ndarray"):
        return 0
    descr = load(array, Offset.ARRAY_DTYPE)
    order = load8(descr, Offset.DTYPE_ORDER)
    if load32(descr, Offset.DTYPE_NUMBER) != wanted_of(frame, entry) or order == NATIVE or order == NO_ORDER:
        return 0
    dimensions = own[Operand.DIMENSIONS]
    if lies(array, dimensions, own + 8 * Operand.EXTENTS, WRITEABLE) == 0:
        return 0
    for d in range(dimensions):
        own[Operand.STRIDES + d] = load(array, Offset.ARRAY_STRIDES)[d]
    own[Operand.ITEM] = load(load(array, Offset.ARRAY_DTYPE), Offset.DTYPE_BYTES)
    own[Operand.DATA] = load(array, Offset.ARRAY_DATA)
    find_ends(own)
    return folds(own) == 0


def folds(own: int) -> int:
    """Whether two elements may share memory: a stride does not exceed the reach of smaller ones."""
    for d in range(own[Operand.DIMENSIONS]):
        stride = own[Operand.STRIDES + d]
        stride = max(stride, -stride)
        reach = own[Operand.ITEM]
        for e in range(own[Operand.DIMENSIONS]):
            other = own[Operand.STRIDES + e]
            other = max(other, -other)
            if other < stride or (other == stride and e < d):
                reach += other * (own[Operand.EXTENTS + e] - 1)
        if stride < reach and own[Operand.EXTENTS + d] > 1:
            return 1
    return 0


def lay_out_result(frame: int, entry: int, own: int) -> int:
    """Compute the loop extents and strides of a result, and whether the kernel can write it directly."""
    dimensions = own[Operand.DIMENSIONS]
    wanted = wanted_of(frame, entry)
    own[Operand.WANTED] = wanted
    own[Operand.TURNED] = 0
    direct = own[Operand.KIND] == wanted or entry[Record.INTEGER]
    direct = direct and own[Operand.ALIGNED]
    if entry[Record.FIXED] and frame[Frame.MOVED] >= 0:
        place = dimensions + frame[Frame.AXIS]
        rotate(own + 8 * Operand.EXTENTS, place, dimensions - 1)
        rotate(own + 8 * Operand.STRIDES, place, dimensions - 1)
        direct = direct and lies_in_order(own)
    elif frame[Frame.FORTRAN] and own[Operand.OWNED] == 0:
        mirror(own)
        direct = direct and lies_in_order(own)
    elif direct and own[Operand.CONTIGUOUS] == 0:
        direct = lies_in_order(own)
    kind = own[Operand.KIND]
    if kind != wanted and (wanted != 7 or kind != 9):  # such as an int32 result in memory of a wider dtype
        direct = 0
    own[Operand.DIRECT] = direct
    return 0


def keep_apart(table: int, frame: int) -> int:
    """Mark inputs that overlap a passed result for copying; Python rejects results that share memory."""
    inputs = table[Table.INPUTS]
    both = inputs + table[Table.OUTPUTS]
    for i in range(both):
        own = operand(frame, i)
        if own[Operand.ARRAY] != 0:
            if i < inputs or own[Operand.BESIDE] == 0:
                find_ends(own)
    for o in range(inputs, both):
        out = operand(frame, o)
        if out[Operand.ARRAY] == 0:
            continue
        for i in range(both):
            own = operand(frame, i)
            if i != o and own[Operand.ARRAY] != 0:
                if own[Operand.LOW] < out[Operand.HIGH] and out[Operand.LOW] < own[Operand.HIGH]:
                    if i >= inputs:
                        return 0
                    same = own[Operand.DIRECT] and out[Operand.DIRECT]
                    same = same and own[Operand.DATA] == out[Operand.DATA]
                    same = same and record(table, i)[Record.IN_PLACE]
                    if same == 0 or record(table, o)[Record.IN_PLACE] == 0:
                        if own[Operand.TURNED]:
                            return 0
                        own[Operand.COPY] = 1
                        own[Operand.DIRECT] = 0
    return 1


def find_ends(own: int) -> int:
    """Compute the address range of an operand."""
    low = own[Operand.DATA]
    high = low + own[Operand.ITEM]
    for d in range(own[Operand.DIMENSIONS]):
        reach = own[Operand.STRIDES + d] * (own[Operand.EXTENTS + d] - 1)
        if reach > 0:
            high += reach
        else:
            low += reach
    own[Operand.LOW] = low
    own[Operand.HIGH] = high
    return 0


def computed(table: int, frame: int, context: int) -> int:
    """Call the entry; 0 if it failed."""
    if copy_narrow(table, frame) == 0:
        return 0
    for i in range(table[Table.INPUTS] + table[Table.OUTPUTS]):
        own = operand(frame, i)
        if own[Operand.ARRAY] != 0:
            if own[Operand.DIRECT] == 0:
                function = part(Part.IN_BLOCKS)
                return call(function, table, frame, context) if function else 0
            own[Operand.BASE] = own[Operand.DATA]
    if table[Table.MOVES]:
        if operand(frame, 0)[Operand.DATA] == operand(frame, 1)[Operand.DATA]:
            return 1  # every element is where it belongs
    return launch(table, frame, context, stack(MOST_CALL_WORDS), -1, context[Known.LONG])


def copy_narrow(table: int, frame: int) -> int:
    """Materialize inputs that no buffer supports: narrow integers, bfloat16, and wider integers; 0 if out of range."""
    inputs = table[Table.INPUTS]
    for i in range(inputs + table[Table.OUTPUTS]):
        own = operand(frame, i)
        if own[Operand.ARRAY] != 0 and own[Operand.DIRECT] == 0:
            kind = own[Operand.KIND]
            wanted = own[Operand.WANTED]
            if wanted < 7 or wanted == BFLOAT16 or (wanted == 7 and (kind == 8 or kind == 10)):
                if i >= inputs:
                    return 0
                if apart_from_caller(own, wanted) == 0:
                    return 0
                own[Operand.DIRECT] = 1
    return 1


def launch(table: int, frame: int, context: int, words: int, lead: int, long: int) -> int:
    """Call the entry with the words of one call, with `lead` as leading extent unless negative; 0 on failure."""
    both = table[Table.INPUTS] + table[Table.OUTPUTS]
    at = 0
    for i in range(both):
        own = operand(frame, i)
        if own[Operand.ARRAY] != 0:
            words[at] = own[Operand.BASE]
            at += 1
    spread = table[Table.SPREAD]
    for s in range(table[Table.SYMBOLS]):
        extent = frame[Frame.EXTENTS + s]
        if s == spread and lead >= 0:
            extent = lead
        words[at] = extent
        at += 1
    for f in range(table[Table.FLOATS]):
        words[at] = frame + 8 * (Frame.FLOATS + f)
        at += 1
    return invoked(context[Known.ENTRY], words, at, long) == 0


FUNCTIONS = (
    with_results,
    descr_of,
    natural,
    accept,
    takes_copies,
    folds,
    lay_out_result,
    keep_apart,
    find_ends,
    computed,
    copy_narrow,
    launch,
)
