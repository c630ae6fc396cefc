"""Call sites in bytecode: distinguish ``float(n)``, a call, from ``dtype=float``, a reference to the type.

Python marks callees by a method-load instruction, or by a null pushed before or after them.
"""

import dis
import types

from jitkernels.core.cached_property import cached_per_code

ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME")
CELLS = ("LOAD_DEREF", "STORE_DEREF")
VARIABLES = ("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_DEREF")


@cached_per_code
def _steps(code: types.CodeType) -> tuple[tuple[dis.Instruction, ...], dict[int, int]]:
    """The instructions of a code object, and the index of each offset."""
    steps = tuple(dis.get_instructions(code))
    return steps, {step.offset: i for i, step in enumerate(steps)}


def is_called(code: types.CodeType, offset: int) -> bool:
    """Whether the attribute loaded at an offset is called next."""
    steps, index_by_offset = _steps(code)
    index = index_by_offset.get(offset)
    return index is not None and steps[index].opname in ATTRIBUTES and _is_called(steps, index)


def _is_called(steps: tuple[dis.Instruction, ...], index: int) -> bool:
    step = steps[index]
    if step.opname == "LOAD_METHOD" or "NULL|self" in step.argrepr:
        return True
    next_operation = steps[index + 1].opname if index + 1 < len(steps) else ""
    if next_operation == "PUSH_NULL":
        return True
    if next_operation in ATTRIBUTES:
        return False
    while steps[index].opname in ATTRIBUTES and index:
        index -= 1
    marked = steps[index].argrepr.startswith("NULL + ") or steps[index].argrepr.endswith(" + NULL")
    return marked or (index > 0 and steps[index - 1].opname == "PUSH_NULL")


@cached_per_code
def calls_variables(code: types.CodeType) -> bool:
    """Whether a code object, or a nested one, calls a local variable."""
    steps, _ = _steps(code)
    return any(step.opname in VARIABLES and _is_called(steps, index) for index, step in enumerate(steps)) or any(
        calls_variables(inner) for inner in code.co_consts if isinstance(inner, types.CodeType)
    )


@cached_per_code
def only_called(code: types.CodeType) -> frozenset[str]:
    """Globals and free variables that a code object and nested ones only call."""
    called: set[str] = set()
    others: set[str] = set()
    worklist = [code]
    while worklist:
        current = worklist.pop()
        worklist += [inner for inner in current.co_consts if isinstance(inner, types.CodeType)]
        steps, _ = _steps(current)
        for index, step in enumerate(steps):
            if step.opname in GLOBALS or (step.opname in CELLS and step.argval in code.co_freevars):
                (called if _is_called(steps, index) else others).add(step.argval)
    return frozenset(called - others)
