"""Nodes that are written with operators: the language of the rules of derivatives."""

from typing import Any

from jitkernels.graph import construct
from jitkernels.graph.ir import Node


class Term:
    """A node, or what an operation makes of it; other operands are terms or Python's numbers."""

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
    """An elementwise operation of the table by its name."""
    return Term(
        construct.elementwise(name, *(one.node if isinstance(one, Term) else one for one in operands))
    )


def number(value: float, like: Term) -> Term:
    """A number of a term's dtype, where no other operand would say which."""
    return Term(construct.constant(value, like.node.dtype))
