"""numba's parallel range, which its users write in loops; Python's range if numba is not installed."""

from contextlib import suppress
from typing import Any

prange: Any = range
with suppress(ImportError):
    import numba

    prange = numba.prange
