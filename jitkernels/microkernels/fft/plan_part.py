"""Planning as an object of its own, which the transforms of a dtype share: it is half of their code.

So they share plans as well: a forward transform and its inverse of one length have the same tables.
"""

import functools
from typing import Any, NamedTuple

from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import IRFunction, inlined
from jitkernels.core import dtypes, hooks
from jitkernels.microkernels.fft.factors import FftLimits
from jitkernels.microkernels.fft.pass_parts import pass_links, requesting_of
from jitkernels.microkernels.fft.plan import keep_plan, planning_of
from jitkernels.microkernels.fft.plan_cache import is_checked, no_words, note_checked
from jitkernels.runtime.loading import loader

MAX_KEPT_BYTES = 1 << 28
"""The most that the tables of all plans of a dtype take between calls: those of a prime of four millions."""
TAKE, KEEP, REQUEST = range(3)
"""What a call of the object does."""

number_of_words = IRFunction(
    "fft_number_of_words",
    "int64",
    ("int64_t*",),
    """define i64 @fft_number_of_words(ptr %words) alwaysinline nounwind {
  %number = ptrtoint ptr %words to i64
  ret i64 %number
}
""",
)
words_of_number = IRFunction(
    "fft_words_of_number",
    "int64_t*",
    ("int64",),
    """define ptr @fft_words_of_number(i64 %number) alwaysinline nounwind {
  %words = inttoptr i64 %number to ptr
  ret ptr %words
}
""",
)


class PlanFunctions(NamedTuple):
    """``take(n, kind)``: a plan, or null; ``keep(words)``: put it back; ``missing(length, plans)``: `requesting_of`."""

    take: Any
    keep: Any
    missing: Any


@functools.cache
def plan_kernel(dtype: str, limits: FftLimits) -> RangeKernel:
    """The object, ``(words, operation, n, kind, once)``: `once` is 1."""
    take, limit = planning_of(dtype, limits), MAX_KEPT_BYTES // dtypes.named(dtype).size
    requested = requesting_of(dtype, limits)

    def body(words: Any, operation: int, n: int, kind: int, once: int, begin: int, end: int) -> Any:
        if operation == REQUEST:
            return requested(n, kind)
        if operation == TAKE:
            return number_of_words(take(n, kind))
        keep_plan(words, limit)
        return 0

    return RangeKernel(
        f"fft_plan_{dtype}",
        ("int64_t*", *["int64"] * 4),
        body,
        4,
        flags=(),
        straight=True,
        calls=(*pass_links(dtype, limits.lanes), *hooks.pooled_memory()),
    )


@functools.cache
def plan_functions_of(dtype: str, limits: FftLimits) -> PlanFunctions:
    """The functions of a dtype, for transforms to call."""
    kernel, requested = plan_kernel(dtype, limits), requesting_of(dtype, limits)
    call = loader.entry_of(kernel, kernel.arguments, python=lambda _, __, length, plans, ___: requested(length, plans))

    @inlined()
    def take(n: int, kind: int) -> Any:
        return words_of_number(call(no_words(), TAKE, n, kind, 1))

    @inlined()
    def keep(words: Any) -> None:
        call(words, KEEP, 0, 0, 1)

    @inlined()
    def missing(length: int, plans: int) -> int:
        key = 8 * length + plans
        status = 0
        if is_checked(key) == 0:
            status = call(no_words(), REQUEST, length, plans, 1)
            if status == 0:
                note_checked(key)
        return status

    return PlanFunctions(take, keep, missing)
