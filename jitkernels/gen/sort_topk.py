"""Generated SORT and TOPK.

Short rows are sorted in registers. Longer ones go digit by digit from one place to another and back, which takes the
same time for any data, and none for digits that all have in common.
"""

from typing import Any

import numpy as np

from jitkernels import machine
from jitkernels.attrs.ordering import SortAttr, TopkAttr
from jitkernels.loops.keys import FLOAT_OF, INTEGER, KEY, RANK
from jitkernels.loops.memory import given_back, is_nothing, taken
from jitkernels.loops.merging import SHORT, in_order
from jitkernels.loops.variants import widths_and_threads
from jitkernels.native import status
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import apart, inlined, offset
from jitkernels.registry import Variant, implements

TOP_DIGIT = 11
"""Bits by which those are told that may be among many."""
DIGIT = 256
ALL = 256
"""Elements of which it takes less to sort them all than to find those whose first bits are among the largest."""
FEW = 32
"""How many are found as they come: of more than these the whole row is sorted."""
RUN = 64
"""Elements that are looked at together."""
INDEX = (1 << 32) - 1
"""Of a word the half that is a place."""
WORK = 1 << 15
"""Elements that a thread gets at least."""


def _rows(attr: SortAttr | TopkAttr) -> int:
    """Rows that a thread gets at least, a power of two so that few objects serve all shapes."""
    return 1 << max(0, (WORK // max(attr.n, 1)).bit_length() - 1)


def variants(attr: SortAttr | TopkAttr) -> list[Variant]:
    return widths_and_threads(attr.rows // _rows(attr))


def _unsigned(dtype: str) -> Any:
    return {"float32": np.uint32, "float64": np.uint64}[dtype]


@implements(SortAttr, variants=variants)
def sort(attr: SortAttr, **variant: Any) -> LoopNest:
    dtype = attr.dtype
    unsigned = _unsigned(dtype)
    size = np.dtype(dtype).itemsize
    digits, bits = size, 8 * size
    lanes = variant.get("vector_bytes", machine.target().vector_bytes) // size
    key_of, float_of = KEY[dtype], FLOAT_OF[dtype]
    memory, words = taken(f"int{bits}_t"), taken("int64_t")
    top, eight, mask = unsigned(1 << bits - 1), unsigned(8), unsigned(DIGIT - 1)
    sort_keys = in_order(bits, lanes)
    no_memory = np.int64(status.no_memory_for(f"sort_{dtype}"))

    @inlined()
    def sort_short(x: Any, y: Any, n: int, keys: Any) -> None:
        for j in range(n):
            keys[j] = key_of(x[j])
        sort_keys(keys, n)
        for j in range(n):
            y[j] = float_of(keys[j])

    @inlined()
    def place_of(key: Any, shift: Any) -> int:
        return int(((key.view(unsigned) ^ top) >> shift) & mask)

    @apart()
    def sort_long(x: Any, y: Any, n: int, counts: Any, keys: Any, other: Any) -> None:
        for i in range(digits * DIGIT):
            counts[i] = 0
        for j in range(n):
            key = key_of(x[j])
            keys[j] = key
            rest = key.view(unsigned) ^ top
            for digit in range(digits):
                place = DIGIT * digit + int(rest & mask)
                counts[place] += 1
                rest = rest >> eight
        turned, shift = 0, unsigned(0)
        for digit in range(digits):
            own = offset(counts, DIGIT * digit)
            first = keys[0] if turned == 0 else other[0]
            if own[place_of(first, shift)] != n:
                total = 0
                for i in range(DIGIT):
                    here = own[i]
                    own[i] = total
                    total += here
                if turned == 0:
                    for j in range(n):
                        key = keys[j]
                        place = place_of(key, shift)
                        other[own[place]] = key
                        own[place] += 1
                else:
                    for j in range(n):
                        key = other[j]
                        place = place_of(key, shift)
                        keys[own[place]] = key
                        own[place] += 1
                turned = 1 - turned
            shift += eight
        if turned == 0:
            for j in range(n):
                y[j] = float_of(keys[j])
        else:
            for j in range(n):
                y[j] = float_of(other[j])

    def body(x: Any, y: Any, rows: int, n: int, workspace: Any, begin: int, end: int) -> Any:
        if n <= SHORT:
            for row in range(begin, end):
                sort_short(offset(x, row * n), offset(y, row * n), n, workspace)
            return 0
        keys, counts = memory(2 * n * size), words(8 * digits * DIGIT)
        if is_nothing(keys) | is_nothing(counts):
            given_back(keys)
            given_back(counts)
            return no_memory
        for row in range(begin, end):
            sort_long(offset(x, row * n), offset(y, row * n), n, counts, keys, offset(keys, n))
        given_back(keys)
        given_back(counts)
        return 0

    signature = attr.signature()
    return LoopNest(
        f"sort_{dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("rows"),
        block=_rows(attr) if variant.get("parallel") else 1,
        workspace=SHORT * size,
        workspace_dtype=INTEGER[dtype],
        flags=(),
        reads_first=True,
        **variant,
    )


@implements(TopkAttr, variants=variants)
def topk(attr: TopkAttr, **variant: Any) -> LoopNest:
    dtype = attr.dtype
    integer, unsigned = np.dtype(INTEGER[dtype]).type, _unsigned(dtype)
    size = np.dtype(dtype).itemsize
    digits, bits = size, 8 * size
    lanes = variant.get("vector_bytes", machine.target().vector_bytes) // 8
    rank_of, memory, sort_words = RANK[dtype], taken("int64_t"), in_order(64, lanes)
    is_narrow = bits == 32
    least, eight, mask = integer(np.iinfo(integer).min), unsigned(8), unsigned(DIGIT - 1)
    top = unsigned((1 << bits - 1) - 1)
    number, sign = np.int64(SHORT - 1), np.int64(-1 << 63)
    no_memory = np.int64(status.no_memory_for(f"topk_{dtype}"))

    def check(x: Any, values: Any, indices: Any, rows: int, n: int, k: int) -> int:
        """How many more than there are in a row: one object serves all numbers, those that are too large as well."""
        return max(k - n, 0)

    @inlined()
    def find_few(x: Any, values: Any, indices: Any, n: int, k: int, ranks: Any) -> None:
        """The largest so far, in order; runs of which none is larger than the last of them are passed over."""
        found, start = 0, 0
        while start < n:
            stop = min(start + RUN, n)
            most = least
            for j in range(start, stop):
                most = max(most, rank_of(x[j]))
            if (found < k) | (int(most) > ranks[k - 1]):
                for j in range(start, stop):
                    rank = int(rank_of(x[j]))
                    if found < k or rank > ranks[k - 1]:
                        place = min(found, k - 1)
                        while place > 0 and ranks[max(place - 1, 0)] < rank:
                            ranks[place] = ranks[place - 1]
                            indices[place] = indices[place - 1]
                            place -= 1
                        ranks[place] = rank
                        indices[place] = j
                        found = min(found + 1, k)
            start = stop
        for i in range(k):
            values[i] = x[indices[i]]

    @inlined()
    def packed(rank: int, j: int) -> Any:
        """What is sorted, and its place in the lower half of the word."""
        return (np.int64(unsigned(rank) ^ top) << np.int64(32)) | j

    @inlined()
    def key_at(x: Any, one: int, packs: bool) -> Any:
        """What is sorted: the largest rank is 0."""
        if is_narrow and packs:
            return unsigned(one >> np.int64(32))
        return unsigned(int(rank_of(x[one]))) ^ top

    @inlined()
    def first_of(rank: int) -> int:
        return int((unsigned(rank) ^ top) >> unsigned(bits - TOP_DIGIT))

    @inlined()
    def are_sorted(
        x: Any, values: Any, indices: Any, m: int, k: int, words: Any, places: Any, packs: bool
    ) -> Any:
        """Whether few could be sorted as words: ranks of 64 bits lose their last ones to the number of a place."""
        if packs:
            for i in range(m):
                words[i] = places[i] ^ sign
        else:
            for i in range(m):
                words[i] = (np.int64(-1) - np.int64(rank_of(x[places[i]]))) & ~number | i
        sort_words(words, m)
        for i in range(k):
            one = words[i]
            index = one & INDEX if packs else places[one & number]
            indices[i] = index
            values[i] = x[index]
        if packs:
            return True
        wrong = 0
        for i in range(k - 1):
            wrong += 1 if rank_of(values[i]) < rank_of(values[i + 1]) else 0
        if k < m:
            wrong += 1 if rank_of(values[k - 1]) < rank_of(x[places[words[k] & number]]) else 0
        return wrong == 0

    @inlined()
    def select(x: Any, n: int, k: int, counts: Any, places: Any, packs: bool) -> int:
        """The places of those whose first bits are among the largest; how many."""
        if n <= ALL:
            for j in range(n):
                places[j] = packed(int(rank_of(x[j])), j) if packs else j
            return n
        for i in range(1 << TOP_DIGIT):
            counts[i] = 0
        for j in range(n):
            counts[first_of(int(rank_of(x[j])))] += 1
        limit, total = 0, counts[0]
        while total < k:
            limit += 1
            total += counts[limit]
        m = 0
        for j in range(n):
            rank = int(rank_of(x[j]))
            places[m] = packed(rank, j) if packs else j
            m += 1 if first_of(rank) <= limit else 0
        return m

    @apart()
    def find_many(
        x: Any, values: Any, indices: Any, n: int, k: int, counts: Any, places: Any, other: Any
    ) -> None:
        """The places of those whose first bits are among the largest, in order; of many the last digit first.

        Where both have 32 bits, what is sorted lies beside each place.
        """
        packs = is_narrow and n <= INDEX
        m = select(x, n, k, counts, places, packs)
        if m <= SHORT and are_sorted(x, values, indices, m, k, counts, places, packs):
            return
        for i in range(digits * DIGIT):
            counts[i] = 0
        for j in range(m):
            rest = key_at(x, places[j], packs)
            for digit in range(digits):
                counts[DIGIT * digit + int(rest & mask)] += 1
                rest = rest >> eight
        turned, shift = 0, unsigned(0)
        for digit in range(digits):
            own = offset(counts, DIGIT * digit)
            if own[int((key_at(x, places[0] if turned == 0 else other[0], packs) >> shift) & mask)] != m:
                total = 0
                for i in range(DIGIT):
                    here = own[i]
                    own[i] = total
                    total += here
                if turned == 0:
                    for j in range(m):
                        one = places[j]
                        place = int((key_at(x, one, packs) >> shift) & mask)
                        other[own[place]] = one
                        own[place] += 1
                else:
                    for j in range(m):
                        one = other[j]
                        place = int((key_at(x, one, packs) >> shift) & mask)
                        places[own[place]] = one
                        own[place] += 1
                turned = 1 - turned
            shift += eight
        for i in range(k):
            one = places[i] if turned == 0 else other[i]
            index = one & INDEX if packs else one
            indices[i] = index
            values[i] = x[index]

    def body(
        x: Any, values: Any, indices: Any, rows: int, n: int, k: int, workspace: Any, begin: int, end: int
    ) -> Any:
        if k <= FEW:
            if k > 0:
                for row in range(begin, end):
                    find_few(
                        offset(x, row * n), offset(values, row * k), offset(indices, row * k), n, k, workspace
                    )
            return 0
        places = memory(16 * n)
        if is_nothing(places):
            return no_memory
        for row in range(begin, end):
            find_many(
                offset(x, row * n),
                offset(values, row * k),
                offset(indices, row * k),
                n,
                k,
                workspace,
                places,
                offset(places, n),
            )
        given_back(places)
        return 0

    signature = attr.signature()
    return LoopNest(
        f"topk_{dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("rows"),
        block=_rows(attr) if variant.get("parallel") else 1,
        check=check,
        workspace=8 * SHORT,
        workspace_dtype="int64",
        flags=(),
        reads_first=True,
        **variant,
    )
