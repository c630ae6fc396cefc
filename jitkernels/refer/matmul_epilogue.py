"""NumPy reference of MATMUL_EPILOGUE."""

import numpy as np

from jitkernels.attrs.matmul_epilogue import MatMulEpilogueAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.compiler.ir import special_functions


@implements(MatMulEpilogueAttr)
def matmul_epilogue(attr: MatMulEpilogueAttr, a: AnyArray, b: AnyArray, *rest: AnyArray) -> None:
    *bias, c = rest
    with np.errstate(all="ignore"):
        z = (a.T if attr.trans_a else a) @ (b.T if attr.trans_b else b)
        if bias:
            z = z + bias[0]
        c[...] = special_functions.activate(attr.activation, z)
