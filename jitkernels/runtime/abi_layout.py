"""Memory layouts: the launcher's contexts and tables, and objects of CPython and NumPy, as offsets.

Defined once, for the Python code that writes contexts and for the LLVM IR that reads them. They are no enums: those
take three milliseconds to create, in every process.
"""

ALIGNED, CONTIGUOUS, WRITEABLE = 0x100, 0x1, 0x400
"""NumPy's bits in an array's flags."""
IN_FORTRAN_ORDER = 0x2
NOT_SWAPPED, NO_SUBCLASS, FORCED, COPY = 0x200, 0x40, 0x10, 0x20
"""Flags of requests to NumPy for an array."""
NATIVE, NO_ORDER = ord("="), ord("|")
"""NumPy's characters for the machine's own byte order, and for one byte."""
MAX_DIMENSIONS = 8
MAX_WORDS = 80
"""The most arrays and words that a C function takes."""
MAX_OPERANDS = 16
MAX_SYMBOLS = 8
MAX_FLOATS = 8
MAX_SHAPE = 4
MAX_EXTENT_TERMS = 4
"""The most terms of a derived extent."""
MAX_CALL_WORDS = MAX_OPERANDS + MAX_SYMBOLS + MAX_FLOATS
MAX_SLOTS = 32
"""The most parameters of an operator."""
MAX_OPERAND_DIMENSIONS = 18
"""The most dimensions of arrays that the dispatcher takes, plus two."""
MOST_VALUES = 8
"""The most values of an option."""
BUFFER_BYTES = 4096
"""Bytes of one operand's block in its buffer: a few of them fit in L1."""
MAX_ALIKE = 4
"""A broadcast operand of at most so many blocks is copied into the buffer once."""
ROWS_TOGETHER, ROWS_BYTES = 32, 65536
"""The least long rows of a block, and the most bytes that they take in an operand's buffer."""
SQUARES_BYTES = 1 << 18
"""The most buffer bytes of multi-dimensional rows with adjacent first elements, which are transposed."""
TURNED_BYTES = 32768
"""Buffer bytes of full tiles of a transposed matrix with short rows."""
TILE_LINES, TILE_LENGTH = 16, 64
"""The tile of a strided transpose: rows of the result, and elements of each."""
MIXED_BLOCK = 512
"""Elements of a cast block of dense arrays: two blocks take a quarter of L1."""
RUN = 128
"""Elements of a cast block of strided arrays."""
STRAIGHT, MIN_STRAIGHT, MAX_STRAIGHT = 2048, 64, 4096
"""Elements of a block of dense float32 arrays, and the least and most elements of rows that kernels take in place."""
MIN_ROWS = 512
"""The least bytes of rows for which a kernel call per row costs less than gathering the rows."""
STACK_BUFFER_BYTES = 32768
"""Buffers up to this size lie on the stack."""
KEY_BASE = 1 << 10
"""Makes keys differ from 0 and from shorter ones: options and dtypes take the bits below."""
DTYPES = 6
"""The number of storage dtypes of kernels: float32, float64, bfloat16, int32, int64, uint64."""
KEEPS_BFLOAT16, KEEPS_INTEGERS = 1, 2
"""Bits of what a kernel stores beside float32 and float64."""
EXACT_BITS = 12
"""Bits of an extent in the key of an exact context."""
NO_ELEMENTS = 63
"""The key's code of extent 0, whose calls take the fast path after Python has computed one of them."""
CONVERTING = 1 << 61
ADDRESS_BITS, KIND_BITS = 48, 6
"""The key of a kernel for inputs of other dtypes: these bits, NumPy's type numbers, the kernel's address."""
NUMBER, EVERY, MAX_APART = 24, 25, 7
"""The codes there of a scalar beside arrays, and of strided arrays of the kernel's dtype: stride 2 (then 3, up to the
last)."""
BACKWARDS, APART = EVERY + MAX_APART - 1, EVERY + MAX_APART
"""The same for stride -1, and for strides without a kernel."""


class Context:
    """Words of a kernel's context.

    The C function (or 0), the number of arrays, whether to release the GIL, the fallback callable, the Python
    callable that replaces a C function (or None), the compiled checks, and the countdown of calls until Python sees
    one. A descriptor per array follows, then the words that the C function takes after the arrays.
    """

    ENTRY, COUNT, LONG, SLOW, PYTHON, CALL, COUNTDOWN, DESCRIPTORS = range(8)


class ArrayDescriptor:
    """Words of an array's descriptor in a kernel's context; its extents come last."""

    DTYPE, DIMENSIONS, BYTES, EXTENTS = range(4)


DESCRIPTOR_WORDS = ArrayDescriptor.EXTENTS + MAX_DIMENSIONS


