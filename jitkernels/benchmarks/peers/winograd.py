"""Peers of CONV2D_WINOGRAD in NumPy: the same transforms, as one contraction each."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.schema.argument_binding import arguments_by_name
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.attrs.winograd import Conv2DWinogradAttr, transforms
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import in_dtypes, in_layouts, values, with_outs
from jitkernels.benchmarks.peers.matmul_epilogue import matmul_epilogue


@equivalent(Conv2DWinogradAttr)
def conv2d_winograd(*arguments: Any, out: Any = None, **named: Any) -> Any:
    """Transform the windows of padded images, multiply, and transform the products."""
    given = arguments_by_name(Conv2DWinogradAttr, arguments, named)
    x, w, padding, filters, tile = (given[name] for name in ("x", "w", "padding", "filters", "tile"))
    x, w, size = np.asarray(x), np.asarray(w), tile + 2
    sides = padding if np.ndim(padding) == 2 else [(side, side) for side in np.broadcast_to(padding, 2)]
    extents = [x.shape[axis] + sum(side) - 2 for axis, side in zip((-3, -2), sides, strict=True)]
    filled = [(low, high + -extent % tile) for (low, high), extent in zip(sides, extents, strict=True)]
    padded = np.pad(x, (*((0, 0),) * (x.ndim - 3), *filled, (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (size, size), axis=(-3, -2))
    patches = windows[..., ::tile, ::tile, :, :, :]
    image, _, result = (matrix.astype(np.result_type(x, np.float32)) for matrix in transforms(tile))
    u = np.moveaxis(w, 1, 2).reshape(size, size, w.shape[2], -1)[..., :filters]
    products = np.einsum("...cij,ijcf->...fij", image @ patches @ image.T, u, optimize=True)
    tiles = np.moveaxis(result @ products @ result.T, (-2, -1), (-4, -2))
    z = tiles.reshape(*tiles.shape[:-5], tiles.shape[-5] * tile, tiles.shape[-3] * tile, filters)
    z = z[..., : extents[0], : extents[1], :]
    z = z if given["residual"] is None else z + given["residual"]
    return matmul_epilogue(z, np.eye(z.shape[-1], dtype=z.dtype), given["bias"], given["activation"], out)


@peer(Conv2DWinogradAttr)
def numpy_winograd(attr: Conv2DWinogradAttr, x: AnyArray, w: AnyArray, *rest: AnyArray) -> Bound:
    *addends, y = rest
    bias = addends.pop(0) if attr.biased else None
    residual = addends[0] if attr.has_residual else None
    own = {name: value for name, value in attr.fields().items() if name in Conv2DWinogradAttr.options}
    return partial(conv2d_winograd, x, w, bias, residual, out=y, **own)


@ordinary_calls(Conv2DWinogradAttr)
def layers(elements: int) -> Iterator[OrdinaryCall]:
    channels = 2 + elements % 7
    x, w, bias = values((2, 5, 6, channels)), values((36, 2, channels, 32)), values(40)
    w[:, 1, :, 8:] = 0
    extents: dict[str, Any] = {"filters": 40}
    yield OrdinaryCall("plain", (x, w * np.float32(2.0**-5)), extents)  # results near 1, for absolute tolerances
    yield OrdinaryCall("relu", (x, w, bias), {**extents, "activation": "relu"})
    yield OrdinaryCall("small tiles", (x, w[:16], bias), {**extents, "tile": 2})
    yield OrdinaryCall("residual", (x, w, bias, values((2, 3, 4, 40))), {**extents, "activation": "relu"})
    yield OrdinaryCall("padded", (x, w, bias, None, 40, 4, 1))
    yield OrdinaryCall("one image", (x[0], w, bias), extents)
    yield from in_dtypes(x, w, bias, **extents)
    yield from in_layouts(x, w, bias, label="all {}", **extents)
    yield from with_outs((x, w, bias), 12, np.zeros((2, 3, 4, 40), np.float32), **extents)
