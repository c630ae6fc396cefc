"""Elements that a mask chooses: how many there are is known only when code runs, and often does not matter.

``a[mask] += 1``, ``a[mask] = b[mask] * 2`` and ``a[mask].sum()`` are computed for all elements, and the mask decides
which count. All else has to know the number, and is left to NumPy.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from jitkernels.frontends.tables import SERVICES
from jitkernels.frontends.traced import Traced, fresh
from jitkernels.graph import construct, extents, ir
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.ir import Node


def alike(one: Node, other: Node, depth: int = 8) -> bool:
    """Whether two nodes are seen to compute the same."""
    if one is other:
        return True
    if not depth or len(one.inputs) != len(other.inputs):
        return False
    inputs = tuple(range(len(one.inputs)))
    return ir.key_of(one, inputs) == ir.key_of(other, inputs) and all(
        alike(a, b, depth - 1) for a, b in zip(one.inputs, other.inputs, strict=True)
    )


class Masked:
    """``array[mask]``, in NumPy one-dimensional in the mask's dimensions."""

    __slots__ = ("_array", "_mask", "_node", "_was")
    __array_priority__ = 2000.0

    def __init__(self, array: Traced, mask: Traced) -> None:
        self._array, self._mask = array, mask
        self._node, self._was = array.node, mask.node

    def _same(self, other: "Masked") -> bool:
        return alike(other._was, self._was) and extents.same_shape(other._node.shape, self._node.shape)

    def __array_ufunc__(self, ufunc: Any, way: str, *inputs: Any, **keywords: Any) -> Any:
        tracer = self._array.tracer
        if way == "reduce" and len(inputs) == 1:
            return self._reduced(ufunc, keywords)
        if way != "__call__" or keywords or ufunc.nout != 1 or ufunc.signature is not None:
            raise UnknownError("elements chosen by a mask")
        operands = [self._operand(one) for one in inputs]
        found = SERVICES["ufunc"](tracer, ufunc, "__call__", tuple(operands), {})
        if not extents.same_shape(found.extents, self._node.shape):
            raise UnknownError("elements chosen by a mask meet an array of another shape")
        return self._made(found, operands)

    def _made(self, found: Traced, operands: Iterable[Any]) -> "Masked":
        """What was computed of some operands for all elements."""
        given = [one.node for one in operands if type(one) is Traced]
        self._array.tracer.computes_in_part([found.node], given)
        return Masked(found, self._chosen())

    def _chosen(self) -> Traced:
        """The mask as it was."""
        if self._mask.node is self._was:
            return self._mask
        return fresh(self._array.tracer, self._was)

    def _operand(self, value: Any) -> Any:
        if type(value) is Masked:
            if not self._same(value):
                raise UnknownError("elements chosen by different masks")
            return self._alone(value._now())
        is_array = value.ndim > 0 if type(value) is Traced else isinstance(value, np.ndarray | list | tuple)
        if is_array:
            raise UnknownError("elements chosen by a mask meet an array")
        return self._alone(value) if type(value) is Traced else value

    def _alone(self, value: Traced) -> Traced:
        """An operand of which derivatives are by what is chosen alone: others may have none."""
        tracer = value.tracer
        if not tracer.differentiates or value.dtype.kind != "f":
            return value
        like = self._node.dtype
        dtype = like if value.is_weak and np.dtype(like).kind == "f" else value.node.dtype
        return fresh(tracer, construct.chosen(self._full(), construct.cast(value.node, dtype)))

    def _now(self) -> Traced:
        """All elements, as they were."""
        if self._array.node is self._node:
            return self._array
        return fresh(self._array.tracer, self._node)

    def _operate_in_place(self, ufunc: Any, other: Any) -> "Masked":
        """An operator that changes what was chosen, though not where it was chosen from."""
        found = _operate(self, ufunc, self, other)
        if not np.can_cast(found._node.dtype, self._node.dtype, "same_kind"):
            raise UnknownError("a result that does not fit elements chosen by a mask")  # which NumPy refuses
        self._array = fresh(self._array.tracer, construct.cast(found._node, self._node.dtype))
        self._node = self._array.node
        return self

    def _reduced(self, ufunc: Any, keywords: dict[str, Any]) -> Any:
        axis = keywords.get("axis") if "axis" in keywords else 0  # the default of `ufunc.reduce`
        if set(keywords) - {"axis", "dtype"} or (axis not in (None, 0)):
            raise UnknownError("a reduction of elements chosen by a mask with options")
        if ufunc not in (np.add, np.multiply, np.logical_or, np.logical_and):
            raise UnknownError("a reduction of elements chosen by a mask")
        over = None if axis is None else tuple(range(self._was.ndim))
        chosen = fresh(self._array.tracer, self._full())
        return ufunc.reduce(self._now(), axis=over, dtype=keywords.get("dtype"), where=chosen)

    def _full(self) -> Node:
        """The mask as it was, with all dimensions of the array."""
        mask, ndim = self._was, self._node.ndim
        return construct.expand_dims(mask, range(mask.ndim, ndim)) if mask.ndim < ndim else mask

    def sum(self, axis: Any = None) -> Any:
        return self._reduced(np.add, {"axis": axis})

    def mean(self, axis: Any = None) -> Any:
        if self._node.dtype not in ("float32", "float64"):
            raise UnknownError("the mean of elements chosen by a mask that are no floats")
        count = np.sum(self._chosen())
        if axis is None:
            for extent in self._now().shape[self._was.ndim :]:
                count = count * extent
        return self.sum(axis) / count.astype(self._node.dtype)

    def any(self) -> Any:
        return self._reduced(np.logical_or, {"axis": None})

    def all(self) -> Any:
        return self._reduced(np.logical_and, {"axis": None})

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        if function in (np.sum, np.mean) and len(arguments) == 1 and not {*keywords} - {"axis"}:
            return getattr(self, function.__name__)(**keywords)
        if function in (np.any, np.all) and len(arguments) == 1 and not keywords:
            return getattr(self, function.__name__)()
        raise UnknownError(f"numpy.{function.__name__} of elements chosen by a mask")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise UnknownError(f"elements chosen by a mask, .{name}")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise UnknownError("elements chosen by a mask")

    def __len__(self) -> int:
        raise UnknownError("the number of elements chosen by a mask")

    def __iter__(self) -> Any:
        raise UnknownError("a loop over elements chosen by a mask")

    def __bool__(self) -> bool:
        raise UnknownError("the truth of elements chosen by a mask")

    def __getitem__(self, key: Any) -> Any:
        raise UnknownError("indexing of elements chosen by a mask")

    def __setitem__(self, key: Any, value: Any) -> None:
        raise UnknownError("indexing of elements chosen by a mask")

    def assigned_to(self, given: Traced, mask: Traced) -> Node:
        """What is assigned to the elements that the same mask chooses."""
        if not alike(mask.node, self._was) or not extents.same_shape(self._node.shape, given.extents):
            raise UnknownError("elements chosen by different masks")
        if not np.can_cast(self._node.dtype, given.node.dtype, "unsafe"):
            raise UnknownError("an assignment between dtypes")
        return construct.cast(self._node, given.node.dtype)


