"""Arrays for the calls that measure pieces: the sizes at which users call these functions."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.patching.piece import Call

SHAPES = ((20, 5), (1000, 100), (20_000, 20))
"""A call that is all overhead, one in the cache, one of many short rows."""


def normal(shape: Sequence[int], dtype: Any = np.float64) -> AnyArray:
    """Normally distributed numbers."""
    numbers: AnyArray = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    return numbers


def blobs(samples: int, features: int, centers: int, dtype: Any = np.float64) -> AnyArray:
    """Points of normal distributions around random centers."""
    rng = np.random.default_rng(0)
    middles = rng.uniform(-10, 10, (centers, features))
    points: AnyArray = middles[rng.integers(centers, size=samples)] + rng.standard_normal((samples, features))
    return points.astype(dtype)


def calls_of(
    function: str, *further: Any, shapes: Sequence[Sequence[int]] = SHAPES, arrays: int = 1, **keywords: Any
) -> Iterator[Call]:
    """Calls of a function of `arrays` arrays, and the other arguments, in both precisions."""
    options = ", ".join([*map(str, further), *(f"{name}={value}" for name, value in keywords.items())])
    for dtype in (np.float32, np.float64):
        for shape in shapes:
            case = f"{np.dtype(dtype).name}, {' x '.join(map(str, shape))}{f', {options}' if options else ''}"
            x = normal(shape, dtype)
            yield Call(case, function, (*(x + i for i in range(arrays)), *further), keywords)
