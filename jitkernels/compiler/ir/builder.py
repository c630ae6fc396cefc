"""Node construction with NumPy's dtypes, shapes and exceptions; `UnsupportedError` for what no graph expresses."""

import functools
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.ir import dim_bounds, symbolic_dims
from jitkernels.compiler.ir.elementwise_ops import DTYPES, PLANES, SCALARS
from jitkernels.compiler.ir.graph import Node, serial
from jitkernels.compiler.ir.symbolic_dims import Extent, Number, same
from jitkernels.compiler.ir.unsupported import UnsupportedError as UnsupportedError
from jitkernels.runtime import errstate

UnknownError = UnsupportedError
"""The name that recipes gave plug-ins before."""

Operand = Any
"""A `Node`, or a Python int, float, complex or bool, which NumPy promotes weakly (NEP 50)."""
IndexMap = tuple[tuple[Number, tuple[tuple[int, Number], ...]], ...]
"""For each dimension of what a view is of: where it starts, and the steps of the view's dimensions in it."""


def constant(value: Any, dtype: str) -> Node:
    """A 0-d number. Raises OverflowError where an integer type cannot hold a Python int, as NumPy does."""
    kind = np.dtype(dtype)
    if kind.kind in "iu" and type(value) is int:
        kind.type(value)
    number = np.asarray(value).astype(kind)
    return Node("constant", (), dtype, (), {"value": number.item() if kind.kind != "f" else float(number)})


def zeros(dtype: str, shape: Sequence[Number]) -> Node:
    return broadcast_to(constant(0, dtype), shape)


def unwritten(dtype: str, shape: Sequence[Number], order: Sequence[int] | None = None) -> Node:
    """An array in a memory order whose elements nobody reads before they are written; it is no other's memory."""
    node = broadcast_to(Node("constant", (), dtype, (), {"value": 0, "unwritten": serial()}), shape)
    return node if order is None else Node("view", node.inputs, dtype, shape, {**node.options, "order": tuple(order)})


def is_unwritten(node: Node) -> bool:
    """Whether a node is such an array."""
    return node.operation == "view" and "unwritten" in node.inputs[0].options


def extent(value: Number, dtype: str = "int64") -> Node:
    """An extent as a 0-d number."""
    if not isinstance(value, Extent):
        return constant(value, dtype)
    return Node("extent", (), dtype, (), {"extent": value})


def cast(node: Node, dtype: str) -> Node:
    """The node in another type, by NumPy's unsafe rule."""
    if node.dtype == dtype:
        return node
    if dtype not in DTYPES:
        raise UnsupportedError(f"dtype {dtype}")
    if node.dtype in PLANES and dtype not in PLANES and dtype != "bool":
        raise UnsupportedError(f"a cast of {node.dtype} to {dtype}, of which NumPy warns")
    if node.operation == "constant":
        with errstate.ignored_unless_recording():
            number = np.asarray(node.options["value"]).astype(node.dtype).astype(dtype)
        return Node("constant", (), dtype, (), {"value": number.item() if number.dtype.kind != "f" else float(number)})
    return Node("cast", (node,), dtype, node.shape)


WEAK_EXAMPLES: dict[Any, Any] = {int: 1, float: 1.0, complex: 1j, bool: True}
"""For Python's number types, which NumPy promotes weakly, a number of each."""


WEAK = (int, float, complex)
"""Types whose numbers take the dtype that they meet, bools aside."""


def promoted(kinds: Iterable[Any]) -> str:
    """The dtype that operands of these kinds promote to: dtype names, int, float or bool."""
    return np.result_type(*(WEAK_EXAMPLES[kind] if kind in WEAK_EXAMPLES else np.dtype(kind) for kind in kinds)).name


@functools.lru_cache(maxsize=4096)
def ufunc_loop(
    ufunc: Any, kinds: tuple[Any, ...], dtype: str | None = None, casting: str = "same_kind"
) -> tuple[str, ...]:
    """Dtypes of operands and results of the ufunc loop that NumPy selects; `dtype`: that of the results."""
    if casting == "equiv" and any(kind in WEAK for kind in kinds):
        # NumPy's loop selection crashes the process where Python numbers cannot be cast to its dtype.
        raise UnsupportedError(f"{ufunc.__name__} of Python numbers with casting=equiv")
    dtypes = (np.dtype(bool) if kind is bool else kind if kind in WEAK else np.dtype(kind) for kind in kinds)
    options: dict[str, Any] = {"casting": casting}
    if dtype is not None:
        options["signature"] = (None,) * ufunc.nin + (np.dtype(dtype),) * ufunc.nout
    names = tuple(resolved.name for resolved in ufunc.resolve_dtypes((*dtypes, *[None] * ufunc.nout), **options))
    if any(name not in DTYPES for name in names):
        raise UnsupportedError(f"{ufunc.__name__} of {', '.join(map(str, kinds))}")
    return names


