"""Copy elements of an operand between its memory and a buffer: by runs, rows, or transposed squares."""

# mypy: disable-error-code="name-defined,no-any-return,assignment,index"
from jitkernels.codegen.i64_intrinsics import address, stack
from jitkernels.runtime.abi_layout import Operand


def cast_pair(operand: int, output: int) -> int:
    """The `copy_run` pair (source and target dtype) of the copy between an operand and its buffer."""
    kind = operand[Operand.KIND]
    expected = operand[Operand.WANTED]
    if output:
        return 4 * expected + target_index(kind)
    return 4 * kind + target_index(expected)


def target_index(kind: int) -> int:
    """The index of a target dtype in a `copy_run` pair."""
    if kind == FLOAT32:
        return 0
    if kind == FLOAT64:
        return 1
    return 2 if kind == 7 else 3


def collapse(operand: int) -> int:
    """Merge adjacent contiguous dimensions; drop those of extent 1."""
    count = 0
    for d in range(operand[Operand.DIMENSIONS]):
        extent = operand[Operand.EXTENTS + d]
        stride = operand[Operand.STRIDES + d]
        if extent != 1:
            if count > 0:
                if operand[Operand.STRIDES + count - 1] == stride * extent:
                    extent = extent * operand[Operand.EXTENTS + count - 1]
                    count -= 1
            operand[Operand.EXTENTS + count] = extent
            operand[Operand.STRIDES + count] = stride
            count += 1
    if count == 0:
        operand[Operand.EXTENTS] = 1
        operand[Operand.STRIDES] = 0
        count = 1
    operand[Operand.DIMENSIONS] = count
    return 0


def transfer(operand: int, start: int, count: int, reading: int) -> int:
    """Copy elements `start` to `start + count` of an operand's loop between its memory and the start of its buffer.

    Whole rows and transposed matrices use the loops in `jitkernels.runtime.copy_transpose`.
    """
    if count <= 0:
        return 0
    stride = operand[Operand.STRIDES]
    if operand[Operand.DIMENSIONS] == 1 and stride != 0:
        memory = operand[Operand.DATA] + start * stride
        return copy_between(operand, reading, operand[Operand.BASE], item_of(operand), memory, stride, count)
    contiguous = contiguous_outer_dimension(operand, start, count)
    if contiguous >= 0:
        return transpose_squares(operand, contiguous, start, count, reading)
    return transfer_rows(operand, start, count, reading)


def item_of(operand: int) -> int:
    """Bytes of an element in the buffer."""
    return 4 if operand[Operand.WANTED] == FLOAT32 else 8


def copy_between(
    operand: int, reading: int, buffer: int, buffer_stride: int, memory: int, stride: int, count: int
) -> int:
    """Copy a run of elements from the memory of an operand to its buffer if `reading`, else back."""
    if reading:
        return copy_run(operand[Operand.PAIR], buffer, buffer_stride, memory, stride, count)
    return copy_run(operand[Operand.PAIR], memory, stride, buffer, buffer_stride, count)


def is_same_dtype(operand: int) -> int:
    """Whether buffer and memory have the same dtype."""
    return address("jk_forms")[operand[Operand.PAIR]] & SAME