class ContextWords:
    """Words of an operator's context of one size class, or of exact extents.

    The C function, whether to release the GIL, the countdown of calls until Python sees one, and whether the function
    serves these extents only, so that it cannot be called per block. A kernel for inputs of other dtypes has such
    words as well; before it is built, its C function is 0.
    """

    ENTRY, LONG, COUNTDOWN, EXACT = range(4)


class OperatorTable:
    """Words of an operator's table.

    The Python fallback; the numbers of inputs, options, outputs, parameters (``out`` included), symbols and floats; the
    symbol of its batch dimensions or -1; its `Plain` kind; whether exact contexts are possible; the hash table of
    contexts (pairs of key and address) and its mask; the offset of the options; a bit for each symbol that no output
    has, and for each that is no size; the name ``out``; whether the kernel must see all batch dimensions at once; the
    input of which another one selects the rows, or -1, and that other one; whether there are integers to which nothing
    is cast; the symbol of its inner dimensions or -1; whether only its first input has other dimensions than the
    kernel's, so that it may be transposed; whether results lack the last extent of a plain call's rows; what is stored
    beside floats (`KEEPS_BFLOAT16`); whether the result is a rearrangement of the input that the symbols determine; the
    key of the kernel that a call passed to Python lacked (the address is 0 if the kernel was unknown); the last key
    that was not found; the offset and the number of the `DerivedSpec`s; a bit for each symbol whose size class is that
    of one less; then the parameters' names and the specifications of the operands.
    """

    (
        SLOW, INPUTS, OPTIONS, OUTPUTS, PARAMETERS, SYMBOLS, FLOATS, SPREAD, PLAIN, EXACT, KEYS, MASK, CHOICES,
        HIDDEN, UNSIZED, OUT, AT_ONCE, PICKED, PICKER, NARROW, TRAILING, MIRRORS, REDUCES, KEEPS, MOVES, WANTED,
        MISSED, DERIVED, FORMS, ONE_MORE, NAMES,
    ) = range(31)  # fmt: skip
    OPERAND_SPECS = NAMES + MAX_SLOTS


class Plain:
    """The kind of an operator's fast path.

    ELEMENTWISE: one or two congruent arrays and a congruent result, no options. OF_ROWS: an array of rows and a
    congruent result, or one number per row, with further vectors of a row's length. ANY_ORDER: no fast path, but
    elements may be processed in any order, as for congruent arrays with scalars and options.
    """

    NONE, ELEMENTWISE, OF_ROWS, ANY_ORDER = range(4)


class Outcome:
    """Codes returned in place of a result's address.

    PYTHON: fall back to Python. ERROR: a Python exception is set. GENERAL: not a fast-path call. UNSORTED: not
    examined.
    """

    PYTHON, ERROR, GENERAL, UNSORTED = range(4)


class DispatcherPart:
    """The dispatcher's functions that are separate objects, built on first use.

    GENERAL: any call whose operands the kernel takes in place. IN_BLOCKS: calls with buffered operands. MIXED: dense
    arrays of several dtypes. OF_SEQUENCE: an array from a list. COPIED: a copy of an operand's elements.
    """

    GENERAL, IN_BLOCKS, MIXED, OF_SEQUENCE, COPIED = range(5)


class OperandSpec:
    """Words of an input or output in a table.

    WHEN: what its presence adds to the options key. LEADER: the first input of its optional group, or -1; an output
    exists if that input does, or else if WHEN, the factor of an option of two values, is in the key. INTEGER: 0 for
    floats, else one plus NumPy's number of its integer type. VARIES: 0, or the factor of the option that selects the
    next dtype; TELLS: the same if an input selects it. UNLESS: one plus the input with which it holds floats after
    all, or 0. LEADS: has batch dimensions; TRAILS: has inner ones. FIXED: the number of others; the last may be
    missing if OPTIONAL, which is 2 if results do not depend on it. TURN: what a transposed operand adds to the
    options key. ALONG: one plus the input whose batch dimensions are flattened with its first one, or 0. SHAPE:
    factor, symbol and second symbol (-1 if there is none) of each extent. MORE: the addend of each extent.
    """

    (
        WHEN, LEADER, INTEGER, VARIES, TELLS, UNLESS, LEADS, TRAILS, FIXED, OPTIONAL, TURN, IN_PLACE, ALONG,
        SHAPE,
    ) = range(14)  # fmt: skip
    MORE = SHAPE + 3 * MAX_SHAPE
    WORDS = MORE + MAX_SHAPE


