"""Generated SGD: one pass checks the row numbers, then rows are updated in place.

Threads split columns, or rows of the parameters, and apply the steps to each in their order: the result is the same for
any number of threads, also for a row that occurs several times.
"""

from typing import Any, NamedTuple

import numpy as np

from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.attrs.sgd import SgdAttr
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import inlined, offset
from jitkernels.core import cpu_target
from jitkernels.microkernels.chunking import grain
from jitkernels.microkernels.gemm.packed_panels import is_same_address
from jitkernels.microkernels.range_kernel_of import range_kernel_of

SGD_THREAD_ELEMENTS = 32768
"""Least elements of gradients per thread."""


class SgdArrays(NamedTuple):
    """The arrays."""

    param: Any
    grad: Any
    rows: Any
    out: Any


class SgdExtents(NamedTuple):
    """The extents: of the parameters, and how many of their rows have gradients."""

    param_height: int
    param_width: int
    selected_rows_size: int


class KeptRows(NamedTuple):
    """Rows that stay as they are, top to bottom, and of each the elements left to right out of `width`."""

    top: int
    bottom: int
    left: int
    right: int
    width: int


def check(rows: Any, param_height: int, selected_rows_size: int) -> int:
    """Count the row numbers out of range; branch-free, so that LLVM vectorizes it."""
    wrong: int = 0
    for i in range(selected_rows_size):
        wrong += (rows[i] < 0) | (rows[i] >= param_height)
    return wrong


def variants(attr: SgdAttr) -> list[Variant]:
    widths = cpu_target.target().widths
    result: list[Variant] = [{"vector_bytes": width, "along": "param_width", "parallel": False} for width in widths]
    if attr.selected_rows_size * attr.param_width >= 4 * SGD_THREAD_ELEMENTS:
        for along in ("param_width", "param_height"):
            if getattr(attr, along) >= 4 * _block(attr, along):
                result += [{"vector_bytes": width, "along": along, "parallel": True} for width in widths]
    return result


def _block(attr: SgdAttr, along: str) -> int:
    """Return the least columns or rows per thread."""
    elements = attr.selected_rows_size * attr.param_width // max(getattr(attr, along), 1)
    least = 64 if along == "param_width" else 1  # no false sharing: threads write cache lines of their own
    return max(least, grain(elements, SGD_THREAD_ELEMENTS))


@implements(SgdAttr, variants=variants)
def sgd(attr: SgdAttr, vector_bytes: int = 64, along: str = "param_width", parallel: bool = False) -> RangeKernel:
    number: Any = np.dtype(attr.dtype).type
    by_columns = along == "param_width"

    @inlined()
    def copy(x: Any, y: Any, count: int) -> None:
        for j in range(count):
            y[j] = x[j]

    @inlined("contract")
    def step(x: Any, gradient: Any, y: Any, count: int, factor: Any) -> None:
        for j in range(count):
            y[j] = x[j] - factor * gradient[j]

    @inlined()
    def copy_rows(x: Any, y: Any, rows: KeptRows) -> None:
        if rows.right - rows.left == rows.width:  # one loop: rows may be short
            at = rows.top * rows.width
            copy(offset(x, at), offset(y, at), (rows.bottom - rows.top) * rows.width)
            return
        for row in range(rows.top, rows.bottom):
            at = row * rows.width + rows.left
            copy(offset(x, at), offset(y, at), rows.right - rows.left)

    def body(arrays: SgdArrays, extents: SgdExtents, lr: Any, begin: int, end: int) -> None:
        param, grad, rows, out = arrays.param, arrays.grad, arrays.rows, arrays.out
        height, width, count = extents.param_height, extents.param_width, extents.selected_rows_size
        factor = number(lr[0])
        top, bottom, left, right = (0, height, begin, end) if by_columns else (begin, end, 0, width)
        if count == 1:
            named = rows[0]
            if is_same_address(param, out) == 0:
                before, behind = min(max(named, top), bottom), min(max(named + 1, top), bottom)
                copy_rows(param, out, KeptRows(top, before, left, right, width))
                copy_rows(param, out, KeptRows(behind, bottom, left, right, width))
            if top <= named and named < bottom:
                at = named * width + left
                step(offset(param, at), offset(grad, left), offset(out, at), right - left, factor)
            return
        if is_same_address(param, out) == 0:
            copy_rows(param, out, KeptRows(top, bottom, left, right, width))
        for i in range(count):
            row = rows[i]
            if top <= row and row < bottom:
                own = offset(out, row * width + left)
                step(own, offset(grad, i * width + left), own, right - left, factor)

    return range_kernel_of(
        attr,
        f"sgd_{attr.dtype}",
        body,
        extent=along,
        block=_block(attr, along) if parallel else 1,
        parallel=parallel,
        vector_bytes=vector_bytes,
        reads_first=True,  # in place param is not read, otherwise it does not alias
        check=check,
        flags=("contract",),
    )
