"""Convolutions of any number of dimensions, in ONNX's order of axes: batch, channels, then space.

They compute on channels-last memory: an array of channels first is the transposed view of such an array, and the
transposes of layers that follow one another cancel in the compiler.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import jitkernels as jk
from jitkernels.compiler.capture.kernels.layers import channels_first, images
from jitkernels.errors import ModelError
from jitkernels.onnx.operator_registry import operator
from jitkernels.onnx.values import is_traced, like, limit

MAX_TAPS = 64
"""Most taps of a filter of single channels that are multiplied one by one."""


class Window(NamedTuple):
    """How a window moves along the axes of space: its size, steps, distances of taps, and padding before and behind."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begin: tuple[int, ...]
    end: tuple[int, ...]

    @property
    def reach(self) -> tuple[int, ...]:
        """The elements from the first to the last tap."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True))

    def results(self, extents: Sequence[int]) -> tuple[int, ...]:
        """The number of positions along each axis of arrays of these extents. Raises ModelError where there is none."""
        sides = zip(extents, self.begin, self.end, self.reach, strict=True)
        free = [extent + low + high - reach for extent, low, high, reach in sides]
        if any(count < 0 for count in free):
            reach, pads = list(self.reach), [*self.begin, *self.end]
            raise ModelError(f"a window of {reach} elements over an image of {list(extents)}, with the padding {pads}")
        return tuple(count // step + 1 for count, step in zip(free, self.strides, strict=True))


def space_of(x: Any) -> tuple[int, ...]:
    """The extents of the axes of space, to which code is specialized."""
    return tuple(int(extent) for extent in x.shape[2:])


def window_of(attributes: Any, kernel: Sequence[int], extents: Sequence[int]) -> Window:
    """The window that the attributes of a node describe."""
    count = len(kernel)
    strides = tuple(attributes.get("strides") or (1,) * count)
    dilations = tuple(attributes.get("dilations") or (1,) * count)
    pads = tuple(attributes.get("pads") or (0,) * (2 * count))
    if not len(strides) == len(dilations) == len(pads) // 2 == len(extents) == count:
        raise ModelError(f"strides, dilations or pads of other than {count} axes")
    if min((*strides, *dilations, *kernel), default=1) < 1:
        raise ModelError("strides, dilations or a kernel of less than 1")
    limit(kernel)
    begin, end = pads[:count], pads[count:]
    automatic = attributes.get("auto_pad", "NOTSET")
    if automatic in ("SAME_UPPER", "SAME_LOWER"):
        totals = [
            max((-(-extent // step) - 1) * step + (k - 1) * d + 1 - extent, 0)
            for extent, step, k, d in zip(extents, strides, kernel, dilations, strict=True)
        ]
        small, large = tuple(one // 2 for one in totals), tuple(one - one // 2 for one in totals)
        begin, end = (small, large) if automatic == "SAME_UPPER" else (large, small)
    elif automatic == "VALID":
        begin = end = (0,) * count
    return Window(tuple(kernel), strides, dilations, begin, end)


def padded(x: Any, window: Window, value: Any = 0) -> Any:
    """An array of channels first with a number around its axes of space."""
    if not any((*window.begin, *window.end)):
        return x
    pairs = [(0, 0), (0, 0), *zip(window.begin, window.end, strict=True)]
    cut = tuple(slice(max(-low, 0), extent - max(-high, 0)) for (low, high), extent in zip(pairs, x.shape, strict=True))
    x = x[cut] if any(low < 0 or high < 0 for low, high in pairs) else x
    pairs = [(max(low, 0), max(high, 0)) for low, high in pairs]
    limit([extent + low + high for extent, (low, high) in zip(x.shape, pairs, strict=True)])
    return np.pad(x, pairs, constant_values=like(value, x))


def taps(x: Any, window: Window, counts: Sequence[int], first: int = 2) -> Any:
    """Yield for each tap of a window the elements under it at all positions, of a padded array."""
    for place in itertools.product(*map(range, window.kernel)):
        yield x[
            (*(slice(None),) * first, *(
                slice(k * d, k * d + (count - 1) * step + 1, step) if count else slice(0, 0)
                for k, d, step, count in zip(place, window.dilations, window.strides, counts, strict=True)
            ))
        ]  # fmt: skip


def convolved(
    x: Any, weights: Any, bias: Any, window: Window, groups: int, activation: str = "identity", residual: Any = None
) -> Any:
    """The convolution of an array of channels first, plus a residual, and an activation."""
    counts = window.results(space_of(x))
    if int(x.shape[1]) != int(weights.shape[1]) * groups or int(weights.shape[0]) % max(groups, 1):
        raise ModelError(
            f"{int(x.shape[1])} channels, filters of shape {list(map(int, weights.shape))}, {groups} groups"
        )
    if by_kernel(x, window) and not (is_traced(weights) and _is_product(weights, window, groups)):
        shape = (*x.shape[:1], int(weights.shape[0]), *counts)
        if residual is None or (residual.dtype == x.dtype and tuple(residual.shape) == shape):
            return _by_kernel(x, weights, bias, residual, window, groups, activation)
    x = padded(x, window)
    last = np.moveaxis(x, 1, -1)
    space = len(counts)
    if groups > 1 and int(weights.shape[1]) == 1 and math.prod(window.kernel) <= MAX_TAPS:
        result = _depthwise(last, weights, window, counts)
    else:
        result = _by_products(last, weights, window, counts, groups)
    if bias is not None:
        result = result + bias
    result = np.moveaxis(result, -1, 1) if space else result
    result = result if residual is None else result + residual
    return np.maximum(result, like(0, result)) if activation == "relu" else result


def _is_product(weights: Any, window: Window, groups: int) -> bool:
    """Whether a convolution is a product of the elements of each position with a matrix."""
    return groups == 1 and math.prod(window.kernel) == 1


def by_kernel(x: Any, window: Window) -> bool:
    """Whether the kernels of images compute what a window describes: of one or two dimensions, in floats."""
    floats = x.dtype in (np.float32, np.float64)
    return is_traced(x) and floats and len(window.kernel) in (1, 2) and min((*window.begin, *window.end)) >= 0


def options(window: Window) -> dict[str, Any]:
    """A window as options of the kernels of images."""
    pads = tuple(zip(window.begin, window.end, strict=True))
    steps, dilations = window.strides, window.dilations
    if len(window.kernel) == 1:
        pads, steps, dilations = ((0, 0), *pads), (1, *steps), (1, *dilations)
    return {"stride": steps, "padding": pads, "dilation": dilations}


def _by_kernel(x: Any, weights: Any, bias: Any, residual: Any, window: Window, groups: int, activation: Any) -> Any:
    """The kernel CONV2D, on images with channels last and filters as it wants them."""
    filters = weights if weights.ndim == 4 else np.expand_dims(weights, 2)
    filters = np.transpose(filters, (2, 3, 1, 0))
    residual = residual if residual is None else images(residual)
    result = jk.conv2d(images(x), filters, bias, residual, groups=groups, activation=activation, **options(window))
    return channels_first(result, x.ndim)


def _depthwise(x: Any, weights: Any, window: Window, counts: Sequence[int]) -> Any:
    """Filters of one channel each: sums of products, tap by tap."""
    channels, filters = int(x.shape[-1]), int(weights.shape[0])
    rows = np.reshape(weights, (filters, -1))
    total = None
    for i, part in enumerate(taps(x, window, counts, first=1)):
        if filters != channels:
            part = np.repeat(part, filters // channels, axis=-1)
        term = part * rows[:, i]
        total = term if total is None else total + term
    return total


def _by_products(x: Any, weights: Any, window: Window, counts: Sequence[int], groups: int) -> Any:
    """The elements under each position as a row, times the filters as a matrix."""
    batch, channels, filters = x.shape[0], int(x.shape[-1]), int(weights.shape[0])
    size = math.prod(window.kernel)
    if size == 1:
        (rows,) = taps(x, window, counts, first=1)
    else:
        rows = np.stack(list(taps(x, window, counts, first=1)), axis=-2)
    if groups == 1:
        matrix = np.reshape(np.moveaxis(weights, 1, -1), (filters, size * channels)).T
        rows = np.reshape(rows, (batch * math.prod(counts), size * channels))
        return np.reshape(rows @ matrix, (batch, *counts, filters))
    inner, outer = channels // groups, filters // groups
    rows = np.reshape(rows, (batch * math.prod(counts), size, groups, inner))
    rows = np.reshape(np.transpose(rows, (2, 0, 1, 3)), (groups, -1, size * inner))
    matrix = np.reshape(np.moveaxis(weights, 1, -1), (groups, outer, size * inner))
    result = rows @ np.transpose(matrix, (0, 2, 1))
    return np.reshape(np.transpose(result, (1, 0, 2)), (batch, *counts, filters))


@operator("Conv")
def conv(x: Any, weights: Any, bias: Any = None, residual: Any = None, *, group: int = 1, node: Any = None) -> Any:
    """Conv, with a residual and an activation where `fuse_convolutions` has found them."""
    kernel = tuple(int(extent) for extent in weights.shape[2:])
    activation = node.attributes.get("activation", "identity")
    return convolved(x, weights, bias, window_of(node.attributes, kernel, space_of(x)), group, activation, residual)


@operator("ConvTranspose")
def conv_transpose(x: Any, weights: Any, bias: Any = None, *, group: int = 1, node: Any = None) -> Any:
    """The transpose of a convolution: each element adds its filters to the result, a stride apart."""
    kernel, extents = tuple(int(one) for one in weights.shape[2:]), space_of(x)
    window = window_of({**node.attributes, "auto_pad": "NOTSET"}, kernel, extents)
    extra = tuple(node.attributes.get("output_padding") or (0,) * len(kernel))
    begin, end = _pads_of_transposed(node.attributes, window, extents, extra)
    inner = Window(kernel, window.strides, window.dilations, begin, end)
    if int(x.shape[1]) != int(weights.shape[0]) or int(x.shape[1]) % group:
        raise ModelError(f"{int(x.shape[1])} channels, filters of {int(weights.shape[0])}, {group} groups")
    if group == 1 and not any((*begin, *end, *extra)) and extents == (1,) * len(kernel) and inner.reach == kernel:
        return _of_one_pixel(x, weights, bias)
    if by_kernel(x, inner):
        return _transposed_by_kernel(x, weights, bias, inner, (group, extra))
    return _transposed_by_zeros(x, weights, bias, inner, (group, extra))


def _of_one_pixel(x: Any, weights: Any, bias: Any) -> Any:
    """A product of matrices: each image has one pixel, the result is its sum of filters."""
    depth, filters, *kernel = (int(extent) for extent in weights.shape)
    products = np.reshape(x, (x.shape[0], depth)) @ np.reshape(weights, (depth, filters * math.prod(kernel)))
    result = np.reshape(products, (x.shape[0], filters, *kernel))
    return result if bias is None else result + np.reshape(bias, (filters, *(1,) * len(kernel)))


def _transposed_by_kernel(x: Any, weights: Any, bias: Any, window: Window, form: tuple[int, Sequence[int]]) -> Any:
    """The kernel CONV2D_TRANSPOSE, on images with channels last and filters as it wants them."""
    group, extra = form
    w = weights if weights.ndim == 4 else np.expand_dims(weights, 2)
    own, high, wide = (int(extent) for extent in w.shape[1:])
    depth = int(w.shape[0]) // group
    filters = np.transpose(np.reshape(w, (group, depth, own, high, wide)), (3, 4, 1, 0, 2))
    filters = np.reshape(filters, (high, wide, depth, group * own))
    more = tuple(extra) if len(extra) == 2 else (0, *extra)
    result = jk.conv2d_transpose(images(x), filters, bias, output_padding=more, groups=group, **options(window))
    return channels_first(result, x.ndim)


def _transposed_by_zeros(x: Any, weights: Any, bias: Any, window: Window, form: tuple[int, Sequence[int]]) -> Any:
    """The convolution with reversed filters of an array whose elements lie a stride apart, zeros between them."""
    group, extra = form
    x, kernel = _spread(x, window.strides), window.kernel
    inner = Window(
        kernel,
        (1,) * len(kernel),
        window.dilations,
        tuple(reach - 1 - low for reach, low in zip(window.reach, window.begin, strict=True)),
        tuple(reach - 1 - high + more for reach, high, more in zip(window.reach, window.end, extra, strict=True)),
    )
    filters = int(weights.shape[1])
    flipped = np.flip(weights, tuple(range(2, weights.ndim)))
    flipped = np.reshape(flipped, (group, int(weights.shape[0]) // group, filters, *kernel))
    flipped = np.reshape(np.moveaxis(flipped, 1, 2), (group * filters, int(weights.shape[0]) // group, *kernel))
    return convolved(x, flipped, bias, inner, group)


def _pads_of_transposed(
    attributes: Any, window: Window, extents: Sequence[int], extra: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The padding that is cut off, which a wanted shape of the result may determine."""
    automatic, wanted = attributes.get("auto_pad", "NOTSET"), attributes.get("output_shape")
    if wanted is None and automatic not in ("SAME_UPPER", "SAME_LOWER"):
        return window.begin, window.end
    wanted = wanted or [extent * step for extent, step in zip(extents, window.strides, strict=True)]
    totals = [
        step * (extent - 1) + more + reach - size
        for step, extent, more, reach, size in zip(window.strides, extents, extra, window.reach, wanted, strict=True)
    ]
    half = tuple(one // 2 for one in totals)
    rest = tuple(one - one // 2 for one in totals)
    return (half, rest) if automatic == "SAME_UPPER" else (rest, half)


def _spread(x: Any, strides: Sequence[int]) -> Any:
    """Zeros between the elements along the axes of space."""
    for axis, step in enumerate(strides, 2):
        if step > 1:
            extent = x.shape[axis]
            widths = [(0, 0)] * (x.ndim + 1)
            widths[axis + 1] = (0, step - 1)
            x = np.pad(np.expand_dims(x, axis + 1), widths)
            x = np.reshape(x, (*x.shape[:axis], extent * step, *x.shape[axis + 2 :]))
            x = x[(*(slice(None),) * axis, slice(0, extent * step - (step - 1)))]
    return x


@operator("Col2Im", static=(1, 2))
def columns_to_image(x: Any, image: Any, block: Any, *, node: Any = None) -> Any:
    """Sums of the columns of a convolution at the places that they were taken from."""
    extents, kernel = (tuple(int(one) for one in np.asarray(value)) for value in (image, block))
    window = window_of(node.attributes, kernel, extents)
    counts = window.results(extents)
    whole = [extent + low + high for extent, low, high in zip(extents, window.begin, window.end, strict=True)]
    limit(whole)
    channels = int(x.shape[1]) // math.prod(kernel)
    parts = np.reshape(x, (x.shape[0], channels, math.prod(kernel), *counts))
    total = None
    for i, place in enumerate(itertools.product(*map(range, kernel))):
        part = _spread(parts[:, :, i], window.strides)
        first = [k * d for k, d in zip(place, window.dilations, strict=True)]
        widths = [(low, size - low - int(own)) for low, size, own in zip(first, whole, part.shape[2:], strict=True)]
        part = np.pad(part, [(0, 0), (0, 0), *widths])
        total = part if total is None else total + part
    cut = (slice(low, low + extent) for low, extent in zip(window.begin, extents, strict=True))
    assert total is not None, "a block has elements"
    return total[(slice(None), slice(None), *cut)]
