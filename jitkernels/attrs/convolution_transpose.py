"""CONV2D_TRANSPOSE and CONV2D_TRANSPOSE_PACKED: the transpose of a convolution, with a bias and an activation."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import gcd
from typing import Any, ClassVar, Self

import numpy as np

from jitkernels.attrs.filter_panels import PANEL
from jitkernels.attrs.matmul_epilogue import ACTIVATIONS
from jitkernels.attrs.schema.base import (
    FLOATS,
    Case,
    KernelAttr,
    PackedInputs,
    Tolerance,
    cases,
    choice,
    custom,
    grid,
    whole,
)
from jitkernels.attrs.schema.signature import AnyArray, Argument
from jitkernels.attrs.windows import (
    A_PAIR,
    A_PAIR_OF_ZERO,
    BORDERS,
    Pair,
    borders,
    class_sizes,
    group_channels_of,
    listed,
    pair,
    pair_of_zero,
    transposed_extents,
)
from jitkernels.core.aligned_memory import aligned_empty

TRANSPOSE_SWEEP_FIELDS = "batch height width channels kernel_height kernel_width filters stride padding"
"""The names of the fields in sweeps, in their order."""


class Conv2DTransposeAttr(KernelAttr, kernel_type="CONV2D_TRANSPOSE"):
    """y[n, i, j, f] = activation(bias[f] + z[n, i, j, f]), where each pixel of x adds its filters to z.

    x[n, k, l, c] * w[a, b, c, f] is added to z[n, si*k + da*a - top, sj*l + db*b - left, f] for all a, b and c: the
    transpose of CONV2D, which its gradient with respect to images is, and up-sampling in networks. x counts as 0
    outside of the image. The result has si * (height - 1) + da * (kernel_height - 1) + 1 - top - bottom +
    output_padding rows: `stride` is (si, sj), `dilation` (da, db), `padding` ((top, bottom), (left, right)) is cut off,
    and `output_padding` is what is added below and on the right; an int or a pair of ints stand for equal ones. With
    `groups`, channels and filters form so many groups of neighbours, the filters of a group see its channels alone, and
    c counts within it. Activations are those of MATMUL_EPILOGUE; without `biased` there is no bias. Products with what
    counts as 0 may be left out: infinite filters need not make NaN of it.
    """

    batch: int
    height: int
    width: int
    channels: int
    kernel_height: int = whole(least=1, is_size=False, samples=(1, 2, 3))
    kernel_width: int = whole(least=1, is_size=False, samples=(1, 2, 3))
    filters: int
    stride: Pair = custom(pair, to_json=listed, from_json=pair, meaning=A_PAIR, default=(1, 1), samples=(2, (1, 3)))
    padding: tuple[Pair, Pair] = custom(
        borders, to_json=listed, from_json=borders, meaning=BORDERS, default=((0, 0), (0, 0)),
        samples=((0, 1), ((1, 0), (0, 1))),
    )  # fmt: skip
    output_padding: Pair = custom(
        pair_of_zero,
        to_json=listed,
        from_json=pair_of_zero,
        meaning=A_PAIR_OF_ZERO,
        default=(0, 0),
        samples=(2, (1, 3)),
    )
    dilation: Pair = custom(pair, to_json=listed, from_json=pair, meaning=A_PAIR, default=(1, 1), samples=(2, (3, 1)))
    groups: int = whole(default=1, least=1, samples=(1, 2, 3))
    biased: bool = True
    activation: str = choice(*ACTIVATIONS, default="identity")
    dtype: str = "float32"
    arrays = (
        Argument("x", "in", "*batch height width channels"),
        Argument("w", "in", "kernel_height kernel_width group_channels filters"),
        Argument("bias", "in", "filters", when="biased"),
        Argument("y", "out", "*batch out_height out_width filters"),
    )
    options: ClassVar[tuple[str, ...]] = ("stride", "padding", "output_padding", "dilation", "groups", "activation")
    derived: ClassVar[tuple[str, ...]] = (
        "group_channels", "out_height", "out_width", "stride_height", "stride_width", "pad_top", "pad_left",
        "dilation_height", "dilation_width",
    )  # fmt: skip
    group_channels: ClassVar[int]
    out_height: ClassVar[int]
    out_width: ClassVar[int]

    @classmethod
    def derive(cls, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        group_channels = group_channels_of(cls.__name__, fields)
        return {"group_channels": group_channels} | transposed_extents(cls.__name__, fields)

    @property
    def terms(self) -> int:
        """The most products that an element of the result is the sum of."""
        return self.kernel_height * self.kernel_width * self.group_channels

    def prepacked(
        self,
        constants: Mapping[str, AnyArray],
        *,
        winograd: bool,  # noqa: ARG002  # of convolutions
    ) -> tuple[KernelAttr, PackedInputs] | None:
        """CONV2D_TRANSPOSE_PACKED, unless each channel has one filter: those are read as they are."""
        if "w" not in constants or self.groups == self.channels == self.filters:
            return None
        attr = Conv2DTransposePackedAttr(**self.fields())
        layout = "CONV2D_TRANSPOSE_PACKED", self.groups, self.stride, self.dilation, self.dtype
        return attr, {"w": (layout, attr.pack)}

    def transposed(self, x: AnyArray, w: AnyArray) -> AnyArray:
        """The sums of products: for each tap a matrix product, added to every stride-th pixel."""
        kernel, sizes, counts = w.shape[:2], (self.height, self.width), (self.out_height, self.out_width)
        lead = [self.dilation[axis] * (kernel[axis] - 1) // self.stride[axis] for axis in range(2)]
        last = [(counts[axis] - 1 + self.padding[axis][0]) // self.stride[axis] for axis in range(2)]
        behind = [max(last[axis] + 1 - sizes[axis], 0) for axis in range(2)]
        padded = np.pad(x, ((0, 0), (lead[0], behind[0]), (lead[1], behind[1]), (0, 0)))
        high, wide, own = *padded.shape[1:3], self.filters // self.groups
        rows = padded.reshape(self.batch * high * wide, self.groups, self.group_channels).transpose(1, 0, 2)
        reach = [
            self.stride[axis] * (lead[axis] + sizes[axis] + behind[axis]) + self.dilation[axis] * (kernel[axis] - 1)
            for axis in range(2)
        ]
        z = np.zeros((self.batch, *reach, self.filters), x.dtype)
        for a in range(kernel[0]):
            for b in range(kernel[1]):
                matrices = w[a, b].reshape(self.group_channels, self.groups, own).transpose(1, 0, 2)
                products = (rows @ matrices).transpose(1, 0, 2).reshape(self.batch, high, wide, self.filters)
                top, left = self.dilation[0] * a, self.dilation[1] * b
                (down, right) = self.stride
                z[:, top : top + down * high : down, left : left + right * wide : right] += products
        top, left = (self.stride[axis] * lead[axis] + self.padding[axis][0] for axis in range(2))
        return z[:, top : top + self.out_height, left : left + self.out_width]

    def tolerance(self) -> Tolerance:
        """As CONV2D: a chain of products and terms in any order, and an activation of slope 1.13 at most."""
        return Tolerance(ulp=4, terms=1.13 * (self.terms / 2 + 3) + 1)

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The same sums of |x| and |w|, plus |bias|; no bound for 0 times an infinite sum."""
        x, w, *bias = (np.abs(array) for array in arrays[:-1])
        terms = sum(bias, start=self.transposed(x, w))
        return [np.where(np.isinf(terms), np.nan, terms) if self.activation in ("gelu", "silu") else terms]

    def operations(self) -> float:
        each = {"identity": 1, "relu": 1}.get(self.activation, 18)
        products = float(self.batch) * self.height * self.width * self.filters * self.terms
        return 2.0 * products + float(self.batch) * self.out_height * self.out_width * self.filters * each

    def size_class(self) -> Self:
        fields = self.fields()
        sizes = class_sizes(fields)
        return self if sizes.items() <= fields.items() else type(self)(**fields | sizes)

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        layers = [
            (1, 28, 28, 512, 2, 2, 256, 2, 0), (1, 56, 56, 256, 2, 2, 128, 2, 0), (1, 112, 112, 128, 2, 2, 64, 2, 0),
            (1, 4, 4, 512, 4, 4, 256, 2, 1), (1, 8, 8, 256, 4, 4, 128, 2, 1), (1, 16, 16, 128, 4, 4, 64, 2, 1),
            (1, 32, 32, 64, 4, 4, 3, 2, 1), (1, 64, 64, 128, 3, 3, 64, 2, 1), (1, 56, 56, 64, 3, 3, 64, 1, 1),
        ]  # fmt: skip
        full = grid(cls, TRANSPOSE_SWEEP_FIELDS, layers, dtype=FLOATS, activation=("relu",))
        full += grid(cls, f"{TRANSPOSE_SWEEP_FIELDS} groups", [(1, 32, 32, 64, 4, 4, 64, 2, 1, 64)], dtype=FLOATS)
        ci = [(1, 1, 1, 1, 1, 1, 1, 1, 0), (1, 2, 3, 2, 1, 1, 70, 2, 0), (2, 5, 7, 3, 3, 3, 5, (2, 1), 1)]
        grouped = [(2, 4, 5, 6, 3, 2, 6, (1, 2), 1, (0, 1), 6), (1, 4, 5, 6, 1, 3, 9, 2, 0, 1, 3)]
        return cases(
            full,
            ci=[
                *grid(cls, TRANSPOSE_SWEEP_FIELDS, ci, dtype=FLOATS, activation=("relu",)),
                *grid(cls, f"{TRANSPOSE_SWEEP_FIELDS} dilation", [(1, 6, 31, 4, 2, 3, 40, (2, 3), 1, 2)], dtype=FLOATS),
                *grid(cls, f"{TRANSPOSE_SWEEP_FIELDS} output_padding groups", grouped, dtype=FLOATS, biased=(False,)),
            ],
        )


