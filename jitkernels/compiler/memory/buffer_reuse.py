"""Results between steps that take the place of what they are made of, where nobody needs that any more.

A nest that reads each element of an array just where it stores one of the same dtype leaves that memory to its result:
half as many lines go through the caches, and the arena is smaller. Rules:

1. Both are arrays between steps, of one shape, dtype and order in memory.
2. Nothing behind the nest needs the old one, under whatever name; what NumPy reads may be needed to the end.
3. All that the nest computes of the old one needs it at the place alone where the new one is stored, and it has no
   reductions or running sums, which read a row before they store it.
4. The nest is not behind a product, which hands rows on to it as they are done, and reads its operands meanwhile.
"""

from collections.abc import Sequence

from jitkernels.graph import cones, extents
from jitkernels.graph.epilogues import Step, read_by, written_by
from jitkernels.graph.extents import Number
from jitkernels.graph.ir import Graph, Node
from jitkernels.graph.nests import Nest, Store
from jitkernels.graph.products import Product
from jitkernels.graph.reuse import memory_of
from jitkernels.graph.schedule import Single


class Replacing:
    """Which of the arrays between the steps of a program may be replaced, and by what.

    `shared` says of nodes whose memory they have, and is told of each that takes another's.
    """

    def __init__(self, steps: Sequence[Step], graph: Graph, shared: dict[int, Node]) -> None:
        self.steps, self.shared = steps, shared
        kept = (*graph.inputs, *graph.roots, *graph.checks)
        self.lasting = {id(memory_of(node, shared)) for node in kept} | set(map(id, kept))
        self.nodes = {id(node): node for node in graph}
        self.last: dict[int, int] = {}
        for time, step in enumerate(steps):
            for key in {*read_by(step), *map(id, written_by(step))}:
                memory = self._memory(key)
                self.last[memory] = (
                    len(steps) if isinstance(step, Single) else max(time, self.last.get(memory, 0))
                )

    def _memory(self, key: int) -> int:
        return id(memory_of(self.shared[key], self.shared)) if key in self.shared else key

    def replaced(
        self, time: int, store: Store, strides: Sequence[Number], known: dict[int, Sequence[Number]]
    ) -> Node | None:
        """What a store of the step of some number may be stored over; `known` are the strides of what was made."""
        nest, target = self.steps[time], store.target
        behind = time > 0 and isinstance(self.steps[time - 1], Product)
        if not isinstance(nest, Nest) or behind or store.region is not None or target is not store.cone.root:
            return None
        if not target.ndim or id(target) in self.lasting:
            return None
        if any(node.operation in ("reduce", "scan") for node in nest.nodes):
            return None
        key = extents.key_of_shape(strides)
        for node in store.cone.leaves.values():
            memory = self._memory(id(node))
            if memory in self.lasting or id(node) not in known or self.last.get(memory) != time:
                continue
            if node.dtype != target.dtype or extents.key_of_shape(node.shape) != extents.key_of_shape(
                target.shape
            ):
                continue
            if extents.key_of_shape(known[id(node)]) == key and self._only_there(memory, nest, store):
                self.shared[id(target)] = node
                self.last[memory] = self.last[id(target)]
                return node
        return None

    def _only_there(self, memory: int, nest: Nest, store: Store) -> bool:
        """Whether a nest needs some memory at the place of a store alone, and stores nothing else there."""
        where = {cones.key_of(cones.identity(store.cone.root.ndim))}
        for one in nest.stores:
            if one is not store and self._memory(id(one.target)) == memory:
                return False
            for key in one.cone.leaves:
                if self._memory(key) == memory and (
                    one.order != store.order or {*one.cone.places[key]} != where
                ):
                    return False
            if any(self._memory(key) == memory for key in one.cone.picked_from):
                return False
        return True
