"""The passes as objects of their own, of which a process builds those that the lengths it meets have.

LLVM takes as long for all of them as for all else of a transform, and a length has one to three. Kernels of all kinds
of transforms share them. They check before they write anything whether the passes of a length are there
(`requesting_of`), and request those that are not.
"""

import functools
from collections.abc import Mapping
from typing import Any

from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import External, inlined, noinline, offset
from jitkernels.core import dtypes
from jitkernels.microkernels.fft.any_radix import PassArrays, any_radix_of
from jitkernels.microkernels.fft.factors import FftLimits, last_radix, next_radix, smooth_length, steps_of
from jitkernels.microkernels.fft.pass_costs import transposes
from jitkernels.microkernels.fft.passes import PASS_RADICES, fft_pass
from jitkernels.microkernels.fft.plan import padded
from jitkernels.runtime.loading.lazy_link import LazyKernel, later

PASS_ALONG, PASS_LAST, PASS_BESIDE = "along", "last", "beside"
ANY_RADIX = 0
"""The key of the pass of any radix."""
BY_ROWS, BY_COLUMNS, BY_PAIRS = 1, 2, 4
"""The plans that transforms of a length may take, as a set: rows, columns, pairs of real columns."""


def pass_kernel(way: str, radix: int, dtype: str, lanes: int) -> RangeKernel:
    """The pass of a radix, ``(xr, xi, yr, yi, w, ido, l1)``."""
    run = fft_pass(way, radix, dtype, lanes)

    def body(xr: Any, xi: Any, yr: Any, yi: Any, w: Any, ido: int, l1: int, begin: int, end: int) -> int:
        run(xr, xi, yr, yi, w, ido, l1)
        return 0

    pointer = f"{dtypes.named(dtype).c}*"
    return RangeKernel(f"fft_{way}_{radix}", (*[pointer] * 5, "int64", "int64"), body, 6, flags=(), straight=True)


def any_radix_kernel(way: str, dtype: str, lanes: int) -> RangeKernel:
    """The pass of any radix, ``(source, target, roots, matrix, size, radix, ido, l1)``."""
    run = any_radix_of(dtype, lanes, way)

    def body(
        source: Any, target: Any, roots: Any, matrix: Any, size: int, radix: int, ido: int, l1: int,
        begin: int, end: int,
    ) -> int:  # fmt: skip
        run(PassArrays(source, target, size, roots, matrix), radix, ido, l1)
        return 0

    pointer = f"{dtypes.named(dtype).c}*"
    return RangeKernel(f"fft_{way}_any", (*[pointer] * 4, *["int64"] * 4), body, 7, flags=(), straight=True)


@functools.cache
def passes_of(way: str, dtype: str, lanes: int) -> Mapping[int, LazyKernel]:
    """The passes of one way by their radices."""
    radices = (*PASS_RADICES, *((16,) if way == PASS_LAST and lanes == 16 else ()))
    found = {radix: later(pass_kernel(way, radix, dtype, lanes)) for radix in radices}
    if way != PASS_LAST:
        found[ANY_RADIX] = later(any_radix_kernel(way, dtype, lanes))
    return found


def pass_links(dtype: str, lanes: int) -> tuple[External, ...]:
    """What code links to that calls passes."""
    return tuple(
        one.link for way in (PASS_ALONG, PASS_LAST, PASS_BESIDE) for one in passes_of(way, dtype, lanes).values()
    )


