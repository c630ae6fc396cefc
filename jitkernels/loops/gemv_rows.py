"""A matrix of long rows times a vector, two rows at a time.

The vector, which no first-level cache holds, is read half as often, and memory in two runs that do not compete for the
same places of the cache as four do.
"""

from collections.abc import Callable
from typing import Any

from jitkernels import dtypes
from jitkernels.native.source import inlined, offset

LONG_BYTES = 1 << 15
"""Of a row that with the vector is more than a first-level cache holds."""


def two_rows(dtype: str, scale: float) -> Callable[..., None]:
    """The body ``y = a @ x + scale * y``; with a scale of 0 nothing is read there."""
    number: Any = dtypes.named(dtype).numpy.type
    keeps, beta = scale != 0, number(scale)

    @inlined("reassoc", "contract")
    def products(a: Any, b: Any, x: Any, n: int) -> Any:
        one, other = number(0), number(0)
        for i in range(n):
            one += a[i] * x[i]
            other += b[i] * x[i]
        return one, other

    def body(a: Any, x: Any, y: Any, m: int, n: int, begin: int, end: int) -> None:
        for row in range(begin, end, 2):
            last = min(row + 1, end - 1)
            one, other = products(offset(a, row * n), offset(a, last * n), x, n)
            y[row] = one + beta * y[row] if keeps else one
            if last > row:
                y[last] = other + beta * y[last] if keeps else other

    return body
