"""RESIZE2D: images of another size, by their nearest pixels or by interpolation."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from jitkernels.attrs.schema.base import FLOATS, Case, KernelAttr, Tolerance, cases, choice, custom, grid
from jitkernels.attrs.schema.signature import AnyArray, Argument
from jitkernels.attrs.windows import A_PAIR, MAX_WINDOW_NUMBER, Pair, listed, pair
from jitkernels.errors import AttrError

MODES = ("nearest", "linear", "cubic")
COORDINATES = ("half_pixel", "align_corners", "asymmetric")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
CUBIC = -0.75
"""The slope of the cubic kernel at a distance of 1 (Keys, 1981), as in OpenCV and torch."""


class Resize2DAttr(KernelAttr, kernel_type="RESIZE2D"):
    """y[n, i, j, c] = sum over a and b of u[a] * v[b] * x[n, k + a, l + b, c], in images of `size` (height, width).

    Channels are last. Pixel i of m along an axis lies at the place p among the h pixels of x: p = (i + 0.5) * h / m -
    0.5 (half_pixel), i * (h - 1) / (m - 1) (align_corners; 0 for m = 1) or i * h / m (asymmetric). `nearest` takes the
    pixel at p rounded (`rounding`: halves down, halves up, down, or up). With k = floor(p) and t = p - k, `linear` has
    the weights 1 - t and t of the pixels k and k + 1; `cubic` those of the pixels k - 1 to k + 2 by the kernel of
    Keys, Cubic Convolution Interpolation for Digital Image Processing, 1981, with a = -0.75. Pixels beyond the image
    are those at its border. Places are exact: no rounding of p decides which pixel is the nearest one.
    """

    batch: int
    height: int
    width: int
    channels: int
    size: Pair = custom(pair, to_json=listed, from_json=pair, meaning=A_PAIR, samples=(1, (2, 5), (7, 3)))
    mode: str = choice(*MODES, default="linear")
    coordinates: str = choice(*COORDINATES, default="half_pixel")
    rounding: str = choice(*ROUNDINGS, default="round_prefer_floor")
    dtype: str = "float32"
    arrays = (
        Argument("x", "in", "*batch height width channels"),
        Argument("y", "out", "*batch out_height out_width channels"),
    )
    options: ClassVar[tuple[str, ...]] = ("size", "mode", "coordinates", "rounding")
    derived: ClassVar[tuple[str, ...]] = ("out_height", "out_width")
    streams: ClassVar[tuple[tuple[int, ...], ...]] = ((256, 64, 64, 16),)
    out_height: ClassVar[int]
    out_width: ClassVar[int]

    @classmethod
    def derive(cls, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        for name in ("height", "width"):
            if fields[name] < 1 or fields[name] > MAX_WINDOW_NUMBER:
                raise AttrError(f"{cls.__name__}: {name}: expected 1 to {MAX_WINDOW_NUMBER}, got {fields[name]}")
        return {"out_height": fields["size"][0], "out_width": fields["size"][1]}

    @property
    def taps(self) -> int:
        """The pixels along an axis that a result is made of."""
        return {"nearest": 1, "linear": 2, "cubic": 4}[self.mode]

    def places(self, axis: int) -> tuple[AnyArray, Any]:
        """The places of the results along an axis, as numerators and a denominator."""
        pixels, count = (self.height, self.width)[axis], self.size[axis]
        i = np.arange(count)
        if self.coordinates == "half_pixel":
            return (2 * i + 1) * pixels - count, 2 * count
        if self.coordinates == "align_corners":
            return i * (pixels - 1), max(count - 1, 1)
        return i * pixels, count

    def neighbours(self, axis: int) -> list[tuple[AnyArray, Any]]:
        """The pixels along an axis that results are made of, and their weights; None for the nearest ones."""
        (numerator, denominator), last = self.places(axis), (self.height, self.width)[axis] - 1
        if self.mode == "nearest":
            index = {
                "floor": lambda: numerator // denominator,
                "ceil": lambda: -(-numerator // denominator),
                "round_prefer_floor": lambda: -((denominator - 2 * numerator) // (2 * denominator)),
                "round_prefer_ceil": lambda: (2 * numerator + denominator) // (2 * denominator),
            }[self.rounding]()
            return [(np.minimum(np.maximum(index, 0), last), None)]
        first = numerator // denominator
        t = (numerator - first * denominator) / denominator
        weights = [1 - t, t] if self.mode == "linear" else [_far(1 + t), _near(t), _near(1 - t), _far(2 - t)]
        return [
            (np.minimum(np.maximum(first + offset, 0), last), weight.astype(self.dtype))
            for offset, weight in enumerate(weights, start=0 if self.mode == "linear" else -1)
        ]

    def along(self, axis: int, x: AnyArray, more: float = 0.0) -> AnyArray:
        """Images that are resized along an axis; with `more`, by the magnitudes of weights and that."""
        total: Any = None
        for index, weight in self.neighbours(axis):
            term = x[:, index] if axis == 0 else x[:, :, index]
            if weight is not None:
                factor = np.abs(weight) + more if more else weight
                term = term * (factor[:, np.newaxis, np.newaxis] if axis == 0 else factor[:, np.newaxis])
            total = term if total is None else total + term
        result: AnyArray = total
        return result

    def matrix(self, axis: int) -> AnyArray:
        """The weights of all pixels along an axis: [results, pixels]."""
        pixels = np.arange((self.height, self.width)[axis])
        total: Any = 0.0
        for index, weight in self.neighbours(axis):
            is_there = (index[:, np.newaxis] == pixels).astype(self.dtype)
            total = total + (is_there if weight is None else is_there * weight[:, np.newaxis])
        result: AnyArray = total
        return result

    def tolerance(self) -> Tolerance:
        """Weights that are rounded, products and sums along both axes."""
        return Tolerance(
            ulp=0 if self.mode == "nearest" else 1, terms=0 if self.mode == "nearest" else 4 + 2 * self.taps
        )

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The same sums of |x|; weights are rounded as numbers of at least a quarter.

        Where sums along one axis may overflow, in whichever order axes are taken, there is no bound.
        """
        terms = self.along(0, self.along(1, np.abs(arrays[0]), 0.25), 0.25)
        return [np.where(terms < float(np.finfo(self.dtype).max) / 32, terms, np.where(np.isnan(terms), terms, np.inf))]

    def operations(self) -> float:
        return float(self.batch) * self.out_height * self.out_width * self.channels * (4 * self.taps - 3)

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        names = "batch height width channels size mode"
        full = [
            (1, 56, 56, 64, 112, "linear"), (1, 28, 28, 256, 56, "linear"), (1, 26, 26, 128, 52, "nearest"),
            (1, 224, 224, 3, 299, "linear"), (1, 640, 640, 3, 224, "linear"), (64, 56, 56, 1, 112, "linear"),
            (1, 56, 56, 64, 112, "cubic"), (1, 65, 65, 21, 513, "linear"),
        ]  # fmt: skip
        ci = [
            *((1, 1, 1, 1, 1, mode) for mode in MODES),
            *((2, 3, 5, 2, (7, 4), mode) for mode in MODES),
            *((2, 4, 6, 37, (3, 9), mode) for mode in MODES),
            *((3, 5, 40, 1, (8, 70), mode) for mode in MODES),
        ]
        others = [
            cls(batch=1, height=4, width=7, channels=3, size=(9, 5), mode=mode, coordinates=coordinates)
            for mode in MODES for coordinates in COORDINATES[1:]
        ]  # fmt: skip
        rounded = [
            cls(batch=1, height=4, width=9, channels=1, size=(8, 6), mode="nearest", rounding=rounding)
            for rounding in ROUNDINGS[1:]
        ]
        return cases(grid(cls, names, full, dtype=FLOATS), ci=[*grid(cls, names, ci, dtype=FLOATS), *others, *rounded])


def _near(x: AnyArray) -> AnyArray:
    """The cubic kernel at distances up to 1."""
    return ((CUBIC + 2) * x - (CUBIC + 3)) * x * x + 1


def _far(x: AnyArray) -> AnyArray:
    """The cubic kernel at distances from 1 to 2."""
    return ((CUBIC * x - 5 * CUBIC) * x + 8 * CUBIC) * x - 4 * CUBIC
