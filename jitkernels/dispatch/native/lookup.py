"""Look up the kernel of a call: the context of its options, dtype and extents."""

# mypy: disable-error-code="name-defined,no-any-return,assignment,index"
from jitkernels.codegen.i64_intrinsics import leading_zeros
from jitkernels.runtime.abi_layout import ContextWords, Frame, OperatorTable


def find_context(table: int, frame: int) -> int:
    """The context of these options, dtype and extents: of exactly these if there is one, else of their size class."""
    top = frame[Frame.OPTIONS] * DTYPES + frame[Frame.WIDE] + KEY_BASE
    empty = 0
    exact = top
    classes = top
    largest = 0
    for s in range(table[OperatorTable.SYMBOLS]):
        extent = frame[Frame.EXTENTS + s]
        if table[OperatorTable.UNSIZED] >> s & 1 == 0:
            exact = exact << EXACT_BITS | extent
            if extent == 0:
                empty = empty | 1 << s
                classes = classes << 6 | NO_ELEMENTS
            else:
                classes = classes << 6 | size_class(extent - (table[OperatorTable.ONE_MORE] >> s & 1))
            largest = max(largest, extent)
    frame[Frame.EMPTY] = empty
    if table[OperatorTable.EXACT] and largest < 1 << EXACT_BITS:
        context = context_at(table, exact | 1 << 62)
        if context != 0:
            return context
    return context_at(table, classes)


def context_at(table: int, key: int) -> int:
    """The context of a key; or 0, and the key is stored for Python to read."""
    mask = table[OperatorTable.MASK]
    keys = table[OperatorTable.KEYS]
    slot = hash_key(key) & mask
    entry = keys[2 * slot]
    while entry != key:
        if entry == 0:
            table[OperatorTable.MISSED] = key
            return 0
        slot = (slot + 1) & mask
        entry = keys[2 * slot]
    return keys[2 * slot + 1]


def hash_key(key: int) -> int:
    """The hash of a key, as `jitkernels.dispatch.operator_table` computes it."""
    return (key * 0x9E3779B97F4A7C1) >> 32


def size_class(extent: int) -> int:
    """The power of two that bounds an extent."""
    return 64 - leading_zeros(extent - 1) if extent > 1 else 0


def count_down(context: int) -> int:
    """Count a call; true when its countdown has ended and Python must handle it."""
    left = context[ContextWords.COUNTDOWN] - 1
    context[ContextWords.COUNTDOWN] = left
    return left <= 0
