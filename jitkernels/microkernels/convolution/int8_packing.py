"""Filters of 8-bit integers in panels of words, and where the parts of the workspace lie.

A panel has the sums of its 32 filters as int32, and then words of four weights of each. The workspace has, in words of
int32: the limits of results; for each filter what its sums begin with, and its scale; the panels, unless filters come
packed; a strip for the results of a tile that reaches beyond the last filter; the rows of a band.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jitkernels.attrs.convolution_int8 import SIGN, WORD
from jitkernels.attrs.filter_panels import PANEL
from jitkernels.codegen.source_protocol import inlined, offset
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.microkernels.convolution.extents import ConvolutionExtents, is_depthwise
from jitkernels.microkernels.convolution.int8_tile import DotProduct
from jitkernels.microkernels.narrow_int import load_word

LIMIT_WORDS = 16
"""Words of the limits, with the rest of their cache line."""


class Int8Images(NamedTuple):
    """The arrays; those that are absent are None."""

    x: Any
    w: Any
    x_zero: Any
    bias: Any
    scale: Any
    y_zero: Any
    y: Any


@frozen_dataclass
class Int8Convolution:
    """What determines the code. `has_depthwise`: channels may have one filter each, which lie in the lanes then."""

    dot: DotProduct
    x_dtype: str
    y_dtype: str
    scaled: bool
    relu: bool
    is_packed: bool
    has_depthwise: bool
    band_bytes: int

    @property
    def shift(self) -> int:
        """What is added to images, so that they are unsigned."""
        return SIGN if self.x_dtype == "int8" else 0


class Int8Layout(NamedTuple):
    """Functions of the extents: runs in a row of a filter, elements of one, panels, words of one, places of parts."""

    is_deep: Any
    runs: Any
    run: Any
    panels: Any
    panel_words: Any
    packed_at: Any
    strip_at: Any
    rows_at: Any


def int8_layout(kind: Int8Convolution) -> Int8Layout:
    """Make these functions."""
    has_depthwise, is_packed = kind.has_depthwise, kind.is_packed
    numbers, strip_words = 1 + kind.scaled, kind.dot.pixels * PANEL

    @inlined()
    def is_deep(e: ConvolutionExtents) -> bool:
        return has_depthwise and is_depthwise(e)

    @inlined()
    def runs(e: ConvolutionExtents) -> int:
        return 1 if e.groups == 1 and e.dilation_width == 1 and not is_deep(e) else e.kernel_width

    @inlined()
    def run(e: ConvolutionExtents) -> int:
        return e.kernel_width * e.group_channels // runs(e)

    @inlined()
    def panels(e: ConvolutionExtents) -> int:
        groups = 1 if is_deep(e) else e.groups
        return groups * ((e.filters // groups + PANEL - 1) // PANEL)

    @inlined()
    def panel_words(e: ConvolutionExtents) -> int:
        return (1 + e.kernel_height * runs(e) * ((run(e) + WORD - 1) // WORD)) * PANEL

    @inlined()
    def packed_at(e: ConvolutionExtents) -> int:
        return LIMIT_WORDS + panels(e) * PANEL * numbers

    @inlined()
    def strip_at(e: ConvolutionExtents) -> int:
        return packed_at(e) + (0 if is_packed else panels(e) * panel_words(e))

    @inlined()
    def rows_at(e: ConvolutionExtents) -> int:
        return strip_at(e) + strip_words

    return Int8Layout(is_deep, runs, run, panels, panel_words, packed_at, strip_at, rows_at)


def packing_of(kind: Int8Convolution, layout: Int8Layout) -> Any:
    """Make the function that packs filters into panels, with their sums."""
    is_deep, runs_of, run_of, panel_words = layout.is_deep, layout.runs, layout.run, layout.panel_words
    byte, zero = np.int32(255), np.int32(0)

    @inlined()
    def word_of(w: Any, at: int, stride: int, steps: int) -> Any:
        word = np.int32(w[at]) & byte
        if steps > 1:
            word = word | (np.int32(w[at + stride]) & byte) << 8
        if steps > 2:
            word = word | (np.int32(w[at + 2 * stride]) & byte) << 16
        if steps > 3:
            word = word | (np.int32(w[at + 3 * stride]) & byte) << 24
        return word

    @inlined()
    def sum_of(word: Any) -> Any:
        return ((word << 24) >> 24) + ((word << 16) >> 24) + ((word << 8) >> 24) + (word >> 24)

    @inlined()
    def pack_panel(w: Any, e: ConvolutionExtents, column: int, live: int, panel: Any) -> None:
        rows, run, stride = e.kernel_height * runs_of(e), run_of(e), e.filters
        for j in range(PANEL):
            panel[j] = zero
        to = PANEL
        for row in range(rows):
            for q in range(0, run, WORD):
                at, steps = (row * run + q) * stride + column, min(WORD, run - q)
                words = offset(panel, to)
                for j in range(live):
                    word = word_of(w, at + j, stride, steps)
                    words[j] = word
                    panel[j] += sum_of(word)
                for j in range(live, PANEL):
                    words[j] = zero
                to += PANEL

    @inlined()
    def pack(w: Any, e: ConvolutionExtents, panels: Any) -> None:
        groups = 1 if is_deep(e) else e.groups
        own, to = e.filters // groups, 0
        for group in range(groups):
            for first in range(0, own, PANEL):
                pack_panel(w, e, group * own + first, min(own - first, PANEL), offset(panels, to))
                to += panel_words(e)

    return pack


def starts_of(kind: Int8Convolution, layout: Int8Layout) -> Any:
    """Make the function that writes limits, and the numbers of each filter."""
    is_deep, panel_words, panels_of = layout.is_deep, layout.panel_words, layout.panels
    shift, relu, scaled = np.int32(kind.shift), kind.relu, kind.scaled
    is_byte = kind.y_dtype in ("int8", "uint8")
    low, high = (np.iinfo(kind.y_dtype).min, np.iinfo(kind.y_dtype).max) if is_byte else (0, 0)
    nothing = np.int32(0)

    @inlined()
    def write_limits(arrays: Int8Images, words: Any) -> None:
        zero = nothing if arrays.y_zero is None else np.int32(arrays.y_zero[0])
        least = low - zero
        if relu:
            least = max(least, nothing)
        words[0] = np.float32(least).view(np.int32)
        words[1] = np.float32(high - zero).view(np.int32)
        words[2] = zero

    @inlined()
    def write_starts(arrays: Int8Images, e: ConvolutionExtents, packed: Any, words: Any) -> None:
        groups = 1 if is_deep(e) else e.groups
        own, to, panel = e.filters // groups, 0, 0
        zero = shift if arrays.x_zero is None else np.int32(arrays.x_zero[0]) + shift
        scales = panels_of(e) * PANEL
        for group in range(groups):
            for first in range(0, own, PANEL):
                for j in range(PANEL):
                    f, start = group * own + first + j, nothing
                    if first + j < own:
                        start = nothing - zero * load_word(packed, 4 * (panel + j))
                        if arrays.bias is not None:
                            start += arrays.bias[f]
                        if scaled:
                            words[scales + to + j] = np.float32(arrays.scale[f]).view(np.int32)
                    words[to + j] = start
                to += PANEL
                panel += panel_words(e)

    @inlined()
    def write(arrays: Int8Images, e: ConvolutionExtents, packed: Any, workspace: Any) -> None:
        if is_byte:
            write_limits(arrays, workspace)
        write_starts(arrays, e, packed, offset(workspace, LIMIT_WORDS))

    return write
