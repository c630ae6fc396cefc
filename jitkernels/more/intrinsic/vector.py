"""VMUL in C with intrinsics."""

from typing import Any

from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.attrs.vector import VMulAttr
from jitkernels.codegen.c_source import CSource
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import offset
from jitkernels.microkernels.chunking import MIN_THREAD_ELEMENTS, vector_threads
from jitkernels.microkernels.tuning_space import STREAM_CANDIDATE_BYTES
from jitkernels.more.intrinsic.source import external, source, usable


def variants(attr: VMulAttr) -> list[Variant]:
    """List serial first, then parallel, then both with streaming stores for large results."""
    streams = (False, True) if attr.signature().outputs[0].nbytes >= STREAM_CANDIDATE_BYTES else (False,)
    return [{**variant, "stream": stream} for stream in streams for variant in vector_threads(attr)]


@implements(VMulAttr, can_be_used=usable, variants=variants)
def vmul(attr: VMulAttr, parallel: bool = False, stream: bool = False) -> CSource | RangeKernel:
    signature = attr.signature()
    built = source("vector", "vmul_past_cache" if stream else "vmul", attr.dtype, signature.c_arguments)
    if not parallel:
        return built
    multiply = external(built)

    def body(x: Any, y: Any, z: Any, n: int, begin: int, end: int) -> Any:
        return multiply(offset(x, begin), offset(y, begin), offset(z, begin), end - begin)

    return RangeKernel(
        built.name, signature.c_arguments, body, extent=signature.index("n"), block=MIN_THREAD_ELEMENTS, parallel=True
    )
