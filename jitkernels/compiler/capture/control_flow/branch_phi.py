"""Phis of arrays at branches: a variable that holds another array on each side holds a new one after the branch.

The new array may alias one that others hold. Then it is neither written to nor returned, as the choice is unknown.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

from jitkernels.compiler.capture.array_proxy import Traced, fresh
from jitkernels.compiler.capture.control_flow import loop_phi
from jitkernels.compiler.capture.control_flow.loop_state import UNSET, describe_variable, kind_of
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.graph import Node
from jitkernels.core.frozen_dataclass import frozen_dataclass


class BranchMismatchError(UnsupportedError):
    """The sides of a branch give a variable values that code cannot select between."""


@frozen_dataclass
class ArrayPhi:
    """The arrays of one variable: `like` is an example, `values` has one value per side."""

    like: Traced
    values: tuple[Any, ...]

    def without(self, sides: Sequence[bool]) -> Self:
        """The same but for the sides on which nothing reads the variable any more."""
        values = (UNSET if is_dead else value for value, is_dead in zip(self.values, sides, strict=True))
        return replace(self, values=tuple(values))

    def zeros(self) -> Node:
        """The contents of the array before one side has written to it."""
        zero = builder.constant(0, self.like.node.dtype)
        return builder.broadcast_to(zero, self.like.extents)

    def result(self, tracer: Tracer, item: Node, before: Sequence[Any], start: int) -> Traced:
        """The array after the branch."""
        result = fresh(tracer, item)
        for value in self.values:
            if type(value) is not Traced:
                continue
            storage, is_view = value.view.storage, value.view.parent is not None
            result.view.storage.choices.append(storage)
            result.view.storage.views |= is_view
            for other in [*storage.may_aliases]:  # aliases of a side may alias the result
                result.view.storage.note_may_alias(other, is_whole=not (storage.views or is_view))
            if storage.born < start and not loop_phi.sole_owners([value], before)[0]:
                result.view.storage.note_may_alias(storage)
        return result


def merge_arrays(name: str, values: Sequence[Any], *, joins: bool) -> ArrayPhi:
    """The arrays of a variable. Raises BranchMismatchError where sides differ in dtype or shape, or hold no arrays.

    `joins`: nothing reads the variable where it is unbound.
    """
    arrays = [array for array in values if array is not UNSET]
    like, variable = arrays[0], describe_variable(name)
    if len(arrays) < len(values) and not joins:
        raise BranchMismatchError(f"{variable} has a value on one side of a branch only")
    for array in arrays:
        if type(array) is not Traced or kind_of(array) is not None or not array.ndim:
            other = f"is {_describe(arrays[-1])}" if len(arrays) == len(values) else "has no value"
            raise BranchMismatchError(
                f"{variable} is {_describe(like)} on one side of a branch and {other} on the other"
            )
    for array in arrays[1:]:
        pairs = list(zip(like.extents, array.extents, strict=False))
        is_same = like.ndim == array.ndim and all(symbolic_dims.same(a, b) or bool(a == b) for a, b in pairs)
        if array.dtype != like.dtype or not is_same:
            raise BranchMismatchError(
                f"{variable} is {_describe(like)} on one side of a branch and {_describe(array)} on the other"
            )
    if any(array.view.is_c() is not True for array in arrays):
        raise BranchMismatchError(f"{variable} is an array that is not C-contiguous")
    return ArrayPhi(like, tuple(values))


def _describe(value: Any) -> str:
    if type(value) is Traced and value.ndim:
        return f"an array of dtype {value.dtype} and shape ({', '.join(map(str, value.shape))})"
    return "None" if value is None else f"a {type(value).__name__}" if type(value) is not Traced else "a number"
