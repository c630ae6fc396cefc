"""Peers of CONV2D_TRANSPOSE and CONV2D_TRANSPOSE_PACKED in NumPy and torch."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.convolution_transpose import Conv2DTransposeAttr, Conv2DTransposePackedAttr
from jitkernels.attrs.schema.argument_binding import arguments_by_name
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import in_dtypes, in_layouts, values, with_outs
from jitkernels.benchmarks.peers.compiled import of_torch
from jitkernels.benchmarks.peers.matmul_epilogue import matmul_epilogue


@equivalent(Conv2DTransposeAttr)
def conv2d_transpose(*arguments: Any, out: Any = None, **named: Any) -> Any:
    """Add one matrix product per group and tap to every stride-th pixel."""
    return _transposed(arguments_by_name(Conv2DTransposeAttr, arguments, named), out)


def _transposed(given: dict[str, Any], out: Any) -> Any:
    x, w, padding, groups = (given[name] for name in ("x", "w", "padding", "groups"))
    pairs = [np.broadcast_to(given[name], 2) for name in ("stride", "dilation", "output_padding")]
    (down, along), (skip, over), more = pairs
    x, w = np.asarray(x), np.asarray(w)
    sides = padding if np.ndim(padding) == 2 else [(side, side) for side in np.broadcast_to(padding, 2)]
    (high, wide), (kernel_high, kernel_wide) = x.shape[-3:-1], w.shape[:2]
    whole = (
        down * (high - 1) + skip * (kernel_high - 1) + 1 + more[0],
        along * (wide - 1) + over * (kernel_wide - 1) + 1 + more[1],
    )
    z = np.zeros((*x.shape[:-3], *whole, w.shape[3]), np.result_type(x, w))
    own, per = w.shape[3] // groups, x.shape[-1] // groups
    for a in range(kernel_high):
        for b in range(kernel_wide):
            rows = slice(skip * a, skip * a + down * (high - 1) + 1, down)
            columns = slice(over * b, over * b + along * (wide - 1) + 1, along)
            for g in range(groups):
                filters = slice(g * own, (g + 1) * own)
                z[..., rows, columns, filters] += x[..., g * per : (g + 1) * per] @ w[a, b, :, filters]
    (top, bottom), (left, right) = sides
    z = z[..., top : whole[0] - bottom, left : whole[1] - right, :]
    return matmul_epilogue(z, np.eye(z.shape[-1], dtype=z.dtype), given["bias"], given["activation"], out)


@peer(Conv2DTransposeAttr)
def numpy_transposed_convolution(attr: Conv2DTransposeAttr, x: AnyArray, w: AnyArray, *rest: AnyArray) -> Bound:
    bias, y = _bias(attr, rest)
    own = {name: value for name, value in attr.fields().items() if name in Conv2DTransposeAttr.options}
    return partial(conv2d_transpose, x, w, bias, out=y, **own)


def _bias(attr: Conv2DTransposeAttr, rest: Sequence[Any]) -> tuple[Any, Any]:
    """The bias and the result, of the arguments behind the filters."""
    return (rest[0] if attr.biased else None), rest[-1]


def torch_transposed_convolution(attr: Conv2DTransposeAttr, torch: Any, x: Any, w: Any, *rest: Any) -> Bound | None:
    """Use memory with channels last, as ours is; weights are in torch's order beforehand."""
    (top, bottom), (left, right) = attr.padding
    limits = zip(attr.output_padding, attr.stride, attr.dilation, strict=True)
    if top != bottom or left != right or any(more >= max(step, skip) for more, step, skip in limits):
        return None
    bias, y = _bias(attr, rest)
    images, own = x.permute(0, 3, 1, 2), attr.filters // attr.groups
    shape = attr.kernel_height, attr.kernel_width, attr.group_channels, attr.groups, own
    weights = w.reshape(shape).permute(3, 2, 4, 0, 1).reshape(attr.channels, own, *shape[:2])
    weights = weights.contiguous(memory_format=torch.channels_last)
    functions: dict[str, Any] = {
        "relu": torch.relu_,
        "gelu": torch.nn.functional.gelu,
        "silu": partial(torch.nn.functional.silu, inplace=True),
        "tanh": torch.tanh_,
        "sigmoid": torch.sigmoid_,
    }
    activated = functions.get(attr.activation, torch.nn.Identity())
    convolution = partial(
        torch.nn.functional.conv_transpose2d, images, weights, bias, attr.stride, (top, left), attr.output_padding,
        attr.groups, attr.dilation,
    )  # fmt: skip

    def call() -> None:
        y.copy_(activated(convolution()).permute(0, 2, 3, 1))

    return partial(call)


