"""Where the launcher finds things: in its own contexts and tables, and in objects of Python and NumPy.

The numbers stand here once, for the code that writes contexts and for the LLVM IR that reads them. They are no enums:
those take three milliseconds to make, in every process.
"""

ALIGNED, CONTIGUOUS, WRITEABLE = 0x100, 0x1, 0x400
"""NumPy's bits in an array's flags."""
IN_FORTRAN_ORDER = 0x2
NOT_SWAPPED, NO_SUBCLASS, FORCED, COPY = 0x200, 0x40, 0x10, 0x20
"""What is asked for where NumPy is to make an array."""
NATIVE, NO_ORDER = ord("="), ord("|")
"""NumPy's characters for the machine's own byte order, and for one byte."""
MOST_DIMENSIONS = 8
MOST_WORDS = 80
"""Arrays and words that a C function may take behind a kernel's launcher."""
MOST_OPERANDS = 16
MOST_SYMBOLS = 8
MOST_FLOATS = 8
MOST_SHAPE = 4
MOST_CALL_WORDS = MOST_OPERANDS + MOST_SYMBOLS + MOST_FLOATS
MOST_SLOTS = 32
"""Parameters of an everyday function."""
MOST_OPERAND_DIMENSIONS = 18
"""Dimensions of arrays that the dispatcher takes, and two more."""
MOST_VALUES = 8
"""Values of a choice."""
BUFFER_BYTES = 4096
"""What the block of one operand takes in its buffer: a few of them stay in the first-level cache."""
MOST_ALIKE = 4
"""Times as many elements that all blocks have in common: they are brought into the buffer once."""
ROWS_TOGETHER, ROWS_BYTES = 32, 65536
"""Long rows that a block has at least, and what they take in the buffer of one operand at most."""
SQUARES_BYTES = 1 << 18
"""What rows of several dimensions, whose first elements lie side by side, take in a buffer at most to be turned."""
TURNED_BYTES = 32768
"""What whole squares of a matrix that lies the other way round take in a buffer, if rows are short."""
TILE_LINES, TILE_LENGTH = 16, 64
"""What is turned on its way between two memories with gaps: so many lines of a result, and elements of each."""
MIXED_BLOCK = 512
"""Elements of whole arrays that are converted at a time: two blocks take a quarter of the first-level cache."""
RUN = 128
"""Elements that are converted at a time where they do not lie without gaps."""
STRAIGHT, LEAST_STRAIGHT, MOST_STRAIGHT = 2048, 64, 4096
"""Elements of a float32 that whole arrays are combined with, and those of rows that kernels take where they lie."""
LEAST_ROWS = 512
"""Bytes of rows from which on a call of a kernel of rows costs less than bringing them together."""
STACK_BUFFER_BYTES = 32768
"""Buffers up to this size lie on the stack."""
KEY_BASE = 1 << 10
"""What makes keys differ from 0, and from shorter ones: options and dtypes take the bits below."""
DTYPES = 3
"""What kernels may store arrays in: float32, float64, bfloat16."""
EXACT_BITS = 12
"""Bits of an extent in the key of exactly these extents."""
NO_ELEMENTS = 63
"""What stands in a key for an extent of 0, whose calls are served once Python has had one of them computed."""
CONVERTING = 1 << 61
ADDRESS_BITS, KIND_BITS = 48, 6
"""The key of a kernel's nest for inputs of other dtypes: these bits, NumPy's numbers of them, the kernel's address."""
NUMBER, EVERY, MOST_APART = 24, 25, 7
"""What stands there for a number beside arrays, and for arrays of the kernel's dtype of which it reads one element in
two (the next number: in three, up to so many)."""
BACKWARDS, APART = EVERY + MOST_APART - 1, EVERY + MOST_APART
"""The same of such arrays whose last element lies first in memory, and of those for which there is no nest."""


class Context:
    """Words of a kernel's context.

    The C function (or 0), the number of arrays, whether to release the interpreter lock, what to call for
    all that does not pass, what to call instead of a C function (or None), the compiled checks, and how many
    calls Python wants to pass before it sees one. A record per array follows, then the words that the C
    function takes after the arrays.
    """

    ENTRY, COUNT, LONG, SLOW, PYTHON, CALL, COUNTDOWN, RECORDS = range(8)


