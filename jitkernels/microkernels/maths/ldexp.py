"""a * 2**n for float32 and float64, rounded once.

Without an instruction for it, the power is the product of up to three normal powers. Where the result is subnormal, all
but the last product stay normal, so that only the last one rounds.
"""

from typing import Any

from jitkernels.codegen.source_protocol import inlined, instruction
from jitkernels.microkernels.maths.formats import FloatFormat, for_both

MOST = 1000, 10000
"""Largest absolute exponents that count: the result is 0 or infinite long before."""


def _ldexp(form: FloatFormat, most: int) -> Any:
    number, integer, bits = form.number, form.integer, form.fraction_bits
    up_by, least = integer(form.bias), integer(1 - form.bias)
    down_by = integer(form.bias - 1 - bits - 1)  # the least exponent, with room for all digits
    up, down = number(2.0**form.bias), number(2.0 ** -(form.bias - bits - 2))

    @inlined()
    def nearer(a: Any, n: Any) -> Any:
        """An equivalent a and n, where 2**n is out of range."""
        scaled = a * up if n > up_by else a * down if n < least else a
        return scaled, n - up_by if n > up_by else n + down_by if n < least else n

    @instruction("ldexp")
    @inlined()
    def scaled(a: Any, n: Any) -> Any:
        """a * 2**n for every a and every n with abs(n) <= most."""
        if (n > up_by) | (n < least):
            a, n = nearer(a, n)
            a, n = nearer(a, n)
            n = min(max(n, least), up_by)
        return a * (n + up_by << bits).view(number)

    @inlined()
    def ldexp(a: Any, n: Any) -> Any:
        """a * 2**n for every a and every n."""
        return scaled(a, integer(min(max(n, -most), most)))

    return ldexp


ldexp_float32, ldexp_float64 = for_both(_ldexp, MOST)
