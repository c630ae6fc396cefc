"""What traced code has in place of an array or a number: it does what NumPy's own would, and adds to the graph."""

import importlib
import operator
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from jitkernels.errors import TracingError
from jitkernels.frontends.frozen import Frozen
from jitkernels.frontends.storage import Storage, View
from jitkernels.frontends.tables import METHODS, SERVICES, TABLE
from jitkernels.frontends.tracer import NUMPY, Tracer, is_ours, no_operand, refuse
from jitkernels.frontends.whole import Whole, as_whole
from jitkernels.graph import construct, extents
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.extents import Number
from jitkernels.graph.ir import Node
from jitkernels.graph.scalars import is_known

MOST_ROWS = 4096
PYTHON = {"f": float, "i": int, "b": bool}


class Traced:
    """An array, a NumPy scalar (`is_scalar`) or a Python number (`is_weak`) of a trace.

    Python's floats come from anywhere, its ints and bools from loops: others are `Whole`, or decided.
    """

    __slots__ = ("_tracer", "_view", "is_scalar", "is_weak")
    __array_priority__ = 1000.0

    def __init__(self, tracer: Tracer, view: View, *, is_scalar: bool = False, is_weak: bool = False) -> None:
        self._tracer, self._view = tracer, view
        self.is_scalar, self.is_weak = is_scalar, is_weak

    @property
    def tracer(self) -> Tracer:
        """The trace. Raises TracingError after its end."""
        if not self._tracer.is_open:
            raise TracingError(
                "an array of a finished trace is used: a function that jit compiles gives its results by `return`, "
                "and expected nothing of them to be kept elsewhere"
            )
        return self._tracer

    @property
    def view(self) -> View:
        self.tracer  # noqa: B018  # which is checked
        return self._view

    @property
    def node(self) -> Node:
        return self.view.node

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """What `isinstance` is to see, as the function was not written for anything else."""
        if self.is_weak:
            return self.python  # type: ignore[no-any-return]
        return np.dtype(self._view.storage.node.dtype).type if self.is_scalar else np.ndarray

    @property
    def python(self) -> Any:
        """Python's type of a number; None for what is none of Python's."""
        return PYTHON[np.dtype(self._view.storage.node.dtype).kind] if self.is_weak else None

    def region(self, index_map: Any, shape: Any, *, is_readonly: bool = False) -> "Traced":
        """A view of this one."""
        return Traced(self.tracer, self.view.region(index_map, shape, is_readonly=is_readonly))

    # What arrays tell of themselves

    @property
    def shape(self) -> tuple[Any, ...]:
        return tuple(as_whole(self._tracer, extent) for extent in self._view.shape)

    @shape.setter
    def shape(self, _: Any) -> None:
        raise UnknownError("assignment to shape")

    @property
    def extents(self) -> tuple[Number, ...]:
        return self._view.shape

    @property
    def ndim(self) -> int:
        return len(self._view.shape)

    @property
    def dtype(self) -> Any:
        return np.dtype(self._view.storage.node.dtype)

    @property
    def size(self) -> Any:
        return as_whole(self._tracer, extents.product(self._view.shape))

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
        return self

    @property
    def imag(self) -> "Traced":
        zeros = TABLE[np.zeros_like](self, order="A")
        if self.is_scalar:
            zeros.is_scalar, zeros.is_weak = True, self.is_weak
            return zeros  # type: ignore[no-any-return]
        return zeros.region(tuple(construct.identity_map(self.ndim)), self.extents, is_readonly=True)  # type: ignore[no-any-return]

    @property
    def flat(self) -> Any:
        raise UnknownError("ndarray.flat")

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of unsized object")
        return int(self._view.shape[0])

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        count = len(self)
        if count > MOST_ROWS:
            raise UnknownError(f"a loop over {count} rows")
        return map(self.__getitem__, range(count))  # each as it is by then

    def __repr__(self) -> str:
        caller = sys._getframe(1).f_code.co_filename
        if self.tracer.is_open and not is_ours(caller) and not caller.startswith(NUMPY):
            raise UnknownError("the text of an array or number")
        return f"<traced {self.dtype} [{', '.join(map(str, self._view.shape))}]>"

    # Indexing

    def __getitem__(self, key: Any) -> Any:
        return SERVICES["getitem"](self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        if self.is_scalar:
            raise TypeError(
                f"'{self.dtype.type.__module__}.{self.dtype.name}' object does not support item assignment"
            )
        SERVICES["setitem"](self, key, value)

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    # NumPy's protocols

    def __array_ufunc__(self, ufunc: Any, way: str, *inputs: Any, **keywords: Any) -> Any:
        return SERVICES["ufunc"](self.tracer, ufunc, way, inputs, keywords)

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        return SERVICES["function"](self.tracer, function, arguments, keywords)

    def __jitkernels_call__(self, row: Any, function: Any, arguments: Any, keywords: Any) -> Any:
        calls = importlib.import_module("jitkernels.named.calls")  # which knows what rows are
        return calls.call(self.tracer, row, function, arguments, keywords)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise UnknownError(
            "code that NumPy does not pass on to arrays of other libraries asks for the values"
        )

    # Values: known for what follows from numbers among the arguments alone

    def _value(self) -> Any:
        if self._view.shape:
            refuse(self)
        return self.tracer.number(self.node, self)

    @property
    def number_leaf(self) -> int | None:
        """Which argument this is, if it is one of NumPy's ints."""
        node = self.node
        if not self.is_scalar or node.operation != "input" or self.dtype.kind not in "iu":
            return None
        leaf: int = node.options["index"]
        return leaf if leaf < len(self.tracer.leaves) else None

    def __bool__(self) -> bool:
        if self._view.shape and not all(extents.same(one, 1) for one in self._view.shape):
            size = self.size
            if size != 1:
                refuse(self)
        found = SERVICES["truth"](self)
        return bool(self._value() if found is None else found)

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
        return hash(self._value())

    def __round__(self, digits: Any = None) -> Any:
        return round(float(self) if self.is_weak else self._value(), digits)

    def __format__(self, spec: str) -> str:
        return format(self._value(), spec)

    def item(self, *index: Any) -> Any:
        found = self[index] if index else self
        return SERVICES["item"](found) if type(found) is Traced else found

    def tolist(self) -> Any:
        if self.ndim:
            raise UnknownError("ndarray.tolist")
        return self.item()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self.is_weak:
            return getattr(float(self), name)
        found = METHODS.get(name)
        if found is None:
            if hasattr(np.ndarray, name):
                raise UnknownError(f"ndarray.{name}")
            raise AttributeError(f"'numpy.ndarray' object has no attribute {name!r}")
        return lambda *arguments, **keywords: found(self, *arguments, **keywords)

    # Operators

    def _operate(self, ufunc: Any, left: Any, right: Any) -> Any:
        return SERVICES["operate"](self.tracer, ufunc, left, right)

    def _assign(self, ufunc: Any, other: Any) -> Any:
        if self.is_scalar or self.is_weak:
            return self._operate(ufunc, self, other)
        return SERVICES["ufunc"](self.tracer, ufunc, "__call__", (self, other), {"out": (self,)})

    if TYPE_CHECKING:  # which `_operators` makes

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


def _operators() -> None:
    table = {
        "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide,
        "floordiv": np.floor_divide, "mod": np.remainder, "pow": np.power, "matmul": np.matmul,
        "lshift": np.left_shift, "rshift": np.right_shift, "and": np.bitwise_and, "or": np.bitwise_or,
        "xor": np.bitwise_xor,
    }  # fmt: skip
    compared = {
        "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
        "ge": np.greater_equal,
    }  # fmt: skip

    def forward(ufunc: Any) -> Any:
        return lambda self, other: self._operate(ufunc, self, other)

    def backward(ufunc: Any) -> Any:
        return lambda self, other: self._operate(ufunc, other, self)

    def assign(ufunc: Any) -> Any:
        return lambda self, other: self._assign(ufunc, other)

    for name, ufunc in table.items():
        setattr(Traced, f"__{name}__", forward(ufunc))
        setattr(Traced, f"__r{name}__", backward(ufunc))
        setattr(Traced, f"__i{name}__", assign(ufunc))
    for name, ufunc in compared.items():
        setattr(Traced, f"__{name}__", forward(ufunc))


_operators()


def fresh(tracer: Tracer, node: Node, *, is_scalar: bool = False, is_c: bool | None = True) -> Traced:
    """A new array; or a NumPy scalar, for a 0-d node."""
    tracer.refuse_endless(node)
    return Traced(tracer, View(Storage(node, is_c=is_c), node.shape), is_scalar=is_scalar and not node.shape)


def result(tracer: Tracer, node: Node, *operands: Any) -> Traced:
    """What an operation of these operands gives: 0-d is a scalar, and memory is laid out as theirs is."""
    is_c = all(one.view.is_c() is True for one in operands if type(one) is Traced and one.ndim > 1)
    return fresh(tracer, node, is_scalar=True, is_c=True if is_c or node.ndim < 2 else None)


def traced(tracer: Tracer, value: Any) -> Traced:
    """Any operand as an array of the trace, as `numpy.asarray` has it."""
    if type(value) is Traced:
        return value
    if type(value) is Whole:
        return fresh(tracer, value.node)
    if isinstance(value, np.ndarray):
        return fresh(tracer, known_array(tracer, value))
    if isinstance(value, np.generic):
        return fresh(tracer, scalar_node(value), is_scalar=True)
    if isinstance(value, bool | int | float):
        return fresh(tracer, scalar_node(np.asarray(value)[()]))
    if isinstance(value, list | tuple):
        return SERVICES["stacked"](tracer, value)  # type: ignore[no-any-return]
    raise no_operand(value)


def known_array(tracer: Tracer, array: Any) -> Node:
    """The node of a concrete array. Raises UnknownError for one that the function was not seen to make."""
    if not is_known(array.dtype) or type(array) not in (np.ndarray, Frozen):
        raise UnknownError(f"an array of dtype {array.dtype}")
    if type(array) is Frozen:
        return tracer.frozen_array(array)
    if id(array) not in tracer.made:
        raise UnknownError("an array that is no argument, global or closure variable of the function")
    return tracer.constant_array(array)


def scalar_node(value: Any) -> Node:
    """A NumPy scalar's node."""
    if not is_known(value.dtype):
        raise UnknownError(f"a number of dtype {value.dtype}")
    return construct.constant(value.item(), value.dtype.name)