class ArrayRecord:
    """Words of an array's record in a kernel's context; its extents are the last of them."""

    DTYPE, DIMENSIONS, BYTES, EXTENTS = range(4)


RECORD_WORDS = ArrayRecord.EXTENTS + MOST_DIMENSIONS


class Known:
    """Words of an everyday function's context of one size class, or of exactly some extents.

    The C function, whether to release the interpreter lock, how many calls Python wants to pass before it sees
    one, and whether the function is right for these extents only, so that it cannot be called block by block.
    A nest for inputs of other dtypes has such words as well; while there is none, its C function is 0.
    """

    ENTRY, LONG, COUNTDOWN, EXACT = range(4)


class Table:
    """Words of an everyday function's table.

    The Python function behind it; how many inputs, options, outputs, parameters (``out`` included), symbols
    and floats it has; the symbol of its leading dimensions or -1; which `Plain` function it is; whether there
    may be contexts of exact extents; the hash table of contexts (pairs of key and address) and its mask; where
    the options are described; a bit for each symbol that no output has, and for each that is no size; the name
    ``out``; whether the kernel has to see all leading dimensions of a call at once; the input of which
    another names the rows, or -1, and that other; whether there are integers that nothing else is converted to; the
    symbol of its trailing dimensions or -1; whether its first input is the only one with other dimensions than a
    kernel's, so that it may lie the other way round; whether results are without the last extent of the plain rows
    that go in; whether arrays may be of bfloat16; whether the result's elements are those of the input, at
    places that the symbols tell; the key of the nest that a call given to Python was without (the
    address is 0 where no kernel was known); the key that was last looked for in vain; then the parameters' names
    and the records.
    """

    (
        SLOW, INPUTS, OPTIONS, OUTPUTS, PARAMETERS, SYMBOLS, FLOATS, SPREAD, PLAIN, EXACT, KEYS, MASK, CHOICES,
        HIDDEN, UNSIZED, OUT, AT_ONCE, PICKED, PICKER, NARROW, TRAILING, MIRRORS, REDUCES, NARROWS, MOVES, WANTED,
        MISSED, NAMES,
    ) = range(28)  # fmt: skip
    RECORDS = NAMES + MOST_SLOTS


class Plain:
    """What an everyday function is, as far as its plain calls go.

    ELEMENTWISE: one or two arrays alike and a result alike, no options. OF_ROWS: an array of rows and a result alike,
    or of a number for each row, beside which there are vectors of a row's length. ANY_ORDER: no plain calls, but
    elements may be taken in any order, as of arrays alike beside numbers and options.
    """

    NONE, ELEMENTWISE, OF_ROWS, ANY_ORDER = range(4)


class Outcome:
    """What a call gives in place of the address of its result.

    PYTHON must serve it, ERROR: Python has an exception set, GENERAL: it is not plain, UNSORTED: nobody looked yet.
    """

    PYTHON, ERROR, GENERAL, UNSORTED = range(4)


class Part:
    """The functions of the dispatcher that are objects of their own, built when a call first needs them.

    GENERAL: any call, if the kernel takes all operands as they lie. IN_BLOCKS: calling it if some pass through buffers.
    MIXED: whole arrays of several dtypes. OF_SEQUENCE: an array for a list. COPIED: one of what an operand reads.
    """

    GENERAL, IN_BLOCKS, MIXED, OF_SEQUENCE, COPIED = range(5)


class Record:
    """Words of an input or output in a table.

    WHEN: what its presence adds to the options, LEADER: the first input of its optional group, or -1; an output is
    there where that input is, or else where WHEN, the factor of a choice of two in the options, is in these. INTEGER:
    0 for floats, else one more than NumPy's number of its integers. VARIES: 0, or the factor of the choice in the
    options that says whether it is the next dtype instead; TELLS: the same where an input tells it. UNLESS: one more
    than the input with which it holds floats all the same, or 0. LEADS: has leading dimensions, TRAILS: trailing
    ones. FIXED: how many others; the last may be missing if OPTIONAL, which is 2 where results do not depend on that.
    TURN: what lying transposed adds to the options. ALONG: one more than the input whose leading dimensions are one
    with its first, or 0. SHAPE: factor, symbol and second symbol (or -1 where there is none) of each extent. MORE:
    the number that each is more than their product.
    """

    (
        WHEN, LEADER, INTEGER, VARIES, TELLS, UNLESS, LEADS, TRAILS, FIXED, OPTIONAL, TURN, IN_PLACE, ALONG,
        SHAPE,
    ) = range(14)  # fmt: skip
    MORE = SHAPE + 3 * MOST_SHAPE
    WORDS = MORE + MOST_SHAPE


