"""Copy elements of an operand between its memory and a buffer: by runs, rows, or transposed squares."""

# mypy: disable-error-code="name-defined,no-any-return,assignment,index"
from jitkernels.codegen.i64_intrinsics import address, stack
from jitkernels.runtime.abi_layout import MOST_OPERAND_DIMENSIONS, Operand


def pair_of(own: int, output: int) -> int:
    """The `copy_run` pair (source and target dtype) of the copy between an operand and its buffer."""
    kind = own[Operand.KIND]
    wanted = own[Operand.WANTED]
    if output:
        return 4 * wanted + target_of(kind)
    return 4 * kind + target_of(wanted)


def target_of(kind: int) -> int:
    if kind == FLOAT32:
        return 0
    if kind == FLOAT64:
        return 1
    return 2 if kind == 7 else 3


def collapse(own: int) -> int:
    """Merge adjacent contiguous dimensions; drop those of extent 1."""
    kept = 0
    for d in range(own[Operand.DIMENSIONS]):
        extent = own[Operand.EXTENTS + d]
        stride = own[Operand.STRIDES + d]
        if extent != 1:
            if kept > 0:
                before = own[Operand.STRIDES + kept - 1]
                if before == stride * extent:
                    extent = extent * own[Operand.EXTENTS + kept - 1]
                    kept -= 1
            own[Operand.EXTENTS + kept] = extent
            own[Operand.STRIDES + kept] = stride
            kept += 1
    if kept == 0:
        own[Operand.EXTENTS] = 1
        own[Operand.STRIDES] = 0
        kept = 1
    own[Operand.DIMENSIONS] = kept
    return 0


def transfer(own: int, start: int, count: int, reading: int) -> int:
    """Copy elements `start` to `start + count` of an operand's loop between its memory and the start of its buffer.

    Whole rows and transposed matrices use the loops in `jitkernels.runtime.copy_transpose`.
    """
    if count <= 0:
        return 0
    last = own[Operand.DIMENSIONS] - 1
    length = own[Operand.EXTENTS + last]
    stride = own[Operand.STRIDES + last]
    item = 4 if own[Operand.WANTED] == FLOAT32 else 8
    pair = own[Operand.PAIR]
    same = address("jk_forms")[pair] & SAME
    width = length * item
    plain = same and stride == item and width >= LEAST_ROW  # contiguous runs
    buffer = own[Operand.BASE]
    if last == 0 and stride != 0:
        at = own[Operand.DATA] + start * stride
        if reading:
            return copy_run(pair, buffer, item, at, stride, count)
        return copy_run(pair, at, stride, buffer, item, count)
    beside = last - 2
    while same and beside >= 0 and length >= SQUARE:
        if own[Operand.STRIDES + beside] == item and stride != item:
            extent = own[Operand.EXTENTS]
            whole = elements_of(own) // extent
            first = start // whole
            some = count // whole
            if beside > 0:
                extent = own[Operand.EXTENTS + beside]
            else:
                extent = some
            if extent >= SQUARE and first * whole == start and some * whole == count:
                return in_squares(own, beside, item, reading, first, some)
        beside -= 1
    index = stack(MOST_OPERAND_DIMENSIONS)
    outer = start // length
    within = start - outer * length
    at = own[Operand.DATA]
    d = last - 1
    while d >= 0:
        extent = own[Operand.EXTENTS + d]
        here = outer % extent
        outer = outer // extent
        index[d] = here
        at += here * own[Operand.STRIDES + d]
        d -= 1
    while count > 0:
        run = min(count, length - within)
        steps = 1
        across = 0
        turned = 0
        if within == 0 and last > 0:
            across = own[Operand.STRIDES + last - 1]
            beside = min(own[Operand.EXTENTS + last - 1] - index[last - 1], count // length)
            turned = same and across == item and length >= SQUARE and beside >= SQUARE
            if plain or turned or beside > length:
                steps = beside
        if turned:
            if reading:
                transpose(item, buffer, width, at, stride, length, steps)
            else:
                transpose(item, at, stride, buffer, width, steps, length)
            run = steps * length
        elif steps > 1 and plain:
            if reading:
                rows(width, buffer, width, at, across, steps)
            else:
                rows(width, at, across, buffer, width, steps)
            run = steps * length
        elif steps > 1:
            # Many short adjacent runs: copy few long runs across them instead.
            for i in range(length):
                if reading:
                    copy_run(pair, buffer + i * item, length * item, at + i * stride, across, steps)
                else:
                    copy_run(pair, at + i * stride, across, buffer + i * item, length * item, steps)
            run = steps * length
        elif reading and stride == 0:
            copy_run(pair, buffer, item, at, 0, 1)
            fill(buffer, item, run)
        elif reading:
            copy_run(pair, buffer, item, at + within * stride, stride, run)
        else:
            copy_run(pair, at + within * stride, stride, buffer, item, run)
        buffer += run * item
        count -= run
        within = 0
        d = last - 1
        while d >= 0 and steps > 0:
            here = index[d] + steps
            at += steps * own[Operand.STRIDES + d]
            steps = 0
            if here == own[Operand.EXTENTS + d]:
                at -= here * own[Operand.STRIDES + d]
                here = 0
                steps = 1
            index[d] = here
            d -= 1
    return 0


def elements_of(own: int) -> int:
    count = 1
    for d in range(own[Operand.DIMENSIONS]):
        count = count * own[Operand.EXTENTS + d]
    return count


def in_squares(own: int, beside: int, item: int, reading: int, first: int, some: int) -> int:
    """Transpose elements `first` to `first + some` of the first dimension, with all others.

    Elements along the dimension `beside`, not one of the last two, are contiguous: matrices of it and the last.
    """
    last = own[Operand.DIMENSIONS] - 1
    index = stack(MOST_OPERAND_DIMENSIONS)
    steps = stack(MOST_OPERAND_DIMENSIONS)
    step = item
    d = last
    while d >= 0:
        index[d] = 0
        steps[d] = step
        step = step * own[Operand.EXTENTS + d]
        d -= 1
    length = own[Operand.EXTENTS + last]
    stride = own[Operand.STRIDES + last]
    columns = own[Operand.EXTENTS + beside] if beside > 0 else some
    across = steps[beside]
    at = own[Operand.DATA] + first * own[Operand.STRIDES]
    buffer = own[Operand.BASE]
    further = 1
    while further:
        if reading:
            transpose(item, buffer, across, at, stride, length, columns)
        else:
            transpose(item, at, stride, buffer, across, columns, length)
        further = 0
        d = last - 1
        while d >= 0 and further == 0:
            if d != beside:
                here = index[d] + 1
                at += own[Operand.STRIDES + d]
                buffer += steps[d]
                further = 1
                if here == (own[Operand.EXTENTS + d] if d > 0 else some):
                    at -= here * own[Operand.STRIDES + d]
                    buffer -= here * steps[d]
                    here = 0
                    further = 0
                index[d] = here
            d -= 1
    return 0


FUNCTIONS = (pair_of, target_of, collapse, transfer, elements_of, in_squares)
