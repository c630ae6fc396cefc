"""Elementwise kernels by MKL: a table from op schemas to functions of its vector mathematics."""

from typing import Any

from jitkernels.attrs import vector_arithmetic as arithmetic
from jitkernels.attrs import vector_functions as functions
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.vector import VectorAttr, VExpAttr, VMulAttr, VSigmoidAttr
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import offset
from jitkernels.microkernels.chunking import MIN_THREAD_ELEMENTS, vector_threads
from jitkernels.microkernels.reduction.sigmoid_from_vector_exp import sigmoid_kernel
from jitkernels.more.mkl.library import one_thread, set_threads, usable
from jitkernels.more.mkl.mathematics import MODE, exponential, vector_function

FUNCTIONS: dict[type[VectorAttr], str] = {
    VMulAttr: "Mul",
    VExpAttr: "Exp",
    arithmetic.VAddAttr: "Add",
    arithmetic.VSubAttr: "Sub",
    arithmetic.VSquareAttr: "Sqr",
    arithmetic.VSqrtAttr: "Sqrt",
    arithmetic.VRsqrtAttr: "InvSqrt",
    functions.VTanhAttr: "Tanh",
    functions.VLogAttr: "Ln",
    functions.VErfAttr: "Erf",
    functions.VSinAttr: "Sin",
    functions.VCosAttr: "Cos",
    functions.VPowAttr: "Pow",
}
"""MKL's function names by op schema."""


def _range_kernel(attr: VectorAttr, parallel: bool = False) -> RangeKernel:
    """Make the kernel that calls the function for each part of the vectors."""
    arrays = len(type(attr).arrays)
    function = vector_function(FUNCTIONS[type(attr)], attr.dtype)

    def unary(x: Any, y: Any, n: int, begin: int, end: int) -> None:
        token = one_thread()
        function(end - begin, offset(x, begin), offset(y, begin), MODE)
        set_threads(token)

    def binary(x: Any, y: Any, z: Any, n: int, begin: int, end: int) -> None:
        token = one_thread()
        function(end - begin, offset(x, begin), offset(y, begin), offset(z, begin), MODE)
        set_threads(token)

    signature = attr.signature()
    return RangeKernel(
        f"{attr.name}_{attr.dtype}",
        signature.c_arguments,
        unary if arrays == 2 else binary,
        extent=signature.index("n"),
        block=MIN_THREAD_ELEMENTS,
        parallel=parallel,
    )


for _schema in FUNCTIONS:
    implements(_schema, name="mkl", can_be_used=usable, variants=vector_threads)(_range_kernel)


@implements(VSigmoidAttr, can_be_used=usable, variants=vector_threads)
def vsigmoid(attr: VSigmoidAttr, parallel: bool = False) -> RangeKernel:
    return sigmoid_kernel(attr, exponential(attr.dtype), one_thread, set_threads, parallel)
