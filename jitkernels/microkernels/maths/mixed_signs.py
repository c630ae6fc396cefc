"""Comparisons of int64 with uint64, which have no common type: a negative number is less than any unsigned one."""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import inlined


@inlined()
def equal(a: Any, b: Any) -> Any:
    """Whether they are equal, a signed."""
    return (a >= 0) & (np.uint64(a) == b)


@inlined()
def not_equal(a: Any, b: Any) -> Any:
    """Whether they differ, a signed."""
    return (a < 0) | (np.uint64(a) != b)


@inlined()
def less(a: Any, b: Any) -> Any:
    """Whether a is less, a signed."""
    return (a < 0) | (np.uint64(a) < b)


@inlined()
def less_equal(a: Any, b: Any) -> Any:
    """Whether a is not greater, a signed."""
    return (a < 0) | (np.uint64(a) <= b)


@inlined()
def greater(a: Any, b: Any) -> Any:
    """Whether a is greater, a signed."""
    return (a >= 0) & (np.uint64(a) > b)


@inlined()
def greater_equal(a: Any, b: Any) -> Any:
    """Whether a is not less, a signed."""
    return (a >= 0) & (np.uint64(a) >= b)


@inlined()
def equal_to_signed(a: Any, b: Any) -> Any:
    return equal(b, a)


@inlined()
def not_equal_to_signed(a: Any, b: Any) -> Any:
    """Whether they differ, b signed."""
    return not_equal(b, a)


@inlined()
def less_than_signed(a: Any, b: Any) -> Any:
    return greater(b, a)


@inlined()
def less_equal_than_signed(a: Any, b: Any) -> Any:
    """Whether a is not greater, b signed."""
    return greater_equal(b, a)


@inlined()
def greater_than_signed(a: Any, b: Any) -> Any:
    return less(b, a)


@inlined()
def greater_equal_than_signed(a: Any, b: Any) -> Any:
    """Whether a is not less, b signed."""
    return less_equal(b, a)
