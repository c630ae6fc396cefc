"""CDIST by numba."""

from typing import Any

from jitkernels.attrs.cdist import CDistAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.more.numba.numba_kernel import add, maximum, numba_kernel, real, sqrt, threads_along, usable


@implements(CDistAttr, can_be_used=usable, variants=threads_along("m"))
def cdist(attr: CDistAttr, parallel: bool = False) -> RangeKernel:
    is_dot, is_root = attr.metric == "dot", attr.metric == "euclidean"

    def products(x: Any, y: Any, z: Any, n: int, d: int, begin: int, end: int) -> None:
        for i in range(begin, end):
            own = real(0)
            for k in range(d):
                own = add(own, x[i * d + k] * x[i * d + k])
            for j in range(n):
                total, other = real(0), real(0)
                for k in range(d):
                    total = add(total, x[i * d + k] * y[j * d + k])
                    other = add(other, y[j * d + k] * y[j * d + k])
                if is_dot:
                    z[i * n + j] = total
                else:
                    z[i * n + j] = maximum(real(1) - total / sqrt(own) / sqrt(other), real(0))

    def distances(x: Any, y: Any, z: Any, n: int, d: int, begin: int, end: int) -> None:
        for i in range(begin, end):
            for j in range(n):
                total = real(0)
                for k in range(d):
                    apart = x[i * d + k] - y[j * d + k]
                    total = add(total, apart * apart)
                z[i * n + j] = sqrt(total) if is_root else total

    body = products if attr.metric in ("dot", "cosine") else distances
    return numba_kernel(attr, body, "m", parallel=parallel)
