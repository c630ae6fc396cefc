"""Matrix products of a graph: calls of the MATMUL kernel, or sums of products in loop nests.

A matrix with one row or one column is read once, so its product is a sum like any other and is fused with its
neighbours, unless the other matrix is large and lies across the sum. So are tiny products, of which a call is half
the time, and integer products, for which there is no kernel.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from jitkernels.attrs.schema.base import FLOATS
from jitkernels.codegen.python.types import NUMBERS
from jitkernels.codegen.source_protocol import External
from jitkernels.compiler.ir import builder, matrix_ops, symbolic_dims
from jitkernels.compiler.ir.graph import Graph, Node, transformed
from jitkernels.compiler.ir.regions import LoopParts
from jitkernels.compiler.ir.symbolic_dims import Number, same
from jitkernels.core import cpu_target
from jitkernels.core.cached_property import unlocked_cached_property
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.errors import NotUsableError
from jitkernels.microkernels.prepacked.panels import prepacked_entry
from jitkernels.runtime.loading import loader

if TYPE_CHECKING:
    from jitkernels.attrs.matmul import MatMulAttr
    from jitkernels.selection.select import Choice

MIN_LARGE = 1 << 20
"""The least bytes of a large matrix."""
LONG_ROW = 1 << 10
"""The least bytes of its rows, for which a run per row is short."""
MAX_NEST_MULTIPLICATIONS = 64
"""Multiplications for which a loop nest takes half the time of a kernel call; four times as many take as long."""


def lower_matmuls(graph: Graph) -> Graph:
    """Decompose matrix products that no kernel computes into sums of products."""
    return transformed(graph, _as_sum)


def _as_sum(node: Node) -> Node:
    if node.operation != "matmul" or node.dtype == "float16" or any(same(extent, 0) for extent in node.inputs[0].shape):
        return node
    rows, columns = node.shape[-2:]
    left, right = node.inputs
    if node.options.get("is_packed"):
        return node if has_no_gaps(left) else node.with_inputs((builder.copy(left), right))
    is_vector = same(rows, 1) or same(columns, 1)
    if node.dtype in FLOATS and (_is_of_large_matrix(node) if is_vector else not _is_tiny(node)):
        inputs = tuple(map(_without_gaps, node.inputs))
        return node if inputs == node.inputs else node.with_inputs(inputs)
    transposed = builder.transpose(right, [*range(right.ndim - 2), right.ndim - 1, right.ndim - 2])
    terms = builder.elementwise(
        "multiply", builder.expand_dims(left, [left.ndim - 1]), builder.expand_dims(transposed, [transposed.ndim - 2])
    )
    return builder.reduce("sum" if node.dtype != "bool" else "any", terms, [terms.ndim - 1])


def large() -> int:
    """The bytes from which on a matrix is not in L2, where short runs are as good as long ones.

    Runs of 1 MB take two thirds of the time of whole rows where L2 has 2 MB, and those of 4 MB twice as long.
    """
    return max(MIN_LARGE, cpu_target.l2_cache_bytes())


def _is_tiny(node: Node) -> bool:
    """Return whether a product is tiny. Code is specialized for products on the same side of the limit."""
    work = symbolic_dims.product((*node.shape[-2:], node.inputs[0].shape[-1]))
    return not symbolic_dims.is_loop_variant(work) and not symbolic_dims.is_at_least_now(
        work, MAX_NEST_MULTIPLICATIONS + 1
    )


def _is_of_large_matrix(node: Node) -> bool:
    """Return whether a vector-matrix product is a kernel's, which takes several whole rows of the matrix at a time.

    Lanes of a loop nest run along columns: it would read a large matrix in short runs, one per row. Code is
    specialized for matrices on the same side of the limit as that of the traced call.
    """
    (_, matrix), (_, is_transposed) = operands(node)
    if same(node.shape[-1], 1) or is_transposed or matrix.operation not in ("input", "parameter"):
        return False
    elements, size = symbolic_dims.product(matrix.shape[-2:]), NUMBERS[node.dtype].size
    limits = {LONG_ROW // size: matrix.shape[-1], large() // size: elements}
    if any(map(symbolic_dims.is_loop_variant, limits.values())):
        return False
    return all(symbolic_dims.is_at_least_now(extent, limit) for limit, extent in limits.items())


def _without_gaps(node: Node) -> Node:
    """An operand, or a dense copy of a strided argument."""
    base = node.inputs[0] if node.operation == "view" else node
    return node if has_no_gaps(base) else builder.copy(node)


def has_no_gaps(node: Node) -> bool:
    """Return whether a kernel can read a node in place: whether its matrices are dense, in C or Fortran order."""
    return matrix_ops.is_dense(node) or _is_fortran_ordered(node)


def _is_fortran_ordered(node: Node) -> bool:
    """Return whether an argument is dense with matrices in Fortran order."""
    strides = node.options.get("strides") if node.operation == "input" and node.ndim > 1 else None
    if strides is None:
        return False
    order = [*range(node.ndim - 2), node.ndim - 1, node.ndim - 2]
    return symbolic_dims.key_of_shape(strides) == symbolic_dims.key_of_shape(builder.contiguous(node.shape, order))


@frozen_dataclass
class MatMulStep:
    """A product of matrices in memory; `transposed`: which of the two operands are transposed.

    Matrices that are multiplied by the same one are the rows of a single product.
    """

    node: Node
    left: Node
    right: Node
    transposed: tuple[bool, bool]

    @property
    def attr(self) -> "MatMulAttr":
        """The attr of the traced call. Imported here, since most expressions have no product."""
        from jitkernels.attrs.matmul import MatMulAttr

        m, n, k = (symbolic_dims.value_of(size) for size in self.sizes)
        return MatMulAttr(m=m, n=n, k=k, trans_a=self.transposed[0], trans_b=self.transposed[1], dtype=self.node.dtype)

    @unlocked_cached_property
    def choice(self) -> "Choice | None":
        """The implementation that computes it, correct for other sizes too.

        None if there is no kernel, or NumPy is pinned.
        """
        from jitkernels.selection.select import choose_for_class

        try:
            choice = choose_for_class(self.attr, in_code=True)
        except NotUsableError:
            return None
        return None if choice.implementation.is_reference else choice

    @property
    def has_kernel(self) -> bool:
        return self.choice is not None

    def external(self, *, in_parts: bool = False) -> External:
        """The kernel. Ours selects at each call, as one code serves products of all sizes; `in_parts`.

        See `runtime_select_entry`.
        """
        choice, attr = self.choice, self.attr
        assert choice is not None, "it has a kernel"
        if self.is_packed:
            return prepacked_entry(attr.dtype, cpu_target.target(), is_row=same(self.sizes[0], 1))
        if choice.implementation.name == "gen":
            from jitkernels.microkernels.gemm.runtime_select import runtime_select_entry

            return runtime_select_entry(attr, single_rows=self._may_be_row, in_parts=in_parts)
        source = choice.implementation.source(attr, choice.variant)
        result: External = loader.entry_of(source, attr.signature().c_arguments)
        return result

    def with_row_callback(self, *, in_parts: bool = False) -> External | None:
        """The kernel with an epilogue callback for finished rows; None if there is none.

        Of a matrix times its own transpose half is computed and the rest copied, so that rows are finished only at
        the end.
        """
        if self.is_packed:
            return prepacked_entry(self.node.dtype, cpu_target.target(), followed=True, is_row=same(self.sizes[0], 1))
        is_symmetric = self.left is self.right and self.transposed[0] != self.transposed[1]
        if is_symmetric or self.choice is None or self.choice.implementation.name != "gen":
            return None
        from jitkernels.microkernels.gemm.runtime_select import runtime_select_entry

        return runtime_select_entry(self.attr, followed=True, single_rows=self._may_be_row, in_parts=in_parts)

    @property
    def is_package_file(self) -> bool:
        """Whether its kernel selects at each call."""
        return not self.is_packed and self.choice is not None and self.choice.implementation.name == "gen"

    @property
    def is_packed(self) -> bool:
        """Whether the right operand is a constant in panels."""
        return bool(self.node.options.get("is_packed"))

    @property
    def outer(self) -> tuple[Number, ...]:
        """The batch dimensions: none where all matrices are multiplied by the same one."""
        is_shared = self.is_packed or self.right.ndim == 2
        return () if is_shared and not self.transposed[0] else self.node.shape[:-2]

    @property
    def sizes(self) -> tuple[Number, ...]:
        """The sizes that the kernel selects by: rows, columns and depth."""
        rows = self.node.shape[len(self.outer) : -1]
        return symbolic_dims.product(rows), self.node.shape[-1], self.node_depth

    @property
    def _may_be_row(self) -> bool:
        """Whether the result may have one row: a size of 1 is a constant, and no symbol is 1."""
        return not symbolic_dims.is_at_least(self.sizes[0], 2)

    @property
    def node_depth(self) -> Number:
        return self.node.inputs[0].shape[-1]

    @property
    def work(self) -> Number:
        return symbolic_dims.product(self.node.shape) * self.node_depth

    @property
    def batches(self) -> Number | None:
        """The number of matrix pairs; None if there is no batch dimension."""
        return symbolic_dims.product(self.outer) if self.outer else None


def factors(nodes: Iterable[Node]) -> set[Node]:
    """The operands of products and kernels, also of those in loops, which must be dense in memory.

    Where an array that a loop reads lies in another order, each iteration would copy it.
    """
    found: set[Node] = set()
    for node in nodes:
        if node.operation in ("matmul", "kernel"):
            found.update(operands(node)[0] if node.operation == "matmul" else node.inputs)
        elif node.operation == "loop":
            loop = LoopParts(node)
            inside = factors(loop.body)
            pairs = zip(loop.captured, loop.captured_parameters, strict=True)
            found.update(operand for operand, parameter in pairs if parameter in inside)
    return found


def operands(node: Node) -> tuple[tuple[Node, Node], tuple[bool, bool]]:
    """The operands of a product in memory, and whether they are transposed."""
    bases, transposed = [], []
    if node.options.get("is_packed"):
        left, right = node.inputs
        return (left, right), (False, False)
    for operand in node.inputs:
        base = operand.inputs[0] if operand.operation == "view" else None
        is_view_transposed = base is not None and _is_transpose(operand, base)
        base_or_operand = base if is_view_transposed and base is not None else operand
        bases.append(base_or_operand)
        transposed.append(is_view_transposed != _is_fortran_ordered(base_or_operand))
    return (bases[0], bases[1]), (transposed[0], transposed[1])


def _is_transpose(view: Node, base: Node) -> bool:
    """Return whether a view transposes the last two dimensions of its base, and nothing else."""
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
