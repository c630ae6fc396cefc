"""Concatenation in place: operands that are computed in their part of the concatenation's buffer.

The copy of an operand into a concatenation is left out, and the step that computes the operand stores it there: its
array has the base and the strides of the whole, and an offset. Operands that are concatenations themselves are parts of
parts, so that a growing array is allocated once, and each layer of a network appends to it. So is the row of a
loop-carried array that an iteration stores. Rules:

1. The operand is computed by a loop nest, or by a kernel whose results may have a pitch (`Argument.pitch`), or lie in
   one piece. Arguments, results of the function and of NumPy, and what shares memory with others are copied.
2. Both have one dtype, and the part is the operand as it is, at most with further dimensions of one element.
3. All that reads the operand besides is a loop nest, or reads an array in one piece.
4. Elements that neighbour each other fill a cache line: readers of shorter runs would load element by element.
5. Nothing updates the concatenation in place: readers of the operand would find new values. A loop-carried array is
   updated once, and not read.
6. An operand has one place: what is concatenated twice is copied the second time.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from jitkernels.codegen.python.types import NUMBERS
from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.dim_bounds import traced_product
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.ir.strided_array import StridedArray
from jitkernels.compiler.ir.symbolic_dims import Number, same
from jitkernels.compiler.memory.output_layout import ArrayLayout
from jitkernels.compiler.schedule.fusion import split
from jitkernels.compiler.schedule.gemm_epilogue import Step, read_by, written_by
from jitkernels.compiler.schedule.kernel_step import KernelCall
from jitkernels.compiler.schedule.loop_nest import LoopNest, Store
from jitkernels.compiler.schedule.matmul_step import MatMulStep
from jitkernels.compiler.schedule.update_in_place import memory_of
from jitkernels.core.cpu_target import CACHE_LINE_BYTES


class BufferSlice(NamedTuple):
    """The part of a concatenation that an operand is: the region of the `whole`, and the dimensions that it has.

    `dimensions` has None for those of one element.
    """

    whole: Node
    region: IndexMap
    dimensions: tuple[int | None, ...]

    def array(self, whole: StridedArray, node: Node) -> StridedArray:
        """The operand's array in that of the whole."""
        part = whole.region(self.region, len(self.region))
        strides: list[Number] = []
        dense: Number = 1
        for dimension, extent in zip(reversed(self.dimensions), reversed(node.shape), strict=True):
            strides.append(dense if dimension is None else part.strides[dimension])
            dense = strides[-1] * extent
        return StridedArray(part.word, tuple(reversed(strides)), node.dtype, part.first)

    def shape(self, node: Node) -> tuple[Number, ...]:
        """The operand's shape, with the extents that it has in common with the whole as those of the whole."""
        axis = self.whole.options.get("axis")
        if axis is None:  # a part that is stored, of any extents
            return node.shape
        return tuple(
            extent if dimension in (axis, None) else self.whole.shape[dimension]
            for dimension, extent in zip(self.dimensions, node.shape, strict=True)
        )


