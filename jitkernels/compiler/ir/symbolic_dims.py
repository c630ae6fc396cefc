"""Extents that are not known when code is made: integer expressions over symbols, each with the value it has now.

A symbol stands for an extent of at least two: zero and one are numbers of the code, since NumPy treats them in ways of
their own. A question about extents is answered by the values of the call that is traced, and the answer becomes a guard
of the code: it serves all calls for which every guard holds, whatever their sizes.
"""

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from jitkernels.compiler.ir.unsupported import UnknownSizeError
from jitkernels.core.frozen_dataclass import record

Number = Any
"""An int or an `Extent`."""
Monomial = tuple["Atom", ...]
BY_LIMITS: dict[str, Any] = {}
"""What `limits` tells of extents that move, which is made of what is here."""


@record
class Atom:
    """A symbol, of which `operation` is empty, or what no polynomial is: a quotient, remainder, minimum or maximum.

    Or ``scaled``, the whole part of a product with a float, which is `right`.
    """

    text: str
    operation: str = field(default="", compare=False)
    left: Number = field(default=0, compare=False)
    right: Number = field(default=0, compare=False)


class Guard(NamedTuple):
    """What code is made for: ``extent == 0``, ``!= 0``, ``> 0`` or ``>= 0``.

    `is_choice`: the code is made so for the sake of speed, and what is computed is right for all calls.
    """

    extent: "Extent"
    sign: str
    is_choice: bool = False

    def holds(self, values: Mapping[str, int]) -> bool:
        """Whether it does for some values of the symbols."""
        now = evaluated(self.extent, values)
        match self.sign:
            case "==":
                return now == 0
            case "!=":
                return now != 0
            case ">":
                return now > 0
        return now >= 0


@dataclass
class Scope:
    """Symbols of one trace, their values now, and what was decided by these.

    Those that are `moving` have another value in each round of a loop, between bounds of older symbols; the value now
    is a guess. No guard is about them: what their bounds do not tell is not known. `few` has all values of some.
    """

    values: dict[str, int] = field(default_factory=dict)
    guards: dict[tuple[Any, str], Guard] = field(default_factory=dict)
    moving: dict[str, tuple["Number", "Number"]] = field(default_factory=dict)
    few: dict[str, tuple["Number", ...]] = field(default_factory=dict)

    def symbol(self, name: str, value: int) -> "Extent":
        """A new symbol; expected at least 2."""
        self.values[name] = value
        return Extent({(Atom(name),): 1}, self)


class Extent:
    """An integer polynomial of symbols. Arithmetic gives an int where nothing symbolic is left.

    Comparisons, ``bool`` and ``int`` answer with the values of the traced call, and guard the answer.
    """

    __slots__ = ("_key", "scope", "terms", "value")
    terms: dict[Monomial, int]
    value: int

    def __init__(self, terms: dict[Monomial, int], scope: Scope) -> None:
        self.terms, self.scope = terms, scope
        self.value = evaluated(self, scope.values)
        self._key = tuple(sorted(((tuple(a.text for a in m), c) for m, c in terms.items())))

    @property
    def key(self) -> Any:
        """What identifies the expression: equal keys are equal for all values of the symbols."""
        return self._key

    def _with(self, other: Number, factor: int) -> Number:
        terms = dict(self.terms)
        for monomial, count in terms_of(other).items():
            terms[monomial] = terms.get(monomial, 0) + factor * count
        return made(terms, self.scope)

    def __add__(self, other: Number) -> Number:
        return self._with(other, 1) if _is_whole(other) else self.value_now() + other

    __radd__ = __add__

    def __sub__(self, other: Number) -> Number:
        return self._with(other, -1) if _is_whole(other) else self.value_now() - other

    def __rsub__(self, other: Number) -> Number:
        return (self * -1)._with(other, 1) if _is_whole(other) else other - self.value_now()

    def __mul__(self, other: Number) -> Number:
        if not _is_whole(other):
            return self.value_now() * other
        terms: dict[Monomial, int] = {}
        for one, count in self.terms.items():
            for two, times in terms_of(other).items():
                product = tuple(sorted((*one, *two), key=operator.attrgetter("text")))
                terms[product] = terms.get(product, 0) + count * times
        return made(terms, self.scope)

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

    def value_now(self) -> int:
        """The value of the traced call; from now on the code is for this one alone."""
        self.guard(self - self.value, "==")
        return self.value

    __int__ = __index__ = value_now

    def __float__(self) -> float:
        return float(self.value_now())

    def __truediv__(self, other: Number) -> float:
        return float(self.value_now() / other)

    def __rtruediv__(self, other: Number) -> float:
        return float(other / self.value_now())

    def __pow__(self, other: Number) -> Number:
        if type(other) is int and 0 <= other <= 4:
            result: Number = 1
            for _ in range(other):
                result = result * self
            return result
        return self.value_now() ** other

    def __rpow__(self, other: Number) -> Number:
        return other ** self.value_now()

    def __abs__(self) -> Number:
        return self if self >= 0 else -self

    def guard(self, extent: Number, sign: str, *, is_choice: bool = False) -> None:
        """Let the code be for calls alone of which that holds."""
        if is_moving(extent):
            if not is_choice:
                raise UnknownSizeError("a size that differs from round to round decides what is done")
        elif isinstance(extent, Extent):
            key, known = (extent.key, sign), self.scope.guards
            if key not in known or (known[key].is_choice and not is_choice):
                known[key] = Guard(extent, sign, is_choice)

    def _decided(self, other: Number, sign: str, opposite: str) -> bool:
        """Whether ``self - other`` is as `sign` says; one of both becomes a guard."""
        if not _is_whole(other):
            return _holds(self.value_now() - other, sign)
        apart = self - other
        if not isinstance(apart, Extent):
            return _holds(apart, sign)
        least = least_of(apart)
        if least is not None and (least > 0 or (least == 0 and sign == ">=")):
            return sign != "=="
        if is_moving(apart):
            return bool(BY_LIMITS["decided"](apart, sign))
        if (known := BY_LIMITS["known"](apart, sign)) is not None:
            return bool(known)
        holds = _holds(apart.value, sign)
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
        return hash(self.value_now())

    def __str__(self) -> str:
        parts = []
        for names, count in self._key:
            factors = [*([str(count)] if count != 1 or not names else []), *names]
            parts.append("*".join(factors))
        return " + ".join(parts) or "0"

    def __repr__(self) -> str:
        return f"Extent({self}, now {self.value})"

    def __format__(self, spec: str) -> str:
        return str(self) if not spec else format(self.value_now(), spec)


