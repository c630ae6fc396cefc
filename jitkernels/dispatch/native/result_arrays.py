"""Results of a call: allocate or check them, resolve overlap with inputs, compute."""

# mypy: disable-error-code="name-defined,no-any-return,assignment"
from jitkernels.codegen.i64_intrinsics import address, call, load, load8, load32, stack, store
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
    inputs = load(table, 8 * Table.INPUTS)
    outputs = load(table, 8 * Table.OUTPUTS)
    given = load(slots, 8 * (load(table, 8 * Table.PARAMETERS) - 1))
    if given == address("jk_none"):
        given = 0
    nothing = 1
    present = 0
    for i in range(outputs):
        own = operand(frame, inputs + i)
        leader = load(record(table, inputs + i), 8 * Record.LEADER)
        here = 1
        asked = load(record(table, inputs + i), 8 * Record.WHEN)
        if leader >= 0:
            here = load(operand(frame, leader), 8 * Operand.PRESENT)
        elif asked:
            here = load(frame, 8 * Frame.OPTIONS) // asked % 2
        store(own, 8 * Operand.PRESENT, here)
        store(own, 8 * Operand.ARRAY, 0)
        if here:
            total = natural(table, frame, record(table, inputs + i), own)
            nothing = nothing and total == 0
            present += 1
    items = stack(1)
    store(items, 0, given)
    if given != 0 and present > 1:
        if load(given, Offset.TYPE) != address("jk_tuple") or load(given, Offset.TUPLE_SIZE) != present:
            return 0
        items = given + Offset.TUPLE_ITEMS
    if nothing:
        # Inputs that results do not depend on are checked all the same, such as indices.
        nothing = load(frame, 8 * Frame.EMPTY) & load(table, 8 * Table.HIDDEN) == 0
    if context == 0:
        if nothing == 0:
            return 0
        store(table, 8 * Table.MISSED, 0)
    for i in range(outputs):
        own = operand(frame, inputs + i)
        if load(own, 8 * Operand.PRESENT) == 0:
            continue
        store(own, 8 * Operand.BESIDE, 0)
        if given != 0:
            if takes_copies(frame, record(table, inputs + i), own, load(items)):
                store(own, 8 * Operand.BESIDE, load(items))
            elif accept(frame, record(table, inputs + i), own, load(items)) == 0:
                return 0
            items += 8
        if given == 0 or load(own, 8 * Operand.BESIDE) != 0:
            kind = wanted_of(frame, record(table, inputs + i))
            descr = descr_of(kind)
            Py_IncRef(descr)
            array = PyArray_Empty(
                load(own, 8 * Operand.DIMENSIONS), own + 8 * Operand.EXTENTS, descr, load(frame, 8 * Frame.FORTRAN)
            )
            if array == 0:
                PyErr_Clear()
                return 0
            store(own, 8 * Operand.OWNED, array)
            store(own, 8 * Operand.ARRAY, array)
            store(own, 8 * Operand.DATA, load(array, Offset.ARRAY_DATA))
            store(own, 8 * Operand.KIND, kind)
            store(own, 8 * Operand.ITEM, load(descr, Offset.DTYPE_BYTES))
            store(own, 8 * Operand.CONTIGUOUS, 1)
            store(own, 8 * Operand.ALIGNED, 1)
            if load(frame, 8 * Frame.MOVED) >= 0:
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
            if load(own, 8 * Operand.PRESENT) and load(own, 8 * Operand.BESIDE) != 0:
                if PyArray_CopyInto(load(own, 8 * Operand.BESIDE), load(own, 8 * Operand.OWNED)) != 0:
                    return Outcome.ERROR
        Py_IncRef(given)
        return given
    if present == 1:
        array = load(operand(frame, inputs), 8 * Operand.OWNED)
        store(operand(frame, inputs), 8 * Operand.OWNED, 0)
        return array
    both = PyTuple_New(present)
    if both == 0:
        return Outcome.ERROR
    place = both + Offset.TUPLE_ITEMS
    for i in range(outputs):
        own = operand(frame, inputs + i)
        if load(own, 8 * Operand.PRESENT):
            store(place, 0, load(own, 8 * Operand.OWNED))
            store(own, 8 * Operand.OWNED, 0)
            place += 8
    return both


