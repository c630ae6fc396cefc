"""Broadcast leading dimensions of operands, and flatten those of operands that follow another one."""

# mypy: disable-error-code="name-defined,no-any-return,assignment,index"
from jitkernels.runtime.abi_layout import Frame, Operand, Record


def broadcast(frame: int, own: int, leading: int) -> int:
    """Widen the common leading dimensions by those of an operand; 0 if they do not broadcast."""
    common = frame[Frame.LEADING]
    while common < leading:
        for d in range(common):
            at = common - d
            frame[Frame.LEAD + at] = frame[Frame.LEAD + at - 1]
        frame[Frame.LEAD] = 1
        common += 1
    frame[Frame.LEADING] = common
    for d in range(leading):
        place = frame + 8 * (Frame.LEAD + common - leading + d)
        extent = own[Operand.EXTENTS + d]
        if extent != place[0]:
            if place[0] == 1:
                place[0] = extent
            elif extent != 1:
                return 0
    return 1


def as_one(frame: int, entry: int, own: int, other: int) -> int:
    """Reshape an operand to its declared dimensions, leading ones flattened into the first; 0 on failure.

    An operand that broadcasts to the extents of other operands, or to the dimensions of one of them, is materialized.
    """
    fixed = entry[Record.FIXED]
    dimensions = own[Operand.DIMENSIONS]
    extents = own + 8 * Operand.EXTENTS
    strides = own + 8 * Operand.STRIDES
    while dimensions < fixed:
        for d in range(dimensions):
            at = dimensions - d
            extents[at] = extents[at - 1]
            strides[at] = strides[at - 1]
        extents[0] = 1
        strides[0] = 0
        dimensions += 1
    more = dimensions - fixed
    spread = 0
    for e in range(1, fixed):
        told = frame[Frame.EXTENTS + entry[Record.SHAPE + 3 * e + 1]]
        if extents[more + e] == 1 and told > 1:
            spread = stretched(own, more + e, told)
    leading = 0
    for d in range(more + 1 if more else 0):
        leading = leading or extents[d] != 1
    if leading:
        if other[Operand.DIMENSIONS] != dimensions:
            return 0
        for d in range(more + 1):
            wanted = other[Operand.EXTENTS + d]
            if extents[d] == 1 and wanted > 1:
                spread = stretched(own, d, wanted)
            if extents[d] != wanted:
                return 0
    own[Operand.DIMENSIONS] = dimensions
    if spread or (leading and own[Operand.CONTIGUOUS] == 0):
        if apart_from_caller(own, own[Operand.KIND]) == 0:
            return 0
    if more:
        first = 1
        for d in range(more + 1):
            first = first * extents[d]
        for d in range(fixed):
            extents[d] = extents[more + d]
            strides[d] = strides[more + d]
        if leading:  # the strides of dimensions of one element may be anything
            stride = own[Operand.ITEM]
            for d in range(1, fixed):
                stride = stride * extents[d]
            strides[0] = stride
        extents[0] = first
        own[Operand.DIMENSIONS] = fixed
    return 1


def stretched(own: int, d: int, extent: int) -> int:
    """Broadcast a dimension of one element: stride 0."""
    own[Operand.EXTENTS + d] = extent
    own[Operand.STRIDES + d] = 0
    return 1


FUNCTIONS = (broadcast, as_one, stretched)
