"""Results of a call: allocate or check them, resolve overlap with inputs, compute."""

# mypy: disable-error-code="name-defined,no-any-return,assignment,index"
from jitkernels.codegen.i64_intrinsics import address, call, load, load8, load32, stack
from jitkernels.runtime.abi_layout import (
    ContextWords,
    DispatcherPart,
    Frame,
    Offset,
    Operand,
    OperandSpec,
    OperatorTable,
    Outcome,
)


def call_with_results(table: int, slots: int, frame: int, context: int) -> int:
    """Allocate or check the results, compute, and return them."""
    inputs = table[OperatorTable.INPUTS]
    out = slots[table[OperatorTable.PARAMETERS] - 1]
    if out == address("jk_none"):
        out = 0
    bound = bind_results(table, frame)
    count = bound >> 1
    # Inputs that results do not depend on are checked all the same, such as indices.
    is_empty = bound & 1 and frame[Frame.EMPTY] & table[OperatorTable.HIDDEN] == 0
    items = stack(1)
    items[0] = out
    if out != 0 and count > 1:
        if load(out, Offset.TYPE) != address("jk_tuple") or load(out, Offset.TUPLE_SIZE) != count:
            return 0
        items = out + Offset.TUPLE_ITEMS
    if context == 0:
        if is_empty == 0:
            return 0
        table[OperatorTable.MISSED] = 0
    for i in range(inputs, argument_count(table)):
        operand = operand_at(frame, i)
        if operand[Operand.PRESENT]:
            if prepare_result(frame, argument_at(table, i), operand, items[0]) == 0:
                return 0
            items += 8 * (out != 0)
    if out != 0:
        if resolve_overlap(table, frame) == 0:
            return 0
    if is_empty == 0:
        if compute(table, frame, context) == 0:
            return 0
    if out == 0:
        return return_results(table, frame, count)
    for i in range(inputs, argument_count(table)):
        operand = operand_at(frame, i)
        if operand[Operand.PRESENT] and operand[Operand.BESIDE] != 0:
            if PyArray_CopyInto(operand[Operand.BESIDE], operand[Operand.OWNED]) != 0:
                return Outcome.ERROR
    Py_IncRef(out)
    return out


def bind_results(table: int, frame: int) -> int:
    """Compute the shapes of the results that there are; return twice their number, plus 1 if all are empty."""
    count = 0
    is_empty = 1
    for i in range(table[OperatorTable.INPUTS], argument_count(table)):
        operand = operand_at(frame, i)
        argument = argument_at(table, i)
        present = 1
        if argument[OperandSpec.LEADER] >= 0:
            present = operand_at(frame, argument[OperandSpec.LEADER])[Operand.PRESENT]
        elif argument[OperandSpec.WHEN]:
            present = frame[Frame.OPTIONS] // argument[OperandSpec.WHEN] % 2
        operand[Operand.PRESENT] = present
        operand[Operand.ARRAY] = 0
        if present:
            elements = result_shape(table, frame, argument, operand)
            is_empty = is_empty and elements == 0
            count += 1
    return count << 1 | is_empty


def prepare_result(frame: int, argument: int, operand: int, out: int) -> int:
    """Accept the array that the caller passed for a result, or allocate one; 0 on failure."""
    operand[Operand.BESIDE] = 0
    if out != 0:
        if is_copied_out(frame, argument, operand, out):
            operand[Operand.BESIDE] = out
        elif accept_out(frame, argument, operand, out) == 0:
            return 0
    if out == 0 or operand[Operand.BESIDE] != 0:
        kind = kernel_kind(frame, argument)
        descr = descr_of(kind)
        Py_IncRef(descr)
        extents = operand + 8 * Operand.EXTENTS
        array = PyArray_Empty(operand[Operand.DIMENSIONS], extents, descr, frame[Frame.FORTRAN])
        if array == 0:
            PyErr_Clear()
            return 0
        operand[Operand.OWNED] = array
        operand[Operand.ARRAY] = array
        operand[Operand.DATA] = load(array, Offset.ARRAY_DATA)
        operand[Operand.KIND] = kind
        operand[Operand.ITEM] = load(descr, Offset.DTYPE_BYTES)
        operand[Operand.CONTIGUOUS] = 1
        operand[Operand.ALIGNED] = 1
        if frame[Frame.MOVED] >= 0:
            read_array(operand, array)
    lay_out_result(frame, argument, operand)
    return 1


