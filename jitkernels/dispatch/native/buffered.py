"""Call the kernel on operands in layouts that it does not accept: block by block through a buffer."""

# mypy: disable-error-code="name-defined,no-any-return,assignment,index"
from jitkernels.codegen.i64_intrinsics import stack
from jitkernels.runtime.abi_layout import (
    BUFFER_BYTES,
    MOST_ALIKE,
    MOST_CALL_WORDS,
    ROWS_BYTES,
    ROWS_TOGETHER,
    SQUARES_BYTES,
    STACK_BUFFER_BYTES,
    TURNED_BYTES,
    Frame,
    Known,
    Operand,
    Record,
    Table,
)


def in_blocks(table: int, frame: int, context: int) -> int:
    """Call the entry block by block through a buffer, or once if gathering rows was all that was needed.

    Functions that only move data need no buffer.
    """
    if table[Table.MOVES] and relaid(table, frame, context):
        return 1
    if pick_rows(table, frame, context) == 0:
        return 0
    both = table[Table.INPUTS] + table[Table.OUTPUTS]
    words = stack(MOST_CALL_WORDS)
    direct = 1
    spread_out = 0
    whole = table[Table.AT_ONCE] or context[Known.EXACT]
    widest = 1
    for i in range(both):
        own = operand(frame, i)
        if own[Operand.ARRAY] != 0:
            own[Operand.BASE] = own[Operand.DATA]
            if record(table, i)[Record.ALONG] and own[Operand.EXTENTS] > 1:
                whole = 1  # the row's index in the call selects its part
            if own[Operand.DIRECT] == 0:
                direct = 0
                if record(table, i)[Record.LEADS]:
                    spread_out = 1
                    widest = max(widest, own[Operand.INNER])
                own[Operand.PAIR] = pair_of(own, i >= table[Table.INPUTS])
                collapse(own)
            whole = whole or own[Operand.TURNED]
    if direct:
        return launch(table, frame, context, words, -1, context[Known.LONG])
    for i in range(table[Table.INPUTS]):
        own = operand(frame, i)
        if own[Operand.ARRAY] != 0:
            if own[Operand.DIRECT] == 0 and own[Operand.COPY]:
                whole = 1
    lead = 1
    spread = table[Table.SPREAD]
    if spread >= 0:
        lead = frame[Frame.EXTENTS + spread]
    step = lead
    if whole == 0 and spread_out:
        finished_so = straight(table, frame, context, lead, widest)
        if finished_so >= 0:
            return finished_so
        step = block_of(table, frame, lead, widest)
    total = 0
    for i in range(both):
        own = operand(frame, i)
        if own[Operand.ARRAY] != 0 and own[Operand.DIRECT] == 0:
            count = own[Operand.INNER]
            if record(table, i)[Record.LEADS]:
                count = count * step
            own[Operand.BASE] = total
            total += (count * 8 + 127) // 64 * 64
    area = (stack(STACK_BUFFER_BYTES // 8 + 8) + 63) // 64 * 64
    if total > STACK_BUFFER_BYTES:
        memory = malloc(total + 64)
        if memory == 0:
            return 0
        frame[Frame.MEMORY] = memory
        area = (memory + 63) // 64 * 64
    for i in range(both):
        own = operand(frame, i)
        if own[Operand.ARRAY] != 0 and own[Operand.DIRECT] == 0:
            own[Operand.BASE] += area
            if i < table[Table.INPUTS] and record(table, i)[Record.LEADS] == 0:
                transfer(own, 0, own[Operand.INNER], 1)
    state = 0
    if context[Known.LONG]:
        state = PyEval_SaveThread()
    done = 1
    start = 0
    while done and (start < lead or start == 0):  # zero rows may still have results
        count = min(step, lead - start)
        done = one_block(table, frame, context, words, start, count, step)
        start += max(count, 1)
    if state != 0:
        PyEval_RestoreThread(state)
    return done


def block_of(table: int, frame: int, lead: int, widest: int) -> int:
    """Rows of a block: the buffer stays in the L1 cache, or is larger where it is filled only once.

    Long rows are grouped all the same, up to the size of the L2 cache: a matrix-product kernel needs several.

    A broadcast row or scalar stays valid in the buffer if block sizes are whole multiples of its period.
    """
    step = max(1, max(BUFFER_BYTES // 8 // widest, min(ROWS_TOGETHER, ROWS_BYTES // 8 // widest)))
    constant = widest == 1
    period = 1
    rows_bytes = 0
    turned = 0
    for i in range(table[Table.INPUTS] + table[Table.OUTPUTS]):
        own = operand(frame, i)
        if own[Operand.ARRAY] != 0 and own[Operand.DIRECT] == 0:
            if record(table, i)[Record.LEADS]:
                again = period_of(own)
                constant = constant and again <= MOST_ALIKE * step and i < table[Table.INPUTS]
                if again > period and again <= MOST_ALIKE * step:
                    period = again
                rows_bytes = max(rows_bytes, turned_bytes(own))
                if lies_across(own):
                    turned = 1
    if turned and widest * 8 * SQUARE <= SQUARES_BYTES:
        # As many rows as one cache line of the transposed operand holds, or half of them.
        return min(lead, min(2, SQUARES_BYTES // (widest * 8 * SQUARE)) * SQUARE)
    if rows_bytes != 0 and rows_bytes * SQUARE <= ROWS_BYTES and widest == 1:
        # Whole squares of the transposed operand.
        return min(lead, rows_bytes // 8 * max(1, TURNED_BYTES // (rows_bytes * SQUARE)) * SQUARE)
    if constant:
        step = MOST_ALIKE * step
    if step < lead and widest == 1 and period <= step:
        step -= step % period
    return min(lead, step)


def turned_bytes(own: int) -> int:
    """Bytes of a row in the buffer, at 8 bytes an element, if the operand is transposed; else 0."""
    last = own[Operand.DIMENSIONS] - 1
    if last == 0:
        return 0
    item = own[Operand.ITEM]
    length = own[Operand.EXTENTS + last]
    turned = own[Operand.STRIDES + last] != item and length >= SQUARE
    return 8 * length if turned and own[Operand.STRIDES + last - 1] == item else 0


def lies_across(own: int) -> int:
    """Whether the first elements of rows are contiguous, and those of one row strided."""
    last = own[Operand.DIMENSIONS] - 1
    inner = own[Operand.INNER]
    extent = own[Operand.EXTENTS]
    if last < 2 or extent < SQUARE or inner * extent != elements_of(own):
        return 0
    item = own[Operand.ITEM]
    beside = own[Operand.STRIDES] == item and own[Operand.EXTENTS + last] >= SQUARE
    return beside and own[Operand.STRIDES + last] != item


def period_of(own: int) -> int:
    """After how many elements a collapsed operand repeats; a huge number if never.

    Kernels write only outputs, so that inputs in the buffer stay valid.
    """
    last = own[Operand.DIMENSIONS] - 1
    if own[Operand.STRIDES] != 0:
        return 1 << 62
    if last == 0:
        return 1
    return own[Operand.EXTENTS + 1] if last == 1 else 1 << 62


def one_block(table: int, frame: int, context: int, words: int, start: int, count: int, step: int) -> int:
    """Compute a block of `count` rows; the previous blocks had `step` rows."""
    inputs = table[Table.INPUTS]
    both = inputs + table[Table.OUTPUTS]
    for i in range(both):
        own = operand(frame, i)
        if own[Operand.ARRAY] != 0:
            inner = own[Operand.INNER]
            if record(table, i)[Record.LEADS]:
                if own[Operand.DIRECT]:
                    item = own[Operand.ITEM]
                    own[Operand.BASE] = own[Operand.DATA] + start * inner * item
                elif i < inputs:
                    if start == 0 or step * inner % period_of(own):
                        transfer(own, start * inner, count * inner, 1)
    if launch(table, frame, context, words, count, 0) == 0:
        return 0
    for i in range(inputs, both):
        own = operand(frame, i)
        if own[Operand.ARRAY] != 0 and own[Operand.DIRECT] == 0:
            inner = own[Operand.INNER]
            if record(table, i)[Record.LEADS]:
                transfer(own, start * inner, count * inner, 0)
            else:
                transfer(own, 0, inner, 0)
    return 1


FUNCTIONS = (in_blocks, block_of, turned_bytes, lies_across, period_of, one_block)
