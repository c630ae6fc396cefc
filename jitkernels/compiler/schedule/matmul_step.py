"""Matrix products in a graph: by the kernel MATMUL, called from the segment, or as sums of products in loop nests.

A matrix with one row or one column is read once, so its product is a sum like any other, and is fused with what is
around it, unless the other one is large and lies across the sum. So are products of a few numbers, of which a call is
half the time, and products of integers, for which there is no kernel.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from jitkernels import dtypes, machine
from jitkernels.attrs.base import FLOATS
from jitkernels.errors import NotUsableError
from jitkernels.graph import construct, extents
from jitkernels.graph.emit.blocks import Block, Function
from jitkernels.graph.emit.memory import Array
from jitkernels.graph.extents import Number, same
from jitkernels.graph.ir import Graph, Node, transformed
from jitkernels.kept import kept_property
from jitkernels.native import load
from jitkernels.native.language.types import NUMBERS
from jitkernels.native.source import External
from jitkernels.records import record

if TYPE_CHECKING:
    from jitkernels.attrs.matmul import MatMulAttr
    from jitkernels.choosing import Choice

LEAST_LARGE = 1 << 20
"""Bytes of a matrix from which on it may be large."""
LONG_ROW = 1 << 10
"""Bytes of a row of it that are more than a run."""
FEW = 64
"""Multiplications that a loop nest does in half the time of a call of a kernel; four times as many take as long."""


def lowered(graph: Graph) -> Graph:
    """The graph with sums of products in place of those matrix products that are no kernel's."""
    return transformed(graph, _as_sum)


def _as_sum(node: Node) -> Node:
    if (
        node.operation != "matmul"
        or node.dtype == "float16"
        or any(same(one, 0) for one in node.inputs[0].shape)
    ):
        return node
    rows, columns = node.shape[-2:]
    left, right = node.inputs
    is_vector = same(rows, 1) or same(columns, 1)
    if node.dtype in FLOATS and (_is_of_large_matrix(node) if is_vector else not _is_of_few(node)):
        inputs = tuple(map(_without_gaps, node.inputs))
        return node if inputs == node.inputs else node.with_inputs(inputs)
    turned = construct.transpose(right, [*range(right.ndim - 2), right.ndim - 1, right.ndim - 2])
    terms = construct.elementwise(
        "multiply",
        construct.expand_dims(left, [left.ndim - 1]),
        construct.expand_dims(turned, [turned.ndim - 2]),
    )
    return construct.reduce("sum" if node.dtype != "bool" else "any", terms, [terms.ndim - 1])


def large() -> int:
    """Bytes of a matrix from which on it is not in the second-level cache, where short runs are as good as long ones.

    Of 1 MB they take two thirds of the time of whole rows where that cache has 2 MB, and of 4 MB twice as long.
    """
    return max(LEAST_LARGE, machine.second_cache_bytes())


def _is_of_few(node: Node) -> bool:
    """Whether a product is one of matrices of a few rows and columns. Code is for products on the same side."""
    work = extents.product((*node.shape[-2:], node.inputs[0].shape[-1]))
    return not extents.is_moving(work) and not extents.is_at_least_now(work, FEW + 1)