def return_results(table: int, frame: int, count: int) -> int:
    """The new array of the only result, or a tuple of all of them."""
    inputs = table[OperatorTable.INPUTS]
    if count == 1:
        array = operand_at(frame, inputs)[Operand.OWNED]
        operand_at(frame, inputs)[Operand.OWNED] = 0
        return array
    results = PyTuple_New(count)
    if results == 0:
        return Outcome.ERROR
    item = results + Offset.TUPLE_ITEMS
    for i in range(inputs, argument_count(table)):
        operand = operand_at(frame, i)
        if operand[Operand.PRESENT]:
            item[0] = operand[Operand.OWNED]
            operand[Operand.OWNED] = 0
            item += 8
    return results


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
    if kind == 8:
        return address("jk_uint64")
    return address("jk_int32") if kind == 5 else address("jk_int64")


def result_shape(table: int, frame: int, argument: int, operand: int) -> int:
    """Compute the shape of a result as the caller sees it; returns its number of elements."""
    dimensions = 0
    total = 1
    if argument[OperandSpec.LEADS]:
        dimensions = frame[Frame.LEADING]
        for d in range(dimensions):
            operand[Operand.EXTENTS + d] = frame[Frame.LEAD + d]
            total = total * frame[Frame.LEAD + d]
    fixed = argument[OperandSpec.FIXED]
    inner = 1
    for e in range(fixed):
        extent = argument[OperandSpec.SHAPE + 3 * e]
        first = argument[OperandSpec.SHAPE + 3 * e + 1]
        if first >= 0:
            extent = extent * frame[Frame.EXTENTS + first]
        second = argument[OperandSpec.SHAPE + 3 * e + 2]
        if second >= 0:
            extent = extent * frame[Frame.EXTENTS + second]
        extent += argument[OperandSpec.MORE + e]
        inner = inner * extent
        if e < fixed - 1 or argument[OperandSpec.OPTIONAL] == 0 or frame[Frame.MISSING] == 0:
            operand[Operand.EXTENTS + dimensions] = extent
            dimensions += 1
    if argument[OperandSpec.TRAILS]:
        for d in range(frame[Frame.BEHIND]):
            extent = frame[Frame.TRAIL + d]
            inner = inner * extent
            operand[Operand.EXTENTS + dimensions] = extent
            dimensions += 1
    operand[Operand.INNER] = inner
    operand[Operand.DIMENSIONS] = dimensions
    if frame[Frame.FORTRAN] and table[OperatorTable.MIRRORS]:
        reverse_dimensions(operand)
    if fixed and frame[Frame.MOVED] >= 0:
        # Move the extent of the axis, now last, back to the caller's position.
        extent = operand[Operand.EXTENTS + dimensions - 1]
        axis = dimensions + frame[Frame.AXIS]
        for d in range(dimensions - 1, axis, -1):
            operand[Operand.EXTENTS + d] = operand[Operand.EXTENTS + d - 1]
        operand[Operand.EXTENTS + axis] = extent
    return total * inner


def accept_out(frame: int, argument: int, operand: int, array: int) -> int:
    """Check a result that the caller passed: shape, writeable, a float dtype or the result's own; 0 if it fails."""
    if load(array, Offset.TYPE) != address("jk_ndarray") and is_known_subclass(load(array, Offset.TYPE)) == 0:
        return 0
    dimensions = operand[Operand.DIMENSIONS]
    if has_shape(array, dimensions, operand + 8 * Operand.EXTENTS, WRITEABLE) == 0:
        return 0
    if read_array(operand, array) == 0:
        return 0
    kind = operand[Operand.KIND]
    expected = kernel_kind(frame, argument)
    if expected < FLOAT32 or expected == BFLOAT16:
        if kind != expected:
            return 0
    elif kind != FLOAT32 and kind != FLOAT64 and (kind != FLOAT16 or frame[Frame.WIDE]):
        return 0
    if operand[Operand.CONTIGUOUS] == 0:
        if overlaps_itself(operand):
            return 0
    operand[Operand.ARRAY] = array
    return 1


