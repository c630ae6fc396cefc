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
from typing import Any

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.control_flow.region_transaction import owners
from jitkernels.compiler.capture.functionalization import Storage
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.builder import UnknownError
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.region_memory import base_of, home_array, is_direct
from jitkernels.compiler.ir.regions import parameter


def fits(before: Any, now: Any) -> bool:
    """Whether `now` can be the loop-carried successor of `before`: same dtype and shape."""
    if not is_array(before) or not is_whole(now):
        return False
    if before.dtype != now.dtype or before.ndim != now.ndim:
        return False
    # Extents equal in this call become a guard: the code serves calls in which they are equal.
    pairs = list(zip(before.extents, now.extents, strict=True))
    return all(
        symbolic_dims.value_of(extent) == symbolic_dims.value_of(other_extent) and extent == other_extent
        for extent, other_extent in pairs
    )


def is_array(value: Any) -> bool:
    """Whether a variable holds an array."""
    return type(value) is Traced and value.ndim > 0


def is_whole(value: Any) -> bool:
    """Whether a variable holds a C-contiguous array that is no view of another one."""
    if type(value) is not Traced or not value.ndim:
        return False
    return value.view.parent is None and value.view.storage.is_c is True


def has(value: Any, storage: Storage) -> bool:
    """Whether a variable holds all of a storage."""
    return type(value) is Traced and value.view.storage is storage and value.view.parent is None


def sole_owners(values: Sequence[Any], state: Sequence[Any]) -> list[bool]:
    """For each value whether only this variable of the loop holds the array: no argument, other variable or container.

    Called before the loop, while variables hold their initial values.
    """
    alone = [_is_alone(value, state) for value in values]
    if not any(alone):
        return alone
    known = owners()
    tracer = next(value for value in values if type(value) is Traced).tracer
    iterated = {id(array.view.storage) for array in _arrays(tracer.loop_operands, known)}
    counts = Counter(id(array.view.storage) for array in _arrays([value for _, value in known], known))
    return [
        is_alone and id(value.view.storage) not in iterated and counts[id(value.view.storage)] <= 1
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


def _arrays(values: Any, known: Sequence[tuple[str, Any]]) -> Iterator[Traced]:
    """The arrays that values refer to: as elements, operands of iterators, defaults and closures of functions.

    Variables in `known` belong to an enclosing function and are not counted again for the functions inside it.
    """
    worklist, seen = [*values], set()
    around = {(name, id(content)) for name, content in known}
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


def parameter_of(before: Traced, parameters: Sequence[Node]) -> tuple[Node, list[Node]]:
    """The parameter of an iteration for such a variable, and all parameters including it."""
    node = parameter(before.node.dtype, before.extents, len(parameters))
    return node, [*parameters, node]


def inputs(before: Sequence[Traced | Storage], read: Sequence[Node]) -> list[Node]:
    """The initial values of the loop; copies of arrays that every iteration also reads as they were before the loop."""
    bases = {id(base_of(node)) for value in read for node in view_chain(value)}
    return [builder.copy(value.node) if id(base_of(value.node)) in bases else value.node for value in before]


def note_initial_alias(result: Storage, end: Storage, before: Traced, *, is_owner: bool, may_replace: bool) -> None:
    """Record that `result` may alias the array that a variable held before the loop: neither is written to.

    `end` is the storage at the end of an iteration; `may_replace`: whether that may be a new array as well.
    """
    initial = before.view.storage
    result.choices.append(initial)
    if is_owner:
        return
    if not end.choices:
        result.may_aliases.append(end)
        initial.may_aliases.append(end)
        return
    is_whole = may_replace and before.view.parent is None
    for alias in [*initial.may_aliases]:  # aliases of `initial` may alias `result` too
        result.note_may_alias(alias, is_whole=is_whole and initial.is_whole_alias(alias))
    result.note_may_alias(initial, is_whole=is_whole)


def begun(tracer: Tracer, before: Sequence[Traced], own: Sequence[bool], read: Sequence[Node]) -> list[Node]:
    """The initial arrays of rebound variables; `own`: whether no other variable holds the array.

    Iterations overwrite them. The code of the whole function preserves arrays that others hold; inside a region they
    are copied here, as are arrays that the code around the region has computed.
    """
    initial = inputs(before, read)
    if not tracer.depth:
        return initial
    return [
        builder.copy(node) if node is variable.node and (not is_own or node.serial < tracer.region_start) else node
        for variable, is_own, node in zip(before, own, initial, strict=True)
    ]


def view_chain(node: Node) -> Iterator[Node]:
    """A node, and the nodes that it is a view of."""
    yield node
    while node.operation in ("view", "reshape"):
        node = node.inputs[0]
        yield node


def outputs(after: Sequence[Traced], own: Sequence[Node]) -> list[Node]:
    """The arrays carried into the next iteration. Raises UnknownError where two variables hold the same array."""
    storages = [array.view.storage for array in after]
    if len({id(array) for array in storages}) < len(storages):
        raise UnknownError("two variables hold the same array after an iteration of a loop")
    bases = [base_of(storage.node) for storage in storages]
    is_materialized = [
        is_direct(array.node) and home_array(array.node) is not base
        for array, base in zip(storages, bases, strict=True)
    ]
    swapped = not any(is_materialized) and {id(array) for array in bases} == {id(array) for array in own}
    results = []
    for storage, before, base, is_new in zip(storages, own, bases, is_materialized, strict=True):
        is_elsewhere = base is not before and (is_direct(storage.node) or any(base is array for array in own))
        is_copied = is_new or (is_elsewhere and not swapped)
        results.append(builder.copy(storage.node) if is_copied else storage.node)
    return results
