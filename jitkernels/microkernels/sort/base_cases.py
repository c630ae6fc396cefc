"""Base cases of quicksort: networks sort short rows and parts, equal keys are one value."""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import inlined, offset
from jitkernels.microkernels.sort.radix_sort import WORDS
from jitkernels.microkernels.sort.sort_keys import ELEMENT_OF, KEY
from jitkernels.microkernels.sort.sort_tasks import SLACK, Row, Subrange
from jitkernels.microkernels.sort.sorting_network import padded_network


def part_sort(dtype: str, bits: int, lanes: int) -> tuple[int, Any]:
    """The most elements of a network, and ``(keys, n, results)``, which sorts them and writes them as elements."""
    most = 16 * lanes
    sort_16, sort_32, sort_64, sort_128 = (
        padded_network(dtype, bits, min(count, most), lanes) for count in (16, 32, 64, 128)
    )
    integer = WORDS[dtype].integer

    @inlined()
    def sort_part(keys: Any, n: int, results: Any) -> None:
        if n <= 16:
            sort_16(keys, integer(n), results)
        elif n <= 32:
            sort_32(keys, integer(n), results)
        elif n <= 64:
            sort_64(keys, integer(n), results)
        else:
            sort_128(keys, integer(n), results)

    return most, sort_part


def short_rows(dtype: str, lanes: int) -> Any:
    """``(x, n, keys)``: sort a row by a network; return its elements, which lie in `keys`, of 2 * `SLACK` words."""
    key_of = KEY[dtype]
    _, sort_part = part_sort(dtype, WORDS[dtype].bits, lanes)

    @inlined()
    def sorted_row(x: Any, n: int, keys: Any) -> Any:
        results = offset(keys, SLACK)
        for j in range(n):
            keys[j] = key_of(x[j])
        sort_part(keys, n, results)
        return results

    return sorted_row


def writers(dtype: str, bits: int, lanes: int) -> tuple[int, Any, Any]:
    """The most elements of a network, and the functions that write the results of a short part, and of equal keys."""
    most, sort_part = part_sort(dtype, bits, lanes)
    number, element_of = np.dtype(dtype).type, ELEMENT_OF[dtype]

    @inlined()
    def leaf(row: Row, keys: Any, part: Subrange) -> None:
        """Sort a part. At the end of the row a network would write behind it."""
        begin, n = part.begin, part.end - part.begin
        if row.wanted_count == 0 and begin + most <= row.n:
            sort_part(offset(keys, begin), n, offset(row.y, begin))
            return
        sort_part(offset(keys, begin), n, row.spare)
        if row.wanted_count > 0:
            for i in range(row.wanted_count):
                index = row.wanted[i] - begin
                if 0 <= index < n:
                    row.y[i] = row.spare[index].view(number)
        else:
            for j in range(n):
                row.y[begin + j] = row.spare[j].view(number)

    @inlined()
    def fill(row: Row, key: Any, part: Subrange) -> None:
        value = element_of(key)
        if row.wanted_count > 0:
            for i in range(row.wanted_count):
                if part.begin <= row.wanted[i] < part.end:
                    row.y[i] = value
        else:
            for j in range(part.begin, part.end):
                row.y[j] = value

    return most, leaf, fill
