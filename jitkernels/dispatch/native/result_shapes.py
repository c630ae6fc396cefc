"""Infer extents from shapes: broadcast leading dimensions, move an axis to the end, lay out each operand's loop."""

# mypy: disable-error-code="name-defined,no-any-return,assignment,index"
from jitkernels.codegen.i64_intrinsics import address, load, load32
from jitkernels.runtime.abi_layout import DerivedSpec, Frame, Offset, Operand, OperandSpec, OperatorTable, Plain


def operand_at(frame: int, number: int) -> int:
    """The descriptor of an operand in a call."""
    return frame + 8 * (Frame.WORDS + number * Operand.WORDS)


def argument_at(table: int, number: int) -> int:
    """The specification of an input or output in the table."""
    return table + 8 * (OperatorTable.OPERAND_SPECS + number * OperandSpec.WORDS)


def argument_count(table: int) -> int:
    """The number of inputs and outputs."""
    return table[OperatorTable.INPUTS] + table[OperatorTable.OUTPUTS]


def bind_inputs(table: int, frame: int) -> int:
    """Broadcast leading dimensions, check all other extents, and put every operand in the order of its loop.

    Extents that options determine are already set.
    """
    inputs = table[OperatorTable.INPUTS]
    frame[Frame.MISSING] = 0
    frame[Frame.MOVED] = -1
    frame[Frame.BEHIND] = -1
    frame[Frame.FORTRAN] = 0
    if table[OperatorTable.MIRRORS]:
        reverse_fortran_input(frame)
    has_products = 0
    for i in range(inputs):
        operand = operand_at(frame, i)
        if operand[Operand.PRESENT]:
            first = bind_dimensions(table, frame, argument_at(table, i), operand)
            if first < 0:
                return 0
            bound = bind_extents(frame, argument_at(table, i), operand, first)
            if bound == 0:
                return 0
            has_products = has_products or bound == 2
    if table[OperatorTable.SPREAD] >= 0:
        leading = product(frame + 8 * Frame.LEAD, frame[Frame.LEADING])
        frame[Frame.EXTENTS + table[OperatorTable.SPREAD]] = leading
    for i in range(table[OperatorTable.FORMS]):
        if derive_extent(table + 8 * (table[OperatorTable.DERIVED] + i * DerivedSpec.WORDS), frame) == 0:
            return 0
    if has_products and check_products(table, frame, inputs) == 0:
        return 0
    kind = table[OperatorTable.PLAIN]
    if (kind == Plain.ELEMENTWISE or kind == Plain.ANY_ORDER) and frame[Frame.LEADING] > 1:
        frame[Frame.FORTRAN] = all_fortran(table, frame, inputs)
    for i in range(inputs):
        operand = operand_at(frame, i)
        if operand[Operand.PRESENT]:
            lay_out(table, frame, operand, argument_at(table, i))
    return 1


def bind_dimensions(table: int, frame: int, argument: int, operand: int) -> int:
    """Match leading and trailing dimensions of an input; return the first declared dimension, -1 if some disagree."""
    leads = argument[OperandSpec.LEADS]
    fixed = argument[OperandSpec.FIXED]
    dimensions = operand[Operand.DIMENSIONS]
    if leads and table[OperatorTable.TRAILING] < 0 and frame[Frame.AXIS] != -1:
        if move_axis(frame, operand) == 0:
            return -1
    if argument[OperandSpec.ALONG]:
        if flatten_leading(frame, argument, operand, operand_at(frame, argument[OperandSpec.ALONG] - 1)) == 0:
            return -1
        dimensions = fixed
    if dimensions == fixed - 1 and argument[OperandSpec.OPTIONAL]:
        # A vector in place of a matrix of one column, which the result omits as well; or a scalar.
        operand[Operand.EXTENTS + dimensions] = 1
        operand[Operand.STRIDES + dimensions] = operand[Operand.ITEM]
        dimensions += 1
        operand[Operand.DIMENSIONS] = dimensions
        if argument[OperandSpec.OPTIONAL] == 1:
            frame[Frame.MISSING] = 1
    leading = dimensions - fixed
    if argument[OperandSpec.TRAILS]:
        if match_trailing(table, frame, operand, fixed, leads) == 0:
            return -1
        leading -= frame[Frame.BEHIND]
    if leading < 0 or (leads == 0 and leading > 0):
        return -1
    if leads:
        if broadcast_leading(frame, operand, leading) == 0:
            return -1
    return leading


