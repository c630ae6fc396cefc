"""Vector-Jacobian products of matrix decompositions and solves that NumPy computes.

Rules are matrix products and calls of the same functions, which have these rules themselves. Of symmetric matrices
NumPy reads one triangle: the cotangent goes to that triangle.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.autodiff.unbroadcast import sum_to_shape
from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import UnsupportedError, elementwise
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.matrix_ops import matmul, matrix_transpose
from jitkernels.compiler.ir.numpy_call_spec import ArrayPlaceholder, Called

ResultCotangents = Mapping[int, Node]
"""The cotangents of some results of a call, by their indices."""
Rule = Callable[..., dict[str, Node]]
"""The cotangent of each argument by its name, from the node, the cotangents of its results, and the arguments."""


def call_cotangents(node: Node, result_cotangents: ResultCotangents) -> Sequence[Node | None]:
    """The cotangents of the inputs of a call. Raises UnsupportedError for a function without a rule."""
    if "vjp" in node.options:  # of a kernel whose rule is one of the trace
        parts_of_kernel: Sequence[Node | None] = node.options["vjp"](node, result_cotangents)
        return parts_of_kernel
    function = node.options["function"]
    rule = RULES.get(getattr(function, "function", None))
    if rule is None or not isinstance(function, Called):
        name = node.options.get("name") or getattr(function, "__name__", "function")
        raise UnsupportedError(f"{'jk' if node.operation == 'kernel' else 'numpy'}.{name}")
    arguments = function.parameters()
    operands = {
        name: node.inputs[operand.number] if type(operand) is ArrayPlaceholder else operand
        for name, operand in arguments.items()
    }
    parts: list[Node | None] = [None] * len(node.inputs)
    for name, part in rule(node, result_cotangents, **operands).items():
        operand = operands[name]
        parts[arguments[name].number] = builder.cast(sum_to_shape(part, operand.shape), operand.dtype)
    return parts


def numpy_call(function: Any, dtype: str, shape: Sequence[Any], *inputs: Node, **keywords: Any) -> Node:
    """A call of one of NumPy's matrix functions as a node."""
    holes = tuple(map(ArrayPlaceholder, range(len(inputs))))
    options = {"function": Called(function, holes, keywords, ["array"] * len(inputs))}
    return Node("call", [builder.cast(node, dtype) for node in inputs], dtype, shape, options)


def _inverse(node: Node, result_cotangents: ResultCotangents, a: Node) -> dict[str, Node]:
    back = matrix_transpose(node)
    return {"a": elementwise("negative", matmul(matmul(back, result_cotangents[0]), back))}


def _determinant(node: Node, result_cotangents: ResultCotangents, a: Node) -> dict[str, Node]:
    return {
        "a": _scale_matrices(elementwise("multiply", result_cotangents[0], node), _inverse_transposed(a, node.dtype))
    }


def _log_determinant(node: Node, result_cotangents: ResultCotangents, a: Node) -> dict[str, Node]:
    return (
        {"a": _scale_matrices(result_cotangents[1], _inverse_transposed(a, node.dtype))}
        if 1 in result_cotangents
        else {}
    )


def _inverse_transposed(a: Node, dtype: str) -> Node:
    return matrix_transpose(numpy_call(np.linalg.inv, dtype, a.shape, a))


def _scale_matrices(numbers: Node, matrices: Node) -> Node:
    return elementwise("multiply", builder.expand_dims(numbers, (-2, -1)), matrices)


def _solution(node: Node, result_cotangents: ResultCotangents, a: Node, b: Node) -> dict[str, Node]:
    is_vector = b.ndim == 1  # one right-hand side for each of several matrices
    cotangent, solution = (
        builder.expand_dims(value, (-1,)) if is_vector else value for value in (result_cotangents[0], node)
    )
    to_right = numpy_call(np.linalg.solve, node.dtype, cotangent.shape, matrix_transpose(a), cotangent)
    to_left = elementwise("negative", matmul(to_right, matrix_transpose(solution)))
    return {"a": to_left, "b": builder.squeeze(to_right, (-1,)) if is_vector else to_right}


