"""What becomes of the cotangents of decompositions and solutions that NumPy computes.

Rules are products of matrices and calls of the same functions, which have these rules themselves. Of symmetric
matrices NumPy reads one triangle: what flows, flows to that.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitkernels.graph import construct
from jitkernels.graph.calling import Called, Hole
from jitkernels.graph.construct import UnknownError, elementwise
from jitkernels.graph.ir import Node
from jitkernels.graph.matrices import product, turned
from jitkernels.graph.summing import summed_to

Given = Mapping[int, Node]
"""The cotangents of some of the results of a call."""
Rule = Callable[..., dict[str, Node]]
"""What flows to each argument, from the node, what is given for its results, and the arguments."""


def of_call(node: Node, given: Given) -> Sequence[Node | None]:
    """What flows to each input of a call. Raises UnknownError where there is no rule."""
    function = node.options["function"]
    rule = RULES.get(getattr(function, "function", None))
    if rule is None or not isinstance(function, Called):
        name = node.options.get("name") or getattr(function, "__name__", "function")
        raise UnknownError(f"{'jk' if node.operation == 'kernel' else 'numpy'}.{name}")
    arguments = function.parameters()
    operands = {
        name: node.inputs[one.number] if type(one) is Hole else one for name, one in arguments.items()
    }
    parts: list[Node | None] = [None] * len(node.inputs)
    for name, part in rule(node, given, **operands).items():
        one = operands[name]
        parts[arguments[name].number] = construct.cast(summed_to(part, one.shape), one.dtype)
    return parts


def called(function: Any, dtype: str, shape: Sequence[Any], *inputs: Node, **keywords: Any) -> Node:
    """One of NumPy's functions of matrices."""
    holes = tuple(map(Hole, range(len(inputs))))
    options = {"function": Called(function, holes, keywords, ["array"] * len(inputs))}
    return Node("call", [construct.cast(one, dtype) for one in inputs], dtype, shape, options)


def _inverse(node: Node, given: Given, a: Node) -> dict[str, Node]:
    back = turned(node)
    return {"a": elementwise("negative", product(product(back, given[0]), back))}


def _determinant(node: Node, given: Given, a: Node) -> dict[str, Node]:
    return {"a": _times(elementwise("multiply", given[0], node), _inverse_turned(a, node.dtype))}


def _log_determinant(node: Node, given: Given, a: Node) -> dict[str, Node]:
    return {"a": _times(given[1], _inverse_turned(a, node.dtype))} if 1 in given else {}


def _inverse_turned(a: Node, dtype: str) -> Node:
    return turned(called(np.linalg.inv, dtype, a.shape, a))


def _times(numbers: Node, matrices: Node) -> Node:
    return elementwise("multiply", construct.expand_dims(numbers, (-2, -1)), matrices)


def _solution(node: Node, given: Given, a: Node, b: Node) -> dict[str, Node]:
    is_vector = b.ndim == 1  # one, which several matrices may be for
    cotangent, found = (construct.expand_dims(one, (-1,)) if is_vector else one for one in (given[0], node))
    to_right = called(np.linalg.solve, node.dtype, cotangent.shape, turned(a), cotangent)
    to_left = elementwise("negative", product(to_right, turned(found)))
    return {"a": to_left, "b": construct.squeeze(to_right, (-1,)) if is_vector else to_right}


def _cholesky(node: Node, given: Given, a: Node, upper: bool = False) -> dict[str, Node]:
    """From the half of a triangle of what the factor's own change would be (Murray, arXiv:1602.07527)."""
    factor, cotangent = (turned(one) if upper else one for one in (node, given[0]))
    inner = _triangle(product(turned(factor), cotangent), lambda one: elementwise("multiply", one, 0.5))
    inverse = called(np.linalg.inv, node.dtype, node.shape, factor)
    found = _of_symmetric(product(product(turned(inverse), inner), inverse))
    return {"a": turned(found) if upper else found}


def _eigenvalues(node: Node, given: Given, a: Node, UPLO: str = "L") -> dict[str, Node]:  # noqa: N803
    whole = called(np.linalg.eigh, node.dtype, a.shape, a, UPLO=UPLO)
    return _eigenvectors(whole, given, a, UPLO)


def _eigenvectors(node: Node, given: Given, a: Node, UPLO: str = "L") -> dict[str, Node]:  # noqa: N803
    """Of vectors of eigenvalues that are equal there is no derivative: infinities and NaN tell."""
    values = Node("item", (node,), node.dtype, a.shape[:-1], {"index": 0})
    vectors = Node("item", (node,), node.dtype, a.shape, {"index": 1})
    parts: list[Node] = []
    if 1 in given:
        gaps = elementwise("subtract", *(construct.expand_dims(values, (i,)) for i in (-2, -1)))
        rows, columns = _places(gaps)
        own = elementwise("equal", rows, columns)
        part = elementwise("divide", product(turned(vectors), given[1]), elementwise("where", own, 1.0, gaps))
        parts.append(elementwise("where", own, 0.0, part))
    if 0 in given:
        spread = construct.expand_dims(given[0], (-2,))
        parts.append(elementwise("where", elementwise("equal", *_places(vectors)), spread, 0.0))
    inner = parts[0] if len(parts) == 1 else elementwise("add", *parts)
    found = _of_symmetric(product(product(vectors, inner), turned(vectors)))
    return {"a": turned(found) if UPLO.upper() == "U" else found}


def _places(node: Node) -> tuple[Node, Node]:
    """The numbers of rows and of columns."""
    shape = node.shape[-2:]
    rows, columns = (Node("iota", (), "int64", shape, {"axis": i}) for i in (0, 1))
    return rows, columns


def _triangle(node: Node, diagonal: Callable[[Node], Node]) -> Node:
    """What is below the diagonal, and what is made of that."""
    rows, columns = _places(node)
    rest = elementwise("where", elementwise("equal", rows, columns), diagonal(node), 0.0)
    return elementwise("where", elementwise("greater", rows, columns), node, rest)


def _of_symmetric(node: Node) -> Node:
    """To the lower triangle alone, what would flow to both."""
    return _triangle(elementwise("add", node, turned(node)), lambda _: node)


RULES: dict[Any, Rule] = {
    np.linalg.inv: _inverse, np.linalg.det: _determinant, np.linalg.slogdet: _log_determinant,
    np.linalg.solve: _solution, np.linalg.cholesky: _cholesky, np.linalg.eigvalsh: _eigenvalues,
    np.linalg.eigh: _eigenvectors,
}  # fmt: skip