def loop_of(name: str, kinds: tuple[Any, ...], dtype: str | None = None) -> tuple[str, ...]:
    """Dtypes of the operands and the result of an elementwise operation."""
    function = SCALARS[name].numpy
    if isinstance(function, np.ufunc):
        return ufunc_loop(function, kinds, dtype)
    if dtype is not None:
        raise UnsupportedError(f"dtype= of {name}")
    common = promoted(kinds[1:] if name == "where" else kinds)
    if name == "where":
        return "bool", common, common, common
    if common in PLANES:
        raise UnsupportedError(f"{name} of complex numbers")
    return (common if np.dtype(common).kind == "f" else "float64",) * (len(kinds) + 1)


def elementwise(name: str, *operands: Operand, dtype: str | None = None) -> Node:
    """An elementwise operation; `dtype` chooses the loop by its result, as the argument of a ufunc does."""
    kinds = tuple(operand.dtype if isinstance(operand, Node) else type(operand) for operand in operands)
    if any(isinstance(kind, type) and kind not in WEAK_EXAMPLES for kind in kinds):
        raise UnsupportedError(f"{name} of {kinds}")
    loop = loop_of(name, kinds, dtype)
    inputs = [
        cast(operand, kind) if isinstance(operand, Node) else constant(operand, kind)
        for operand, kind in zip(operands, loop, strict=False)
    ]
    if not SCALARS[name].takes(loop[:-1]):
        raise UnsupportedError(f"{name} of {', '.join(loop[:-1])}")
    return Node(name, inputs, loop[-1], broadcast_shapes([node.shape for node in inputs]))


def shapes_agree(left: Sequence[Number], right: Sequence[Number]) -> bool:
    """Whether two shapes are equal, at least in this call: guards specialize the code to that."""
    return len(left) == len(right) and all(map(operator.eq, left, right))


def broadcast_shapes(shapes: Iterable[Sequence[Number]]) -> tuple[Number, ...]:
    """The common shape. Raises ValueError as NumPy does."""
    listed = [tuple(shape) for shape in shapes]
    result: list[Number] = []
    for position in range(-max(map(len, listed), default=0), 0):
        common: Number = 1
        for shape in listed:
            if len(shape) < -position:
                continue
            size = shape[position]
            if same(size, common) or same(size, 1):
                continue
            if same(common, 1):
                common = size
            elif size == 1:
                continue
            elif common == 1:
                common = size
            elif size != common:
                texts = " ".join(str(tuple(map(symbolic_dims.value_of, shape))).replace(" ", "") for shape in listed)
                raise ValueError(f"operands could not be broadcast together with shapes {texts} ")
        result.append(common)
    return tuple(result)


def view(node: Node, index_map: IndexMap, shape: Sequence[Number]) -> Node:
    """A view by an index map; views of views are one, and what changes nothing is the node itself."""
    if node.operation == "view":
        index_map = composed(node.options["map"], index_map)
        node = node.inputs[0]
    if is_identity(node.shape, index_map, shape):
        return node
    return Node("view", (node,), node.dtype, shape, {"map": index_map})


def copy(node: Node) -> Node:
    """All of a node, as another one."""
    return Node("view", (node,), node.dtype, node.shape, {"map": tuple(identity_map(node.ndim))})


def chosen(mask: Node, node: Node) -> Node:
    """Floats as an operation takes them whose result counts where a mask is true: elsewhere, nothing flows back."""
    shape = broadcast_shapes([mask.shape, node.shape])
    return Node("where", (mask, node, constant(1.0, node.dtype)), node.dtype, shape)


def composed(inner: IndexMap, outer: IndexMap) -> IndexMap:
    """The map of a view by `outer` of a view by `inner`."""
    result = []
    for start, steps in inner:
        where: Number = start
        total: dict[int, Number] = {}
        for dimension, step in steps:
            begin, further = outer[dimension]
            where = where + begin * step
            for own, distance in further:
                total[own] = total.get(own, 0) + distance * step
        result.append((where, tuple((own, total[own]) for own in sorted(total) if not same(total[own], 0))))
    return tuple(result)


