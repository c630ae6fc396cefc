"""Call the kernel on operands in layouts that it does not accept: block by block through a buffer."""

# mypy: disable-error-code="name-defined,no-any-return,assignment"
from jitkernels.codegen.i64_intrinsics import load, stack, store
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
    if load(table, 8 * Table.MOVES) and relaid(table, frame, context):
        return 1
    if pick_rows(table, frame, context) == 0:
        return 0
    both = load(table, 8 * Table.INPUTS) + load(table, 8 * Table.OUTPUTS)
    words = stack(MOST_CALL_WORDS)
    direct = 1
    spread_out = 0
    whole = load(table, 8 * Table.AT_ONCE) or load(context, 8 * Known.EXACT)
    widest = 1
    for i in range(both):
        own = operand(frame, i)
        if load(own, 8 * Operand.ARRAY) != 0:
            store(own, 8 * Operand.BASE, load(own, 8 * Operand.DATA))
            if load(record(table, i), 8 * Record.ALONG) and load(own, 8 * Operand.EXTENTS) > 1:
                whole = 1  # the row's index in the call selects its part
            if load(own, 8 * Operand.DIRECT) == 0:
                direct = 0
                if load(record(table, i), 8 * Record.LEADS):
                    spread_out = 1
                    widest = max(widest, load(own, 8 * Operand.INNER))
                store(own, 8 * Operand.PAIR, pair_of(own, i >= load(table, 8 * Table.INPUTS)))
                collapse(own)
            whole = whole or load(own, 8 * Operand.TURNED)
    if direct:
        return launch(table, frame, context, words, -1, load(context, 8 * Known.LONG))
    for i in range(load(table, 8 * Table.INPUTS)):
        own = operand(frame, i)
        if load(own, 8 * Operand.ARRAY) != 0:
            if load(own, 8 * Operand.DIRECT) == 0 and load(own, 8 * Operand.COPY):
                whole = 1
    lead = 1
    spread = load(table, 8 * Table.SPREAD)
    if spread >= 0:
        lead = load(frame, 8 * (Frame.EXTENTS + spread))
    step = lead
    if whole == 0 and spread_out:
        finished_so = straight(table, frame, context, lead, widest)
        if finished_so >= 0:
            return finished_so
        step = block_of(table, frame, lead, widest)
    total = 0
    for i in range(both):
        own = operand(frame, i)
        if load(own, 8 * Operand.ARRAY) != 0 and load(own, 8 * Operand.DIRECT) == 0:
            count = load(own, 8 * Operand.INNER)
            if load(record(table, i), 8 * Record.LEADS):
                count = count * step
            store(own, 8 * Operand.BASE, total)
            total += (count * 8 + 127) // 64 * 64
    area = (stack(STACK_BUFFER_BYTES // 8 + 8) + 63) // 64 * 64
    if total > STACK_BUFFER_BYTES:
        memory = malloc(total + 64)
        if memory == 0:
            return 0
        store(frame, 8 * Frame.MEMORY, memory)
        area = (memory + 63) // 64 * 64
    for i in range(both):
        own = operand(frame, i)
        if load(own, 8 * Operand.ARRAY) != 0 and load(own, 8 * Operand.DIRECT) == 0:
            store(own, 8 * Operand.BASE, load(own, 8 * Operand.BASE) + area)
            if i < load(table, 8 * Table.INPUTS) and load(record(table, i), 8 * Record.LEADS) == 0:
                transfer(own, 0, load(own, 8 * Operand.INNER), 1)
    state = 0
    if load(context, 8 * Known.LONG):
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
    for i in range(load(table, 8 * Table.INPUTS) + load(table, 8 * Table.OUTPUTS)):
        own = operand(frame, i)
        if load(own, 8 * Operand.ARRAY) != 0 and load(own, 8 * Operand.DIRECT) == 0:
            if load(record(table, i), 8 * Record.LEADS):
                again = period_of(own)
                constant = constant and again <= MOST_ALIKE * step and i < load(table, 8 * Table.INPUTS)
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
    last = load(own, 8 * Operand.DIMENSIONS) - 1
    if last == 0:
        return 0
    item = load(own, 8 * Operand.ITEM)
    length = load(own, 8 * (Operand.EXTENTS + last))
    turned = load(own, 8 * (Operand.STRIDES + last)) != item and length >= SQUARE
    return 8 * length if turned and load(own, 8 * (Operand.STRIDES + last - 1)) == item else 0


def lies_across(own: int) -> int:
    """Whether the first elements of rows are contiguous, and those of one row strided."""
    last = load(own, 8 * Operand.DIMENSIONS) - 1
    inner = load(own, 8 * Operand.INNER)
    extent = load(own, 8 * Operand.EXTENTS)
    if last < 2 or extent < SQUARE or inner * extent != elements_of(own):
        return 0
    item = load(own, 8 * Operand.ITEM)
    beside = load(own, 8 * Operand.STRIDES) == item and load(own, 8 * (Operand.EXTENTS + last)) >= SQUARE
    return beside and load(own, 8 * (Operand.STRIDES + last)) != item


def period_of(own: int) -> int:
    """After how many elements a collapsed operand repeats; a huge number if never.

    Kernels write only outputs, so that inputs in the buffer stay valid.
    """
    last = load(own, 8 * Operand.DIMENSIONS) - 1
    if load(own, 8 * Operand.STRIDES) != 0:
        return 1 << 62
    if last == 0:
        return 1
    return load(own, 8 * (Operand.EXTENTS + 1)) if last == 1 else 1 << 62


def one_block(table: int, frame: int, context: int, words: int, start: int, count: int, step: int) -> int:
    """Compute a block of `count` rows; the previous blocks had `step` rows."""
    inputs = load(table, 8 * Table.INPUTS)
    both = inputs + load(table, 8 * Table.OUTPUTS)
    for i in range(both):
        own = operand(frame, i)
        if load(own, 8 * Operand.ARRAY) != 0:
            inner = load(own, 8 * Operand.INNER)
            if load(record(table, i), 8 * Record.LEADS):
                if load(own, 8 * Operand.DIRECT):
                    item = load(own, 8 * Operand.ITEM)
                    store(own, 8 * Operand.BASE, load(own, 8 * Operand.DATA) + start * inner * item)
                elif i < inputs:
                    if start == 0 or step * inner % period_of(own):
                        transfer(own, start * inner, count * inner, 1)
    if launch(table, frame, context, words, count, 0) == 0:
        return 0
    for i in range(inputs, both):
        own = operand(frame, i)
        if load(own, 8 * Operand.ARRAY) != 0 and load(own, 8 * Operand.DIRECT) == 0:
            inner = load(own, 8 * Operand.INNER)
            if load(record(table, i), 8 * Record.LEADS):
                transfer(own, start * inner, count * inner, 0)
            else:
                transfer(own, 0, inner, 0)
    return 1


FUNCTIONS = (in_blocks, block_of, turned_bytes, lies_across, period_of, one_block)