def _cholesky(node: Node, result_cotangents: ResultCotangents, a: Node, upper: bool = False) -> dict[str, Node]:
    """The cotangent through the Cholesky factor (Murray, arXiv:1602.07527)."""
    factor, cotangent = (matrix_transpose(value) if upper else value for value in (node, result_cotangents[0]))
    inner = _triangle(matmul(matrix_transpose(factor), cotangent), lambda value: elementwise("multiply", value, 0.5))
    inverse = numpy_call(np.linalg.inv, node.dtype, node.shape, factor)
    cotangent_of_a = _to_lower_triangle(matmul(matmul(matrix_transpose(inverse), inner), inverse))
    return {"a": matrix_transpose(cotangent_of_a) if upper else cotangent_of_a}


def _eigenvalues(
    node: Node,
    result_cotangents: ResultCotangents,
    a: Node,
    UPLO: str = "L",  # noqa: N803
) -> dict[str, Node]:
    decomposition = numpy_call(np.linalg.eigh, node.dtype, a.shape, a, UPLO=UPLO)
    return _eigenvectors(decomposition, result_cotangents, a, UPLO)


def _eigenvectors(
    node: Node,
    result_cotangents: ResultCotangents,
    a: Node,
    UPLO: str = "L",  # noqa: N803
) -> dict[str, Node]:
    """Through eigenvectors: there is no derivative for equal eigenvalues, the result then has infinities and NaN."""
    values = Node("item", (node,), node.dtype, a.shape[:-1], {"index": 0})
    vectors = Node("item", (node,), node.dtype, a.shape, {"index": 1})
    parts: list[Node] = []
    if 1 in result_cotangents:
        gaps = elementwise("subtract", *(builder.expand_dims(values, (i,)) for i in (-2, -1)))
        rows, columns = _row_and_column_indices(gaps)
        own = elementwise("equal", rows, columns)
        part = elementwise(
            "divide", matmul(matrix_transpose(vectors), result_cotangents[1]), elementwise("where", own, 1.0, gaps)
        )
        parts.append(elementwise("where", own, 0.0, part))
    if 0 in result_cotangents:
        spread = builder.expand_dims(result_cotangents[0], (-2,))
        parts.append(elementwise("where", elementwise("equal", *_row_and_column_indices(vectors)), spread, 0.0))
    inner = parts[0] if len(parts) == 1 else elementwise("add", *parts)
    cotangent_of_a = _to_lower_triangle(matmul(matmul(vectors, inner), matrix_transpose(vectors)))
    return {"a": matrix_transpose(cotangent_of_a) if UPLO.upper() == "U" else cotangent_of_a}


def _row_and_column_indices(node: Node) -> tuple[Node, Node]:
    """The row and column index of each element of a matrix."""
    shape = node.shape[-2:]
    rows, columns = (Node("iota", (), "int64", shape, {"axis": i}) for i in (0, 1))
    return rows, columns


def _triangle(node: Node, diagonal: Callable[[Node], Node]) -> Node:
    """The lower triangle, with `diagonal` applied to the diagonal and zeros above."""
    rows, columns = _row_and_column_indices(node)
    rest = elementwise("where", elementwise("equal", rows, columns), diagonal(node), 0.0)
    return elementwise("where", elementwise("greater", rows, columns), node, rest)


def _to_lower_triangle(node: Node) -> Node:
    """The cotangent of a symmetric matrix, folded to its lower triangle."""
    return _triangle(elementwise("add", node, matrix_transpose(node)), lambda _: node)


RULES: dict[Any, Rule] = {
    np.linalg.inv: _inverse, np.linalg.det: _determinant, np.linalg.slogdet: _log_determinant,
    np.linalg.solve: _solution, np.linalg.cholesky: _cholesky, np.linalg.eigvalsh: _eigenvalues,
    np.linalg.eigh: _eigenvectors,
}  # fmt: skip
