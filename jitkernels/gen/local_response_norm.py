"""Generated LOCAL_RESPONSE_NORM: the squares of a row between zeros, sums of their neighbours, a power, a quotient."""

from typing import Any, NamedTuple

import numpy as np

from jitkernels.attrs.local_response_norm import LocalResponseNormAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range, inlined, offset, written_by
from jitkernels.core import cpu_target
from jitkernels.microkernels.chunking import grain, threads
from jitkernels.microkernels.epilogue.bias_activation_row import ROW_ARGUMENTS, raised_row
from jitkernels.microkernels.gemm.gemm_arguments import ir_function
from jitkernels.microkernels.gemm.microkernel import element_size

THREAD_ELEMENTS = 8192
"""Least number of elements per thread."""


class Neighbours(NamedTuple):
    """The extents of a row, and the floats by address."""

    channels: int
    size: int
    alpha: Any
    beta: Any
    bias: Any


def variants(attr: LocalResponseNormAttr) -> list[Variant]:
    return threads(attr.rows // grain(attr.channels, THREAD_ELEMENTS))


@implements(LocalResponseNormAttr, variants=variants)
def local_response_norm(attr: LocalResponseNormAttr, parallel: bool = False) -> RangeKernel:
    signature, element_bytes = attr.signature(), element_size(attr.dtype)
    base_of_row, normalized_row = _base_of_row(attr.dtype), _normalized_row(attr.dtype)

    def needed(channels: int, size: int) -> Any:
        return (3 * channels + size) * element_bytes

    def body(x: Any, y: Any, e: Neighbours, workspace: Any, part: Range) -> None:
        c, base, exponents = (
            e.channels,
            offset(workspace, e.channels + e.size),
            offset(workspace, 2 * e.channels + e.size),
        )
        before = (e.size - 1) // 2
        for k in range(before):
            workspace[k] = 0
        for k in range(before + c, c + e.size - 1):
            workspace[k] = 0
        for k in range(c):
            exponents[k] = e.beta[0]
        for row in range(part.begin, part.end):
            base_of_row(offset(x, row * c), offset(workspace, before), workspace, e, base)
            normalized_row(offset(x, row * c), base, exponents, e, offset(y, row * c))

    return RangeKernel(
        f"local_response_norm_{attr.dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("rows"),
        block=grain(attr.channels, THREAD_ELEMENTS) if parallel else 1,
        parallel=parallel,
        workspace=needed,
        workspace_dtype=attr.dtype,
        flags=("contract",),
        vector_bytes=cpu_target.target().lanes(attr.dtype) * element_bytes,
        names=signature.names,
    )


def _base_of_row(dtype: str) -> Any:
    """Make the function that computes what is raised to a power."""
    number = np.dtype(dtype).type

    @inlined("contract")
    def base_of_row(x: Any, inside: Any, squares: Any, e: Neighbours, base: Any) -> None:
        factor, bias = number(e.alpha[0]) / number(e.size), number(e.bias[0])
        for k in range(e.channels):
            inside[k] = x[k] * x[k]
        if e.size == 5:
            for k in range(e.channels):
                sum_of_five = squares[k] + squares[k + 1] + squares[k + 2] + squares[k + 3] + squares[k + 4]
                base[k] = bias + factor * sum_of_five
        else:
            for k in range(e.channels):
                base[k] = squares[k]
            for i in range(1, e.size):
                for k in range(e.channels):
                    base[k] += squares[k + i]
            for k in range(e.channels):
                base[k] = bias + factor * base[k]

    return base_of_row


def _normalized_row(dtype: str) -> Any:
    """Make the function that divides by a power: by roots where these are it, which cost a tenth."""
    text = written_by(raised_row, "raised_row", dtype, cpu_target.target().lanes(dtype))
    raise_row = ir_function("raised_row", dtype, ROW_ARGUMENTS, text)

    @inlined("contract")
    def normalized_row(x: Any, base: Any, exponents: Any, e: Neighbours, y: Any) -> None:
        beta = e.beta[0]
        if beta == 0.75:
            for k in range(e.channels):
                root = np.sqrt(base[k])
                y[k] = x[k] / (root * np.sqrt(root))
        elif beta == 0.5:
            for k in range(e.channels):
                y[k] = x[k] / np.sqrt(base[k])
        else:
            if beta != 1.0:
                raise_row(base, exponents, e.channels)
            for k in range(e.channels):
                y[k] = x[k] / base[k]

    return normalized_row
