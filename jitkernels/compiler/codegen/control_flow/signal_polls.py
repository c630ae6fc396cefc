"""Signal polling in long loops: Ctrl-C ends a loop after a bounded amount of work.

A poll also releases the GIL for a moment. A counted loop of scalar elements only, which LLVM vectorizes, does not
poll, nor does an inner loop with a bounded trip count (`bounded_while`): the enclosing loop polls, and subtracts the
inner trip counts from its countdown. Polls stand behind blocks of iterations without an exit, which LLVM can unroll.
"""

from jitkernels.compiler.codegen.control_flow.bounded_while import monotonic_counter
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.region_memory import is_control_flow
from jitkernels.compiler.ir.regions import walk_nodes
from jitkernels.compiler.schedule.region_stages import Body

COUNTDOWN = 1 << 16
"""The countdown from one poll to the next, in the weights below; a poll takes about 50 ns."""
SCALAR_WEIGHT, LOOP_WEIGHT, OF_ARRAYS = 1, 4, 1 << 12
MAX_UNPOLLED_ITERATIONS = 32
"""The most iterations of an outer loop between two polls: LLVM unrolls such a block."""
BLOCK_SHIFT = (COUNTDOWN // MAX_UNPOLLED_ITERATIONS).bit_length() - 1
"""A block has ``countdown >> this`` iterations: fewer after iterations that took long."""
POLLING_UNROLL, MAX_POLLING_NODES = 4, 16
"""The unroll factor of a polling loop, and the largest body in nodes that is unrolled."""
OVERRUN_COUNTDOWN, RESTART_COUNTDOWN = COUNTDOWN << 4, 1 << BLOCK_SHIFT
"""If the countdown was overrun by the first, restart it at the second: one iteration per block."""
REFUSED = 2
"""The status of a segment that bailed out before it wrote anything: NumPy raises for these arguments."""
FULL = 6
"""The status of a segment whose tape is too small: the caller retries with a larger one."""
# The status of a segment that needs code that is not built yet is `jitkernels.runtime.loading.lazy_link.MISSING`.
INTERRUPTED = 4
"""The status of a segment for which Python has set an exception."""
SIGNAL_POLL_IR = """declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare i32 @PyErr_CheckSignals()
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
define internal i1 @jk_interrupted() noinline nounwind cold {
  %state = call i32 @PyGILState_Ensure()
  %status = call i32 @PyErr_CheckSignals()
  %thread = call ptr @PyEval_SaveThread()
  call void @PyEval_RestoreThread(ptr %thread)
  call void @PyGILState_Release(i32 %state)
  %raised = icmp ne i32 %status, 0
  ret i1 %raised
}"""


def weight(loop: Node, body: Body, *, is_inner: bool) -> int:
    """The countdown that one iteration of a loop consumes; 0 if the loop does not poll."""
    if body.groups:
        return OF_ARRAYS
    if any(is_control_flow(node) and node.operation == "loop" for node in walk_nodes(loop.options["body"])):
        return LOOP_WEIGHT
    return 0 if loop.options["counts"] or (is_inner and monotonic_counter(loop) is not None) else SCALAR_WEIGHT


def polls_in_blocks(loop: Node) -> bool:
    """Return whether a counted loop polls behind blocks of iterations.

    Its inner loops do not poll and have short bodies. A ``while`` loop that counts up may have any trip count; one
    that counts down has at most its initial value.
    """
    inner = [node for node in walk_nodes(loop.options["body"]) if node.operation == "loop"]
    return loop.options["counts"] and not any(
        any(inner.operation == "loop" for inner in walk_nodes(node.options["body"]))
        or not (node.options["counts"] or _goes_down(node))
        for node in inner
    )


def _goes_down(loop: Node) -> bool:
    result = monotonic_counter(loop)
    return result is not None and not result[1]


def copies(loop: Node) -> int:
    """The unroll factor of a ``while`` loop between two polls: more than 1 for short bodies."""
    node_count = sum(
        node.operation not in ("parameter", "constant", "item") for node in walk_nodes(loop.options["body"])
    )
    return POLLING_UNROLL if node_count <= MAX_POLLING_NODES else 1
