"""What a number of an inner loop is computed from, and its clone in a loop of its own in front of the outer one."""

from collections.abc import Iterator

from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.ops import OPERATIONS, own_cost
from jitkernels.compiler.ir.regions import LoopParts, parameter, symbols_in
from jitkernels.core import dtypes

MIN_FUNCTION_COST = 10.0
"""In additions: the cost from which on a load is faster than computing a number again."""
MIN_STRIDE_BYTES = 64
"""The distance of elements from which on each is in a cache line of its own."""
TRAPS = frozenset({"floor_divide", "remainder", "fmod", "divmod"})
"""Operations that trap for integers, where a check that the loops make first would bail out."""
ARRAY_OPERATIONS = frozenset({"cast", "view", "reshape", "reduce", "scan", "iota", "matmul"})
"""Operations of arrays that are not elementwise, and may be computed elsewhere, of the same operands."""
FIXED, MOVING, VARYING = "fixed", "moving", "varying"
"""What a number of an inner loop's body depends on: on neither loop, on the inner one's iteration alone, on other."""


class BackwardSlice:
    """The nodes of an outer loop's body, and of a loop in it, that change in no iteration of the outer one.

    `leaves`: by each node in front of the outer loop that clones need, the parameter for it; `induction`: for the
    inner loop's induction variable.
    """

    def __init__(self, outer: LoopParts, inner: LoopParts | None = None) -> None:
        self.before = dict(zip(outer.captured_parameters, outer.captured, strict=True))
        own = outer.body.inputs[: len(outer.body.inputs) - len(self.before)]
        self.own_symbols = {str(node.options["symbol"]) for node in own if "symbol" in node.options}
        self.between: dict[Node, Node] = {}
        self.leaves: dict[Node, Node] = {}
        self._kinds: dict[Node, str] = {}
        self._clones: dict[Node, Node] = {}
        self._outside: dict[Node, Node | None] = {}
        if inner is not None:
            self.between = dict(zip(inner.captured_parameters, inner.captured, strict=True))
            (self.counter,) = inner.induction
            self.induction = parameter("int64", (), 0, str(self.counter.options.get("symbol", "")))
            self._clones[self.counter] = self.induction
            self._kinds[self.counter] = MOVING

    def kind_of(self, node: Node) -> str:
        """What a node of the inner body, or of the outer one, depends on."""
        if node not in self._kinds:
            self._kinds[node] = self._found_kind(node)
        return self._kinds[node]

    def _found_kind(self, node: Node) -> str:
        if node in self.between:
            return self.kind_of(self.between[node])
        if node in self.before or self._is_constant(node):
            return FIXED
        if node.operation == "parameter" or not _is_pure(node):
            return VARYING
        kinds = {self.kind_of(operand) for operand in node.inputs}
        return VARYING if VARYING in kinds else MOVING if MOVING in kinds else FIXED

    def _is_constant(self, node: Node) -> bool:
        if node.operation == "extent":
            return not symbols_in([node]) & self.own_symbols
        return node.operation == "constant"

    def has_function(self, root: Node) -> bool:
        """Whether a root takes a function of a number that changes with the inner loop."""
        return any(
            own_cost(node) >= MIN_FUNCTION_COST and OPERATIONS[node.operation].is_elementwise
            for node in self._moving_inputs(root)
        )

    def _moving_inputs(self, root: Node) -> Iterator[Node]:
        """A root and what it is computed from, of what changes with the inner loop."""
        found: set[Node] = set()
        waiting = [root]
        while waiting:
            node = waiting.pop()
            if node not in found and self.kind_of(node) == MOVING:
                found.add(node)
                waiting += node.inputs
                yield node

    def is_strided(self, node: Node) -> bool:
        """Whether consecutive iterations load elements of one array from a cache line each."""
        if node.operation != "gather" or len(node.inputs) < 3:
            return False
        array, *indices = node.inputs
        moving = [i for i, index in enumerate(indices) if index is self.counter]
        last = symbolic_dims.value_of(array.shape[-1])
        return (
            len(moving) == 1
            and moving[0] < len(indices) - 1
            and last * dtypes.named(array.dtype).size >= MIN_STRIDE_BYTES
            and self.kind_of(array) == FIXED
            and all(self.kind_of(index) == FIXED for i, index in enumerate(indices) if i != moving[0])
            and not self._is_transposed(array)
        )

    def _is_transposed(self, array: Node) -> bool:
        """Whether elements that differ in an index but the last are adjacent in an array of the caller."""
        while array in self.between or array in self.before:
            array = self.between[array] if array in self.between else self.before[array]
        strides = array.options.get("strides") or ()
        return any(symbolic_dims.same(stride, 1) for stride in strides[:-1])

    def clone(self, node: Node) -> Node:
        """A node of either body in the body of the new loop."""
        if node not in self._clones:
            self._clones[node] = self._cloned(node)
        return self._clones[node]

    def _cloned(self, node: Node) -> Node:
        if node in self.between:
            return self.clone(self.between[node])
        if node in self.before:
            return self.leaf(self.before[node])
        return node.with_inputs([self.clone(operand) for operand in node.inputs]) if node.inputs else node

    def leaf(self, node: Node) -> Node:
        """The parameter for a node in front of the outer loop."""
        if node.operation in ("constant", "extent"):
            return node
        if node not in self.leaves:
            self.leaves[node] = parameter(node.dtype, node.shape, 0)
        return self.leaves[node]

    def outside(self, node: Node) -> Node | None:
        """A node of the outer body in front of its loop; None if it depends on the loop, or is a load."""
        if node not in self._outside:
            self._outside[node] = self._found_outside(node)
        return self._outside[node]

    def _found_outside(self, node: Node) -> Node | None:
        if node in self.before:
            return self.before[node]
        if self._is_constant(node):
            return node
        if node.operation == "gather" or not (_is_pure(node) or self._is_array(node)):
            return None
        operands = [self.outside(operand) for operand in node.inputs]
        return None if None in operands else node.with_inputs([one for one in operands if one is not None])

    def _is_array(self, node: Node) -> bool:
        """Whether a node is computed from arrays, which it reads as they are captured."""
        if not node.ndim and not any(operand.ndim for operand in node.inputs) and node.operation != "view":
            return False
        is_known = node.operation in ARRAY_OPERATIONS or OPERATIONS[node.operation].is_elementwise
        return is_known and not symbols_in([node]) & self.own_symbols


def _is_pure(node: Node) -> bool:
    """Whether a scalar may be computed elsewhere, of the same operands. Loads of loops are in bounds."""
    if node.ndim or any(operand.ndim for operand in node.inputs[node.operation == "gather" :]):
        return False
    if node.operation in ("gather", "cast"):
        return True
    if not OPERATIONS[node.operation].is_elementwise:
        return False
    return node.operation not in TRAPS or node.dtype.startswith("float") or node.inputs[1].operation == "constant"