class OptionSpec:
    """Words of an option in a table, and its kinds.

    OF_VALUES: the factor in the key, the number of objects and these, the default first, and how many of them are
    DIFFERENT, as NumPy's bools equal Python's. A_FLOAT: in COUNT the minimum, the default's nearest bits in float32
    and float64, and the MOST: both limits are integers that compare as the floats do. AN_INT: in FACTOR its symbol,
    in COUNT whether there is a default, then the default, the minimum and the maximum. A_DTYPE: in COUNT the number
    of objects that name a dtype, and these, those of float32 first. A_SHAPE has nothing.
    """

    KIND, FACTOR, COUNT, VALUES = range(4)
    DEFAULTS = VALUES
    LEAST, MOST = VALUES + 1, VALUES + 2
    DIFFERENT = VALUES + MOST_VALUES
    WORDS = DIFFERENT + 1
    OF_VALUES, AXIS, A_FLOAT, AN_INT, A_SHAPE, A_DTYPE = range(100, 106)


class DerivedSpec:
    """Words of a derived extent in a table: ``(CONSTANT + sum of terms) // DIVISOR + MORE``, and LEAST or more.

    TARGET: its symbol, or -1 for a condition: the expression is not negative. COUNT: the number of TERMS. The words of
    a term are its coefficient, its symbol, and 0; or the factor of a bool in the options key, whose digit it is then.
    """

    TARGET, CONSTANT, DIVISOR, MORE, LEAST, COUNT, TERMS = range(7)
    TERM_WORDS = 3
    WORDS = TERMS + TERM_WORDS * MAX_EXTENT_TERMS


class Operand:
    """Words of an operand during a call; extents and strides are those of its loop nest once it is laid out.

    BESIDE: for a new array, the caller's ``out`` to which NumPy copies it, or 0. ALIGNED: whether its elements are
    aligned for a kernel.
    """

    (
        PRESENT, ARRAY, OWNED, DATA, KIND, ITEM, WANTED, DIMENSIONS, CONTIGUOUS, INNER, DIRECT, TURNED, COPY, PAIR,
        BASE, LOW, HIGH, BESIDE, ALIGNED, EXTENTS,
    ) = range(20)  # fmt: skip
    STRIDES = EXTENTS + MAX_OPERAND_DIMENSIONS
    WORDS = STRIDES + MAX_OPERAND_DIMENSIONS


class Frame:
    """Words of a call, common to all operands. WIDE: the index of the dtype in `DTYPES`. BEHIND.

    The number of inner dimensions.
    """

    WIDE, OPTIONS, AXIS, MOVED, MISSING, EMPTY, MEMORY, PICKED, FORTRAN, BEHIND, LEADING, LEAD = range(12)
    TRAIL = LEAD + MAX_OPERAND_DIMENSIONS
    EXTENTS = TRAIL + MAX_OPERAND_DIMENSIONS
    FLOATS = EXTENTS + MAX_SYMBOLS
    WORDS = FLOATS + MAX_FLOATS


class Offset:
    """Byte offsets in objects, verified at start against CPython and NumPy."""

    REFERENCES = 0
    TYPE = 8
    ARRAY_DATA = 16
    ARRAY_DIMENSIONS = 24
    ARRAY_EXTENTS = 32
    ARRAY_STRIDES = 40
    ARRAY_DTYPE = 56
    ARRAY_FLAGS = 64
    RECORD_DATA = 24
    RECORD_DTYPE = 32
    RECORD_FLAGS = 40
    DTYPE_ORDER = 26
    DTYPE_NUMBER = 28
    DTYPE_BYTES = 40
    TUPLE_SIZE = 16
    TUPLE_ITEMS = 24
    LIST_ITEMS = 24
    FLOAT_VALUE = 16
    CELL_VALUE = 16
    DICT_VERSION = 24


DTYPE_WORD = 24
"""Byte offset of the word in a dtype object that holds its byte order and type number."""
DTYPE_MASK = 0xFF << 8 * (Offset.DTYPE_ORDER - DTYPE_WORD) | 0xFFFFFFFF << 8 * (Offset.DTYPE_NUMBER - DTYPE_WORD)
"""Those bits of the word: the same in all objects of a dtype."""


def constants() -> dict[str, int]:
    """All constants above by the names in translated code, such as ``Context.COUNT``."""
    kinds = (
        Context,
        ArrayDescriptor,
        ContextWords,
        OperatorTable,
        Plain,
        Outcome,
        DispatcherPart,
        OperandSpec,
        OptionSpec,
        DerivedSpec,
        Operand,
        Frame,
        Offset,
    )
    named = {f"{kind.__name__}.{name}": item for kind in kinds for name, item in vars(kind).items() if name.isupper()}
    plain = {name: value for name, value in globals().items() if name.isupper() and isinstance(value, int)}
    return {**named, **plain}