def descr_of(kind: int) -> int:
    """NumPy's dtype object of a result, by type number."""
    if kind == FLOAT32:
        return address("jk_float32")
    if kind == FLOAT64:
        return address("jk_float64")
    if kind == BFLOAT16:
        return load(address("jk_bfloat16"))
    if kind == 1:
        return address("jk_int8")
    if kind == 2:
        return address("jk_uint8")
    return address("jk_int32") if kind == 5 else address("jk_int64")


def natural(table: int, frame: int, entry: int, own: int) -> int:
    """Compute the shape of a result as the caller sees it; returns its number of elements."""
    dimensions = 0
    total = 1
    if load(entry, 8 * Record.LEADS):
        dimensions = load(frame, 8 * Frame.LEADING)
        for d in range(dimensions):
            store(own, 8 * (Operand.EXTENTS + d), load(frame, 8 * (Frame.LEAD + d)))
            total = total * load(frame, 8 * (Frame.LEAD + d))
    fixed = load(entry, 8 * Record.FIXED)
    inner = 1
    for e in range(fixed):
        extent = load(entry, 8 * (Record.SHAPE + 3 * e))
        first = load(entry, 8 * (Record.SHAPE + 3 * e + 1))
        if first >= 0:
            extent = extent * load(frame, 8 * (Frame.EXTENTS + first))
        second = load(entry, 8 * (Record.SHAPE + 3 * e + 2))
        if second >= 0:
            extent = extent * load(frame, 8 * (Frame.EXTENTS + second))
        extent += load(entry, 8 * (Record.MORE + e))
        inner = inner * extent
        if e < fixed - 1 or load(entry, 8 * Record.OPTIONAL) == 0 or load(frame, 8 * Frame.MISSING) == 0:
            store(own, 8 * (Operand.EXTENTS + dimensions), extent)
            dimensions += 1
    if load(entry, 8 * Record.TRAILS):
        for d in range(load(frame, 8 * Frame.BEHIND)):
            extent = load(frame, 8 * (Frame.TRAIL + d))
            inner = inner * extent
            store(own, 8 * (Operand.EXTENTS + dimensions), extent)
            dimensions += 1
    store(own, 8 * Operand.INNER, inner)
    store(own, 8 * Operand.DIMENSIONS, dimensions)
    if load(frame, 8 * Frame.FORTRAN) and load(table, 8 * Table.MIRRORS):
        mirror(own)
    if fixed and load(frame, 8 * Frame.MOVED) >= 0:
        # Move the extent of the axis, now last, back to the caller's position.
        kept = load(own, 8 * (Operand.EXTENTS + dimensions - 1))
        place = dimensions + load(frame, 8 * Frame.AXIS)
        d = dimensions - 1
        while d > place:
            store(own, 8 * (Operand.EXTENTS + d), load(own, 8 * (Operand.EXTENTS + d - 1)))
            d -= 1
        store(own, 8 * (Operand.EXTENTS + place), kept)
    return total * inner


def accept(frame: int, entry: int, own: int, array: int) -> int:
    """Check a result that the caller passed: shape, writeable, a float dtype or the result's own; 0 if it fails."""
    if load(array, Offset.TYPE) != address("jk_ndarray") and is_derived(load(array, Offset.TYPE)) == 0:
        return 0
    dimensions = load(own, 8 * Operand.DIMENSIONS)
    if lies(array, dimensions, own + 8 * Operand.EXTENTS, WRITEABLE) == 0:
        return 0
    if read_array(own, array) == 0:
        return 0
    kind = load(own, 8 * Operand.KIND)
    wanted = wanted_of(frame, entry)
    if wanted < FLOAT32 or wanted == BFLOAT16:
        if kind != wanted:
            return 0
    elif kind != FLOAT32 and kind != FLOAT64 and (kind != FLOAT16 or load(frame, 8 * Frame.WIDE)):
        return 0
    if load(own, 8 * Operand.CONTIGUOUS) == 0:
        if folds(own):
            return 0
    store(own, 8 * Operand.ARRAY, array)
    return 1