def transfer_rows(operand: int, start: int, count: int, reading: int) -> int:
    """`transfer` along the last dimension, several rows at once where that is faster."""
    last = operand[Operand.DIMENSIONS] - 1
    length = operand[Operand.EXTENTS + last]
    stride = operand[Operand.STRIDES + last]
    item = item_of(operand)
    buffer = operand[Operand.BASE]
    index = stack(MAX_OPERAND_DIMENSIONS)
    outer = start // length
    first = start - outer * length
    memory = operand[Operand.DATA]
    for d in range(last - 1, -1, -1):
        extent = operand[Operand.EXTENTS + d]
        index[d] = outer % extent
        outer = outer // extent
        memory += index[d] * operand[Operand.STRIDES + d]
    while count > 0:
        run = min(count, length - first)
        steps = 1
        if first == 0 and last > 0:
            steps = rows_at_once(operand, min(operand[Operand.EXTENTS + last - 1] - index[last - 1], count // length))
        if steps > 1:
            copy_rows_at_once(operand, buffer, memory, steps, reading)
            run = steps * length
        elif reading and stride == 0:
            copy_run(operand[Operand.PAIR], buffer, item, memory, 0, 1)
            fill(buffer, item, run)
        else:
            copy_between(operand, reading, buffer, item, memory + first * stride, stride, run)
        buffer += run * item
        count -= run
        first = 0
        for d in range(last - 1, -1, -1):
            index[d] += steps
            memory += steps * operand[Operand.STRIDES + d]
            if index[d] != operand[Operand.EXTENTS + d]:
                break
            memory -= index[d] * operand[Operand.STRIDES + d]
            index[d] = 0
            steps = 1
    return 0


def rows_at_once(operand: int, rows: int) -> int:
    """How many of the next `rows` rows are copied at once: all of them, or 1."""
    last = operand[Operand.DIMENSIONS] - 1
    length = operand[Operand.EXTENTS + last]
    if rows > length or has_contiguous_rows(operand) or is_transposed_matrix(operand, rows):
        return rows
    return 1


def has_contiguous_rows(operand: int) -> int:
    """Whether rows are contiguous, of the buffer's dtype, and long enough to be copied by `rows`."""
    last = operand[Operand.DIMENSIONS] - 1
    item = item_of(operand)
    is_long = operand[Operand.EXTENTS + last] * item >= MIN_ROW
    return is_same_dtype(operand) and operand[Operand.STRIDES + last] == item and is_long


def is_transposed_matrix(operand: int, rows: int) -> int:
    """Whether so many rows are the contiguous columns of a matrix of the buffer's dtype."""
    last = operand[Operand.DIMENSIONS] - 1
    is_large = operand[Operand.EXTENTS + last] >= SQUARE and rows >= SQUARE
    return is_same_dtype(operand) and operand[Operand.STRIDES + last - 1] == item_of(operand) and is_large


def copy_rows_at_once(operand: int, buffer: int, memory: int, count: int, reading: int) -> int:
    """Copy `count` whole rows between memory and buffer."""
    last = operand[Operand.DIMENSIONS] - 1
    length = operand[Operand.EXTENTS + last]
    stride = operand[Operand.STRIDES + last]
    row_stride = operand[Operand.STRIDES + last - 1]
    item = item_of(operand)
    width = length * item
    if is_transposed_matrix(operand, count):
        if reading:
            transpose(item, buffer, width, memory, stride, length, count)
        else:
            transpose(item, memory, stride, buffer, width, count, length)
    elif has_contiguous_rows(operand):
        if reading:
            rows(width, buffer, width, memory, row_stride, count)
        else:
            rows(width, memory, row_stride, buffer, width, count)
    else:  # many short adjacent runs: copy few long runs across them instead
        for i in range(length):
            copy_between(operand, reading, buffer + i * item, width, memory + i * stride, row_stride, count)
    return 0


def element_count(operand: int) -> int:
    """The number of elements of an operand's loop."""
    return product(operand + 8 * Operand.EXTENTS, operand[Operand.DIMENSIONS])


def contiguous_outer_dimension(operand: int, start: int, count: int) -> int:
    """The dimension, before the last two, along which elements are contiguous and long enough to transpose; or -1."""
    last = operand[Operand.DIMENSIONS] - 1
    item = item_of(operand)
    if last < 2 or is_same_dtype(operand) == 0 or operand[Operand.EXTENTS + last] < SQUARE:
        return -1
    if operand[Operand.STRIDES + last] == item:
        return -1
    for d in range(last - 2, -1, -1):
        if operand[Operand.STRIDES + d] == item:
            inner = element_count(operand) // operand[Operand.EXTENTS]
            extent = operand[Operand.EXTENTS + d] if d > 0 else count // inner
            if extent >= SQUARE and start % inner == 0 and count % inner == 0:
                return d
    return -1


def transpose_squares(operand: int, contiguous: int, start: int, count: int, reading: int) -> int:
    """`transfer` of matrices of the last dimension and another one, along which elements are contiguous."""
    last = operand[Operand.DIMENSIONS] - 1
    item = item_of(operand)
    inner = element_count(operand) // operand[Operand.EXTENTS]
    index = stack(MAX_OPERAND_DIMENSIONS)
    buffer = stack(Operand.WORDS)
    buffer[Operand.DATA] = operand[Operand.BASE]
    stride = item
    for d in range(last, -1, -1):
        index[d] = 0
        buffer[Operand.STRIDES + d] = stride
        buffer[Operand.EXTENTS + d] = operand[Operand.EXTENTS + d] if d > 0 else count // inner
        stride = stride * operand[Operand.EXTENTS + d]
    length = operand[Operand.EXTENTS + last]
    stride = operand[Operand.STRIDES + last]
    columns = buffer[Operand.EXTENTS + contiguous]
    row = buffer[Operand.STRIDES + contiguous]
    memory = operand[Operand.DATA]
    operand[Operand.DATA] = memory + start // inner * operand[Operand.STRIDES]
    is_inside = 1
    while is_inside:
        if reading:
            transpose(item, buffer[Operand.DATA], row, operand[Operand.DATA], stride, length, columns)
        else:
            transpose(item, operand[Operand.DATA], stride, buffer[Operand.DATA], row, columns, length)
        is_inside = advance(index, buffer, operand, last, contiguous)
    operand[Operand.DATA] = memory
    return 0


def advance(index: int, operand: int, other: int, end: int, fixed: int) -> int:
    """Move the data of two operands to the next index of the dimensions before `end`, but `fixed`; 0 after the last."""
    for d in range(end - 1, -1, -1):
        if d != fixed:
            index[d] += 1
            operand[Operand.DATA] += operand[Operand.STRIDES + d]
            other[Operand.DATA] += other[Operand.STRIDES + d]
            if index[d] < operand[Operand.EXTENTS + d]:
                return 1
            operand[Operand.DATA] -= index[d] * operand[Operand.STRIDES + d]
            other[Operand.DATA] -= index[d] * other[Operand.STRIDES + d]
            index[d] = 0
    return 0
