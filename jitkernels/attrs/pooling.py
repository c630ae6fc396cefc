"""MAX_POOL2D, its gradient, and AVG_POOL2D: the maximum or the mean of windows of images."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from jitkernels.attrs.schema.base import FLOATS, Case, KernelAttr, Tolerance, cases, custom, grid
from jitkernels.attrs.schema.signature import AnyArray, Argument
from jitkernels.attrs.windows import (
    A_PAIR,
    BORDERS,
    Pair,
    borders,
    listed,
    pair,
    pair_or_none,
    window_extents,
    windows_of,
)
from jitkernels.errors import AttrError

POOL_SWEEP_FIELDS = "batch height width channels window stride padding"
"""The names of the fields in sweeps, in their order."""
SMALL_POOLS = (
    (1, 1, 1, 1, 1, None, 0),
    (2, 5, 7, 3, 3, 2, 1),
    (1, 4, 9, 33, (2, 3), 1, ((0, 1), (2, 0))),
    (1, 6, 5, 8, (6, 5), 1, 0),
)
POOLS_OF_NETWORKS = (
    (1, 112, 112, 64, 3, 2, 1),
    (1, 224, 224, 64, 2, 2, 0),
    (1, 55, 55, 96, 3, 2, 0),
    (1, 28, 28, 256, 3, 1, 1),
    (1, 7, 7, 2048, 7, 1, 0),
)


class PoolAttr(KernelAttr):
    """Fields of pooling: images, and windows that slide over them. The window is an option without a default."""

    batch: int
    height: int
    width: int
    channels: int
    window: Pair = custom(pair, to_json=listed, from_json=pair, meaning=A_PAIR, samples=(1, 2, (3, 2)))
    stride: Pair | None = custom(
        pair_or_none, to_json=listed, from_json=pair_or_none, meaning=f"{A_PAIR}; the window if None", default=None,
        samples=(1, 2, (1, 3)),
    )  # fmt: skip
    padding: tuple[Pair, Pair] = custom(
        borders, to_json=listed, from_json=borders, meaning=BORDERS, default=((0, 0), (0, 0)),
        samples=(0, 1, (0, 2), ((0, 2), (2, 1))),
    )  # fmt: skip
    dilation: Pair = custom(pair, to_json=listed, from_json=pair, meaning=A_PAIR, default=(1, 1), samples=(2, (3, 1)))
    ceil_mode: bool = False
    dtype: str = "float32"
    arrays: ClassVar[tuple[Argument, ...]] = (
        Argument("x", "in", "*batch height width channels"),
        Argument("y", "out", "*batch out_height out_width channels", pitch="y_pitch"),
    )
    options: ClassVar[tuple[str, ...]] = ("window", "stride", "padding", "dilation", "ceil_mode")
    streams: ClassVar[tuple[tuple[int, ...], ...]] = ((256, 64, 64, 16),)
    derived: ClassVar[tuple[str, ...]] = (
        "out_height", "out_width", "window_height", "window_width", "stride_height", "stride_width",
        "pad_top", "pad_left", "pad_bottom", "pad_right", "dilation_height", "dilation_width", "y_pitch",
    )  # fmt: skip
    out_height: ClassVar[int]
    out_width: ClassVar[int]

    @classmethod
    def derive(cls, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        window, dilation, padding = fields["window"], fields["dilation"], fields["padding"]
        for axis in range(2):
            covered = dilation[axis] * (window[axis] - 1) + 1
            if max(padding[axis]) >= covered:
                raise AttrError(
                    f"{cls.__name__}: padding: expected less than the {covered} elements that a window covers, "
                    f"got {max(padding[axis])}"
                )
        extents = window_extents(cls.__name__, fields, window, ceil_mode=fields["ceil_mode"])
        sides = {"window_height": window[0], "window_width": window[1]}
        known = extents | sides | {"pad_bottom": padding[0][1], "pad_right": padding[1][1]}
        return known | {"y_pitch": fields["channels"]} if "y_pitch" in cls.derived else known

    @property
    def area(self) -> int:
        """The number of elements of a window."""
        return self.window[0] * self.window[1]

    def pooled_windows(self, x: AnyArray, fill: float) -> AnyArray:
        """The windows of the images, with `fill` around these: [batch, out_height, out_width, channels, area]."""
        counts, sizes, reach = (self.out_height, self.out_width), (self.height, self.width), []
        for axis, (before, _) in enumerate(self.padding):
            begin = (counts[axis] - 1) * (self.stride or self.window)[axis]
            end = begin + self.dilation[axis] * (self.window[axis] - 1) + 1
            reach.append((before, max(end - before - sizes[axis], 0)))
        padded = np.pad(x, ((0, 0), *reach, (0, 0)), constant_values=fill)
        windows = windows_of(self, padded, self.window)
        return windows.reshape(*windows.shape[:4], self.area)

    def operations(self) -> float:
        return float(self.batch) * self.out_height * self.out_width * self.channels * self.area

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = grid(cls, POOL_SWEEP_FIELDS, SMALL_POOLS, dtype=FLOATS) + grid(
            cls, POOL_SWEEP_FIELDS, SMALL_POOLS[1:3], dtype=FLOATS, ceil_mode=(True,)
        )
        return cases(grid(cls, POOL_SWEEP_FIELDS, POOLS_OF_NETWORKS, dtype=FLOATS), ci=ci)


class MaxPool2DAttr(PoolAttr, kernel_type="MAX_POOL2D"):
    """y[n, i, j, c] = max over a, b of x[n, si * i + da * a - top, sj * j + db * b - left, c], in images.

    Channels are last; a and b run over `window`, where that is inside of the image. `stride` is (si, sj), by default
    the window, `dilation` (da, db), and `padding` ((top, bottom), (left, right)); an int or a pair of ints stand for
    equal ones, and padding is less than what a window covers. With `ceil_mode` a last window may reach
    beyond the padding, if it begins before the padding behind the image. A window without any element of the image, as
    a dilated one may be, gives minus infinity.
    """

    def tolerance(self) -> Tolerance:
        return Tolerance(ulp=0)


class MaxPool2DBackwardAttr(PoolAttr, kernel_type="MAX_POOL2D_BACKWARD"):
    """dx[m] = sum of dy[n, i, j, c] over all windows of MAX_POOL2D whose first maximum is the element m of x.

    The gradient of MAX_POOL2D with respect to the images, where `dy` is that with respect to its result. The elements
    of a window are compared row by row, and the first one of equal ones receives all of it; NaN is a maximum.
    """

    arrays = (
        Argument("x", "in", "*batch height width channels"),
        Argument("dy", "in", "*batch out_height out_width channels"),
        Argument("dx", "out", "*batch height width channels"),
    )
    derived = PoolAttr.derived[:-1]

    def tolerance(self) -> Tolerance:
        """A sum of as many gradients as windows overlap, in any order."""
        return Tolerance(ulp=1, terms=self.area / 2)

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The same sums of |dy|."""
        x, dy, dx = arrays
        return [self.scattered(self.maxima(x), np.abs(dy), dx)]

    def maxima(self, x: AnyArray) -> AnyArray:
        """The tap of the first maximum of each window, -1 where it has no element."""
        windows = self.pooled_windows(x, -np.inf)
        best = windows.max(axis=-1, keepdims=True)
        found = (windows == best) | (np.isnan(windows) & np.isnan(best))
        found &= self.pooled_windows(np.ones_like(x), 0) > 0
        return np.where(found.any(axis=-1), np.argmax(found, axis=-1), -1)

    def scattered(self, taps: AnyArray, dy: AnyArray, like: AnyArray) -> AnyArray:
        """The sums of gradients, each added at the tap of its window; of the dtype and shape of `like`."""
        down, along = self.stride or self.window
        counts, reach = (self.out_height, self.out_width), []
        for axis in range(2):
            covered = self.dilation[axis] * (self.window[axis] - 1) + 1
            reach.append((counts[axis] - 1) * (down, along)[axis] + covered)
        top, left = self.padding[0][0], self.padding[1][0]
        padded = np.zeros(
            (len(like), max(reach[0], top + self.height), max(reach[1], left + self.width), self.channels), like.dtype
        )
        for tap in range(self.area):
            row, column = (self.dilation[axis] * number for axis, number in enumerate(divmod(tap, self.window[1])))
            rows, columns = slice(row, row + down * counts[0], down), slice(column, column + along * counts[1], along)
            padded[:, rows, columns] += np.where(taps == tap, dy, np.zeros((), like.dtype))
        return padded[:, top : top + self.height, left : left + self.width]


