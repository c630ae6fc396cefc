"""Where code calls what it names: ``float(n)`` asks for a number, and ``dtype=float`` for a type.

Python marks what is going to be called: by an instruction of its own for methods, or by a null in front of it or
behind.
"""

import dis
import functools
import types

ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME")


@functools.lru_cache(maxsize=1024)
def _steps(code: types.CodeType) -> tuple[tuple[dis.Instruction, ...], dict[int, int]]:
    """The instructions of code, and which one is at each offset."""
    steps = tuple(dis.get_instructions(code))
    return steps, {step.offset: i for i, step in enumerate(steps)}


def is_called(code: types.CodeType, offset: int) -> bool:
    """Whether the attribute that is loaded there is called next."""
    steps, places = _steps(code)
    place = places.get(offset)
    return place is not None and steps[place].opname in ATTRIBUTES and _is_called(steps, place)


def _is_called(steps: tuple[dis.Instruction, ...], place: int) -> bool:
    step = steps[place]
    if step.opname == "LOAD_METHOD" or "NULL|self" in step.argrepr:
        return True
    behind = steps[place + 1].opname if place + 1 < len(steps) else ""
    if behind == "PUSH_NULL":
        return True
    if behind in ATTRIBUTES:
        return False
    while steps[place].opname in ATTRIBUTES and place:
        place -= 1
    marked = steps[place].argrepr.startswith("NULL + ") or steps[place].argrepr.endswith(" + NULL")
    return marked or (place > 0 and steps[place - 1].opname == "PUSH_NULL")


@functools.lru_cache(maxsize=1024)
def only_called(code: types.CodeType) -> frozenset[str]:
    """Globals that code, and functions in it, does nothing with but call them."""
    called: set[str] = set()
    others: set[str] = set()
    waiting = [code]
    while waiting:
        one = waiting.pop()
        waiting += [inner for inner in one.co_consts if isinstance(inner, types.CodeType)]
        steps, _ = _steps(one)
        for place, step in enumerate(steps):
            if step.opname in GLOBALS:
                (called if _is_called(steps, place) else others).add(step.argval)
    return frozenset(called - others)
