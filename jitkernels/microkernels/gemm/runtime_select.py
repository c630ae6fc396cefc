"""GEMM that selects the algorithm by the extents of each call: small or skinny products in place, others packed.

A compiled function calls it with extents known only at run time, and a size class serves some skinny products. The
algorithms are objects of their own, so that a direct user of one shares it, and a compiled function loads only those
that its calls need.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import External, inlined
from jitkernels.core import cpu_target
from jitkernels.core.cpu_target import Target
from jitkernels.microkernels.epilogue.tile_consumer import call_consumer
from jitkernels.microkernels.gemm.direct_dynamic import direct_dynamic_kernel
from jitkernels.microkernels.gemm.gemm_arguments import NAMES, Consumer, GemmExtents, Operands, matmul_arguments
from jitkernels.microkernels.gemm.gemm_heuristics import blocking, few_columns_of, few_rows_of_large_matrix, is_small
from jitkernels.microkernels.gemm.microkernel import element_size
from jitkernels.microkernels.gemm.packed_panels import PackedGemm, is_same_address, packed_kernel
from jitkernels.microkernels.gemm.row_bands import banded_kernel
from jitkernels.microkernels.gemm.skinny import skinny_kernel
from jitkernels.microkernels.gemm.skinny_direct import large_matrix_kernel
from jitkernels.microkernels.gemm.thresholds import (
    FEW_ROWS,
    MIRROR_DEPTH,
    PACKED_ROWS,
    ROW_BYTES,
    ROW_MATRIX_BYTES,
    RUNTIME_PARALLEL_WORK,
    SYMMETRIC_ROWS,
)
from jitkernels.microkernels.gemv.gemv_autovectorized import autovectorized_kernel
from jitkernels.microkernels.gemv.gemv_t_streaming import gemv_t_body
from jitkernels.microkernels.weight_only_quant.dot_emitter import STREAMED
from jitkernels.runtime.loading import lazy_link, loader

ROW_BLOCK = 64
"""Half of the least number of columns per thread."""


class _Part(NamedTuple):
    """One algorithm: its function ``(operands, extents)``, and the function that returns whether it is missing."""

    call: Any
    missing: Any


class _Selected(NamedTuple):
    """The algorithms to select from; the functions of `packed` and `bands` take the consumer as well."""

    packed: _Part
    bands: _Part
    small: _Part
    few_columns: _Part
    few_rows: _Part
    large_row: _Part
    large_matrix: _Part


def runtime_select_kernel(
    attr: MatMulAttr,
    target: Target,
    *,
    parallel: bool = True,
    followed: bool = False,
    single_rows: bool = True,
    in_parts: bool = False,
) -> RangeKernel:
    """Make the range kernel ``(a, b, c, m, n, k)``; a kernel that is `followed` takes two more integers.

    `single_rows`: whether m may be 1. Otherwise the kernel has no code for that, which takes as long to compile as all
    the rest. A kernel that is `in_parts` has a check, which returns whether the part that the call needs is built
    (`jitkernels.runtime.loading.lazy_link`), and requests it otherwise.
    """
    return _selecting(attr, target, _Parts(in_parts), parallel, followed, single_rows)[0]


def _selecting(
    attr: MatMulAttr, target: Target, parts: "_Parts", parallel: bool, followed: bool, single_rows: bool
) -> "tuple[RangeKernel, Callable[..., Sequence[RangeKernel]]]":
    """The kernel, and a function of m, n and k that returns the parts that a call of these extents needs."""
    selected = _select(attr, target, parts, parallel=parallel, followed=followed)
    conditions = _conditions(attr, single_rows=single_rows)
    kernel = RangeKernel(
        name="matmul_any_size_followed" if followed else "matmul_any_size",
        arguments=matmul_arguments(attr.dtype, followed=followed),
        body=_body(attr, selected, conditions),
        extent=3,
        vector_bytes=target.lanes(attr.dtype) * element_size(attr.dtype),
        check=_check_parts(attr, selected, conditions) if parts.is_lazy else None,
        straight=True,
        calls=tuple(parts.links),
        names=NAMES,
    )
    return kernel, partial(_needed, attr, selected, conditions, parts)


def _needed(
    attr: MatMulAttr, selected: _Selected, conditions: "_Conditions", parts: "_Parts", m: int, n: int, k: int
) -> list[RangeKernel]:
    """The parts whose absence the check of a call would report."""
    found: list[RangeKernel] = []

    def noted(part: _Part) -> _Part:
        def missing() -> int:
            found.append(parts.kernels[part.missing])
            return 0

        return part._replace(missing=missing)

    _check_parts(attr, _Selected(*map(noted, selected)), conditions)(m, n, k)
    return found


def _select(attr: MatMulAttr, target: Target, parts: "_Parts", *, parallel: bool, followed: bool) -> _Selected:
    """Make the algorithms of an attr: few rows whose right operand is contiguous along n are read in place anyway."""
    lanes, blocks = target.lanes(attr.dtype), blocking(attr.dtype, target)
    gemm = PackedGemm(lanes, blocks, attr.dtype, attr.trans_a, attr.trans_b, attr.beta, split="rows")
    packed = parts.called(packed_kernel(gemm, parallel=parallel, followed=followed), consumed=True)
    small = parts.called(direct_dynamic_kernel(attr, target, parallel=parallel))
    few_columns = parts.called(skinny_kernel(attr, target, columns=True, parallel=parallel))
    few_rows = few_columns
    if attr.trans_b:
        few_rows = parts.called(skinny_kernel(attr, target, columns=False, parallel=parallel))
    large_row = parts.called(large_row_kernel(attr, parallel=parallel))
    large_matrix = large_row  # a transposed B is packed, or its rows are long runs along k
    if not attr.trans_b:
        large_matrix = parts.called(large_matrix_kernel(attr, target, parallel=parallel))
    bands = packed  # a transposed A can be split by columns only
    if not attr.trans_a:
        bands = parts.called(banded_kernel(attr, target, parallel=parallel, followed=followed), consumed=True)
    return _Selected(packed, bands, small, few_columns, few_rows, large_row, large_matrix)


class _Conditions(NamedTuple):
    """Predicates of (m, n, k), in the order in which they are evaluated."""

    is_large_row: Any
    has_few_columns: Any
    has_few_rows: Any
    is_large_matrix: Any


def _conditions(attr: MatMulAttr, *, single_rows: bool) -> _Conditions:
    trans_a, trans_b = attr.trans_a, attr.trans_b
    least, long = (bytes_ // element_size(attr.dtype) for bytes_ in (ROW_MATRIX_BYTES, ROW_BYTES))
    has_few = few_columns_of(not trans_b, not trans_a)

    @inlined()
    def is_large_row(m: int, n: int, k: int) -> bool:
        return single_rows and not trans_b and m == 1 and n >= long and n * k >= least

    @inlined()
    def has_few_rows(m: int, n: int, k: int) -> bool:
        return trans_b and has_few(n, m, k)

    is_large_matrix = few_rows_of_large_matrix(trans_b, attr.dtype, least=FEW_ROWS + 1)
    return _Conditions(is_large_row, few_columns_of(trans_a, trans_b), has_few_rows, is_large_matrix)


def _body(attr: MatMulAttr, selected: _Selected, conditions: _Conditions) -> Any:
    trans_a, mirrors = attr.trans_a, attr.trans_a != attr.trans_b and attr.beta == 0

    def body(operands: Operands, extents: GemmExtents, consumer: Consumer) -> Any:
        m, n, k, status = extents.m, extents.n, extents.k, 0
        if conditions.is_large_row(m, n, k):
            status = selected.large_row.call(operands, extents)
        elif conditions.has_few_columns(m, n, k):
            status = selected.few_columns.call(operands, extents)
        elif conditions.has_few_rows(m, n, k):
            status = selected.few_rows.call(operands, extents)
        elif conditions.is_large_matrix(m, n, k):
            status = selected.large_matrix.call(operands, extents)
        elif is_small(m, n, k) and not (
            consumer.after is None and mirrors and m == n and m >= SYMMETRIC_ROWS and k >= MIRROR_DEPTH
            and is_same_address(operands.a, operands.b) != 0
        ):  # fmt: skip
            if not trans_a and m >= PACKED_ROWS:
                return selected.bands.call(operands, extents, consumer)
            status = selected.small.call(operands, extents)
        else:
            return selected.packed.call(operands, extents, consumer)
        if consumer.after is not None:
            call_consumer(consumer.after, consumer.context, 0, m)
        return status

    return body


def _check_parts(attr: MatMulAttr, selected: _Selected, conditions: _Conditions) -> Any:
    """Make the check: what the body would return, if each part returned whether it is missing."""
    trans_a, mirrors = attr.trans_a, attr.trans_a != attr.trans_b and attr.beta == 0

    def check(m: int, n: int, k: int) -> Any:
        if conditions.is_large_row(m, n, k):
            return selected.large_row.missing()
        if conditions.has_few_columns(m, n, k):
            return selected.few_columns.missing()
        if conditions.has_few_rows(m, n, k):
            return selected.few_rows.missing()
        if conditions.is_large_matrix(m, n, k):
            return selected.large_matrix.missing()
        if is_small(m, n, k):
            if mirrors and m == n and m >= SYMMETRIC_ROWS and k >= MIRROR_DEPTH:
                # Whether the arrays are the same is unknown here.
                return selected.packed.missing() | selected.small.missing() | selected.bands.missing()
            return selected.small.missing() if trans_a or m < PACKED_ROWS else selected.bands.missing()
        return selected.packed.missing()

    return check


def large_row_kernel(attr: MatMulAttr, *, parallel: bool) -> RangeKernel:
    """Make the range kernel ``(a, b, c, m, n, k)`` for a C of one row; threads split its columns."""
    across = inlined()(gemv_t_body(attr.dtype, attr.beta))
    kernel = autovectorized_kernel(replace(attr, m=1, n=2, k=2))
    in_cache, max_elements = loader.range_of(kernel, kernel.arguments), STREAMED // element_size(attr.dtype)

    def body(a: Any, b: Any, c: Any, n: int, k: int, begin: int, end: int) -> None:
        if n * k < max_elements:
            in_cache(a, b, c, 1, n, k, begin, end)
        else:
            across(b, a, c, n, k, begin, end)

    return RangeKernel(
        name="matmul_large_row",
        arguments=matmul_arguments(attr.dtype),
        body=body,
        extent=4,
        block=ROW_BLOCK,
        parallel=parallel,
        names=NAMES,
    )


def runtime_select_entry(
    attr: MatMulAttr, *, followed: bool = False, single_rows: bool = True, in_parts: bool = False
) -> External:
    """Return the kernel as a callable function. It is cached: writing all that it calls takes milliseconds."""
    return _entry(replace(attr, m=1, n=1, k=1), cpu_target.target(), followed, single_rows, in_parts)


@functools.cache
def _entry(attr: MatMulAttr, target: Target, followed: bool, single_rows: bool, in_parts: bool) -> External:
    kernel, needed = _selecting(attr, target, _Parts(in_parts), True, followed, single_rows)
    entry: External = loader.entry_of(kernel, kernel.arguments)
    if in_parts:
        _needed_parts[entry.symbol] = needed
    return entry


_needed_parts: "dict[str, Callable[..., Sequence[RangeKernel]]]" = {}
"""For entries that are `in_parts`, by symbol: what returns the parts that a call needs."""


def parts_of_call(entry: External, m: int, n: int, k: int) -> Sequence[RangeKernel]:
    """The parts of an entry that is `in_parts` that a call with these extents needs."""
    return _needed_parts[entry.symbol](m, n, k)


def runtime_select_check(entry: External) -> External:
    """Return the check of an entry that is `in_parts`: whether the parts that a call needs are built."""
    return External(f"{entry.symbol}_check", entry.result, entry.arguments, partial(_check, entry), entry.source)


def _check(entry: External) -> int:
    assert entry.source is not None
    name = f"{entry.symbol}_check"
    return loader.functions_of(entry.source(), (name,))[name]


class _Parts:
    """The kernels to select from, built with the caller or, if they `is_lazy`, lazily by `links`."""

    def __init__(self, is_lazy: bool) -> None:
        self.is_lazy, self.links = is_lazy, list[External]()
        self.kernels: dict[Any, RangeKernel] = {}

    def called(self, kernel: RangeKernel, *, consumed: bool = False) -> _Part:
        """Return a part, whose results something may consume."""
        if not self.is_lazy:
            entry, part = loader.entry_of(kernel, kernel.arguments), loader.range_of(kernel, kernel.arguments)
            return _Part(_called(kernel, entry, part, consumed=consumed), _none_missing)
        link = lazy_link.later(kernel)
        self.links.append(link.link)
        self.kernels[link.missing] = kernel
        return _Part(_called(kernel, link.entry, link.part, consumed=consumed), link.missing)


@inlined()
def _none_missing() -> int:
    return 0


def _called(kernel: RangeKernel, entry: Any, part: Any, *, consumed: bool) -> Any:
    """Wrap a kernel as a function of structs that range kernels call: single-threaded where there is little work."""
    splits, of_rows = kernel.parallel, kernel.extent == 3

    @inlined()
    def alone(operands: Operands, extents: GemmExtents) -> Any:
        a, b, c, m, n, k = operands.a, operands.b, operands.c, extents.m, extents.n, extents.k
        if splits and m * n * k < RUNTIME_PARALLEL_WORK:
            return part(a, b, c, m, n, k, 0, m if of_rows else n)
        return entry(a, b, c, m, n, k)

    @inlined()
    def with_consumer(operands: Operands, extents: GemmExtents, consumer: Consumer) -> Any:
        a, b, c, m, n, k = operands.a, operands.b, operands.c, extents.m, extents.n, extents.k
        status = 0
        if consumer.after is None:
            status = alone(operands, extents)
        elif splits and m * n * k < RUNTIME_PARALLEL_WORK:
            status = part(a, b, c, m, n, k, consumer.after, consumer.context, 0, m if of_rows else n)
        else:
            status = entry(a, b, c, m, n, k, consumer.after, consumer.context)
        return status

    return with_consumer if consumed else alone
