"""Tables that do not lie as the kernel wants them: the rows that the call names are brought together, and no others.

A call names few rows of a table that may be larger than any cache, so that a copy of the whole would cost more than
all else.
"""

# mypy: disable-error-code="name-defined,no-any-return,assignment"
from jitkernels.native.layout import Frame, Known, Operand, Record, Table
from jitkernels.native.words import load, store


def pick_rows(table: int, frame: int, context: int) -> int:
    """Let the kernel see the named rows as its table, and their places as their numbers; 0 if there is no such row."""
    picked = load(table, 8 * Table.PICKED)
    if picked < 0:
        return 1
    rows = operand(frame, picked)
    numbers = operand(frame, load(table, 8 * Table.PICKER))
    extent = frame + 8 * (Frame.EXTENTS + load(record(table, picked), 8 * (Record.SHAPE + 1)))
    count = load(numbers, 8 * Operand.INNER)
    if load(record(table, load(table, 8 * Table.PICKER)), 8 * Record.LEADS):
        count = count * load(frame, 8 * (Frame.EXTENTS + load(table, 8 * Table.SPREAD)))
    if load(rows, 8 * Operand.DIRECT) or load(context, 8 * Known.EXACT) or count >= load(extent):
        return 1
    width = load(rows, 8 * Operand.INNER) // load(extent)
    row_bytes = width * (4 if load(rows, 8 * Operand.WANTED) == FLOAT32 else 8)
    numbers_bytes = (count * 8 + 127) // 64 * 64
    memory = malloc(numbers_bytes + count * row_bytes + 64)
    if memory == 0:
        return 0
    store(frame, 8 * Frame.PICKED, memory)
    place = (memory + 63) // 64 * 64
    buffered(numbers, place, 0)
    transfer(numbers, 0, count, 1)
    copies = place + numbers_bytes
    buffered(rows, copies, 0)
    for i in range(count):
        number = load(place, 8 * i)
        if number < 0 or number >= load(extent):
            return 0
        store(rows, 8 * Operand.BASE, copies + i * row_bytes)
        transfer(rows, number * width, width, 1)
        store(place, 8 * i, i)
    replaced(numbers, place)
    replaced(rows, copies)
    store(extent, 0, count)
    return 1


def buffered(own: int, place: int, output: int) -> int:
    """An operand whose elements `transfer` brings to a place, or from there if it is an output."""
    store(own, 8 * Operand.PAIR, pair_of(own, output))
    store(own, 8 * Operand.BASE, place)
    collapse(own)
    return 0


def replaced(own: int, place: int) -> int:
    """An operand that the kernel takes from another place, where it lies in order."""
    store(own, 8 * Operand.DATA, place)
    store(own, 8 * Operand.DIRECT, 1)
    return 0


FUNCTIONS = (
    pick_rows,
    buffered,
    replaced,
)
