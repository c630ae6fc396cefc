"""Products of traced arrays: everything that sums products is brought to the form of `numpy.matmul`, or to sums."""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels.frontends.joining import common_type
from jitkernels.frontends.reductions import axes_of, dtype_name, is_given, reduced, tracer_of
from jitkernels.frontends.shaping import moveaxis, of_array, ravel
from jitkernels.frontends.tables import METHODS, implements
from jitkernels.frontends.traced import Traced, fresh, traced
from jitkernels.frontends.tracer import Tracer
from jitkernels.frontends.universal import apply, operand, stored
from jitkernels.graph import construct, extents
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.ir import Node


def multiplied(tracer: Tracer, left: Traced, right: Traced, dtype: str) -> Node:
    """``numpy.matmul`` of arrays in one dtype; those of one dimension are rows and columns."""
    if not left.ndim or not right.ndim:
        raise ValueError("matmul: Input operand does not have enough dimensions (has 0, requires 1)")
    a, b = construct.cast(left.node, dtype), construct.cast(right.node, dtype)
    if left.ndim == 1:
        a = construct.expand_dims(a, (0,))
    if right.ndim == 1:
        b = construct.expand_dims(b, (1,))
    if not extents.same(a.shape[-1], b.shape[-2]) and a.shape[-1] != b.shape[-2]:
        raise ValueError("matmul: Input operand 1 has a mismatch in its core dimension 0")
    outer = construct.broadcast_shapes([a.shape[:-2], b.shape[:-2]])
    shape = (*outer, a.shape[-2], b.shape[-1])
    if any(extents.same(one, 0) for one in (*shape, a.shape[-1])):
        node = construct.broadcast_to(construct.constant(0, dtype), shape)
    else:
        node = Node("matmul", (a, b), dtype, shape)
    gone = [*([len(shape) - 2] if left.ndim == 1 else []), *([len(shape) - 1] if right.ndim == 1 else [])]
    return construct.squeeze(node, gone) if gone else node


def product_type(*operands: Traced) -> str:
    """The type that products are summed in."""
    return common_type(tracer_of(), [operand(tracer_of(), one) for one in operands])


@implements(np.matmul)
def matmul(
    x1: Any, x2: Any, /, out: Any = None, *, dtype: Any = None, casting: str = "same_kind", **others: Any
) -> Any:
    if any(name not in ("order", "subok") for name in others):
        raise UnknownError(f"matmul with {', '.join(others)}")
    tracer = tracer_of()
    left, right = traced(tracer, x1), traced(tracer, x2)
    name = dtype_name(dtype) if is_given(dtype) else product_type(left, right)
    node = multiplied(tracer, left, right, name)
    target = out[0] if isinstance(out, tuple) else out
    return (
        stored(tracer, node, target, casting=casting)
        if target is not None
        else fresh(tracer, node, is_scalar=True)
    )


@implements(np.vecdot)
def vecdot(x1: Any, x2: Any, /, out: Any = None, *, axis: Any = -1, **others: Any) -> Any:
    if others or type(axis) is not int:
        raise UnknownError("vecdot with options")
    tracer = tracer_of()
    left, right = moveaxis(of_array(x1), axis, -1), moveaxis(of_array(x2), axis, -1)
    if not left.extents[-1] == right.extents[-1]:
        raise UnknownError("vecdot of vectors of different sizes")  # which NumPy refuses
    found = reduced(tracer, "sum", left * right, -1, product_type(left, right))
    return stored(tracer, found.node, out[0] if isinstance(out, tuple) else out) if out is not None else found


@implements(np.dot)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    tracer = tracer_of()
    left, right = traced(tracer, a), traced(tracer, b)
    if not left.ndim or not right.ndim:
        return np.multiply(left, right, out=out)
    name = product_type(left, right)
    if right.ndim <= 2 and left.ndim <= 2:
        node = multiplied(tracer, left, right, name)
    else:
        found = tensordot(left, right, ((left.ndim - 1,), (max(right.ndim - 2, 0),)))
        node = found.node
    if out is not None:
        if out.dtype.name != name:
            raise ValueError(
                "output array is not acceptable (must have the right datatype, number of dimensions, and be a C-Array)"
            )
        return stored(tracer, node, out)
    return fresh(tracer, node, is_scalar=True)


