"""Pytrees of traced arrays and numbers for derivatives: primals, results, tangents and cotangents."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.autodiff.cotangent_accumulator import Around
from jitkernels.compiler.autodiff.reverse import NotDifferentiableError, cotangents, is_float
from jitkernels.compiler.capture.array_proxy import Traced, fresh, scalar_node, traced
from jitkernels.compiler.capture.functionalization import Storage, View
from jitkernels.compiler.capture.ints import induction_symbols
from jitkernels.compiler.capture.symint import Whole
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import value_of
from jitkernels.errors import DerivativeError, shown

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
        """The tree with traced arrays as leaves, which are recorded."""
        return mapped(value, self._leaf)

    def _leaf(self, value: Any) -> Any:
        self.found.append(_array(self.tracer, self.about, value, self.what))
        return self.found[-1]

    def tree(self, value: Tree, parts: Sequence[Node]) -> Tree:
        """The tree with these nodes as leaves, in order."""
        remaining = iter(zip(self.found, parts, strict=True))

        def leaf(_: Any) -> Any:
            like, part = next(remaining)
            made = fresh(self.tracer, part)
            made.is_scalar = like.is_scalar
            return made

        return mapped(value, leaf)


class Variables(Leaves):
    """The differentiation variables: each leaf of an argument is replaced by a fresh one."""

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
        made = Traced(self.tracer, View(storage, node.shape), is_scalar=given.is_scalar, is_weak=given.is_weak)
        self.found.append(Traced(self.tracer, View(Storage(node), node.shape), is_scalar=given.is_scalar))
        return made

    def of(self, results: Sequence[Node], weights: Sequence[Node]) -> list[Node]:
        """The derivatives by the variables. Raises DerivativeError."""
        try:
            return cotangents(results, weights, self.nodes(), around(self.tracer))
        except NotDifferentiableError as error:
            raise lacking(self.tracer, self.about, error) from None


def around(tracer: Tracer) -> Around:
    """The context in which derivatives add nodes to a trace."""
    return Around(
        tracer.scope,
        functools.partial(induction_symbols.extent_of_node, tracer),
        tracer.room,
        in_place=tracer.depth > 0,
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
    """A leaf as a traced array. Raises DerivativeError if it is not a float."""
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


def matching(tracer: Tracer, about: str, tree: Tree, like: Sequence[Traced], what: str) -> list[Node]:
    """The leaves of a tree that must match `like` in shape, cast to its dtypes. Raises DerivativeError."""
    leaves = Leaves(tracer, about, what)
    leaves.collect(tree)
    if len(leaves.found) != len(like):
        raise DerivativeError(f"{about}: {what}: expected {len(like)} arrays or numbers, got {len(leaves.found)}")
    nodes = []
    for one, other in zip(leaves.found, like, strict=True):
        if not builder.shapes_agree(one.extents, other.extents):
            raise DerivativeError(f"{about}: {what}: expected {told(other)}, got {told(one)}")
        nodes.append(builder.cast(one.node, other.node.dtype))
    return nodes


def lacking(tracer: Tracer, about: str, error: NotDifferentiableError) -> DerivativeError:
    """The error for an operation without a derivative, with its source line."""
    _, place = tracer.places.get(id(error.node), (None, ""))
    where = f", {place}" if place else ""
    return DerivativeError(f"{about} has no derivative: there is none of {error}{where}")


def told(value: Any) -> str:
    """Describe a value in an error message."""
    if type(value) is Traced:
        shape = tuple(map(value_of, value.extents))
        return f"{value.dtype} of shape {shape}"
    return f"the int {value.value}" if type(value) is Whole else shown(value)
