"""Call kernels on contiguous rows of strided operands in place, without a buffer.

Examples are the left columns of a wider array and every second row. Elementwise kernels also accept a broadcast row
and, beside contiguous arrays, a broadcast scalar, which is materialized to the length of a row. The call of a row is
cheap, as only the addresses of its operands change.
"""

# mypy: disable-error-code="name-defined,no-any-return,assignment,index"
from jitkernels.codegen.i64_intrinsics import stack
from jitkernels.runtime.abi_layout import ContextWords, Frame, Operand, OperandSpec, OperatorTable


def call_per_row(table: int, frame: int, context: int, lead: int, widest: int) -> int:
    """Call the entry row by row; 0 if it failed, -1 if operands have another layout, and nothing was done."""
    length = broadcast_row_length(table, frame) if widest == 1 else contiguous_rows(table, frame)
    if length == 0:
        return -1
    words = stack(MAX_CALL_WORDS)
    steps = stack(MAX_OPERANDS)
    area = (stack(STACK_BUFFER_BYTES // 8 + 8) + 63) // 64 * 64
    arrays = lay_out_rows(table, frame, length, widest, words, steps, area)
    if arrays < 0:
        return -1
    has_scalars = arrays & 1
    arrays = arrays >> 1
    count = append_scalars(table, frame, words, arrays)
    entry = context[ContextWords.ENTRY]
    state = 0
    if context[ContextWords.LONG]:
        state = PyEval_SaveThread()
    row = 0
    status = 0
    while lead > 0 and status == 0:
        words[arrays + table[OperatorTable.SPREAD]] = min(length, lead)
        if has_scalars and row > 0:
            refill_scalars(table, frame, row, length)
        status = call_few_words(entry, words, count)
        for i in range(arrays):
            words[i] += steps[i]
        lead -= length
        row += 1
    if state != 0:
        PyEval_RestoreThread(state)
    return status == 0


def lay_out_rows(table: int, frame: int, length: int, widest: int, words: int, steps: int, area: int) -> int:
    """Store the address of each array's first row, and its byte step to the next; scalars are materialized in `area`.

    Return twice the number of arrays, plus 1 if each row has its own scalars; -1 if the area is too small.
    """
    end = area + STACK_BUFFER_BYTES
    has_scalars = 0
    arrays = 0
    for i in range(argument_count(table)):
        operand = operand_at(frame, i)
        if operand[Operand.ARRAY] != 0:
            leads = argument_at(table, i)[OperandSpec.LEADS]
            last = operand[Operand.DIMENSIONS] - 1
            steps[arrays] = 0
            words[arrays] = operand[Operand.DATA]
            operand[Operand.BASE] = 0
            if operand[Operand.DIRECT]:
                if leads:
                    steps[arrays] = length * operand[Operand.INNER] * operand[Operand.ITEM]
            elif widest > 1 or (last == 1 and operand[Operand.STRIDES + 1] != 0):
                steps[arrays] = operand[Operand.STRIDES]
            else:
                item = item_of(operand)
                size = length * item if leads else item
                if area + size > end:
                    return -1
                broadcast_scalar(operand, operand[Operand.DATA], area, size // item)
                if last == 1:
                    operand[Operand.BASE] = area
                    has_scalars = 1
                words[arrays] = area
                area += (size + 127) // 64 * 64
            arrays += 1
    return arrays << 1 | has_scalars


def broadcast_scalar(operand: int, scalar: int, buffer: int, count: int) -> int:
    """Fill a buffer with one element of an operand."""
    copy_run(operand[Operand.PAIR], buffer, item_of(operand), scalar, 0, 1)
    return fill(buffer, item_of(operand), count)


def refill_scalars(table: int, frame: int, row: int, length: int) -> int:
    """Materialize the scalars of a row, where each row has its own."""
    for i in range(argument_count(table)):
        operand = operand_at(frame, i)
        if operand[Operand.ARRAY] != 0 and operand[Operand.BASE] != 0:
            scalar = operand[Operand.DATA] + row * operand[Operand.STRIDES]
            broadcast_scalar(operand, scalar, operand[Operand.BASE], length)
    return 0


def contiguous_rows(table: int, frame: int) -> int:
    """How many rows of a kernel are contiguous in every operand; 0 where some are strided or too short."""
    inputs = table[OperatorTable.INPUTS]
    length = 0
    widest = 0
    for i in range(argument_count(table)):
        operand = operand_at(frame, i)
        if needs_buffer(operand) == 0:
            continue
        inner = operand[Operand.INNER]
        item = operand[Operand.ITEM]
        if argument_at(table, i)[OperandSpec.LEADS] == 0 or is_used_in_place(operand) == 0:
            return 0
        if operand[Operand.DIMENSIONS] == 2 and operand[Operand.STRIDES + 1] == item:
            extent = operand[Operand.EXTENTS + 1]
            if extent % inner != 0 or (i >= inputs and operand[Operand.STRIDES] == 0):
                return 0
            if length != 0 and length != extent // inner:
                return 0
            length = extent // inner
        elif inner == 1 and operand[Operand.DIMENSIONS] == 1:
            if length > 1 or operand[Operand.STRIDES] == 0:
                return 0
            length = 1
        else:
            return 0
        widest = max(widest, inner * item)
    return length if length * widest >= MIN_ROWS else 0


def is_used_in_place(operand: int) -> int:
    """Whether a kernel may read or write the elements of an operand in place."""
    return operand[Operand.ALIGNED] and is_same_dtype(operand)


def broadcast_row_length(table: int, frame: int) -> int:
    """The row length of all strided operands; 0 where some have another layout."""
    inputs = table[OperatorTable.INPUTS]
    length = 0
    has_scalars = 0
    is_matrix = 0
    for i in range(argument_count(table)):
        operand = operand_at(frame, i)
        if operand[Operand.ARRAY] == 0:
            continue
        leads = argument_at(table, i)[OperandSpec.LEADS]
        if operand[Operand.INNER] != 1:
            return 0
        if operand[Operand.DIRECT] == 0:
            last = operand[Operand.DIMENSIONS] - 1
            stride = operand[Operand.STRIDES + last]
            if last > leads:
                return 0
            if last == 1:
                extent = operand[Operand.EXTENTS + 1]
                if length != 0 and extent != length:
                    return 0
                length = extent
                is_matrix = is_matrix or operand[Operand.STRIDES] != 0
            if stride == 0 or leads == 0:
                if i >= inputs:
                    return 0
                has_scalars = has_scalars or leads
            elif last == 0 or stride != operand[Operand.ITEM] or is_used_in_place(operand) == 0:
                return 0
    if length == 0:
        length = STRAIGHT >> frame[Frame.WIDE]
    elif is_matrix == 0 and length < STRAIGHT:
        return 0  # copies of the one broadcast row make longer blocks
    if length < MIN_STRAIGHT or (has_scalars and length > MAX_STRAIGHT):
        return 0
    return length