def bind_extents(frame: int, argument: int, operand: int, first: int) -> int:
    """Set the symbols of the declared extents, or check them; 0 if one disagrees, 2 if some are products."""
    result = 1
    for e in range(argument[OperandSpec.FIXED]):
        extent = operand[Operand.EXTENTS + first + e] - argument[OperandSpec.MORE + e]
        if extent < 0:
            return 0
        factor = argument[OperandSpec.SHAPE + 3 * e]
        symbol = argument[OperandSpec.SHAPE + 3 * e + 1]
        if argument[OperandSpec.SHAPE + 3 * e + 2] >= 0:
            result = 2
            factor = extent
        elif symbol >= 0:
            if frame[Frame.EXTENTS + symbol] == -1:
                frame[Frame.EXTENTS + symbol] = extent // factor
            factor = factor * frame[Frame.EXTENTS + symbol]
        if factor != extent:
            return 0
    return result


def derive_extent(form: int, frame: int) -> int:
    """Set a derived extent, or check the one that an input has, or a condition; 0 if it fails."""
    value = form[DerivedSpec.CONSTANT]
    for t in range(form[DerivedSpec.COUNT]):
        term = form + 8 * (DerivedSpec.TERMS + t * DerivedSpec.TERM_WORDS)
        if term[2]:
            number = frame[Frame.OPTIONS] // term[2] % 2
        else:
            number = frame[Frame.EXTENTS + term[1]]
        if number < 0:
            return 0
        value += term[0] * number
    if value < 0:
        if form[DerivedSpec.LEAST] < 0:
            return 0
        value = 0
    value = value // form[DerivedSpec.DIVISOR] + form[DerivedSpec.MORE]
    value = max(value, form[DerivedSpec.LEAST])
    if form[DerivedSpec.TARGET] < 0:
        return value >= 0
    target = frame + 8 * (Frame.EXTENTS + form[DerivedSpec.TARGET])
    if target[0] == -1:
        target[0] = value
    return target[0] == value and value >= 0


def check_products(table: int, frame: int, inputs: int) -> int:
    """Whether extents that are products of two symbols match the values of these."""
    for i in range(inputs):
        operand = operand_at(frame, i)
        if operand[Operand.PRESENT]:
            argument = argument_at(table, i)
            first = operand[Operand.DIMENSIONS] - argument[OperandSpec.FIXED]
            if argument[OperandSpec.TRAILS]:
                first -= frame[Frame.BEHIND]
            for e in range(argument[OperandSpec.FIXED]):
                if argument[OperandSpec.SHAPE + 3 * e + 2] >= 0:
                    left = frame[Frame.EXTENTS + argument[OperandSpec.SHAPE + 3 * e + 1]]
                    right = frame[Frame.EXTENTS + argument[OperandSpec.SHAPE + 3 * e + 2]]
                    extent = argument[OperandSpec.SHAPE + 3 * e] * left * right + argument[OperandSpec.MORE + e]
                    if left < 0 or right < 0 or operand[Operand.EXTENTS + first + e] != extent:
                        return 0
    return 1


def reverse_fortran_input(frame: int) -> int:
    """Reverse the dimensions and the axis of an array in Fortran order, so that it needs no copy."""
    operand = operand_at(frame, 0)
    array = operand[Operand.ARRAY]
    dimensions = operand[Operand.DIMENSIONS]
    axis = frame[Frame.AXIS]
    if load(array, Offset.TYPE) != address("jk_ndarray") or axis >= dimensions or axis < -dimensions:
        return 0
    if operand[Operand.CONTIGUOUS] or load32(array, Offset.ARRAY_FLAGS) & IN_FORTRAN_ORDER == 0:
        return 0
    reverse_dimensions(operand)
    frame[Frame.AXIS] = -1 - axis if axis < 0 else dimensions - 1 - axis
    frame[Frame.FORTRAN] = 1
    return 1


