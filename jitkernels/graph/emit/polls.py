"""Ctrl-C in long loops: now and then a loop asks whether there are signals, and ends if Python raises for one.

Other Python threads get their turn then. Loops of single elements alone that count, which LLVM makes vectors of, do
not ask: the loop around them does, from whose patience they take their rounds when they have ended.
"""

from jitkernels.graph.bodies import Body
from jitkernels.graph.flows import is_flow
from jitkernels.graph.ir import Node
from jitkernels.graph.regions import nodes_within

PATIENCE = 1 << 16
"""What rounds take from, by the weights below, until signals are asked for, which takes 50 ns or so."""
OF_NUMBERS, OF_LOOPS, OF_ARRAYS = 1, 4, 1 << 12
REFUSED = 2
"""The status of a segment that has written nothing, as NumPy refuses what it is given."""
FULL = 6
"""That of one whose loops write more down than there is room for: larger tapes will do."""
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


def weight(loop: Node, body: Body) -> int:
    """What a round of a loop takes of the patience; 0 where none is asked for."""
    if any(group for _, group in body.stages):
        return OF_ARRAYS
    if any(is_flow(node) and node.operation == "loop" for node in nodes_within(loop.options["body"])):
        return OF_LOOPS
    return 0 if loop.options["counts"] or moved(loop) is not None else OF_NUMBERS


def moved(loop: Node) -> int | None:
    """The number of a carried int that each round takes a constant from, and that ends the loop below another one."""
    body, condition = loop.options["body"], loop.options["condition"]
    asked = condition.outputs[0]
    while asked.operation == "item" and asked.inputs[0].operation == "branch":
        branch = asked.inputs[0]
        no = branch.options["no"].outputs[asked.options["index"]]
        if no.operation != "constant" or no.options["value"]:
            return None
        asked = branch.inputs[0]  # ``one and other``
    if asked.operation not in ("greater", "greater_equal") or asked.inputs[1].operation != "constant":
        return None
    for place, number in enumerate(condition.inputs[: loop.options["carried"]]):
        after = body.outputs[place]
        if number is asked.inputs[0] and after.operation in ("add", "subtract"):
            one, other = after.inputs
            if one is body.inputs[place] and other.operation == "constant":
                step = other.options["value"] * (1 if after.operation == "add" else -1)
                return place if step < 0 else None
    return None