class BufferSlices:
    """Finds the operands that are computed in place, and removes their copies from the `steps`.

    `shared`: the nodes that have the memory of others; `slices`: by operand, its part. `in_flow`: the graph is a group
    of nests in a loop or branch, which may leave results in the memory of its inputs before all is computed.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        graph: Graph,
        shared: Mapping[Node, Node],
        layouts: Mapping[Node, ArrayLayout],
        *,
        in_flow: bool = False,
    ) -> None:
        self.layouts, self.slices = layouts, dict[Node, BufferSlice]()
        self.shared, self.in_flow = shared, in_flow
        self.fixed: Collection[Node] = {
            *graph.inputs, *graph.roots, *graph.checks, *shared, *shared.values(),
        }  # fmt: skip
        self.updated = {*shared, *shared.values(), *graph.inputs}
        self.writers: dict[Node, list[Step]] = {}
        self.readers: dict[Node, list[Step]] = {}
        for step in steps:
            for node in written_by(step):
                self.writers.setdefault(node, []).append(step)
            for node in read_by(step):
                self.readers.setdefault(node, []).append(step)
        self.steps = [step for step in steps if not isinstance(step, LoopNest) or self._without_copies(step)]

    def _without_copies(self, nest: LoopNest) -> bool:
        """Remove the copies of operands that are computed in place; return whether the nest has other stores."""
        kept = [store for store in nest.stores if not self._is_placed(store)]
        if len(kept) < len(nest.stores):
            nest.stores[:] = kept
            nest.columns = next((columns for store in kept if (columns := split(store.region).columns)), ())
        return bool(kept)

    def _is_placed(self, store: Store) -> bool:
        """Whether the store is a copy of an operand that has its place in the concatenation from now on."""
        found = _copied(store)
        if found is None:
            return False
        node, place = found
        if node in self.fixed or node in self.slices or node.dtype != place.whole.dtype:
            return False
        if place.whole in self.updated and not self._is_written_alone(place.whole):
            return False
        if not self._fits(node, place, self._array(place.whole)):
            return False
        self.slices[node] = place
        return True

    def _array(self, node: Node) -> StridedArray:
        """The array of a concatenation, which may be a part of another one."""
        place = self.slices.get(node)
        if place is not None:
            return place.array(self._array(place.whole), node)
        return StridedArray(0, self.layouts[node].strides, node.dtype)

    def _fits(self, node: Node, place: BufferSlice, whole: StridedArray) -> bool:
        """Whether all that computes and reads a node, and the parts that it has, can do so in its place."""
        array, shape = place.array(whole, node), place.shape(node)
        is_dense = _is_dense(array, shape)
        if not _is_long(array, shape) or not self._may_read(node, is_dense=is_dense):
            return False
        if not self._may_write(node, is_dense=is_dense, is_pitched=_is_pitched(array, shape)):
            return False
        return all(self._fits(part, own, array) for part, own in self.slices.items() if own.whole is node)

    def _is_written_alone(self, update: Node) -> bool:
        """Whether an update stores a part of a loop-carried array that no other step reads or writes."""
        memory = memory_of(update, self.shared)
        versions = [node for node in self.shared if memory_of(node, self.shared) is memory]
        is_carried = self.in_flow and update.operation == "update" and versions == [update]
        return is_carried and memory not in self.readers and update not in self.readers

    def _may_write(self, node: Node, *, is_dense: bool, is_pitched: bool) -> bool:
        """Whether all that computes a node can store it in its place."""
        for step in self.writers.get(node, ()):
            if isinstance(step, KernelCall):
                if not is_dense and not (is_pitched and step.kernel.is_pitched):
                    return False
            elif not isinstance(step, LoopNest):
                return False
        return node in self.writers

    def _may_read(self, node: Node, *, is_dense: bool) -> bool:
        """Whether all that reads a node can read it in its place."""
        for step in self.readers.get(node, ()):
            if isinstance(step, LoopNest):
                if any(node in region.gathered for region in step.regions):
                    return False
            elif not isinstance(step, KernelCall | MatMulStep) or not is_dense:
                return False
        return True


def _copied(store: Store) -> tuple[Node, BufferSlice] | None:
    """The operand that a store copies into a concatenation, and its place there."""
    region, target_map = store.region, store.target_map
    if store.target.operation not in ("concatenate", "update") or target_map is None or len(region.leaves) != 1:
        return None
    (node,) = region.leaves
    maps = [*region.access_maps[node].values()]
    if len(maps) != 1 or any(inner.operation != "view" for inner in region.nodes) or not node.ndim:
        return None
    dimensions: list[int | None] = []
    for (start, steps), extent in zip(maps[0], node.shape, strict=True):
        if same(extent, 1):
            dimensions.append(None)
            continue
        if not same(start, 0) or len(steps) != 1 or not same(steps[0][1], 1):
            return None
        dimensions.append(steps[0][0])
    shown = [dimension for dimension in dimensions if dimension is not None]
    wanted = [i for i, extent in enumerate(region.root.shape) if not same(extent, 1)]
    extents = [extent for extent in node.shape if not same(extent, 1)]
    if shown != wanted or not symbolic_dims.same_shape(extents, [region.root.shape[i] for i in wanted]):
        return None
    return node, BufferSlice(store.target, target_map, tuple(dimensions))


def _is_pitched(array: StridedArray, shape: Sequence[Number]) -> bool:
    """Whether the rows of an array lie one pitch apart, each in one piece."""
    strides = array.strides
    return same(strides[-1], 1) and all(
        same(strides[i], strides[i + 1] * shape[i + 1]) or same(shape[i], 1) for i in range(len(shape) - 2)
    )


def _is_dense(array: StridedArray, shape: Sequence[Number]) -> bool:
    """Whether an array lies in one piece, in C order."""
    return all(
        same(stride, dense) or same(extent, 1)
        for stride, dense, extent in zip(array.strides, builder.contiguous(shape), shape, strict=True)
    )


def _is_long(array: StridedArray, shape: Sequence[Number]) -> bool:
    """Whether the runs of neighbouring elements fill a cache line in the traced call."""
    dense, run = builder.contiguous(shape), len(shape)
    while run and (same(array.strides[run - 1], dense[run - 1]) or same(shape[run - 1], 1)):
        run -= 1
    return traced_product(shape[run:]) * NUMBERS[array.dtype].size >= CACHE_LINE_BYTES
