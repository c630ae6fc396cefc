"""Derivatives by central differences in float64 with Richardson extrapolation, accurate to 1e-9 if smooth."""

from typing import Any

import numpy as np

STEPS = 1e-3, 5e-4, 2.5e-4


def extrapolated(values: Any) -> Any:
    """Extrapolate differences with a step, its half and its quarter: the error terms of order 2 and 4 cancel."""
    first, second, third = values
    return (64 * third - 20 * second + first) / 45


def along(function: Any, arrays: Any, directions: Any, wide: float = 1.0) -> Any:
    """Return the directional derivative of a function of arrays; `wide`: a larger step, for second differences."""
    derivatives = []
    for step in (step_size * wide for step_size in STEPS):
        ahead, behind = (
            function(*(np.array(x + sign * step * u) for x, u in zip(arrays, directions, strict=True)))
            for sign in (1, -1)
        )
        derivatives.append((ahead - behind) / (2 * step))
    return extrapolated(derivatives)


def gradient(function: Any, arrays: Any, number: int) -> Any:
    """Return the gradient of a float function by one of its arguments."""
    result = np.zeros_like(arrays[number])
    for index in np.ndindex(result.shape):
        directions = [np.zeros_like(array) for array in arrays]
        directions[number][index] = 1.0
        result[index] = along(function, [array.copy() for array in arrays], directions)
    return result


def difference(function: Any, x: Any) -> Any:
    """Return the gradient of a float function of one array."""
    return gradient(function, [x], 0)


def agree(actual: Any, expected: Any, most: float = 1e-6, about: Any = "") -> None:
    """Require arrays to be equal up to a share of the largest element, or of one if that is small."""
    __tracebackhide__ = True
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, about
    scale = max(float(np.max(np.abs(expected), initial=0.0)), 1e-2)
    error = float(np.max(np.abs(actual - expected), initial=0.0)) / scale
    assert error <= most, (about, error, actual, expected)
