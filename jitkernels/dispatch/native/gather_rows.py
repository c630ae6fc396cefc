"""Gather the rows that a call selects from a table in a layout that the kernel does not accept.

A call selects few rows of a table that may be larger than any cache, so that copying the whole table would dominate
the call.
"""

# mypy: disable-error-code="name-defined,no-any-return,assignment,index"
from jitkernels.runtime.abi_layout import ContextWords, Frame, Operand, OperandSpec, OperatorTable


def gather_rows(table: int, frame: int, context: int) -> int:
    """Pass gathered rows as the kernel's table, and their positions as its indices; 0 for an index out of bounds."""
    if table[OperatorTable.PICKED] < 0:
        return 1
    rows = operand_at(frame, table[OperatorTable.PICKED])
    indices = operand_at(frame, table[OperatorTable.PICKER])
    extent = frame + 8 * (Frame.EXTENTS + argument_at(table, table[OperatorTable.PICKED])[OperandSpec.SHAPE + 1])
    count = indices[Operand.INNER]
    if argument_at(table, table[OperatorTable.PICKER])[OperandSpec.LEADS]:
        count = count * frame[Frame.EXTENTS + table[OperatorTable.SPREAD]]
    if rows[Operand.DIRECT] or context[ContextWords.EXACT] or count >= extent[0]:
        return 1
    width = rows[Operand.INNER] // extent[0]
    row_bytes = width * item_of(rows)
    index_bytes = (count * 8 + 127) // 64 * 64
    memory = malloc(index_bytes + count * row_bytes + 64)
    if memory == 0:
        return 0
    frame[Frame.PICKED] = memory
    index = (memory + 63) // 64 * 64
    copies = index + index_bytes
    set_buffer(indices, index)
    set_buffer(rows, copies)
    transfer(indices, 0, count, 1)
    for i in range(count):
        if index[i] < 0 or index[i] >= extent[0]:
            return 0
        rows[Operand.BASE] = copies + i * row_bytes
        transfer(rows, index[i] * width, width, 1)
        index[i] = i
    read_from(indices, index)
    read_from(rows, copies)
    extent[0] = count
    return 1


def set_buffer(operand: int, buffer: int) -> int:
    """Set up an input for `transfer` to a buffer."""
    operand[Operand.PAIR] = cast_pair(operand, 0)
    operand[Operand.BASE] = buffer
    return collapse(operand)


def read_from(operand: int, buffer: int) -> int:
    """Let the kernel read an operand from a buffer, where it is contiguous."""
    operand[Operand.DATA] = buffer
    operand[Operand.DIRECT] = 1
    return 0
