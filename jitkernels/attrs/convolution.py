"""CONV2D and CONV2D_PACKED: convolution of images with filters, a bias and an activation."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from jitkernels.attrs.filter_panels import PANEL, pack_panels, unpack_panels
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
from jitkernels.attrs.winograd import TAPS, Conv2DWinogradAttr, fastest_tile
from jitkernels.core.aligned_memory import aligned_empty

SWEEP_FIELDS = "batch height width channels kernel_height kernel_width filters"
"""The names of the extents, in their order."""


class Conv2DAttr(KernelAttr, kernel_type="CONV2D"):
    """y[n, i, j, f] = activation(bias[f] + residual[n, i, j, f] + z[n, i, j, f]).

    z[n, i, j, f] is the sum of x[n, si*i + da*a - top, sj*j + db*b - left, c] * w[a, b, c, f] over all a, b and c: the
    cross-correlation that networks call a convolution, of images with channels last. `stride` is (si, sj), `dilation`
    (da, db), and `padding` ((top, bottom), (left, right)) are zeros around the image; an int or a pair of ints stand
    for equal ones. With `groups`, channels and filters form so many groups of neighbours, the filters of a group see
    its channels alone, and c counts within it: as many groups as channels are a depthwise convolution. Activations are
    those of MATMUL_EPILOGUE; without `biased` there is no bias, without `has_residual` no residual. Products with the
    padding may be left out: infinite filters need not make NaN of its zeros.
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
        samples=(1, (0, 2), ((0, 3), (2, 1))),
    )  # fmt: skip
    dilation: Pair = custom(pair, to_json=listed, from_json=pair, meaning=A_PAIR, default=(1, 1), samples=(2, (3, 1)))
    groups: int = whole(default=1, least=1, samples=(1, 2, 3))
    biased: bool = True
    has_residual: bool = False
    activation: str = choice(*ACTIVATIONS, default="identity")
    dtype: str = "float32"
    arrays = (
        Argument("x", "in", "*batch height width channels"),
        Argument("w", "in", "kernel_height kernel_width group_channels filters"),
        Argument("bias", "in", "filters", when="biased"),
        Argument("residual", "in", "*batch out_height out_width filters", when="has_residual"),
        Argument("y", "out", "*batch out_height out_width filters", pitch="y_pitch"),
    )
    options: ClassVar[tuple[str, ...]] = ("stride", "padding", "dilation", "groups", "activation")
    derived: ClassVar[tuple[str, ...]] = (
        "group_channels", "out_height", "out_width", "stride_height", "stride_width", "pad_top", "pad_left",
        "dilation_height", "dilation_width", "y_pitch",
    )  # fmt: skip
    group_channels: ClassVar[int]
    out_height: ClassVar[int]
    out_width: ClassVar[int]

    @classmethod
    def derive(cls, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        group_channels = group_channels_of("Conv2DAttr", fields)
        window = fields["kernel_height"], fields["kernel_width"]
        extents = window_extents("Conv2DAttr", fields, window, ceil_mode=False)
        return {"group_channels": group_channels, "y_pitch": fields["filters"]} | extents

    @property
    def terms(self) -> int:
        """The number of products that an element of the result is the sum of."""
        return self.kernel_height * self.kernel_width * self.group_channels

    def prepacked(self, constants: Mapping[str, AnyArray], *, winograd: bool) -> tuple[KernelAttr, PackedInputs] | None:
        """CONV2D_PACKED, unless each channel has one filter: those are read as they are. Or CONV2D_WINOGRAD."""
        if "w" not in constants or self.groups == self.channels == self.filters:
            return None
        fields, tile = self.fields(), self.winograd_tile() if winograd else 0
        if tile:
            known = Conv2DWinogradAttr.known_fields()
            fast = Conv2DWinogradAttr(**{name: fields[name] for name in known if name in fields}, tile=tile)
            return fast, {"w": (("CONV2D_WINOGRAD", tile, self.dtype), fast.pack)}
        attr = Conv2DPackedAttr(**fields)
        return attr, {"w": (("CONV2D_PACKED", self.groups, self.dtype), attr.pack)}

    def winograd_tile(self) -> int:
        """The extent of the tiles by which Winograd's algorithm is faster than the sums of products; else 0."""
        is_plain = self.kernel_height == self.kernel_width == TAPS and self.stride == self.dilation == (1, 1)
        if not is_plain or self.groups != 1 or self.dtype != "float32":
            return 0
        return fastest_tile(self.batch, self.out_height, self.out_width, self.channels, self.filters)

    def convolved(self, x: AnyArray, w: AnyArray) -> AnyArray:
        """The sums of products: windows of the padded images as the rows of matrices (im2col), times the filters."""
        padded = np.pad(x, ((0, 0), *self.padding, (0, 0)))
        windows = windows_of(self, padded, (self.kernel_height, self.kernel_width)).transpose(0, 1, 2, 4, 5, 3)
        pixels, taps = self.batch * self.out_height * self.out_width, self.kernel_height * self.kernel_width
        groups, depth = self.groups, self.group_channels
        rows = windows.reshape(pixels, taps, groups, depth).transpose(2, 0, 1, 3).reshape(groups, pixels, self.terms)
        matrices = w.reshape(taps, depth, groups, self.filters // groups).transpose(2, 0, 1, 3)
        sums = rows @ matrices.reshape(groups, self.terms, self.filters // groups)
        return sums.transpose(1, 0, 2).reshape(self.batch, self.out_height, self.out_width, self.filters)

    def tolerance(self) -> Tolerance:
        """As MATMUL_EPILOGUE: a chain of products and terms in any order, and an activation of slope 1.13 at most."""
        return Tolerance(ulp=4, terms=1.13 * (self.terms / 2 + 3 + self.has_residual) + 1)

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The convolution of |x| with |w|, plus |bias| and |residual|; no bound for 0 times an infinite sum."""
        x, w, *addends = (np.abs(array) for array in arrays[:-1])
        terms = sum(addends, start=self.convolved(x, w))
        return [np.where(np.isinf(terms), np.nan, terms) if self.activation in ("gelu", "silu") else terms]

    def operations(self) -> float:
        each = {"identity": 1, "relu": 1}.get(self.activation, 18)
        return float(self.batch) * self.out_height * self.out_width * self.filters * (2.0 * self.terms + each)

    def size_class(self) -> Self:
        fields = self.fields()
        sizes = class_sizes(fields)
        return self if sizes.items() <= fields.items() else type(self)(**fields | sizes)

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        layers = [
            (1, 224, 224, 3, 7, 7, 64, 2, 3), (1, 56, 56, 64, 1, 1, 256, 1, 0), (1, 56, 56, 64, 3, 3, 64, 1, 1),
            (1, 28, 28, 128, 3, 3, 128, 1, 1), (1, 28, 28, 512, 1, 1, 1024, 2, 0), (1, 14, 14, 256, 3, 3, 256, 1, 1),
            (1, 7, 7, 512, 3, 3, 512, 1, 1), (1, 7, 7, 2048, 1, 1, 512, 1, 0), (1, 224, 224, 64, 3, 3, 64, 1, 1),
        ]  # fmt: skip
        full = grid(cls, f"{SWEEP_FIELDS} stride padding", layers, dtype=FLOATS, activation=("relu",))
        depthwise = [(1, 56, 56, 58, 3, 3, 58, 2, 1, 58), (1, 28, 28, 116, 3, 3, 116, 1, 1, 116)]
        full += grid(cls, f"{SWEEP_FIELDS} stride padding groups", depthwise, dtype=FLOATS)
        ci = [
            (1, 1, 1, 1, 1, 1, 1, 1, 0),
            (1, 2, 3, 2, 1, 1, 70, 1, 0),
            (2, 5, 7, 3, 3, 3, 5, 1, 1),
            (1, 6, 31, 4, 2, 3, 40, 2, 2),
        ]
        grouped = [(2, 5, 6, 6, 3, 2, 6, 1, 1, 6), (1, 4, 5, 6, 1, 3, 9, 2, 1, 3)]
        added = grid(cls, SWEEP_FIELDS, [(2, 5, 7, 3, 3, 2, 37)], has_residual=(True,), dtype=FLOATS)
        return cases(
            full,
            ci=[
                *grid(cls, f"{SWEEP_FIELDS} stride padding", ci, dtype=FLOATS, activation=("relu",)),
                *grid(cls, f"{SWEEP_FIELDS} stride padding groups", grouped, dtype=FLOATS, biased=(False,)),
                *added,
            ],
        )


class Conv2DPackedAttr(Conv2DAttr, kernel_type="CONV2D_PACKED"):
    """CONV2D with packed filters: w[p, t, f] = v[a, b, c, 32 * p + f] of its filters v, where t counts (a, b, c).

    The filters of each group are cut into panels of 32; the last one is filled with zeros. Compiled functions call it
    where the filters of CONV2D are constants, which are packed once. Their number and extents are options, as w does
    not show them.
    """

    filters: int = whole(default=PANEL, samples=(0, 1, 33))
    kernel_height: int = whole(default=1, least=1, is_size=False, samples=(1, 2, 3))
    kernel_width: int = whole(default=1, least=1, is_size=False, samples=(1, 2, 3))
    arrays = (
        Argument("x", "in", "*batch height width channels"),
        Argument("w", "in", "panels depth panel"),
        Argument("bias", "in", "filters", when="biased"),
        Argument("residual", "in", "*batch out_height out_width filters", when="has_residual"),
        Argument("y", "out", "*batch out_height out_width filters", pitch="y_pitch"),
    )
    options = ("filters", "kernel_height", "kernel_width", *Conv2DAttr.options)
    derived = (*Conv2DAttr.derived, "panels", "depth", "panel")

    @classmethod
    def derive(cls, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        known = super().derive(fields)
        depth = fields["kernel_height"] * fields["kernel_width"] * known["group_channels"]
        panels = fields["groups"] * ((fields["filters"] // fields["groups"] + PANEL - 1) // PANEL)
        return {**known, "panels": panels, "depth": depth, "panel": PANEL}

    def pack(self, w: AnyArray) -> AnyArray:
        """The filters of CONV2D in panels."""
        own = self.filters // self.groups
        panels = -(-own // PANEL)
        packed = aligned_empty((self.groups, panels, *w.shape[:-1], PANEL), self.dtype)
        for group in range(self.groups):
            pack_panels(w[..., group * own : (group + 1) * own], packed[group])
        result: AnyArray = packed.reshape(self.groups * panels, self.terms, PANEL)
        return result

    def unpack(self, w: AnyArray) -> AnyArray:
        """The inverse of `pack`."""
        own = self.filters // self.groups
        groups = w.reshape(self.groups, -(-own // PANEL), self.terms, PANEL)
        filters = unpack_panels(groups, own).transpose(1, 0, 2)
        return filters.reshape(self.kernel_height, self.kernel_width, self.group_channels, self.filters)

    def prepacked(self, constants: Mapping[str, AnyArray], *, winograd: bool) -> None:
        """None: it is packed."""

    def convolved(self, x: AnyArray, w: AnyArray) -> AnyArray:
        return super().convolved(x, self.unpack(w))
