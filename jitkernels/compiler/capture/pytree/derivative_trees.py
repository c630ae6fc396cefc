"""Pytrees of traced arrays and numbers for derivatives: primals, results, tangents and cotangents."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.autodiff.cotangent_accumulator import DerivativeContext
from jitkernels.compiler.autodiff.loop_vjp import is_float
from jitkernels.compiler.autodiff.reverse import NotDifferentiableError, cotangents
from jitkernels.compiler.capture.array_proxy import Traced, fresh, scalar_node, traced
from jitkernels.compiler.capture.functionalization import Storage, View
from jitkernels.compiler.capture.ints import induction_symbols
from jitkernels.compiler.capture.symint import SymInt
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder, pytree
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import value_of
from jitkernels.compiler.transforms.complex_planes import conjugates, joined, planes_of, split_between
from jitkernels.errors import DerivativeError, shown

Tree = Any
"""Arrays and numbers, alone or in lists, tuples, dicts and dataclasses."""


class Leaves:
    """Arrays and numbers of a tree, in order. `about`, `what`: function and argument in messages."""

    def __init__(self, tracer: Tracer, about: str, what: str) -> None:
        self.tracer, self.about, self.what = tracer, about, what
        self.arrays: list[Traced] = []

    def nodes(self) -> list[Node]:
        return [array.node for array in self.arrays]

    def collect(self, value: Tree) -> Tree:
        """The tree with traced arrays as leaves, which are recorded."""
        return _mapped(self._leaf, value)

    def _leaf(self, value: Any) -> Any:
        self.arrays.append(_array(self.tracer, self.about, value, self.what))
        return self.arrays[-1]

    def tree(self, value: Tree, nodes: Sequence[Node]) -> Tree:
        """The tree with these nodes as leaves, in order."""
        remaining = iter(zip(self.arrays, nodes, strict=True))

        def leaf(_: Any) -> Any:
            like, node = next(remaining)
            array = fresh(self.tracer, node)
            array.is_scalar = like.is_scalar
            return array

        return _mapped(leaf, value)


class Variables(Leaves):
    """The differentiation variables: each leaf of an argument is replaced by a fresh one."""

    def __init__(self, tracer: Tracer, about: str) -> None:
        super().__init__(tracer, about, "")

    def replaced(self, value: Tree, what: str) -> Tree:
        """The argument with variables for its leaves."""
        self.what = what
        return self.collect(value)

    def _leaf(self, value: Any) -> Any:
        argument = _array(self.tracer, self.about, value, self.what)
        node = Node("positive", (argument.node,), argument.node.dtype, argument.node.shape)
        self.arrays.append(Traced(self.tracer, View(Storage(node), node.shape), is_scalar=argument.is_scalar))
        view = View(Storage(node), node.shape)
        return Traced(self.tracer, view, is_scalar=argument.is_scalar, is_weak=argument.is_weak)

    def of(self, results: Sequence[Node], weights: Sequence[Node]) -> list[Node]:
        """The derivatives by the variables. Raises DerivativeError.

        Those by complex numbers follow JAX: ``df/dx - 1j * df/dy`` of a real f, the derivative of a holomorphic one.
        """
        planes, outputs = split_between(self.nodes(), results)
        try:
            parts = cotangents(outputs, planes_of(conjugates(weights)), planes, derivative_context(self.tracer))
            return conjugates(joined(parts, self.nodes()))
        except NotDifferentiableError as error:
            raise missing_derivative_error(self.tracer, self.about, error) from None


def derivative_context(tracer: Tracer) -> DerivativeContext:
    """The context in which derivatives add nodes to a trace."""
    extent_of = functools.partial(induction_symbols.extent_of_node, tracer)
    return DerivativeContext(tracer.scope, extent_of, tracer.room, in_place=tracer.depth > 0)


def _mapped(leaf: Callable[[Any], Any], tree: Tree) -> Tree:
    """The tree with other leaves; None stays."""
    return pytree.tree_map(lambda value: None if value is None else leaf(value), tree, dataclasses_too=True)


def _array(tracer: Tracer, about: str, value: Any, what: str) -> Traced:
    """A leaf as a traced array. Raises DerivativeError if it is not a float."""
    if type(value) is float:
        number = fresh(tracer, scalar_node(np.float64(value)), is_scalar=True)
        number.is_weak = True
        return number
    if type(value) is complex:
        number = fresh(tracer, scalar_node(np.complex128(value)), is_scalar=True)
        number.is_weak = True
        return number
    if isinstance(value, np.ndarray | np.inexact) or type(value) is Traced:
        array = traced(tracer, value)
        if is_float(array.node):
            return array
    raise DerivativeError(f"{about}: {what}: expected floats, in arrays or numbers, got {describe_value(value)}")


def matching_nodes(tracer: Tracer, about: str, tree: Tree, like: Sequence[Traced], what: str) -> list[Node]:
    """The leaves of a tree that must match `like` in shape, cast to its dtypes. Raises DerivativeError."""
    leaves = Leaves(tracer, about, what)
    leaves.collect(tree)
    if len(leaves.arrays) != len(like):
        raise DerivativeError(f"{about}: {what}: expected {len(like)} arrays or numbers, got {len(leaves.arrays)}")
    nodes = []
    for array, other in zip(leaves.arrays, like, strict=True):
        if not builder.shapes_agree(array.extents, other.extents):
            raise DerivativeError(f"{about}: {what}: expected {describe_value(other)}, got {describe_value(array)}")
        nodes.append(builder.cast(array.node, other.node.dtype))
    return nodes


def missing_derivative_error(tracer: Tracer, about: str, error: NotDifferentiableError) -> DerivativeError:
    """The error for an operation without a derivative, with its source line."""
    location = tracer.places.get(error.node, "")
    where = f", {location}" if location else ""
    return DerivativeError(f"{about} has no derivative: there is none of {error}{where}")


def describe_value(value: Any) -> str:
    """Describe a value in an error message."""
    if type(value) is Traced:
        shape = tuple(map(value_of, value.extents))
        return f"{value.dtype} of shape {shape}"
    if isinstance(value, tuple | list | dict) or dataclasses.is_dataclass(
        value
    ):  # their text is that of what is in them
        return f"an object of type {type(value).__name__}"
    return f"the int {value.value}" if type(value) is SymInt else shown(value)
