"""Array proxies (tracers): stand for arrays and numbers in traced code, and record operations in the graph."""

import operator
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from jitkernels.compiler.capture.functionalization import PlaneView, Storage, View
from jitkernels.compiler.capture.override_registry import METHODS, SERVICES, TABLE
from jitkernels.compiler.capture.static_arrays import Frozen
from jitkernels.compiler.capture.symint import COMPARISONS, SymInt, as_symint
from jitkernels.compiler.capture.trace_context import NUMPY, Tracer, is_package_file, refuse, unsupported_operand
from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.elementwise_ops import PLANES, is_known
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import Number
from jitkernels.core import hooks
from jitkernels.errors import TracingError

MAX_UNROLLED_ROWS = 4096
PYTHON = {"f": float, "i": int, "b": bool, "c": complex}


class Traced:
    """An array, a NumPy scalar (`is_scalar`) or a Python number (`is_weak`) of a trace.

    Python floats come from anywhere, ints and bools from loops: other Python ints are `SymInt`, or concrete.
    """

    __slots__ = ("_tracer", "_view", "is_scalar", "is_weak")
    __array_priority__ = 1000.0

    def __init__(self, tracer: Tracer, view: View, *, is_scalar: bool = False, is_weak: bool = False) -> None:
        self._tracer, self._view = tracer, view
        self.is_scalar, self.is_weak = is_scalar, is_weak

    @property
    def tracer(self) -> Tracer:
        """The trace. Raises TracingError once it has ended."""
        if not self._tracer.is_open:
            raise TracingError(
                "an array of a finished trace is used: expected a function that jit compiles to return its results, "
                "got one that stores them elsewhere"
            )
        return self._tracer

    @property
    def view(self) -> View:
        self.tracer  # noqa: B018  # raises once the trace has ended
        return self._view

    @property
    def node(self) -> Node:
        return self.view.node

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The type that `isinstance` sees: functions are written for NumPy's types."""
        if self.is_weak:
            return self.python  # type: ignore[no-any-return]
        return self.dtype.type if self.is_scalar else np.ndarray

    @property
    def python(self) -> Any:
        """The Python type of a weak number; None for all else."""
        return PYTHON[self.dtype.kind] if self.is_weak else None

    def region(self, index_map: Any, shape: Any, *, is_readonly: bool = False) -> "Traced":
        """A view of this one."""
        return Traced(self.tracer, self.view.region(index_map, shape, is_readonly=is_readonly))

    # Array attributes

    @property
    def shape(self) -> tuple[Any, ...]:
        return tuple(as_symint(self._tracer, extent) for extent in self._view.shape)

    @shape.setter
    def shape(self, shape: Any) -> None:
        storage, tracer = self._view.storage, self.tracer
        if self.is_scalar or (storage.leaf is not None and self._view.parent is None):
            raise UnsupportedError("an assignment to the shape of an argument")
        if tracer.depth and storage.born < tracer.region_start:
            raise UnsupportedError("an assignment, in a loop or branch, to the shape of an array from outside of it")
        if self._view.is_c() is not True:
            raise UnsupportedError("an assignment to the shape of an array that is not known to be contiguous")
        self._view = METHODS["reshape"](self, shape).view

    strides = property(lambda self: SERVICES["strides"](self))

    @property
    def extents(self) -> tuple[Number, ...]:
        return self._view.shape

    @property
    def ndim(self) -> int:
        return len(self._view.shape)

    @property
    def dtype(self) -> Any:
        return np.dtype(self._view.dtype)

    @property
    def size(self) -> Any:
        return as_symint(self._tracer, symbolic_dims.product(self._view.shape))

    @property
    def itemsize(self) -> int:
        return int(self.dtype.itemsize)

    @property
    def nbytes(self) -> Any:
        return self.size * self.itemsize

    @property
    def T(self) -> Any:  # noqa: N802  # NumPy's name
        return METHODS["transpose"](self)

    @property
    def mT(self) -> Any:  # noqa: N802  # NumPy's name
        if self.ndim < 2:
            raise ValueError("matrix transpose with ndim < 2 is undefined")
        return METHODS["swapaxes"](self, -1, -2)

    @property
    def real(self) -> "Traced":
        return self._plane("real") if self.dtype.kind == "c" else self

    @real.setter
    def real(self, value: Any) -> None:
        self.real[...] = value

    @property
    def imag(self) -> "Traced":
        if self.dtype.kind == "c":
            return self._plane("imag")
        zeros = TABLE[np.zeros_like](self, order="A")
        if self.is_scalar:
            zeros.is_scalar, zeros.is_weak = True, self.is_weak
            return zeros  # type: ignore[no-any-return]
        return zeros.region(tuple(builder.identity_map(self.ndim)), self.extents, is_readonly=True)  # type: ignore[no-any-return]

    @imag.setter
    def imag(self, value: Any) -> None:
        if self.dtype.kind != "c":
            raise TypeError("array does not have imaginary part to set")
        self.imag[...] = value

    def _plane(self, name: str) -> "Traced":
        """The real or imaginary parts: a view of an array, a number of a number."""
        if self.is_scalar:
            node = Node(name, (self.node,), PLANES[self.dtype.name], ())
            return Traced(self.tracer, View(Storage(node), ()), is_scalar=True, is_weak=self.is_weak)
        return Traced(self.tracer, PlaneView(self.view, name))

    @property
    def flat(self) -> Any:
        raise UnsupportedError("ndarray.flat")

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of unsized object")
        return int(self._view.shape[0])

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        count = len(self)
        if count > MAX_UNROLLED_ROWS:
            raise UnsupportedError(f"a loop over {count} rows")
        return map(self.__getitem__, range(count))  # rows are read lazily, after earlier iterations' writes

    def __repr__(self) -> str:
        caller = sys._getframe(1).f_code.co_filename
        if self.tracer.is_open and not is_package_file(caller) and not caller.startswith(NUMPY):
            raise UnsupportedError("the text of an array or number")
        return f"<traced {self.dtype} [{', '.join(map(str, self._view.shape))}]>"

    # Indexing

    def __getitem__(self, key: Any) -> Any:
        return SERVICES["getitem"](self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        if self.is_scalar:
            raise TypeError(f"'{self.dtype.type.__module__}.{self.dtype.name}' object does not support item assignment")
        SERVICES["setitem"](self, key, value)

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    # NumPy's protocols

    def __array_ufunc__(self, ufunc: Any, way: str, *inputs: Any, **keywords: Any) -> Any:
        return SERVICES["ufunc"](self.tracer, ufunc, way, inputs, keywords)

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        return SERVICES["function"](self.tracer, function, arguments, keywords)

    def __jitkernels_call__(self, row: Any, function: Any, arguments: Any, keywords: Any) -> Any:
        return hooks.trace_kernel(self.tracer, row, function, arguments, keywords)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise UnsupportedError("code outside NumPy's array protocols needs the values of a traced array")

    # Concretization: only of values that depend on number arguments alone

    def _value(self) -> Any:
        if self._view.shape:
            refuse(self)
        value = self.tracer.number(self.node, self)
        return complex(value) if self.python is complex else value

    @property
    def number_leaf(self) -> int | None:
        """The index of the argument that this is, if it is a NumPy int."""
        node = self.node
        if not self.is_scalar or node.operation != "input" or self.dtype.kind not in "iu":
            return None
        leaf: int = node.options["index"]
        return leaf if leaf < len(self.tracer.leaves) else None

    def __bool__(self) -> bool:
        if self._view.shape and not all(symbolic_dims.same(extent, 1) for extent in self._view.shape):
            size = self.size
            if size != 1:
                refuse(self)
        truth = SERVICES["truth"](self)
        return bool(self._value() if truth is None else truth)

    def __int__(self) -> int:
        return int(self._value())

    def __float__(self) -> float:
        return float(self._value())

    def __complex__(self) -> complex:
        return complex(self._value())

    def __index__(self) -> int:
        if self.dtype.kind not in "iu":
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        return operator.index(self._value())

    def __hash__(self) -> int:
        if not (self.is_scalar or self.is_weak):
            raise TypeError("unhashable type: 'numpy.ndarray'")
        return SERVICES["hash"](self)  # type: ignore[no-any-return]

    def __round__(self, digits: Any = None) -> Any:
        return SERVICES["round"](self, digits)

    def __format__(self, spec: str) -> str:
        return format(self._value(), spec)

    def item(self, *index: Any) -> Any:
        element = self[index] if index else self
        return SERVICES["item"](element) if type(element) is Traced else element

    def tolist(self) -> Any:
        if self.ndim:
            raise UnsupportedError("ndarray.tolist")
        return self.item()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in METHODS:
            raise AttributeError(name)
        if self.is_weak and name != "conjugate":
            return getattr(self.python(self), name)
        method = METHODS.get(name)
        if method is None:
            if hasattr(np.ndarray, name):
                raise UnsupportedError(f"ndarray.{name}")
            raise AttributeError(f"'numpy.ndarray' object has no attribute {name!r}")
        return lambda *arguments, **keywords: method(self, *arguments, **keywords)

    def _operate(self, ufunc: Any, left: Any, right: Any) -> Any:
        return SERVICES["operate"](self.tracer, ufunc, left, right)

    def _assign(self, ufunc: Any, other: Any) -> Any:
        if self.is_scalar or self.is_weak:
            return self._operate(ufunc, self, other)
        return SERVICES["ufunc"](self.tracer, ufunc, "__call__", (self, other), {"out": (self,)})

    if TYPE_CHECKING:  # `_operators` defines these

        def __add__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __floordiv__(self, other: Any) -> Any: ...
        def __rfloordiv__(self, other: Any) -> Any: ...
        def __mod__(self, other: Any) -> Any: ...
        def __rmod__(self, other: Any) -> Any: ...
        def __eq__(self, other: object) -> Any: ...
        def __ne__(self, other: object) -> Any: ...

    def __neg__(self) -> Any:
        return SERVICES["sign"](self, np.negative)

    def __pos__(self) -> Any:
        return SERVICES["sign"](self, np.positive)

    def __abs__(self) -> Any:
        return SERVICES["sign"](self, np.absolute)

    def __invert__(self) -> Any:
        if self.python in (int, bool):
            return SERVICES["ints"](self.tracer, np.subtract, -1, self)
        return np.invert(self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self


OPERATORS: dict[str, Any] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide, "floordiv": np.floor_divide,
    "mod": np.remainder, "pow": np.power, "matmul": np.matmul, "lshift": np.left_shift, "rshift": np.right_shift,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip
"""The ufuncs of Python's binary operators, by the names of their special methods."""
UNARY_OPERATORS: dict[str, Any] = {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}


def _operators() -> None:
    def forward(ufunc: Any) -> Any:
        return lambda self, other: self._operate(ufunc, self, other)

    def backward(ufunc: Any) -> Any:
        return lambda self, other: self._operate(ufunc, other, self)

    def assign(ufunc: Any) -> Any:
        return lambda self, other: self._assign(ufunc, other)

    for name, ufunc in OPERATORS.items():
        setattr(Traced, f"__{name}__", forward(ufunc))
        setattr(Traced, f"__r{name}__", backward(ufunc))
        setattr(Traced, f"__i{name}__", assign(ufunc))
    for name, ufunc in COMPARISONS.items():
        setattr(Traced, f"__{name}__", forward(ufunc))


_operators()


def fresh(tracer: Tracer, node: Node, *, is_scalar: bool = False, is_c: bool | None = True) -> Traced:
    """A new array, or a NumPy scalar for a 0-d node."""
    tracer.limit_operations(node)
    tracer.failures.evaluate(node)
    return Traced(tracer, View(Storage(node, is_c=is_c), node.shape), is_scalar=is_scalar and not node.shape)


def result(tracer: Tracer, node: Node, *operands: Any) -> Traced:
    """The result of an operation of `operands`: 0-d is a scalar, and the memory layout follows theirs."""
    is_c = node.ndim < 2 or all(
        operand.view.is_c() is True or operand.view.is_in_c_order()
        for operand in operands
        if type(operand) is Traced and operand.ndim > 1
    )
    return fresh(tracer, node, is_scalar=True, is_c=True if is_c else None)


def traced(tracer: Tracer, value: Any) -> Traced:
    """Convert an operand to an array of the trace, as `numpy.asarray` does."""
    if type(value) is Traced:
        return value
    if type(value) is SymInt:
        return fresh(tracer, value.node)
    if isinstance(value, np.ndarray):
        return fresh(tracer, known_array(tracer, value))
    if isinstance(value, np.generic):
        return fresh(tracer, scalar_node(value), is_scalar=True)
    if isinstance(value, bool | int | float | complex):
        return fresh(tracer, scalar_node(np.asarray(value)[()]))
    if isinstance(value, list | tuple):
        return SERVICES["stacked"](tracer, value)  # type: ignore[no-any-return]
    raise unsupported_operand(value)


def known_array(tracer: Tracer, array: Any) -> Node:
    """The node of a concrete array. Raises UnsupportedError for one that the trace did not see the function create."""
    if not is_known(array.dtype) or type(array) not in (np.ndarray, Frozen):
        raise UnsupportedError(f"an array of dtype {array.dtype}")
    if type(array) is not Frozen and not tracer.accepts_arrays:
        raise UnsupportedError("an array that is no argument, global or closure variable of the function")
    return tracer.frozen_array(array)


def scalar_node(value: Any) -> Node:
    if not is_known(value.dtype):
        raise UnsupportedError(f"a number of dtype {value.dtype}")
    return builder.constant(value.item(), value.dtype.name)
