"""Copy runs of elements from one dtype and stride to another: conversion to a kernel's form, and back.

Contiguous targets are written by whole vectors; strided sources are gathered first. The loops are in
`jitkernels.runtime.cast_copy`.
"""

# mypy: disable-error-code="name-defined,no-any-return,assignment,index"
from jitkernels.codegen.i64_intrinsics import address, stack
from jitkernels.runtime.abi_layout import RUN


def copy_run(pair: int, to: int, to_step: int, start: int, step: int, count: int) -> int:
    """Copy elements at byte strides, possibly 0 or negative; a pair is ``4 * source + target`` (`cast_copy.pair`)."""
    form = address("jk_forms")[pair]
    if count < LANES or form >> 4 & 15 != to_step:
        whole = 0
        if form & SAME and form & 12:
            whole = count & -NEIGHBOURS
            if whole:
                spread(form & 15, to, to_step, start, step, whole)
        return each(pair, to + whole * to_step, to_step, start + whole * step, step, count - whole)
    return in_vectors(pair, to, to_step, start, step, count)


def in_vectors(pair: int, to: int, to_step: int, start: int, step: int, count: int) -> int:
    """Copy many elements to a contiguous target."""
    form = address("jk_forms")[pair]
    item = form & 15
    whole = count & -LANES
    if step == item:
        convert(pair, to, start, whole)
        if whole < count:
            rest = count - LANES  # overlaps the last vector, so that no remainder is left
            convert(pair, to + rest * to_step, start + rest * item, LANES)
        return 0
    if form & SAME and step == -item:
        turn(item, to, start, whole)
    elif form & SAME:
        gather(item, to, start, step, whole, count)
    else:
        lying = stack(RUN)
        done = 0
        while done < whole:
            run = min(whole - done, RUN)
            gather(item, lying, start + done * step, step, run, count - done)
            convert(pair, to + done * to_step, lying, run)
            done += run
    return each(pair, to + whole * to_step, to_step, start + whole * step, step, count - whole)


FUNCTIONS = (copy_run, in_vectors)
