"""CONV2D_INT8 and CONV2D_INT8_PACKED: convolution of images of 8-bit integers, exact in int32, and quantized again."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from jitkernels.attrs.filter_panels import PANEL
from jitkernels.attrs.quantize import BYTES
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
from jitkernels.core.aligned_memory import aligned_empty
from jitkernels.errors import AttrError

INT8_SWEEP_FIELDS = "batch height width channels kernel_height kernel_width filters stride padding groups"
RESULTS = ("int32", "float32", *BYTES)
"""Dtypes of results, the default first."""
WORD = 4
"""Weights of a word: the neighbours that one instruction multiplies and adds up."""
SIGN = 128
"""What makes numbers of int8 numbers of uint8."""


class Conv2DInt8Attr(KernelAttr, kernel_type="CONV2D_INT8"):
    """y[n, i, j, f] = activation(z[n, i, j, f]) in int32, or quantized with scale[f] and y_zero.

    z[n, i, j, f] is bias[f] plus the sum of (x[n, si*i + da*a - top, sj*j + db*b - left, c] - x_zero) * w[a, b, c, f]
    over all a, b and c, as CONV2D has it, of images x of uint8 or int8 with channels last, filters w of int8 and a bias
    of int32: exact, modulo 2**32. Padding stands for the zero point, that is, for zeros. `stride`, `padding`,
    `dilation` and `groups` are those of CONV2D.

    With y_dtype "float32", y = activation(float32(z) * scale[f]). With "uint8" or "int8", y = saturate(rint(float32(z)
    * scale[f]) + y_zero), ties to even, and an activation limits y to y_zero or more; NaN becomes the least number.
    Scales are rounded to float32; absent ones are 1, absent zero points 0. ONNX's QLinearConv has the scale x_scale *
    w_scale / y_scale.
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
    shifted: bool = True
    biased: bool = True
    scaled: bool = False
    y_shifted: bool = False
    activation: str = choice("identity", "relu", default="identity")
    x_dtype: str = choice("uint8", "int8", default="uint8")
    y_dtype: str = choice(*RESULTS, default="int32")
    dtype: str = "float32"
    arrays = (
        Argument("x", "in", "*batch height width channels", dtype="x_dtype", domain=(-128, 128)),
        Argument("w", "in", "kernel_height kernel_width group_channels filters", dtype="int8", domain=(-128, 128)),
        Argument("x_zero", "in", "1", dtype="x_dtype", domain=(-128, 128), when="shifted"),
        Argument("bias", "in", "filters", dtype="int32", domain=(-10000, 10000), when="biased"),
        Argument("scale", "in", "filters", domain=(0.0001, 0.01), when="scaled"),
        Argument("y_zero", "in", "1", dtype="int16", domain=(-128, 256), when="y_shifted"),
        Argument("y", "out", "*batch out_height out_width filters", dtype="y_dtype"),
    )
    options: ClassVar[tuple[str, ...]] = ("stride", "padding", "dilation", "groups", "activation", "y_dtype")
    derived: ClassVar[tuple[str, ...]] = (
        "group_channels", "out_height", "out_width", "stride_height", "stride_width", "pad_top", "pad_left",
        "dilation_height", "dilation_width",
    )  # fmt: skip
    group_channels: ClassVar[int]
    out_height: ClassVar[int]
    out_width: ClassVar[int]

    @classmethod
    def derive(cls, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        result = fields["y_dtype"]
        if fields.get("scaled") and result == "int32":
            raise AttrError(f"{cls.__name__}: y_dtype: expected float32, uint8 or int8 with a scale, got int32")
        if fields.get("y_shifted") and result not in BYTES:
            raise AttrError(f"{cls.__name__}: y_dtype: expected uint8 or int8 with a zero point, got {result}")
        group_channels = group_channels_of(cls.__name__, fields)
        window = fields["kernel_height"], fields["kernel_width"]
        return {"group_channels": group_channels} | window_extents(cls.__name__, fields, window, ceil_mode=False)

    @property
    def terms(self) -> int:
        """The number of products that an element of the result is the sum of."""
        return self.kernel_height * self.kernel_width * self.group_channels

    @property
    def is_depthwise(self) -> bool:
        """Whether each channel has one filter."""
        return self.group_channels == 1 and self.filters == self.channels

    def prepacked(
        self,
        constants: Mapping[str, AnyArray],
        *,
        winograd: bool,  # noqa: ARG002  # of floats
    ) -> tuple[KernelAttr, PackedInputs] | None:
        """CONV2D_INT8_PACKED where filters consist of whole words; others are few weights, packed in each call."""
        runs, run = runs_of(self.fields() | {"group_channels": self.group_channels})
        if "w" not in constants or run % WORD or not run or self.is_depthwise:
            return None
        attr = Conv2DInt8PackedAttr(**self.fields())
        return attr, {"w": (("CONV2D_INT8_PACKED", self.groups, runs), attr.pack)}

    def summed(self, x: AnyArray, w: AnyArray, zero: int) -> AnyArray:
        """The sums of products in int64, padding as the zero point: windows (im2col) by filters, exact in float64."""
        padded = np.pad(x.astype(np.float64), ((0, 0), *self.padding, (0, 0)), constant_values=zero)
        windows = windows_of(self, padded, (self.kernel_height, self.kernel_width)).transpose(0, 1, 2, 4, 5, 3)
        pixels, taps = self.batch * self.out_height * self.out_width, self.kernel_height * self.kernel_width
        groups, depth, own = self.groups, self.group_channels, self.filters // self.groups
        rows = windows.reshape(pixels, taps, groups, depth).transpose(2, 0, 1, 3).reshape(groups, pixels, self.terms)
        matrices = w.astype(np.float64).reshape(taps, depth, groups, own).transpose(2, 0, 1, 3)
        sums: AnyArray = (rows @ matrices.reshape(groups, self.terms, own)).transpose(1, 0, 2)
        return sums.reshape(self.batch, self.out_height, self.out_width, self.filters).astype(np.int64)

    def convolved(self, x: AnyArray, w: AnyArray, zero: int) -> AnyArray:
        """z without the bias, in int64."""
        sums: AnyArray = w.reshape(self.terms, self.filters).sum(0, dtype=np.int64)
        result: AnyArray = self.summed(x, w, zero) - zero * sums
        return result

    def tolerance(self) -> Tolerance:
        """All is exact, or rounded by definition."""
        return Tolerance(ulp=0)

    def operations(self) -> float:
        """A vector of int8 takes a quarter of the time of one of float32."""
        return float(self.batch) * self.out_height * self.out_width * self.filters * (0.5 * self.terms + 4)

    def size_class(self) -> Self:
        fields = self.fields()
        sizes = class_sizes(fields)
        return self if sizes.items() <= fields.items() else type(self)(**fields | sizes)

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        layers = [
            (1, 224, 224, 4, 7, 7, 64, 2, 3, 1), (1, 56, 56, 64, 1, 1, 256, 1, 0, 1),
            (1, 56, 56, 64, 3, 3, 64, 1, 1, 1), (1, 28, 28, 128, 3, 3, 128, 1, 1, 1),
            (1, 28, 28, 512, 1, 1, 1024, 2, 0, 1), (1, 14, 14, 256, 3, 3, 256, 1, 1, 1),
            (1, 7, 7, 512, 3, 3, 512, 1, 1, 1), (1, 7, 7, 2048, 1, 1, 512, 1, 0, 1),
        ]  # fmt: skip
        quantized = {"scaled": (True,), "y_shifted": (True,), "activation": ("relu",)}
        full = grid(cls, INT8_SWEEP_FIELDS, layers, **quantized, x_dtype=BYTES, y_dtype=("uint8",), dtype=("float32",))
        ci = [(1, 2, 3, 4, 1, 1, 70, 1, 0, 1), (2, 5, 7, 4, 3, 3, 5, 1, 1, 1), (1, 6, 31, 8, 2, 3, 40, 2, 2, 1),
              (1, 4, 5, 12, 1, 3, 9, 2, 1, 3)]  # fmt: skip
        if cls is Conv2DInt8Attr:
            ci += [(1, 1, 1, 1, 1, 1, 1, 1, 0, 1), (2, 5, 7, 3, 3, 3, 5, 1, 1, 1), (2, 5, 6, 6, 3, 2, 6, 1, 1, 6),
                   (1, 4, 5, 6, 1, 3, 9, 2, 1, 3), (3, 4, 9, 17, 1, 1, 17, 1, 0, 1)]  # fmt: skip
            depthwise = [(1, 56, 56, 58, 3, 3, 58, 2, 1, 58), (1, 28, 28, 116, 3, 3, 116, 1, 1, 116)]
            full += grid(cls, INT8_SWEEP_FIELDS, depthwise, **quantized, y_dtype=("uint8",), dtype=("float32",))
        bytes_of = {"y_dtype": BYTES, "x_dtype": BYTES, "dtype": ("float32",)}
        return cases(
            full,
            ci=[
                *grid(cls, INT8_SWEEP_FIELDS, ci, dtype=("float64",), x_dtype=BYTES),
                *grid(cls, INT8_SWEEP_FIELDS, ci, **quantized, **bytes_of),
                *grid(cls, INT8_SWEEP_FIELDS, ci[:3], biased=(False,), activation=("relu",)),
                *grid(
                    cls,
                    INT8_SWEEP_FIELDS,
                    ci[2:],
                    scaled=(True,),
                    y_dtype=("float32",),
                    activation=("relu",),
                    dtype=FLOATS,
                ),
            ],
        )


def runs_of(fields: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return how many runs of neighbours a row of a filter multiplies, and how long one is."""
    is_depthwise = fields["group_channels"] == 1 and fields["filters"] == fields["channels"]
    if fields["groups"] == 1 and fields["dilation"][1] == 1 and not is_depthwise:
        return 1, fields["kernel_width"] * fields["group_channels"]
    return fields["kernel_width"], fields["group_channels"]


class Conv2DInt8PackedAttr(Conv2DInt8Attr, kernel_type="CONV2D_INT8_PACKED"):
    """CONV2D_INT8 with packed filters: w[p, 1 + q, 4 * f + i] = v[4 * q + i, 32 * p + f] of its filters v.

    Weights count along a, b and c, and the filters of each group are cut into panels of 32. w[p, 0] are the bytes of 32
    int32, the sums s of the filters' weights. The product of channels and `kernel_width` is a multiple of 4; with
    groups or a horizontal dilation, so are the channels of a group. Images of int8 are read as x + 128: z is the
    sum of (x + 128) * w, minus (x_zero + 128) * s, plus the bias. Compiled functions call it where the filters of
    CONV2D_INT8 are constants, which are packed once. Their number and extents are options, as w does not show them.
    """

    filters: int = whole(default=PANEL, samples=(0, 1, 33))
    kernel_height: int = whole(default=1, least=1, is_size=False, samples=(1, 2, 3))
    kernel_width: int = whole(default=1, least=1, is_size=False, samples=(1, 2, 3))
    arrays = (
        Conv2DInt8Attr.arrays[0],
        Argument("w", "in", "panels panel_words panel_bytes", dtype="int8", domain=(-128, 128)),
        *Conv2DInt8Attr.arrays[2:],
    )
    options = ("filters", "kernel_height", "kernel_width", *Conv2DInt8Attr.options)
    derived = (*Conv2DInt8Attr.derived, "panels", "panel_words", "panel_bytes")

    @classmethod
    def derive(cls, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        known = super().derive(fields)
        runs, run = runs_of({**fields, **known})
        if run % WORD or not run:
            raise AttrError(f"{cls.__name__}: channels: expected runs of a multiple of 4 weights, got {run}")
        panels = fields["groups"] * ((fields["filters"] // fields["groups"] + PANEL - 1) // PANEL)
        words = 1 + fields["kernel_height"] * runs * run // WORD
        return {**known, "panels": panels, "panel_words": words, "panel_bytes": PANEL * WORD}

    def pack(self, w: AnyArray) -> AnyArray:
        """The filters of CONV2D_INT8 in panels, with their sums."""
        own = self.filters // self.groups
        panels = -(-own // PANEL)
        packed: AnyArray = aligned_empty((self.groups, panels, 1 + self.terms // WORD, PANEL, WORD), "int8")
        packed[...] = 0
        matrix = w.reshape(self.terms, self.groups, own)
        for group in range(self.groups):
            for panel in range(panels):
                part = matrix[:, group, panel * PANEL : (panel + 1) * PANEL]
                into = packed[group, panel]
                into[0].view(np.int32)[: part.shape[1], 0] = part.sum(0, dtype=np.int32)
                into[1:, : part.shape[1]] = part.reshape(-1, WORD, part.shape[1]).transpose(0, 2, 1)
        return packed.reshape(self.groups * panels, 1 + self.terms // WORD, PANEL * WORD)

    def unpack(self, w: AnyArray) -> tuple[AnyArray, AnyArray]:
        """The filters of CONV2D_INT8, and their sums."""
        own = self.filters // self.groups
        words = w.reshape(self.groups, -1, 1 + self.terms // WORD, PANEL, WORD)
        weights = words[:, :, 1:].transpose(2, 4, 0, 1, 3).reshape(self.terms, self.groups, -1)[..., :own]
        sums = np.ascontiguousarray(words[:, :, 0]).view(np.int32).reshape(self.groups, -1)[:, :own]
        shape = self.kernel_height, self.kernel_width, self.group_channels, self.filters
        return weights.reshape(shape), sums.reshape(self.filters)

    def prepacked(self, constants: Mapping[str, AnyArray], *, winograd: bool) -> None:
        """None: it is packed."""

    def convolved(self, x: AnyArray, w: AnyArray, zero: int) -> AnyArray:
        weights, sums = self.unpack(w)
        shift = SIGN if self.x_dtype == "int8" else 0
        return self.summed(x.astype(np.int64) + shift, weights, zero + shift) - (zero + shift) * sums.astype(np.int64)
