"""Tensor contractions of traced arrays: lowered to `numpy.matmul`, or to products and sums."""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.compiler.capture.array_proxy import Traced, fresh, traced
from jitkernels.compiler.capture.numpy.concatenate import common_type
from jitkernels.compiler.capture.numpy.reductions import (
    ReductionOptions,
    axes_of,
    dtype_name,
    is_given,
    reduced,
    tracer_of,
)
from jitkernels.compiler.capture.numpy.shape_ops import moveaxis, of_array, ravel
from jitkernels.compiler.capture.numpy.ufuncs import apply, operand, stored
from jitkernels.compiler.capture.override_registry import METHODS, overrides
from jitkernels.compiler.capture.static_arrays import Frozen
from jitkernels.compiler.capture.trace_context import MIN_UNCOPIED_BYTES, Tracer
from jitkernels.compiler.ir import builder, matrix_ops, symbolic_dims
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.graph import Node
from jitkernels.microkernels.prepacked.panels import panel_width
from jitkernels.selection.select import choose_for_class

PACKED_TYPES = ("float32", "float64")
"""The types of static matrices that are packed."""
MIN_PACKED_ELEMENTS = 1 << 12
"""Least elements of a static matrix that is packed: smaller ones are in the first-level cache as they are."""


def multiplied(left: Traced, right: Traced, dtype: str) -> Node:
    """``numpy.matmul`` in one dtype; vectors become rows and columns."""
    if not left.ndim or not right.ndim:
        raise ValueError("matmul: Input operand does not have enough dimensions (has 0, requires 1)")
    a, b = builder.cast(left.node, dtype), builder.cast(right.node, dtype)
    if left.ndim == 1:
        a = builder.expand_dims(a, (0,))
    if right.ndim == 1:
        b = builder.expand_dims(b, (1,))
    if a.shape[-1] != b.shape[-2]:
        raise ValueError("matmul: Input operand 1 has a mismatch in its core dimension 0")
    node = matrix_ops.matmul(a, b)
    removed = [*([node.ndim - 2] if left.ndim == 1 else []), *([node.ndim - 1] if right.ndim == 1 else [])]
    return builder.squeeze(node, removed) if removed else node


def multiplied_by_panels(left: Traced, right: Any, dtype: str) -> Node | None:
    """The product with a static matrix, packed while tracing; None where it is small, or others compute products."""
    tracer = tracer_of()
    if type(right) is not Frozen or right.ndim != 2 or left.ndim < 2 or tracer.depth or tracer.differentiates:
        return None
    if dtype not in PACKED_TYPES or right.dtype.name != dtype or left.dtype.name != dtype:
        return None
    if right.size < MIN_PACKED_ELEMENTS or right.shape[1] < panel_width(dtype) or left.extents[-1] != right.shape[0]:
        return None
    if all(symbolic_dims.same(extent, 1) for extent in left.node.shape[:-1]) and right.nbytes >= MIN_UNCOPIED_BYTES:
        return None  # one row reads each element once, in place as fast as in panels
    rows = symbolic_dims.value_of(symbolic_dims.product(left.node.shape[:-1]))
    attr = MatMulAttr(m=rows, n=right.shape[1], k=right.shape[0], dtype=dtype)
    if choose_for_class(attr, in_code=True).implementation.name != "gen":
        return None
    return matrix_ops.matmul_of_panels(left.node, tracer.panels(right), right.shape[1])


def product_type(*operands: Traced) -> str:
    """The accumulator dtype of a contraction."""
    return common_type(tracer_of(), [operand(tracer_of(), array) for array in operands])


@overrides(np.matmul)
def matmul(
    x1: Any, x2: Any, /, out: Any = None, *, dtype: Any = None, casting: str = "same_kind", **others: Any
) -> Any:
    if any(name not in ("order", "subok") for name in others):
        raise UnsupportedError(f"matmul with {', '.join(others)}")
    tracer = tracer_of()
    left = traced(tracer, x1)
    name = dtype_name(dtype) if is_given(dtype) else common_type(tracer, [operand(tracer, one) for one in (left, x2)])
    node = multiplied_by_panels(left, x2, name) or multiplied(left, traced(tracer, x2), name)
    target = out[0] if isinstance(out, tuple) else out
    return stored(tracer, node, target, casting=casting) if target is not None else fresh(tracer, node, is_scalar=True)


@overrides(np.vecdot)
def vecdot(x1: Any, x2: Any, /, out: Any = None, *, axis: Any = -1, **others: Any) -> Any:
    if others or type(axis) is not int:
        raise UnsupportedError("vecdot with options")
    tracer = tracer_of()
    left, right = moveaxis(of_array(x1), axis, -1), moveaxis(of_array(x2), axis, -1)
    if not left.extents[-1] == right.extents[-1]:
        raise UnsupportedError("vecdot of vectors of different sizes")  # NumPy raises
    result = reduced("sum", np.conjugate(left) * right, ReductionOptions(-1, product_type(left, right)))
    return stored(tracer, result.node, out[0] if isinstance(out, tuple) else out) if out is not None else result


