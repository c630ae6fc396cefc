"""Python ints of a trace: extents of arrays and int arguments, which code can serve whatever they are.

They do what ints do. Arithmetic keeps them symbols; a comparison becomes a guard; where C code wants a plain int, the
code is for that one.
"""

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from jitkernels.frontends.tables import SERVICES
from jitkernels.frontends.tracer import INT64, Binding, Tracer
from jitkernels.graph import construct
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.extents import Extent, Number
from jitkernels.graph.ir import Node

SMALL = 2**31


class Whole:
    """An int: of an argument (`leaf`), or an expression of extents."""

    __slots__ = ("_extent", "_node", "leaf", "tracer")

    def __init__(self, tracer: Tracer, extent: Number = None, *, leaf: int | None = None) -> None:
        self.tracer, self._extent, self.leaf = tracer, extent, leaf
        self._node: Node | None = None

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return int

    @property
    def extent(self) -> Number:
        """As an extent. An argument becomes a symbol when it is first asked for as one."""
        if self._extent is None:
            assert self.leaf is not None
            value = int(self.tracer.leaves[self.leaf])
            if abs(value) < 2 or abs(value) >= SMALL:
                self.tracer.guard(self.leaf, "is", self.tracer.leaves[self.leaf])
                self._extent = value
            else:
                name = f"k{self.leaf}"
                self.tracer.guard(self.leaf, "<=", SMALL)
                if value > 0:
                    self.tracer.guard(self.leaf, "<", 2, truth=False)
                else:
                    self.tracer.guard(self.leaf, "<", -1)
                self.tracer.guard(self.leaf, "<", -SMALL, truth=False)
                symbol = self.tracer.scope.symbol(name, abs(value))
                self.tracer.bindings.append(Binding(name, self.leaf, "value" if value > 0 else "negated"))
                self._extent = symbol if value > 0 else -symbol
        return self._extent

    @property
    def value(self) -> int:
        """The value now, which is not guarded."""
        if self._extent is None:
            assert self.leaf is not None
            return int(self.tracer.leaves[self.leaf])
        return self._extent.value if isinstance(self._extent, Extent) else int(self._extent)

    @property
    def node(self) -> Node:
        """As a 0-d number."""
        if self._node is None:
            if self.leaf is not None:
                return self.tracer.inputs[self.leaf]
            self._node = construct.extent(self.extent)
        return self._node

    def cast(self, dtype: str, kind: Any) -> Node:
        """As a 0-d number of a dtype; only ints that it holds will do, as with NumPy."""
        if kind.kind in "iu" and dtype != "int64":
            lowest, highest = _limits(kind)
            if not lowest <= self.value <= highest:
                raise OverflowError(f"Python integer {self.value} out of bounds for {dtype}")
            if self.leaf is not None:
                self.tracer.guard(self.leaf, "<", lowest, truth=False)
                if highest in INT64:  # all others are no more: compiled code could not look for those
                    self.tracer.guard(self.leaf, "<=", highest)
            elif isinstance(self.extent, Extent):
                self.extent.guard(self.extent - lowest, ">=")
                self.extent.guard(highest - self.extent, ">=")
        return construct.cast(self.node, dtype)

    def __index__(self) -> int:
        if self._extent is None:
            assert self.leaf is not None
            value = self.tracer.leaves[self.leaf]
            self.tracer.guard(self.leaf, "is", value)
            return int(value)
        return int(self._extent)

    __int__ = __trunc__ = __floor__ = __ceil__ = __index__

    def __float__(self) -> float:
        return float(int(self))

    def __bool__(self) -> bool:
        return bool(self.extent != 0)

    def __hash__(self) -> int:
        return hash(int(self))

    def __str__(self) -> str:
        return str(int(self))

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(int(self), spec)

    def __round__(self, digits: Any = None) -> Any:
        return self if digits is None else round(int(self), digits)

    if TYPE_CHECKING:  # which `_operators` makes

        def __mul__(self, other: Any) -> Any: ...
        def __rmul__(self, other: Any) -> Any: ...
        def __gt__(self, other: Any) -> bool: ...

    def __neg__(self) -> Any:
        return as_whole(self.tracer, -self.extent)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return as_whole(self.tracer, abs(self.extent))

    def __invert__(self) -> Any:
        return as_whole(self.tracer, -self.extent - 1)

    def __pow__(self, other: Any, modulo: Any = None) -> Any:
        if type(other) is int and 0 <= other <= 4 and modulo is None:
            return as_whole(self.tracer, self.extent**other)
        if modulo is None and (not _is_int(other) or other < 0):
            return SERVICES["operate"](self.tracer, np.power, self, other)
        return pow(int(self), int(other), modulo)

    def __rpow__(self, other: Any) -> Any:
        if type(other) is float:
            return SERVICES["operate"](self.tracer, np.power, other, self)
        return operator.pow(other, int(self))

    def __array_ufunc__(self, ufunc: Any, way: str, *inputs: Any, **keywords: Any) -> Any:
        return SERVICES["ufunc"](self.tracer, ufunc, way, inputs, keywords)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(int(self), name)


