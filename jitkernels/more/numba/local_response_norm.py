"""LOCAL_RESPONSE_NORM by numba: plain loops."""

from typing import Any

from jitkernels.attrs.local_response_norm import LocalResponseNormAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.more.numba.numba_kernel import RowArguments, ScalarFunction, numba_kernel, real, threads_along, usable

power = ScalarFunction("power", 2)


@implements(LocalResponseNormAttr, can_be_used=usable, variants=threads_along("rows"))
def local_response_norm(attr: LocalResponseNormAttr, parallel: bool = False) -> RangeKernel:
    def body(x: Any, y: Any, sizes: RowArguments, begin: int, end: int) -> None:
        factor = real(real(sizes.alpha[0]) / real(sizes.size))
        bias, exponent = real(sizes.bias[0]), real(sizes.beta[0])
        for row in range(begin, end):
            for j in range(sizes.channels):
                total = real(0)
                first = max(j - (sizes.size - 1) // 2, 0)
                for k in range(first, min(j + sizes.size // 2 + 1, sizes.channels)):
                    total += x[row * sizes.channels + k] * x[row * sizes.channels + k]
                at = row * sizes.channels + j
                y[at] = real(x[at] / power(real(bias + factor * total), exponent))

    return numba_kernel(attr, body, "rows", parallel=parallel)
