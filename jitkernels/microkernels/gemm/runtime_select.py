"""Matrix multiply that chooses by the sizes of each call: what is small or thin is read in place, the rest is packed.

Code of a compiled function serves products of all sizes, and that of a class of sizes serves some that are thin. What
is chosen from are objects of their own, so that whoever wants one of them alone has it as well, and that a compiled
function gets those that its calls come to need. Where one ends and another begins was measured on AVX-512 (Zen 4).
"""

import functools
from dataclasses import replace
from functools import partial
from typing import Any

from jitkernels import machine
from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.loops.followed import call_after
from jitkernels.loops.gemv_columns import four_across
from jitkernels.loops.int4_writer import STREAMED
from jitkernels.loops.matmul_banded import LOW, banded_nest
from jitkernels.loops.matmul_compact import compact_nest
from jitkernels.loops.matmul_packed import LONG, is_same, matmul_arguments, packed_nest
from jitkernels.loops.matmul_plan import PARALLEL_WORK, blocking
from jitkernels.loops.matmul_thin import thin_nest
from jitkernels.loops.matmul_vector import vector_nest
from jitkernels.loops.tile import element_size
from jitkernels.machine import Target
from jitkernels.native import later, load
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import External, inlined

IN_CACHE = 65536
"""Elements of B that are too few to be packed."""
ROW_BLOCK = 64
"""Columns that a thread gets at least, twice."""
TALL = 128
"""Rows from which on half of a symmetric product by panels takes less than all of it in place."""
SHARED_WORK = 96**3
"""Work from which on threads share it: those of ours take a microsecond or two to come, if they are awake."""
MATRIX_BYTES, ROW_BYTES = 1 << 20, 1 << 10
"""Of a matrix that a single row is multiplied by, and of its rows: from which on these are read whole."""
ALONG = 24
"""Steps along k from which on adding up the lanes of dot products is little of them."""