def passing_of(dtype: str, lanes: int, way: str) -> Any:
    """Return the function ``(radix, source, target, size, roots, ido, l1)`` that runs the pass of a radix."""
    passes = passes_of(way, dtype, lanes)
    p8, p4, p2, p3, p9, p5, p7, p11, p13 = (passes[radix].entry for radix in PASS_RADICES)
    p16 = passes[16 if 16 in passes else 8].entry
    any_radix = passes_of(PASS_ALONG if way == PASS_LAST else way, dtype, lanes)[ANY_RADIX].entry

    @inlined()
    def run(radix: int, source: Any, target: Any, size: int, roots: Any, ido: int, l1: int) -> None:
        xi, yi = offset(source, size), offset(target, size)
        if radix == 8:
            p8(source, xi, target, yi, roots, ido, l1)
        elif radix == 4:
            p4(source, xi, target, yi, roots, ido, l1)
        elif radix == 16:
            p16(source, xi, target, yi, roots, ido, l1)
        elif radix == 2:
            p2(source, xi, target, yi, roots, ido, l1)
        elif radix == 3:
            p3(source, xi, target, yi, roots, ido, l1)
        elif radix == 9:
            p9(source, xi, target, yi, roots, ido, l1)
        elif radix == 5:
            p5(source, xi, target, yi, roots, ido, l1)
        elif radix == 7:
            p7(source, xi, target, yi, roots, ido, l1)
        elif radix == 11:
            p11(source, xi, target, yi, roots, ido, l1)
        elif radix == 13:
            p13(source, xi, target, yi, roots, ido, l1)
        else:
            any_radix(source, target, roots, offset(roots, padded(2 * (radix - 1) * ido)), size, radix, ido, l1)

    return run


@functools.cache
def missing_pass_of(dtype: str, lanes: int, way: str) -> Any:
    """Return the function ``(radix)`` that requests the pass of a radix where it is not there."""
    passes = passes_of(way, dtype, lanes)
    m8, m4, m2, m3, m9, m5, m7, m11, m13 = (passes[radix].missing for radix in PASS_RADICES)
    m16 = passes[16 if 16 in passes else 8].missing
    any_radix = passes_of(PASS_ALONG if way == PASS_LAST else way, dtype, lanes)[ANY_RADIX].missing

    @noinline()
    def missing(radix: int) -> Any:
        status = 0
        if radix == 8:
            status = m8()
        elif radix == 4:
            status = m4()
        elif radix == 16:
            status = m16()
        elif radix == 2:
            status = m2()
        elif radix == 3:
            status = m3()
        elif radix == 9:
            status = m9()
        elif radix == 5:
            status = m5()
        elif radix == 7:
            status = m7()
        elif radix == 11:
            status = m11()
        elif radix == 13:
            status = m13()
        else:
            status = any_radix()
        return status

    return missing


@functools.cache
def requesting_of(dtype: str, limits: FftLimits) -> Any:
    """Return the function ``(length, plans)`` that requests the passes of these plans that are not there.

    It returns 0 where all are there.
    """
    lanes, one_step = limits.lanes, limits.one_step
    along, last, beside = (missing_pass_of(dtype, lanes, way) for way in (PASS_ALONG, PASS_LAST, PASS_BESIDE))

    @noinline()
    def in_one_step(length: int) -> int:
        final = last_radix(length, lanes)
        rest, ido, l1, status = length // final, length, 1, 0
        while ido > 1:
            radix = final
            if rest > 1:
                radix = next_radix(rest)
                rest = rest // radix
            ido = ido // radix
            status |= last(radix) if transposes(radix, ido, l1) else along(radix)
            l1 *= radix
        return status

    @noinline()
    def of_columns(length: int) -> Any:
        rest, status = length, 0
        while rest > 1:
            radix = next_radix(rest)
            rest = rest // radix
            status |= beside(radix)
        return status

    @noinline()
    def in_steps(length: int, most: int) -> Any:
        across = steps_of(length, most)
        return in_one_step(length) if across == 0 else of_columns(across) | of_columns(length // across)

    @noinline()
    def requested(length: int, plans: int) -> int:
        status = 0
        if plans & BY_ROWS:
            status |= in_steps(smooth_length(length, False), one_step)
        if plans & BY_COLUMNS:
            smooth = smooth_length(length, True)
            status |= of_columns(length) if smooth == length else in_steps(smooth, one_step)
        if plans & BY_PAIRS:
            status |= in_steps(length, 0)
        return status

    return requested
