"""In-place outputs of loop nests: an output takes over the buffer of an operand whose last use this is.

A nest that loads each element of an array exactly where it stores one of the same dtype may store into that buffer:
half as many cache lines, and a smaller arena. Rules:

1. Both are arrays between steps, of one shape, dtype and memory order.
2. No later step reads the operand, under any alias; arrays that NumPy reads live to the end.
3. The nest reads the operand only at the access map of the store, and has no reductions or scans, which read a row
   before they store it.
4. The nest is no GEMM epilogue, which runs on finished rows while the product still reads its operands.
"""

from collections.abc import Mapping, Sequence

from jitkernels.compiler.ir import access_map
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.ir.symbolic_dims import Number, key_of_shape
from jitkernels.compiler.schedule.fusion import UnfusedStep
from jitkernels.compiler.schedule.gemm_epilogue import Step, read_by, written_by
from jitkernels.compiler.schedule.loop_nest import LoopNest, Store
from jitkernels.compiler.schedule.matmul_step import MatMulStep
from jitkernels.compiler.schedule.update_in_place import memory_of


class InPlaceOutputs:
    """Decides which arrays between steps are stored in place of an operand.

    `shared`: maps a node to the node whose memory it has; updated for each output that is stored in place.
    """

    def __init__(self, steps: Sequence[Step], graph: Graph, shared: dict[Node, Node]) -> None:
        self.steps, self.shared = steps, shared
        live_out = (*graph.inputs, *graph.roots, *graph.checks)
        self.live_out = {memory_of(node, shared) for node in live_out}.union(live_out)
        self.last_use: dict[Node, int] = {}
        for time, step in enumerate(steps):
            for node in {*read_by(step), *written_by(step)}:
                memory = memory_of(node, shared)
                last = len(steps) if isinstance(step, UnfusedStep) else max(time, self.last_use.get(memory, 0))
                self.last_use[memory] = last

    def take_over(
        self, time: int, store: Store, strides: Sequence[Number], known: Mapping[Node, Sequence[Number]]
    ) -> Node | None:
        """Return the operand that a store of step `time` may overwrite; `known`: the strides of arrays made so far."""
        nest, target = self.steps[time], store.target
        is_epilogue = time > 0 and isinstance(self.steps[time - 1], MatMulStep)
        if (
            not isinstance(nest, LoopNest)
            or is_epilogue
            or store.target_map is not None
            or target is not store.region.root
        ):
            return None
        if not target.ndim or target in self.live_out:
            return None
        if any(node.operation in ("reduce", "scan") for node in nest.nodes):
            return None
        wanted = target.dtype, key_of_shape(target.shape), key_of_shape(strides)
        for node in store.region.leaves:
            memory = memory_of(node, self.shared)
            if memory in self.live_out or node not in known or self.last_use.get(memory) != time:
                continue
            form = node.dtype, key_of_shape(node.shape), key_of_shape(known[node])
            if form == wanted and self._is_accessed_only_at(memory, nest, store):
                self.shared[target] = node
                self.last_use[memory] = self.last_use[target]
                return node
        return None

    def _is_accessed_only_at(self, memory: Node, nest: LoopNest, store: Store) -> bool:
        """Return whether a nest accesses some memory only at the access map of `store`."""
        store_map = {access_map.key_of(access_map.identity(store.region.root.ndim))}
        for other in nest.stores:
            region = other.region
            read = [node for node in region.leaves if memory_of(node, self.shared) is memory]
            if other is not store and memory_of(other.target, self.shared) is memory:
                return False
            if any(other.order != store.order or {*region.access_maps[node]} != store_map for node in read):
                return False
            if any(memory_of(node, self.shared) is memory for node in region.gathered):
                return False
        return True
