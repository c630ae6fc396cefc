"""Gather the rows that a call selects from a table in a layout that the kernel does not accept.

A call selects few rows of a table that may be larger than any cache, so that copying the whole table would dominate
the call.
"""

# mypy: disable-error-code="name-defined,no-any-return,assignment,index"
from jitkernels.runtime.abi_layout import Frame, Known, Operand, Record, Table


def pick_rows(table: int, frame: int, context: int) -> int:
    """Pass gathered rows as the kernel's table, and their positions as its indices; 0 for an index out of bounds."""
    picked = table[Table.PICKED]
    if picked < 0:
        return 1
    rows = operand(frame, picked)
    numbers = operand(frame, table[Table.PICKER])
    extent = frame + 8 * (Frame.EXTENTS + record(table, picked)[Record.SHAPE + 1])
    count = numbers[Operand.INNER]
    if record(table, table[Table.PICKER])[Record.LEADS]:
        count = count * frame[Frame.EXTENTS + table[Table.SPREAD]]
    if rows[Operand.DIRECT] or context[Known.EXACT] or count >= extent[0]:
        return 1
    width = rows[Operand.INNER] // extent[0]
    row_bytes = width * (4 if rows[Operand.WANTED] == FLOAT32 else 8)
    numbers_bytes = (count * 8 + 127) // 64 * 64
    memory = malloc(numbers_bytes + count * row_bytes + 64)
    if memory == 0:
        return 0
    frame[Frame.PICKED] = memory
    place = (memory + 63) // 64 * 64
    buffered(numbers, place, 0)
    transfer(numbers, 0, count, 1)
    copies = place + numbers_bytes
    buffered(rows, copies, 0)
    for i in range(count):
        number = place[i]
        if number < 0 or number >= extent[0]:
            return 0
        rows[Operand.BASE] = copies + i * row_bytes
        transfer(rows, number * width, width, 1)
        place[i] = i
    replaced(numbers, place)
    replaced(rows, copies)
    extent[0] = count
    return 1


def buffered(own: int, place: int, output: int) -> int:
    """Set up an operand for `transfer` to `place`, or from there if it is an output."""
    own[Operand.PAIR] = pair_of(own, output)
    own[Operand.BASE] = place
    collapse(own)
    return 0


def replaced(own: int, place: int) -> int:
    """Let the kernel read an operand from `place`, where it is contiguous."""
    own[Operand.DATA] = place
    own[Operand.DIRECT] = 1
    return 0


FUNCTIONS = (pick_rows, buffered, replaced)
