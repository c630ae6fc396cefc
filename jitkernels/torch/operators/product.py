"""Products of matrices, and what is added to them."""

from typing import Any

import numpy as np

from jitkernels.torch.array_values import like
from jitkernels.torch.aten_table import operator


@operator("mm.default", "bmm.default", "mv.default", "dot.default", "matmul.default")
def matmul(x: Any, y: Any) -> Any:
    return np.matmul(x, y)


def _scaled(x: Any, factor: Any) -> Any:
    return x if factor == 1 else x * like(factor, x)


@operator("addmm.default", "baddbmm.default", "addmv.default")
def addmm(addend: Any, x: Any, y: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    product = _scaled(np.matmul(x, y), alpha)
    return product if beta == 0 else product + _scaled(addend, beta)


@operator("addbmm.default")
def addbmm(addend: Any, x: Any, y: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    product = _scaled(np.sum(np.matmul(x, y), axis=0), alpha)
    return product if beta == 0 else product + _scaled(addend, beta)


@operator("_addmm_activation.default")
def addmm_activation(addend: Any, x: Any, y: Any, beta: Any = 1, alpha: Any = 1, use_gelu: bool = False) -> Any:
    from jitkernels.torch.operators.activation import gelu

    total = addmm(addend, x, y, beta, alpha)
    return gelu(total) if use_gelu else np.maximum(total, like(0, total))


@operator("linear.default")
def linear(x: Any, weight: Any, bias: Any = None) -> Any:
    product = np.matmul(x, np.transpose(weight))
    return product if bias is None else product + bias
