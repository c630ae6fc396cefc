"""SGD by numba: threads share columns, of which each takes the steps in their order."""

from typing import Any

from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.sgd import SgdAttr
from jitkernels.codegen.range_kernel import LoopNest
from jitkernels.gen.sgd import check
from jitkernels.more.numba.python_nest import python_nest, real, usable


@implements(SgdAttr, can_be_used=usable)
def sgd(attr: SgdAttr) -> LoopNest:
    def body(
        param: Any, grad: Any, rows: Any, out: Any, height: int, width: int, count: int, lr: Any, begin: int, end: int
    ) -> None:
        factor = real(lr[0])
        for i in range(height):
            for j in range(begin, end):
                out[i * width + j] = param[i * width + j]
        for s in range(count):
            row = rows[s]
            for j in range(begin, end):
                out[row * width + j] -= factor * grad[s * width + j]

    return python_nest(attr, body, "param_width", check=check, in_place=True)
