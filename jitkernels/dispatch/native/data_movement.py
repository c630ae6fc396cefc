"""Data-movement functions (transpose, gather and the like): copied from input to result without a buffer.

Such a call needs a kernel only if input and result both have the kernel's layout.
"""

# mypy: disable-error-code="name-defined,no-any-return,assignment,index"
from jitkernels.codegen.i64_intrinsics import address, stack
from jitkernels.runtime.abi_layout import ContextWords, Frame, Operand, OperandSpec


def move_data(table: int, frame: int, context: int) -> int:
    """Whether the result has been written: false where it overlaps the input, or the dtype needs two conversions."""
    operand = operand_at(frame, 0)
    out = operand_at(frame, 1)
    pair = 4 * operand[Operand.KIND] + target_index(out[Operand.KIND])
    if operand[Operand.COPY]:
        return argument_at(table, 0)[OperandSpec.IN_PLACE] and is_same_memory(operand, out)
    if address("jk_forms")[pair] == 0:
        return 0
    match_loops(table, frame, operand, out)
    state = 0
    if context[ContextWords.LONG]:
        state = PyEval_SaveThread()
    sort_dimensions(out, operand)
    contiguous = transposed_dimension(operand, out, pair)
    if contiguous >= 0:
        transpose_tiles(operand, out, pair, contiguous)
    elif is_dense_float(out):
        copy_whole(operand, out, pair, 1)
    else:
        sort_dimensions(operand, out)
        if is_dense_float(operand):
            copy_whole(out, operand, pair, 0)
        else:
            sort_dimensions(out, operand)
            copy_rows(operand, out, pair)
    if state != 0:
        PyEval_RestoreThread(state)
    return 1


def is_same_memory(operand: int, out: int) -> int:
    """Whether every element of the input is the same memory as that of the result."""
    same = operand[Operand.DATA] == out[Operand.DATA]
    same = same and operand[Operand.KIND] == out[Operand.KIND]
    for d in range(out[Operand.DIMENSIONS]):
        same = same and operand[Operand.STRIDES + d] == out[Operand.STRIDES + d]
    return same


def match_loops(table: int, frame: int, operand: int, out: int) -> int:
    """Give both operands the loop of the result: extents match by symbol; along other ones the input has stride 0."""
    argument = argument_at(table, 1)
    leading = 0
    if argument[OperandSpec.LEADS]:
        leading = frame[Frame.LEADING]
    dimensions = leading + argument[OperandSpec.FIXED]
    strides = stack(MAX_OPERAND_DIMENSIONS)
    for d in range(leading):
        strides[d] = operand[Operand.STRIDES + d]
        out[Operand.EXTENTS + d] = operand[Operand.EXTENTS + d]
    for d in range(leading, dimensions):
        symbol = argument[OperandSpec.SHAPE + 3 * (d - leading) + 1]
        strides[d] = 0
        for e in range(argument_at(table, 0)[OperandSpec.FIXED]):
            if argument_at(table, 0)[OperandSpec.SHAPE + 3 * e + 1] == symbol:
                strides[d] = operand[Operand.STRIDES + leading + e]
        out[Operand.EXTENTS + d] = frame[Frame.EXTENTS + symbol]
    stride = out[Operand.ITEM]
    for d in range(dimensions - 1, -1, -1):
        operand[Operand.EXTENTS + d] = out[Operand.EXTENTS + d]
        operand[Operand.STRIDES + d] = strides[d]
        if out[Operand.DIRECT]:
            out[Operand.STRIDES + d] = stride
        stride = stride * out[Operand.EXTENTS + d]
    operand[Operand.DIMENSIONS] = dimensions
    out[Operand.DIMENSIONS] = dimensions
    return 0


def sort_dimensions(operand: int, other: int) -> int:
    """Reorder the loops of two operands to ascending addresses of the first one."""
    dimensions = operand[Operand.DIMENSIONS]
    for d in range(dimensions):
        if operand[Operand.STRIDES + d] < 0:
            reverse_dimension(operand, d)
            reverse_dimension(other, d)
    for d in range(1, dimensions):
        e = d
        while e > 0 and operand[Operand.STRIDES + e - 1] < operand[Operand.STRIDES + e]:
            swap_with_previous(operand, e)
            swap_with_previous(other, e)
            e -= 1
    return 0


