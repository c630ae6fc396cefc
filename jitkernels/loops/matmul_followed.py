"""Matrix multiply that hands its rows on to what reads them next: which variants can, and their nests."""

from jitkernels import machine
from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.loops.matmul_compact import compact_nest
from jitkernels.loops.matmul_packed import packed_nest
from jitkernels.loops.matmul_plan import blocking
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.threads import get_num_threads


def followed(
    attr: MatMulAttr, algorithm: str = "packed", parallel: bool = False, **_: object
) -> LoopNest | None:
    """A variant that hands its rows on (see `jitkernels.loops.followed`); None where there is none.

    Threads take rows then: where these are few, and are not shared out by rows, nothing is handed on.
    """
    target = machine.target()
    if algorithm == "compact":
        return compact_nest(attr, target, followed=True)
    blocks = blocking(attr.dtype, target)
    few = parallel and attr.n >= attr.m and attr.m < 4 * blocks.rows * get_num_threads()
    if algorithm != "packed" or few:
        return None
    return packed_nest(
        attr.dtype, target.lanes(attr.dtype), blocks,
        trans_a=attr.trans_a, trans_b=attr.trans_b, beta=attr.beta, split="rows", parallel=parallel, followed=True,
    )  # fmt: skip
