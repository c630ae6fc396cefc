"""In-place outputs of loop nests: an output takes over the buffer of an operand whose last use this is.

A nest that loads each element of an array exactly where it stores one of the same dtype may store into that buffer:
half as many cache lines, and a smaller arena. Rules:

1. Both are arrays between steps, of one shape, dtype and memory order.
2. No later step reads the operand, under any alias; arrays that NumPy reads live to the end.
3. The nest reads the operand only at the access map of the store, and has no reductions or scans, which read a row
   before they store it.
4. The nest is no GEMM epilogue, which runs on finished rows while the product still reads its operands.
"""

from collections.abc import Sequence

from jitkernels.compiler.ir import access_map, symbolic_dims
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.ir.symbolic_dims import Number
from jitkernels.compiler.schedule.fusion import Single
from jitkernels.compiler.schedule.gemm_epilogue import Step, read_by, written_by
from jitkernels.compiler.schedule.loop_nest import Nest, Store
from jitkernels.compiler.schedule.matmul_step import Product
from jitkernels.compiler.schedule.update_in_place import memory_of


class InPlaceOutputs:
    """Decides which arrays between steps are stored in place of an operand.

    `shared`: maps a node to the node whose memory it has; updated for each output that is stored in place.
    """

    def __init__(self, steps: Sequence[Step], graph: Graph, shared: dict[int, Node]) -> None:
        self.steps, self.shared = steps, shared
        live_out = (*graph.inputs, *graph.roots, *graph.checks)
        self.lasting = {id(memory_of(node, shared)) for node in live_out} | set(map(id, live_out))
        self.nodes = {id(node): node for node in graph}
        self.last: dict[int, int] = {}
        for time, step in enumerate(steps):
            for key in {*read_by(step), *map(id, written_by(step))}:
                memory = self._memory(key)
                self.last[memory] = len(steps) if isinstance(step, Single) else max(time, self.last.get(memory, 0))

    def _memory(self, key: int) -> int:
        return id(memory_of(self.shared[key], self.shared)) if key in self.shared else key

    def replaced(
        self, time: int, store: Store, strides: Sequence[Number], known: dict[int, Sequence[Number]]
    ) -> Node | None:
        """Return the operand that a store of step `time` may overwrite; `known`: the strides of arrays made so far."""
        nest, target = self.steps[time], store.target
        is_epilogue = time > 0 and isinstance(self.steps[time - 1], Product)
        if not isinstance(nest, Nest) or is_epilogue or store.region is not None or target is not store.cone.root:
            return None
        if not target.ndim or id(target) in self.lasting:
            return None
        if any(node.operation in ("reduce", "scan") for node in nest.nodes):
            return None
        strides_key = symbolic_dims.key_of_shape(strides)
        for node in store.cone.leaves.values():
            memory = self._memory(id(node))
            if memory in self.lasting or id(node) not in known or self.last.get(memory) != time:
                continue
            if node.dtype != target.dtype or symbolic_dims.key_of_shape(node.shape) != symbolic_dims.key_of_shape(
                target.shape
            ):
                continue
            if symbolic_dims.key_of_shape(known[id(node)]) == strides_key and self._only_there(memory, nest, store):
                self.shared[id(target)] = node
                self.last[memory] = self.last[id(target)]
                return node
        return None

    def _only_there(self, memory: int, nest: Nest, store: Store) -> bool:
        """Return whether a nest accesses some memory only at the access map of `store`."""
        store_map = {access_map.key_of(access_map.identity(store.cone.root.ndim))}
        for other in nest.stores:
            if other is not store and self._memory(id(other.target)) == memory:
                return False
            for key in other.cone.leaves:
                if self._memory(key) == memory and (
                    other.order != store.order or {*other.cone.places[key]} != store_map
                ):
                    return False
            if any(self._memory(key) == memory for key in other.cone.gathered_ids):
                return False
        return True