def match_trailing(table: int, frame: int, operand: int, fixed: int, leads: int) -> int:
    """Set the trailing dimensions from the first operand that has some; 0 if another operand's differ."""
    dimensions = operand[Operand.DIMENSIONS]
    if frame[Frame.BEHIND] < 0:
        behind = dimensions - fixed
        if leads:
            axis = frame[Frame.AXIS]
            if axis >= dimensions or axis < -dimensions:
                return 0
            behind = -1 - axis if axis < 0 else dimensions - 1 - axis
        if behind < 0:
            return 0
        for d in range(behind):
            frame[Frame.TRAIL + d] = operand[Operand.EXTENTS + dimensions - behind + d]
        frame[Frame.BEHIND] = behind
        frame[Frame.EXTENTS + table[OperatorTable.TRAILING]] = product(frame + 8 * Frame.TRAIL, behind)
        return 1
    behind = frame[Frame.BEHIND]
    if dimensions < behind:
        return 0
    for d in range(behind):
        if operand[Operand.EXTENTS + dimensions - behind + d] != frame[Frame.TRAIL + d]:
            return 0
    return 1


def move_axis(frame: int, operand: int) -> int:
    """Move the axis of a call, counted from the end of the first operand, to the end."""
    dimensions = operand[Operand.DIMENSIONS]
    axis = frame[Frame.AXIS]
    if frame[Frame.MOVED] < 0:
        if axis >= dimensions or axis < -dimensions:
            return 0
        if axis >= 0:
            axis -= dimensions
        frame[Frame.AXIS] = axis
        frame[Frame.MOVED] = 0
        if axis == -1:
            frame[Frame.MOVED] = -1
            return 1
    if dimensions + axis < 0:
        return 0
    if operand[Operand.DIMENSIONS] > 1:
        operand[Operand.CONTIGUOUS] = 0
    rotate(operand + 8 * Operand.EXTENTS, dimensions + axis, dimensions - 1)
    rotate(operand + 8 * Operand.STRIDES, dimensions + axis, dimensions - 1)
    return 1


def rotate(words: int, first: int, last: int) -> int:
    """Move the first word to the end."""
    word = words[first]
    for d in range(first, last):
        words[d] = words[d + 1]
    words[last] = word
    return 0


def product(words: int, count: int) -> int:
    result = 1
    for i in range(count):
        result = result * words[i]
    return result


def swap(words: int, i: int, j: int) -> int:
    word = words[i]
    words[i] = words[j]
    words[j] = word
    return 0


def all_fortran(table: int, frame: int, inputs: int) -> int:
    """Whether all array operands of an elementwise kernel are in Fortran order, equivalent to C order then."""
    for i in range(inputs):
        operand = operand_at(frame, i)
        array = operand[Operand.ARRAY]
        if array != 0 and argument_at(table, i)[OperandSpec.LEADS]:
            if load(array, Offset.TYPE) != address("jk_ndarray") or operand[Operand.CONTIGUOUS]:
                return 0
            if load32(array, Offset.ARRAY_FLAGS) & IN_FORTRAN_ORDER == 0:
                return 0
            if operand[Operand.DIMENSIONS] != frame[Frame.LEADING]:
                return 0
            if has_shape(array, frame[Frame.LEADING], frame + 8 * Frame.LEAD, 0) == 0:
                return 0
    return 1


