"""Some thousands of integers in order: parts in registers, which are then merged."""

from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels.loops.sorting_network import against, merge, network
from jitkernels.native.source import apart, inlined, offset

TOGETHER = 128
"""Elements that are sorted in registers at most."""
SHORT = 8192
"""Elements up to which it takes less to merge these than to go digit by digit."""


def in_order(bits: int, lanes: int) -> Callable[..., Any]:
    """``(keys, n)``: n integers of so many bits in their order, `SHORT` at most, where there is room for `SHORT`."""
    largest = {32: np.int32, 64: np.int64}[bits](np.iinfo(f"int{bits}").max)
    sort_16, sort_32, sort_64 = (network(bits, count, min(lanes, count)) for count in (16, 32, 64))
    sort_part = network(bits, TOGETHER, lanes)
    merge_part = merge(bits, TOGETHER, lanes)
    turn, compare = against(bits, lanes, turned=True), against(bits, lanes, turned=False)

    @inlined()
    def sort_part_of(keys: Any, n: int) -> None:
        """A part in which n elements are no room behind the others."""
        if n <= 16:
            sort_16(keys)
        elif n <= 32:
            sort_32(keys)
        elif n <= 64:
            sort_64(keys)
        else:
            sort_part(keys)

    @apart()
    def sort_merging(keys: Any, room: int, n: int) -> None:
        """Parts in registers, then twice as many at a time, the second of two from behind.

        What lies behind n elements is as large as any: parts of nothing else are in order before and after each step.
        """
        for start in range(0, n, TOGETHER):
            sort_part_of(offset(keys, start), n - start)
        count = 2 * TOGETHER
        while count <= room:
            for start in range(0, n, count):
                turn(offset(keys, start), count // 2)
                distance = count // 4
                while distance >= TOGETHER:
                    for part in range(start, start + count, 2 * distance):
                        compare(offset(keys, part), distance)
                    distance = distance // 2
                for part in range(start, min(start + count, n), TOGETHER):
                    merge_part(offset(keys, part))
            count *= 2

    @inlined()
    def sorted_in_place(keys: Any, n: int) -> None:
        room = 16
        while room < n:
            room *= 2
        for j in range(n, room):
            keys[j] = largest
        if room <= TOGETHER:
            sort_part_of(keys, n)
        else:
            sort_merging(keys, room, n)

    return sorted_in_place
