"""Negative levels: what compiled code gave beside what NumPy makes of the same graph, before anybody gets it."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitkernels.errors import DifferenceError
from jitkernels.frontends.specialisation import Specialisation
from jitkernels.graph import doubts
from jitkernels.graph.doubts import Doubt

MARGIN = 2.0
"""How many times what rounding may leave is taken for a mistake; doubts are estimates."""


class Check:
    """What a call of compiled code has to give, by NumPy; made before that writes to arguments."""

    def __init__(self, found: Specialisation, leaves: Sequence[Any], values: Any) -> None:
        assert found.graph is not None, "compiled"
        self._found = found
        copies = [np.array(one) for one in (*leaves, *found.constants)]
        self._expected = doubts.run(found.graph, copies, values)

    def compare(
        self, arrays: Sequence[Any], leaves: Sequence[Any], names: Callable[[], Sequence[str]]
    ) -> None:
        """Raise DifferenceError where an output, or an argument that is written, is something else.

        `names` gives those of the arguments.
        """
        written = [leaves[i] for i in self._found.written]
        for number, ((right, doubt), got) in enumerate(zip(self._expected, [*arrays, *written], strict=True)):
            wrong = difference(np.asarray(got), np.asarray(right), doubt)
            if not wrong:
                continue
            if number >= len(arrays):
                what = names()[self._found.written[number - len(arrays)]]
            else:
                what = "the result" if len(arrays) == 1 else f"result {number}"
            raise DifferenceError(f"{what} of compiled code is not NumPy's: {wrong}")


def difference(got: Any, right: Any, doubt: Doubt) -> str:
    """What is wrong with an array; nothing if it differs by no more than rounding."""
    if got.dtype != right.dtype or got.shape != right.shape:
        return f"expected {right.dtype}{list(right.shape)}, got {got.dtype}{list(got.shape)}"
    alike = (got == right) | ((got != got) & (right != right))
    with np.errstate(all="ignore"):
        apart = np.abs(got.astype("f8") - right.astype("f8"))
        apart = np.where(alike, 0.0, np.where(np.isnan(apart), np.inf, apart))
    allowed = np.zeros(()) if doubt is None else MARGIN * doubt
    wrong = ~alike & ~(apart <= allowed)
    if not wrong.any():
        return ""
    worst = int(np.argmax(np.where(wrong, apart, -1.0)))
    place = tuple(map(int, np.unravel_index(worst, wrong.shape)))
    limit = float(np.broadcast_to(allowed, wrong.shape)[place])
    count = int(np.count_nonzero(wrong))
    return (
        f"the largest difference is {apart[place]:g} at {list(place)}, of {right[place]} and {got[place]}, "
        f"where rounding leaves {limit:g}; {count} of {wrong.size} elements differ"
    )
