"""MKL's vector mathematics in its high-accuracy mode, for loop nests to call.

The mode is an argument of each call (the ``vms`` functions), so that nothing of the process changes: not
the accuracy, not the treatment of subnormal numbers, not the reaction to special values.
"""

from typing import Any

from jitkernels.more.mkl.library import external
from jitkernels.native.source import inlined

HIGH_ACCURACY, KEEP_SUBNORMAL, IGNORE_ERRORS = 0x2, 0x140000, 0x100
MODE = HIGH_ACCURACY | KEEP_SUBNORMAL | IGNORE_ERRORS


def vector_function(name: str, dtype: str, arrays: int) -> Any:
    """MKL's function of vectors, with 64-bit lengths: (n, arrays..., mode)."""
    letter, pointer = ("s", "float*") if dtype == "float32" else ("d", "double*")
    return external(f"vm{letter}{name}_64", "void", "int64", *[pointer] * arrays, "int64")


def exponential(dtype: str) -> Any:
    """`exp(x, y, n)`, in place if x is y; returns the status 0."""
    vector_exp = vector_function("Exp", dtype, 2)

    @inlined()
    def exp(x: Any, y: Any, n: int) -> int:
        vector_exp(n, x, y, MODE)
        return 0

    return exp