def takes_copies(frame: int, entry: int, own: int, array: int) -> int:
    """Whether it is valid for a result but byte-swapped: NumPy then copies a new result into it."""
    if load(array, Offset.TYPE) != address("jk_ndarray"):
        return 0
    descr = load(array, Offset.ARRAY_DTYPE)
    order = load8(descr, Offset.DTYPE_ORDER)
    if load32(descr, Offset.DTYPE_NUMBER) != wanted_of(frame, entry) or order == NATIVE or order == NO_ORDER:
        return 0
    dimensions = load(own, 8 * Operand.DIMENSIONS)
    if lies(array, dimensions, own + 8 * Operand.EXTENTS, WRITEABLE) == 0:
        return 0
    for d in range(dimensions):
        store(own, 8 * (Operand.STRIDES + d), load(load(array, Offset.ARRAY_STRIDES), 8 * d))
    store(own, 8 * Operand.ITEM, load(load(array, Offset.ARRAY_DTYPE), Offset.DTYPE_BYTES))
    store(own, 8 * Operand.DATA, load(array, Offset.ARRAY_DATA))
    find_ends(own)
    return folds(own) == 0


def folds(own: int) -> int:
    """Whether two elements may share memory: a stride does not exceed the reach of smaller ones."""
    for d in range(load(own, 8 * Operand.DIMENSIONS)):
        stride = load(own, 8 * (Operand.STRIDES + d))
        stride = max(stride, -stride)
        reach = load(own, 8 * Operand.ITEM)
        for e in range(load(own, 8 * Operand.DIMENSIONS)):
            other = load(own, 8 * (Operand.STRIDES + e))
            other = max(other, -other)
            if other < stride or (other == stride and e < d):
                reach += other * (load(own, 8 * (Operand.EXTENTS + e)) - 1)
        if stride < reach and load(own, 8 * (Operand.EXTENTS + d)) > 1:
            return 1
    return 0


def lay_out_result(frame: int, entry: int, own: int) -> int:
    """Compute the loop extents and strides of a result, and whether the kernel can write it directly."""
    dimensions = load(own, 8 * Operand.DIMENSIONS)
    wanted = wanted_of(frame, entry)
    store(own, 8 * Operand.WANTED, wanted)
    store(own, 8 * Operand.TURNED, 0)
    direct = load(own, 8 * Operand.KIND) == wanted or load(entry, 8 * Record.INTEGER)
    direct = direct and load(own, 8 * Operand.ALIGNED)
    if load(entry, 8 * Record.FIXED) and load(frame, 8 * Frame.MOVED) >= 0:
        place = dimensions + load(frame, 8 * Frame.AXIS)
        rotate(own + 8 * Operand.EXTENTS, place, dimensions - 1)
        rotate(own + 8 * Operand.STRIDES, place, dimensions - 1)
        direct = direct and lies_in_order(own)
    elif load(frame, 8 * Frame.FORTRAN) and load(own, 8 * Operand.OWNED) == 0:
        mirror(own)
        direct = direct and lies_in_order(own)
    elif direct and load(own, 8 * Operand.CONTIGUOUS) == 0:
        direct = lies_in_order(own)
    kind = load(own, 8 * Operand.KIND)
    if kind != wanted and (wanted != 7 or kind != 9):  # such as an int32 result in memory of a wider dtype
        direct = 0
    store(own, 8 * Operand.DIRECT, direct)
    return 0


def keep_apart(table: int, frame: int) -> int:
    """Mark inputs that overlap a passed result for copying; Python rejects results that share memory."""
    inputs = load(table, 8 * Table.INPUTS)
    both = inputs + load(table, 8 * Table.OUTPUTS)
    for i in range(both):
        own = operand(frame, i)
        if load(own, 8 * Operand.ARRAY) != 0:
            if i < inputs or load(own, 8 * Operand.BESIDE) == 0:
                find_ends(own)
    for o in range(inputs, both):
        out = operand(frame, o)
        if load(out, 8 * Operand.ARRAY) == 0:
            continue
        for i in range(both):
            own = operand(frame, i)
            if i != o and load(own, 8 * Operand.ARRAY) != 0:
                if load(own, 8 * Operand.LOW) < load(out, 8 * Operand.HIGH) and load(out, 8 * Operand.LOW) < load(
                    own, 8 * Operand.HIGH
                ):
                    if i >= inputs:
                        return 0
                    same = load(own, 8 * Operand.DIRECT) and load(out, 8 * Operand.DIRECT)
                    same = same and load(own, 8 * Operand.DATA) == load(out, 8 * Operand.DATA)
                    same = same and load(record(table, i), 8 * Record.IN_PLACE)
                    if same == 0 or load(record(table, o), 8 * Record.IN_PLACE) == 0:
                        if load(own, 8 * Operand.TURNED):
                            return 0
                        store(own, 8 * Operand.COPY, 1)
                        store(own, 8 * Operand.DIRECT, 0)
    return 1


