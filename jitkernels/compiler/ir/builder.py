"""Node construction with NumPy's dtypes, shapes and exceptions; `UnknownError` for what no graph expresses."""

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.elementwise_ops import DTYPES, SCALARS
from jitkernels.compiler.ir.graph import Node, serial
from jitkernels.compiler.ir.symbolic_dims import Extent, Number, same
from jitkernels.compiler.ir.unsupported import UnknownError as UnknownError
from jitkernels.runtime import errstate

Operand = Any
"""A `Node`, or a Python int, float or bool, which NumPy promotes weakly (NEP 50)."""
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
    """An array of zeros."""
    return broadcast_to(constant(0, dtype), shape)


def unwritten(dtype: str, shape: Sequence[Number]) -> Node:
    """An array whose elements nobody reads before they are written; it is no other's memory."""
    return broadcast_to(Node("constant", (), dtype, (), {"value": 0, "unwritten": serial()}), shape)


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
        raise UnknownError(f"dtype {dtype}")
    if node.operation == "constant":
        with errstate.ignored_unless_recording():
            number = np.asarray(node.options["value"]).astype(node.dtype).astype(dtype)
        return Node("constant", (), dtype, (), {"value": number.item() if number.dtype.kind != "f" else float(number)})
    return Node("cast", (node,), dtype, node.shape)


@functools.lru_cache(maxsize=4096)
def loop_of(name: str, given: tuple[Any, ...]) -> tuple[str, ...]:
    """Dtypes of the operands and the result of an operation's loop; `given` are dtypes, or int, float, bool."""
    scalar = SCALARS[name]
    if name == "where":
        kind = _promoted(given[1:])
        return "bool", kind, kind, kind
    if isinstance(scalar.numpy, np.ufunc):
        asked = tuple(one if one in (int, float, bool) else np.dtype(one) for one in given)
        asked = tuple(np.dtype(bool) if one is bool else one for one in asked)
        found = scalar.numpy.resolve_dtypes((*asked, None))
        names = tuple(one.name for one in found)
    else:
        kind = _promoted(given)
        if np.dtype(kind).kind != "f":
            kind = "float64"
        names = (kind,) * (len(given) + 1)
    if any(one not in DTYPES for one in names):
        raise UnknownError(f"{name} of {', '.join(map(str, given))}")
    return names


def _promoted(given: Sequence[Any]) -> str:
    stand = {int: 1, float: 1.0, bool: True}
    if all(one in stand for one in given):
        return np.result_type(*(np.asarray(stand[one]) for one in given)).name
    return np.result_type(*(stand[one] if one in stand else np.dtype(one) for one in given)).name


def elementwise(name: str, *operands: Operand, dtype: str | None = None) -> Node:
    """An elementwise operation; `dtype` chooses the loop by its result, as the argument of a ufunc does."""
    given = tuple(one.dtype if isinstance(one, Node) else type(one) for one in operands)
    if any(isinstance(one, type) and one not in (int, float, bool) for one in given):
        raise UnknownError(f"{name} of {given}")
    loop = loop_of(name, given) if dtype is None else _loop_to(name, given, dtype)
    inputs = [
        cast(one, kind) if isinstance(one, Node) else constant(one, kind)
        for one, kind in zip(operands, loop, strict=False)
    ]
    if SCALARS[name].function(loop[:-1]) is None:
        raise UnknownError(f"{name} of {', '.join(loop[:-1])}")
    return Node(name, inputs, loop[-1], broadcast_shapes([one.shape for one in inputs]))


@functools.lru_cache(maxsize=1024)
def _loop_to(name: str, given: tuple[Any, ...], dtype: str) -> tuple[str, ...]:
    ufunc = SCALARS[name].numpy
    if not isinstance(ufunc, np.ufunc):
        raise UnknownError(f"dtype= of {name}")
    asked = tuple(np.dtype(bool) if one is bool else one if one in (int, float) else np.dtype(one) for one in given)
    found = ufunc.resolve_dtypes((*asked, None), signature=(None,) * len(given) + (np.dtype(dtype),))
    names = tuple(one.name for one in found)
    if any(one not in DTYPES for one in names):
        raise UnknownError(f"{name} of {', '.join(names)}")
    return names


def shapes_agree(one: Sequence[Number], other: Sequence[Number]) -> bool:
    """Whether two shapes are equal, at least for this call, which the code is for then."""
    return len(one) == len(other) and all(same(a, b) or a == b for a, b in zip(one, other, strict=True))


def broadcast_shapes(shapes: Iterable[Sequence[Number]]) -> tuple[Number, ...]:
    """The common shape. Raises ValueError as NumPy does."""
    listed = [tuple(shape) for shape in shapes]
    result: list[Number] = []
    for position in range(-max(map(len, listed), default=0), 0):
        common: Number = 1
        for shape in listed:
            if len(shape) < -position:
                continue
            one = shape[position]
            if same(one, common) or same(one, 1):
                continue
            if same(common, 1):
                common = one
            elif one == 1:
                continue
            elif common == 1:
                common = one
            elif one != common:
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


