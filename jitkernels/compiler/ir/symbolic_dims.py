"""Symbolic extents: integer expressions over symbols, each with its value in the traced call.

A symbol stands for an extent of at least two: zero and one are constants of the code, since NumPy treats them
specially. The values of the traced call decide comparisons, and the answer becomes a guard: the code serves all calls
for which every guard holds, whatever their sizes.
"""

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from jitkernels.compiler.ir.unsupported import UnknownSizeError
from jitkernels.core.frozen_dataclass import frozen_dataclass

Number = Any
"""An int or an `Extent`."""
Monomial = tuple["Atom", ...]
BOUNDS: dict[str, Any] = {}
"""Functions of `dim_bounds` on loop-variant extents, which imports this module."""


@frozen_dataclass
class Atom:
    """A symbol, whose `operation` is empty, or a quotient, remainder, minimum or maximum of two extents.

    Or ``scaled``, the integral part of a product with a float, which is `right`.
    """

    text: str
    operation: str = field(default="", compare=False)
    left: Number = field(default=0, compare=False)
    right: Number = field(default=0, compare=False)


COMPARISONS: dict[str, Callable[[Any, int], bool]] = {
    "==": operator.eq, "!=": operator.ne, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


class Guard(NamedTuple):
    """A condition of the code: ``extent == 0``, ``!= 0``, ``> 0`` or ``>= 0``.

    `is_choice`: the code is specialized for speed only, and correct for all calls.
    """

    extent: "Extent"
    sign: str
    is_choice: bool = False

    def holds(self, values: Mapping[str, int]) -> bool:
        """Whether the condition holds for values of the symbols."""
        return COMPARISONS[self.sign](evaluated(self.extent, values), 0)


@dataclass
class Scope:
    """The symbols of one trace with their values in the traced call, and the guards on them.

    `loop_variant` symbols differ between iterations of a loop, between two bounds of older symbols; their value is a
    guess, and no guard depends on them. `few` has all values of some. `sizes` are products of extents that count the
    elements of an array, as the names of factors. `has_scalar_loops`: loops of scalars became dimensions of loop nests,
    which round products as Python does (see `codegen.core.fma_contraction`).
    """

    values: dict[str, int] = field(default_factory=dict)
    guards: dict[tuple[Any, str], Guard] = field(default_factory=dict)
    loop_variant: dict[str, tuple["Number", "Number"]] = field(default_factory=dict)
    few: dict[str, tuple["Number", ...]] = field(default_factory=dict)
    sizes: set[tuple[str, ...]] = field(default_factory=set)
    has_scalar_loops: bool = False

    def symbol(self, name: str, value: int) -> "Extent":
        """A new symbol; expected at least 2."""
        self.values[name] = value
        return Extent({(Atom(name),): 1}, self)


class Extent:
    """An integer polynomial of symbols. Arithmetic gives an int where nothing symbolic is left.

    Comparisons, ``bool`` and ``int`` answer with the values of the traced call, and guard the answer.
    """

    __slots__ = ("key", "scope", "terms", "value")
    key: Any
    """Equal keys are equal for all values of the symbols."""
    terms: dict[Monomial, int]
    value: int

    def __init__(self, terms: dict[Monomial, int], scope: Scope) -> None:
        self.terms, self.scope = terms, scope
        self.value = _value_of_terms(terms, scope.values, value_of)
        self.key = tuple(sorted(((tuple(a.text for a in m), c) for m, c in terms.items())))

    def _with(self, other: Number, factor: int) -> Number:
        terms = dict(self.terms)
        for monomial, count in terms_of(other).items():
            terms[monomial] = terms.get(monomial, 0) + factor * count
        return polynomial(terms, self.scope)

    def __add__(self, other: Number) -> Number:
        return self._with(other, 1) if _is_whole(other) else self.specialized_value() + other

    __radd__ = __add__

    def __sub__(self, other: Number) -> Number:
        return self._with(other, -1) if _is_whole(other) else self.specialized_value() - other

    def __rsub__(self, other: Number) -> Number:
        return (self * -1)._with(other, 1) if _is_whole(other) else other - self.specialized_value()

    def __mul__(self, other: Number) -> Number:
        if not _is_whole(other):
            return self.specialized_value() * other
        terms: dict[Monomial, int] = {}
        for value, count in self.terms.items():
            for two, times in terms_of(other).items():
                product = tuple(sorted((*value, *two), key=operator.attrgetter("text")))
                terms[product] = terms.get(product, 0) + count * times
        return polynomial(terms, self.scope)

    __rmul__ = __mul__

    def __neg__(self) -> Number:
        return self * -1

    def __pos__(self) -> Number:
        return self

    def __floordiv__(self, other: Number) -> Number:
        return self._opaque("floordiv", self, other)

    def __rfloordiv__(self, other: Number) -> Number:
        return self._opaque("floordiv", other, self)

    def __mod__(self, other: Number) -> Number:
        return self._opaque("mod", self, other)

    def __rmod__(self, other: Number) -> Number:
        return self._opaque("mod", other, self)

    def __divmod__(self, other: Number) -> tuple[Number, Number]:
        return self // other, self % other

    def _opaque(self, operation: str, left: Number, right: Number) -> Number:
        if not (_is_whole(left) and _is_whole(right)):
            left, right = int(left), int(right)
            return left // right if operation == "floordiv" else left % right
        if type(right) is int and right != 0:
            quotient = exact_quotient(left, right)
            if quotient is not None:
                return quotient if operation == "floordiv" else 0
        if right == 0:
            raise ZeroDivisionError("integer division or modulo by zero")
        return opaque(operation, left, right, self.scope)

    def specialized_value(self) -> int:
        """The value in the traced call, to which a guard specializes the code."""
        self.guard(self - self.value, "==")
        return self.value

    __int__ = __index__ = specialized_value

    def __float__(self) -> float:
        return float(self.specialized_value())

    def __truediv__(self, other: Number) -> float:
        return float(self.specialized_value() / other)

    def __rtruediv__(self, other: Number) -> float:
        return float(other / self.specialized_value())

    def __pow__(self, other: Number) -> Number:
        if type(other) is int and 0 <= other <= 4:
            result: Number = 1
            for _ in range(other):
                result = result * self
            return result
        return self.specialized_value() ** other

    def __rpow__(self, other: Number) -> Number:
        return other ** self.specialized_value()

    def __abs__(self) -> Number:
        return self if self >= 0 else -self

    def guard(self, extent: Number, sign: str, *, is_choice: bool = False) -> None:
        """Specialize the code to calls for which ``extent <sign> 0`` holds."""
        if is_loop_variant(extent):
            if not is_choice:
                raise UnknownSizeError("a size that differs from iteration to iteration decides what is done")
        elif isinstance(extent, Extent):
            key, known = (extent.key, sign), self.scope.guards
            if key not in known or (known[key].is_choice and not is_choice):
                known[key] = Guard(extent, sign, is_choice)

    def _decided(self, other: Number, sign: str, opposite: str) -> bool:
        """Whether ``self - other <sign> 0``; this, or the opposite, becomes a guard."""
        if not _is_whole(other):
            return bool(COMPARISONS[sign](self.specialized_value() - other, 0))
        apart = self - other
        if not isinstance(apart, Extent):
            return COMPARISONS[sign](apart, 0)
        least = least_of(apart)
        if least is not None and (least > 0 or (least == 0 and sign == ">=")):
            return sign != "=="
        if is_loop_variant(apart):
            return bool(BOUNDS["decided"](apart, sign))
        if (known := BOUNDS["known"](apart, sign)) is not None:
            return bool(known)
        holds = COMPARISONS[sign](apart.value, 0)
        if holds:
            self.guard(apart, sign)
        else:
            self.guard(apart if opposite == "!=" else -apart, opposite)
        return holds

    def __eq__(self, other: object) -> bool:
        if not _is_whole(other) and not isinstance(other, float):
            return NotImplemented
        return self._decided(other, "==", "!=")

    def __gt__(self, other: Number) -> bool:
        return self._decided(other, ">", ">=")

    def __ge__(self, other: Number) -> bool:
        return self._decided(other, ">=", ">")

    def __lt__(self, other: Number) -> bool:
        return not self >= other

    def __le__(self, other: Number) -> bool:
        return not self > other

    def __bool__(self) -> bool:
        return self != 0

    def __hash__(self) -> int:
        return hash(self.specialized_value())

    def __str__(self) -> str:
        parts = []
        for names, count in self.key:
            factors = [*([str(count)] if count != 1 or not names else []), *names]
            parts.append("*".join(factors))
        return " + ".join(parts) or "0"

    def __repr__(self) -> str:
        return f"Extent({self}, now {self.value})"

    def __format__(self, spec: str) -> str:
        return str(self) if not spec else format(self.specialized_value(), spec)


def is_loop_variant(extent: Number) -> bool:
    """Whether an extent differs between iterations of a loop."""
    return (
        isinstance(extent, Extent)
        and bool(extent.scope.loop_variant)
        and not extent.scope.loop_variant.keys().isdisjoint(symbols_of(extent))
    )


def same(left: Number, right: Number) -> bool:
    """Whether two extents are equal for all values of their symbols; nothing is guarded."""
    return bool(key_of(left) == key_of(right))


def same_shape(left: Iterable[Number], right: Iterable[Number]) -> bool:
    """Whether two shapes are equal for all values of their symbols."""
    return key_of_shape(left) == key_of_shape(right)


def key_of(extent: Number) -> Any:
    return extent.key if isinstance(extent, Extent) else extent


def key_of_shape(shape: Iterable[Number]) -> tuple[Any, ...]:
    return tuple(key_of(extent) for extent in shape)


def bare(extent: Number) -> str | None:
    """The name of the symbol that an extent consists of; None for an expression."""
    if not isinstance(extent, Extent) or len(extent.terms) != 1:
        return None
    ((monomial, count),) = extent.terms.items()
    return monomial[0].text if count == 1 and len(monomial) == 1 and not monomial[0].operation else None


def value_of(extent: Number) -> int:
    """The value in the traced call, without a guard."""
    return extent.value if isinstance(extent, Extent) else extent


def is_at_least_now(extent: Number, bound: int) -> bool:
    """Whether an extent is at least `bound` in the traced call; a guard specializes the code to the answer."""
    is_so = value_of(extent) >= bound
    if isinstance(extent, Extent):
        extent.guard(extent - bound if is_so else bound - 1 - extent, ">=", is_choice=True)
    return is_so


def product(extents: Iterable[Number]) -> Number:
    result: Number = 1
    for extent in extents:
        result = result * extent
    return result


def least_of(extent: Number) -> int | None:
    """A lower bound, where symbols are at least 2, but strides ("s...") may be anything; None if there is none."""
    if is_loop_variant(extent):
        low = BOUNDS["limit"](extent, is_upper=False)
        return None if low is None else least_of(low)
    if not isinstance(extent, Extent):
        return int(extent)
    total = 0
    for monomial, count in extent.terms.items():
        if monomial and (count < 0 or any(atom.operation or atom.text[0] == "s" for atom in monomial)):
            return None
        total += count * 2 ** len(monomial)
    return total


def is_at_least(extent: Number, bound: int) -> bool:
    """Whether ``extent >= bound`` for all values of the symbols; nothing is guarded."""
    least = least_of(extent - bound)
    return least is not None and least >= 0


def evaluated(extent: Number, values: Mapping[str, int]) -> int:
    """The value of an extent for values of its symbols."""
    if not isinstance(extent, Extent):
        return int(extent)
    return _value_of_terms(extent.terms, values, lambda part: evaluated(part, values))


def _value_of_terms(terms: Mapping[Monomial, int], values: Mapping[str, int], of: Callable[[Number], int]) -> int:
    """The value of a polynomial; `of` gives that of an extent in one of its atoms."""
    total = 0
    for monomial, count in terms.items():
        for atom in monomial:
            if not atom.operation:
                count *= values[atom.text]
            elif atom.operation == "scaled":
                count *= int(of(atom.left) * atom.right)
            else:
                count *= int(OPERATIONS_OF_ATOMS[atom.operation](of(atom.left), of(atom.right)))
        total += count
    return total


OPERATIONS_OF_ATOMS: dict[str, Callable[[Any, Any], Any]] = {
    "floordiv": operator.floordiv, "mod": operator.mod, "min": min, "max": max,
}  # fmt: skip


def symbols_of(extent: Number) -> set[str]:
    if not isinstance(extent, Extent):
        return set()
    symbols: set[str] = set()
    for monomial in extent.terms:
        for atom in monomial:
            symbols |= symbols_of(atom.left) | symbols_of(atom.right) if atom.operation else {atom.text}
    return symbols


def _is_whole(value: object) -> bool:
    return isinstance(value, Extent | int) or (
        hasattr(value, "__index__") and not hasattr(value, "__array_interface__")
    )


def terms_of(value: Number) -> dict[Monomial, int]:
    return value.terms if isinstance(value, Extent) else {(): operator.index(value)} if value else {}


def polynomial(terms: dict[Monomial, int], scope: Scope) -> Number:
    """The extent of these terms; an int where none is symbolic."""
    nonzero = {monomial: count for monomial, count in terms.items() if count}
    return nonzero.get((), 0) if nonzero.keys() <= {()} else Extent(nonzero, scope)


def opaque(operation: str, left: Number, right: Number, scope: Scope) -> Number:
    return polynomial({(Atom(f"{operation}({left}, {right})", operation, left, right),): 1}, scope)


def exact_quotient(extent: Number, divisor: int) -> Number | None:
    if not isinstance(extent, Extent):
        return None
    if any(count % divisor for count in extent.terms.values()):
        return None
    return polynomial({monomial: count // divisor for monomial, count in extent.terms.items()}, extent.scope)
