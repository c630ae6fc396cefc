"""SGD by numba: threads share columns, of which each takes the steps in their order."""

from typing import Any

from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.sgd import SgdAttr
from jitkernels.codegen.range_kernel import LoopNest
from jitkernels.gen.sgd import check
from jitkernels.more.numba.python_nest import RowArguments, python_nest, real, usable


@implements(SgdAttr, can_be_used=usable)
def sgd(attr: SgdAttr) -> LoopNest:
    def body(param: Any, grad: Any, rows: Any, out: Any, sizes: RowArguments, begin: int, end: int) -> None:
        factor = real(sizes.lr[0])
        for i in range(sizes.param_height):
            for j in range(begin, end):
                out[i * sizes.param_width + j] = param[i * sizes.param_width + j]
        for s in range(sizes.selected_rows_size):
            row = rows[s]
            for j in range(begin, end):
                out[row * sizes.param_width + j] -= factor * grad[s * sizes.param_width + j]

    return python_nest(attr, body, "param_width", check=check, in_place=True)
