"""Symbolic ints (`SymInt`): extents of arrays and int arguments, for which compiled code works with any value.

Arithmetic keeps them symbolic; a comparison becomes a guard; where C code needs a concrete int, the code is
specialized.
"""

import math
import operator
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from jitkernels.compiler.capture.override_registry import SERVICES
from jitkernels.compiler.capture.trace_context import INT64, Binding, Tracer
from jitkernels.compiler.ir import builder, dim_bounds, symbolic_dims
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.graph import Node, number_of
from jitkernels.compiler.ir.symbolic_dims import Extent, Number, is_loop_variant
from jitkernels.compiler.ir.unsupported import UnknownSizeError

MAX_SYMBOL, MAX_ARRAY_ELEMENTS = 2**31, 2**40
"""Upper limits of symbols of arguments, and of numbers of elements of arrays."""


class SymInt:
    """A symbolic int: an argument (`leaf`), or an expression of extents."""

    __slots__ = ("_extent", "_node", "leaf", "tracer")

    def __init__(self, tracer: Tracer, extent: Number = None, *, leaf: int | None = None) -> None:
        self.tracer, self._extent, self.leaf = tracer, extent, leaf
        self._node: Node | None = None

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return int

    @property
    def extent(self) -> Number:
        """The value as an extent. An argument becomes a symbol at the first use as an extent."""
        if self._extent is None:
            assert self.leaf is not None
            if self.leaf in self.tracer.ints:
                self._extent = self.tracer.ints[self.leaf]
                return self._extent
            value = int(self.tracer.leaves[self.leaf])
            if abs(value) < 2 or abs(value) >= MAX_SYMBOL:
                self.tracer.guard(self.leaf, "is", self.tracer.leaves[self.leaf])
                self._extent = value
            else:
                name = f"k{self.leaf}"
                self.tracer.guard(self.leaf, "<=", MAX_SYMBOL)
                if value > 0:
                    self.tracer.guard(self.leaf, "<", 2, truth=False)
                else:
                    self.tracer.guard(self.leaf, "<", -1)
                self.tracer.guard(self.leaf, "<", -MAX_SYMBOL, truth=False)
                symbol = self.tracer.scope.symbol(name, abs(value))
                self.tracer.bindings.append(Binding(name, self.leaf, "value" if value > 0 else "negated"))
                self._extent = symbol if value > 0 else -symbol
            self.tracer.ints[self.leaf] = self._extent
        return self._extent

    @property
    def value(self) -> int:
        """The value in the traced call, without a guard."""
        if self._extent is None:
            assert self.leaf is not None
            return int(self.tracer.leaves[self.leaf])
        return self._extent.value if isinstance(self._extent, Extent) else int(self._extent)

    @property
    def node(self) -> Node:
        """The value as a 0-d node."""
        if self._node is None:
            if self.leaf is not None:
                return self.tracer.inputs[self.leaf]
            self._node = builder.extent(self.extent)
        return self._node

    def cast(self, dtype: str, kind: Any) -> Node:
        """The value as a 0-d node of a dtype, guarded to be in its range, as NumPy requires."""
        if kind.kind in "iu" and dtype != "int64":
            lowest, highest = _limits(kind)
            if not lowest <= self.value <= highest:
                raise OverflowError(f"Python integer {self.value} out of bounds for {dtype}")
            if self.leaf is not None:
                self.tracer.guard(self.leaf, "<", lowest, truth=False)
                # Larger bounds hold for every int64, and compiled code could not test them.
                if highest in INT64:
                    self.tracer.guard(self.leaf, "<=", highest)
            elif isinstance(self.extent, Extent):
                self.extent.guard(self.extent - lowest, ">=")
                if highest in INT64:
                    self.extent.guard(highest - self.extent, ">=")
        return builder.cast(self.node, dtype)

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

    if TYPE_CHECKING:  # `_operators` defines these

        def __mul__(self, other: Any) -> Any: ...
        def __rmul__(self, other: Any) -> Any: ...
        def __gt__(self, other: Any) -> bool: ...

    def __neg__(self) -> Any:
        return as_symint(self.tracer, -self.extent)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return as_symint(self.tracer, abs(self.extent))

    def __invert__(self) -> Any:
        return as_symint(self.tracer, -self.extent - 1)

    def __pow__(self, other: Any, modulo: Any = None) -> Any:
        if type(other) is int and 0 <= other <= 4 and modulo is None:
            power = self.extent**other
            return as_symint(self.tracer, power) if _within_64_bits(power) else int(self) ** other
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


