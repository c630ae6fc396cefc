"""numba's range whose rounds threads share, which its users write in loops; Python's where numba is not installed."""

from contextlib import suppress
from typing import Any

prange: Any = range
with suppress(ImportError):
    import numba

    prange = numba.prange