def _is_of_large_matrix(node: Node) -> bool:
    """Whether a row times a matrix is a kernel's, which takes several rows of the matrix at a time, whole ones.

    Lanes of a loop nest go along columns: it would read a large matrix in short runs, one of each row. Code is for
    matrices on the same side of the limit as that of the traced call.
    """
    (_, matrix), (_, turned) = operands(node)
    if same(node.shape[-1], 1) or turned or matrix.operation not in ("input", "parameter"):
        return False
    elements, size = extents.product(matrix.shape[-2:]), NUMBERS[node.dtype].size
    limits = {LONG_ROW // size: matrix.shape[-1], large() // size: elements}
    if any(map(extents.is_moving, limits.values())):
        return False
    return all(extents.is_at_least_now(extent, limit) for limit, extent in limits.items())


def _without_gaps(node: Node) -> Node:
    """An operand as it is, or a copy of an argument that has gaps between its elements."""
    base = node.inputs[0] if node.operation == "view" else node
    return node if has_no_gaps(base) else construct.copy(node)


def has_no_gaps(node: Node) -> bool:
    """Whether a kernel can read a node where it is: whether its matrices lie row by row, or column by column."""
    return is_dense(node) or _lies_turned(node)


def is_dense(node: Node) -> bool:
    """Whether a node has no gaps in memory, and lies in C order: whether it is no argument that does not."""
    strides = node.options.get("strides") if node.operation == "input" else None
    return strides is None or extents.key_of_shape(strides) == extents.key_of_shape(
        construct.contiguous(node.shape)
    )


def _lies_turned(node: Node) -> bool:
    """Whether an argument has no gaps, and the columns of its matrices lie one behind another."""
    strides = node.options.get("strides") if node.operation == "input" and node.ndim > 1 else None
    if strides is None:
        return False
    order = [*range(node.ndim - 2), node.ndim - 1, node.ndim - 2]
    return extents.key_of_shape(strides) == extents.key_of_shape(construct.contiguous(node.shape, order))


@record
class Product:
    """A product of matrices in memory: `turned` says which of the two lie transposed."""

    node: Node
    left: Node
    right: Node
    turned: tuple[bool, bool]

    @property
    def attr(self) -> "MatMulAttr":
        """For the sizes of the traced call. What it takes is imported here, since most expressions have no product."""
        from jitkernels.attrs.matmul import MatMulAttr

        m, n, k = (extents.value_of(one) for one in self.sizes)
        return MatMulAttr(
            m=m, n=n, k=k, trans_a=self.turned[0], trans_b=self.turned[1], dtype=self.node.dtype
        )

    @kept_property
    def choice(self) -> "Choice | None":
        """What computes it, which is right for other sizes too; None if there is no kernel, or NumPy is pinned."""
        from jitkernels.choosing import choose_for_class

        try:
            choice = choose_for_class(self.attr, in_code=True)
        except NotUsableError:
            return None
        return None if choice.implementation.is_reference else choice

    @property
    def has_kernel(self) -> bool:
        return self.choice is not None

    def external(self, *, in_parts: bool = False) -> External:
        """The kernel. Ours chooses at each call, as one code serves products of all sizes; for `in_parts` see there."""
        choice, attr = self.choice, self.attr
        assert choice is not None, "it has a kernel"
        if choice.implementation.name == "gen":
            from jitkernels.loops.matmul_any_size import any_size_entry

            return any_size_entry(attr, single_rows=self._may_be_row, in_parts=in_parts)
        source = choice.implementation.source(attr, choice.variant)
        found: External = load.entry_of(source, attr.signature().c_arguments)
        return found

    def handing_on(self, *, in_parts: bool = False) -> External | None:
        """The kernel that hands its rows on to what reads them; None where that cannot be done.

        Of a matrix and its own transpose half is computed, the rest copied, so that rows are done when all is.
        """
        is_symmetric = self.left is self.right and self.turned[0] != self.turned[1]
        if is_symmetric or self.choice is None or self.choice.implementation.name != "gen":
            return None
        from jitkernels.loops.matmul_any_size import any_size_entry

        return any_size_entry(self.attr, followed=True, single_rows=self._may_be_row, in_parts=in_parts)

    @property
    def is_ours(self) -> bool:
        """Whether its kernel chooses at each call."""
        return self.choice is not None and self.choice.implementation.name == "gen"

    @property
    def sizes(self) -> tuple[Number, ...]:
        """What tells which parts of the kernel are needed: rows, columns and what is added up."""
        return (*self.node.shape[-2:], self.node_depth)

    @property
    def _may_be_row(self) -> bool:
        """Whether the result may have one row: sizes that are 1 are numbers, and no symbol is."""
        least = extents.least_of(self.node.shape[-2])
        return least is None or least < 2

    @property
    def node_depth(self) -> Number:
        return self.node.inputs[0].shape[-1]

    @property
    def work(self) -> Number:
        return extents.product(self.node.shape) * self.node_depth

    @property
    def batches(self) -> Number | None:
        """How many pairs of matrices there are; None where it is one pair by itself."""
        return extents.product(self.node.shape[:-2]) if self.node.ndim > 2 else None

    def text(
        self, function: Function, arrays: Mapping[int, Array], name: str, external: External, after: str = ""
    ) -> str:
        """A function that calls the kernel for the pairs of matrices ``begin`` to ``end``; it returns 0 if none failed.

        `after` is the name of the function that takes the rows which a kernel hands on. It is given the frame, and the
        number of the first row of a pair among those of all.
        """
        block, new = function.block, function.new
        nodes = self.left, self.right, self.node
        pointers = [self._pointer(function, arrays[id(one)]) for one in nodes]
        sizes = [function.extent(one) for one in self.sizes]
        rows, passed = sizes[0], list(sizes)
        first = ""
        if after:
            context = function.variable("{ ptr, i64 }")
            block.lines.append(f"  store ptr %frame, ptr {context}")
            first = new(block, f"getelementptr {{ ptr, i64 }}, ptr {context}, i64 0, i32 1")
            passed += [f"ptrtoint (ptr @{after} to i64)", new(block, f"ptrtoint ptr {context} to i64")]
        function.library.declare(external.symbol, "i64", [*["ptr"] * 3, *["i64"] * len(passed)])
        outer = [function.extent(one) for one in self.node.shape[:-2]]
        steps = [self._steps(function, arrays[id(one)], one) for one in nodes]
        body = Block(block, -1, "%pair")
        rest, moved = "%pair", list(pointers)
        for dimension in reversed(range(len(outer))):
            index = rest
            if dimension:
                index = new(body, f"urem i64 {rest}, {outer[dimension]}")
                rest = new(body, f"udiv i64 {rest}, {outer[dimension]}")
            for i, (node, own) in enumerate(zip(nodes, steps, strict=True)):
                if own[dimension] != "0":
                    distance = new(body, f"mul nsw i64 {index}, {own[dimension]}")
                    kind = dtypes.named(node.dtype).llvm
                    moved[i] = new(body, f"getelementptr {kind}, ptr {moved[i]}, i64 {distance}")
        if after:
            number = new(body, f"mul nsw i64 %pair, {rows}")
            body.lines.append(f"  store i64 {number}, ptr {first}")
        arguments = ", ".join([*(f"ptr {one}" for one in moved), *(f"i64 {one}" for one in passed)])
        status = new(body, f"call i64 @{external.symbol}({arguments})")
        lines = [
            *(*function.memory, *block.lines),
            "  br label %before",
            "before:",
            "  br label %head",
            "head:",
            "  %pair = phi i64 [ %begin, %before ], [ %next, %one ]",
            "  %failed = phi i64 [ 0, %before ], [ %either, %one ]",
            "  %more = icmp slt i64 %pair, %end",
            "  br i1 %more, label %one, label %done",
            "one:",
            *body.lines,
            f"  %either = or i64 %failed, {status}",
            "  %next = add nsw i64 %pair, 1",
            "  br label %head",
            "done:",
            "  ret i64 %failed",
        ]
        head = f"define internal i64 @{name}(ptr %frame, i64 %begin, i64 %end) noinline nounwind"
        return "\n".join([f"{head} {{", *lines, "}"])

    def _steps(self, function: Function, array: Array, node: Node) -> list[str]:
        """How far apart the matrices of an array are along each dimension of the pairs."""
        missing = self.node.ndim - node.ndim
        return ["0"] * missing + [
            "0" if same(extent, 1) else function.extent(stride)
            for extent, stride in zip(node.shape[:-2], array.strides, strict=False)
        ]

    def _pointer(self, function: Function, array: Array) -> str:
        at = function.new(function.block, f"getelementptr i64, ptr %frame, i64 {array.word}")
        return function.new(function.block, f"load ptr, ptr {at}")


def factors(nodes: Iterable[Node]) -> set[int]:
    """What has to be in memory, row by row, for the products and kernels among nodes, by their ids."""
    found: set[int] = set()
    for node in nodes:
        if node.operation in ("matmul", "kernel"):
            found |= {id(one) for one in (operands(node)[0] if node.operation == "matmul" else node.inputs)}
    return found


def operands(node: Node) -> tuple[tuple[Node, Node], tuple[bool, bool]]:
    """What has to be in memory for a product, and whether it lies transposed."""
    found, turned = [], []
    for one in node.inputs:
        base = one.inputs[0] if one.operation == "view" else None
        flips = base is not None and _is_turned(one, base)
        own = base if flips and base is not None else one
        found.append(own)
        turned.append(flips != _lies_turned(own))
    return (found[0], found[1]), (turned[0], turned[1])


def _is_turned(view: Node, base: Node) -> bool:
    """Whether a view is the transpose of what it is of, in the last two dimensions alone."""
    if view.ndim != base.ndim or view.ndim < 2:
        return False
    order = [*range(base.ndim - 2), base.ndim - 1, base.ndim - 2]
    return all(
        same(start, 0)
        and len(steps) == 1
        and steps[0][0] == order[i]
        and same(steps[0][1], 1)
        and same(extent, view.shape[order[i]])
        for i, ((start, steps), extent) in enumerate(zip(view.options["map"], base.shape, strict=True))
    )