class Conv2DTransposePackedAttr(Conv2DTransposeAttr, kernel_type="CONV2D_TRANSPOSE_PACKED"):
    """CONV2D_TRANSPOSE with packed filters: w[p, t, f] = v[a, b, c, 32 * p + f] of its filters v.

    t counts (a, b, c) in the order of `taps`: those that meet in pixels of one phase of the strides lie together, in
    falling order. The filters of each group are cut into panels of 32; the last one is filled with zeros. Compiled
    functions call it where the filters of CONV2D_TRANSPOSE are constants, which are packed once. Their number and
    extents are options, as w does not show them.
    """

    filters: int = whole(default=PANEL, samples=(1, 33))
    kernel_height: int = whole(default=1, least=1, is_size=False, samples=(1, 2, 3))
    kernel_width: int = whole(default=1, least=1, is_size=False, samples=(1, 2, 3))
    arrays = (
        Argument("x", "in", "*batch height width channels"),
        Argument("w", "in", "panels depth panel"),
        Argument("bias", "in", "filters", when="biased"),
        Argument("y", "out", "*batch out_height out_width filters"),
    )
    options = ("filters", "kernel_height", "kernel_width", *Conv2DTransposeAttr.options)
    derived = (*Conv2DTransposeAttr.derived, "panels", "depth", "panel")

    @classmethod
    def derive(cls, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        known = super().derive(fields)
        depth = fields["kernel_height"] * fields["kernel_width"] * known["group_channels"]
        panels = fields["groups"] * ((fields["filters"] // fields["groups"] + PANEL - 1) // PANEL)
        return {**known, "panels": panels, "depth": depth, "panel": PANEL}

    @property
    def taps(self) -> list[tuple[int, int]]:
        """The taps (a, b) in the order of packed filters."""
        kernel = self.kernel_height, self.kernel_width
        apart = [step // gcd(step, skip) for step, skip in zip(self.stride, self.dilation, strict=True)]

        def falling(axis: int) -> Iterator[range]:
            for first in range(min(apart[axis], kernel[axis])):
                yield range(first, kernel[axis], apart[axis])[::-1]

        return [(a, b) for rows in falling(0) for columns in falling(1) for a in rows for b in columns]

    def pack(self, w: AnyArray) -> AnyArray:
        """The filters of CONV2D_TRANSPOSE in panels."""
        own = self.filters // self.groups
        w, taps, panels = np.asarray(w, self.dtype), np.array(self.taps), -(-own // PANEL)
        ordered = w[taps[:, 0], taps[:, 1]].reshape(self.terms, self.groups, own)
        packed: AnyArray = aligned_empty((self.groups, panels, self.terms, PANEL), self.dtype)
        packed[...] = 0
        for panel in range(panels):
            filters = ordered[:, :, panel * PANEL : (panel + 1) * PANEL]
            packed[:, panel, :, : filters.shape[-1]] = filters.transpose(1, 0, 2)
        return packed.reshape(self.groups * panels, self.terms, PANEL)

    def unpack(self, w: AnyArray) -> AnyArray:
        """The inverse of `pack`."""
        own, taps = self.filters // self.groups, self.taps
        groups = w.transpose(1, 0, 2).reshape(self.terms, self.groups, -(-own // PANEL) * PANEL)[:, :, :own]
        ordered = groups.reshape(len(taps), self.group_channels, self.filters)
        places = sorted(range(len(taps)), key=taps.__getitem__)
        return ordered[places].reshape(self.kernel_height, self.kernel_width, self.group_channels, self.filters)

    def prepacked(self, constants: Mapping[str, AnyArray], *, winograd: bool) -> None:
        """None: it is packed."""

    def transposed(self, x: AnyArray, w: AnyArray) -> AnyArray:
        return super().transposed(x, self.unpack(w))
