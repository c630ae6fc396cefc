"""The entry points that Python calls: kernels through their context, everyday functions through their table.

Calls on the fast path are served at once; all others go through `general`.
"""

# mypy: disable-error-code="name-defined,no-any-return,assignment"
from jitkernels.codegen.i64_intrinsics import address, call, load, stack, store, unlikely
from jitkernels.runtime.abi_layout import (
    MOST_OPERANDS,
    MOST_SLOTS,
    Context,
    Frame,
    Offset,
    Operand,
    Outcome,
    Part,
    Plain,
    Table,
)


def jk_launch(self: int, objects: int, given: int, names: int) -> int:
    """The vectorcall function of a kernel: the checks and the call of its context; Python if a check fails."""
    context = load(load(self, SLOT), Offset.ARRAY_DATA)
    if given == load(context, 8 * Context.COUNT) and names == 0:
        left = load(context, 8 * Context.COUNTDOWN) - 1
        store(context, 8 * Context.COUNTDOWN, left)
        python = load(context, 8 * Context.PYTHON)
        if left > 0:
            if call(load(context, 8 * Context.CALL), context, objects) == 0:
                if python == address("jk_none"):
                    Py_IncRef(address("jk_none"))
                    return address("jk_none")
                return PyObject_Vectorcall(python, objects, given, 0)
    return PyObject_Vectorcall(load(context, 8 * Context.SLOW), objects, given, names)


def jk_everyday(self: int, objects: int, given: int, names: int) -> int:
    """The vectorcall function of an everyday function: the fast path, the general path, or Python."""
    table = load(load(self, SLOT), Offset.ARRAY_DATA)
    if load(address("jk_bypass")) == 0:
        # Most calls pass inputs by position, then ``out``: no sorting is needed.
        result = Outcome.UNSORTED
        inputs = load(table, 8 * Table.INPUTS)
        if names == 0 and given <= inputs:
            result = plain(table, objects, given, 0)
        elif names != 0:
            if given <= inputs and load(names, Offset.TUPLE_SIZE) == 1:
                if load(names, Offset.TUPLE_ITEMS) == load(table, 8 * Table.OUT):
                    result = plain(table, objects, given, load(objects, 8 * given))
        elif given == inputs + 1 and load(table, 8 * Table.OPTIONS) == 0:
            result = plain(table, objects, inputs, load(objects, 8 * inputs))
        if unlikely(result >= Outcome.GENERAL and result <= Outcome.UNSORTED):
            result = sorted_call(table, objects, given, names, result)
        if unlikely(result == Outcome.ERROR):
            return 0
        if result != Outcome.PYTHON:
            return result
    return PyObject_Vectorcall(load(table, 8 * Table.SLOW), objects, given, names)


def sorted_call(table: int, objects: int, given: int, names: int, tried: int) -> int:
    """Sort arguments into slots; use the fast path if they are only inputs and ``out``."""
    slots = stack(MOST_SLOTS)
    if sorted_into(table, slots, objects, given, names) == 0:
        return Outcome.PYTHON
    if tried == Outcome.UNSORTED:
        inputs = load(table, 8 * Table.INPUTS)
        last = load(table, 8 * Table.PARAMETERS) - 1
        options = inputs
        while options < last and load(slots, 8 * options) == 0:
            options += 1
        if options == last:
            result = plain(table, slots, inputs, load(slots, 8 * last))
            if result != Outcome.GENERAL:
                return result
    if load(table, 8 * Table.PLAIN) == Plain.ELEMENTWISE and load(table, 8 * Table.MOVES) == 0:
        function = part(Part.MIXED)
        result = call(function, table, slots) if function else Outcome.PYTHON
        if result != Outcome.GENERAL:
            return result
    function = part(Part.GENERAL)
    return call(function, table, slots) if function else Outcome.PYTHON


def part(number: int) -> int:
    """The address of a segment of the dispatcher; 0 if it is not loaded yet, which Python then does."""
    function = load(address("jk_parts"), 8 * number)
    if unlikely(function == 0):
        store(address("jk_missing"), 0, number + 1)
    return function


def plain(table: int, arrays: int, given: int, out: int) -> int:
    """The fast path for inputs and ``out``, if the function has one."""
    kind = load(table, 8 * Table.PLAIN)
    if kind == Plain.ELEMENTWISE:
        return elementwise(table, arrays, given, out)
    if kind == Plain.OF_ROWS:
        return of_rows(table, arrays, given, out)
    return Outcome.GENERAL


def sorted_into(table: int, slots: int, objects: int, given: int, names: int) -> int:
    """Sort arguments by position and name into the slots of their parameters, 0 for absent ones; 0 on failure."""
    count = load(table, 8 * Table.PARAMETERS)
    if unlikely(given > count):
        return 0
    for i in range(given):
        store(slots, 8 * i, load(objects, 8 * i))
    for i in range(given, count):
        store(slots, 8 * i, 0)
    if names != 0:
        for j in range(load(names, Offset.TUPLE_SIZE)):
            name = load(names, Offset.TUPLE_ITEMS + 8 * j)
            place = count - 1
            while place >= 0 and load(table, 8 * Table.NAMES + 8 * place) != name:
                place -= 1
            if unlikely(place < given):
                return 0
            if unlikely(load(slots, 8 * place) != 0):
                return 0
            store(slots, 8 * place, load(objects, 8 * (given + j)))
    return 1


def general(table: int, slots: int) -> int:
    """Serve any call: returns the results or an `Outcome`. Releases all temporaries."""
    frame = stack(Frame.WORDS + MOST_OPERANDS * Operand.WORDS)
    count = load(table, 8 * Table.INPUTS) + load(table, 8 * Table.OUTPUTS)
    for i in range(count):
        store(operand(frame, i), 8 * Operand.OWNED, 0)
        store(operand(frame, i), 8 * Operand.COPY, 0)
    store(frame, 8 * Frame.MEMORY, 0)
    store(frame, 8 * Frame.PICKED, 0)
    result = served(table, slots, frame)
    for i in range(count):
        if load(operand(frame, i), 8 * Operand.OWNED) != 0:
            Py_DecRef(load(operand(frame, i), 8 * Operand.OWNED))
    if load(frame, 8 * Frame.MEMORY) != 0:
        free(load(frame, 8 * Frame.MEMORY))
    if load(frame, 8 * Frame.PICKED) != 0:
        free(load(frame, 8 * Frame.PICKED))
    return result


def served(table: int, slots: int, frame: int) -> int:
    if read_inputs(table, slots, frame) == 0:
        return Outcome.PYTHON
    if read_options(table, slots, frame) == 0:
        return Outcome.PYTHON
    if bind_inputs(table, frame) == 0:
        return Outcome.PYTHON
    context = find_context(table, frame)
    if context == 0:
        if load(frame, 8 * Frame.EMPTY) == 0:
            return Outcome.PYTHON
    elif unlikely(due(context)):
        return Outcome.PYTHON
    return with_results(table, slots, frame, context)


FUNCTIONS = (jk_launch, jk_everyday, sorted_call, part, plain, sorted_into, general, served)
