"""Peers of CONV2D and CONV2D_PACKED in NumPy and torch."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.convolution import Conv2DAttr, Conv2DPackedAttr
from jitkernels.attrs.schema.argument_binding import arguments_by_name
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import in_dtypes, in_layouts, values, with_outs
from jitkernels.benchmarks.peers.compiled import of_torch
from jitkernels.benchmarks.peers.matmul_epilogue import matmul_epilogue


@equivalent(Conv2DAttr)
def conv2d(*arguments: Any, out: Any = None, **named: Any) -> Any:
    """Call one matrix product per group, of windows that a view has."""
    return _convolution(arguments_by_name(Conv2DAttr, arguments, named), out)


def _convolution(given: dict[str, Any], out: Any) -> Any:
    x, w, padding, groups = (given[name] for name in ("x", "w", "padding", "groups"))
    (down, along), (skip, over) = (np.broadcast_to(given[name], 2) for name in ("stride", "dilation"))
    x, w = np.asarray(x), np.asarray(w)
    sides = padding if np.ndim(padding) == 2 else [(side, side) for side in np.broadcast_to(padding, 2)]
    padded = np.pad(x, (*((0, 0),) * (x.ndim - 3), *sides, (0, 0)))
    covered = (w.shape[0] - 1) * skip + 1, (w.shape[1] - 1) * over + 1
    windows = np.lib.stride_tricks.sliding_window_view(padded, covered, axis=(-3, -2))
    windows = windows[..., ::down, ::along, :, ::skip, ::over]
    own, per = w.shape[3] // groups, x.shape[-1] // groups
    axes = ((-2, -1, -3), (0, 1, 2))
    sums = [
        np.tensordot(windows[..., g * per : (g + 1) * per, :, :], w[..., g * own : (g + 1) * own], axes)
        for g in range(groups)
    ]
    z = np.concatenate(sums, axis=-1)
    z = z if given["residual"] is None else z + given["residual"]
    return matmul_epilogue(z, np.eye(z.shape[-1], dtype=z.dtype), given["bias"], given["activation"], out)


@peer(Conv2DAttr)
def numpy_convolution(attr: Conv2DAttr, x: AnyArray, w: AnyArray, *rest: AnyArray) -> Bound:
    bias, residual, y = _addends(attr, rest)
    own = {name: value for name, value in attr.fields().items() if name in Conv2DAttr.options}
    return partial(conv2d, x, w, bias, residual, out=y, **own)


def _addends(attr: Conv2DAttr, rest: Sequence[Any]) -> tuple[Any, Any, Any]:
    """The bias, the residual, and the result, of the arguments behind the filters."""
    *addends, y = rest
    bias = addends.pop(0) if attr.biased else None
    return bias, addends[0] if attr.has_residual else None, y


def torch_convolution(attr: Conv2DAttr, torch: Any, x: Any, w: Any, *rest: Any) -> Bound | None:
    """Use memory with channels last, as ours is; weights are in torch's order beforehand."""
    (top, bottom), (left, right) = attr.padding
    if top != bottom or left != right:
        return None
    bias, residual, y = _addends(attr, rest)
    images, weights = x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
    functions: dict[str, Any] = {
        "relu": torch.relu_,
        "gelu": torch.nn.functional.gelu,
        "silu": partial(torch.nn.functional.silu, inplace=True),
        "tanh": torch.tanh_,
        "sigmoid": torch.sigmoid_,
    }
    activated = functions.get(attr.activation, torch.nn.Identity())
    convolution = partial(
        torch.nn.functional.conv2d, images, weights, bias, attr.stride, (top, left), attr.dilation,
        attr.groups,
    )  # fmt: skip

    def call() -> None:
        z = convolution()
        z = z if residual is None else z.add_(residual.permute(0, 3, 1, 2))
        y.copy_(activated(z).permute(0, 2, 3, 1))

    return partial(call)


