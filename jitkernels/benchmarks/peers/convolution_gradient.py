"""Peers of CONV2D_BACKWARD_WEIGHTS in NumPy and torch."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.convolution_gradient import Conv2DBackwardWeightsAttr
from jitkernels.attrs.schema.argument_binding import arguments_by_name
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import in_dtypes, in_layouts, values, with_outs
from jitkernels.benchmarks.peers.compiled import of_torch


@equivalent(Conv2DBackwardWeightsAttr)
def conv2d_backward_weights(*arguments: Any, out: Any = None, **named: Any) -> Any:
    """Call one matrix product per group, of windows that a view has."""
    given = arguments_by_name(Conv2DBackwardWeightsAttr, arguments, named)
    x, dy, padding, groups = (given[name] for name in ("x", "dy", "padding", "groups"))
    (high, wide), (down, along), (skip, over) = (
        np.broadcast_to(given[name], 2) for name in ("kernel", "stride", "dilation")
    )
    x, dy = np.asarray(x), np.asarray(dy)
    x, dy = x.reshape(-1, *x.shape[-3:]), dy.reshape(-1, *dy.shape[-3:])
    sides = padding if np.ndim(padding) == 2 else [(side, side) for side in np.broadcast_to(padding, 2)]
    padded = np.pad(x, ((0, 0), *sides, (0, 0)))
    covered = (high - 1) * skip + 1, (wide - 1) * over + 1
    windows = np.lib.stride_tricks.sliding_window_view(padded, covered, axis=(1, 2))
    windows = windows[:, ::down, ::along, :, ::skip, ::over]
    own, per = dy.shape[-1] // groups, x.shape[-1] // groups
    axes = ((0, 1, 2), (0, 1, 2))
    sums = [
        np.tensordot(windows[..., g * per : (g + 1) * per, :, :], dy[..., g * own : (g + 1) * own], axes)
        for g in range(groups)
    ]
    dw = np.concatenate(sums, axis=-1).transpose(1, 2, 0, 3)
    if out is None:
        return dw
    out[...] = dw
    return out


@peer(Conv2DBackwardWeightsAttr)
def numpy_backward_weights(attr: Conv2DBackwardWeightsAttr, x: AnyArray, dy: AnyArray, dw: AnyArray) -> Bound:
    own = {name: value for name, value in attr.fields().items() if name in attr.options}
    return partial(conv2d_backward_weights, x, dy, out=dw, **own)


@partial(of_torch, Conv2DBackwardWeightsAttr)
def torch_backward_weights(attr: Conv2DBackwardWeightsAttr, torch: Any, x: Any, dy: Any, dw: Any) -> Bound | None:
    """Use memory with channels last, as ours is; the result is copied from torch's order."""
    (top, bottom), (left, right) = attr.padding
    if top != bottom or left != right or not attr.pixels:
        return None
    images, gradients, filters = x.permute(0, 3, 1, 2), dy.permute(0, 3, 1, 2), dw.permute(3, 2, 0, 1)
    filters = filters.contiguous()  # torch's own loops take no other layout; the values are not used

    def call() -> None:
        _, weights, _ = torch.ops.aten.convolution_backward(
            gradients, images, filters, None, attr.stride, (top, left), attr.dilation, False, (0, 0), attr.groups,
            (False, True, False),
        )  # fmt: skip
        dw.copy_(weights.permute(2, 3, 1, 0))

    return partial(call)


@ordinary_calls(Conv2DBackwardWeightsAttr)
def gradients_of_layers(elements: int) -> Iterator[OrdinaryCall]:
    channels = 2 + elements % 7
    x, dy = values((2, 5, 6, channels)), values((2, 3, 5, 4))
    yield OrdinaryCall("plain", (x, dy, (3, 2)))
    yield OrdinaryCall("padded", (x, values((2, 5, 6, 4)), 3, 1, 1))
    yield OrdinaryCall("strides", (x, values((2, 2, 7, 4)), (3, 2)), {"stride": (2, 1), "padding": ((0, 1), (2, 0))})
    yield OrdinaryCall("dilated", (x, values((2, 5, 6, 4)), 3), {"dilation": 2, "padding": 2})
    yield OrdinaryCall("depthwise", (x, values((2, 3, 4, channels)), 3), {"groups": channels})
    yield OrdinaryCall("one image", (x[0], dy[0], (3, 2)))
    yield OrdinaryCall("no image", (x[:0], dy[:0], (3, 2)))
    yield from in_dtypes(x, dy, kernel=(3, 2))
    yield from in_layouts(x, dy, label="all {}", kernel=(3, 2))
    yield from with_outs((x, dy, (3, 2)), 7, np.zeros((3, 2, channels, 4), np.float32))
