"""Vector-Jacobian products of convolutions, as convolutions.

The gradient with respect to the images is a transposed convolution of the gradient of the result, and that of a
transposed convolution is a convolution.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from jitkernels.attrs.convolution import Conv2DAttr
from jitkernels.attrs.convolution_gradient import Conv2DBackwardWeightsAttr
from jitkernels.attrs.convolution_transpose import Conv2DTransposeAttr
from jitkernels.compiler.capture.kernels.vjp_registry import vjp_of
from jitkernels.compiler.ir import special_functions
from jitkernels.dispatch.operators import everyday

PARAMETERS = "stride", "padding", "dilation", "groups"
"""Options that a convolution shares with its gradients."""


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
    parts = [images_cotangent(dy, w, x, kernel, options), everyday("conv2d_backward_weights")(x, dy, kernel, **options)]
    if attr.biased:
        parts.append(np.sum(dy, axis=tuple(range(dy.ndim - 1))))
    return parts + [dy] * (2 + len(addends) - len(parts))


@vjp_of(Conv2DBackwardWeightsAttr)
def conv2d_backward_weights(attr: Any, dw: Any, x: Any, dy: Any) -> list[Any]:
    """The cotangents of images and gradients: `dw` has the shape of filters."""
    options = {name: getattr(attr, name) for name in PARAMETERS}
    kernel = int(attr.kernel_height), int(attr.kernel_width)
    return [images_cotangent(dy, dw, x, kernel, options), everyday("conv2d")(x, dw, **options)]


def images_cotangent(dy: Any, w: Any, x: Any, kernel: tuple[int, int], options: Mapping[str, Any]) -> Any:
    """The cotangent of the images x of a convolution with the filters w.

    Without strides it is a convolution with reversed filters, whose rows of few pixels share tiles.
    """
    stride, padding, dilation, groups = (options[name] for name in PARAMETERS)
    filters, sizes = exchanged(w, groups), x.shape[-3:-1]
    reach = [skip * (extent - 1) + 1 for skip, extent in zip(dilation, kernel, strict=True)]
    sides = [(most - 1 - low, most - 1 - high) for most, (low, high) in zip(reach, padding, strict=True)]
    shared = {"dilation": dilation, "groups": groups}
    if tuple(stride) == (1, 1) and min(map(min, sides)) >= 0:
        return everyday("conv2d")(dy, filters[::-1, ::-1], padding=tuple(sides), **shared)
    missing = [
        int(size + low + high - most) % step
        for size, (low, high), most, step in zip(sizes, padding, reach, stride, strict=True)
    ]
    return everyday("conv2d_transpose")(dy, filters, output_padding=tuple(missing), **options)


def exchanged(w: Any, groups: int) -> Any:
    """Filters with the channels and the filters of each group exchanged."""
    high, wide, depth, filters = w.shape
    own = filters // groups
    transposed = np.transpose(np.reshape(w, (high, wide, depth, groups, own)), (0, 1, 4, 3, 2))
    return np.reshape(transposed, (high, wide, own, groups * depth))


@vjp_of(Conv2DTransposeAttr, expand_activation)
def conv2d_transpose(attr: Any, dy: Any, x: Any, w: Any, *bias: Any) -> list[Any]:
    """The cotangents of images, filters, and of the bias where there is one: `dy` is what a convolution sees.

    Behind the last pixel that it sees `output_padding` may have more than a stride, which no pixel of x reaches.
    """
    options = {name: getattr(attr, name) for name in PARAMETERS}
    kernel = int(attr.kernel_height), int(attr.kernel_width)
    seen = dy
    for axis, more in enumerate(attr.output_padding):
        extra = more // attr.stride[axis] * attr.stride[axis]
        if extra:
            inside = slice(0, dy.shape[axis - 3] - extra)
            seen = seen[..., inside, :, :] if axis == 0 else seen[..., inside, :]
    dx = everyday("conv2d")(seen, exchanged(w, attr.groups), **options)
    dw = exchanged(everyday("conv2d_backward_weights")(seen, x, kernel, **options), attr.groups)
    return [dx, dw, *(np.sum(dy, axis=tuple(range(dy.ndim - 1))) for _ in bias)]
