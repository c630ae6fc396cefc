"""Arguments of which code is made for each: strings, ranges, lengths of lists and dicts, keys of dicts.

A function that is given others in every call would be compiled in every call. So of arguments that are alike but for
these, code is made for some; all others are the plain function's.
"""

from typing import Any

from jitkernels.frontends.arguments import Leaf

MOST = 16
REASON = f"code is made for each string, range, and length of a list or dict that is given: {MOST} are enough"
VARYING = frozenset({str, bytes, int, complex, range})


class Varied:
    """How many kinds of arguments there were that are alike but for this."""

    def __init__(self) -> None:
        self._made: dict[Any, int] = {}

    def are_enough(self, key: Any) -> bool:
        """Whether there is code for enough that are like one of which there is none; it is one more otherwise."""
        structure, patterns = key
        part, (_, parts), named = structure
        like = alike(part), tuple(map(alike, parts)), alike(named), frozenset(patterns)
        count = self._made.get(like, 0)
        self._made[like] = count + 1
        return count >= MOST


def alike(structure: Any) -> Any:
    """What is left of a structure without strings, and how long what is."""
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
