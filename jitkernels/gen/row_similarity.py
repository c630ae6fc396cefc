"""Generated DOT of bfloat16; the compiler builds DOT of wider floats, SQEUCLIDEAN and COSINE from their references."""

from typing import Any

from jitkernels.attrs.row_similarity import DotAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import offset
from jitkernels.microkernels.chunking import grain
from jitkernels.microkernels.gemv.bf16_sums import WIDENED, algorithms, row_product
from jitkernels.microkernels.narrow_int import round_to_bfloat16

SIMILARITY_THREAD_ELEMENTS = 32768
"""Least number of elements per thread."""


def variants(attr: DotAttr) -> list[Variant]:
    shares = (False, True) if attr.rows // grain(attr.n, SIMILARITY_THREAD_ELEMENTS) >= 4 else (False,)
    return [{"algorithm": name, "parallel": parallel} for parallel in shares for name in algorithms()]


@implements(DotAttr, variants=variants, dtypes=("bfloat16",))
def dot(attr: DotAttr, algorithm: str = WIDENED, parallel: bool = False) -> RangeKernel:
    of_row = row_product(algorithm)

    def body(x: Any, y: Any, z: Any, rows: int, n: int, begin: int, end: int) -> None:
        for row in range(begin, end):
            z[row] = round_to_bfloat16(of_row(offset(x, row * n), offset(y, row * n), n))

    signature = attr.signature()
    return RangeKernel(
        f"dot_bfloat16_{algorithm}",
        signature.c_arguments,
        body,
        extent=signature.index("rows"),
        block=grain(attr.n, SIMILARITY_THREAD_ELEMENTS) if parallel else 1,
        parallel=parallel,
    )