of_torch(Conv2DTransposeAttr, torch_transposed_convolution)


@equivalent(Conv2DTransposePackedAttr)
def conv2d_transpose_packed(*arguments: Any, out: Any = None, **named: Any) -> Any:
    """Compute CONV2D_TRANSPOSE with filters that are no longer packed."""
    given = arguments_by_name(Conv2DTransposePackedAttr, arguments, named)
    filters, groups, panels = given["filters"], given["groups"], np.asarray(given["w"])
    columns = panels.transpose(1, 0, 2).reshape(panels.shape[1], groups, -1)[:, :, : filters // groups]
    kernel = given["kernel_height"], given["kernel_width"]
    phases = [
        _falling(size, int(step), int(skip))
        for size, step, skip in zip(
            kernel, np.broadcast_to(given["stride"], 2), np.broadcast_to(given["dilation"], 2), strict=True
        )
    ]
    taps = [(a, b) for rows in phases[0] for others in phases[1] for a in rows for b in others]
    ordered = columns.reshape(len(taps), -1, filters)
    w = np.empty((*kernel, *ordered.shape[1:]), panels.dtype)
    for (a, b), filters_of_tap in zip(taps, ordered, strict=True):
        w[a, b] = filters_of_tap
    return _transposed(given | {"w": w}, out)


def _falling(kernel: int, stride: int, dilation: int) -> list[list[int]]:
    """The taps along an axis that pixels of one phase meet, from the last one."""
    found: dict[int, list[int]] = {}
    for tap in range(kernel):
        found.setdefault(dilation * tap % stride, []).insert(0, tap)
    return [*found.values()]


@peer(Conv2DTransposePackedAttr)
def numpy_packed(attr: Conv2DTransposePackedAttr, x: AnyArray, w: AnyArray, *rest: AnyArray) -> Bound:
    return numpy_transposed_convolution(attr, x, attr.unpack(w), *rest)


@partial(of_torch, Conv2DTransposePackedAttr)
def torch_packed(attr: Conv2DTransposePackedAttr, torch: Any, x: Any, w: Any, *rest: Any) -> Bound | None:
    return torch_transposed_convolution(attr, torch, x, torch.from_numpy(attr.unpack(w.numpy())), *rest)


@ordinary_calls(Conv2DTransposeAttr)
def layers(elements: int) -> Iterator[OrdinaryCall]:
    channels = 2 + elements % 7
    x, w, bias = values((2, 3, 4, channels)), values((3, 2, channels, 4)), values(4)
    yield OrdinaryCall("plain", (x, w))
    for activation in ("relu", "gelu", "silu", "tanh", "sigmoid"):
        yield OrdinaryCall(activation, (x, w, bias), {"activation": activation})
    yield OrdinaryCall("padded", (x, w, bias, 2, 1))
    yield OrdinaryCall("strides", (x, w, bias), {"stride": (2, 1), "padding": ((0, 1), (1, 0)), "output_padding": 1})
    yield OrdinaryCall("dilated", (x, w, bias), {"dilation": 2, "stride": 3})
    yield OrdinaryCall("depthwise", (x, values((3, 3, 1, channels))), {"groups": channels})
    yield OrdinaryCall("one image", (x[0], w, bias))
    yield OrdinaryCall("no image", (x[:0], w, bias))
    yield from in_dtypes(x, w, bias)
    yield from in_layouts(x, w, bias, label="all {}")
    yield from with_outs((x, w, bias), 9, np.zeros((2, 5, 5, 4), np.float32))


@ordinary_calls(Conv2DTransposePackedAttr)
def packed_layers(elements: int) -> Iterator[OrdinaryCall]:
    channels = 2 + elements % 7
    x, w, bias = values((2, 3, 4, channels)), values((2, 6 * channels, 32)), values(40)
    w[1, :, 8:] = 0
    extents: dict[str, Any] = {"filters": 40, "kernel_height": 3, "kernel_width": 2}
    yield OrdinaryCall("plain", (x, w), extents)
    yield OrdinaryCall("strides, relu", (x, w, bias), {**extents, "activation": "relu", "stride": 2})
    yield OrdinaryCall("one panel of pixels", (x, values((1, channels, 32))))
    yield OrdinaryCall("padded", (x, w, bias, 40, 3, 2, 2, 1))
    yield OrdinaryCall("one image", (x[0], w, bias), extents)
    yield from in_dtypes(x, w, bias, **extents)
    yield from in_layouts(x, w, bias, label="all {}", **extents)
    yield from with_outs((x, w, bias), 12, np.zeros((2, 5, 5, 40), np.float32), **extents)
