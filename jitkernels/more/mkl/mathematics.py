"""MKL's vector mathematics (VML) in its high-accuracy mode, for range kernels to call.

The mode is an argument of each call (the ``vms`` functions), so that no state of the process changes: not the accuracy,
not the treatment of subnormal numbers, not the reaction to special values.
"""

from typing import Any

from jitkernels.codegen.source_protocol import inlined
from jitkernels.more.mkl.library import external

HIGH_ACCURACY, KEEP_SUBNORMAL, IGNORE_ERRORS = 0x2, 0x140000, 0x100
MODE = HIGH_ACCURACY | KEEP_SUBNORMAL | IGNORE_ERRORS


def vector_function(name: str, dtype: str) -> Any:
    """Return MKL's vector function with 64-bit lengths: (n, arrays..., mode)."""
    return external(f"vm{'s' if dtype == 'float32' else 'd'}{name}_64")


def exponential(dtype: str) -> Any:
    """`exp(x, y, n)`, in place if x is y; returns the status 0."""
    vector_exp = vector_function("Exp", dtype)

    @inlined()
    def exp(x: Any, y: Any, n: int) -> int:
        vector_exp(n, x, y, MODE)
        return 0

    return exp