def as_symint(tracer: Tracer, extent: Number) -> Any:
    """An extent as traced code sees it: a symbolic int, or an int."""
    return SymInt(tracer, extent) if isinstance(extent, Extent) else extent


def as_extent(value: Any) -> Number:
    """An int of traced code as an extent."""
    if type(value) is SymInt:
        return value.extent
    if isinstance(value, Extent):
        return value
    if type(value) is bool:
        raise UnsupportedError("a bool as a size")  # NumPy rejects it in some functions
    if getattr(value, "is_scalar", False):
        extent = known_extent(value.tracer, value.node)
        if extent is not None:  # a NumPy int, or an expression of some
            return extent
    number = operator.index(value)
    if number not in INT64:
        raise UnsupportedError("a number of more than 64 bits as a size, an index or a shift")
    return number


SUMS: dict[str, Any] = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul}
QUOTIENTS: dict[str, Any] = {"floor_divide": operator.floordiv, "remainder": operator.mod}


def known_extent(tracer: Tracer, node: Node, of_loop: Any = None) -> Number | None:
    """An expression of the int arguments as an extent; None for a node that depends on other values.

    `of_loop` gives extents of expressions of induction variables. Guards ensure that no result overflows its dtype.
    """
    if node.ndim or np.dtype(node.dtype).kind not in "iu":
        return None
    if (number := number_of(node)) is not None:
        return number
    if node.operation == "input":
        leaf = node.options["index"]
        is_int = isinstance(tracer.leaves[leaf], int | np.integer) and int(tracer.leaves[leaf]) in INT64
        return SymInt(tracer, leaf=leaf).extent if is_int else None
    if node.operation not in KNOWN:
        return None if of_loop is None else of_loop(tracer, node)
    operands: list[Number] = [known_extent(tracer, operand, of_loop) for operand in node.inputs]
    if any(operand is None for operand in operands):
        return None
    if node.operation in SUMS:
        extent = SUMS[node.operation](*operands)
    elif node.operation in QUOTIENTS:
        if any(map(is_loop_variant, operands)) or operands[1] == 0:
            return None if of_loop is None else of_loop(tracer, node)
        extent = QUOTIENTS[node.operation](*operands)
    else:
        (extent,) = operands
        extent = -extent if node.operation == "negative" else extent
    return extent if _fits_dtype(extent, np.dtype(node.dtype)) else None


KNOWN = frozenset({*SUMS, *QUOTIENTS, "negative", "cast"})


def _fits_dtype(extent: Number, kind: Any) -> bool:
    """Whether an int fits a dtype, with guards: a value that NumPy wraps around is no extent."""
    if kind == np.int64:
        return _fits_int64(extent)
    lowest, highest = _limits(kind)
    highest = min(highest, INT64[-1])
    for limit, is_upper in ((highest, True), (lowest, False)):
        end = dim_bounds.limit(extent, is_upper=is_upper)
        if end is None or not lowest <= symbolic_dims.value_of(end) <= highest:
            return False
        if isinstance(end, Extent):
            end.guard(limit - end if is_upper else end - limit, ">=")
    return True


def _fits_int64(extent: Number) -> bool:
    """Whether a NumPy int fits 64 bits, for extents as large as guards allow."""
    if not isinstance(extent, Extent):
        return extent in INT64
    if _max_magnitude(extent, MAX_ARRAY_ELEMENTS) in INT64:
        return True
    if is_loop_variant(extent):  # bounded by the limits of its loops
        ends = [dim_bounds.limit(extent, is_upper=is_upper) for is_upper in (True, False)]
        return all(end is not None and not is_loop_variant(end) and _fits_int64(end) for end in ends)
    if _max_magnitude(extent, MAX_SYMBOL) not in INT64:
        return False
    for atom in {atom for monomial in extent.terms for atom in monomial if not _is_argument(atom)}:
        symbol = Extent({(atom,): 1}, extent.scope)
        if symbol.value > MAX_SYMBOL:
            return False
        symbol.guard(MAX_SYMBOL - symbol, ">=")
    return True