def any_size_nest(
    attr: MatMulAttr,
    target: Target,
    *,
    parallel: bool = True,
    followed: bool = False,
    single_rows: bool = True,
    in_parts: bool = False,
) -> LoopNest:
    """Make the loop nest ``(a, b, c, m, n, k)``; one that is `followed` takes two more integers.

    `single_rows`: whether m may be 1. Else there is no code for that, which takes as long to make as for all the rest.
    One that is `in_parts` has a check, which says whether what it would call is built (`jitkernels.native.later`), and
    asks for it.
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
    compact, no_compact = parts.called(compact_nest(attr, target, parallel=parallel))
    of_few_columns, no_few_columns = parts.called(thin_nest(attr, target, columns=True, parallel=parallel))
    # Few rows, where a right factor lies across k, are what is read in place anyhow.
    of_few_rows, no_few_rows = of_few_columns, no_few_columns
    if trans_b:
        of_few_rows, no_few_rows = parts.called(thin_nest(attr, target, columns=False, parallel=parallel))
    mirrors = trans_a != trans_b and attr.beta == 0
    row_of_large, no_row_of_large = parts.called(large_row_nest(attr, parallel=parallel))
    banded, no_banded = packed, no_packed  # of a transposed A the columns alone can be shared out
    if not trans_a:
        banded, no_banded = parts.called(
            banded_nest(attr, target, parallel=parallel, followed=followed), followed
        )
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

    def handing_on(
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
        call_after(after, context, 0, m)
        return status

    @inlined()
    def lacking(m: int, n: int, k: int) -> Any:
        """What the body would return, if each part returned whether it is missing."""
        if is_large_row(m, n, k):
            return no_row_of_large()
        if has_few_columns(m, n, k):
            return no_few_columns()
        if has_few_rows(m, n, k):
            return no_few_rows()
        if is_small(m, n, k):
            if mirrors and m == n and m >= TALL and k >= LONG:  # arrays are not known here
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
        body=handing_on if followed else body,
        extent=3,
        vector_bytes=lanes * element_size(dtype),
        check=checks if in_parts else None,
        straight=True,
        calls=tuple(parts.links),
    )


def large_row_nest(attr: MatMulAttr, *, parallel: bool) -> LoopNest:
    """Make the loop nest ``(a, b, c, m, n, k)`` for a C of one row; threads share out its columns."""
    across = inlined()(four_across(attr.dtype, attr.beta))
    nest = vector_nest(replace(attr, m=1, n=2, k=2))
    in_cache, most = load.range_of(nest, nest.arguments), STREAMED // element_size(attr.dtype)

    def body(a: Any, b: Any, c: Any, m: int, n: int, k: int, begin: int, end: int) -> None:
        if n * k < most:
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


def any_size_entry(
    attr: MatMulAttr, *, followed: bool = False, single_rows: bool = True, in_parts: bool = False
) -> External:
    """The nest as a function that others call. It is kept: to write down all that it calls takes milliseconds."""
    return _entry(replace(attr, m=1, n=1, k=1), machine.target(), followed, single_rows, in_parts)


@functools.cache
def _entry(attr: MatMulAttr, target: Target, followed: bool, single_rows: bool, in_parts: bool) -> External:
    nest = any_size_nest(attr, target, followed=followed, single_rows=single_rows, in_parts=in_parts)
    found: External = load.entry_of(nest, nest.arguments)
    return found


def any_size_check(entry: External) -> External:
    """Of an entry that is `in_parts`, what says whether these are there that a call with its arguments needs."""
    return External(
        f"{entry.symbol}_check", entry.result, entry.arguments, partial(_check, entry), entry.source
    )


def _check(entry: External) -> int:
    assert entry.source is not None
    name = f"{entry.symbol}_check"
    return load.functions_of(entry.source(), (name,))[name]


class _Parts:
    """What a nest chooses from, built with it, or, if they `are_later`, when it is needed: by `links` then."""

    def __init__(self, are_later: bool) -> None:
        self.are_later, self.links = are_later, list[External]()

    def called(self, nest: LoopNest, followed: bool = False) -> tuple[Any, Any]:
        """The function that calls a part, and the one that says whether it is missing."""
        if not self.are_later:
            return _called(nest, load.entry_of(nest, nest.arguments), followed), _nothing_missing
        made = later.later(nest)
        self.links.append(made.link)
        return _called(nest, made.entry, followed, made.part), made.missing


@inlined()
def _nothing_missing() -> int:
    return 0


def few_columns_of(trans_a: bool, trans_b: bool) -> Any:
    """Whether a C is best computed as one of few columns: (m, n, k) to a bool.

    Of few rows it is what this says of ``op(B).T @ op(A).T``.
    """

    @inlined()
    def fits(m: int, n: int, k: int) -> bool:
        if trans_a:
            # Vectors run along m; the few are read one by one.
            return n <= 8 and n < m and m >= 16 and k >= 32
        if trans_b:
            # Both lie along k: nothing has to be turned, where panels would have to be.
            return n <= m and k >= 12 and (n <= 8 or (n <= 24 and m <= 64 and k >= ALONG))
        # The few columns are turned to lie along k.
        return k >= ALONG and (n <= 4 and (m >= 8 or k >= 64) or n <= 6 and m >= 32)

    return fits


@inlined()
def is_small(m: int, n: int, k: int) -> bool:
    """Whether packing the factors costs more than it brings. Few rows are shared out by their columns."""
    if m <= LOW:
        return True
    return m * n * k < PARALLEL_WORK and (n <= LOW or k <= LOW or n * k <= IN_CACHE)


def _called(nest: LoopNest, entry: Any, followed: bool, part: Any = None) -> Any:
    """A nest as a function that loop nests call: on one thread where there is little work."""
    if not nest.parallel:
        return entry
    part, of_rows = part or load.range_of(nest, nest.arguments), nest.extent == 3

    @inlined()
    def plain(a: Any, b: Any, c: Any, m: int, n: int, k: int) -> Any:
        if m * n * k >= SHARED_WORK:
            return entry(a, b, c, m, n, k)
        return part(a, b, c, m, n, k, 0, m if of_rows else n)

    @inlined()
    def handing_on(a: Any, b: Any, c: Any, m: int, n: int, k: int, after: int, context: int) -> Any:
        if m * n * k >= SHARED_WORK:
            return entry(a, b, c, m, n, k, after, context)
        return part(a, b, c, m, n, k, after, context, 0, m if of_rows else n)

    return handing_on if followed else plain
