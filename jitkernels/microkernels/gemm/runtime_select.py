"""GEMM that selects the algorithm by the extents of each call: small or skinny products in place, others packed.

A compiled function calls it with extents known only at run time, and a size class serves some skinny products. The
algorithms are objects of their own, so that a direct user of one shares it, and a compiled function loads only those
that its calls need. The thresholds were measured on AVX-512 (Zen 4).
"""

import functools
from dataclasses import replace
from functools import partial
from typing import Any

from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.codegen.range_kernel import LoopNest
from jitkernels.codegen.source_protocol import External, inlined
from jitkernels.core import cpu_target
from jitkernels.core.cpu_target import Target
from jitkernels.microkernels.epilogue.tile_consumer import call_consumer
from jitkernels.microkernels.gemm.direct_dynamic import direct_dynamic_nest
from jitkernels.microkernels.gemm.gemm_heuristics import PARALLEL_WORK, blocking
from jitkernels.microkernels.gemm.microkernel import element_size
from jitkernels.microkernels.gemm.packed_panels import LONG, is_same, matmul_arguments, packed_nest
from jitkernels.microkernels.gemm.row_bands import LOW, banded_nest
from jitkernels.microkernels.gemm.skinny import skinny_nest
from jitkernels.microkernels.gemv.gemv_autovectorized import autovectorized_nest
from jitkernels.microkernels.gemv.gemv_t_streaming import four_across
from jitkernels.microkernels.weight_only_quant.dot_emitter import STREAMED
from jitkernels.runtime.loading import lazy_link, loader

IN_CACHE = 65536
"""Elements of B up to which packing does not pay."""
ROW_BLOCK = 64
"""Half of the least number of columns per thread."""
TALL = 128
"""From so many rows on, half of a symmetric product by panels takes less time than all of it in place."""
SHARED_WORK = 96**3
"""Least multiply-adds of parallel execution: waking the threads of our pool takes a microsecond or two."""
MATRIX_BYTES, ROW_BYTES = 1 << 20, 1 << 10
"""Least bytes of a matrix that a single row is multiplied by, and of its rows, for which rows are read whole."""
ALONG = 24
"""From so many steps along k on, the horizontal sums of dot products cost little."""


