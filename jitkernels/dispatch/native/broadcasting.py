"""Broadcast leading dimensions of operands, and flatten those of operands that follow another one."""

# mypy: disable-error-code="name-defined,no-any-return,assignment,index"
from jitkernels.runtime.abi_layout import Frame, Operand, OperandSpec


def broadcast_leading(frame: int, operand: int, leading: int) -> int:
    """Widen the common leading dimensions by those of an operand; 0 if they do not broadcast."""
    common = frame[Frame.LEADING]
    while common < leading:
        for d in range(common, 0, -1):
            frame[Frame.LEAD + d] = frame[Frame.LEAD + d - 1]
        frame[Frame.LEAD] = 1
        common += 1
    frame[Frame.LEADING] = common
    for d in range(leading):
        extent = operand[Operand.EXTENTS + d]
        lead = Frame.LEAD + common - leading + d
        if extent != frame[lead]:
            if frame[lead] == 1:
                frame[lead] = extent
            elif extent != 1:
                return 0
    return 1


def flatten_leading(frame: int, argument: int, operand: int, other: int) -> int:
    """Reshape an operand to its declared dimensions, leading ones flattened into the first; 0 on failure.

    An operand that broadcasts to the extents of other operands, or to the dimensions of one of them, is materialized.
    """
    fixed = argument[OperandSpec.FIXED]
    dimensions = operand[Operand.DIMENSIONS]
    extents = operand + 8 * Operand.EXTENTS
    strides = operand + 8 * Operand.STRIDES
    if dimensions < fixed:
        insert_dimensions(operand, dimensions, fixed - dimensions)
        dimensions = fixed
    leading = dimensions - fixed
    is_broadcast = 0
    for e in range(1, fixed):
        extent = frame[Frame.EXTENTS + argument[OperandSpec.SHAPE + 3 * e + 1]]
        if extents[leading + e] == 1 and extent > 1:
            is_broadcast = broadcast_dimension(operand, leading + e, extent)
    has_leading = 0
    for d in range(leading + 1 if leading else 0):
        has_leading = has_leading or extents[d] != 1
    if has_leading:
        if other[Operand.DIMENSIONS] != dimensions:
            return 0
        for d in range(leading + 1):
            extent = other[Operand.EXTENTS + d]
            if extents[d] == 1 and extent > 1:
                is_broadcast = broadcast_dimension(operand, d, extent)
            if extents[d] != extent:
                return 0
    operand[Operand.DIMENSIONS] = dimensions
    if is_broadcast or (has_leading and operand[Operand.CONTIGUOUS] == 0):
        if materialize(operand, operand[Operand.KIND]) == 0:
            return 0
    if leading:
        first = product(extents, leading + 1)
        for d in range(fixed):
            extents[d] = extents[leading + d]
            strides[d] = strides[leading + d]
        if has_leading:  # the strides of dimensions of one element may be anything
            strides[0] = operand[Operand.ITEM] * product(extents + 8, fixed - 1)
        extents[0] = first
        operand[Operand.DIMENSIONS] = fixed
    return 1


def insert_dimensions(operand: int, dimensions: int, count: int) -> int:
    """Insert `count` leading dimensions of one element, of stride 0."""
    for d in range(dimensions - 1, -1, -1):
        operand[Operand.EXTENTS + d + count] = operand[Operand.EXTENTS + d]
        operand[Operand.STRIDES + d + count] = operand[Operand.STRIDES + d]
    for d in range(count):
        broadcast_dimension(operand, d, 1)
    return 0


def broadcast_dimension(operand: int, d: int, extent: int) -> int:
    """Set a dimension's extent, and its stride to 0."""
    operand[Operand.EXTENTS + d] = extent
    operand[Operand.STRIDES + d] = 0
    return 1
