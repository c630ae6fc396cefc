"""Generated ARGSORT: the buffers of short rows lie on the stack."""

from typing import Any

import numpy as np

from jitkernels.attrs.argsort import ArgsortAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen import error_status
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range, inlined, offset
from jitkernels.core import cpu_target, hooks
from jitkernels.microkernels.chunking import grain
from jitkernels.microkernels.heap_scratch import heap_allocator, heap_free, is_null
from jitkernels.microkernels.range_kernel_of import range_kernel_of
from jitkernels.microkernels.sort.packed_argsort import (
    SHORT_DIGIT_COUNTS,
    TASK_WORDS,
    ArgsortBuffers,
    counts_of,
    packed_argsort,
)
from jitkernels.microkernels.sort.sort_tasks import SLACK
from jitkernels.microkernels.tuning_space import widths_and_threads

WORK = 1 << 15
"""Least number of elements per thread."""
PERMUTED_BYTES = 32
"""Bytes of the widest vectors that a table permutes."""
STACK_ELEMENTS = 256
"""Elements of the longest row whose buffers lie on the stack."""


@inlined()
def buffers_in(memory: Any, n: int) -> ArgsortBuffers:
    """Divide memory into the buffers of a row of n elements, the counts behind all others."""
    spare = offset(memory, 2 * (n + SLACK))
    tasks = offset(spare, SLACK)
    return ArgsortBuffers(memory, offset(memory, n + SLACK), spare, tasks, offset(tasks, TASK_WORDS))


def variants(attr: ArgsortAttr) -> list[Variant]:
    return widths_and_threads(attr.rows // grain(attr.n, WORK))


@implements(ArgsortAttr, variants=variants)
def argsort(attr: ArgsortAttr, **variant: Any) -> RangeKernel:
    lanes = min(variant.get("vector_bytes", cpu_target.target().vector_bytes), PERMUTED_BYTES) // 8
    sort_row, memory_of = packed_argsort(attr.dtype, lanes), heap_allocator("int64_t")
    no_memory = np.int64(error_status.no_memory_for(f"argsort_{attr.dtype}"))

    def body(x: Any, y: Any, n: int, workspace: Any, part: Range) -> Any:
        if n <= STACK_ELEMENTS:
            buffers = buffers_in(workspace, STACK_ELEMENTS)
            for row in range(part.begin, part.end):
                sort_row(offset(x, row * n), offset(y, row * n), n, buffers)
            return 0
        memory = memory_of(8 * (2 * n + 3 * SLACK + TASK_WORDS + counts_of(n)))
        if is_null(memory):
            return no_memory
        buffers = buffers_in(memory, n)
        for row in range(part.begin, part.end):
            sort_row(offset(x, row * n), offset(y, row * n), n, buffers)
        heap_free(memory)
        return 0

    return range_kernel_of(
        attr,
        f"argsort_{attr.dtype}",
        body,
        extent="rows",
        block=grain(attr.n, WORK) if variant.get("parallel") else 1,
        flags=(),
        unrolls=False,
        calls=hooks.pooled_memory(),
        workspace=8 * (2 * STACK_ELEMENTS + 3 * SLACK + TASK_WORDS + SHORT_DIGIT_COUNTS),
        workspace_dtype="int64",
        **variant,
    )