@overrides(np.dot)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    tracer = tracer_of()
    left, right = traced(tracer, a), traced(tracer, b)
    if not left.ndim or not right.ndim:
        return np.multiply(left, right, out=out)
    name = product_type(left, right)
    if right.ndim <= 2 and left.ndim <= 2:
        node = multiplied(left, right, name)
    else:
        result = tensordot(left, right, ((left.ndim - 1,), (max(right.ndim - 2, 0),)))
        node = result.node
    if out is not None:
        if out.dtype.name != name:
            raise ValueError(
                "output array is not acceptable (must have the right datatype, number of dimensions, and be a C-Array)"
            )
        return stored(tracer, node, out)
    return fresh(tracer, node, is_scalar=True)


METHODS["dot"] = dot


@overrides(np.inner)
def inner(a: Any, b: Any, /) -> Any:
    left, right = of_array(a), of_array(b)
    if not left.ndim or not right.ndim:
        return left * right
    if left.ndim == right.ndim == 1:
        return dot(left, right)  # a number, where tensordot makes an array
    return tensordot(left, right, ((left.ndim - 1,), (right.ndim - 1,)))


@overrides(np.vdot)
def vdot(a: Any, b: Any, /) -> Any:
    left = of_array(ravel(a))
    return dot(np.conjugate(left) if left.dtype.kind == "c" else left, ravel(b))


@overrides(np.outer)
def outer(a: Any, b: Any, out: Any = None) -> Any:
    left, right = ravel(of_array(a)), ravel(of_array(b))
    column = fresh(left.tracer, builder.expand_dims(left.node, (1,)))
    return np.multiply(column, fresh(left.tracer, builder.expand_dims(right.node, (0,))), out=out)


