"""ROPE: rotary position embedding."""

from collections.abc import Iterable, Sequence

import numpy as np

from jitkernels.attrs.schema.base import FLOATS, Case, KernelAttr, Tolerance, cases, grid
from jitkernels.attrs.schema.signature import AnyArray, Argument


class RopeAttr(KernelAttr, kernel_type="ROPE"):
    """y = x * cos - partner * sin in the first element of each pair, y = x * cos + partner * sin in the second.

    x is [rows, positions, 2 * half]; the tables cos and sin are [positions, half], one angle per pair, usually
    position / base ** (i / half). Pairs are the elements i and i + half, as in GPT-NeoX and in Hugging Face's Llama;
    with `interleaved` they are 2 * i and 2 * i + 1, as in Su et al. (2021), "RoFormer", and in Llama itself.
    """

    rows: int
    positions: int
    half: int
    interleaved: bool = False
    dtype: str = "float32"
    arrays = (
        Argument("x", "in", "*rows positions 2*half", in_place=True),
        Argument("cos", "in", "positions half", domain=(-1.0, 1.0)),
        Argument("sin", "in", "positions half", domain=(-1.0, 1.0)),
        Argument("y", "out", "*rows positions 2*half", in_place=True),
    )
    options = ("interleaved",)
    streams = ((64, 2048, 64),)

    def tolerance(self) -> Tolerance:
        """Two products and a sum."""
        return Tolerance(ulp=1, terms=1)

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """|x * cos| + |partner * sin|."""
        x, cos, sin, _ = (np.abs(array) for array in arrays)
        return [rotated(x, cos, sin, interleaved=self.interleaved, sign=1)]

    def operations(self) -> float:
        return 6.0 * self.rows * self.positions * self.half

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, 1, 1), (2, 3, 2), (3, 5, 16), (2, 2, 33)]
        full = [(8, positions, half) for positions in (1, 64, 2048) for half in (32, 64)] + [(1, 4096, 64)]
        return cases(
            grid(cls, "rows positions half", full, dtype=FLOATS, interleaved=(False, True)),
            ci=grid(cls, "rows positions half", ci, dtype=FLOATS, interleaved=(False, True)),
        )


def rotated(x: AnyArray, cos: AnyArray, sin: AnyArray, *, interleaved: bool, sign: int = -1) -> AnyArray:
    """Rotate the pairs of elements of the last axis; absolute terms use a positive `sign`."""
    half = cos.shape[-1]
    shape = (*x.shape[:-1], half, 2) if interleaved else (*x.shape[:-1], 2, half)
    axis = -1 if interleaved else -2
    first, second = np.moveaxis(x.reshape(shape), axis, 0)
    return np.stack([first * cos + sign * second * sin, second * cos + first * sin], axis).reshape(x.shape)