def is_identity(source: Sequence[Number], index_map: IndexMap, shape: Sequence[Number]) -> bool:
    """Whether a map shows all of an array as it is."""
    return (
        len(source) == len(shape)
        and all(map(same, source, shape))
        and all(
            (same(start, 0) and (steps == ((i, 1),)))
            or (same(start, 0) and same(source[i], 1) and steps in ((), ((i, 1),)))
            for i, (start, steps) in enumerate(index_map)
        )
    )


def identity_map(ndim: int) -> list[tuple[Number, tuple[tuple[int, Number], ...]]]:
    return [(0, ((i, 1),)) for i in range(ndim)]


def broadcast_to(node: Node, shape: Sequence[Number]) -> Node:
    """As `numpy.broadcast_to`."""
    missing = len(shape) - node.ndim
    if missing < 0:
        raise ValueError("input operand has more dimensions than allowed by the axis remapping")
    index_map: list[Any] = []
    for i, value in enumerate(node.shape):
        target = shape[missing + i]
        if same(value, target) or (not same(value, 1) and value == target):
            index_map.append((0, ((missing + i, 1),)))
        elif value == 1:
            index_map.append((0, ()))
        else:
            raise ValueError(
                f"operands could not be broadcast together with remapped shapes [original->remapped]: "
                f"{_shown(node.shape)}  and requested shape {_shown(shape)}"
            )
    return view(node, tuple(index_map), shape)


def transpose(node: Node, axes: Sequence[int] | None = None) -> Node:
    """As `numpy.transpose`."""
    order = normalized(axes, node.ndim) if axes is not None else tuple(reversed(range(node.ndim)))
    if sorted(order) != list(range(node.ndim)):
        raise ValueError("axes don't match array")
    index_map = tuple((0, ((order.index(i), 1),)) for i in range(node.ndim))
    return view(node, index_map, [node.shape[i] for i in order])


def flip(node: Node, axis: int) -> Node:
    """As `numpy.flip` of one dimension."""
    index_map = identity_map(node.ndim)
    index_map[axis] = (node.shape[axis] - 1, ((axis, -1),))
    return view(node, tuple(index_map), node.shape)


def expand_dims(node: Node, axes: Sequence[int]) -> Node:
    """New dimensions of one element; axes are those of the result."""
    total = node.ndim + len(axes)
    new = set(normalized(axes, total))
    kept = [i for i in range(total) if i not in new]
    shape: list[Number] = [1] * total
    for i, value in zip(kept, node.shape, strict=True):
        shape[i] = value
    return view(node, tuple((0, ((i, 1),)) for i in kept), shape)


def squeeze(node: Node, axes: Sequence[int]) -> Node:
    """Dimensions of one element taken out."""
    gone = set(normalized(axes, node.ndim))
    if any(node.shape[i] != 1 for i in gone):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    kept = [i for i in range(node.ndim) if i not in gone]
    index_map = tuple((0, () if i in gone else ((kept.index(i), 1),)) for i in range(node.ndim))
    return view(node, index_map, [node.shape[i] for i in kept])


def reshape(node: Node, shape: Sequence[Number]) -> Node:
    """As `numpy.reshape` in C order; one extent may be -1."""
    wanted = list(shape)
    unknown = [i for i, value in enumerate(wanted) if same(value, -1)]
    total = symbolic_dims.product(node.shape)
    if len(unknown) > 1:
        raise ValueError("can only specify one unknown dimension")
    if unknown:
        rest = symbolic_dims.product(value for i, value in enumerate(wanted) if i != unknown[0])
        if rest == 0 or total % rest != 0:
            raise ValueError(f"cannot reshape array of size {symbolic_dims.value_of(total)} into shape {_shown(shape)}")
        wanted[unknown[0]] = _quotient(total, rest, node.shape, wanted)
    elif symbolic_dims.product(wanted) != total:
        raise ValueError(f"cannot reshape array of size {symbolic_dims.value_of(total)} into shape {_shown(shape)}")
    if len(wanted) == node.ndim and all(map(same, wanted, node.shape)):
        return node
    dim_bounds.note_size(node.shape)
    result = map_of_split(node.shape, wanted)
    return Node("reshape", (node,), node.dtype, wanted) if result is None else view(node, result, wanted)


