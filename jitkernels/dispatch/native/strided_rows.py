"""Call kernels on contiguous rows of strided operands in place, without a buffer.

Examples are the left columns of a wider array and every second row. Elementwise kernels also accept a broadcast row
and, beside contiguous arrays, a broadcast scalar, which is materialized to the length of a row. The call of a row is
cheap, as only the addresses of its operands change.
"""

# mypy: disable-error-code="name-defined,no-any-return,assignment,index"
from jitkernels.codegen.i64_intrinsics import address, stack
from jitkernels.runtime.abi_layout import (
    LEAST_ROWS,
    LEAST_STRAIGHT,
    MOST_CALL_WORDS,
    MOST_OPERANDS,
    MOST_STRAIGHT,
    STACK_BUFFER_BYTES,
    STRAIGHT,
    Frame,
    Known,
    Operand,
    Record,
    Table,
)


def straight(table: int, frame: int, context: int, lead: int, widest: int) -> int:
    """Call the entry row by row; 0 if it failed, -1 if operands have another layout, and nothing was done."""
    length = length_of_rows(table, frame) if widest == 1 else rows_without_gaps(table, frame, lead)
    if length == 0:
        return -1
    both = table[Table.INPUTS] + table[Table.OUTPUTS]
    words = stack(MOST_CALL_WORDS)
    steps = stack(MOST_OPERANDS)
    area = (stack(STACK_BUFFER_BYTES // 8 + 8) + 63) // 64 * 64
    end = area + STACK_BUFFER_BYTES
    changing = 0
    at = 0
    for i in range(both):
        own = operand(frame, i)
        if own[Operand.ARRAY] != 0:
            place = own[Operand.DATA]
            item = 4 if own[Operand.WANTED] == FLOAT32 else 8
            last = own[Operand.DIMENSIONS] - 1
            step = 0
            own[Operand.BASE] = 0
            if own[Operand.DIRECT]:
                if record(table, i)[Record.LEADS]:
                    step = length * own[Operand.INNER] * own[Operand.ITEM]
            elif widest > 1 or (last == 1 and own[Operand.STRIDES + 1] != 0):
                step = own[Operand.STRIDES]
            else:
                size = length * item if record(table, i)[Record.LEADS] else item
                if area + size > end:
                    return -1
                copy_run(own[Operand.PAIR], area, item, place, 0, 1)
                fill(area, item, size // item)
                if last == 1:
                    own[Operand.BASE] = area
                    changing = 1
                place = area
                area += (size + 127) // 64 * 64
            steps[at] = step
            words[at] = place
            at += 1
    arrays = at
    spread = table[Table.SPREAD]
    for s in range(table[Table.SYMBOLS]):
        words[at] = frame[Frame.EXTENTS + s]
        at += 1
    for f in range(table[Table.FLOATS]):
        words[at] = frame + 8 * (Frame.FLOATS + f)
        at += 1
    entry = context[Known.ENTRY]
    state = 0
    if context[Known.LONG]:
        state = PyEval_SaveThread()
    row = 0
    status = 0
    while lead > 0 and status == 0:
        words[arrays + spread] = min(length, lead)
        if changing and row > 0:
            renew(frame, both, row, length)
        status = called_briefly(entry, words, at)
        for i in range(arrays):
            words[i] += steps[i]
        lead -= length
        row += 1
    if state != 0:
        PyEval_RestoreThread(state)
    return status == 0


def rows_without_gaps(table: int, frame: int, lead: int) -> int:
    """How many rows of a kernel are contiguous in every operand; 0 where some are strided or too short."""
    inputs = table[Table.INPUTS]
    length = 0
    widest = 0
    for i in range(inputs + table[Table.OUTPUTS]):
        own = operand(frame, i)
        if own[Operand.ARRAY] == 0:
            continue
        inner = own[Operand.INNER]
        item = own[Operand.ITEM]
        if own[Operand.DIRECT]:
            continue
        if record(table, i)[Record.LEADS] == 0:
            return 0
        if is_taken_so(own) == 0:
            return 0
        if own[Operand.DIMENSIONS] == 2 and own[Operand.STRIDES + 1] == item:
            extent = own[Operand.EXTENTS + 1]
            if extent % inner != 0 or (i >= inputs and own[Operand.STRIDES] == 0):
                return 0
            if length != 0 and length != extent // inner:
                return 0
            length = extent // inner
        elif inner == 1 and own[Operand.DIMENSIONS] == 1:
            if length > 1 or own[Operand.STRIDES] == 0:
                return 0
            length = 1
        else:
            return 0
        widest = max(widest, inner * item)
    return length if length * widest >= LEAST_ROWS else 0


def is_taken_so(own: int) -> int:
    """Whether a kernel may read or write the elements of an operand in place."""
    if own[Operand.ALIGNED] == 0:
        return 0
    return address("jk_forms")[own[Operand.PAIR]] & SAME


def length_of_rows(table: int, frame: int) -> int:
    """The row length of all strided operands; 0 where some have another layout."""
    inputs = table[Table.INPUTS]
    length = 0
    written = 0
    moves = 0
    for i in range(inputs + table[Table.OUTPUTS]):
        own = operand(frame, i)
        if own[Operand.ARRAY] == 0:
            continue
        leads = record(table, i)[Record.LEADS]
        if own[Operand.INNER] != 1:
            return 0
        if own[Operand.DIRECT] == 0:
            last = own[Operand.DIMENSIONS] - 1
            stride = own[Operand.STRIDES + last]
            if last > leads:
                return 0
            if last == 1:
                extent = own[Operand.EXTENTS + 1]
                if length != 0 and extent != length:
                    return 0
                length = extent
                moves = moves or own[Operand.STRIDES] != 0
            if stride == 0 or leads == 0:
                if i >= inputs:
                    return 0
                written += leads
            elif last == 0 or stride != own[Operand.ITEM]:
                return 0
            elif is_taken_so(own) == 0:
                return 0
    if length == 0:
        length = STRAIGHT >> frame[Frame.WIDE]
    elif moves == 0 and length < STRAIGHT:
        return 0  # copies of the one broadcast row make longer blocks
    if length < LEAST_STRAIGHT or (written and length > MOST_STRAIGHT):
        return 0
    return length


def renew(frame: int, operands: int, row: int, length: int) -> int:
    """Materialize the scalars of a row, where each row has its own."""
    for i in range(operands):
        own = operand(frame, i)
        if own[Operand.ARRAY] != 0 and own[Operand.BASE] != 0:
            item = 4 if own[Operand.WANTED] == FLOAT32 else 8
            place = own[Operand.DATA] + row * own[Operand.STRIDES]
            copy_run(own[Operand.PAIR], own[Operand.BASE], item, place, 0, 1)
            fill(own[Operand.BASE], item, length)
    return 0


FUNCTIONS = (straight, rows_without_gaps, is_taken_so, length_of_rows, renew)
