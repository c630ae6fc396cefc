"""Phases of the strides of a transposed convolution along one axis: which taps a pixel of the result meets, and where.

Pixel i of the result meets tap a at the pixel (i + pad - skip * a) / step of the image, where that is whole. Taps whose
numbers differ by a multiple of `apart` = step / gcd(step, skip) form a class, and each pixel meets those of at most
one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.convolution.extents import ConvolutionExtents


class StridedAxis(NamedTuple):
    """One axis: the extents of the result and the filters, stride, dilation, padding, and the number of classes."""

    results: int
    kernel: int
    step: int
    skip: int
    pad: int
    apart: int


class StridePhase(NamedTuple):
    """Pixels of the result from the `place`-th one of a band on: the `taps` that they meet, and where.

    The first of them meets the first tap at the pixel `start` of the image, the next taps `skip` pixels further on.
    `before`: the taps of all classes before.
    """

    place: int
    taps: int
    before: int
    skip: int
    start: int


class ImageRows(NamedTuple):
    """What some rows of the result read: pixel (top, left) of an image is the first one of `image`.

    `row` is the first of these rows in all images, `first` in its own one.
    """

    image: Any
    top: int
    left: int
    pitch: int
    row: int
    first: int
    rows: int


@inlined()
def classes(step: int, skip: int) -> int:
    """Return step / gcd(step, skip)."""
    a, b = step, skip
    while b > 0:
        rest = a % b
        a = b
        b = rest
    return step // a


@inlined()
def down_axis(e: ConvolutionExtents) -> Any:
    apart = classes(e.stride_height, e.dilation_height)
    return StridedAxis(e.out_height, e.kernel_height, e.stride_height, e.dilation_height, e.pad_top, apart)


@inlined()
def right_axis(e: ConvolutionExtents) -> Any:
    apart = classes(e.stride_width, e.dilation_width)
    return StridedAxis(e.out_width, e.kernel_width, e.stride_width, e.dilation_width, e.pad_left, apart)


@inlined()
def tap_reach(axis: StridedAxis) -> int:
    """Return how many pixels of the image lie before the one at a pixel's place, among those that it meets."""
    return axis.skip * (axis.kernel - 1) // axis.step


@inlined()
def first_neighbour(axis: StridedAxis) -> int:
    """Return the first pixel of the image that a pixel of the result meets, negative before the image."""
    return axis.pad // axis.step - tap_reach(axis)


@inlined()
def last_neighbour(axis: StridedAxis) -> int:
    """Return the last one, which may lie behind the image."""
    return (axis.results - 1 + axis.pad) // axis.step


@inlined()
def taps_of_class(axis: StridedAxis, first: int) -> int:
    """Return the number of taps in the class of the tap `first`."""
    return (axis.kernel - first + axis.apart - 1) // axis.apart


@inlined()
def phase_of(axis: StridedAxis, place: int, pixel: int) -> Any:
    """Return the phase of a pixel of the result, the `place`-th one of a band."""
    at, tap, before = pixel + axis.pad, 0, 0
    most = min(axis.apart, axis.kernel)
    while tap < most and (at - axis.skip * tap) % axis.step != 0:
        before += taps_of_class(axis, tap)
        tap += 1
    taps = taps_of_class(axis, tap) if tap < most else 0
    skip = axis.skip * axis.apart // axis.step
    return StridePhase(place, taps, before, skip, (at - axis.skip * tap) // axis.step - skip * (taps - 1))