def map_of_split(source: Sequence[Number], wanted: Sequence[Number]) -> IndexMap | None:
    """The map of a reshape that takes no dimensions together, but for those of one element; None if it does."""
    result: list[tuple[Number, tuple[tuple[int, Number], ...]]] = []
    remaining = [i for i, value in enumerate(wanted) if not same(value, 1)]
    for size in source:
        parts: list[int] = []
        count: Number = 1
        while remaining and not _agree(count, size):
            parts.append(remaining.pop(0))
            count = count * wanted[parts[-1]]
        if not _agree(count, size):
            return None
        steps: list[tuple[int, Number]] = []
        step: Number = 1
        for part in reversed(parts):
            steps.append((part, step))
            step = step * wanted[part]
        result.append((0, tuple(reversed(steps))))
    return None if remaining else tuple(result)


def _agree(count: Number, size: Number) -> bool:
    """Whether a product of sizes is known to be another; where it has quotients, for calls for which that holds."""
    if known_same(count, size):
        return True
    is_equal = symbolic_dims.value_of(count) == symbolic_dims.value_of(size) and not symbolic_dims.is_loop_variant(
        count - size
    )
    return is_equal and has_quotients(count) and bool(count == size)


def known_same(left: Number, right: Number) -> bool:
    """Whether two extents are equal in all calls that the code is for; nothing more is guarded."""
    if same(left, right):
        return True
    apart = left - right
    if not isinstance(apart, Extent):
        return False
    guards = apart.scope.guards
    return (apart.key, "==") in guards or ((apart * -1).key, "==") in guards


def has_quotients(size: Number) -> bool:
    """Whether an size is made of quotients of others."""
    terms = symbolic_dims.terms_of(size)
    return any(atom.operation == "floordiv" for monomial in terms for atom in monomial)


def _quotient(total: Number, rest: Number, source: Sequence[Number], wanted: Sequence[Number]) -> Number:
    """``total // rest``, after extents that both shapes have are left out of both products."""
    remaining, others = list(source), []
    for size in wanted:
        index = next((i for i, other in enumerate(remaining) if same(size, other)), None)
        if index is not None:
            remaining.pop(index)
        elif not same(size, -1):
            others.append(size)
    if len(remaining) < len(source):
        total, rest = symbolic_dims.product(remaining), symbolic_dims.product(others)
    return total // rest


def reduce(kind: str, node: Node, axes: Sequence[int], *, keepdims: bool = False, is_tested: bool = False) -> Node:
    """A reduction in the node's dtype. Raises ValueError for no elements, unless the code tests that (`is_tested`)."""
    over = tuple(sorted(normalized(axes, node.ndim)))
    if len(set(over)) != len(over):
        raise ValueError("duplicate value in 'axis'")
    counts = [node.shape[i] for i in over if not (is_tested and symbolic_dims.is_loop_variant(node.shape[i]))]
    if kind in ("min", "max") and any(value == 0 for value in counts):
        raise ValueError(
            f"zero-size array to reduction operation {'minimum' if kind == 'min' else 'maximum'} which has no identity"
        )
    if kind in ("argmin", "argmax") and any(value == 0 for value in counts):
        raise ValueError(f"attempt to get {kind} of an empty sequence")
    dtype = "int64" if kind in ("argmin", "argmax") else "bool" if kind in ("any", "all") else node.dtype
    shape = [value for i, value in enumerate(node.shape) if i not in over]
    result = Node("reduce", (node,), dtype, shape, {"kind": kind, "axes": over}) if over else node
    if kind in ("any", "all") and not over:
        result = cast(node, "bool")
    return expand_dims(result, over) if keepdims and over else result


def normalized(axes: Sequence[int], ndim: int) -> tuple[int, ...]:
    """Axes from 0 on. Raises AxisError as NumPy does."""
    result = []
    for axis in axes:
        number = int(axis)
        if not -ndim <= number < ndim:
            raise np.exceptions.AxisError(number, ndim)
        result.append(number % ndim)
    return tuple(result)


def _shown(shape: Sequence[Number]) -> str:
    values = tuple(map(symbolic_dims.value_of, shape))
    return f"({','.join(map(str, values))}{',' if len(values) == 1 else ''})"


def contiguous(shape: Sequence[Number], order: Sequence[int] | None = None) -> tuple[Number, ...]:
    """Strides in elements of an array without gaps, in C order or with its dimensions from the outermost on."""
    strides: list[Number] = [0] * len(shape)
    total: Number = 1
    for i in reversed(order if order is not None else range(len(shape))):
        strides[i] = total
        total = total * shape[i]
    return tuple(strides)
