"""Gather the rows that a call selects from a table in a layout that the kernel does not accept.

A call selects few rows of a table that may be larger than any cache, so that copying the whole table would dominate
the call.
"""

# mypy: disable-error-code="name-defined,no-any-return,assignment"
from jitkernels.codegen.i64_intrinsics import load, store
from jitkernels.runtime.abi_layout import Frame, Known, Operand, Record, Table


def pick_rows(table: int, frame: int, context: int) -> int:
    """Pass gathered rows as the kernel's table, and their positions as its indices; 0 for an index out of bounds."""
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
    """Set up an operand for `transfer` to `place`, or from there if it is an output."""
    store(own, 8 * Operand.PAIR, pair_of(own, output))
    store(own, 8 * Operand.BASE, place)
    collapse(own)
    return 0


def replaced(own: int, place: int) -> int:
    """Let the kernel read an operand from `place`, where it is contiguous."""
    store(own, 8 * Operand.DATA, place)
    store(own, 8 * Operand.DIRECT, 1)
    return 0


FUNCTIONS = (pick_rows, buffered, replaced)