def is_copied_out(frame: int, argument: int, operand: int, array: int) -> int:
    """Whether an array is valid for a result but byte-swapped: NumPy then copies a new result into it."""
    if load(array, Offset.TYPE) != address("jk_ndarray"):
        return 0
    descr = load(array, Offset.ARRAY_DTYPE)
    order = load8(descr, Offset.DTYPE_ORDER)
    if load32(descr, Offset.DTYPE_NUMBER) != kernel_kind(frame, argument) or order == NATIVE or order == NO_ORDER:
        return 0
    dimensions = operand[Operand.DIMENSIONS]
    if has_shape(array, dimensions, operand + 8 * Operand.EXTENTS, WRITEABLE) == 0:
        return 0
    for d in range(dimensions):
        operand[Operand.STRIDES + d] = load(array, Offset.ARRAY_STRIDES)[d]
    operand[Operand.ITEM] = load(load(array, Offset.ARRAY_DTYPE), Offset.DTYPE_BYTES)
    operand[Operand.DATA] = load(array, Offset.ARRAY_DATA)
    find_address_range(operand)
    return overlaps_itself(operand) == 0


def overlaps_itself(operand: int) -> int:
    """Whether two elements may share memory: a stride does not exceed the reach of smaller ones."""
    for d in range(operand[Operand.DIMENSIONS]):
        stride = operand[Operand.STRIDES + d]
        stride = max(stride, -stride)
        reach = operand[Operand.ITEM]
        for e in range(operand[Operand.DIMENSIONS]):
            other = operand[Operand.STRIDES + e]
            other = max(other, -other)
            if other < stride or (other == stride and e < d):
                reach += other * (operand[Operand.EXTENTS + e] - 1)
        if stride < reach and operand[Operand.EXTENTS + d] > 1:
            return 1
    return 0


def lay_out_result(frame: int, argument: int, operand: int) -> int:
    """Compute the loop extents and strides of a result, and whether the kernel can write it directly."""
    dimensions = operand[Operand.DIMENSIONS]
    kind = operand[Operand.KIND]
    expected = kernel_kind(frame, argument)
    operand[Operand.WANTED] = expected
    operand[Operand.TURNED] = 0
    may_be_strided = operand[Operand.CONTIGUOUS] == 0
    if argument[OperandSpec.FIXED] and frame[Frame.MOVED] >= 0:
        axis = dimensions + frame[Frame.AXIS]
        rotate(operand + 8 * Operand.EXTENTS, axis, dimensions - 1)
        rotate(operand + 8 * Operand.STRIDES, axis, dimensions - 1)
        may_be_strided = 1
    elif frame[Frame.FORTRAN] and operand[Operand.OWNED] == 0:
        reverse_dimensions(operand)
        may_be_strided = 1
    has_kind = kind == expected or (expected == 7 and kind == 9)  # unlike an int32 result in memory of a wider dtype
    direct = has_kind and operand[Operand.ALIGNED]
    operand[Operand.DIRECT] = direct and (may_be_strided == 0 or is_dense(operand))
    return 0


def resolve_overlap(table: int, frame: int) -> int:
    """Mark inputs that overlap a passed result for copying; Python rejects results that share memory."""
    inputs = table[OperatorTable.INPUTS]
    for i in range(argument_count(table)):
        operand = operand_at(frame, i)
        if operand[Operand.ARRAY] != 0 and (i < inputs or operand[Operand.BESIDE] == 0):
            find_address_range(operand)
    for o in range(inputs, argument_count(table)):
        out = operand_at(frame, o)
        for i in range(argument_count(table) if out[Operand.ARRAY] != 0 else 0):
            operand = operand_at(frame, i)
            if i != o and operand[Operand.ARRAY] != 0 and ranges_overlap(operand, out):
                if i >= inputs:
                    return 0
                may_alias = argument_at(table, i)[OperandSpec.IN_PLACE] and argument_at(table, o)[OperandSpec.IN_PLACE]
                is_direct = operand[Operand.DIRECT] and out[Operand.DIRECT]
                if may_alias == 0 or is_direct == 0 or operand[Operand.DATA] != out[Operand.DATA]:
                    if operand[Operand.TURNED]:
                        return 0
                    operand[Operand.COPY] = 1
                    operand[Operand.DIRECT] = 0
    return 1


