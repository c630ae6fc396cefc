"""Merge sort of some thousands of integers: parts sorted in registers by networks, then merged."""

from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import inlined, noinline, offset
from jitkernels.microkernels.sort.sorting_network import compare_exchange, merge, network

MAX_NETWORK_ELEMENTS = 128
"""Largest number of elements that a network sorts in registers."""
MAX_MERGED_ELEMENTS = 8192
"""Up to so many elements merging is faster than a radix sort."""


def small_sort(bits: int, lanes: int) -> Callable[..., Any]:
    """``(keys, n)``: sort n integers of `bits` bits in place, in a buffer of `MAX_MERGED_ELEMENTS`, the most."""
    largest = {32: np.int32, 64: np.int64}[bits](np.iinfo(f"int{bits}").max)
    sort_16, sort_32, sort_64 = (network(bits, count, min(lanes, count)) for count in (16, 32, 64))
    sort_part = network(bits, MAX_NETWORK_ELEMENTS, lanes)
    merge_part = merge(bits, MAX_NETWORK_ELEMENTS, lanes)
    turn, compare = compare_exchange(bits, lanes, reverses=True), compare_exchange(bits, lanes, reverses=False)

    @inlined()
    def sort_part_of(keys: Any, n: int) -> None:
        """Sort one part of n elements, padded with the largest key."""
        if n <= 16:
            sort_16(keys)
        elif n <= 32:
            sort_32(keys)
        elif n <= 64:
            sort_64(keys)
        else:
            sort_part(keys)

    @noinline()
    def sort_merging(keys: Any, size: int, n: int) -> None:
        """Sort parts in registers, then merge pairs of them, the second one reversed.

        Elements behind n are padded with the largest key: parts of padding alone are sorted before and after each pass.
        """
        for start in range(0, n, MAX_NETWORK_ELEMENTS):
            sort_part_of(offset(keys, start), n - start)
        count = 2 * MAX_NETWORK_ELEMENTS
        while count <= size:
            for start in range(0, n, count):
                turn(offset(keys, start), count // 2)
                distance = count // 4
                while distance >= MAX_NETWORK_ELEMENTS:
                    for part in range(start, start + count, 2 * distance):
                        compare(offset(keys, part), distance)
                    distance = distance // 2
                for part in range(start, min(start + count, n), MAX_NETWORK_ELEMENTS):
                    merge_part(offset(keys, part))
            count *= 2

    @inlined()
    def sorted_in_place(keys: Any, n: int) -> None:
        size = 16
        while size < n:
            size *= 2
        for j in range(n, size):
            keys[j] = largest
        if size <= MAX_NETWORK_ELEMENTS:
            sort_part_of(keys, n)
        else:
            sort_merging(keys, size, n)

    return sorted_in_place
