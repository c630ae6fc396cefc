"""LOCAL_RESPONSE_NORM: elements divided by a power of the squares of their neighbours in a row."""

from collections.abc import Iterable, Sequence

import numpy as np

from jitkernels.attrs.schema.base import FLOATS, Case, KernelAttr, Tolerance, cases, grid, real, whole
from jitkernels.attrs.schema.signature import AnyArray, Argument

MAX_NEIGHBOURS = 1024
"""Most `size`: neighbours are added up one after the other."""
MAX_BETA = 8.0
"""Largest `beta`, which multiplies the errors of a sum."""


class LocalResponseNormAttr(KernelAttr, kernel_type="LOCAL_RESPONSE_NORM"):
    """y[i, j] = x[i, j] / (bias + alpha / size * sum over k of x[i, k] ** 2) ** beta, with k from j - b to j + a.

    The neighbours are `size` channels, b = (size - 1) // 2 of them before and a = size // 2 behind; those beyond the
    row are 0. Channels are last. Krizhevsky, Sutskever and Hinton, ImageNet Classification with Deep Convolutional
    Neural Networks, 2012.
    """

    rows: int
    channels: int
    size: int = whole(default=5, least=1, most=MAX_NEIGHBOURS, is_size=False, samples=(1, 2, 3))
    alpha: float = real(default=1e-4, least=0.0, samples=(0.0, 1.0))
    beta: float = real(default=0.75, least=0.0, most=MAX_BETA, samples=(0.5, 1.0, 0.6))
    bias: float = real(default=1.0, least=0.0, samples=(2.0, 0.5))
    dtype: str = "float32"
    arrays = (Argument("x", "in", "*rows channels"), Argument("y", "out", "*rows channels"))
    floats = ("alpha", "beta", "bias")
    options = ("size", "alpha", "beta", "bias")
    streams = ((1 << 14, 1024),)

    def tolerance(self) -> Tolerance:
        """Errors of a sum of squares and of the base, raised to the power; the power and the quotient."""
        return Tolerance(ulp=6 + 8 * (self.size / 2 + 3), terms=1)

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """Nothing but what underflows; there is no bound where squares or powers leave the range of numbers."""
        limits = np.finfo(self.dtype)
        with np.errstate(all="ignore"):
            squares = sums_of_neighbours(np.square(arrays[0]), self.size)
            base = self.bias + self.alpha / self.size * squares
            power = base**self.beta
            is_inside = (squares < float(limits.max)) & (base > float(limits.tiny) * 2**24) & (base < float(limits.max))
            is_inside &= (power > float(limits.tiny)) & (power < float(limits.max))
            lost = float(limits.tiny) * (1 + self.beta * np.abs(arrays[0]) / power / base * (self.alpha + 1))
        return [np.where(is_inside, lost, np.inf)]

    def operations(self) -> float:
        return float(self.rows) * self.channels * (2 * self.size + 30)

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        full = [(3025, 96), (729, 256), (3136, 64), (3136, 192)]
        ci = [(1, 1), (3, 2), (2, 7), (5, 96), (1, 1000)]
        return cases(
            grid(cls, "rows channels", full, dtype=FLOATS),
            ci=[
                *grid(cls, "rows channels", ci, dtype=FLOATS),
                *grid(cls, "rows channels size beta", [(3, 40, 3, 0.5), (2, 9, 4, 0.6), (2, 9, 1, 1.0)], alpha=(1.0,)),
            ],
        )


def sums_of_neighbours(squares: AnyArray, size: int) -> AnyArray:
    """The sums of `size` neighbours in each row."""
    padded = np.pad(squares, ((0, 0), ((size - 1) // 2, size // 2)))
    total = padded[:, : squares.shape[1]]
    for i in range(1, size):
        total = total + padded[:, i : i + squares.shape[1]]
    return total