def _within_64_bits(extent: Number) -> bool:
    """Whether an expression of Python's int arguments fits 64 bits, with guards that keep what it is made of small."""
    if not isinstance(extent, Extent) or is_loop_variant(extent) or _max_magnitude(extent, MAX_SYMBOL) in INT64:
        return True
    atoms = {atom for monomial in extent.terms for atom in monomial}
    if not any(map(_is_argument, atoms)):
        return True  # of arrays: their elements are in memory
    symbols = {atom: Extent({(atom,): 1}, extent.scope) for atom in atoms}
    values = {atom: max(abs(symbol.value), 2) for atom, symbol in symbols.items()}
    largest: dict[Any, int] = {}
    for shift in range(MAX_SYMBOL.bit_length()):
        limits = {atom: min(value << shift, max(MAX_SYMBOL, value)) for atom, value in values.items()}
        if _magnitude(extent, limits) not in INT64:
            break
        largest = limits
    for atom, limit in largest.items():
        extent.guard(limit - symbols[atom], ">=")
        if atom.operation:
            extent.guard(limit + symbols[atom], ">=")
    return bool(largest)


def _magnitude(extent: Extent, limits: Mapping[Any, int]) -> int:
    """An upper bound of the absolute value of an expression of limited atoms."""
    return sum(abs(count) * math.prod(limits[atom] for atom in monomial) for monomial, count in extent.terms.items())


def _is_argument(atom: Any) -> bool:
    """Whether a symbol is the value of an argument, which is small."""
    return not atom.operation and atom.text[0] == "k"


def _max_magnitude(extent: Extent, largest: int) -> int:
    """An upper bound of the absolute value of an expression whose extents do not exceed `largest`."""
    return sum(
        abs(count) * math.prod(MAX_SYMBOL if _is_argument(atom) else largest for atom in monomial)
        for monomial, count in extent.terms.items()
    )


def _is_int(value: Any) -> bool:
    return type(value) is SymInt or type(value) in (int, bool)


def _float_operation(left: Any, right: Any, function: Any) -> Any:
    """Arithmetic of an int with a concrete float or complex, a constant of the code; not with other operands."""
    whole = left if type(left) is SymInt else right
    other = right if whole is left else left
    if type(other) is float or _is_int(other):
        return function(*(SERVICES["weak"](whole.tracer, operand) for operand in (left, right)))
    if type(other) is complex:
        return function(*(SERVICES["weak"](whole.tracer, one) if one is whole else one for one in (left, right)))
    return NotImplemented


COMPARISONS = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
"""The ufuncs of Python's comparisons, by the names of their special methods."""


def _operators() -> None:
    def with_ints(function: Any, *, is_swapped: bool) -> Any:
        def operate(self: SymInt, other: Any) -> Any:
            left, right = (other, self) if is_swapped else (self, other)
            if not _is_int(other):
                return _float_operation(left, right, function)
            result = function(as_extent(left), as_extent(right))
            return as_symint(self.tracer, result) if _within_64_bits(result) else function(int(left), int(right))

        return operate

    def with_numbers(function: Any, *, is_swapped: bool) -> Any:
        def operate(self: SymInt, other: Any) -> Any:
            left, right = (other, self) if is_swapped else (self, other)
            if not _is_int(other):
                return NotImplemented
            return function(int(left), int(right))

        return operate

    def divide(left: Any, right: Any) -> Any:
        if _is_int(right) and not right:
            raise ZeroDivisionError("division by zero")
        whole = left if type(left) is SymInt else right
        if _is_int(left if whole is right else right) or type(left) is float or (type(right) is float and right):
            return SERVICES["quotient"](whole.tracer, left, right)
        return _float_operation(left, right, operator.truediv)

    def compared(function: Any, ufunc: Any) -> Any:
        def operate(self: SymInt, other: Any) -> Any:
            if _is_int(other):
                try:
                    return bool(function(self.extent, as_extent(other)))
                except UnknownSizeError:  # iterations differ in it
                    return SERVICES["ints"](self.tracer, ufunc, self, other)
            if type(other) in (float, complex):
                return function(int(self), other)
            return NotImplemented

        return operate

    for name in ("add", "sub", "mul", "floordiv", "mod"):
        function = getattr(operator, name)
        setattr(SymInt, f"__{name}__", with_ints(function, is_swapped=False))
        setattr(SymInt, f"__r{name}__", with_ints(function, is_swapped=True))
    for name in ("lshift", "rshift", "and_", "or_", "xor", "divmod"):
        function = divmod if name == "divmod" else getattr(operator, name)
        setattr(SymInt, f"__{name.strip('_')}__", with_numbers(function, is_swapped=False))
        setattr(SymInt, f"__r{name.strip('_')}__", with_numbers(function, is_swapped=True))
    for name, ufunc in COMPARISONS.items():
        setattr(SymInt, f"__{name}__", compared(getattr(operator, name), ufunc))
    for name, function in (("truediv", divide), ("rtruediv", lambda self, other: divide(other, self))):
        setattr(SymInt, f"__{name}__", function)


_operators()