of_torch(Conv2DAttr, torch_convolution)


@equivalent(Conv2DPackedAttr)
def conv2d_packed(*arguments: Any, out: Any = None, **named: Any) -> Any:
    """Compute CONV2D with filters that are no longer packed."""
    given = arguments_by_name(Conv2DPackedAttr, arguments, named)
    filters, groups, panels = given["filters"], given["groups"], np.asarray(given["w"])
    columns = panels.transpose(1, 0, 2).reshape(panels.shape[1], groups, -1)[:, :, : filters // groups]
    w = columns.reshape(given["kernel_height"], given["kernel_width"], -1, filters)
    return _convolution(given | {"w": w}, out)


@peer(Conv2DPackedAttr)
def numpy_packed_convolution(attr: Conv2DPackedAttr, x: AnyArray, w: AnyArray, *rest: AnyArray) -> Bound:
    return numpy_convolution(attr, x, attr.unpack(w), *rest)


@partial(of_torch, Conv2DPackedAttr)
def torch_packed_convolution(attr: Conv2DPackedAttr, torch: Any, x: Any, w: Any, *rest: Any) -> Bound | None:
    return torch_convolution(attr, torch, x, torch.from_numpy(attr.unpack(w.numpy())), *rest)


@ordinary_calls(Conv2DAttr)
def layers(elements: int) -> Iterator[OrdinaryCall]:
    channels = 2 + elements % 7
    x, w, bias = values((2, 5, 6, channels)), values((3, 2, channels, 4)), values(4)
    yield OrdinaryCall("plain", (x, w))
    for activation in ("relu", "gelu", "silu", "tanh", "sigmoid"):
        yield OrdinaryCall(activation, (x, w, bias), {"activation": activation})
    yield OrdinaryCall("residual", (x, w, bias, values((2, 3, 5, 4))))
    yield OrdinaryCall("padded", (x, w, bias, None, 1, 1))
    yield OrdinaryCall("strides", (x, w, bias), {"stride": (2, 1), "padding": ((0, 1), (2, 0))})
    yield OrdinaryCall("dilated", (x, w, bias), {"dilation": 2, "padding": 2})
    yield OrdinaryCall("depthwise", (x, values((3, 3, 1, channels))), {"groups": channels})
    yield OrdinaryCall("one image", (x[0], w, bias))
    yield OrdinaryCall("no image", (x[:0], w, bias))
    yield OrdinaryCall("channels first", (np.ascontiguousarray(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1), w, bias))
    yield from in_dtypes(x, w, bias)
    yield from in_layouts(x, w, bias, label="all {}")
    yield from with_outs((x, w, bias), 9, np.zeros((2, 3, 5, 4), np.float32))


@ordinary_calls(Conv2DPackedAttr)
def packed_layers(elements: int) -> Iterator[OrdinaryCall]:
    channels = 2 + elements % 7
    x, w, bias = values((2, 5, 6, channels)), values((2, 6 * channels, 32)), values(40)
    w[1, :, 8:] = 0
    extents: dict[str, Any] = {"filters": 40, "kernel_height": 3, "kernel_width": 2}
    yield OrdinaryCall("plain", (x, w), extents)
    yield OrdinaryCall("relu", (x, w, bias), {**extents, "activation": "relu"})
    yield OrdinaryCall("one panel of pixels", (x, values((1, channels, 32))))
    yield OrdinaryCall("residual", (x, w, bias, values((2, 3, 5, 40))), {**extents, "activation": "relu"})
    yield OrdinaryCall("padded", (x, w, bias, None, 40, 3, 2, 1, 1))
    yield OrdinaryCall("one image", (x[0], w, bias), extents)
    yield from in_dtypes(x, w, bias, **extents)
    yield from in_layouts(x, w, bias, label="all {}", **extents)
    yield from with_outs((x, w, bias), 12, np.zeros((2, 3, 5, 40), np.float32), **extents)
