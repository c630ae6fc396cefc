"""Where the launcher finds things: in its own contexts and tables, and in objects of Python and NumPy.

The numbers stand here once, for the code that writes contexts and for the LLVM IR that reads them.
"""

from enum import IntEnum

ALIGNED, CONTIGUOUS, WRITEABLE = 0x100, 0x1, 0x400
"""NumPy's bits in an array's flags."""
MOST_DIMENSIONS = 4
MOST_WORDS = 16
"""Arrays and words that a C function may take."""
TABLE_SIZE = 64


class Context(IntEnum):
    """Words of a context.

    The C function (or 0), the number of arrays, whether to release the interpreter lock, what to call for
    all that does not pass, what to call instead of a C function (or None), and the compiled checks. A record
    per array follows, then the words that the C function takes after the arrays.
    """

    ENTRY, COUNT, LONG, SLOW, PYTHON, CALL, RECORDS = range(7)


class Record(IntEnum):
    """Words of an array's record in a context; its extents are the last of them."""

    DTYPE, DIMENSIONS, BYTES, EXTENTS = range(4)


RECORD_WORDS = Record.EXTENTS + MOST_DIMENSIONS


class Table(IntEnum):
    """Words of an everyday function's table.

    The Python function behind it, how many arrays it takes at most, whether ``out`` may follow them, the
    string "out"; then `TABLE_SIZE` addresses of contexts.
    """

    SLOW, INPUTS, OUT_FOLLOWS, OUT_NAME, CONTEXTS = range(5)


class Offset(IntEnum):
    """Bytes from the start of an object, verified at start against NumPy's own answers."""

    TYPE = 8
    ARRAY_DATA = 16
    ARRAY_DIMENSIONS = 24
    ARRAY_EXTENTS = 32
    ARRAY_DTYPE = 56
    ARRAY_FLAGS = 64
    TUPLE_SIZE = 16
    TUPLE_ITEMS = 24


def constants() -> dict[str, int]:
    """All of the above by the names that the IR uses, such as ``CONTEXT_COUNT``."""
    kinds = (Context, Record, Table, Offset)
    named = {
        f"{kind.__name__.upper()}_{name}": int(item)
        for kind in kinds
        for name, item in kind.__members__.items()
    }
    return {**named, "RECORD_WORDS": RECORD_WORDS, "MOST_WORDS": MOST_WORDS, "TABLE_MASK": TABLE_SIZE - 1}