class AvgPool2DAttr(PoolAttr, kernel_type="AVG_POOL2D"):
    """y[n, i, j, c] = mean over a, b of x[n, si * i + da * a - top, sj * j + db * b - left, c], in images.

    Channels are last; a and b run over `window`, where that is inside of the image. `stride` is (si, sj), by default
    the window, `dilation` (da, db), and `padding` ((top, bottom), (left, right)); an int or a pair of ints stand for
    equal ones, and padding is less than what a window covers. With `ceil_mode` a last window may reach
    beyond the padding, if it begins before the padding behind the image. With `count_include_pad` padding counts as
    zeros; what is beyond never counts. A window without anything to count, as a dilated one may be, gives NaN.
    """

    count_include_pad: bool = False
    options = (*PoolAttr.options, "count_include_pad")

    def tolerance(self) -> Tolerance:
        """A sum of each row of the window, one of these, and a division."""
        return Tolerance(ulp=2, terms=sum(self.window) / 2)

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The sum of |x| over the window, divided as the result is; where it overflows nothing is promised."""
        sums = self.pooled_windows(np.abs(arrays[0]), 0).sum(axis=-1)
        return [np.where(sums > float(np.finfo(self.dtype).max), np.inf, sums / self.counts())]

    def counts(self) -> AnyArray:
        """How many elements of each window count: [out_height, out_width, 1]."""
        sides = []
        for axis, size in enumerate((self.height, self.width)):
            before, after = self.padding[axis]
            count = (self.out_height, self.out_width)[axis]
            begins = (self.stride or self.window)[axis] * np.arange(count)[:, np.newaxis] - before
            index = begins + self.dilation[axis] * np.arange(self.window[axis])
            least, most = (-before, size + after) if self.count_include_pad else (0, size)
            sides.append(((index >= least) & (index < most)).sum(axis=1))
        counts: AnyArray = np.multiply.outer(*sides)[..., np.newaxis]
        return counts
