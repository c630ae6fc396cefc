"""The recompile limit: bounds the specializations that differ only in strings, ranges, container lengths or keys.

Each such value is a constant of the code, so a function with a new one in each call would compile in each call. After
`MAX_VALUES` congruent specializations, further ones fall back to the plain function.
"""

from typing import Any

from jitkernels.compiler.capture.pytree.class_guards import ClassGuards
from jitkernels.compiler.capture.pytree.flatten import Leaf

MAX_VALUES = 16
"""Values of one kind, as strings or lengths, for which code is made: each new one costs a compilation."""
REASON = f"code is made for each string, range, and length of a list or dict that is given: {MAX_VALUES} are enough"
VARYING = frozenset({str, bytes, int, complex, range})


class RecompileLimit:
    """Counts specializations with congruent structures."""

    def __init__(self) -> None:
        self._made: dict[Any, int] = {}

    def is_reached(self, key: Any) -> bool:
        """Count a new specialization; whether its congruence class is full."""
        structure, patterns = key
        part, (_, parts), named = structure
        congruence_class = (
            alike(part),
            tuple(map(alike, parts)),
            alike(named),
            frozenset(one for one in patterns if type(one) is not ClassGuards),
        )
        count = self._made.get(congruence_class, 0)
        self._made[congruence_class] = count + 1
        return count >= MAX_VALUES


def alike(structure: Any) -> Any:
    """A structure without the values that vary: strings, ranges, lengths and keys."""
    if type(structure) is Leaf or type(structure) is not tuple or not structure:
        return structure
    head = structure[0]
    if head == "static":
        return ("static", structure[1]) if structure[1] in VARYING else structure
    if head is tuple or head is list:
        return head, frozenset(map(alike, structure[1]))
    if head is dict:
        return head, frozenset(map(alike, structure[2]))
    return tuple(map(alike, structure))
