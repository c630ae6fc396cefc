"""Elementwise kernels by MKL."""

from typing import Any

from jitkernels.attrs.vector import VectorAttr, VExpAttr, VMulAttr, VSigmoidAttr
from jitkernels.loops.pieces import BLOCK, vector_threads
from jitkernels.loops.sigmoid_by_exp import sigmoid_nest
from jitkernels.more.mkl.library import one_thread, set_threads, usable
from jitkernels.more.mkl.mathematics import MODE, exponential, vector_function
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import offset
from jitkernels.registry import implements


def _nest(attr: VectorAttr, body: Any, parallel: bool) -> LoopNest:
    signature = attr.signature()
    name = f"{attr.name}_{attr.dtype}"
    return LoopNest(
        name, signature.c_arguments, body, extent=signature.index("n"), block=BLOCK, parallel=parallel
    )


@implements(VMulAttr, can_be_used=usable, variants=vector_threads)
def vmul(attr: VMulAttr, parallel: bool = False) -> LoopNest:
    multiply = vector_function("Mul", attr.dtype, 3)

    def body(x: Any, y: Any, z: Any, n: int, begin: int, end: int) -> None:
        token = one_thread()
        multiply(end - begin, offset(x, begin), offset(y, begin), offset(z, begin), MODE)
        set_threads(token)

    return _nest(attr, body, parallel)


@implements(VExpAttr, can_be_used=usable, variants=vector_threads)
def vexp(attr: VExpAttr, parallel: bool = False) -> LoopNest:
    exp = exponential(attr.dtype)

    def body(x: Any, y: Any, n: int, begin: int, end: int) -> None:
        token = one_thread()
        exp(offset(x, begin), offset(y, begin), end - begin)
        set_threads(token)

    return _nest(attr, body, parallel)


@implements(VSigmoidAttr, can_be_used=usable, variants=vector_threads)
def vsigmoid(attr: VSigmoidAttr, parallel: bool = False) -> LoopNest:
    return sigmoid_nest(attr, exponential(attr.dtype), one_thread, set_threads, parallel)
