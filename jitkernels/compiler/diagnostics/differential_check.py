"""Differential checking at negative levels: compare compiled results with NumPy's on the same graph."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.diagnostics import error_analysis
from jitkernels.compiler.diagnostics.error_analysis import ErrorBound, distance
from jitkernels.compiler.dispatch.specialization import Specialization
from jitkernels.errors import DifferenceError

ERROR_BOUND_FACTOR = 2.0
"""Multiples of the error bound above which a difference is a mistake; the bounds are estimates."""


class Check:
    """The expected results of one call by NumPy, computed before compiled code writes to the arguments."""

    def __init__(self, specialization: Specialization, leaves: Sequence[Any], values: Any) -> None:
        assert specialization.graph is not None, "compiled"
        self._specialization = specialization
        copies = [np.array(leaf) for leaf in (*leaves, *specialization.constants)]
        self._expected = error_analysis.run(specialization.graph, copies, values)

    def compare(self, arrays: Sequence[Any], leaves: Sequence[Any], names: Callable[[], Sequence[str]]) -> None:
        """Raise DifferenceError where an output or a written argument differs.

        `names` returns the names of the arguments.
        """
        written = [leaves[i] for i in self._specialization.written]
        for number, ((right, error_bound), got) in enumerate(zip(self._expected, [*arrays, *written], strict=True)):
            wrong = difference(np.asarray(got), np.asarray(right), error_bound)
            if not wrong:
                continue
            if number >= len(arrays):
                what = names()[self._specialization.written[number - len(arrays)]]
            else:
                what = "the result" if len(arrays) == 1 else f"result {number}"
            raise DifferenceError(f"{what} of compiled code is not NumPy's: {wrong}")


def difference(got: Any, right: Any, error_bound: ErrorBound) -> str:
    """What is wrong with an array; "" if it differs by no more than rounding."""
    if got.dtype != right.dtype or got.shape != right.shape:
        return f"expected {right.dtype}{list(right.shape)}, got {got.dtype}{list(got.shape)}"
    is_equal = (got == right) | ((got != got) & (right != right))
    with np.errstate(all="ignore"):
        apart = distance(got, right)
        apart = np.where(is_equal, 0.0, np.where(np.isnan(apart), np.inf, apart))
    allowed = np.zeros(()) if error_bound is None else ERROR_BOUND_FACTOR * error_bound
    wrong = ~is_equal & ~(apart <= allowed)
    if not wrong.any():
        return ""
    worst = int(np.argmax(np.where(wrong, apart, -1.0)))
    index = tuple(map(int, np.unravel_index(worst, wrong.shape)))
    limit = float(np.broadcast_to(allowed, wrong.shape)[index])
    count = int(np.count_nonzero(wrong))
    return (
        f"the largest difference is {apart[index]:g} at {list(index)}, of {right[index]} and {got[index]}, "
        f"where rounding leaves {limit:g}; {count} of {wrong.size} elements differ"
    )
