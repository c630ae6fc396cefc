"""Derivatives by central differences in float64, extrapolated by Richardson's rule: to 1e-9 of smooth functions."""

from typing import Any

import numpy as np

STEPS = 1e-3, 5e-4, 2.5e-4


def extrapolated(values: Any) -> Any:
    """What three differences, of a step, its half and its quarter, tend to: terms of order 2 and 4 cancel."""
    first, second, third = values
    return (64 * third - 20 * second + first) / 45


def along(function: Any, arrays: Any, directions: Any, wide: float = 1.0) -> Any:
    """How what a function of arrays gives changes along a direction of each; `wide` for differences of differences."""
    found = []
    for step in (one * wide for one in STEPS):
        ahead, behind = (
            function(*(np.array(x + sign * step * u) for x, u in zip(arrays, directions, strict=True)))
            for sign in (1, -1)
        )
        found.append((ahead - behind) / (2 * step))
    return extrapolated(found)


def gradient(function: Any, arrays: Any, number: int) -> Any:
    """The gradient of a function that gives a float, by one of its arguments."""
    found = np.zeros_like(arrays[number])
    for place in np.ndindex(found.shape):
        directions = [np.zeros_like(one) for one in arrays]
        directions[number][place] = 1.0
        found[place] = along(function, [one.copy() for one in arrays], directions)
    return found


def difference(function: Any, x: Any) -> Any:
    """The gradient of a function of one array that gives a float."""
    return gradient(function, [x], 0)


def agree(found: Any, expected: Any, most: float = 1e-6, about: Any = "") -> None:
    """Whether an array is another but for so much of its largest element, or of one where that is small."""
    __tracebackhide__ = True
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape, about
    scale = max(float(np.max(np.abs(expected), initial=0.0)), 1e-2)
    error = float(np.max(np.abs(found - expected), initial=0.0)) / scale
    assert error <= most, (about, error, found, expected)