def ranges_overlap(operand: int, other: int) -> int:
    """Whether the address ranges of two operands overlap."""
    return operand[Operand.LOW] < other[Operand.HIGH] and other[Operand.LOW] < operand[Operand.HIGH]


def find_address_range(operand: int) -> int:
    low = operand[Operand.DATA]
    high = low + operand[Operand.ITEM]
    for d in range(operand[Operand.DIMENSIONS]):
        reach = operand[Operand.STRIDES + d] * (operand[Operand.EXTENTS + d] - 1)
        if reach > 0:
            high += reach
        else:
            low += reach
    operand[Operand.LOW] = low
    operand[Operand.HIGH] = high
    return 0


def compute(table: int, frame: int, context: int) -> int:
    """Call the entry; 0 if it failed."""
    if materialize_narrow(table, frame) == 0:
        return 0
    for i in range(argument_count(table)):
        operand = operand_at(frame, i)
        if operand[Operand.ARRAY] != 0:
            if operand[Operand.DIRECT] == 0:
                function = part_address(DispatcherPart.IN_BLOCKS)
                return call(function, table, frame, context) if function else 0
            operand[Operand.BASE] = operand[Operand.DATA]
    if table[OperatorTable.MOVES]:
        if operand_at(frame, 0)[Operand.DATA] == operand_at(frame, 1)[Operand.DATA]:
            return 1  # every element is where it belongs
    return launch_kernel(table, frame, context, stack(MAX_CALL_WORDS), -1, context[ContextWords.LONG])


def materialize_narrow(table: int, frame: int) -> int:
    """Materialize inputs that no buffer supports: narrow integers, bfloat16, and wider integers; 0 if out of range."""
    for i in range(argument_count(table)):
        operand = operand_at(frame, i)
        if needs_buffer(operand):
            kind = operand[Operand.KIND]
            expected = operand[Operand.WANTED]
            is_cast = expected == 7 and (kind == 8 or kind == 10)
            if expected < 7 or expected == 8 or expected == BFLOAT16 or is_cast:
                if i >= table[OperatorTable.INPUTS]:
                    return 0
                if materialize(operand, expected) == 0:
                    return 0
                operand[Operand.DIRECT] = 1
    return 1


def needs_buffer(operand: int) -> int:
    """Whether an operand is present and in a layout that the kernel does not accept."""
    return operand[Operand.ARRAY] != 0 and operand[Operand.DIRECT] == 0


def launch_kernel(table: int, frame: int, context: int, words: int, lead: int, long: int) -> int:
    """Call the entry with the words of one call, with `lead` as leading extent unless negative; 0 on failure."""
    arrays = 0
    for i in range(argument_count(table)):
        operand = operand_at(frame, i)
        if operand[Operand.ARRAY] != 0:
            words[arrays] = operand[Operand.BASE]
            arrays += 1
    count = append_scalars(table, frame, words, arrays)
    if lead >= 0 and table[OperatorTable.SPREAD] >= 0:
        words[arrays + table[OperatorTable.SPREAD]] = lead
    return call_entry(context[ContextWords.ENTRY], words, count, long) == 0


def append_scalars(table: int, frame: int, words: int, count: int) -> int:
    """Append the extents, and the addresses of the floats, to the words of a call; return their number."""
    for s in range(table[OperatorTable.SYMBOLS]):
        words[count] = frame[Frame.EXTENTS + s]
        count += 1
    for f in range(table[OperatorTable.FLOATS]):
        words[count] = frame + 8 * (Frame.FLOATS + f)
        count += 1
    return count
