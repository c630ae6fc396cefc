"""Pytrees: one registry of how containers are taken apart into children, and rebuilt from others.

Tuples, named tuples, lists and dicts are containers everywhere; dataclasses are where a caller says so, since elsewhere
they are objects with an identity. All other values are leaves.
"""

import dataclasses
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple


class ContainerType(NamedTuple):
    """The children of a container, and a container like it with other children."""

    children: Callable[[Any], Sequence[Any]]
    rebuild: Callable[[Any, Sequence[Any]], Any]


REGISTRY: dict[type, ContainerType] = {
    tuple: ContainerType(tuple, lambda _, children: tuple(children)),
    list: ContainerType(list, lambda _, children: list(children)),
    dict: ContainerType(
        lambda value: list(value.values()), lambda like, children: dict(zip(like, children, strict=True))
    ),
}
NAMED_TUPLE = ContainerType(tuple, lambda like, children: type(like)(*children))


def attribute_names(value: Any) -> tuple[str, ...]:
    """The names of the attributes of a dataclass object: those it has set, or its fields where it has slots."""
    return (
        tuple(vars(value)) if hasattr(value, "__dict__") else tuple(field.name for field in dataclasses.fields(value))
    )


def object_with(kind: type, names: Sequence[str], values: Sequence[Any]) -> Any:
    """An object of a class with these attributes, made without its constructor."""
    result: Any = object.__new__(kind)
    for name, value in zip(names, values, strict=True):
        object.__setattr__(result, name, value)
    return result


def _field_names(value: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(value) if hasattr(value, field.name)]


DATACLASS = ContainerType(
    lambda value: [getattr(value, name) for name in _field_names(value)],
    lambda like, children: object_with(type(like), _field_names(like), children),
)


def is_named_tuple(value: Any) -> bool:
    return issubclass(type(value), tuple) and hasattr(type(value), "_fields")  # proxies lie to isinstance


def is_dataclass(value: Any) -> bool:
    """Whether a value is an object of a dataclass, and not the class."""
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def container_type(value: Any, *, dataclasses_too: bool = False) -> ContainerType | None:
    """How to take a value apart; None for a leaf."""
    result = REGISTRY.get(type(value))
    if result is None and is_named_tuple(value):
        return NAMED_TUPLE
    return DATACLASS if result is None and dataclasses_too and is_dataclass(value) else result


def tree_map(
    function: Callable[[Any], Any], tree: Any, *, dataclasses_too: bool = False, keeps_identity: bool = False
) -> Any:
    """A tree of the same structure with `function` applied to the leaves, in order.

    `keeps_identity`: a tree of which no leaf changes is returned as it is, and not copied.
    """
    container = container_type(tree, dataclasses_too=dataclasses_too)
    if container is None:
        return function(tree)
    before = container.children(tree)
    after = [
        tree_map(function, child, dataclasses_too=dataclasses_too, keeps_identity=keeps_identity) for child in before
    ]
    return tree if keeps_identity and all(map(operator.is_, after, before)) else container.rebuild(tree, after)


def leaves(tree: Any) -> Iterator[Any]:
    """The leaves of a tree, in order; subclasses of lists are containers here too."""
    container = container_type(tree)
    if container is None and not issubclass(type(tree), list):
        yield tree
        return
    for child in tree if container is None else container.children(tree):
        yield from leaves(child)
