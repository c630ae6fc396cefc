"""Trees of arrays and numbers in a trace: what derivatives are by and of, and what weighs them."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitkernels.errors import DerivativeError, shown
from jitkernels.frontends.flow import moving
from jitkernels.frontends.storage import Storage, View
from jitkernels.frontends.traced import Traced, fresh, scalar_node, traced
from jitkernels.frontends.tracer import Tracer
from jitkernels.frontends.whole import Whole
from jitkernels.graph import construct
from jitkernels.graph.backward import LackingError, cotangents, is_float
from jitkernels.graph.extents import value_of
from jitkernels.graph.ir import Node
from jitkernels.graph.totals import Around

Tree = Any
"""Arrays and numbers, alone or in lists, tuples, dicts and dataclasses."""


class Leaves:
    """Arrays and numbers of a tree, in order. `about`, `what`: function and argument in messages."""

    def __init__(self, tracer: Tracer, about: str, what: str) -> None:
        self.tracer, self.about, self.what = tracer, about, what
        self.found: list[Traced] = []

    def nodes(self) -> list[Node]:
        return [one.node for one in self.found]

    def collect(self, value: Tree) -> Tree:
        """The tree with arrays of the trace for its leaves, which are remembered."""
        return mapped(value, self._leaf)

    def _leaf(self, value: Any) -> Any:
        self.found.append(_array(self.tracer, self.about, value, self.what))
        return self.found[-1]

    def tree(self, value: Tree, parts: Sequence[Node]) -> Tree:
        """The tree of these nodes, each like the leaf in its place."""
        remaining = iter(zip(self.found, parts, strict=True))

        def leaf(_: Any) -> Any:
            like, part = next(remaining)
            made = fresh(self.tracer, part)
            made.is_scalar = like.is_scalar
            return made

        return mapped(value, leaf)


class Variables(Leaves):
    """What a function is differentiated by: each leaf of an argument is replaced by a variable."""

    def __init__(self, tracer: Tracer, about: str) -> None:
        super().__init__(tracer, about, "")

    def replaced(self, value: Tree, what: str) -> Tree:
        """The argument with variables for its leaves."""
        self.what = what
        return self.collect(value)

    def _leaf(self, value: Any) -> Any:
        given = _array(self.tracer, self.about, value, self.what)
        node = Node("positive", (given.node,), given.node.dtype, given.node.shape)
        storage = Storage(node)
        made = Traced(
            self.tracer, View(storage, node.shape), is_scalar=given.is_scalar, is_weak=given.is_weak
        )
        self.found.append(Traced(self.tracer, View(Storage(node), node.shape), is_scalar=given.is_scalar))
        return made

    def of(self, results: Sequence[Node], weights: Sequence[Node]) -> list[Node]:
        """The derivatives by the variables. Raises DerivativeError."""
        try:
            return cotangents(results, weights, self.nodes(), around(self.tracer))
        except LackingError as error:
            raise lacking(self.tracer, self.about, error) from None


def around(tracer: Tracer) -> Around:
    """Where derivatives of a trace are made."""
    return Around(
        tracer.scope, functools.partial(moving.known, tracer), tracer.room, in_place=tracer.depth > 0
    )


def mapped(value: Tree, leaf: Callable[[Any], Any]) -> Tree:
    """A tree of the same kind with other leaves."""
    if type(value) is Traced or type(value) is Whole:
        return leaf(value)
    if value is None:
        return None
    if type(value) in (list, tuple):
        return type(value)(mapped(one, leaf) for one in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(one, leaf) for one in value))
    if type(value) is dict:
        return {name: mapped(one, leaf) for name, one in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        made = object.__new__(type(value))
        for field in dataclasses.fields(value):
            object.__setattr__(made, field.name, mapped(getattr(value, field.name), leaf))
        return made
    return leaf(value)


def _array(tracer: Tracer, about: str, value: Any, what: str) -> Traced:
    """A leaf as an array of the trace. Raises DerivativeError for one that no derivative is of."""
    if type(value) is float:
        return fresh_number(tracer, value)
    if isinstance(value, np.ndarray | np.floating) or type(value) is Traced:
        found = traced(tracer, value)
        if is_float(found.node):
            return found
    raise DerivativeError(f"{about}: {what}: expected floats, in arrays or numbers, got {told(value)}")


def fresh_number(tracer: Tracer, value: float) -> Traced:
    """A Python float."""
    made = fresh(tracer, scalar_node(np.float64(value)), is_scalar=True)
    made.is_weak = True
    return made


def matching(tracer: Tracer, about: str, given: Tree, like: Sequence[Traced], what: str) -> list[Node]:
    """The leaves of what has to be like others, as nodes of their dtypes."""
    leaves = Leaves(tracer, about, what)
    leaves.collect(given)
    if len(leaves.found) != len(like):
        raise DerivativeError(
            f"{about}: {what}: expected {len(like)} arrays or numbers, got {len(leaves.found)}"
        )
    found = []
    for one, other in zip(leaves.found, like, strict=True):
        if not construct.shapes_agree(one.extents, other.extents):
            raise DerivativeError(f"{about}: {what}: expected {told(other)}, got {told(one)}")
        found.append(construct.cast(one.node, other.node.dtype))
    return found


def lacking(tracer: Tracer, about: str, error: LackingError) -> DerivativeError:
    """The error that says which operation, at which line, has no derivative."""
    _, place = tracer.places.get(id(error.node), (None, ""))
    where = f", {place}" if place else ""
    return DerivativeError(f"{about} has no derivative: there is none of {error}{where}")


def told(value: Any) -> str:
    """A value in words."""
    if type(value) is Traced:
        shape = tuple(map(value_of, value.extents))
        return f"{value.dtype} of shape {shape}"
    return f"the int {value.value}" if type(value) is Whole else shown(value)
