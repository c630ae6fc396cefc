"""The entry points that Python calls: kernels through their context, everyday functions through their table.

Calls on the fast path are served at once; all others go through `general`.
"""

# mypy: disable-error-code="name-defined,no-any-return,assignment,index"
from jitkernels.codegen.i64_intrinsics import address, call, load, stack, unlikely
from jitkernels.runtime.abi_layout import Context, DispatcherPart, Frame, Offset, Operand, OperatorTable, Outcome, Plain


def jk_launch(self: int, objects: int, given: int, names: int) -> int:
    """The vectorcall function of a kernel: the checks and the call of its context; Python if a check fails."""
    context = load(load(self, SLOT), Offset.ARRAY_DATA)
    if given == context[Context.COUNT] and names == 0:
        left = context[Context.COUNTDOWN] - 1
        context[Context.COUNTDOWN] = left
        python = context[Context.PYTHON]
        if left > 0:
            if call(context[Context.CALL], context, objects) == 0:
                if python == address("jk_none"):
                    Py_IncRef(address("jk_none"))
                    return address("jk_none")
                return PyObject_Vectorcall(python, objects, given, 0)
    return PyObject_Vectorcall(context[Context.SLOW], objects, given, names)


def jk_everyday(self: int, objects: int, given: int, names: int) -> int:
    """The vectorcall function of an everyday function: the fast path, the general path, or Python."""
    table = load(load(self, SLOT), Offset.ARRAY_DATA)
    if address("jk_bypass")[0] == 0:
        # Most calls pass inputs by position, then ``out``: they need no binding.
        result = Outcome.UNSORTED
        inputs = table[OperatorTable.INPUTS]
        if names == 0 and given <= inputs:
            result = try_fast_path(table, objects, given, 0)
        elif names != 0:
            if given <= inputs and load(names, Offset.TUPLE_SIZE) == 1:
                if load(names, Offset.TUPLE_ITEMS) == table[OperatorTable.OUT]:
                    result = try_fast_path(table, objects, given, objects[given])
        elif given == inputs + 1 and table[OperatorTable.OPTIONS] == 0:
            result = try_fast_path(table, objects, inputs, objects[inputs])
        if unlikely(result >= Outcome.GENERAL and result <= Outcome.UNSORTED):
            result = call_bound(table, objects, given, names, result)
        if unlikely(result == Outcome.ERROR):
            return 0
        if result != Outcome.PYTHON:
            return result
    return PyObject_Vectorcall(table[OperatorTable.SLOW], objects, given, names)


def call_bound(table: int, objects: int, given: int, names: int, tried: int) -> int:
    """Bind arguments to parameters; use the fast path if they are only inputs and ``out``."""
    slots = stack(MAX_SLOTS)
    if bind_arguments(table, slots, objects, given, names) == 0:
        return Outcome.PYTHON
    if tried == Outcome.UNSORTED:
        inputs = table[OperatorTable.INPUTS]
        last = table[OperatorTable.PARAMETERS] - 1
        options = inputs
        while options < last and slots[options] == 0:
            options += 1
        if options == last:
            result = try_fast_path(table, slots, inputs, slots[last])
            if result != Outcome.GENERAL:
                return result
    if table[OperatorTable.PLAIN] == Plain.ELEMENTWISE and table[OperatorTable.MOVES] == 0:
        function = part_address(DispatcherPart.MIXED)
        result = call(function, table, slots) if function else Outcome.PYTHON
        if result != Outcome.GENERAL:
            return result
    function = part_address(DispatcherPart.GENERAL)
    return call(function, table, slots) if function else Outcome.PYTHON


def part_address(number: int) -> int:
    """The address of a part of the dispatcher; 0 if it is not loaded yet, which Python then does."""
    function = address("jk_parts")[number]
    if unlikely(function == 0):
        address("jk_missing")[0] = number + 1
    return function


def try_fast_path(table: int, arrays: int, given: int, out: int) -> int:
    """The fast path for inputs and ``out``, if the function has one."""
    kind = table[OperatorTable.PLAIN]
    if kind == Plain.ELEMENTWISE:
        return elementwise(table, arrays, given, out)
    if kind == Plain.OF_ROWS:
        return of_rows(table, arrays, given, out)
    return Outcome.GENERAL


def bind_arguments(table: int, slots: int, objects: int, given: int, names: int) -> int:
    """Store each argument, by position or name, in the slot of its parameter, 0 in absent ones; 0 on failure."""
    count = table[OperatorTable.PARAMETERS]
    if unlikely(given > count):
        return 0
    for i in range(given):
        slots[i] = objects[i]
    for i in range(given, count):
        slots[i] = 0
    if names != 0:
        for j in range(load(names, Offset.TUPLE_SIZE)):
            name = load(names, Offset.TUPLE_ITEMS + 8 * j)
            slot = count - 1
            while slot >= 0 and table[OperatorTable.NAMES + slot] != name:
                slot -= 1
            if unlikely(slot < given or slots[slot] != 0):
                return 0
            slots[slot] = objects[given + j]
    return 1


def general(table: int, slots: int) -> int:
    """Serve any call: returns the results or an `Outcome`. Releases all temporaries."""
    frame = stack(Frame.WORDS + MAX_OPERANDS * Operand.WORDS)
    count = argument_count(table)
    for i in range(count):
        operand_at(frame, i)[Operand.OWNED] = 0
        operand_at(frame, i)[Operand.COPY] = 0
    frame[Frame.MEMORY] = 0
    frame[Frame.PICKED] = 0
    result = dispatch_call(table, slots, frame)
    for i in range(count):
        if operand_at(frame, i)[Operand.OWNED] != 0:
            Py_DecRef(operand_at(frame, i)[Operand.OWNED])
    if frame[Frame.MEMORY] != 0:
        free(frame[Frame.MEMORY])
    if frame[Frame.PICKED] != 0:
        free(frame[Frame.PICKED])
    return result


def dispatch_call(table: int, slots: int, frame: int) -> int:
    """Read inputs and options, infer extents, look up the kernel, and call it."""
    if read_inputs(table, slots, frame) == 0:
        return Outcome.PYTHON
    if read_options(table, slots, frame) == 0:
        return Outcome.PYTHON
    if bind_inputs(table, frame) == 0:
        return Outcome.PYTHON
    context = find_context(table, frame)
    if context == 0:
        if frame[Frame.EMPTY] == 0:
            return Outcome.PYTHON
    elif unlikely(count_down(context)):
        return Outcome.PYTHON
    return call_with_results(table, slots, frame, context)
