"""Elements selected by a boolean mask: their number is known only at run time, and often does not matter.

``a[mask] += 1``, ``a[mask] = b[mask] * 2`` and ``a[mask].sum()`` are computed for all elements under the mask. Uses
that need the number of elements work on the copy that NumPy makes, an array of computed length.
"""

import contextlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import OPERATORS, UNARY_OPERATORS, Traced, fresh
from jitkernels.compiler.capture.control_flow.iterables import LoopIterable, RunTimeIterable
from jitkernels.compiler.capture.override_registry import SERVICES
from jitkernels.compiler.capture.symint import COMPARISONS
from jitkernels.compiler.ir import builder, graph, pytree, symbolic_dims
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.unsupported import UnknownSizeError


def is_congruent(left: Node, right: Node, depth: int = 8) -> bool:
    """Whether two nodes are structurally congruent: they surely compute the same value."""
    if left is right:
        return True
    if not depth or len(left.inputs) != len(right.inputs):
        return False
    inputs = tuple(range(len(left.inputs)))
    return graph.key_of(left, inputs) == graph.key_of(right, inputs) and all(
        is_congruent(a, b, depth - 1) for a, b in zip(left.inputs, right.inputs, strict=True)
    )


class Masked(RunTimeIterable):
    """``array[mask]``, which in NumPy is one-dimensional in the mask's dimensions."""

    __slots__ = ("_array", "_copy", "_depth", "_is_copied", "_mask", "_mask_node", "_node")
    __array_priority__ = 2000.0

    def __init__(self, array: Traced, mask: Traced) -> None:
        self._array, self._mask = array, mask
        self._node, self._mask_node = array.node, mask.node
        self._depth, self._copy, self._is_copied = array.tracer.depth, None, False
        if array.tracer.copies_dynamic:
            with contextlib.suppress(UnknownSizeError):
                self._copy = self._compressed()

    def _compressed(self) -> Any:
        """The selected elements next to each other: a new array of computed length."""
        return SERVICES["compress"](self._elements(), self._current_mask())

    def dense(self) -> Any:
        """The copy that NumPy makes, for uses that need the number of elements; later writes to it are seen here."""
        tracer = self._array.tracer
        if self._copy is None:
            if tracer.depth != self._depth:  # the function is traced again, and copies where it selects
                tracer.needs_copies = not tracer.copies_dynamic
                raise UnknownSizeError("the number of elements chosen by a mask, in a loop or branch")
            self._copy = self._compressed()
        self._is_copied = True
        return self._copy

    def _same(self, other: "Masked") -> bool:
        return is_congruent(other._mask_node, self._mask_node) and symbolic_dims.same_shape(
            other._node.shape, self._node.shape
        )

    def __array_ufunc__(self, ufunc: Any, way: str, *inputs: Any, **keywords: Any) -> Any:
        tracer = self._array.tracer
        if self._needs_copy(inputs) or (way == "reduce" and ufunc in (np.maximum, np.minimum)):
            return getattr(ufunc, way)(*(_dense(operand) for operand in inputs), **keywords)
        if way == "reduce" and len(inputs) == 1:
            return self._reduced(ufunc, keywords)
        if way != "__call__" or keywords or ufunc.nout != 1 or ufunc.signature is not None:
            raise UnsupportedError("elements chosen by a mask")
        operands = [self._operand(operand) for operand in inputs]
        result = SERVICES["ufunc"](tracer, ufunc, "__call__", tuple(operands), {})
        if not symbolic_dims.same_shape(result.extents, self._node.shape):
            raise UnsupportedError("elements chosen by a mask meet an array of another shape")
        return self._with_mask(result, operands)

    def _needs_copy(self, operands: Iterable[Any]) -> bool:
        """Whether an operation is one of copies: one has been in use, or an operand has elements of its own."""
        return any(
            value._is_copied if type(value) is Masked and value._same(self) else _has_elements(value)
            for value in (self, *operands)
        )

    def _with_mask(self, result: Traced, operands: Iterable[Any]) -> "Masked":
        """The result of an operation on all elements, under the mask."""
        arguments = [operand.node for operand in operands if type(operand) is Traced]
        self._array.tracer.note_masked_operations([result.node], arguments)
        return Masked(result, self._current_mask())

    def _current_mask(self) -> Traced:
        """The mask at the time of indexing."""
        if self._mask.node is self._mask_node:
            return self._mask
        return fresh(self._array.tracer, self._mask_node)

    def _operand(self, value: Any) -> Any:
        if type(value) is Masked:
            if not self._same(value):
                raise UnsupportedError("elements chosen by different masks")
            return self._without_masked_gradients(value._elements())
        is_array = value.ndim > 0 if type(value) is Traced else isinstance(value, np.ndarray | list | tuple)
        if is_array:
            raise UnsupportedError("elements chosen by a mask meet an array")
        return self._without_masked_gradients(value) if type(value) is Traced else value

    def _without_masked_gradients(self, value: Traced) -> Traced:
        """An operand whose derivatives are zero at masked-off elements, which may have none there."""
        tracer = value.tracer
        if not tracer.differentiates or value.dtype.kind != "f":
            return value
        like = self._node.dtype
        dtype = like if value.is_weak and np.dtype(like).kind == "f" else value.node.dtype
        return fresh(tracer, builder.chosen(self._full(), builder.cast(value.node, dtype)))

    def _elements(self) -> Traced:
        """All elements at the time of indexing."""
        if self._array.node is self._node:
            return self._array
        return fresh(self._array.tracer, self._node)

    def _operate_in_place(self, ufunc: Any, other: Any) -> "Masked":
        """An in-place operator on the selected copy, which leaves the source array unchanged."""
        if self._needs_copy((other,)):
            self.dense().operate_in_place(ufunc, _dense(other))
            return self
        self._copy = None
        result = _operate(self, ufunc, self, other)
        if not np.can_cast(result._node.dtype, self._node.dtype, "same_kind"):
            raise UnsupportedError("a result that does not fit elements chosen by a mask")  # NumPy raises
        self._array = fresh(self._array.tracer, builder.cast(result._node, self._node.dtype))
        self._node = self._array.node
        return self

    def _reduced(self, ufunc: Any, keywords: dict[str, Any]) -> Any:
        if self._is_copied:
            return ufunc.reduce(self._copy, **keywords)
        axis = keywords.get("axis") if "axis" in keywords else 0  # the default of `ufunc.reduce`
        if set(keywords) - {"axis", "dtype"} or (axis not in (None, 0)):
            raise UnsupportedError("a reduction of elements chosen by a mask with options")
        if ufunc not in (np.add, np.multiply, np.logical_or, np.logical_and):
            raise UnsupportedError("a reduction of elements chosen by a mask")
        over = None if axis is None else tuple(range(self._mask_node.ndim))
        chosen = fresh(self._array.tracer, self._full())
        return ufunc.reduce(self._elements(), axis=over, dtype=keywords.get("dtype"), where=chosen)

    def _full(self) -> Node:
        """The mask at the time of indexing, broadcastable to the array's dimensions."""
        mask, ndim = self._mask_node, self._node.ndim
        return builder.expand_dims(mask, range(mask.ndim, ndim)) if mask.ndim < ndim else mask

    def sum(self, axis: Any = None) -> Any:
        return self._reduced(np.add, {"axis": axis})

    def mean(self, axis: Any = None) -> Any:
        if self._is_copied:
            return self.dense().mean(axis)
        if self._node.dtype not in ("float32", "float64"):
            raise UnsupportedError("the mean of elements chosen by a mask that are no floats")
        count = np.sum(self._current_mask())
        if axis is None:
            for extent in self._elements().shape[self._mask_node.ndim :]:
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
        arguments, keywords = pytree.tree_map(_dense, (arguments, keywords))
        return function(*arguments, **keywords)

    @property
    def length(self) -> Any:
        """The number of elements along the first dimension."""
        return self.dense().length

    def loop_iterable(self) -> LoopIterable:
        iterable: LoopIterable = self.dense().loop_iterable()
        return iterable

    def __getitem__(self, key: Any) -> Any:
        return self.dense()[_dense(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.dense()[_dense(key)] = _dense(value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.dense(), name)

    def assigned_to(self, array: Traced, mask: Traced) -> Node:
        """The value of an assignment to elements of the same mask."""
        if self._is_copied:
            raise UnsupportedError("an assignment of an array of computed length to elements chosen by a mask")
        if not is_congruent(mask.node, self._mask_node) or not symbolic_dims.same_shape(
            self._node.shape, array.extents
        ):
            raise UnsupportedError("elements chosen by different masks")
        if not np.can_cast(self._node.dtype, array.node.dtype, "unsafe"):
            raise UnsupportedError("an assignment between dtypes")
        return builder.cast(self._node, array.node.dtype)


def _has_elements(value: Any) -> bool:
    """Whether an operand has elements that meet those of a copy one by one."""
    if type(value) is Masked:
        return True
    if isinstance(value, RunTimeIterable):
        return True
    return value.ndim > 0 if type(value) is Traced else isinstance(value, np.ndarray | list | tuple)


def _dense(value: Any) -> Any:
    """The copy of selected elements; other values as they are."""
    return value.dense() if type(value) is Masked else value


UNSUPPORTED_METHODS = {
    "array": "elements chosen by a mask", "len": "the number of elements chosen by a mask",
    "iter": "a loop over elements chosen by a mask", "bool": "the truth of elements chosen by a mask",
}  # fmt: skip
"""By special methods that need the number of elements while tracing: the reason of the fallback."""


def _operators() -> None:
    def forward(ufunc: Any) -> Any:
        return lambda self, other: _operate(self, ufunc, self, other)

    def backward(ufunc: Any) -> Any:
        return lambda self, other: _operate(self, ufunc, other, self)

    def in_place(ufunc: Any) -> Any:
        return lambda self, other: self._operate_in_place(ufunc, other)

    def applied(ufunc: Any) -> Any:
        return lambda self: ufunc(self)

    def unsupported(reason: str) -> Any:
        def method(self: Masked, *_: Any, **__: Any) -> Any:
            raise UnsupportedError(reason)

        return method

    for name, ufunc in (OPERATORS | COMPARISONS).items():
        if name != "matmul":
            setattr(Masked, f"__{name}__", forward(ufunc))
    for name, ufunc in OPERATORS.items():
        if name != "matmul":
            setattr(Masked, f"__r{name}__", backward(ufunc))
            setattr(Masked, f"__i{name}__", in_place(ufunc))
    for name, unary in UNARY_OPERATORS.items():
        setattr(Masked, f"__{name}__", applied(unary))
    for name, reason in UNSUPPORTED_METHODS.items():
        setattr(Masked, f"__{name}__", unsupported(reason))


def _operate(masked: Masked, ufunc: Any, left: Any, right: Any) -> Any:
    """An operator, applied to all elements under the mask."""
    if masked._needs_copy((left, right)):
        return ufunc(_dense(left), _dense(right))
    operands = [masked._operand(operand) for operand in (left, right)]
    result = SERVICES["operate"](masked._array.tracer, ufunc, *operands)
    if type(result) is not Traced or not symbolic_dims.same_shape(result.extents, masked._node.shape):
        raise UnsupportedError("elements chosen by a mask meet an array of another shape")
    return masked._with_mask(result, operands)


_operators()
