"""Ctrl-C in long loops: now and then a loop asks whether there are signals, and ends if Python raises for one.

Other Python threads get their turn then. Loops of single elements alone that count, which LLVM makes vectors of, do
not ask, nor do those inside of others in which an int gets somewhere (`short_loops`): the loop around them does, from
whose patience they take their rounds when they have ended. It asks behind blocks of rounds, of which LLVM can take
several at once, as there is no way out of the middle of them.
"""

from jitkernels.graph.bodies import Body
from jitkernels.graph.emit.short_loops import moved
from jitkernels.graph.flows import is_flow
from jitkernels.graph.ir import Node
from jitkernels.graph.regions import nodes_within

PATIENCE = 1 << 16
"""What rounds take from, by the weights below, until signals are asked for, which takes 50 ns or so."""
OF_NUMBERS, OF_LOOPS, OF_ARRAYS = 1, 4, 1 << 12
BLOCK = 32
"""The most rounds of a loop around others between which it does not ask: LLVM takes several of these at once."""
OF_BLOCK = (PATIENCE // BLOCK).bit_length() - 1
"""A block has as many rounds as the patience that is left has of this many bits: few behind rounds that took long."""
COPIES, MOST_COPIED = 4, 16
"""How often a short round stands in the code of a loop that asks, and of how many nodes it may be."""
LONG, SHORT = PATIENCE << 4, 1 << OF_BLOCK
"""What is left for a next time if so much more was taken than there was: one round a block."""
REFUSED = 2
"""The status of a segment that has written nothing, as NumPy refuses what it is given."""
FULL = 6
"""That of one whose loops write more down than there is room for: larger tapes will do."""
# That of one that would call what is not built yet is `jitkernels.native.later.MISSING`.
INTERRUPTED = 4
"""The status of a segment for which Python has set an exception."""
TEXT = """declare i32 @PyGILState_Ensure()
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
    """What a round of a loop takes of the patience; 0 where none is asked for."""
    if any(group for _, group in body.stages):
        return OF_ARRAYS
    if any(is_flow(node) and node.operation == "loop" for node in nodes_within(loop.options["body"])):
        return OF_LOOPS
    return 0 if loop.options["counts"] or (is_inner and moved(loop) is not None) else OF_NUMBERS


def is_in_blocks(loop: Node) -> bool:
    """Whether a loop asks behind blocks of rounds: one that counts, around loops that do not ask and are short.

    What goes up to a number may have any number of rounds, what goes down to one has as many as it began with.
    """
    inner = [node for node in nodes_within(loop.options["body"]) if node.operation == "loop"]
    return loop.options["counts"] and not any(
        any(one.operation == "loop" for one in nodes_within(node.options["body"]))
        or not (node.options["counts"] or _goes_down(node))
        for node in inner
    )


def _goes_down(loop: Node) -> bool:
    found = moved(loop)
    return found is not None and not found[1]


def copies(loop: Node) -> int:
    """How many rounds of a loop that does not count there are between two looks at the patience: several short ones."""
    many = sum(
        node.operation not in ("parameter", "constant", "item") for node in nodes_within(loop.options["body"])
    )
    return COPIES if many <= MOST_COPIED else 1
