"""Calling the kernel where some operands do not lie as it wants them: block by block through a buffer."""

# mypy: disable-error-code="name-defined,no-any-return,assignment"
from jitkernels.native.layout import (
    BUFFER_BYTES,
    MOST_ALIKE,
    MOST_CALL_WORDS,
    MOST_OPERAND_DIMENSIONS,
    ROWS_BYTES,
    ROWS_TOGETHER,
    STACK_BUFFER_BYTES,
    TURNED_BYTES,
    Frame,
    Known,
    Operand,
    Record,
    Table,
)
from jitkernels.native.words import address, load, stack, store


def in_blocks(table: int, frame: int, context: int) -> int:
    """Call the entry: block by block through a buffer, unless rows brought together were all that was in the way.

    Functions that do no more than that need no buffer.
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
                whole = 1  # which of it belongs to a row is told by the row's number in the call
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
    while done and (start < lead or start == 0):  # of no rows there may be results all the same
        count = min(step, lead - start)
        done = one_block(table, frame, context, words, start, count, step)
        start += max(count, 1)
    if state != 0:
        PyEval_RestoreThread(state)
    return done


def block_of(table: int, frame: int, lead: int, widest: int) -> int:
    """Rows of a block: so many that the buffer stays in the first cache, more where it is filled but once.

    Long rows are some all the same, as many as the second cache has room for: a kernel of products needs several.

    A row which is the same again and again, and a number, lie in the buffer as they did before if blocks are whole
    multiples of it.
    """
    step = max(1, max(BUFFER_BYTES // 8 // widest, min(ROWS_TOGETHER, ROWS_BYTES // 8 // widest)))
    constant = widest == 1
    period = 1
    rows_bytes = 0
    for i in range(load(table, 8 * Table.INPUTS) + load(table, 8 * Table.OUTPUTS)):
        own = operand(frame, i)
        if load(own, 8 * Operand.ARRAY) != 0 and load(own, 8 * Operand.DIRECT) == 0:
            if load(record(table, i), 8 * Record.LEADS):
                again = period_of(own)
                constant = constant and again <= MOST_ALIKE * step and i < load(table, 8 * Table.INPUTS)
                if again > period and again <= MOST_ALIKE * step:
                    period = again
                rows_bytes = max(rows_bytes, turned_bytes(own))
    if rows_bytes != 0 and rows_bytes * SQUARE <= ROWS_BYTES and widest == 1:
        # Whole squares of what lies the other way round.
        return min(lead, rows_bytes // 8 * max(1, TURNED_BYTES // (rows_bytes * SQUARE)) * SQUARE)
    if constant:
        step = MOST_ALIKE * step
    if step < lead and widest == 1 and period <= step:
        step -= step % period
    return min(lead, step)


def turned_bytes(own: int) -> int:
    """What a row takes in the buffer, of 8 bytes an element, if columns lie where rows are wanted; else 0."""
    last = load(own, 8 * Operand.DIMENSIONS) - 1
    if last == 0:
        return 0
    item = load(own, 8 * Operand.ITEM)
    length = load(own, 8 * (Operand.EXTENTS + last))
    turned = load(own, 8 * (Operand.STRIDES + last)) != item and length >= SQUARE
    return 8 * length if turned and load(own, 8 * (Operand.STRIDES + last - 1)) == item else 0


def period_of(own: int) -> int:
    """After how many elements those of an operand, whose dimensions are collapsed, come again; a huge number if never.

    Of the kernel's own arrays only results are written, so that what was brought into a buffer stays there.
    """
    last = load(own, 8 * Operand.DIMENSIONS) - 1
    if load(own, 8 * Operand.STRIDES) != 0:
        return 1 << 62
    if last == 0:
        return 1
    return load(own, 8 * (Operand.EXTENTS + 1)) if last == 1 else 1 << 62


def one_block(table: int, frame: int, context: int, words: int, start: int, count: int, step: int) -> int:
    """A block of `count` rows, of which those before it had `step`."""
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


def pair_of(own: int, output: int) -> int:
    """What `copy_run` calls the conversion between an operand and its buffer."""
    kind = load(own, 8 * Operand.KIND)
    wanted = load(own, 8 * Operand.WANTED)
    if output:
        return 4 * wanted + target_of(kind)
    return 4 * kind + target_of(wanted)


def target_of(kind: int) -> int:
    if kind == FLOAT32:
        return 0
    if kind == FLOAT64:
        return 1
    return 2 if kind == 7 else 3


def collapse(own: int) -> int:
    """Neighbouring dimensions that lie as one become one; those of extent 1 go."""
    kept = 0
    for d in range(load(own, 8 * Operand.DIMENSIONS)):
        extent = load(own, 8 * (Operand.EXTENTS + d))
        stride = load(own, 8 * (Operand.STRIDES + d))
        if extent != 1:
            if kept > 0:
                before = load(own, 8 * (Operand.STRIDES + kept - 1))
                if before == stride * extent:
                    extent = extent * load(own, 8 * (Operand.EXTENTS + kept - 1))
                    kept -= 1
            store(own, 8 * (Operand.EXTENTS + kept), extent)
            store(own, 8 * (Operand.STRIDES + kept), stride)
            kept += 1
    if kept == 0:
        store(own, 8 * Operand.EXTENTS, 1)
        store(own, 8 * Operand.STRIDES, 0)
        kept = 1
    store(own, 8 * Operand.DIMENSIONS, kept)
    return 0


def transfer(own: int, start: int, count: int, reading: int) -> int:
    """Elements `start` to `start + count` of an operand's loop between its memory and the start of its buffer.

    Whole rows and matrices that lie the other way round are moved by the loops in `jitkernels.native.moving`.
    """
    if count <= 0:
        return 0
    last = load(own, 8 * Operand.DIMENSIONS) - 1
    length = load(own, 8 * (Operand.EXTENTS + last))
    stride = load(own, 8 * (Operand.STRIDES + last))
    item = 4 if load(own, 8 * Operand.WANTED) == FLOAT32 else 8
    pair = load(own, 8 * Operand.PAIR)
    same = load(address("jk_forms"), 8 * pair) & SAME
    width = length * item
    plain = same and stride == item and width >= LEAST_ROW  # runs without gaps
    buffer = load(own, 8 * Operand.BASE)
    if last == 0 and stride != 0:
        at = load(own, 8 * Operand.DATA) + start * stride
        if reading:
            return copy_run(pair, buffer, item, at, stride, count)
        return copy_run(pair, at, stride, buffer, item, count)
    beside = last - 2
    while same and beside >= 0 and length >= SQUARE:
        if load(own, 8 * (Operand.STRIDES + beside)) == item and stride != item:
            if load(own, 8 * (Operand.EXTENTS + beside)) >= SQUARE and count == elements_of(own):
                return in_squares(own, beside, item, reading)
        beside -= 1
    index = stack(MOST_OPERAND_DIMENSIONS)
    outer = start // length
    within = start - outer * length
    at = load(own, 8 * Operand.DATA)
    d = last - 1
    while d >= 0:
        extent = load(own, 8 * (Operand.EXTENTS + d))
        here = outer % extent
        outer = outer // extent
        store(index, 8 * d, here)
        at += here * load(own, 8 * (Operand.STRIDES + d))
        d -= 1
    while count > 0:
        run = min(count, length - within)
        steps = 1
        across = 0
        turned = 0
        if within == 0 and last > 0:
            across = load(own, 8 * (Operand.STRIDES + last - 1))
            beside = min(
                load(own, 8 * (Operand.EXTENTS + last - 1)) - load(index, 8 * (last - 1)), count // length
            )
            turned = same and across == item and length >= SQUARE and beside >= SQUARE
            if plain or turned or beside > length:
                steps = beside
        if turned:
            if reading:
                transpose(item, buffer, width, at, stride, length, steps)
            else:
                transpose(item, at, stride, buffer, width, steps, length)
            run = steps * length
        elif steps > 1 and plain:
            if reading:
                rows(width, buffer, width, at, across, steps)
            else:
                rows(width, at, across, buffer, width, steps)
            run = steps * length
        elif steps > 1:
            # Many short runs beside one another: few long ones across them.
            for i in range(length):
                if reading:
                    copy_run(pair, buffer + i * item, length * item, at + i * stride, across, steps)
                else:
                    copy_run(pair, at + i * stride, across, buffer + i * item, length * item, steps)
            run = steps * length
        elif reading and stride == 0:
            copy_run(pair, buffer, item, at, 0, 1)
            fill(buffer, item, run)
        elif reading:
            copy_run(pair, buffer, item, at + within * stride, stride, run)
        else:
            copy_run(pair, at + within * stride, stride, buffer, item, run)
        buffer += run * item
        count -= run
        within = 0
        d = last - 1
        while d >= 0 and steps > 0:
            here = load(index, 8 * d) + steps
            at += steps * load(own, 8 * (Operand.STRIDES + d))
            steps = 0
            if here == load(own, 8 * (Operand.EXTENTS + d)):
                at -= here * load(own, 8 * (Operand.STRIDES + d))
                here = 0
                steps = 1
            store(index, 8 * d, here)
            d -= 1
    return 0


def elements_of(own: int) -> int:
    count = 1
    for d in range(load(own, 8 * Operand.DIMENSIONS)):
        count = count * load(own, 8 * (Operand.EXTENTS + d))
    return count


def in_squares(own: int, beside: int, item: int, reading: int) -> int:
    """All elements, where those along some dimension but the last two lie without gaps: matrices of it and the last."""
    last = load(own, 8 * Operand.DIMENSIONS) - 1
    index = stack(MOST_OPERAND_DIMENSIONS)
    steps = stack(MOST_OPERAND_DIMENSIONS)
    step = item
    d = last
    while d >= 0:
        store(index, 8 * d, 0)
        store(steps, 8 * d, step)
        step = step * load(own, 8 * (Operand.EXTENTS + d))
        d -= 1
    length = load(own, 8 * (Operand.EXTENTS + last))
    stride = load(own, 8 * (Operand.STRIDES + last))
    columns = load(own, 8 * (Operand.EXTENTS + beside))
    across = load(steps, 8 * beside)
    at = load(own, 8 * Operand.DATA)
    buffer = load(own, 8 * Operand.BASE)
    further = 1
    while further:
        if reading:
            transpose(item, buffer, across, at, stride, length, columns)
        else:
            transpose(item, at, stride, buffer, across, columns, length)
        further = 0
        d = last - 1
        while d >= 0 and further == 0:
            if d != beside:
                here = load(index, 8 * d) + 1
                at += load(own, 8 * (Operand.STRIDES + d))
                buffer += load(steps, 8 * d)
                further = 1
                if here == load(own, 8 * (Operand.EXTENTS + d)):
                    at -= here * load(own, 8 * (Operand.STRIDES + d))
                    buffer -= here * load(steps, 8 * d)
                    here = 0
                    further = 0
                store(index, 8 * d, here)
            d -= 1
    return 0


FUNCTIONS = (
    in_blocks,
    block_of,
    turned_bytes,
    period_of,
    one_block,
    pair_of,
    target_of,
    collapse,
    transfer,
    elements_of,
    in_squares,
)