def runtime_select_nest(
    attr: MatMulAttr,
    target: Target,
    *,
    parallel: bool = True,
    followed: bool = False,
    single_rows: bool = True,
    in_parts: bool = False,
) -> LoopNest:
    """Make the loop nest ``(a, b, c, m, n, k)``; a nest that is `followed` takes two more integers.

    `single_rows`: whether m may be 1. Otherwise the nest has no code for that, which takes as long to compile as all
    the rest. A nest that is `in_parts` has a check, which returns whether the part that the call needs is built
    (`jitkernels.runtime.loading.lazy_link`), and requests it otherwise.
    """
    dtype, lanes, trans_a, trans_b = attr.dtype, target.lanes(attr.dtype), attr.trans_a, attr.trans_b
    parts = _Parts(in_parts)
    packed, no_packed = parts.called(
        packed_nest(
            dtype, lanes, blocking(dtype, target), trans_a=trans_a, trans_b=trans_b, beta=attr.beta,
            split="rows", parallel=parallel, followed=followed,
        ),
        followed,
    )  # fmt: skip
    compact, no_compact = parts.called(direct_dynamic_nest(attr, target, parallel=parallel))
    of_few_columns, no_few_columns = parts.called(skinny_nest(attr, target, columns=True, parallel=parallel))
    # Few rows whose right operand is contiguous along n are read in place anyway.
    of_few_rows, no_few_rows = of_few_columns, no_few_columns
    if trans_b:
        of_few_rows, no_few_rows = parts.called(skinny_nest(attr, target, columns=False, parallel=parallel))
    mirrors = trans_a != trans_b and attr.beta == 0
    row_of_large, no_row_of_large = parts.called(large_row_nest(attr, parallel=parallel))
    banded, no_banded = packed, no_packed  # a transposed A can be split by columns only
    if not trans_a:
        banded, no_banded = parts.called(banded_nest(attr, target, parallel=parallel, followed=followed), followed)
    has_few_columns, has_few = few_columns_of(trans_a, trans_b), few_columns_of(not trans_b, not trans_a)

    least, long = (bytes_ // element_size(dtype) for bytes_ in (MATRIX_BYTES, ROW_BYTES))

    @inlined()
    def is_large_row(m: int, n: int, k: int) -> bool:
        return single_rows and not trans_b and m == 1 and n >= long and n * k >= least

    @inlined()
    def has_few_rows(m: int, n: int, k: int) -> bool:
        return trans_b and has_few(n, m, k)

    def body(a: Any, b: Any, c: Any, m: int, n: int, k: int, begin: int, end: int) -> Any:
        if is_large_row(m, n, k):
            return row_of_large(a, b, c, m, n, k)
        if has_few_columns(m, n, k):
            return of_few_columns(a, b, c, m, n, k)
        if has_few_rows(m, n, k):
            return of_few_rows(a, b, c, m, n, k)
        if is_small(m, n, k) and not (mirrors and m == n and m >= TALL and k >= LONG and is_same(a, b) != 0):
            return compact(a, b, c, m, n, k) if trans_a or m < LOW else banded(a, b, c, m, n, k)
        return packed(a, b, c, m, n, k)

    def with_row_callback(
        a: Any, b: Any, c: Any, m: int, n: int, k: int, after: int, context: int, begin: int, end: int
    ) -> Any:
        status = 0
        if is_large_row(m, n, k):
            status = row_of_large(a, b, c, m, n, k)
        elif has_few_columns(m, n, k):
            status = of_few_columns(a, b, c, m, n, k)
        elif has_few_rows(m, n, k):
            status = of_few_rows(a, b, c, m, n, k)
        elif is_small(m, n, k):
            if not trans_a and m >= LOW:
                return banded(a, b, c, m, n, k, after, context)
            status = compact(a, b, c, m, n, k)
        else:
            return packed(a, b, c, m, n, k, after, context)
        call_consumer(after, context, 0, m)
        return status

    @inlined()
    def lacking(m: int, n: int, k: int) -> Any:
        """Return what the body would return, if each part returned whether it is missing."""
        if is_large_row(m, n, k):
            return no_row_of_large()
        if has_few_columns(m, n, k):
            return no_few_columns()
        if has_few_rows(m, n, k):
            return no_few_rows()
        if is_small(m, n, k):
            if mirrors and m == n and m >= TALL and k >= LONG:  # whether the arrays are the same is unknown here
                return no_packed() | no_compact() | no_banded()
            return no_compact() if trans_a or m < LOW else no_banded()
        return no_packed()

    def check(a: Any, b: Any, c: Any, m: int, n: int, k: int) -> Any:
        return lacking(m, n, k)

    def check_followed(a: Any, b: Any, c: Any, m: int, n: int, k: int, after: int, context: int) -> Any:
        return lacking(m, n, k)

    checks = check_followed if followed else check
    return LoopNest(
        name="matmul_any_size_followed" if followed else "matmul_any_size",
        arguments=matmul_arguments(dtype, followed=followed),
        body=with_row_callback if followed else body,
        extent=3,
        vector_bytes=lanes * element_size(dtype),
        check=checks if in_parts else None,
        straight=True,
        calls=tuple(parts.links),
    )


def large_row_nest(attr: MatMulAttr, *, parallel: bool) -> LoopNest:
    """Make the loop nest ``(a, b, c, m, n, k)`` for a C of one row; threads split its columns."""
    across = inlined()(four_across(attr.dtype, attr.beta))
    nest = autovectorized_nest(replace(attr, m=1, n=2, k=2))
    in_cache, max_elements = loader.range_of(nest, nest.arguments), STREAMED // element_size(attr.dtype)

    def body(a: Any, b: Any, c: Any, m: int, n: int, k: int, begin: int, end: int) -> None:
        if n * k < max_elements:
            in_cache(a, b, c, 1, n, k, begin, end)
        else:
            across(b, a, c, n, k, begin, end)

    return LoopNest(
        name="matmul_large_row",
        arguments=matmul_arguments(attr.dtype),
        body=body,
        extent=4,
        block=ROW_BLOCK,
        parallel=parallel,
    )


def runtime_select_entry(
    attr: MatMulAttr, *, followed: bool = False, single_rows: bool = True, in_parts: bool = False
) -> External:
    """Return the nest as a callable function. It is cached: writing all that it calls takes milliseconds."""
    return _entry(replace(attr, m=1, n=1, k=1), cpu_target.target(), followed, single_rows, in_parts)


@functools.cache
def _entry(attr: MatMulAttr, target: Target, followed: bool, single_rows: bool, in_parts: bool) -> External:
    nest = runtime_select_nest(attr, target, followed=followed, single_rows=single_rows, in_parts=in_parts)
    entry: External = loader.entry_of(nest, nest.arguments)
    return entry


def runtime_select_check(entry: External) -> External:
    """Return the check of an entry that is `in_parts`: whether the parts that a call needs are built."""
    return External(f"{entry.symbol}_check", entry.result, entry.arguments, partial(_check, entry), entry.source)


def _check(entry: External) -> int:
    assert entry.source is not None
    name = f"{entry.symbol}_check"
    return loader.functions_of(entry.source(), (name,))[name]


class _Parts:
    """The nests to select from, built with the caller or, if they `are_later`, lazily by `links`."""

    def __init__(self, are_later: bool) -> None:
        self.are_later, self.links = are_later, list[External]()

    def called(self, nest: LoopNest, followed: bool = False) -> tuple[Any, Any]:
        """Return the function that calls a part, and the function that returns whether it is missing."""
        if not self.are_later:
            return _called(nest, loader.entry_of(nest, nest.arguments), followed), _nothing_missing
        link = lazy_link.later(nest)
        self.links.append(link.link)
        return _called(nest, link.entry, followed, link.part), link.missing


@inlined()
def _nothing_missing() -> int:
    return 0


def few_columns_of(trans_a: bool, trans_b: bool) -> Any:
    """Return the predicate (m, n, k) -> bool: C is best computed by the nest for few columns.

    For few rows, apply it to ``op(B).T @ op(A).T``.
    """

    @inlined()
    def fits(m: int, n: int, k: int) -> bool:
        if trans_a:
            # Vectors run along m; the few columns are read element by element.
            return n <= 8 and n < m and m >= 16 and k >= 32
        if trans_b:
            # Both operands are contiguous along k: nothing has to be transposed, where panels would have to be.
            return n <= m and k >= 12 and (n <= 8 or (n <= 24 and m <= 64 and k >= ALONG))
        # The few columns are transposed to be contiguous along k.
        return k >= ALONG and (n <= 4 and (m >= 8 or k >= 64) or n <= 6 and m >= 32)

    return fits


@inlined()
def is_small(m: int, n: int, k: int) -> bool:
    """Return whether packing costs more than it saves. Products of few rows are split by their columns."""
    if m <= LOW:
        return True
    return m * n * k < PARALLEL_WORK and (n <= LOW or k <= LOW or n * k <= IN_CACHE)


def _called(nest: LoopNest, entry: Any, followed: bool, part: Any = None) -> Any:
    """Wrap a nest as a function that loop nests call: single-threaded where there is little work."""
    if not nest.parallel:
        return entry
    part, of_rows = part or loader.range_of(nest, nest.arguments), nest.extent == 3

    @inlined()
    def plain(a: Any, b: Any, c: Any, m: int, n: int, k: int) -> Any:
        if m * n * k >= SHARED_WORK:
            return entry(a, b, c, m, n, k)
        return part(a, b, c, m, n, k, 0, m if of_rows else n)

    @inlined()
    def with_row_callback(a: Any, b: Any, c: Any, m: int, n: int, k: int, after: int, context: int) -> Any:
        if m * n * k >= SHARED_WORK:
            return entry(a, b, c, m, n, k, after, context)
        return part(a, b, c, m, n, k, after, context, 0, m if of_rows else n)

    return with_row_callback if followed else plain
