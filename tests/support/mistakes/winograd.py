"""CONV2D_WINOGRAD, and mutants of it."""

import math
from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.attrs.winograd import transforms
from mistakes import sigmoid

MISTAKES = {
    "conv2d_winograd": {
        "padding above is that below": ("(top, bottom + tile)", "(bottom, top + tile)"),
        "padding on the left is that on the right": ("(left, right + tile)", "(right, left + tile)"),
        "padding repeats the border": ("constant_values=0", "mode='edge'"),
        "patches begin a row late": ("[:, i * tile : i * tile + size,", "[:, i * tile + 1 : i * tile + size + 1,"),
        "patches lie side by side": ("j * tile : j * tile + size]", "j * size : j * size + size]"),
        "patches are transposed": ("nabc,rscf", "nbac,rscf"),
        "positions of filters are transposed": ("nabc,rscf", "nabc,srcf"),
        "results are transposed": ("->nklf", "->nlkf"),
        "the second panel is the first": ("f // 32, :", "f // 64, :"),
        "lanes are reversed": ("f % 32]", "31 - f % 32]"),
        "last channel is the first": ("patch, filters,", "patch[..., [*range(x.shape[3] - 1), 0]], filters,"),
        "last column of tiles is not computed": ("range(columns)", "range(max(columns - 1, 1))"),
        "rows of a tile are lost": ("[:, : inside.shape[1], ", "[:, [0] * inside.shape[1], "),
        "bias is forgotten": ("z += addends.pop(0)", "addends.pop(0)"),
        "bias of the first filter for all": ("z += addends.pop(0)", "z += addends.pop(0)[:1]"),
        "residual is forgotten": ("z += addends[0]", "pass"),
        "residual of the first image for all": ("z += addends[0]", "z += addends[0][:1]"),
        "residual of one filter for all": ("z += addends[0]", "z += addends[0][..., :1]"),
        "relu loses NaN": ("np.maximum(z, 0)", "np.where(z > 0, z, 0)"),
        "silu is sigmoid": ("z * sigmoid(z)", "sigmoid(z)"),
        "gelu of the wrong sign": ("phi(-z * ", "phi(z * "),
        "all images are the first": ("padded[:, i", "padded[:1, i"),
    },
}  # fmt: skip
phi = np.frompyfunc(math.erfc, 1, 1)


def conv2d_winograd(attr: Any, x: AnyArray, w: AnyArray, *rest: AnyArray) -> None:
    *addends, y = rest
    (top, bottom), (left, right) = attr.padding
    tile, size = attr.tile, attr.tile + 2
    matrices = transforms(tile)
    image, result = matrices.image.astype(x.dtype), matrices.result.astype(x.dtype)
    rows, columns = -(-y.shape[1] // tile), -(-y.shape[2] // tile)
    sides = (0, 0), (top, bottom + tile), (left, right + tile), (0, 0)
    padded = np.pad(x, sides, constant_values=0)
    filters = np.zeros((size, size, x.shape[3], y.shape[3]), x.dtype)
    for f in range(y.shape[3]):
        filters[..., f] = w[:, f // 32, :, f % 32].reshape(size, size, x.shape[3])
    z = np.zeros(y.shape, y.dtype)
    for i in range(rows):
        for j in range(columns):
            patch = padded[:, i * tile : i * tile + size, j * tile : j * tile + size]
            products = np.einsum("ra,sb,nabc,rscf->nrsf", image, image, patch, filters, optimize=True)
            results = np.einsum("kr,ls,nrsf->nklf", result, result, products, optimize=True)
            inside = z[:, i * tile : i * tile + tile, j * tile : j * tile + tile]
            inside[...] = results[:, : inside.shape[1], : inside.shape[2]]
    if attr.biased:
        z += addends.pop(0)
    if attr.has_residual:
        z += addends[0]
    activated: dict[str, Any] = {
        "identity": lambda: z,
        "relu": lambda: np.maximum(z, 0),
        "gelu": lambda: z * np.asarray(phi(-z * math.sqrt(0.5))).astype(z.dtype) / 2,
        "silu": lambda: z * sigmoid(z),
        "tanh": lambda: np.tanh(z),
        "sigmoid": lambda: sigmoid(z),
    }
    y[...] = activated[attr.activation]()
