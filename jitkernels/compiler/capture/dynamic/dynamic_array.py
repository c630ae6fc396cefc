"""Arrays of computed length: an element is computed where a loop uses it, as memory for them has no size to plan.

``data[p[i]:p[i + 1]] @ x[indices[p[i]:p[i + 1]]]`` is one loop over the elements, without temporary arrays.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from jitkernels.compiler.capture.array_proxy import OPERATORS, UNARY_OPERATORS, Traced, fresh, traced
from jitkernels.compiler.capture.control_flow.iterables import LoopIterable, LoopRange, RunTimeIterable, element_loop
from jitkernels.compiler.capture.control_flow.loop_state import State, as_number
from jitkernels.compiler.capture.functionalization import Storage
from jitkernels.compiler.capture.ints import intervals
from jitkernels.compiler.capture.ints.int64_arithmetic import as_int
from jitkernels.compiler.capture.numpy.masked_proxy import Masked, is_congruent
from jitkernels.compiler.capture.numpy.ufuncs import kind_of, operand
from jitkernels.compiler.capture.override_registry import SERVICES, serves
from jitkernels.compiler.capture.symint import COMPARISONS, SymInt
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder, pytree, symbolic_dims
from jitkernels.compiler.ir.builder import elementwise
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.unsupported import UnknownSizeError

Source = tuple[Storage, Node]
"""A storage that elements are read from, and its value at the time of the operation."""

OVERLAP = "an assignment of elements of an array to others of it"


class DynamicArray(RunTimeIterable):
    """An array of computed length. `length`: a traced or concrete int. `depth`: the nesting depth where it was made."""

    __array_priority__ = 3000.0

    def __init__(self, tracer: Tracer, length: Any, dtype: Any) -> None:
        self.tracer, self.length, self.dtype = tracer, length, np.dtype(dtype)
        self.depth = tracer.depth

    # What subclasses define

    def at(self, index: Any) -> Any:
        """The element at an index that is surely in bounds."""
        raise NotImplementedError

    @property
    def sources(self) -> list[Source]:
        """What elements are read from."""
        raise NotImplementedError

    # Loops

    def loop_iterable(self) -> LoopIterable:
        self.check_unread()
        return LoopIterable(LoopRange(0, self.length), self.at)

    def each(self, body: Callable[[Any], None], state: State | None = None) -> None:
        """``for k in range(length): body(k)``; `state`: the variables that the body changes."""
        state = state or State((), lambda: (), lambda _: None, 0)
        SERVICES["for"](element_loop(self.length), None, body, state)

    # Attributes

    @property
    def ndim(self) -> int:
        return 1

    @property
    def shape(self) -> tuple[Any, ...]:
        return (self.length,)

    @property
    def size(self) -> Any:
        return self.length

    @property
    def itemsize(self) -> int:
        return int(self.dtype.itemsize)

    def __len__(self) -> int:
        raise UnknownSizeError("the length of an array, which is computed, as a number while tracing")

    def __iter__(self) -> Any:
        raise UnknownSizeError("an iteration over an array of computed length while tracing")

    def __bool__(self) -> bool:
        raise UnknownSizeError("the truth of an array of computed length")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise UnknownSizeError("an operation of an array of computed length")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        method = METHODS.get(name)
        if method is None:
            raise UnknownSizeError(f"{name} of an array of computed length")
        return lambda *arguments, **keywords: method(self, *arguments, **keywords)

    # Elements

    def checked_index(self, index: Any) -> Any:
        """The index of an element; calls in which it is out of bounds bail out."""
        if not is_int(index):
            raise UnknownSizeError("an index of an array of computed length that is no int")
        tracer, node, length = self.tracer, as_int(self.tracer, index), as_int(self.tracer, self.length)
        if not intervals.is_natural(intervals.interval(tracer, index)):
            node = Node("where", (elementwise("less", node, 0), elementwise("add", node, length), node), "int64", ())
            tracer.checks.append(elementwise("less", node, 0))
        tracer.checks.append(elementwise("greater_equal", node, length))
        return as_number(tracer, node, int)

    def __getitem__(self, key: Any) -> Any:
        if is_reversal(key):
            return self.reversed()
        if isinstance(key, slice | tuple) or key is Ellipsis or key is None:
            raise UnknownSizeError("a slice of an array of computed length")
        if isinstance(key, DynamicArray):
            return SERVICES["gather dynamic"](self, key)
        if type(key) is Traced and key.ndim and key.dtype.kind in "iu":
            return SERVICES["gather known"](self, key)
        self.check_unread()
        return self.at(self.checked_index(key))

    def reversed(self) -> "Elementwise":
        """``array[::-1]``, which writes do not reach."""
        last = elementwise("subtract", as_int(self.tracer, self.length), 1)

        def read(index: Any) -> Any:
            node = elementwise("subtract", last, as_int(self.tracer, index))
            intervals.note(self.tracer, node, intervals.interval(self.tracer, index))
            return self.at(as_number(self.tracer, node, int))

        if self.ndim != 1:
            raise UnknownSizeError("rows of computed number in reverse order")
        return Elementwise(self.tracer, self.length, self.dtype, read, self.sources)

    def check_unread(self) -> None:
        """Check what the elements that are not read would raise."""

    def __setitem__(self, key: Any, value: Any) -> None:
        raise UnknownSizeError("an assignment to elements of an array of computed length")

    # NumPy's protocols

    def __array_ufunc__(self, ufunc: Any, way: str, *inputs: Any, **keywords: Any) -> Any:
        if way == "reduce" and len(inputs) == 1 and inputs[0] is self:
            return SERVICES["reduce dynamic"](self, ufunc, keywords)
        if ufunc is np.matmul and way == "__call__" and not keywords:
            return SERVICES["dot dynamic"](*inputs)
        if way != "__call__" or keywords or ufunc.nout != 1 or ufunc.signature is not None:
            raise UnknownSizeError(f"numpy.{ufunc.__name__} of arrays of computed length, with options")
        return applied(self.tracer, ufunc, inputs)

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        return call_function(function, arguments, keywords)

    def operate_in_place(self, ufunc: Any, other: Any) -> Any:  # noqa: ARG002  # of subclasses
        """An in-place operator."""
        raise UnknownSizeError(f"numpy.{ufunc.__name__} in place")


@serves("function dynamic")
def call_function(function: Any, arguments: Any, keywords: Any) -> Any:
    """A NumPy function, some of whose arguments are of computed length."""
    implementation = FUNCTIONS.get(function)
    if implementation is None:
        raise UnknownSizeError(f"numpy.{function.__name__} of an array of computed length")
    arguments, keywords = pytree.tree_map(
        lambda leaf: leaf.dense() if type(leaf) is Masked else leaf, (arguments, keywords)
    )
    return implementation(*arguments, **keywords)


METHODS: dict[str, Callable[..., Any]] = {}
"""Methods of arrays of computed length."""
FUNCTIONS: dict[Any, Callable[..., Any]] = {}
"""NumPy functions of arrays of computed length."""


def is_reversal(key: Any) -> bool:
    """Whether a key is ``::-1``."""
    return type(key) is slice and key.start is None and key.stop is None and type(key.step) is int and key.step == -1


def is_int(value: Any) -> bool:
    """Whether a value is an int, which the trace or only the compiled code knows."""
    if type(value) is Traced:
        return not value.ndim and value.dtype.kind in "iu" and value.dtype != "uint64"
    return type(value) in (int, SymInt)


class Elementwise(DynamicArray):
    """Elements that are computed from those of others at the same index. They keep the values of its sources.

    `gathers`: arrays that are read at indices, and these.
    """

    being_updated: ClassVar[list[Storage]] = []
    """Arrays that change element by element while elements are computed from the same elements of them."""

    def __init__(
        self, tracer: Tracer, length: Any, dtype: Any, read: Callable[[Any], Any], sources: Sequence[Source]
    ) -> None:
        super().__init__(tracer, length, dtype)
        self._read, self._sources = read, list(sources)
        self._is_checked = True
        self.gathers: list[tuple[Traced, DynamicArray]] = []

    @property
    def sources(self) -> list[Source]:
        return self._sources

    def at(self, index: Any) -> Any:
        if any(storage.node is not node and storage not in self.being_updated for storage, node in self._sources):
            raise UnknownSizeError("an array changes while elements computed from a slice of it are in use")
        element = self._read(index)
        return fresh(self.tracer, builder.cast(element.node, self.dtype.name), is_scalar=True)

    def check_unread(self) -> None:
        if self._is_checked:
            return
        if self.tracer.depth != self.depth:
            raise UnknownSizeError("single elements of an array that is gathered at a slice of indices")
        self._is_checked = True
        self.each(self.at)

    def operate_in_place(self, ufunc: Any, other: Any) -> Any:
        result = applied(self.tracer, ufunc, (self._copy(), other))
        if not np.can_cast(result.dtype, self.dtype, "same_kind") or result.depth != self.depth:
            raise UnknownSizeError(f"numpy.{ufunc.__name__} in place")
        self._read, self._sources, self.gathers = result.at, result.sources, result.gathers
        return self

    def _copy(self) -> "Elementwise":
        copied = Elementwise(self.tracer, self.length, self.dtype, self._read, self._sources)
        copied.gathers = self.gathers
        return copied

    def reads_only_at(self, array: Traced, indices: DynamicArray) -> bool:
        """Whether these elements alone are read of an array and of its memory, as they are now."""
        storage = array.view.storage
        reads = [node for source, node in self._sources if source is storage]
        gathers = [(view, at) for view, at in self.gathers if view.view.storage is storage]
        return (
            len(gathers) == len(reads)
            and all(node is storage.node for node in reads)
            and all(at is indices and (view is array or view.view is array.view) for view, at in gathers)
        )

    @classmethod
    def unchecked(cls, *arguments: Any) -> "Elementwise":
        """One whose elements may raise where they are read."""
        result = cls(*arguments)
        result._is_checked = False
        return result


class KnownElements(DynamicArray):
    """An array of a known length among operands."""

    def __init__(self, array: Traced) -> None:
        super().__init__(array.tracer, array.shape[0], array.dtype)
        self.array = array

    @property
    def sources(self) -> list[Source]:
        storage = self.array.view.storage
        return [(storage, storage.node)]

    def at(self, index: Any) -> Any:
        return self.array[index]


def require_same_length(tracer: Tracer, first: Any, other: Any) -> None:
    """Bail out of calls in which two lengths differ: NumPy raises, or broadcasts one element."""
    left, right = as_int(tracer, first), as_int(tracer, other)
    if not is_congruent(left, right):
        tracer.checks.append(elementwise("not_equal", left, right))


def as_operand(tracer: Tracer, value: Any) -> Any:
    """An operand: an array of elements along the only dimension, or a number."""
    if type(value) is Masked:
        value = value.dense()
    if isinstance(value, list | tuple | np.ndarray):
        value = traced(tracer, value)
    if type(value) is Traced and value.ndim == 1 and not symbolic_dims.same(value.extents[0], 1):
        return KnownElements(value)
    if isinstance(value, DynamicArray) or (type(value) is Traced and value.ndim):
        if value.ndim != 1 or type(value) is Traced:
            raise UnknownSizeError("an array of computed length meets one of other dimensions")
        return value
    return operand(tracer, value)


def lazy_or_copied(elements: Elementwise) -> Any:
    """Elements that NumPy puts into a new array: as they are, or in memory where the function is traced with copies."""
    tracer = elements.tracer
    if tracer.copies_dynamic:
        return SERVICES["materialize"](elements)
    tracer.needs_copies = True  # should the trace fail
    return elements


def applied(tracer: Tracer, function: Any, inputs: Sequence[Any], dtype: Any = None) -> Any:
    """A function of one element of each operand; `function`: a ufunc, or with a result `dtype` any function."""
    operands = [as_operand(tracer, value) for value in inputs]
    arrays = [value for value in operands if isinstance(value, DynamicArray)]
    first = next(array for array in arrays if type(array) is not KnownElements)
    for other in arrays:
        if other is not first:
            require_same_length(tracer, first.length, other.length)
    if dtype is None:
        kinds = tuple(v.dtype.name if isinstance(v, DynamicArray) else kind_of(v) for v in operands)
        dtype = builder.ufunc_loop(function, kinds, None, "same_kind")[-1]

    def read(index: Any) -> Any:
        parts = [value.at(index) if isinstance(value, DynamicArray) else value for value in operands]
        if isinstance(function, np.ufunc):
            return SERVICES["ufunc"](tracer, function, "__call__", tuple(parts), {})
        return function(*parts)

    result = Elementwise(tracer, first.length, dtype, read, [source for array in arrays for source in array.sources])
    result.gathers = [gather for array in arrays if type(array) is Elementwise for gather in array.gathers]
    if any(type(array) is Elementwise and not array._is_checked for array in arrays):
        result._is_checked = False
    return lazy_or_copied(result)


def _operators() -> None:
    def forward(ufunc: Any) -> Any:
        return lambda self, other: self.__array_ufunc__(ufunc, "__call__", self, other)

    def backward(ufunc: Any) -> Any:
        return lambda self, other: self.__array_ufunc__(ufunc, "__call__", other, self)

    def in_place(ufunc: Any) -> Any:
        return lambda self, other: self.operate_in_place(ufunc, other)

    def alone(ufunc: Any) -> Any:
        return lambda self: self.__array_ufunc__(ufunc, "__call__", self)

    for name, ufunc in (OPERATORS | COMPARISONS).items():
        setattr(DynamicArray, f"__{name}__", forward(ufunc))
    for name, ufunc in OPERATORS.items():
        setattr(DynamicArray, f"__r{name}__", backward(ufunc))
        setattr(DynamicArray, f"__i{name}__", in_place(ufunc))
    for name, ufunc in UNARY_OPERATORS.items():
        setattr(DynamicArray, f"__{name}__", alone(ufunc))


_operators()
DynamicArray.__hash__ = object.__hash__  # type: ignore[method-assign]  # comparisons are elementwise