def is_identity(given: Sequence[Number], index_map: IndexMap, shape: Sequence[Number]) -> bool:
    """Whether a map shows all of an array as it is."""
    return (
        len(given) == len(shape)
        and all(map(same, given, shape))
        and all(
            (same(start, 0) and (steps == ((i, 1),)))
            or (same(start, 0) and same(given[i], 1) and steps in ((), ((i, 1),)))
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
    for i, one in enumerate(node.shape):
        target = shape[missing + i]
        if same(one, target) or (not same(one, 1) and one == target):
            index_map.append((0, ((missing + i, 1),)))
        elif one == 1:
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
    for i, one in zip(kept, node.shape, strict=True):
        shape[i] = one
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
    unknown = [i for i, one in enumerate(wanted) if same(one, -1)]
    total = symbolic_dims.product(node.shape)
    if len(unknown) > 1:
        raise ValueError("can only specify one unknown dimension")
    if unknown:
        rest = symbolic_dims.product(one for i, one in enumerate(wanted) if i != unknown[0])
        if rest == 0 or total % rest != 0:
            raise ValueError(f"cannot reshape array of size {symbolic_dims.value_of(total)} into shape {_shown(shape)}")
        wanted[unknown[0]] = _quotient(total, rest, node.shape, wanted)
    elif symbolic_dims.product(wanted) != total:
        raise ValueError(f"cannot reshape array of size {symbolic_dims.value_of(total)} into shape {_shown(shape)}")
    if len(wanted) == node.ndim and all(map(same, wanted, node.shape)):
        return node
    found = map_of_split(node.shape, wanted)
    return Node("reshape", (node,), node.dtype, wanted) if found is None else view(node, found, wanted)


def map_of_split(given: Sequence[Number], wanted: Sequence[Number]) -> IndexMap | None:
    """The map of a reshape that takes no dimensions together, but for those of one element; None if it does."""
    found: list[tuple[Number, tuple[tuple[int, Number], ...]]] = []
    remaining = [i for i, one in enumerate(wanted) if not same(one, 1)]
    for extent in given:
        parts: list[int] = []
        count: Number = 1
        while remaining and not _agree(count, extent):
            parts.append(remaining.pop(0))
            count = count * wanted[parts[-1]]
        if not _agree(count, extent):
            return None
        steps: list[tuple[int, Number]] = []
        step: Number = 1
        for part in reversed(parts):
            steps.append((part, step))
            step = step * wanted[part]
        found.append((0, tuple(reversed(steps))))
    return None if remaining else tuple(found)


def _agree(count: Number, extent: Number) -> bool:
    """Whether a product of sizes is known to be another; where it has quotients, for calls for which that holds."""
    if known_same(count, extent):
        return True
    is_equal = symbolic_dims.value_of(count) == symbolic_dims.value_of(extent) and not symbolic_dims.is_moving(
        count - extent
    )
    return is_equal and has_quotients(count) and bool(count == extent)


def known_same(one: Number, other: Number) -> bool:
    """Whether two extents are equal in all calls that the code is for; nothing more is guarded."""
    if same(one, other):
        return True
    apart = one - other
    if not isinstance(apart, Extent):
        return False
    guards = apart.scope.guards
    return (apart.key, "==") in guards or ((apart * -1).key, "==") in guards


def has_quotients(extent: Number) -> bool:
    """Whether an extent is made of quotients of others."""
    terms = symbolic_dims.terms_of(extent)
    return any(atom.operation == "floordiv" for monomial in terms for atom in monomial)


def _quotient(total: Number, rest: Number, given: Sequence[Number], wanted: Sequence[Number]) -> Number:
    left = list(given)
    for one in wanted:
        found = next((i for i, other in enumerate(left) if same(one, other)), None)
        if found is not None:
            left.pop(found)
            total = symbolic_dims.product(left)
            rest = symbolic_dims.product(o for o in wanted if not any(same(o, g) for g in given) and not same(o, -1))
    return total // rest


def reduce(kind: str, node: Node, axes: Sequence[int], *, keepdims: bool = False, is_tested: bool = False) -> Node:
    """A reduction in the node's dtype. Raises ValueError for no elements, unless the code tests that (`is_tested`)."""
    over = tuple(sorted(normalized(axes, node.ndim)))
    if len(set(over)) != len(over):
        raise ValueError("duplicate value in 'axis'")
    counts = [node.shape[i] for i in over if not (is_tested and symbolic_dims.is_moving(node.shape[i]))]
    if kind in ("min", "max") and any(one == 0 for one in counts):
        raise ValueError(
            f"zero-size array to reduction operation {'minimum' if kind == 'min' else 'maximum'} which has no identity"
        )
    if kind in ("argmin", "argmax") and any(one == 0 for one in counts):
        raise ValueError(f"attempt to get {kind} of an empty sequence")
    dtype = "int64" if kind in ("argmin", "argmax") else "bool" if kind in ("any", "all") else node.dtype
    shape = [one for i, one in enumerate(node.shape) if i not in over]
    found = Node("reduce", (node,), dtype, shape, {"kind": kind, "axes": over}) if over else node
    if kind in ("any", "all") and not over:
        found = cast(node, "bool")
    return expand_dims(found, over) if keepdims and over else found


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
