"""Call the kernel on operands in layouts that it does not accept: block by block through a buffer."""

# mypy: disable-error-code="name-defined,no-any-return,assignment,index"
from jitkernels.codegen.i64_intrinsics import stack
from jitkernels.runtime.abi_layout import ContextWords, Frame, Operand, OperandSpec, OperatorTable


def in_blocks(table: int, frame: int, context: int) -> int:
    """Call the entry block by block through a buffer, or once if gathering rows was all that was needed.

    Functions that only move data need no buffer.
    """
    if table[OperatorTable.MOVES] and move_data(table, frame, context):
        return 1
    if gather_rows(table, frame, context) == 0:
        return 0
    words = stack(MAX_CALL_WORDS)
    widest = prepare_operands(table, frame, table[OperatorTable.AT_ONCE] or context[ContextWords.EXACT])
    if widest == 0:
        return launch_kernel(table, frame, context, words, -1, context[ContextWords.LONG])
    lead = frame[Frame.EXTENTS + table[OperatorTable.SPREAD]] if table[OperatorTable.SPREAD] >= 0 else 1
    step = lead
    if widest > 0:
        done = call_per_row(table, frame, context, lead, widest)
        if done >= 0:
            return done
        step = rows_per_block(table, frame, lead, widest)
    if assign_buffers(table, frame, step, stack(STACK_BUFFER_BYTES // 8 + 8)) == 0:
        return 0
    state = 0
    if context[ContextWords.LONG]:
        state = PyEval_SaveThread()
    done = 1
    start = 0
    while done and (start < lead or start == 0):  # zero rows may still have results
        count = min(step, lead - start)
        done = run_block(table, frame, context, words, start, count, step)
        start += max(count, 1)
    if state != 0:
        PyEval_RestoreThread(state)
    return done


def prepare_operands(table: int, frame: int, whole: int) -> int:
    """Set the copies of buffered operands; return the most elements of a row among these.

    0 if no operand needs a buffer, -1 if the kernel must be called once for all rows.
    """
    direct = 1
    widest = -1
    for i in range(argument_count(table)):
        operand = operand_at(frame, i)
        if operand[Operand.ARRAY] != 0:
            argument = argument_at(table, i)
            operand[Operand.BASE] = operand[Operand.DATA]
            if argument[OperandSpec.ALONG] and operand[Operand.EXTENTS] > 1:
                whole = 1  # the kernel finds its part of this operand by the index of a row
            if operand[Operand.DIRECT] == 0:
                direct = 0
                if argument[OperandSpec.LEADS]:
                    widest = max(max(widest, 1), operand[Operand.INNER])
                operand[Operand.PAIR] = cast_pair(operand, i >= table[OperatorTable.INPUTS])
                collapse(operand)
                whole = whole or operand[Operand.COPY]
            whole = whole or operand[Operand.TURNED]
    if direct:
        return 0
    return -1 if whole else widest


def assign_buffers(table: int, frame: int, rows: int, area: int) -> int:
    """Place the buffers of `rows` rows in the stack area, or in new memory; fill those that no block changes.

    0 if there is no memory.
    """
    total = 0
    for i in range(argument_count(table)):
        operand = operand_at(frame, i)
        if needs_buffer(operand):
            count = operand[Operand.INNER]
            if argument_at(table, i)[OperandSpec.LEADS]:
                count = count * rows
            operand[Operand.BASE] = total
            total += (count * 8 + 127) // 64 * 64
    if total > STACK_BUFFER_BYTES:
        area = malloc(total + 64)
        if area == 0:
            return 0
        frame[Frame.MEMORY] = area
    area = (area + 63) // 64 * 64
    for i in range(argument_count(table)):
        operand = operand_at(frame, i)
        if needs_buffer(operand):
            operand[Operand.BASE] += area
            if i < table[OperatorTable.INPUTS] and argument_at(table, i)[OperandSpec.LEADS] == 0:
                transfer(operand, 0, operand[Operand.INNER], 1)
    return 1


def rows_per_block(table: int, frame: int, lead: int, widest: int) -> int:
    """Rows of a block: the buffer stays in the L1 cache, or is larger where it is filled only once.

    Long rows are grouped all the same, up to the size of the L2 cache: a matrix-product kernel needs several.

    A broadcast row or scalar stays valid in the buffer if block sizes are whole multiples of its period.
    """
    step = max(1, max(BUFFER_BYTES // 8 // widest, min(ROWS_TOGETHER, ROWS_BYTES // 8 // widest)))
    constant = widest == 1
    period = 1
    row_bytes = 0
    is_transposed_block = 0
    for i in range(argument_count(table)):
        operand = operand_at(frame, i)
        if needs_buffer(operand) and argument_at(table, i)[OperandSpec.LEADS]:
            own_period = broadcast_period(operand)
            constant = constant and own_period <= MAX_ALIKE * step and i < table[OperatorTable.INPUTS]
            if own_period <= MAX_ALIKE * step:
                period = max(period, own_period)
            row_bytes = max(row_bytes, transposed_row_bytes(operand))
            is_transposed_block = is_transposed_block or is_transposed_across(operand)
    if is_transposed_block and widest * 8 * SQUARE <= SQUARES_BYTES:
        # As many rows as one cache line of the transposed operand holds, or half of them.
        return min(lead, min(2, SQUARES_BYTES // (widest * 8 * SQUARE)) * SQUARE)
    if row_bytes != 0 and row_bytes * SQUARE <= ROWS_BYTES and widest == 1:
        # Whole squares of the transposed operand.
        return min(lead, row_bytes // 8 * max(1, TURNED_BYTES // (row_bytes * SQUARE)) * SQUARE)
    if constant:
        step = MAX_ALIKE * step
    if step < lead and widest == 1 and period <= step:
        step -= step % period
    return min(lead, step)


def transposed_row_bytes(operand: int) -> int:
    """Bytes of a row in the buffer, at 8 bytes an element, if the operand is transposed; else 0."""
    last = operand[Operand.DIMENSIONS] - 1
    if last == 0:
        return 0
    item = operand[Operand.ITEM]
    length = operand[Operand.EXTENTS + last]
    if operand[Operand.STRIDES + last] == item or length < SQUARE:
        return 0
    return 8 * length if operand[Operand.STRIDES + last - 1] == item else 0


def is_transposed_across(operand: int) -> int:
    """Whether the first elements of rows are contiguous, and those of one row strided."""
    last = operand[Operand.DIMENSIONS] - 1
    inner = operand[Operand.INNER]
    extent = operand[Operand.EXTENTS]
    if last < 2 or extent < SQUARE or inner * extent != element_count(operand):
        return 0
    item = operand[Operand.ITEM]
    if operand[Operand.STRIDES] != item or operand[Operand.EXTENTS + last] < SQUARE:
        return 0
    return operand[Operand.STRIDES + last] != item


def broadcast_period(operand: int) -> int:
    """After how many elements a collapsed operand repeats; a huge number if never.

    Kernels write only outputs, so that inputs in the buffer stay valid.
    """
    last = operand[Operand.DIMENSIONS] - 1
    if operand[Operand.STRIDES] != 0:
        return 1 << 62
    if last == 0:
        return 1
    return operand[Operand.EXTENTS + 1] if last == 1 else 1 << 62


def run_block(table: int, frame: int, context: int, words: int, start: int, count: int, step: int) -> int:
    """Compute a block of `count` rows; the previous blocks had `step` rows."""
    inputs = table[OperatorTable.INPUTS]
    for i in range(argument_count(table)):
        operand = operand_at(frame, i)
        if operand[Operand.ARRAY] != 0 and argument_at(table, i)[OperandSpec.LEADS]:
            inner = operand[Operand.INNER]
            if operand[Operand.DIRECT]:
                operand[Operand.BASE] = operand[Operand.DATA] + start * inner * operand[Operand.ITEM]
            elif i < inputs and (start == 0 or step * inner % broadcast_period(operand)):
                transfer(operand, start * inner, count * inner, 1)
    if launch_kernel(table, frame, context, words, count, 0) == 0:
        return 0
    for i in range(inputs, argument_count(table)):
        operand = operand_at(frame, i)
        if needs_buffer(operand):
            inner = operand[Operand.INNER]
            if argument_at(table, i)[OperandSpec.LEADS]:
                transfer(operand, start * inner, count * inner, 0)
            else:
                transfer(operand, 0, inner, 0)
    return 1