@overrides(np.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    tracer = tracer_of()
    left, right = traced(tracer, a), traced(tracer, b)
    if isinstance(axes, tuple | list):
        left_axes, right_axes = axes
        over = axes_of(left_axes, left.ndim), axes_of(right_axes, right.ndim)
    else:
        count = operator.index(axes)
        over = tuple(range(left.ndim - count, left.ndim)), tuple(range(count))
    if len(over[0]) != len(over[1]) or any(left.extents[i] != right.extents[j] for i, j in zip(*over, strict=True)):
        raise ValueError("shape-mismatch for sum")
    name = product_type(left, right)
    rows = [i for i in range(left.ndim) if i not in over[0]]
    columns = [i for i in range(right.ndim) if i not in over[1]]
    shared = symbolic_dims.product(left.extents[i] for i in over[0])
    first = builder.reshape(
        builder.transpose(left.node, (*rows, *over[0])), (symbolic_dims.product(left.extents[i] for i in rows), shared)
    )
    second = builder.reshape(
        builder.transpose(right.node, (*over[1], *columns)),
        (shared, symbolic_dims.product(right.extents[i] for i in columns)),
    )
    node = multiplied(fresh(tracer, first), fresh(tracer, second), name)
    shape = [*(left.extents[i] for i in rows), *(right.extents[i] for i in columns)]
    return fresh(tracer, builder.reshape(node, shape))


@overrides(np.trace, methods="trace")
def trace(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None, out: Any = None) -> Any:
    return np.sum(np.diagonal(of_array(a), offset, axis1, axis2), axis=-1, dtype=dtype, out=out)


@overrides(np.einsum)
def einsum(*operands: Any, out: Any = None, optimize: Any = False, **others: Any) -> Any:
    if others or not isinstance(operands[0], str):
        raise UnsupportedError("einsum with lists of axes or options")
    tracer = tracer_of()
    arrays = [traced(tracer, operand) for operand in operands[1:]]
    terms, result = _parsed(operands[0], arrays)
    name = product_type(*arrays)
    nodes = [builder.cast(array.node, name) for array in arrays]
    current = [_take_diagonals(node, term) for node, term in zip(nodes, terms, strict=True)]
    while len(current) > 1:
        (left, first), (right, second), *rest = current
        needed = set(result).union(*(term for _, term in rest)) if rest else set(result)
        current = [_contract_pair(tracer, left, first, right, second, needed), *rest]
    node, term = current[0]
    removed = [i for i, letter in enumerate(term) if letter not in result]
    if removed:
        node = builder.reduce("sum", node, removed) if name != "bool" else builder.reduce("any", node, removed)
        term = "".join(letter for letter in term if letter in result)
    if sorted(term) != sorted(result):
        raise ValueError("einstein sum subscripts string included output subscript which never appeared in an input")
    node = builder.transpose(node, [term.index(letter) for letter in result])
    if out is not None:
        return stored(tracer, node, out)
    if len(arrays) == 1 and node.operation in ("view", "input"):
        raise UnsupportedError("einsum whose result is a view")
    return fresh(tracer, node, is_scalar=True, is_c=node.ndim < 2 or None)


def _parsed(text: str, arrays: Sequence[Traced]) -> tuple[list[str], str]:
    """The subscripts of each operand and of the result; an ellipsis gets subscripts of its own."""
    text = text.replace(" ", "")
    subscripts, arrow, result = text.partition("->")
    terms = subscripts.split(",")
    if len(terms) != len(arrays):
        raise ValueError("more operands provided to einstein sum function than specified in the subscripts string")
    spare = [chr(code) for code in range(0x100, 0x180)]
    dots = 0
    for i, (term, array) in enumerate(zip(terms, arrays, strict=True)):
        if "..." in term:
            more = array.ndim - (len(term) - 3)
            dots = max(dots, more)
            terms[i] = term.replace("...", "".join(spare[64 - more : 64]))
        if len(terms[i]) != array.ndim:
            raise ValueError("einstein sum subscripts string has the wrong number of subscripts for an operand")
    shared = "".join(spare[64 - dots : 64])
    if not arrow:
        letters = "".join(terms)
        result = shared + "".join(
            sorted(letter for letter in set(letters) if letters.count(letter) == 1 and letter not in shared)
        )
    else:
        result = result.replace("...", shared)
        if len(set(result)) != len(result):
            raise ValueError("einstein sum subscripts string includes output subscript multiple times")
    return terms, result


def _take_diagonals(node: Node, term: str) -> tuple[Node, str]:
    """Diagonals, where a subscript occurs twice."""
    if len(set(term)) == len(term):
        return node, term
    unique = "".join(dict.fromkeys(term))
    shape = [node.shape[term.index(letter)] for letter in unique]
    for i, letter in enumerate(term):
        if node.shape[i] != shape[unique.index(letter)]:
            raise ValueError("dimensions in single operand for collapsing index don't match")
    index_map = tuple((0, ((unique.index(letter), 1),)) for letter in term)
    return builder.view(node, index_map, shape), unique


def _contract_pair(
    tracer: Tracer, left: Node, first: str, right: Node, second: str, needed: set[str]
) -> tuple[Node, str]:
    """The contraction of two operands: subscripts of both that nothing else needs are summed."""
    left, first = _summed(left, first, needed | set(second))
    right, second = _summed(right, second, needed | set(first))
    size = {**dict(zip(second, right.shape, strict=True)), **dict(zip(first, left.shape, strict=True))}
    for letter, extent in zip(second, right.shape, strict=True):
        if letter in first and not symbolic_dims.same(size[letter], extent):
            if bool(size[letter] == 1) or bool(extent == 1):
                raise UnsupportedError("einsum that broadcasts")
            if size[letter] != extent:
                raise ValueError("operands could not be broadcast together")
    over = [letter for letter in first if letter in second and letter not in needed]
    both = [letter for letter in first if letter in second and letter in needed]
    rows = [letter for letter in first if letter not in second]
    columns = [letter for letter in second if letter not in first]
    if not over:
        term = "".join([*both, *rows, *columns])
        extent, second_factor = (_spread(node, letters, term) for node, letters in ((left, first), (right, second)))
        return apply(tracer, "multiply", fresh(tracer, extent), fresh(tracer, second_factor)), term

    def arranged(node: Node, letters: str, *groups: Sequence[str]) -> Node:
        order = [letters.index(letter) for group in (both, *groups) for letter in group]
        shape = [
            *(size[letter] for letter in both),
            *(symbolic_dims.product(size[x] for x in group) for group in groups),
        ]
        return builder.reshape(builder.transpose(node, order), shape)

    a, b = arranged(left, first, rows, over), arranged(right, second, over, columns)
    node = multiplied(fresh(tracer, a), fresh(tracer, b), left.dtype)
    term = "".join([*both, *rows, *columns])
    return builder.reshape(node, [size[letter] for letter in term]), term


def _summed(node: Node, term: str, needed: set[str]) -> tuple[Node, str]:
    removed = [i for i, letter in enumerate(term) if letter not in needed]
    if not removed:
        return node, term
    return builder.reduce("sum", node, removed), "".join(letter for letter in term if letter in needed)


def _spread(node: Node, letters: str, term: str) -> Node:
    """Dimensions in the order of a term, with unit dimensions for missing subscripts."""
    present = [letter for letter in term if letter in letters]
    ordered = builder.transpose(node, [letters.index(letter) for letter in present])
    missing = [i for i, letter in enumerate(term) if letter not in letters]
    return builder.expand_dims(ordered, missing) if missing else ordered
