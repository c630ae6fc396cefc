"""The oracle of CONV2D_WINOGRAD: for each position of a patch, shifted images times rows of the published matrices.

Lavin & Gray 2016 give those of the points 0, 1, -1; those of 0, 3/4, -3/4, 3/2, -3/2 follow from the polynomials
x ** i * (x ** 2 - 9 / 16) * (x ** 2 - 9 / 4) without one factor.
"""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import ACTIVATIONS, WIDE, oracle, sigmoid
from oracles.convolution import erfc

P, Q = 0.75, 1.5
IMAGE: dict[int, list[list[float]]] = {
    2: [[-1, 0, 1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, -1, 0, 1]],
    4: [
        [P * P * Q * Q, 0, -P * P - Q * Q, 0, 1, 0],
        [0, -P * Q * Q, -Q * Q, P, 1, 0],
        [0, P * Q * Q, -Q * Q, -P, 1, 0],
        [0, -Q * P * P, -P * P, Q, 1, 0],
        [0, Q * P * P, -P * P, -Q, 1, 0],
        [0, P * P * Q * Q, 0, -P * P - Q * Q, 0, 1],
    ],
}
RESULT: dict[int, list[list[float]]] = {
    2: [[1, 1, 1, 0], [0, 1, -1, 1]],
    4: [
        [1, 1, 1, 1, 1, 0],
        [0, P, -P, Q, -Q, 0],
        [0, P * P, P * P, Q * Q, Q * Q, 0],
        [0, P * P * P, -P * P * P, Q * Q * Q, -Q * Q * Q, 1],
    ],
}


@oracle
def conv2d_winograd(attr: Any, x: AnyArray, w: AnyArray, **addends: AnyArray) -> list[AnyArray]:
    narrow: Any = np.float64 if attr.dtype == "float32" else WIDE
    (top, bottom), (left, right) = attr.padding
    tile, size = attr.tile, attr.tile + 2
    high, wide = attr.height + top + bottom - 2, attr.width + left + right - 2
    rows, columns = -(-high // tile), -(-wide // tile)
    padded = np.zeros((attr.batch, high + 2 + tile, wide + 2 + tile, attr.channels), narrow)
    padded[:, top : top + attr.height, left : left + attr.width] = x
    filters = np.zeros((size * size, attr.channels, attr.filters), narrow)
    for f in range(attr.filters):
        filters[:, :, f] = w[:, f // 32, :, f % 32]
    pixels = [
        [padded[:, a : a + rows * tile : tile, b : b + columns * tile : tile] for b in range(size)] for a in range(size)
    ]
    patches = _from_both_sides(IMAGE[tile], pixels)
    products = [[patches[i][j] @ filters[i * size + j] for j in range(size)] for i in range(size)]
    z = np.zeros((attr.batch, rows * tile, columns * tile, attr.filters), narrow)
    for k, row in enumerate(_from_both_sides(RESULT[tile], products)):
        for m, values in enumerate(row):
            z[:, k::tile, m::tile] = values
    result = z[:, :high, :wide].astype(WIDE)
    for addend in addends.values():
        result = result + addend
    if attr.activation == "gelu":
        return [result * erfc(-result / np.sqrt(WIDE(2))).astype(WIDE) / 2]
    return [result * sigmoid(result) if attr.activation == "silu" else ACTIVATIONS[attr.activation](result)]


def _from_both_sides(matrix: list[list[float]], arrays: list[list[AnyArray]]) -> list[list[Any]]:
    """The matrix, times a matrix of arrays, times the transposed matrix; zeros of it multiply nothing."""
    terms = range(len(arrays))
    down = [[sum(row[a] * arrays[a][b] for a in terms if row[a]) for b in terms] for row in matrix]
    return [[sum(row[b] * line[b] for b in terms if row[b]) for row in matrix] for line in down]
