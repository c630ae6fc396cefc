"""Vector-Jacobian products of convolutions, as convolutions.

The gradient with respect to the images is a convolution of the gradient of the result with reversed filters. With
strides it is one for each phase of the pixels of an image: a phase meets the taps whose places differ from its own by
multiples of the stride.
"""

from collections.abc import Iterator, Mapping
from math import gcd
from typing import Any, NamedTuple

import numpy as np

from jitkernels.attrs.convolution import Conv2DAttr
from jitkernels.attrs.convolution_gradient import Conv2DBackwardWeightsAttr
from jitkernels.compiler.capture.kernels.vjp_registry import vjp_of
from jitkernels.compiler.ir import special_functions
from jitkernels.dispatch.operators import everyday

PARAMETERS = "stride", "padding", "dilation", "groups"
"""Options that a convolution shares with its gradients."""


class StridePhase(NamedTuple):
    """Pixels of an axis of the images, from `first` on by the stride, and the convolution that gives their gradients.

    It has `taps` of the filters, reversed, `dilation` apart, and padding `before` and `after`, which may be negative.
    """

    first: int
    taps: slice
    dilation: int
    before: Any
    after: Any


def expand_activation(attr: Any, function: Any, values: Mapping[str, Any]) -> Any:
    """The activation apart from the convolution."""
    if attr.activation == "identity":
        return None
    z = function(**{**values, "activation": "identity"})
    with np.errstate(all="ignore"):
        return special_functions.activate(attr.activation, z)


@vjp_of(Conv2DAttr, expand_activation)
def conv2d(attr: Any, dy: Any, x: Any, w: Any, *addends: Any) -> list[Any]:
    """The cotangents of images, filters, and of the bias and the residual where there are such."""
    options = {name: getattr(attr, name) for name in PARAMETERS}
    kernel = int(attr.kernel_height), int(attr.kernel_width)
    parts = [_images(attr, dy, w, x), everyday("conv2d_backward_weights")(x, dy, kernel, **options)]
    if attr.biased:
        parts.append(np.sum(dy, axis=tuple(range(dy.ndim - 1))))
    return parts + [dy] * (2 + len(addends) - len(parts))


@vjp_of(Conv2DBackwardWeightsAttr)
def conv2d_backward_weights(attr: Any, dw: Any, x: Any, dy: Any) -> list[Any]:
    """The cotangents of images and gradients: `dw` has the shape of filters."""
    options = {name: getattr(attr, name) for name in PARAMETERS}
    return [_images(attr, dy, dw, x), everyday("conv2d")(x, dw, **options)]


def _images(attr: Any, dy: Any, w: Any, x: Any) -> Any:
    """The cotangent of the images x of a convolution with the filters w."""
    down = [*_phases(0, attr.height, attr.out_height, int(attr.kernel_height), attr)]
    right = [*_phases(1, attr.width, attr.out_width, int(attr.kernel_width), attr)]
    if tuple(attr.stride) == (1, 1):
        return _of_phase(attr, dy, w, down[0], right[0])
    dx = np.zeros_like(x)
    for rows in down:
        for columns in right:
            part = _of_phase(attr, dy, w, rows, columns)
            dx[..., rows.first :: attr.stride[0], columns.first :: attr.stride[1], :] = part
    return dx


def _phases(axis: int, size: Any, count: Any, kernel: int, attr: Any) -> Iterator[StridePhase]:
    """The phases of an axis that meet any tap: a pixel i and a tap a meet in (i + before - dilation * a) / stride."""
    step, skip, (before, after) = attr.stride[axis], attr.dilation[axis], attr.padding[axis]
    if step == 1:
        yield StridePhase(0, slice(None), skip, skip * (kernel - 1) - before, skip * (kernel - 1) - after)
        return
    apart = step // gcd(step, skip)
    for first in range(min(step, int(size))):
        tap = next((a for a in range(min(apart, kernel)) if (first + before - skip * a) % step == 0), None)
        if tap is None:
            continue
        taps, dilation = len(range(tap, kernel, apart)), skip * apart // step
        lead = dilation * (taps - 1) - (first + before - skip * tap) // step
        pixels = len(range(first, int(size), step))
        yield StridePhase(first, slice(tap, None, apart), dilation, lead, pixels - count - lead + dilation * (taps - 1))


def _of_phase(attr: Any, dy: Any, w: Any, rows: StridePhase, columns: StridePhase) -> Any:
    """The cotangent of the pixels of a phase."""
    padding = []
    for axis, phase in ((-3, rows), (-2, columns)):
        before, after = int(phase.before), int(phase.after)
        inside = [slice(None)] * 3
        inside[axis] = slice(max(-before, 0), dy.shape[axis] - max(-after, 0))
        if min(before, after) < 0:
            dy = dy[..., inside[0], inside[1], inside[2]]
        padding.append((max(before, 0), max(after, 0)))
    taps = w[rows.taps, columns.taps][::-1, ::-1]
    high, wide, depth = taps.shape[0], taps.shape[1], attr.group_channels
    own = attr.filters // attr.groups
    transposed = np.transpose(np.reshape(taps, (high, wide, depth, attr.groups, own)), (0, 1, 4, 3, 2))
    filters = np.reshape(transposed, (high, wide, own, attr.channels))
    dilation = rows.dilation, columns.dilation
    return everyday("conv2d")(dy, filters, padding=tuple(padding), dilation=dilation, groups=attr.groups)
