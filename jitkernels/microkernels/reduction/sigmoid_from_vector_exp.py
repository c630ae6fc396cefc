"""VSIGMOID around a vector exponential, of any library or kernel."""

from typing import Any

import numpy as np

from jitkernels.attrs.vector import VSigmoidAttr
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.microkernels.chunking import MIN_THREAD_ELEMENTS, PIECE, no_setup, no_teardown


def sigmoid_kernel(
    attr: VSigmoidAttr, exp: Any, enter: Any = no_setup, leave: Any = no_teardown, parallel: bool = False
) -> RangeKernel:
    """y = 1 / (1 + e) for x >= 0 and e / (1 + e) for x < 0, with e = exp(-|x|), which cannot overflow.

    The second form keeps the relative accuracy of e down to subnormal results. Neither needs a clamp.
    """
    number = np.dtype(attr.dtype).type
    zero, one = number(0), number(1)

    def body(x: Any, y: Any, n: int, workspace: Any, begin: int, end: int) -> int:
        status = 0
        token = enter()
        for first in range(begin, end, PIECE):
            count = min(PIECE, end - first)
            for i in range(count):
                workspace[i] = -abs(x[first + i])
            status = min(status, exp(workspace, workspace, count))
            for i in range(count):
                e = workspace[i]
                y[first + i] = (e if x[first + i] < zero else one) / (one + e)
        leave(token)
        return status

    signature = attr.signature()
    return RangeKernel(
        f"vsigmoid_{attr.dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("n"),
        block=MIN_THREAD_ELEMENTS,
        parallel=parallel,
        workspace=PIECE * np.dtype(attr.dtype).itemsize,
        workspace_dtype=attr.dtype,
        reads_first=True,
        flags=("contract",),
    )
