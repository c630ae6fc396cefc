"""Loop phis of arrays: variables that hold another array of the same dtype and shape after each iteration.

The array from before the loop stays unchanged. An iteration binds the variable to a new array, or to the one that
another variable held; no two variables may then hold the same array, as a write to one would change the other.
"""

import functools
import gc
import types
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Self

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.control_flow.region_transaction import local_variables
from jitkernels.compiler.capture.functionalization import Storage
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.region_memory import base_of, home_array, is_direct


def can_carry(before: Any, now: Any) -> bool:
    """Whether `now` can be the loop-carried successor of `before`: same dtype and shape."""
    if not is_array(before) or not is_whole(now):
        return False
    if before.dtype != now.dtype or before.ndim != now.ndim:
        return False
    # Extents equal in this call become a guard: the code serves calls in which they are equal.
    pairs = list(zip(before.extents, now.extents, strict=True))
    return all(symbolic_dims.value_of(a) == symbolic_dims.value_of(b) and a == b for a, b in pairs)


def is_array(value: Any) -> bool:
    """Whether a variable holds an array."""
    return type(value) is Traced and value.ndim > 0


def is_whole(value: Any) -> bool:
    """Whether a variable holds a C-contiguous array that is no view of another one."""
    return is_array(value) and value.view.parent is None and value.view.storage.is_c is True


def holds(value: Any, storage: Storage) -> bool:
    """Whether a variable holds all of a storage."""
    return type(value) is Traced and value.view.storage is storage and value.view.parent is None


def sole_owners(values: Sequence[Any], state: Sequence[Any]) -> list[bool]:
    """For each value whether only this variable of the loop holds the array: no argument, other variable or container.

    Called before the loop, while variables hold their initial values.
    """
    alone = [_is_alone(value, state) for value in values]
    if not any(alone):
        return alone
    variables = local_variables()
    tracer = next(value for value in values if type(value) is Traced).tracer
    iterated = {array.view.storage for array in _arrays(tracer.loop_operands, variables)}
    counts = Counter(array.view.storage for array in _arrays([value for _, value in variables], variables))
    return [
        is_alone and value.view.storage not in iterated and counts[value.view.storage] <= 1
        for value, is_alone in zip(values, alone, strict=True)
    ]


def _is_alone(value: Any, state: Sequence[Any]) -> bool:
    """Whether exactly one variable of the loop holds an array that is no argument or view, and cannot alias one."""
    if type(value) is not Traced:
        return False
    storage = value.view.storage
    if storage.leaf is not None or value.view.parent is not None or storage.may_aliases:
        return False
    return sum(type(other) is Traced and other.view.storage is storage for other in state) == 1


HOLDING = frozenset({
    list, tuple, set, frozenset, dict, map, filter, zip, enumerate, reversed, functools.partial, types.MethodType,
    types.GeneratorType, type(iter([])), type(iter(())),
})  # fmt: skip
"""Types whose objects may refer to arrays; `gc.get_referents` lists them."""


def _arrays(values: Any, variables: Sequence[tuple[str, Any]]) -> Iterator[Traced]:
    """The arrays that values refer to: as elements, operands of iterators, defaults and closures of functions.

    `variables` belong to an enclosing function and are not counted again for the functions inside it.
    """
    worklist, seen = [*values], set()
    around = {(name, id(content)) for name, content in variables}
    while worklist:
        value = worklist.pop()
        if type(value) is Traced:
            yield value
            continue
        if id(value) in seen:
            continue
        seen.add(id(value))
        if type(value) in HOLDING:
            worklist += gc.get_referents(value)
        elif type(value) is types.FunctionType:
            worklist += [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
            for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
                with suppress(ValueError):  # where it has no value yet
                    content = cell.cell_contents
                    worklist += [] if (name, id(content)) in around else [content]


def inputs(before: Sequence[Traced | Storage], captured: Sequence[Node]) -> list[Node]:
    """The initial values of the loop; copies of arrays that every iteration also reads as they were before the loop."""
    bases = {base_of(node) for value in captured for node in _view_chain(value)}
    return [builder.copy(value.node) if base_of(value.node) in bases else value.node for value in before]


def _view_chain(node: Node) -> Iterator[Node]:
    """A node, and the nodes that it is a view of."""
    yield node
    while node.operation in ("view", "reshape"):
        node = node.inputs[0]
        yield node


def rebound_inputs(tracer: Tracer, before: Sequence[Traced], owned: Sequence[bool], captured: Any) -> list[Node]:
    """The initial arrays of rebound variables; `owned`: whether no other variable holds the array.

    Iterations overwrite them. The code of the whole function preserves arrays that others hold; inside a region they
    are copied here, as are arrays that the code around the region has computed.
    """
    initial = inputs(before, captured)
    if not tracer.depth:
        return initial
    return [
        builder.copy(node) if node is variable.node and (not is_owned or node.serial < tracer.region_start) else node
        for variable, is_owned, node in zip(before, owned, initial, strict=True)
    ]


def outputs(after: Sequence[Traced], parameters: Sequence[Node]) -> list[Node]:
    """The arrays carried into the next iteration. Raises UnsupportedError where two variables hold the same array."""
    storages = [array.view.storage for array in after]
    if len({*storages}) < len(storages):
        raise UnsupportedError("two variables hold the same array after an iteration of a loop")
    bases = [base_of(storage.node) for storage in storages]
    is_materialized = [
        is_direct(array.node) and home_array(array.node) is not base
        for array, base in zip(storages, bases, strict=True)
    ]
    is_swap = not any(is_materialized) and {*bases} == {*parameters}
    results = []
    for storage, own, base, is_new in zip(storages, parameters, bases, is_materialized, strict=True):
        is_elsewhere = base is not own and (is_direct(storage.node) or base in parameters)
        results.append(builder.copy(storage.node) if is_new or (is_elsewhere and not is_swap) else storage.node)
    return results


class IterationEnd(NamedTuple):
    """The storage of a rebound array at the end of an iteration.

    `may_be_start`: whether it may be a storage from the start of the iteration; `may_replace`: or a new one.
    """

    storage: Storage
    may_be_start: bool
    may_replace: bool

    @classmethod
    def of(cls, storage: Storage, starts: Sequence[Storage]) -> Self:
        may_be_start = storage.may_be(starts)
        return cls(storage, may_be_start, may_be_start and storage.may_replace(starts))

    def note_aliases(
        self, result: Storage, initial: Sequence[tuple[Traced, bool]], list_storages: Sequence[Storage]
    ) -> None:
        """Record what the array after the loop may alias. `initial`: the rebound arrays, and whether owned alone."""
        for alias in self.storage.may_aliases:
            if alias not in list_storages:
                result.note_may_alias(alias)
        for before, is_owner in initial if self.may_be_start else ():
            self._note_initial_alias(result, before, is_owner=is_owner)

    def _note_initial_alias(self, result: Storage, before: Traced, *, is_owner: bool) -> None:
        """Record that `result` may alias the array that a variable held before the loop: neither is written to."""
        initial = before.view.storage
        result.choices.append(initial)
        if is_owner:
            return
        if not self.storage.choices:
            result.may_aliases.append(self.storage)
            initial.may_aliases.append(self.storage)
            return
        is_whole_array = self.may_replace and before.view.parent is None
        for alias in [*initial.may_aliases]:  # aliases of `initial` may alias `result` too
            result.note_may_alias(alias, is_whole=is_whole_array and initial.is_whole_alias(alias))
        result.note_may_alias(initial, is_whole=is_whole_array)
