"""Maximum of a row, in a loop that LLVM vectorizes with every special value defined.

For floating-point comparisons, LLVM would need the promise that there is no NaN. The bits of a number, all but the sign
flipped where it is negative, are an integer of the same order, and the maximum of integers is one instruction. A
positive NaN is larger than infinity then, and a negative one smaller: it may be lost.
"""

from typing import Any

from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.maths.formats import FloatFormat, for_both


def _row_maximum(form: FloatFormat) -> Any:
    number, integer = form.number, form.integer
    sign_bit, rest = 8 * number().itemsize - 1, ~form.sign

    @inlined()
    def ordered(bits: Any) -> Any:
        """Map the bits of a float to an integer of the same order, and back."""
        return bits ^ (bits >> sign_bit & rest)

    @inlined()
    def row_maximum(x: Any, begin: int, end: int) -> Any:
        """Largest of x[begin:end]."""
        largest = ordered(x[begin].view(integer))
        for i in range(begin, end):
            value = ordered(x[i].view(integer))
            largest = value if value > largest else largest
        return ordered(largest).view(number)

    return row_maximum


row_maximum_float32, row_maximum_float64 = for_both(_row_maximum)
