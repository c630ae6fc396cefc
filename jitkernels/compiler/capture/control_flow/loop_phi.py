"""Variables of a loop that are another array after each round, of the same dtype and shape: their values are carried.

The array from before the loop stays what it was. What a round makes is new, or what another variable had; no two
variables may have one array then, as writing to one would change the other.
"""

import functools
import gc
import types
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from jitkernels.frontends.flow.tracing import owners
from jitkernels.frontends.storage import Storage
from jitkernels.frontends.traced import Traced
from jitkernels.frontends.tracer import Tracer
from jitkernels.graph import construct, extents
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.flows import base_of, is_direct, laid_in
from jitkernels.graph.ir import Node
from jitkernels.graph.regions import parameter


def fits(before: Any, now: Any) -> bool:
    """Whether the array that a variable has can take the place of that which it had."""
    if not is_array(before) or not is_whole(now):
        return False
    if before.dtype != now.dtype or before.ndim != now.ndim:
        return False
    # Where their extents are the same in this call, the code is for calls in which they are.
    pairs = list(zip(before.extents, now.extents, strict=True))
    return all(extents.value_of(one) == extents.value_of(other) and one == other for one, other in pairs)


def is_array(value: Any) -> bool:
    """Whether a variable has an array."""
    return type(value) is Traced and value.ndim > 0


def is_whole(value: Any) -> bool:
    """Whether a variable has an array that is no view of another one, and lies row by row."""
    if type(value) is not Traced or not value.ndim:
        return False
    return value.view.parent is None and value.view.storage.is_c is True


def has(value: Any, storage: Storage) -> bool:
    """Whether a variable has all of a storage."""
    return type(value) is Traced and value.view.storage is storage and value.view.parent is None


def own(values: Sequence[Any], state: Sequence[Any]) -> list[bool]:
    """Whether nothing but a variable of the loop has an array: no argument, and no other variable or container.

    Asked before the loop, when variables have what they had.
    """
    alone = [_is_alone(one, state) for one in values]
    if not any(alone):
        return alone
    known = owners()
    tracer = next(one for one in values if type(one) is Traced).tracer
    along = {id(one.view.storage) for one in _arrays(tracer.along, known)}
    counts = Counter(id(one.view.storage) for one in _arrays([one for _, one in known], known))
    return [
        is_alone and id(one.view.storage) not in along and counts[id(one.view.storage)] <= 1
        for one, is_alone in zip(values, alone, strict=True)
    ]


def _is_alone(value: Any, state: Sequence[Any]) -> bool:
    """Whether one variable of the loop has an array that is no argument and no view."""
    if type(value) is not Traced:
        return False
    storage = value.view.storage
    if storage.leaf is not None or value.view.parent is not None:
        return False
    return sum(type(one) is Traced and one.view.storage is storage for one in state) == 1


HOLDING = frozenset({
    list, tuple, set, frozenset, dict, map, filter, zip, enumerate, reversed, functools.partial, types.MethodType,
    types.GeneratorType, type(iter([])), type(iter(())),
})  # fmt: skip
"""Types whose objects may have arrays, which Python's own collector of garbage finds."""


def _arrays(values: Any, known: Sequence[tuple[str, Any]]) -> Iterator[Traced]:
    """The arrays that values have, also as elements, as what they go along, and as what functions remember.

    Variables of a function around that others inside of it see, which are `known`, are not those of the latter too.
    """
    waiting, seen = [*values], set()
    around = {(name, id(had)) for name, had in known}
    while waiting:
        one = waiting.pop()
        if type(one) is Traced:
            yield one
            continue
        if id(one) in seen:
            continue
        seen.add(id(one))
        if type(one) in HOLDING:
            waiting += gc.get_referents(one)
        elif type(one) is types.FunctionType:
            waiting += [*(one.__defaults__ or ()), *(one.__kwdefaults__ or {}).values()]
            for name, cell in zip(one.__code__.co_freevars, one.__closure__ or (), strict=True):
                with suppress(ValueError):  # where it has no value yet
                    kept = cell.cell_contents
                    waiting += [] if (name, id(kept)) in around else [kept]


def parameter_of(before: Traced, parameters: Sequence[Node]) -> tuple[Node, list[Node]]:
    """The parameter of a round for such a variable, and all parameters with it."""
    made = parameter(before.node.dtype, before.extents, len(parameters))
    return made, [*parameters, made]


def inputs(before: Sequence[Traced | Storage], read: Sequence[Node]) -> list[Node]:
    """What is carried into the first round: copies of arrays that all rounds read as they were before the loop."""
    found = {id(base_of(node)) for one in read for node in views_below(one)}
    return [construct.copy(one.node) if id(base_of(one.node)) in found else one.node for one in before]


def begun(tracer: Tracer, before: Sequence[Traced], own: Sequence[bool], read: Sequence[Node]) -> list[Node]:
    """What variables are in the first round that have another array after each; `own`: whether no others have it.

    Rounds overwrite it. That what others have stays as it was the code of the whole function sees to; in a region it
    is copied here, as is what the code around the region has made.
    """
    found = inputs(before, read)
    if not tracer.depth:
        return found
    return [
        construct.copy(node) if node is one.node and (not is_own or node.serial < tracer.begun) else node
        for one, is_own, node in zip(before, own, found, strict=True)
    ]


def views_below(node: Node) -> Iterator[Node]:
    """A node, and what it is a view of."""
    yield node
    while node.operation in ("view", "reshape"):
        node = node.inputs[0]
        yield node


def outputs(after: Sequence[Traced], own: Sequence[Node]) -> list[Node]:
    """What is carried on. Raises UnknownError where two variables have one array."""
    storages = [one.view.storage for one in after]
    if len({id(one) for one in storages}) < len(storages):
        raise UnknownError("two variables have one array after a round of a loop")
    bases = [base_of(storage.node) for storage in storages]
    made = [
        is_direct(one.node) and laid_in(one.node) is not base
        for one, base in zip(storages, bases, strict=True)
    ]
    swapped = not any(made) and {id(one) for one in bases} == {id(one) for one in own}
    found = []
    for storage, before, base, is_made in zip(storages, own, bases, made, strict=True):
        is_elsewhere = base is not before and (is_direct(storage.node) or any(base is one for one in own))
        is_copied = is_made or (is_elsewhere and not swapped)
        found.append(construct.copy(storage.node) if is_copied else storage.node)
    return found
