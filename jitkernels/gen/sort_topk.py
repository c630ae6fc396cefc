"""Generated SORT and TOPK.

Short rows are sorted in registers. Longer ones take a radix sort between two buffers, which takes the same time for any
data, and skips digits that all keys have in common.
"""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.attrs.sort_topk import SortAttr, TopkAttr
from jitkernels.codegen import error_status
from jitkernels.codegen.range_kernel import LoopNest
from jitkernels.codegen.source_protocol import apart, inlined, offset
from jitkernels.core import cpu_target
from jitkernels.microkernels.heap_scratch import given_back, is_nothing, taken
from jitkernels.microkernels.sort.float_sort_keys import FLOAT_OF, INTEGER, KEY, RANK
from jitkernels.microkernels.sort.merge_sort import SHORT, in_order
from jitkernels.microkernels.tuning_space import widths_and_threads

TOP_DIGIT = 11
"""Leading bits by which `select` tells candidates of a large k."""
DIGIT = 256
ALL = 256
"""Up to so many elements, sorting them all is faster than a selection by leading bits."""
FEW = 32
"""Largest k of the insertion method; for larger k whole rows are sorted."""
RUN = 64
"""Elements per comparison block."""
INDEX = (1 << 32) - 1
"""Mask of the index in a packed word."""
WORK = 1 << 15
"""Least number of elements per thread."""


