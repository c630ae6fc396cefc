"""CONV2D_BACKWARD_WEIGHTS: the gradient of a convolution with respect to its filters."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from jitkernels.attrs.schema.base import FLOATS, Case, KernelAttr, Tolerance, cases, custom, grid, whole
from jitkernels.attrs.schema.signature import AnyArray, Argument
from jitkernels.attrs.windows import (
    A_PAIR,
    BORDERS,
    Pair,
    borders,
    class_sizes,
    group_channels_of,
    listed,
    pair,
    window_extents,
    windows_of,
)

GRADIENT_SWEEP_FIELDS = "batch height width channels kernel filters stride padding groups"
"""The names of the fields in sweeps, in their order."""


class Conv2DBackwardWeightsAttr(KernelAttr, kernel_type="CONV2D_BACKWARD_WEIGHTS"):
    """dw[a, b, c, f] = sum over n, i, j of x[n, si*i + da*a - top, sj*j + db*b - left, c] * dy[n, i, j, f].

    The gradient of CONV2D with respect to its filters, where `dy` is that with respect to its result, before bias,
    residual and activation. `kernel` are height and width of the filters; the other options are those of CONV2D, and
    an int or a pair of ints stand for equal ones. With `groups`, channels and filters form so many groups of
    neighbours, c counts within the group of filter f, and x is read at its channels. Products with the padding may be
    left out: infinite gradients need not make NaN of its zeros.
    """

    batch: int
    height: int
    width: int
    channels: int
    filters: int
    kernel: Pair = custom(pair, to_json=listed, from_json=pair, meaning=A_PAIR, samples=(1, 2, (3, 2)))
    stride: Pair = custom(pair, to_json=listed, from_json=pair, meaning=A_PAIR, default=(1, 1), samples=(2, (1, 3)))
    padding: tuple[Pair, Pair] = custom(
        borders, to_json=listed, from_json=borders, meaning=BORDERS, default=((0, 0), (0, 0)),
        samples=(1, (0, 2), ((0, 3), (2, 1))),
    )  # fmt: skip
    dilation: Pair = custom(pair, to_json=listed, from_json=pair, meaning=A_PAIR, default=(1, 1), samples=(2, (3, 1)))
    groups: int = whole(default=1, least=1, samples=(1, 2, 3))
    dtype: str = "float32"
    arrays = (
        Argument("x", "in", "*batch height width channels"),
        Argument("dy", "in", "*batch out_height out_width filters"),
        Argument("dw", "out", "kernel_height kernel_width group_channels filters"),
    )
    options: ClassVar[tuple[str, ...]] = ("kernel", "stride", "padding", "dilation", "groups")
    derived: ClassVar[tuple[str, ...]] = (
        "group_channels", "kernel_height", "kernel_width", "out_height", "out_width", "stride_height", "stride_width",
        "pad_top", "pad_left", "dilation_height", "dilation_width",
    )  # fmt: skip
    group_channels: ClassVar[int]
    kernel_height: ClassVar[int]
    kernel_width: ClassVar[int]
    out_height: ClassVar[int]
    out_width: ClassVar[int]

    @classmethod
    def derive(cls, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        window, group_channels = fields["kernel"], group_channels_of(cls.__name__, fields)
        sides = {"kernel_height": window[0], "kernel_width": window[1], "group_channels": group_channels}
        return sides | window_extents(cls.__name__, fields, window, ceil_mode=False)

    @property
    def pixels(self) -> int:
        """The number of products that an element of the result is the sum of."""
        return self.batch * self.out_height * self.out_width

    def correlated(self, x: AnyArray, dy: AnyArray) -> AnyArray:
        """The sums of products: windows of the padded images as the rows of matrices (im2col), transposed, times `dy`.

        A row is a pixel's window, whose channels lie together in the images.
        """
        padded = np.pad(x, ((0, 0), *self.padding, (0, 0)))
        windows = windows_of(self, padded, self.kernel).transpose(0, 1, 2, 4, 5, 3)
        taps, groups, depth, own = self.kernel[0] * self.kernel[1], self.groups, self.group_channels, self.filters
        rows = windows.reshape(self.pixels, taps, groups, depth).transpose(2, 0, 1, 3)
        columns = dy.reshape(self.pixels, groups, own // groups).transpose(1, 0, 2)
        sums = rows.reshape(groups, self.pixels, taps * depth).transpose(0, 2, 1) @ columns
        return sums.transpose(1, 0, 2).reshape(*self.kernel, depth, own)

    def tolerance(self) -> Tolerance:
        """As MATMUL: a chain of products and sums in any order."""
        return Tolerance(ulp=4, terms=self.pixels / 2 + 1)

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The same sums of |x| and |dy|; NaN, which is no bound, where zeros of the padding meet infinities."""
        return [self.correlated(*map(np.abs, arrays[:2]))]

    def operations(self) -> float:
        return 2.0 * self.pixels * self.kernel[0] * self.kernel[1] * self.group_channels * self.filters

    def size_class(self) -> Self:
        fields = self.fields()
        sizes = class_sizes(fields)
        return self if sizes.items() <= fields.items() else type(self)(**fields | sizes)

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        layers = [
            (4, 224, 224, 3, 7, 64, 2, 3, 1), (4, 56, 56, 64, 3, 64, 1, 1, 1), (4, 56, 56, 64, 1, 256, 1, 0, 1),
            (4, 28, 28, 128, 3, 128, 1, 1, 1), (4, 14, 14, 256, 3, 256, 1, 1, 1), (4, 7, 7, 512, 3, 512, 1, 1, 1),
            (4, 28, 28, 116, 3, 116, 1, 1, 116),
        ]  # fmt: skip
        ci = [
            (1, 1, 1, 1, 1, 1, 1, 0, 1),
            (2, 2, 3, 2, (1, 1), 70, 1, 0, 1),
            (2, 5, 7, 3, 3, 5, 1, 1, 1),
            (1, 6, 31, 4, (2, 3), 40, 2, 2, 1),
            (2, 5, 6, 6, (3, 2), 6, 1, 1, 6),
            (1, 4, 5, 6, (1, 3), 9, 2, 1, 3),
        ]
        return cases(
            grid(cls, GRADIENT_SWEEP_FIELDS, layers, dtype=FLOATS),
            ci=grid(cls, GRADIENT_SWEEP_FIELDS, ci, dtype=FLOATS),
        )
