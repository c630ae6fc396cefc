"""What options of everyday functions may be that are numbers, and the words in which the dispatcher knows that."""

import struct

import numpy as np

from jitkernels.attrs.fields import FLOATS


class Real:
    """What a float option may be: its default, and the least and the largest value."""

    def __init__(self, default: float, least: float, most: float) -> None:
        self.default, self.least, self.most = default, least, most

    def words(self) -> list[int]:
        """Whether it must not be negative, and bits: of the default nearest in each dtype, and of the most."""
        nearest = [float(np.dtype(dtype).type(self.default)) for dtype in FLOATS]
        bits = [struct.unpack("q", struct.pack("d", value))[0] for value in (*nearest, self.most)]
        return [int(self.least >= 0), *bits]


class Whole:
    """What an int option may be: its default (None where it must be given), its limits, whether it is a size."""

    def __init__(self, default: int | None, least: int, most: int, *, is_size: bool) -> None:
        self.default, self.least, self.most, self.is_size = default, least, most, is_size

    def words(self) -> list[int]:
        """Whether there is a default, that, and the limits."""
        return [int(self.default is not None), self.default or 0, self.least, self.most]
