"""Operator overloading for nodes: the notation in which derivative rules are written."""

from typing import Any

from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.graph import Node


class Term:
    """A node with arithmetic operators; the other operand is a Term or a Python number."""

    __slots__ = ("node",)

    def __init__(self, node: Node) -> None:
        self.node = node

    def __add__(self, other: Any) -> "Term":
        return apply("add", self, other)

    def __sub__(self, other: Any) -> "Term":
        return apply("subtract", self, other)

    def __mul__(self, other: Any) -> "Term":
        return apply("multiply", self, other)

    def __truediv__(self, other: Any) -> "Term":
        return apply("divide", self, other)

    def __radd__(self, other: Any) -> "Term":
        return apply("add", other, self)

    def __rsub__(self, other: Any) -> "Term":
        return apply("subtract", other, self)

    def __rmul__(self, other: Any) -> "Term":
        return apply("multiply", other, self)

    def __rtruediv__(self, other: Any) -> "Term":
        return apply("divide", other, self)

    def __neg__(self) -> "Term":
        return apply("negative", self)


def apply(name: str, *operands: Any) -> Term:
    """An elementwise operation by its name."""
    nodes = (operand.node if isinstance(operand, Term) else operand for operand in operands)
    return Term(builder.elementwise(name, *nodes))


def number(value: float, like: Term) -> Term:
    """A constant with the dtype of a term, where no other operand determines it."""
    return Term(builder.constant(value, like.node.dtype))
