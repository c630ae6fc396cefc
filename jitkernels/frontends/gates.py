"""Calls that NumPy does sooner than Python could find their code: the plain function serves them, right for all.

Only calls that need Python come here: those with containers, ints or views among arguments and results. What a gate
lets pass depends on dtypes and sizes alone, so that equal calls give equal results.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels.frontends.specialisation import Specialisation

COST_OF_PYTHON = 35e-6
"""Seconds until compiled code that needs Python begins, about."""
COST_OF_OPERATION, COST_OF_ELEMENT = 0.6e-6, 1e-9
"""Seconds that NumPy takes for an operation, and for each of its elements."""


def is_small(found: Specialisation, leaves: Sequence[Any]) -> bool:
    """Whether NumPy has computed a graph before Python has begun to."""
    largest = max([one.size for one in leaves if type(one) is np.ndarray], default=1)
    return found.operations * (COST_OF_OPERATION + COST_OF_ELEMENT * largest) < COST_OF_PYTHON


class Gate:
    """By the dtype and dimensions of an array argument, the largest one with which calls are left to NumPy."""

    __slots__ = ("_limits", "_position", "is_open")

    def __init__(self) -> None:
        self.is_open = False
        self._position = 0
        self._limits: dict[tuple[Any, int], float] = {}

    def open(self, args: Sequence[Any], limit: float | None = None) -> None:
        """Let calls like this one pass; with arrays up to a limit, or no larger ones than here."""
        arrays = [i for i, one in enumerate(args) if type(one) is np.ndarray]
        if not arrays:
            return
        position = self._position if self.is_open else max(arrays, key=lambda i: args[i].size)
        if position not in arrays:
            return
        one = args[position]
        key = one.dtype, one.ndim
        self._limits[key] = max(self._limits.get(key, 0), one.size if limit is None else limit)
        self._position, self.is_open = position, True

    def lets_pass(self, args: Sequence[Any]) -> bool:
        """Whether a call is left to NumPy."""
        if len(args) <= self._position:
            return False
        one = args[self._position]
        return type(one) is np.ndarray and one.size <= self._limits.get((one.dtype, one.ndim), -1)