def is_moving(extent: Number) -> bool:
    """Whether an extent differs from round to round of a loop."""
    return (
        isinstance(extent, Extent)
        and bool(extent.scope.moving)
        and not extent.scope.moving.keys().isdisjoint(symbols_of(extent))
    )


def same(one: Number, other: Number) -> bool:
    """Whether two extents are equal for all values of their symbols; nothing is guarded."""
    return bool(key_of(one) == key_of(other))


def same_shape(one: Iterable[Number], other: Iterable[Number]) -> bool:
    """Whether two shapes are."""
    return key_of_shape(one) == key_of_shape(other)


def key_of(extent: Number) -> Any:
    return extent.key if isinstance(extent, Extent) else extent


def key_of_shape(shape: Iterable[Number]) -> tuple[Any, ...]:
    return tuple(key_of(extent) for extent in shape)


def bare(extent: Number) -> str | None:
    """The name of a symbol that an extent is, if it is nothing else."""
    if not isinstance(extent, Extent) or len(extent.terms) != 1:
        return None
    ((monomial, count),) = extent.terms.items()
    return monomial[0].text if count == 1 and len(monomial) == 1 and not monomial[0].operation else None


def value_of(extent: Number) -> int:
    """The value in the traced call, without a guard."""
    return extent.value if isinstance(extent, Extent) else extent


def is_at_least_now(extent: Number, bound: int) -> bool:
    """Whether an extent is, for the traced call; code is for calls on the same side."""
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
    """A bound from below, where symbols are at least 2, but strides ("s...") may be anything; None if there is none."""
    if is_moving(extent):
        low = BY_LIMITS["limit"](extent, is_upper=False)
        return None if low is None else least_of(low)
    if not isinstance(extent, Extent):
        return int(extent)
    total = 0
    for monomial, count in extent.terms.items():
        if monomial and (count < 0 or any(atom.operation or atom.text[0] == "s" for atom in monomial)):
            return None
        total += count * 2 ** len(monomial)
    return total


def evaluated(extent: Number, values: Mapping[str, int]) -> int:
    """What an extent is for some values of its symbols."""
    if not isinstance(extent, Extent):
        return int(extent)
    total = 0
    for monomial, count in extent.terms.items():
        term = count
        for atom in monomial:
            term *= _atom(atom, values)
        total += term
    return total


def _atom(atom: Atom, values: Mapping[str, int]) -> int:
    if not atom.operation:
        return values[atom.text]
    if atom.operation == "scaled":
        return int(evaluated(atom.left, values) * atom.right)
    left, right = evaluated(atom.left, values), evaluated(atom.right, values)
    match atom.operation:
        case "floordiv":
            return left // right
        case "mod":
            return left % right
        case "min":
            return min(left, right)
    return max(left, right)


def symbols_of(extent: Number) -> set[str]:
    """The names of the symbols in an extent."""
    if not isinstance(extent, Extent):
        return set()
    found: set[str] = set()
    for monomial in extent.terms:
        for atom in monomial:
            found |= {atom.text} if not atom.operation else symbols_of(atom.left) | symbols_of(atom.right)
    return found


def _is_whole(value: object) -> bool:
    return isinstance(value, Extent | int) or (
        hasattr(value, "__index__") and not hasattr(value, "__array_interface__")
    )


def _holds(apart: Any, sign: str) -> bool:
    return bool(apart == 0 if sign == "==" else apart > 0 if sign == ">" else apart >= 0)


def terms_of(value: Number) -> dict[Monomial, int]:
    return value.terms if isinstance(value, Extent) else {(): operator.index(value)} if value else {}


def made(terms: dict[Monomial, int], scope: Scope) -> Number:
    left = {monomial: count for monomial, count in terms.items() if count}
    if not left:
        return 0
    if set(left) == {()}:
        return left[()]
    return Extent(left, scope)


def opaque(operation: str, left: Number, right: Number, scope: Scope) -> Number:
    return made({(Atom(f"{operation}({left}, {right})", operation, left, right),): 1}, scope)


def exact_quotient(extent: Number, divisor: int) -> Number | None:
    if not isinstance(extent, Extent):
        return None
    if any(count % divisor for count in extent.terms.values()):
        return None
    return made({monomial: count // divisor for monomial, count in extent.terms.items()}, extent.scope)
