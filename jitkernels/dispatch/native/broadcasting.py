"""Broadcast leading dimensions of operands, and flatten those of operands that follow another one."""

# mypy: disable-error-code="name-defined,no-any-return,assignment"
from jitkernels.codegen.i64_intrinsics import load, store
from jitkernels.runtime.abi_layout import Frame, Operand, Record


def broadcast(frame: int, own: int, leading: int) -> int:
    """Widen the common leading dimensions by those of an operand; 0 if they do not broadcast."""
    common = load(frame, 8 * Frame.LEADING)
    while common < leading:
        for d in range(common):
            at = common - d
            store(frame, 8 * (Frame.LEAD + at), load(frame, 8 * (Frame.LEAD + at - 1)))
        store(frame, 8 * Frame.LEAD, 1)
        common += 1
    store(frame, 8 * Frame.LEADING, common)
    for d in range(leading):
        place = frame + 8 * (Frame.LEAD + common - leading + d)
        extent = load(own, 8 * (Operand.EXTENTS + d))
        if extent != load(place):
            if load(place) == 1:
                store(place, 0, extent)
            elif extent != 1:
                return 0
    return 1


def as_one(frame: int, entry: int, own: int, other: int) -> int:
    """Reshape an operand to its declared dimensions, leading ones flattened into the first; 0 on failure.

    An operand that broadcasts to the extents of other operands, or to the dimensions of one of them, is materialized.
    """
    fixed = load(entry, 8 * Record.FIXED)
    dimensions = load(own, 8 * Operand.DIMENSIONS)
    extents = own + 8 * Operand.EXTENTS
    strides = own + 8 * Operand.STRIDES
    while dimensions < fixed:
        for d in range(dimensions):
            at = dimensions - d
            store(extents, 8 * at, load(extents, 8 * (at - 1)))
            store(strides, 8 * at, load(strides, 8 * (at - 1)))
        store(extents, 0, 1)
        store(strides, 0, 0)
        dimensions += 1
    more = dimensions - fixed
    spread = 0
    for e in range(1, fixed):
        told = load(frame, 8 * (Frame.EXTENTS + load(entry, 8 * (Record.SHAPE + 3 * e + 1))))
        if load(extents, 8 * (more + e)) == 1 and told > 1:
            spread = stretched(own, more + e, told)
    leading = 0
    for d in range(more + 1 if more else 0):
        leading = leading or load(extents, 8 * d) != 1
    if leading:
        if load(other, 8 * Operand.DIMENSIONS) != dimensions:
            return 0
        for d in range(more + 1):
            wanted = load(other, 8 * (Operand.EXTENTS + d))
            if load(extents, 8 * d) == 1 and wanted > 1:
                spread = stretched(own, d, wanted)
            if load(extents, 8 * d) != wanted:
                return 0
    store(own, 8 * Operand.DIMENSIONS, dimensions)
    if spread or (leading and load(own, 8 * Operand.CONTIGUOUS) == 0):
        if apart_from_caller(own, load(own, 8 * Operand.KIND)) == 0:
            return 0
    if more:
        first = 1
        for d in range(more + 1):
            first = first * load(extents, 8 * d)
        for d in range(fixed):
            store(extents, 8 * d, load(extents, 8 * (more + d)))
            store(strides, 8 * d, load(strides, 8 * (more + d)))
        if leading:  # the strides of dimensions of one element may be anything
            stride = load(own, 8 * Operand.ITEM)
            for d in range(1, fixed):
                stride = stride * load(extents, 8 * d)
            store(strides, 0, stride)
        store(extents, 0, first)
        store(own, 8 * Operand.DIMENSIONS, fixed)
    return 1


def stretched(own: int, d: int, extent: int) -> int:
    """Broadcast a dimension of one element: stride 0."""
    store(own, 8 * (Operand.EXTENTS + d), extent)
    store(own, 8 * (Operand.STRIDES + d), 0)
    return 1


FUNCTIONS = (broadcast, as_one, stretched)
