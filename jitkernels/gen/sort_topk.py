"""Generated SORT and TOPK.

Short rows are sorted in registers. Longer ones take a quicksort where a table permutes vectors of this width. With
those of AVX-512 parts are merged, and long rows take a radix sort between two buffers, which takes the same time for
any data, and skips digits that all keys have in common.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.attrs.sort_topk import SortAttr, TopkAttr
from jitkernels.codegen import error_status
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import inlined, noinline, offset
from jitkernels.core import cpu_target, hooks
from jitkernels.microkernels.chunking import grain
from jitkernels.microkernels.heap_scratch import heap_allocator, heap_free, is_null
from jitkernels.microkernels.range_kernel_of import range_kernel_of
from jitkernels.microkernels.sort import quicksort
from jitkernels.microkernels.sort.base_cases import short_rows
from jitkernels.microkernels.sort.merge_sort import MAX_MERGED_ELEMENTS, small_sort
from jitkernels.microkernels.sort.radix_sort import DIGIT, WORDS, radix_passes
from jitkernels.microkernels.sort.sort_keys import ELEMENT_OF, INTEGER, KEY, RANK
from jitkernels.microkernels.sort.sort_tasks import SLACK, Row, words_of_scratch
from jitkernels.microkernels.tuning_space import widths_and_threads

TOP_DIGIT = 11
"""Leading bits by which `select` tells candidates of a large k."""
ALL = 256
"""Up to so many elements, sorting them all is faster than a selection by leading bits."""
MAX_INSERTION_K = 32
"""Largest k of the insertion method; for larger k whole rows are sorted."""
COMPARED_ELEMENTS = 64
"""Elements per comparison block."""
INDEX = (1 << 32) - 1
"""Mask of the index in a packed word."""
WORK = 1 << 15
"""Least number of elements per thread."""


def variants(attr: SortAttr | TopkAttr) -> list[Variant]:
    return widths_and_threads(attr.rows // grain(attr.n, WORK))


def quicksort_of(dtype: str, lanes: int) -> Any:
    """Return the functions that sort a short row by a network, and a longer one; and the most elements of a network."""
    most, sort_long = quicksort.quicksort(dtype, lanes)
    sorted_row, number = short_rows(dtype, lanes), np.dtype(dtype).type

    @inlined()
    def sort_short(x: Any, y: Any, n: int, keys: Any) -> None:
        results = sorted_row(x, n, keys)
        for j in range(n):
            y[j] = results[j].view(number)

    return sort_short, sort_long, most


def merging_of(dtype: str, lanes: int) -> Any:
    """Return the functions that sort a row by merging, and a long one by radix; and the most elements of merges."""
    word, key_of, element_of = WORDS[dtype], KEY[dtype], ELEMENT_OF[dtype]
    sort_keys = small_sort(word.bits, lanes)

    @inlined()
    def sort_short(x: Any, y: Any, n: int, keys: Any) -> None:
        for j in range(n):
            keys[j] = key_of(x[j])
        sort_keys(keys, n)
        for j in range(n):
            y[j] = element_of(keys[j])

    @inlined()
    def key_of_entry(x: Any, key: Any, packs: bool) -> Any:
        return key.view(word.unsigned) ^ word.top

    order, count = radix_passes(word, key_of_entry)

    @noinline()
    def sort_long(row: Row) -> None:
        x, y, n, counts, keys, buffer = row.x, row.y, row.n, row.counts, row.first, row.second
        for i in range(word.digits * DIGIT):
            counts[i] = 0
        for j in range(n):
            key = key_of(x[j])
            keys[j] = key
            count(key_of_entry(x, key, False), counts)
        if order(x, n, counts, keys, buffer, False) == 0:
            for j in range(n):
                y[j] = element_of(keys[j])
        else:
            for j in range(n):
                y[j] = element_of(buffer[j])

    return sort_short, sort_long, MAX_MERGED_ELEMENTS


def copying_of(dtype: str) -> Any:
    """Return the function that copies a row if it is in order: it stops at the first block that is not."""
    key_of = KEY[dtype]

    @inlined()
    def is_copied_in_order(x: Any, y: Any, n: int) -> Any:
        start = 1
        while start < n:
            stop, descents = min(start + COMPARED_ELEMENTS, n), 0
            for j in range(start, stop):
                descents += 1 if key_of(x[j]) < key_of(x[j - 1]) else 0
            if descents > 0:
                return False
            start = stop
        for j in range(n):
            y[j] = x[j]
        return True

    return is_copied_in_order


@implements(SortAttr, variants=variants)
def sort(attr: SortAttr, **variant: Any) -> RangeKernel:
    dtype, word = attr.dtype, WORDS[attr.dtype]
    size, vector_bytes = word.bits // 8, variant.get("vector_bytes", cpu_target.target().vector_bytes)
    sorting_of = quicksort_of if quicksort.serves(vector_bytes) else merging_of
    sort_short, sort_long, longest_short = sorting_of(dtype, vector_bytes // size)
    is_copied_in_order = copying_of(dtype)
    memory, words = heap_allocator(f"int{word.bits}_t"), heap_allocator("int64_t")
    no_memory = np.int64(error_status.no_memory_for(f"sort_{dtype}"))
    scratch = words_of_scratch(word.digits)

    def body(x: Any, y: Any, n: int, workspace: Any, begin: int, end: int) -> Any:
        if n <= longest_short:
            for row in range(begin, end):
                sort_short(offset(x, row * n), offset(y, row * n), n, workspace)
            return 0
        keys, counts = memory(2 * (n + SLACK) * size), words(8 * scratch)
        if is_null(keys) | is_null(counts):
            heap_free(keys)
            heap_free(counts)
            return no_memory
        buffer, tasks = offset(keys, n + SLACK), offset(counts, word.digits * DIGIT)
        for row in range(begin, end):
            elements, results = offset(x, row * n), offset(y, row * n)
            if not is_copied_in_order(elements, results, n):
                sort_long(Row(elements, results, n, keys, buffer, workspace, tasks, counts, tasks, 0))
        heap_free(keys)
        heap_free(counts)
        return 0

    room = max(2 * SLACK, longest_short)
    return _nest(attr, body, variant, workspace=room * size, workspace_dtype=INTEGER[dtype])


def _nest(attr: SortAttr | TopkAttr, body: Any, variant: Mapping[str, Any], **options: Any) -> RangeKernel:
    return range_kernel_of(
        attr,
        f"{attr.name}_{attr.dtype}",
        body,
        extent="rows",
        block=grain(attr.n, WORK) if variant.get("parallel") else 1,
        flags=(),
        reads_first=True,
        calls=hooks.pooled_memory(),
        **options,
        **variant,
    )


class Results(NamedTuple):
    """A row, its k largest elements and their indices."""

    x: Any
    values: Any
    indices: Any


def few_of(dtype: str) -> Any:
    """Return the function that finds few elements by insertion."""
    rank_of, least = RANK[dtype], WORDS[dtype].integer(np.iinfo(WORDS[dtype].integer).min)

    @inlined()
    def insert(ranks: Any, indices: Any, rank: int, j: int, index: int) -> None:
        """Insert a rank in front of smaller ones, of which the last is at `index`."""
        while index > 0 and ranks[max(index - 1, 0)] < rank:
            ranks[index] = ranks[index - 1]
            indices[index] = indices[index - 1]
            index -= 1
        ranks[index] = rank
        indices[index] = j

    @inlined()
    def find_few(row: Results, n: int, k: int, ranks: Any) -> None:
        """Keep the largest so far, in order; skip runs of which none is larger than the last of them."""
        x, indices, count, start = row.x, row.indices, 0, 0
        while start < n:
            stop = min(start + COMPARED_ELEMENTS, n)
            run_maximum = least
            for j in range(start, stop):
                run_maximum = max(run_maximum, rank_of(x[j]))
            if (count < k) | (int(run_maximum) > ranks[k - 1]):
                for j in range(start, stop):
                    rank = int(rank_of(x[j]))
                    if count < k or rank > ranks[k - 1]:
                        insert(ranks, indices, rank, j, min(count, k - 1))
                        count = min(count + 1, k)
            start = stop
        for i in range(k):
            row.values[i] = x[indices[i]]

    return find_few


class Entries(NamedTuple):
    """How candidates are stored: the key of an entry, and the word of a rank and its index."""

    key_of: Any
    packed: Any
    first_of: Any


def entries_of(dtype: str) -> Entries:
    """Return the functions of entries. Where both have 32 bits, the sort key lies beside each index."""
    word, rank_of = WORDS[dtype], RANK[dtype]
    unsigned, top, is_narrow = word.unsigned, word.unsigned((1 << word.bits - 1) - 1), word.bits == 32

    @inlined()
    def packed(rank: int, j: int) -> Any:
        """Pack the rank, and its index in the lower half of the word."""
        return (np.int64(unsigned(rank) ^ top) << np.int64(32)) | j

    @inlined()
    def key_of(x: Any, entry: int, packs: bool) -> Any:
        """Return the sort key: the largest rank is 0."""
        if is_narrow and packs:
            return unsigned(entry >> np.int64(32))
        return unsigned(int(rank_of(x[entry]))) ^ top

    @inlined()
    def first_of(rank: int) -> int:
        """Return the leading bits of the sort key of a rank."""
        return int((unsigned(rank) ^ top) >> unsigned(word.bits - TOP_DIGIT))

    return Entries(key_of, packed, first_of)


def selecting_of(dtype: str, entries: Entries) -> Any:
    """Return the function that collects the elements whose leading bits are among the largest."""
    rank_of = RANK[dtype]

    @inlined()
    def select(x: Any, n: int, k: int, counts: Any, candidates: Any, packs: bool) -> int:
        """Collect candidates; return how many."""
        if n <= ALL:
            for j in range(n):
                candidates[j] = entries.packed(int(rank_of(x[j])), j) if packs else j
            return n
        for i in range(1 << TOP_DIGIT):
            counts[i] = 0
        for j in range(n):
            counts[entries.first_of(int(rank_of(x[j])))] += 1
        limit, total = 0, counts[0]
        while total < k:
            limit += 1
            total += counts[limit]
        m = 0
        for j in range(n):
            rank = int(rank_of(x[j]))
            candidates[m] = entries.packed(rank, j) if packs else j
            m += 1 if entries.first_of(rank) <= limit else 0
        return m

    return select


def words_sorting(dtype: str, lanes: int) -> Any:
    """Return the function that sorts few candidates as words."""
    rank_of, sort_words = RANK[dtype], small_sort(64, lanes)
    number, sign = np.int64(MAX_MERGED_ELEMENTS - 1), np.int64(-1 << 63)

    @inlined()
    def are_sorted(row: Results, m: int, k: int, words: Any, candidates: Any, packs: bool) -> Any:
        """Return whether they could be sorted as words: 64-bit ranks lose their last bits to the index."""
        x, values = row.x, row.values
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
            row.indices[i] = index
            values[i] = x[index]
        if packs:
            return True
        wrong = 0
        for i in range(k - 1):
            wrong += 1 if rank_of(values[i]) < rank_of(values[i + 1]) else 0
        if k < m:
            wrong += 1 if rank_of(values[k - 1]) < rank_of(x[candidates[words[k] & number]]) else 0
        return wrong == 0

    return are_sorted


def many_of(dtype: str, lanes: int) -> Any:
    """Return the function that finds many elements: it selects candidates, and sorts them, many by radix."""
    word, is_narrow, entries = WORDS[dtype], WORDS[dtype].bits == 32, entries_of(dtype)
    select, are_sorted = selecting_of(dtype, entries), words_sorting(dtype, lanes)
    order, count = radix_passes(word, entries.key_of)

    @noinline()
    def find_many(row: Results, n: int, k: int, counts: Any, candidates: Any, buffer: Any) -> None:
        x, packs = row.x, is_narrow and n <= INDEX
        m = select(x, n, k, counts, candidates, packs)
        if m <= MAX_MERGED_ELEMENTS and are_sorted(row, m, k, counts, candidates, packs):
            return
        for i in range(word.digits * DIGIT):
            counts[i] = 0
        for j in range(m):
            count(entries.key_of(x, candidates[j], packs), counts)
        in_buffer = order(x, m, counts, candidates, buffer, packs)
        for i in range(k):
            entry = candidates[i] if in_buffer == 0 else buffer[i]
            index = entry & INDEX if packs else entry
            row.indices[i] = index
            row.values[i] = x[index]

    return find_many


def check_count(n: int, k: int) -> int:
    """Return how far k exceeds n: one object serves all k, too large ones as well."""
    return max(k - n, 0)


@implements(TopkAttr, variants=variants)
def topk(attr: TopkAttr, **variant: Any) -> RangeKernel:
    lanes = variant.get("vector_bytes", cpu_target.target().vector_bytes) // 8
    find_few, find_many, memory = few_of(attr.dtype), many_of(attr.dtype, lanes), heap_allocator("int64_t")
    no_memory = np.int64(error_status.no_memory_for(f"topk_{attr.dtype}"))

    @inlined()
    def row_of(results: Results, row: int, n: int, k: int) -> Any:
        return Results(offset(results.x, row * n), offset(results.values, row * k), offset(results.indices, row * k))

    def body(results: Results, n: int, k: int, workspace: Any, begin: int, end: int) -> Any:
        if k <= MAX_INSERTION_K:
            if k > 0:
                for row in range(begin, end):
                    find_few(row_of(results, row, n, k), n, k, workspace)
            return 0
        candidates = memory(16 * n)
        if is_null(candidates):
            return no_memory
        for row in range(begin, end):
            find_many(row_of(results, row, n, k), n, k, workspace, candidates, offset(candidates, n))
        heap_free(candidates)
        return 0

    return _nest(attr, body, variant, check=check_count, workspace=8 * MAX_MERGED_ELEMENTS, workspace_dtype="int64")