COMPARED = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)


def _operators() -> None:
    table = {
        "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide,
        "floordiv": np.floor_divide, "mod": np.remainder, "pow": np.power, "eq": np.equal, "ne": np.not_equal,
        "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "and": np.bitwise_and,
        "or": np.bitwise_or, "xor": np.bitwise_xor,
    }  # fmt: skip

    def forward(ufunc: Any) -> Any:
        return lambda self, other: _operate(self, ufunc, self, other)

    def backward(ufunc: Any) -> Any:
        return lambda self, other: _operate(self, ufunc, other, self)

    def in_place(ufunc: Any) -> Any:
        return lambda self, other: self._operate_in_place(ufunc, other)

    def applied(ufunc: Any) -> Any:
        return lambda self: ufunc(self)

    for name, ufunc in table.items():
        setattr(Masked, f"__{name}__", forward(ufunc))
        setattr(Masked, f"__r{name}__", backward(ufunc))
        if ufunc not in COMPARED:
            setattr(Masked, f"__i{name}__", in_place(ufunc))
    alone: dict[str, Any] = {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}
    for name, one in alone.items():
        setattr(Masked, f"__{name}__", applied(one))


def _operate(masked: Masked, ufunc: Any, left: Any, right: Any) -> Any:
    """An operator: of all elements, and the mask stays."""
    operands = [masked._operand(one) for one in (left, right)]
    found = SERVICES["operate"](masked._array.tracer, ufunc, *operands)
    if type(found) is not Traced or not extents.same_shape(found.extents, masked._node.shape):
        raise UnknownError("elements chosen by a mask meet an array of another shape")
    return masked._made(found, operands)


_operators()