def reverse_dimension(operand: int, d: int) -> int:
    stride = operand[Operand.STRIDES + d]
    operand[Operand.DATA] += stride * (operand[Operand.EXTENTS + d] - 1)
    operand[Operand.STRIDES + d] = -stride
    return 0


def swap_with_previous(operand: int, d: int) -> int:
    """Swap a dimension with the one before it."""
    swap(operand + 8 * Operand.EXTENTS, d, d - 1)
    swap(operand + 8 * Operand.STRIDES, d, d - 1)
    return 0


def is_dense_float(operand: int) -> int:
    """Whether `transfer` can use its memory as the buffer: contiguous floats in loop order."""
    kind = operand[Operand.KIND]
    return (kind == FLOAT32 or kind == FLOAT64) and is_dense(operand)


def copy_whole(operand: int, buffer: int, pair: int, reading: int) -> int:
    """Copy all elements of an operand from or to a contiguous one."""
    operand[Operand.PAIR] = pair
    operand[Operand.WANTED] = buffer[Operand.KIND]
    operand[Operand.BASE] = buffer[Operand.DATA]
    collapse(operand)
    return transfer(operand, 0, element_count(operand), reading)


def transposed_dimension(operand: int, out: int, pair: int) -> int:
    """The dimension along which the input is contiguous and the result is not; -1 where one transfer does it all."""
    form = address("jk_forms")[pair]
    item = form & 15
    last = out[Operand.DIMENSIONS] - 1
    if item < 4 or (form & SAME and is_dense_float(out)) or operand[Operand.STRIDES + last] == item:
        return -1
    if out[Operand.EXTENTS + last] < SQUARE:
        return -1
    for d in range(last - 1, -1, -1):
        if operand[Operand.STRIDES + d] == item and out[Operand.EXTENTS + d] >= SQUARE:
            return d
    return -1


def transpose_tiles(operand: int, out: int, pair: int, contiguous: int) -> int:
    """Transpose tiles of a contiguous dimension and the last one in registers, then copy their rows to the result."""
    last = out[Operand.DIMENSIONS] - 1
    item = address("jk_forms")[pair] & 15
    lines = out[Operand.EXTENTS + contiguous]
    length = out[Operand.EXTENTS + last]
    stride = operand[Operand.STRIDES + last]
    out_stride = out[Operand.STRIDES + last]
    line_stride = out[Operand.STRIDES + contiguous]
    tile = stack((TILE_LINES + SQUARE) * (TILE_LENGTH + SQUARE))
    index = stack(MAX_OPERAND_DIMENSIONS)
    clear(index, last)
    is_inside = 1
    while is_inside:
        line = 0
        while line < lines:
            height = lines - line if lines - line < TILE_LINES + SQUARE else TILE_LINES
            first = 0
            while first < length:
                width = length - first if length - first < TILE_LENGTH + SQUARE else TILE_LENGTH
                memory = operand[Operand.DATA] + line * item + first * stride
                transpose(item, tile, width * item, memory, stride, width, height)
                target = out[Operand.DATA] + line * line_stride + first * out_stride
                for i in range(height):
                    copy_run(pair, target + i * line_stride, out_stride, tile + i * width * item, item, width)
                first += width
            line += height
        is_inside = advance(index, out, operand, last, contiguous)
    return 0


def copy_rows(operand: int, out: int, pair: int) -> int:
    """Both strided: copy along the last dimension, or along the last two at once where rows are contiguous."""
    last = out[Operand.DIMENSIONS] - 1
    length = out[Operand.EXTENTS + last]
    stride = operand[Operand.STRIDES + last]
    out_stride = out[Operand.STRIDES + last]
    form = address("jk_forms")[pair]
    item = form & 15
    is_long = length * item >= MIN_ROW and last > 0
    outer = last - 1 if form & SAME and stride == item and out_stride == item and is_long else last
    index = stack(MAX_OPERAND_DIMENSIONS)
    clear(index, last)
    is_inside = 1
    while is_inside:
        memory = operand[Operand.DATA]
        target = out[Operand.DATA]
        if outer < last:
            row_stride = operand[Operand.STRIDES + outer]
            rows(length * item, target, out[Operand.STRIDES + outer], memory, row_stride, out[Operand.EXTENTS + outer])
        else:
            copy_run(pair, target, out_stride, memory, stride, length)
        is_inside = advance(index, out, operand, outer, -1)
    return 0


def clear(words: int, count: int) -> int:
    """Set the first words of an array to 0."""
    for i in range(count):
        words[i] = 0
    return 0