def find_ends(own: int) -> int:
    """Compute the address range of an operand."""
    low = load(own, 8 * Operand.DATA)
    high = low + load(own, 8 * Operand.ITEM)
    for d in range(load(own, 8 * Operand.DIMENSIONS)):
        reach = load(own, 8 * (Operand.STRIDES + d)) * (load(own, 8 * (Operand.EXTENTS + d)) - 1)
        if reach > 0:
            high += reach
        else:
            low += reach
    store(own, 8 * Operand.LOW, low)
    store(own, 8 * Operand.HIGH, high)
    return 0


def computed(table: int, frame: int, context: int) -> int:
    """Call the entry; 0 if it failed."""
    if copy_narrow(table, frame) == 0:
        return 0
    for i in range(load(table, 8 * Table.INPUTS) + load(table, 8 * Table.OUTPUTS)):
        own = operand(frame, i)
        if load(own, 8 * Operand.ARRAY) != 0:
            if load(own, 8 * Operand.DIRECT) == 0:
                function = part(Part.IN_BLOCKS)
                return call(function, table, frame, context) if function else 0
            store(own, 8 * Operand.BASE, load(own, 8 * Operand.DATA))
    if load(table, 8 * Table.MOVES):
        if load(operand(frame, 0), 8 * Operand.DATA) == load(operand(frame, 1), 8 * Operand.DATA):
            return 1  # every element is where it belongs
    return launch(table, frame, context, stack(MOST_CALL_WORDS), -1, load(context, 8 * Known.LONG))


def copy_narrow(table: int, frame: int) -> int:
    """Materialize inputs that no buffer supports: narrow integers, bfloat16, and wider integers; 0 if out of range."""
    inputs = load(table, 8 * Table.INPUTS)
    for i in range(inputs + load(table, 8 * Table.OUTPUTS)):
        own = operand(frame, i)
        if load(own, 8 * Operand.ARRAY) != 0 and load(own, 8 * Operand.DIRECT) == 0:
            kind = load(own, 8 * Operand.KIND)
            wanted = load(own, 8 * Operand.WANTED)
            if wanted < 7 or wanted == BFLOAT16 or (wanted == 7 and (kind == 8 or kind == 10)):
                if i >= inputs:
                    return 0
                if apart_from_caller(own, wanted) == 0:
                    return 0
                store(own, 8 * Operand.DIRECT, 1)
    return 1


def launch(table: int, frame: int, context: int, words: int, lead: int, long: int) -> int:
    """Call the entry with the words of one call, with `lead` as leading extent unless negative; 0 on failure."""
    both = load(table, 8 * Table.INPUTS) + load(table, 8 * Table.OUTPUTS)
    at = 0
    for i in range(both):
        own = operand(frame, i)
        if load(own, 8 * Operand.ARRAY) != 0:
            store(words, 8 * at, load(own, 8 * Operand.BASE))
            at += 1
    spread = load(table, 8 * Table.SPREAD)
    for s in range(load(table, 8 * Table.SYMBOLS)):
        extent = load(frame, 8 * (Frame.EXTENTS + s))
        if s == spread and lead >= 0:
            extent = lead
        store(words, 8 * at, extent)
        at += 1
    for f in range(load(table, 8 * Table.FLOATS)):
        store(words, 8 * at, frame + 8 * (Frame.FLOATS + f))
        at += 1
    return invoked(load(context, 8 * Known.ENTRY), words, at, long) == 0


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