def _limits(kind: Any) -> tuple[int, int]:
    bits = kind.itemsize * 8
    return (0, 2**bits - 1) if kind.kind == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def as_whole(tracer: Tracer, extent: Number) -> Any:
    """An extent as traced code is to see it."""
    return Whole(tracer, extent) if isinstance(extent, Extent) else extent


def as_extent(value: Any) -> Number:
    """An int that traced code gave, as an extent."""
    if type(value) is Whole:
        return value.extent
    if isinstance(value, Extent):
        return value
    if type(value) is bool:
        raise UnknownError("a bool as a size")  # which NumPy refuses here and there
    argument = getattr(value, "number_leaf", None)
    if argument is not None and value.dtype != np.uint64:  # one of NumPy's ints
        return Whole(value.tracer, leaf=argument).extent
    number = operator.index(value)
    if number not in INT64:
        raise UnknownError("a number of more than 64 bits as a size, a place or a shift")
    return number


def _is_int(value: Any) -> bool:
    return type(value) is Whole or type(value) in (int, bool)


def _float_operation(left: Any, right: Any, function: Any) -> Any:
    """Arithmetic of an int and a float: with a float that is a plain number, which is one of the code, another one."""
    whole = left if type(left) is Whole else right
    other = right if whole is left else left
    if type(other) is float or _is_int(other):
        return function(*(SERVICES["weak"](whole.tracer, one) for one in (left, right)))
    return NotImplemented


def _operators() -> None:
    def with_ints(function: Any, *, is_swapped: bool) -> Any:
        def operate(self: Whole, other: Any) -> Any:
            left, right = (other, self) if is_swapped else (self, other)
            if not _is_int(other):
                return _float_operation(left, right, function)
            return as_whole(self.tracer, function(as_extent(left), as_extent(right)))

        return operate

    def with_numbers(function: Any, *, is_swapped: bool) -> Any:
        def operate(self: Whole, other: Any) -> Any:
            left, right = (other, self) if is_swapped else (self, other)
            if not _is_int(other):
                return NotImplemented
            return function(int(left), int(right))

        return operate

    def divide(left: Any, right: Any) -> Any:
        if _is_int(right) and not right:
            raise ZeroDivisionError("division by zero")
        whole = left if type(left) is Whole else right
        if (
            _is_int(left if whole is right else right)
            or type(left) is float
            or (type(right) is float and right)
        ):
            return SERVICES["quotient"](whole.tracer, left, right)
        return _float_operation(left, right, operator.truediv)

    def compared(function: Any) -> Any:
        def operate(self: Whole, other: Any) -> Any:
            if _is_int(other):
                return bool(function(self.extent, as_extent(other)))
            if type(other) is float:
                return function(int(self), other)
            return NotImplemented

        return operate

    for name in ("add", "sub", "mul", "floordiv", "mod"):
        function = getattr(operator, name)
        setattr(Whole, f"__{name}__", with_ints(function, is_swapped=False))
        setattr(Whole, f"__r{name}__", with_ints(function, is_swapped=True))
    for name in ("lshift", "rshift", "and_", "or_", "xor", "divmod"):
        function = divmod if name == "divmod" else getattr(operator, name)
        setattr(Whole, f"__{name.strip('_')}__", with_numbers(function, is_swapped=False))
        setattr(Whole, f"__r{name.strip('_')}__", with_numbers(function, is_swapped=True))
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(Whole, f"__{name}__", compared(getattr(operator, name)))
    for name, function in (("truediv", divide), ("rtruediv", lambda self, other: divide(other, self))):
        setattr(Whole, f"__{name}__", function)


_operators()