def _rows(attr: SortAttr | TopkAttr) -> int:
    """Return the least rows per thread, a power of two so that few objects serve all shapes."""
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
    lanes = variant.get("vector_bytes", cpu_target.target().vector_bytes) // size
    key_of, float_of = KEY[dtype], FLOAT_OF[dtype]
    memory, words = taken(f"int{bits}_t"), taken("int64_t")
    top, eight, mask = unsigned(1 << bits - 1), unsigned(8), unsigned(DIGIT - 1)
    sort_keys = in_order(bits, lanes)
    no_memory = np.int64(error_status.no_memory_for(f"sort_{dtype}"))

    @inlined()
    def sort_short(x: Any, y: Any, n: int, keys: Any) -> None:
        for j in range(n):
            keys[j] = key_of(x[j])
        sort_keys(keys, n)
        for j in range(n):
            y[j] = float_of(keys[j])

    @inlined()
    def bucket_of(key: Any, shift: Any) -> int:
        return int(((key.view(unsigned) ^ top) >> shift) & mask)

    @apart()
    def sort_long(x: Any, y: Any, n: int, counts: Any, keys: Any, buffer: Any) -> None:
        for i in range(digits * DIGIT):
            counts[i] = 0
        for j in range(n):
            key = key_of(x[j])
            keys[j] = key
            rest = key.view(unsigned) ^ top
            for digit in range(digits):
                bucket = DIGIT * digit + int(rest & mask)
                counts[bucket] += 1
                rest = rest >> eight
        in_buffer, shift = 0, unsigned(0)
        for digit in range(digits):
            own = offset(counts, DIGIT * digit)
            first = keys[0] if in_buffer == 0 else buffer[0]
            if own[bucket_of(first, shift)] != n:
                total = 0
                for i in range(DIGIT):
                    bucket_size = own[i]
                    own[i] = total
                    total += bucket_size
                if in_buffer == 0:
                    for j in range(n):
                        key = keys[j]
                        bucket = bucket_of(key, shift)
                        buffer[own[bucket]] = key
                        own[bucket] += 1
                else:
                    for j in range(n):
                        key = buffer[j]
                        bucket = bucket_of(key, shift)
                        keys[own[bucket]] = key
                        own[bucket] += 1
                in_buffer = 1 - in_buffer
            shift += eight
        if in_buffer == 0:
            for j in range(n):
                y[j] = float_of(keys[j])
        else:
            for j in range(n):
                y[j] = float_of(buffer[j])

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
    lanes = variant.get("vector_bytes", cpu_target.target().vector_bytes) // 8
    rank_of, memory, sort_words = RANK[dtype], taken("int64_t"), in_order(64, lanes)
    is_narrow = bits == 32
    least, eight, mask = integer(np.iinfo(integer).min), unsigned(8), unsigned(DIGIT - 1)
    top = unsigned((1 << bits - 1) - 1)
    number, sign = np.int64(SHORT - 1), np.int64(-1 << 63)
    no_memory = np.int64(error_status.no_memory_for(f"topk_{dtype}"))

    def check(x: Any, values: Any, indices: Any, rows: int, n: int, k: int) -> int:
        """Return how far k exceeds n: one object serves all k, too large ones as well."""
        return max(k - n, 0)

    @inlined()
    def find_few(x: Any, values: Any, indices: Any, n: int, k: int, ranks: Any) -> None:
        """Keep the largest so far, in order; skip runs of which none is larger than the last of them."""
        count, start = 0, 0
        while start < n:
            stop = min(start + RUN, n)
            run_maximum = least
            for j in range(start, stop):
                run_maximum = max(run_maximum, rank_of(x[j]))
            if (count < k) | (int(run_maximum) > ranks[k - 1]):
                for j in range(start, stop):
                    rank = int(rank_of(x[j]))
                    if count < k or rank > ranks[k - 1]:
                        index = min(count, k - 1)
                        while index > 0 and ranks[max(index - 1, 0)] < rank:
                            ranks[index] = ranks[index - 1]
                            indices[index] = indices[index - 1]
                            index -= 1
                        ranks[index] = rank
                        indices[index] = j
                        count = min(count + 1, k)
            start = stop
        for i in range(k):
            values[i] = x[indices[i]]

    @inlined()
    def packed(rank: int, j: int) -> Any:
        """Pack the rank, and its index in the lower half of the word."""
        return (np.int64(unsigned(rank) ^ top) << np.int64(32)) | j

    @inlined()
    def key_at(x: Any, entry: int, packs: bool) -> Any:
        """Return the sort key: the largest rank is 0."""
        if is_narrow and packs:
            return unsigned(entry >> np.int64(32))
        return unsigned(int(rank_of(x[entry]))) ^ top

    @inlined()
    def first_of(rank: int) -> int:
        return int((unsigned(rank) ^ top) >> unsigned(bits - TOP_DIGIT))

    @inlined()
    def are_sorted(x: Any, values: Any, indices: Any, m: int, k: int, words: Any, candidates: Any, packs: bool) -> Any:
        """Return whether few could be sorted as words: 64-bit ranks lose their last bits to the index."""
        if packs:
            for i in range(m):
                words[i] = candidates[i] ^ sign
        else:
            for i in range(m):
                words[i] = (np.int64(-1) - np.int64(rank_of(x[candidates[i]]))) & ~number | i
        sort_words(words, m)
        for i in range(k):
            entry = words[i]
            index = entry & INDEX if packs else candidates[entry & number]
            indices[i] = index
            values[i] = x[index]
        if packs:
            return True
        wrong = 0
        for i in range(k - 1):
            wrong += 1 if rank_of(values[i]) < rank_of(values[i + 1]) else 0
        if k < m:
            wrong += 1 if rank_of(values[k - 1]) < rank_of(x[candidates[words[k] & number]]) else 0
        return wrong == 0

    @inlined()
    def select(x: Any, n: int, k: int, counts: Any, candidates: Any, packs: bool) -> int:
        """Collect the indices of elements whose leading bits are among the largest; return how many."""
        if n <= ALL:
            for j in range(n):
                candidates[j] = packed(int(rank_of(x[j])), j) if packs else j
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
            candidates[m] = packed(rank, j) if packs else j
            m += 1 if first_of(rank) <= limit else 0
        return m

    @apart()
    def find_many(x: Any, values: Any, indices: Any, n: int, k: int, counts: Any, candidates: Any, buffer: Any) -> None:
        """Find the indices of elements whose leading bits are among the largest, and sort them, many by radix.

        Where both have 32 bits, the sort key lies beside each index.
        """
        packs = is_narrow and n <= INDEX
        m = select(x, n, k, counts, candidates, packs)
        if m <= SHORT and are_sorted(x, values, indices, m, k, counts, candidates, packs):
            return
        for i in range(digits * DIGIT):
            counts[i] = 0
        for j in range(m):
            rest = key_at(x, candidates[j], packs)
            for digit in range(digits):
                counts[DIGIT * digit + int(rest & mask)] += 1
                rest = rest >> eight
        in_buffer, shift = 0, unsigned(0)
        for digit in range(digits):
            own = offset(counts, DIGIT * digit)
            if own[int((key_at(x, candidates[0] if in_buffer == 0 else buffer[0], packs) >> shift) & mask)] != m:
                total = 0
                for i in range(DIGIT):
                    bucket_size = own[i]
                    own[i] = total
                    total += bucket_size
                if in_buffer == 0:
                    for j in range(m):
                        entry = candidates[j]
                        bucket = int((key_at(x, entry, packs) >> shift) & mask)
                        buffer[own[bucket]] = entry
                        own[bucket] += 1
                else:
                    for j in range(m):
                        entry = buffer[j]
                        bucket = int((key_at(x, entry, packs) >> shift) & mask)
                        candidates[own[bucket]] = entry
                        own[bucket] += 1
                in_buffer = 1 - in_buffer
            shift += eight
        for i in range(k):
            entry = candidates[i] if in_buffer == 0 else buffer[i]
            index = entry & INDEX if packs else entry
            indices[i] = index
            values[i] = x[index]

    def body(x: Any, values: Any, indices: Any, rows: int, n: int, k: int, workspace: Any, begin: int, end: int) -> Any:
        if k <= FEW:
            if k > 0:
                for row in range(begin, end):
                    find_few(offset(x, row * n), offset(values, row * k), offset(indices, row * k), n, k, workspace)
            return 0
        candidates = memory(16 * n)
        if is_nothing(candidates):
            return no_memory
        for row in range(begin, end):
            find_many(
                offset(x, row * n),
                offset(values, row * k),
                offset(indices, row * k),
                n,
                k,
                workspace,
                candidates,
                offset(candidates, n),
            )
        given_back(candidates)
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