METHODS["dot"] = dot


@implements(np.inner)
def inner(a: Any, b: Any, /) -> Any:
    left, right = of_array(a), of_array(b)
    if not left.ndim or not right.ndim:
        return left * right
    return tensordot(left, right, ((left.ndim - 1,), (right.ndim - 1,)))


@implements(np.vdot)
def vdot(a: Any, b: Any, /) -> Any:
    return dot(ravel(a), ravel(b))


@implements(np.outer)
def outer(a: Any, b: Any, out: Any = None) -> Any:
    left, right = ravel(of_array(a)), ravel(of_array(b))
    column = fresh(left.tracer, construct.expand_dims(left.node, (1,)))
    return np.multiply(column, fresh(left.tracer, construct.expand_dims(right.node, (0,))), out=out)


@implements(np.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    tracer = tracer_of()
    left, right = traced(tracer, a), traced(tracer, b)
    if isinstance(axes, tuple | list):
        one, other = axes
        over = axes_of(one, left.ndim), axes_of(other, right.ndim)
    else:
        count = operator.index(axes)
        over = tuple(range(left.ndim - count, left.ndim)), tuple(range(count))
    if len(over[0]) != len(over[1]) or any(
        not extents.same(left.extents[i], right.extents[j]) and left.extents[i] != right.extents[j]
        for i, j in zip(*over, strict=True)
    ):
        raise ValueError("shape-mismatch for sum")
    name = product_type(left, right)
    rows = [i for i in range(left.ndim) if i not in over[0]]
    columns = [i for i in range(right.ndim) if i not in over[1]]
    shared = extents.product(left.extents[i] for i in over[0])
    first = construct.reshape(
        construct.transpose(left.node, (*rows, *over[0])),
        (extents.product(left.extents[i] for i in rows), shared),
    )
    second = construct.reshape(
        construct.transpose(right.node, (*over[1], *columns)),
        (shared, extents.product(right.extents[i] for i in columns)),
    )
    node = multiplied(tracer, fresh(tracer, first), fresh(tracer, second), name)
    shape = [*(left.extents[i] for i in rows), *(right.extents[i] for i in columns)]
    return fresh(tracer, construct.reshape(node, shape))


@implements(np.trace, methods="trace")
def trace(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None, out: Any = None) -> Any:
    return np.sum(np.diagonal(of_array(a), offset, axis1, axis2), axis=-1, dtype=dtype, out=out)


@implements(np.einsum)
def einsum(*operands: Any, out: Any = None, optimize: Any = False, **others: Any) -> Any:
    if others or not isinstance(operands[0], str):
        raise UnknownError("einsum with lists of axes or options")
    tracer = tracer_of()
    arrays = [traced(tracer, one) for one in operands[1:]]
    terms, result = _parsed(operands[0], arrays)
    name = product_type(*arrays)
    nodes = [construct.cast(one.node, name) for one in arrays]
    current = [_without_repeats(node, term) for node, term in zip(nodes, terms, strict=True)]
    while len(current) > 1:
        (left, first), (right, second), *rest = current
        needed = set(result).union(*(term for _, term in rest)) if rest else set(result)
        current = [_joined(tracer, left, first, right, second, needed), *rest]
    node, term = current[0]
    gone = [i for i, letter in enumerate(term) if letter not in result]
    if gone:
        node = construct.reduce("sum", node, gone) if name != "bool" else construct.reduce("any", node, gone)
        term = "".join(letter for letter in term if letter in result)
    if sorted(term) != sorted(result):
        raise ValueError(
            "einstein sum subscripts string included output subscript which never appeared in an input"
        )
    node = construct.transpose(node, [term.index(letter) for letter in result])
    if out is not None:
        return stored(tracer, node, out)
    if len(arrays) == 1 and node.operation in ("view", "input"):
        raise UnknownError("einsum that gives a view")
    return fresh(tracer, node, is_scalar=True, is_c=node.ndim < 2 or None)


def _parsed(text: str, arrays: Sequence[Traced]) -> tuple[list[str], str]:
    """The letters of each operand and of the result; an ellipsis gets letters of its own."""
    text = text.replace(" ", "")
    given, arrow, result = text.partition("->")
    terms = given.split(",")
    if len(terms) != len(arrays):
        raise ValueError(
            "more operands provided to einstein sum function than specified in the subscripts string"
        )
    spare = [chr(code) for code in range(0x100, 0x180)]
    dots = 0
    for i, (term, array) in enumerate(zip(terms, arrays, strict=True)):
        if "..." in term:
            more = array.ndim - (len(term) - 3)
            dots = max(dots, more)
            terms[i] = term.replace("...", "".join(spare[64 - more : 64]))
        if len(terms[i]) != array.ndim:
            raise ValueError(
                "einstein sum subscripts string has the wrong number of subscripts for an operand"
            )
    if dots and any("..." in one for one in given.split(",")) and len({len(t) for t in terms}) > 0:
        shared = "".join(spare[64 - dots : 64])
    else:
        shared = ""
    if not arrow:
        letters = "".join(terms)
        result = shared + "".join(
            sorted(one for one in set(letters) if letters.count(one) == 1 and one not in shared)
        )
    else:
        result = result.replace("...", shared)
        if len(set(result)) != len(result):
            raise ValueError("einstein sum subscripts string includes output subscript multiple times")
    return terms, result


def _without_repeats(node: Node, term: str) -> tuple[Node, str]:
    """Diagonals, where a letter stands twice."""
    if len(set(term)) == len(term):
        return node, term
    kept = "".join(dict.fromkeys(term))
    shape = [node.shape[term.index(letter)] for letter in kept]
    for i, letter in enumerate(term):
        if (
            not extents.same(node.shape[i], shape[kept.index(letter)])
            and node.shape[i] != shape[kept.index(letter)]
        ):
            raise ValueError("dimensions in single operand for collapsing index don't match")
    index_map = tuple((0, ((kept.index(letter), 1),)) for letter in term)
    return construct.view(node, index_map, shape), kept


def _joined(
    tracer: Tracer, left: Node, first: str, right: Node, second: str, needed: set[str]
) -> tuple[Node, str]:
    """Two operands made one: letters of both that are needed no more are summed."""
    left, first = _summed(left, first, needed | set(second))
    right, second = _summed(right, second, needed | set(first))
    size = {**dict(zip(second, right.shape, strict=True)), **dict(zip(first, left.shape, strict=True))}
    for letter, one in zip(second, right.shape, strict=True):
        if letter in first and not extents.same(size[letter], one):
            if bool(size[letter] == 1) or bool(one == 1):
                raise UnknownError("einsum that broadcasts")
            if size[letter] != one:
                raise ValueError("operands could not be broadcast together")
    over = [letter for letter in first if letter in second and letter not in needed]
    both = [letter for letter in first if letter in second and letter in needed]
    rows = [letter for letter in first if letter not in second]
    columns = [letter for letter in second if letter not in first]
    if not over:
        term = "".join([*both, *rows, *columns])
        one, other = (_spread(node, letters, term) for node, letters in ((left, first), (right, second)))
        return apply(tracer, "multiply", fresh(tracer, one), fresh(tracer, other)), term

    def arranged(node: Node, letters: str, *groups: Sequence[str]) -> Node:
        order = [letters.index(letter) for group in (both, *groups) for letter in group]
        shape = [
            *(size[letter] for letter in both),
            *(extents.product(size[x] for x in group) for group in groups),
        ]
        return construct.reshape(construct.transpose(node, order), shape)

    a, b = arranged(left, first, rows, over), arranged(right, second, over, columns)
    node = multiplied(tracer, fresh(tracer, a), fresh(tracer, b), left.dtype)
    term = "".join([*both, *rows, *columns])
    return construct.reshape(node, [size[letter] for letter in term]), term


def _summed(node: Node, term: str, needed: set[str]) -> tuple[Node, str]:
    gone = [i for i, letter in enumerate(term) if letter not in needed]
    if not gone:
        return node, term
    return construct.reduce("sum", node, gone), "".join(letter for letter in term if letter in needed)


def _spread(node: Node, letters: str, term: str) -> Node:
    """Dimensions in the order of a term, with ones for those that are missing."""
    kept = [letter for letter in term if letter in letters]
    ordered = construct.transpose(node, [letters.index(letter) for letter in kept])
    missing = [i for i, letter in enumerate(term) if letter not in letters]
    return construct.expand_dims(ordered, missing) if missing else ordered
