"""Generated ORDER_STATISTICS: the quicksort of SORT, without the parts in which no index is."""

from typing import Any, NamedTuple

import numpy as np

from jitkernels.attrs.order_statistics import OrderStatisticsAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen import error_status
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range, offset
from jitkernels.core import cpu_target, hooks
from jitkernels.microkernels.chunking import grain
from jitkernels.microkernels.heap_scratch import heap_allocator, heap_free, is_null
from jitkernels.microkernels.range_kernel_of import range_kernel_of
from jitkernels.microkernels.sort.base_cases import short_rows
from jitkernels.microkernels.sort.quicksort import quicksort
from jitkernels.microkernels.sort.radix_sort import DIGIT, WORDS
from jitkernels.microkernels.sort.sort_keys import INTEGER
from jitkernels.microkernels.sort.sort_tasks import SLACK, Row, words_of_scratch
from jitkernels.microkernels.tuning_space import widths_and_threads

WORK = 1 << 15
"""Least number of elements per thread."""
MAX_SELECTED_INDICES = 32
"""Most indices for which parts are dropped; for more of them a row is sorted."""
PERMUTED_BYTES = 32
"""Bytes of the widest vectors that a table permutes."""


class Arrays(NamedTuple):
    """Rows, the indices of the elements of sorted ones, and these."""

    x: Any
    k: Any
    y: Any


def variants(attr: OrderStatisticsAttr) -> list[Variant]:
    return widths_and_threads(attr.rows // grain(attr.n, WORK))


def check_indices(k: Any, n: int, count: int) -> int:
    """Count the indices outside a row; branch-free, so that LLVM vectorizes it."""
    wrong = 0
    for i in range(count):
        wrong += (k[i] < 0) | (k[i] >= n)
    return wrong


@implements(OrderStatisticsAttr, variants=variants)
def order_statistics(attr: OrderStatisticsAttr, **variant: Any) -> RangeKernel:
    dtype, word = attr.dtype, WORDS[attr.dtype]
    size = word.bits // 8
    lanes = min(variant.get("vector_bytes", cpu_target.target().vector_bytes), PERMUTED_BYTES) // size
    longest_short, sort_row = quicksort(dtype, lanes)
    sorted_row, number = short_rows(dtype, lanes), np.dtype(dtype).type
    memory, words, elements = (heap_allocator(kind) for kind in (f"int{word.bits}_t", "int64_t", attr.dtype))
    no_memory = np.int64(error_status.no_memory_for(f"order_statistics_{dtype}"))
    scratch = words_of_scratch(word.digits)

    def body(arrays: Arrays, n: int, count: int, workspace: Any, part: Range) -> Any:
        x, k, y, begin, end = arrays.x, arrays.k, arrays.y, part.begin, part.end
        if count == 0:
            return 0
        if n <= longest_short:
            for row in range(begin, end):
                sorted_elements = sorted_row(offset(x, row * n), n, workspace)
                for i in range(count):
                    y[row * count + i] = sorted_elements[k[i]].view(number)
            return 0
        sorts = count > MAX_SELECTED_INDICES
        keys, counts, ordered = memory(2 * (n + SLACK) * size), words(8 * scratch), elements(n * size if sorts else 8)
        if is_null(keys) | is_null(counts) | is_null(ordered):
            heap_free(keys)
            heap_free(counts)
            heap_free(ordered)
            return no_memory
        buffer, tasks = offset(keys, n + SLACK), offset(counts, word.digits * DIGIT)
        for row in range(begin, end):
            elements_of_row, results = offset(x, row * n), offset(y, row * count)
            if sorts:
                sort_row(Row(elements_of_row, ordered, n, keys, buffer, workspace, tasks, counts, k, 0))
                for i in range(count):
                    results[i] = ordered[k[i]]
            else:
                sort_row(Row(elements_of_row, results, n, keys, buffer, workspace, tasks, counts, k, count))
        heap_free(keys)
        heap_free(counts)
        heap_free(ordered)
        return 0

    return range_kernel_of(
        attr,
        f"order_statistics_{dtype}",
        body,
        extent="rows",
        block=grain(attr.n, WORK) if variant.get("parallel") else 1,
        flags=(),
        reads_first=True,
        check=check_indices,
        calls=hooks.pooled_memory(),
        workspace=2 * SLACK * size,
        workspace_dtype=INTEGER[dtype],
        **variant,
    )