def lay_out(table: int, frame: int, operand: int, argument: int) -> int:
    """Compute loop extents and strides of an operand (0 if broadcast), and whether the kernel can read it directly."""
    dimensions = operand[Operand.DIMENSIONS]
    fixed = argument[OperandSpec.FIXED]
    if argument[OperandSpec.TRAILS]:
        fixed += frame[Frame.BEHIND]
    kind = kernel_kind(frame, argument)
    operand[Operand.WANTED] = kind
    operand[Operand.INNER] = product(operand + 8 * (Operand.EXTENTS + dimensions - fixed), fixed)
    is_broadcast = argument[OperandSpec.LEADS] and broadcast_to_leading(frame, operand, dimensions - fixed)
    has_kind = (operand[Operand.KIND] == kind or (kind == 7 and operand[Operand.KIND] == 9)) and operand[
        Operand.ALIGNED
    ]
    if frame[Frame.FORTRAN] and table[OperatorTable.MIRRORS] == 0:
        reverse_dimensions(operand)
        is_broadcast = 0
        operand[Operand.CONTIGUOUS] = 1
    direct = has_kind
    if direct and (is_broadcast or operand[Operand.CONTIGUOUS] == 0):
        direct = is_dense(operand)
    operand[Operand.TURNED] = 0
    if direct == 0 and has_kind and argument[OperandSpec.TURN] != 0 and operand[Operand.KIND] == kind:
        if (fixed == 2 or operand[Operand.DIMENSIONS] == 2) and is_transposed(operand):
            direct = 1
            operand[Operand.TURNED] = 1
            frame[Frame.OPTIONS] += argument[OperandSpec.TURN]
    operand[Operand.DIRECT] = direct
    return 0


def broadcast_to_leading(frame: int, operand: int, leading: int) -> int:
    """Give an operand with `leading` leading dimensions those of the call; return whether it is broadcast."""
    common = frame[Frame.LEADING]
    is_broadcast = leading < common
    if is_broadcast:
        insert_dimensions(operand, operand[Operand.DIMENSIONS], common - leading)
        operand[Operand.DIMENSIONS] += common - leading
    for d in range(common):
        if operand[Operand.EXTENTS + d] != frame[Frame.LEAD + d]:
            is_broadcast = broadcast_dimension(operand, d, frame[Frame.LEAD + d])
    return is_broadcast


def kernel_kind(frame: int, argument: int) -> int:
    """NumPy's type number of the dtype that the kernel expects."""
    integer = argument[OperandSpec.INTEGER]
    unless = argument[OperandSpec.UNLESS]
    if integer == 0 or (unless and operand_at(frame, unless - 1)[Operand.PRESENT]):
        return stored_kind(frame[Frame.WIDE])
    factor = argument[OperandSpec.VARIES]
    if factor and frame[Frame.OPTIONS] // factor & 1:
        return integer
    return integer - 1


def stored_kind(index: int) -> int:
    """NumPy's type number of a storage dtype, by its index in `DTYPES`."""
    if index < 3:
        return FLOAT32 + index
    if index == 3:
        return 5
    return 7 if index == 4 else 8


def reverse_dimensions(operand: int) -> int:
    last = operand[Operand.DIMENSIONS] - 1
    for d in range((last + 1) // 2):
        swap(operand + 8 * Operand.EXTENTS, d, last - d)
        swap(operand + 8 * Operand.STRIDES, d, last - d)
    return 0


def is_contiguous(operand: int, dimensions: int, stride: int) -> int:
    """Whether the first `dimensions` dimensions are contiguous, if the last of them has this stride."""
    for d in range(dimensions - 1, -1, -1):
        extent = operand[Operand.EXTENTS + d]
        if extent != 1 and operand[Operand.STRIDES + d] != stride:
            return 0
        stride = stride * extent
    return 1


def is_dense(operand: int) -> int:
    """Whether all elements are contiguous in loop order."""
    return is_contiguous(operand, operand[Operand.DIMENSIONS], operand[Operand.ITEM])


def is_transposed(operand: int) -> int:
    """Whether matrices are stored as transposes of contiguous ones."""
    item = operand[Operand.ITEM]
    last = operand[Operand.DIMENSIONS] - 1
    rows = operand[Operand.EXTENTS + last - 1]
    if operand[Operand.STRIDES + last - 1] != item or operand[Operand.STRIDES + last] != item * rows:
        return 0
    return is_contiguous(operand, last - 1, item * rows * operand[Operand.EXTENTS + last])
