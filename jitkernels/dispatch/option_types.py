"""Numeric options of everyday functions, and their encoding as words of the dispatch table."""

import struct

import numpy as np

from jitkernels.attrs.schema.fields import FLOATS


def bits_of(number: float) -> int:
    """The bits of a float64, as a signed int."""
    return int(struct.unpack("q", struct.pack("d", number))[0])


def ordered(number: float) -> int:
    """An int for each float64, in the same order; both zeros are 0."""
    return bits_of(number) if number > 0 else -bits_of(abs(number))


class Real:
    """A float option: its default, and its least and largest value."""

    def __init__(self, default: float, least: float, most: float) -> None:
        self.default, self.least, self.most = default, least, most

    def words(self) -> list[int]:
        """The least value as `ordered`, the bits of the default nearest in each dtype, and the largest as `ordered`."""
        defaults = [bits_of(float(np.dtype(dtype).type(self.default))) for dtype in FLOATS]
        return [ordered(self.least), *defaults, ordered(self.most)]


class IntOption:
    """An int option: its default (None if required), its limits, and whether it is a size."""

    def __init__(self, default: int | None, least: int, most: int, *, is_size: bool) -> None:
        self.default, self.least, self.most, self.is_size = default, least, most, is_size

    def words(self) -> list[int]:
        """Whether there is a default, the default, and the limits."""
        return [int(self.default is not None), self.default or 0, self.least, self.most]
