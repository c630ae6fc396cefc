"""Which rows are packed: those that fit in registers, and those of which one vector each is taken at a time.

Code is specialized for rows about as long as those of the traced call, as all of it would take LLVM three times as
long; other lengths get their own. Code for any size tests the length at run time. Longer rows there, and fewer than
fill a group, run in the general loops.
"""

from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.symbolic_dims import Extent, is_loop_variant
from jitkernels.compiler.schedule.nest.loop_order import Loops
from jitkernels.compiler.schedule.nest.nest_schedule import RowPacking

MAX_ROW_VECTORS = 64
"""The most vectors of a row that is taken by one vector at a time: a sum of so many has one group of parts."""
SIMPLE = 48
"""The most nodes of a nest that gets specialized code for short rows."""
SUMS = frozenset({"sum", "prod", "min", "max", "any", "all"})
"""Reductions of rows taken in several iterations: those without indices."""
UNPACKED_OPERATIONS = frozenset({"gather", "scan", "placed"})
"""Operations that are not packed."""


def packings(own: Loops) -> tuple[tuple[RowPacking, ...], bool]:
    """The forms of packed code, and whether all rows are covered by them. Guards keep other lengths out."""
    narrow, lane_loop = own.lanes, own.lane_loop
    loops = {target.loops for target in own.targets if target.loops}
    nodes = [node for region in own.nest.regions for node in region.nodes]
    simple = len(nodes) <= SIMPLE and not any(node.operation in UNPACKED_OPERATIONS for node in nodes)
    if lane_loop is None or not (own.order and own.reduces and simple and loops == {(lane_loop,)} and narrow >= 4):
        return (), False
    several = 1 if narrow > 8 else 2  # a 64-bit division takes as long as two others: rows overlap
    classes = [
        [RowPacking(8, narrow // 2)],
        [RowPacking(4, narrow)],
        [RowPacking(4, 2 * narrow), RowPacking(several, 4 * narrow)],
    ]
    inner = [target.reduction for target in own.targets if target.loops]
    if all(reductions and reductions[0].options["kind"] in SUMS for reductions in inner):
        classes[2:] = [[RowPacking(4, 2 * narrow)], [RowPacking(4, narrow, MAX_ROW_VECTORS * narrow)]]
    count = own.extents[lane_loop]
    if isinstance(count, Extent) and (own.any_size or is_loop_variant(count)):
        return tuple(form for forms in classes for form in forms), False
    least = 0
    for forms in classes:
        longest = forms[-1].longest
        if symbolic_dims.value_of(count) <= longest:
            if isinstance(count, Extent):
                count.guard(count - least, ">", is_choice=True)
                count.guard(longest - count, ">=", is_choice=True)
            else:
                forms = [form for form in forms if form.longest >= count][:1]
            if forms[-1].is_in_steps:
                return tuple(forms), False
            return (*forms, *([RowPacking(1, longest)] if forms[-1].rows > 1 else [])), True
        least = longest
    if isinstance(count, Extent):
        count.guard(count - least, ">", is_choice=True)
    return (), False
