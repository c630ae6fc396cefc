"""Pooling: the maximum, mean or norm of the elements under a window, in ONNX's order of axes."""

import functools
import math
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.compiler.capture.kernels.layers import channels_first, images
from jitkernels.onnx.operator_registry import operator
from jitkernels.onnx.operators.convolution import Window, by_kernel, options, padded, space_of, taps, window_of
from jitkernels.onnx.values import NotServedError, broadcast, concrete_ints, constant, created, like, numbers

MAX_TAPS = 64
"""Most taps of a window that are compared or added one by one; larger ones are reduced as an axis."""


def _window(node: Any, x: Any) -> Window:
    """The window of a node; with rounding up, the padding behind reaches as far as the last position."""
    kernel = node.attributes["kernel_shape"]
    extents = space_of(x)
    window = window_of(node.attributes, kernel, extents)
    if not node.attributes.get("ceil_mode", 0) or node.attributes.get("auto_pad", "NOTSET") not in ("NOTSET", ""):
        return window
    end = []
    for extent, low, high, reach, step in zip(
        extents, window.begin, window.end, window.reach, window.strides, strict=True
    ):
        count = -(-(extent + low + high - reach) // step) + 1
        if (count - 1) * step >= extent + low:
            count -= 1
        end.append(max((count - 1) * step + reach - extent - low, 0))
    return window._replace(end=tuple(end))


def _lowest(x: Any) -> Any:
    return -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min


def _by_kernel(x: Any, window: Window) -> bool:
    """Whether the kernels of pooling compute it: their windows reach into the padding, but do not lie in it."""
    inside = max((*window.begin, *window.end)) < min(window.reach)
    return by_kernel(x, window) and inside


def _kernel_of(window: Window) -> tuple[int, ...]:
    return window.kernel if len(window.kernel) == 2 else (1, *window.kernel)


def _options(node: Any, x: Any, window: Window) -> dict[str, Any]:
    """The options of a kernel; with rounding up, it finds the padding behind by itself."""
    if not node.attributes.get("ceil_mode", 0):
        return options(window)
    given = window_of(node.attributes, window.kernel, space_of(x))
    return {**options(given), "ceil_mode": True}


def _reduced(x: Any, window: Window, counts: tuple[int, ...], function: Any) -> Any:
    """A function of two operands over all taps of a padded array."""
    return functools.reduce(function, taps(x, window, counts))


@operator("MaxPool")
def max_pool(x: Any, *, storage_order: int = 0, node: Any = None) -> Any:
    window = _window(node, x)
    counts = window.results(space_of(x))
    is_single = len(node.outputs) < 2 or not node.outputs[1]
    if is_single and _by_kernel(x, window):
        return channels_first(jk.max_pool2d(images(x), _kernel_of(window), **_options(node, x, window)), x.ndim)
    whole = padded(x, window, _lowest(x))
    if is_single:
        return _reduced(whole, window, counts, np.maximum)
    stacked = np.stack(list(taps(whole, window, counts)), axis=-1)
    best = np.argmax(stacked, axis=-1)
    places = _places(x, window, counts, storage_order)
    chosen = np.take_along_axis(broadcast(constant(places), stacked.shape), np.expand_dims(best, -1), axis=-1)
    rows = numbers(x.shape[0])[:, None] * int(x.shape[1]) + numbers(x.shape[1])[None, :]
    first = np.reshape(rows * math.prod(space_of(x)), (*x.shape[:2], *(1,) * len(counts)))
    return np.max(stacked, axis=-1), np.squeeze(chosen, -1) + first


def _places(x: Any, window: Window, counts: tuple[int, ...], by_columns: int) -> Any:
    """For each position and tap the index of its element in its channel."""
    extents = space_of(x)
    grids = np.meshgrid(*(np.arange(extent) for extent in extents), indexing="ij")
    strides = np.cumprod([1, *extents[:-1]]) if by_columns else np.cumprod([1, *extents[:0:-1]])[::-1]
    index = sum(grid * step for grid, step in zip(grids, strides, strict=True))[None, None]
    pairs = [(0, 0), (0, 0), *zip(window.begin, window.end, strict=True)]
    whole = np.pad(index, pairs)
    return np.stack(list(taps(whole, window, counts)), axis=-1).astype(np.int64)


@operator("AveragePool")
def average_pool(x: Any, *, count_include_pad: int = 0, node: Any = None) -> Any:
    window = _window(node, x)
    counts = window.results(space_of(x))
    if _by_kernel(x, window):
        settings = {**_options(node, x, window), "count_include_pad": bool(count_include_pad)}
        return channels_first(jk.avg_pool2d(images(x), _kernel_of(window), **settings), x.ndim)
    total = _reduced(padded(x, window), window, counts, np.add)
    if not any((*window.begin, *window.end)):
        return total / like(math.prod(window.kernel), x)
    inside = np.ones((1, 1, *space_of(x)))
    if count_include_pad:  # all but what rounding up adds behind the padding
        given = window_of(node.attributes, window.kernel, space_of(x))
        pairs = [(0, 0), (0, 0), *zip(given.begin, given.end, strict=True)]
        inside = np.pad(inside, pairs, constant_values=1)
        rest = [max(one - two, 0) for one, two in zip(window.end, given.end, strict=True)]
        inside = np.pad(inside, [(0, 0), (0, 0), *((0, one) for one in rest)])
    else:
        inside = padded(inside, window)
    divisor = functools.reduce(np.add, taps(inside, window, counts))
    if np.all(divisor == divisor.reshape(-1)[:1]):
        return total / like(divisor.reshape(-1)[0], x)
    return total / constant(divisor, x.dtype)


@operator("LpPool")
def lp_pool(x: Any, *, p: float = 2, node: Any = None) -> Any:
    window = _window(node, x)
    counts = window.results(space_of(x))
    powers = x * x if p == 2 else np.power(np.absolute(x), like(p, x))
    total = _reduced(padded(powers, window), window, counts, np.add)
    return np.sqrt(total) if p == 2 else np.power(total, like(1 / p, x))


def _space(x: Any) -> tuple[int, ...]:
    return tuple(range(2, x.ndim))


@operator("GlobalAveragePool")
def global_average_pool(x: Any) -> Any:
    return np.mean(x, axis=_space(x), keepdims=True)


@operator("GlobalMaxPool")
def global_max_pool(x: Any) -> Any:
    return np.max(x, axis=_space(x), keepdims=True)


@operator("GlobalLpPool")
def global_lp_pool(x: Any, *, p: float = 2) -> Any:
    total = np.sum(np.power(np.absolute(x), like(p, x)), axis=_space(x), keepdims=True)
    return np.power(total, like(1 / p, x))


@operator("MaxUnpool", static=(2,))
def max_unpool(x: Any, indices: Any, shape: Any = None, *, node: Any = None) -> Any:
    """Elements at the places that a pooling took them from, zeros elsewhere."""
    extents = space_of(x)
    window = window_of(node.attributes, node.attributes["kernel_shape"], extents)
    own = [
        (extent - 1) * step - low - high + k
        for extent, step, low, high, k in zip(
            extents, window.strides, window.begin, window.end, window.kernel, strict=True
        )
    ]
    whole = tuple(int(one) for one in x.shape[:2]) + tuple(own)
    flat = created(np.zeros, (math.prod(whole),), x.dtype) + like(0, x) * np.reshape(x, (-1,))[:1]
    if not hasattr(flat, "copy"):
        raise NotServedError("constants")
    flat[np.reshape(indices, (-1,))] = np.reshape(x, (-1,))
    result = np.reshape(flat, whole)
    if shape is None:
        return result
    wanted = concrete_ints(shape)
    return np.pad(result, [(0, want - have) for want, have in zip(wanted, whole, strict=True)])
