"""Copy runs of elements from one dtype and stride to another: conversion to a kernel's form, and back.

Contiguous targets are written by whole vectors; strided sources are gathered first. The loops are in
`jitkernels.runtime.cast_copy`.
"""

# mypy: disable-error-code="name-defined,no-any-return,assignment,index"
from jitkernels.codegen.i64_intrinsics import address, stack


def copy_run(pair: int, target: int, target_stride: int, source: int, stride: int, count: int) -> int:
    """Copy elements at byte strides, possibly 0 or negative; a pair is ``4 * source + target`` (`cast_copy.pair`)."""
    form = address("jk_forms")[pair]
    if count < LANES or form >> 4 & 15 != target_stride:
        whole = 0
        if form & SAME and form & 12:
            whole = count & -NEIGHBOURS
            if whole:
                spread(form & 15, target, target_stride, source, stride, whole)
        return each(pair, target + whole * target_stride, target_stride, source + whole * stride, stride, count - whole)
    return copy_vectors(pair, target, target_stride, source, stride, count)


def copy_vectors(pair: int, target: int, target_stride: int, source: int, stride: int, count: int) -> int:
    """Copy many elements to a contiguous target."""
    form = address("jk_forms")[pair]
    item = form & 15
    whole = count & -LANES
    if stride == item:
        convert(pair, target, source, whole)
        if whole < count:
            rest = count - LANES  # overlaps the last vector, so that no remainder is left
            convert(pair, target + rest * target_stride, source + rest * item, LANES)
        return 0
    if form & SAME and stride == -item:
        turn(item, target, source, whole)
    elif form & SAME:
        gather(item, target, source, stride, whole, count)
    else:
        gathered = stack(RUN)
        done = 0
        while done < whole:
            run = min(whole - done, RUN)
            gather(item, gathered, source + done * stride, stride, run, count - done)
            convert(pair, target + done * target_stride, gathered, run)
            done += run
    return each(pair, target + whole * target_stride, target_stride, source + whole * stride, stride, count - whole)
