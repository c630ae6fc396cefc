"""SGD by numba: threads share columns, of which each takes the steps in their order."""

from typing import Any

from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.sgd import SgdAttr
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.gen.sgd import check
from jitkernels.more.numba.numba_kernel import RowArguments, numba_kernel, real, usable


@implements(SgdAttr, can_be_used=usable)
def sgd(attr: SgdAttr) -> RangeKernel:
    def body(param: Any, grad: Any, rows: Any, out: Any, sizes: RowArguments, begin: int, end: int) -> None:
        factor = real(sizes.lr[0])
        for i in range(sizes.param_height):
            for j in range(begin, end):
                out[i * sizes.param_width + j] = param[i * sizes.param_width + j]
        for s in range(sizes.selected_rows_size):
            row = rows[s]
            for j in range(begin, end):
                out[row * sizes.param_width + j] -= factor * grad[s * sizes.param_width + j]

    return numba_kernel(attr, body, "param_width", check=check, in_place=True)
