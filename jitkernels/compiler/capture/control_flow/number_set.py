"""``set`` of an array of numbers that only the compiled code knows, as a container of membership tests.

Many elements are sorted once, and a test is a binary search in them; few are compared one by one. Unions,
intersections and differences test both.
"""

import builtins
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.control_flow.loop_state import as_number
from jitkernels.compiler.capture.control_flow.trace_branch import select_value, truth
from jitkernels.compiler.capture.ints.int64_arithmetic import as_int
from jitkernels.compiler.capture.numpy.binary_search import position
from jitkernels.compiler.capture.numpy_namespace_proxy import CALLED
from jitkernels.compiler.capture.override_registry import TABLE
from jitkernels.compiler.capture.symint import SymInt
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir.builder import UnsupportedError, elementwise
from jitkernels.compiler.ir.symbolic_dims import is_loop_variant

MAX_SCANNED = 16
"""Elements up to which a test compares all of them: sorting a vector takes a microsecond."""


class NumberSet:
    """A set of numbers. `contains`: a function of a number, whose result says whether it is an element."""

    def __init__(self, tracer: Tracer, contains: Callable[[Any], Any]) -> None:
        self.tracer, self.contains = tracer, contains

    @classmethod
    def of(cls, elements: Traced) -> "NumberSet":
        """The set of the elements of a vector."""
        if elements.ndim != 1 or elements.dtype.kind not in "iuf":
            raise UnsupportedError("a set of the elements of an array of several dimensions, or of no numbers")
        tracer, extent = elements.tracer, elements.extents[0]
        are_few = not is_loop_variant(extent) and bool(extent <= MAX_SCANNED)  # guarded
        ordered: Any = elements.copy() if are_few else TABLE[np.sort](elements)

        def contains(value: Any) -> Any:
            number = _number(tracer, value)
            kinds = {"i" if dtype.kind in "iu" else dtype.kind for dtype in (number.dtype, ordered.dtype)}
            if len(kinds) > 1 or np.result_type(number.dtype, ordered.dtype).kind not in kinds | {"u"}:
                raise UnsupportedError("whether a number is in a set of numbers of another type")
            if are_few:
                found: Any = np.any(ordered == number)
                return as_number(tracer, found.node, bool)
            place = as_number(tracer, as_int(tracer, position(ordered, number, "left")), int)
            return select_value(
                tracer, place < ordered.shape[0], lambda: as_number(tracer, (ordered[place] == number).node, bool),
                lambda: False,
            )  # fmt: skip

        return cls(tracer, contains)

    def _combined(self, other: Any, operation: str, *, negates: bool = False) -> "NumberSet":
        if not isinstance(other, NumberSet):
            raise UnsupportedError("an operation of a set of an array and another object")
        tracer = self.tracer

        def contains(value: Any) -> Any:
            first, second = (truth(tracer, each.contains(value)) for each in (self, other))
            if negates:
                second = elementwise("logical_not", second)
            return as_number(tracer, elementwise(operation, first, second), bool)

        return NumberSet(tracer, contains)

    def __and__(self, other: Any) -> "NumberSet":
        return self._combined(other, "logical_and")

    def __or__(self, other: Any) -> "NumberSet":
        return self._combined(other, "logical_or")

    def __sub__(self, other: Any) -> "NumberSet":
        return self._combined(other, "logical_and", negates=True)

    def intersection(self, other: Any) -> "NumberSet":
        return self._combined(as_set(other), "logical_and")

    def union(self, other: Any) -> "NumberSet":
        return self._combined(as_set(other), "logical_or")

    def difference(self, other: Any) -> "NumberSet":
        return self._combined(as_set(other), "logical_and", negates=True)

    def __contains__(self, value: Any) -> bool:
        return bool(self.contains(value))

    def _reject(self, *_: Any) -> NoReturn:
        raise UnsupportedError("the elements of a set of an array: take np.unique")

    __len__ = __iter__ = __bool__ = __repr__ = __eq__ = _reject
    __hash__ = object.__hash__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise UnsupportedError(f"set.{name} of a set of an array: build an array of flags, or take np.unique")


def _number(tracer: Tracer, value: Any) -> Any:
    if type(value) is Traced and not value.ndim:
        return value
    if type(value) in (int, SymInt):
        return as_number(tracer, as_int(tracer, value), "int64")
    raise UnsupportedError("whether an object that is no number is in a set of an array")


def as_set(values: Any) -> Any:
    return NumberSet.of(values) if type(values) is Traced and values.ndim else values


def _constructor(kind: type) -> Callable[..., Any]:
    def make(*values: Any) -> Any:
        is_array = len(values) == 1 and type(values[0]) is Traced and values[0].ndim
        return NumberSet.of(values[0]) if is_array else kind(*values)

    return make


for _kind in (builtins.set, builtins.frozenset):
    CALLED[_kind] = _constructor(_kind)
