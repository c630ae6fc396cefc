"""Peers of MAX_POOL2D, MAX_POOL2D_BACKWARD and AVG_POOL2D in NumPy and torch."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.pooling import AvgPool2DAttr, MaxPool2DAttr, MaxPool2DBackwardAttr, PoolAttr
from jitkernels.attrs.schema.argument_binding import arguments_by_name
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import in_dtypes, in_layouts, values, with_outs
from jitkernels.benchmarks.peers.compiled import of_torch


def _windows(x: Any, window: Any, options: dict[str, Any], fill: float) -> AnyArray:
    """Return the windows as a view of the padded images, their height and width last."""
    extents = np.broadcast_to(window, 2)
    steps = extents if options["stride"] is None else np.broadcast_to(options["stride"], 2)
    apart = np.broadcast_to(options["dilation"], 2)
    padding = options["padding"]
    sides = padding if np.ndim(padding) == 2 else [(side, side) for side in np.broadcast_to(padding, 2)]
    behind = [0, 0]
    if options["ceil_mode"]:
        for axis, size in enumerate(np.shape(x)[-3:-1]):
            before, after = sides[axis]
            free = size + before + after - (apart[axis] * (extents[axis] - 1) + 1)
            count = min(-(-free // steps[axis]) + 1, -(-(size + before) // steps[axis]))
            behind[axis] = max((count - 1) * steps[axis] - free, 0)
    reach = [(sides[axis][0], sides[axis][1] + behind[axis]) for axis in range(2)]
    padded = np.pad(x, (*((0, 0),) * (np.ndim(x) - 3), *reach, (0, 0)), constant_values=fill)
    covered = tuple(apart * (extents - 1) + 1)
    views = np.lib.stride_tricks.sliding_window_view(padded, covered, axis=(-3, -2))
    return views[..., :: steps[0], :: steps[1], :, :: apart[0], :: apart[1]]


@equivalent(MaxPool2DAttr)
def max_pool2d(*arguments: Any, out: Any = None, **named: Any) -> Any:
    given = arguments_by_name(MaxPool2DAttr, arguments, named)
    return np.max(_windows(_floats(given["x"]), given["window"], given, -np.inf), axis=(-2, -1), out=out)


@equivalent(MaxPool2DBackwardAttr)
def max_pool2d_backward(*arguments: Any, out: Any = None, **named: Any) -> Any:
    """Count gradients by the index of the first maximum of each window."""
    given = arguments_by_name(MaxPool2DBackwardAttr, arguments, named)
    x, dy = map(_floats, (given["x"], given["dy"]))
    places = np.arange(x.size).reshape(x.shape)
    places, windows = (_windows(array, given["window"], given, -1) for array in (places, x))
    places, windows = (array.reshape(*array.shape[:-2], math.prod(array.shape[-2:])) for array in (places, windows))
    first = np.take_along_axis(places, np.argmax(windows, axis=-1)[..., np.newaxis], axis=-1)
    sums = np.bincount(first.ravel(), dy.ravel(), minlength=x.size).reshape(x.shape)
    if out is None:
        return sums.astype(np.result_type(x, dy))
    out[...] = sums
    return out


@equivalent(AvgPool2DAttr)
def avg_pool2d(*arguments: Any, out: Any = None, **named: Any) -> Any:
    given = arguments_by_name(AvgPool2DAttr, arguments, named)
    x, padding, counted = _floats(given["x"]), given["padding"], given
    ones = np.ones((*x.shape[-3:-1], 1))
    if given["count_include_pad"]:
        sides = padding if np.ndim(padding) == 2 else [(side, side) for side in np.broadcast_to(padding, 2)]
        ones, counted = np.pad(ones, (*sides, (0, 0)), constant_values=1), given | {"padding": 0}
    counts = _windows(ones, given["window"], counted, 0).sum(axis=(-2, -1))
    sums = _windows(x, given["window"], given, 0).sum(axis=(-2, -1))
    counts = counts[: sums.shape[-3], : sums.shape[-2]]  # no window of the result begins behind the image
    return np.divide(sums, counts.astype(x.dtype), out=out)


def _floats(x: Any) -> AnyArray:
    array = np.asarray(x)
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def _peer(function: Callable[..., Any], attr: PoolAttr, x: AnyArray, y: AnyArray) -> Bound:
    own = {name: value for name, value in attr.fields().items() if name in attr.options}
    return partial(function, x, **own, out=y)


peer(MaxPool2DAttr, name="numpy")(partial(_peer, max_pool2d))
peer(AvgPool2DAttr, name="numpy")(partial(_peer, avg_pool2d))


def _torch_pool(attr: PoolAttr, torch: Any, x: Any, y: Any, *, mean: bool) -> Bound | None:
    """Use memory with channels last, as ours is; torch pads both sides alike, by half a window at most."""
    (top, bottom), (left, right) = attr.padding
    if top != bottom or left != right or 2 * top > attr.window[0] or 2 * left > attr.window[1]:
        return None
    if mean and attr.dilation != (1, 1):
        return None
    images, options = x.permute(0, 3, 1, 2), {"ceil_mode": attr.ceil_mode}
    shared = attr.window, attr.stride, (top, left)
    if mean:
        pool = partial(torch.nn.functional.avg_pool2d, images, *shared, **options)
        pool = partial(pool, count_include_pad=attr.fields()["count_include_pad"])
    else:
        pool = partial(torch.nn.functional.max_pool2d, images, *shared, dilation=attr.dilation, **options)

    def call() -> None:
        y.copy_(pool().permute(0, 2, 3, 1))

    return partial(call)


@peer(MaxPool2DBackwardAttr, name="numpy")
def numpy_max_pool2d_backward(attr: MaxPool2DBackwardAttr, x: AnyArray, dy: AnyArray, dx: AnyArray) -> Bound | None:
    if any(map(any, attr.padding)) or attr.ceil_mode:  # elements below the padding's -1
        return None
    own = {name: value for name, value in attr.fields().items() if name in attr.options}
    return partial(max_pool2d_backward, x, dy, **own, out=dx)


of_torch(MaxPool2DAttr, partial(_torch_pool, mean=False))
of_torch(AvgPool2DAttr, partial(_torch_pool, mean=True))


def _calls(elements: int) -> Iterator[OrdinaryCall]:
    x = values((2, 5, 6, 1 + elements % 7))
    yield OrdinaryCall("plain", (x, 2))
    yield OrdinaryCall("by name", (x,), {"window": (3, 2), "stride": 1})
    yield OrdinaryCall("padded", (x, 3, 2, 1))
    yield OrdinaryCall("padded unevenly", (x, 3), {"stride": (2, 1), "padding": ((0, 1), (2, 0))})
    yield OrdinaryCall("dilated", (x, 2), {"dilation": (2, 3), "stride": 1})
    yield OrdinaryCall("ceil_mode", (x, 3, 2), {"ceil_mode": True})
    yield OrdinaryCall("whole image", (x, (5, 6)))
    yield OrdinaryCall("one image", (x[0], 2))
    yield OrdinaryCall("no image", (x[:0], 2))
    yield from in_dtypes(x, fixed=(2,))
    yield from in_layouts(x, fixed=(2,), label="all {}")
    yield from with_outs((x, 2), 7, np.zeros((2, 2, 3, x.shape[3]), np.float32))


@ordinary_calls(MaxPool2DAttr)
def maxima(elements: int) -> Iterator[OrdinaryCall]:
    yield from _calls(elements)


@ordinary_calls(AvgPool2DAttr)
def means(elements: int) -> Iterator[OrdinaryCall]:
    yield from _calls(elements)
    x = values((2, 5, 6, 3))
    yield OrdinaryCall("padding counts", (x, 3, 2, 1), {"count_include_pad": True})
    yield OrdinaryCall("padding counts, ceil_mode", (x, 3, 2, 1), {"count_include_pad": True, "ceil_mode": True})


@ordinary_calls(MaxPool2DBackwardAttr)
def gradients_of_maxima(elements: int) -> Iterator[OrdinaryCall]:
    x, dy = values((2, 5, 6, 1 + elements % 7)), values((2, 2, 3, 1 + elements % 7))
    yield OrdinaryCall("plain", (x, dy, 2))
    yield OrdinaryCall("by name", (x, values((2, 3, 5, x.shape[3]))), {"window": (3, 2), "stride": 1})
    yield OrdinaryCall("dilated", (x, values((2, 4, 3, x.shape[3])), 2), {"dilation": (1, 3), "stride": 1})
    yield OrdinaryCall("whole image", (x, values((2, 1, 1, x.shape[3])), (5, 6)))
    yield OrdinaryCall("one image", (x[0], dy[0], 2))
    yield OrdinaryCall("no image", (x[:0], dy[:0], 2))
    yield from in_dtypes(x, dy, fixed=(2,))
    yield from in_layouts(x, dy, fixed=(2,), label="all {}")
    yield from with_outs((x, dy, 2), 8, np.zeros(x.shape, np.float32))