class Choice:
    """Words of an option in a table, and its kinds.

    For OF_VALUES the factor in the key, how many objects it may be and these, the default first, and how many of them
    are DIFFERENT, as those of NumPy's bool behind those of Python's are not; for A_FLOAT in
    COUNT whether it must not be negative, the default's bits as nearest in float32 and in float64, and the bits of the
    MOST that it may be, which is positive; for AN_INT in FACTOR its symbol, in COUNT whether there is a default, then
    that, the least and the most; for A_DTYPE in COUNT how many objects stand for a dtype, and these, those of float32
    first. A_SHAPE has nothing.
    """

    KIND, FACTOR, COUNT, VALUES = range(4)
    DEFAULTS = VALUES
    LEAST, MOST = VALUES + 1, VALUES + 2
    DIFFERENT = VALUES + MOST_VALUES
    WORDS = DIFFERENT + 1
    OF_VALUES, AXIS, A_FLOAT, AN_INT, A_SHAPE, A_DTYPE = range(100, 106)


class Operand:
    """Words of an operand while a call is served; extents and strides are those of its loop once laid out.

    BESIDE: of a new array, the one that the caller gave for the result, to which NumPy copies it, or 0.
    ALIGNED: whether its elements lie where a kernel may read them.
    """

    (
        PRESENT, ARRAY, OWNED, DATA, KIND, ITEM, WANTED, DIMENSIONS, CONTIGUOUS, INNER, DIRECT, TURNED, COPY, PAIR,
        BASE, LOW, HIGH, BESIDE, ALIGNED, EXTENTS,
    ) = range(20)  # fmt: skip
    STRIDES = EXTENTS + MOST_OPERAND_DIMENSIONS
    WORDS = STRIDES + MOST_OPERAND_DIMENSIONS


class Frame:
    """Words of a call while it is served: what holds for all operands.

    WIDE: the place of the dtype among the `DTYPES`. BEHIND: how many trailing dimensions.
    """

    WIDE, OPTIONS, AXIS, MOVED, MISSING, EMPTY, MEMORY, PICKED, FORTRAN, BEHIND, LEADING, LEAD = range(12)
    TRAIL = LEAD + MOST_OPERAND_DIMENSIONS
    EXTENTS = TRAIL + MOST_OPERAND_DIMENSIONS
    FLOATS = EXTENTS + MOST_SYMBOLS
    WORDS = FLOATS + MOST_FLOATS


class Offset:
    """Bytes from the start of an object, verified at start against the answers of Python and NumPy."""

    REFERENCES = 0
    TYPE = 8
    ARRAY_DATA = 16
    ARRAY_DIMENSIONS = 24
    ARRAY_EXTENTS = 32
    ARRAY_STRIDES = 40
    ARRAY_DTYPE = 56
    ARRAY_FLAGS = 64
    DTYPE_ORDER = 26
    DTYPE_NUMBER = 28
    DTYPE_BYTES = 40
    TUPLE_SIZE = 16
    TUPLE_ITEMS = 24
    LIST_ITEMS = 24
    FLOAT_VALUE = 16
    CELL_VALUE = 16
    DICT_VERSION = 24


def constants() -> dict[str, int]:
    """All of the above by the names that translated code uses, such as ``Context.COUNT``."""
    kinds = (Context, ArrayRecord, Known, Table, Plain, Outcome, Part, Record, Choice, Operand, Frame, Offset)
    named = {
        f"{kind.__name__}.{name}": item
        for kind in kinds
        for name, item in vars(kind).items()
        if name.isupper()
    }
    plain = {name: value for name, value in globals().items() if name.isupper() and isinstance(value, int)}
    return {**named, **plain}
