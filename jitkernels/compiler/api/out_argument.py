"""The ``out`` argument: copies results into the caller's arrays."""

from typing import Any

import numpy as np

from jitkernels.errors import ArgumentError, ArgumentTypeError, shown


def copied_to(out: Any, result: Any) -> Any:
    """Copy results to `out` and return it; the result itself for None.

    Raises ArgumentError or ArgumentTypeError where they do not fit.
    """
    if out is None:
        return result
    several = isinstance(out, tuple)
    outs, results = (out, result) if several else ((out,), (result,))
    if several and (not isinstance(result, tuple | list) or len(result) != len(out)):
        raise ArgumentError(f"out: expected as many arrays as there are results, got {len(out)}")
    for target, value in zip(outs, results, strict=True):
        if not isinstance(target, np.ndarray):
            raise ArgumentTypeError(f"out: expected an array or a tuple of arrays, got {shown(target)}")
        if target.shape != np.shape(value):
            raise ArgumentError(f"out: expected an array of shape {np.shape(value)}, got one of shape {target.shape}")
        if isinstance(value, np.ndarray | np.generic) and not np.can_cast(value.dtype, target.dtype, "same_kind"):
            raise ArgumentTypeError(f"out: expected an array that takes {value.dtype}, got one of dtype {target.dtype}")
        if not target.flags.writeable:
            raise ArgumentError("out: expected an array that can be written to, got one that is read-only")
    for target, value in zip(outs, results, strict=True):
        np.copyto(target, value, casting="same_kind")
    return out
