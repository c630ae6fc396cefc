"""Derived extents as quasi-affine expressions, which the dispatcher evaluates in machine code.

`KernelAttr.derive` is traced once per schema with symbolic integers: sums, multiples and floor divisions by constants.
A comparison is taken as if extents were large, and becomes a condition; calls that do not meet it go to Python.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jitkernels.errors import AttrError
from jitkernels.runtime.abi_layout import MAX_EXTENT_TERMS, DerivedSpec

if TYPE_CHECKING:
    from jitkernels.attrs.schema.base import KernelAttr


class QuasiAffine:
    """``(constant + sum of coefficient * symbol) // divisor + more``; raises ValueError for what is of another form.

    `least`: a constant that is the result where the rest is less, of a divisor of 1; -1 for none.
    """

    __slots__ = ("constant", "divisor", "least", "more", "signs", "terms")

    def __init__(
        self, signs: "list[QuasiAffine]", terms: Mapping[str, int], constant: int = 0, divisor: int = 1, more: int = 0
    ) -> None:
        """`signs`: all expressions of the trace that must not be negative."""
        self.signs, self.terms, self.constant, self.divisor, self.more = signs, dict(terms), constant, divisor, more
        self.least = -1

    def at_least(self, least: int) -> "QuasiAffine":
        """The maximum of the expression and a constant."""
        if self.divisor != 1 or least < 0 or self.least >= 0:
            raise ValueError("a maximum of another expression than a sum, or of a negative number")
        result = QuasiAffine(self.signs, self.terms, self.constant)
        result.least = least
        return result

    def __add__(self, other: Any) -> "QuasiAffine":
        self._check_sum()
        if isinstance(other, QuasiAffine):
            other._check_sum()
            if self.divisor != 1 or other.divisor != 1:
                raise ValueError("a sum of quotients")
            total = {name: self.terms.get(name, 0) + other.terms.get(name, 0) for name in {**self.terms, **other.terms}}
            return QuasiAffine(self.signs, total, self.constant + other.constant)
        if self.divisor != 1:
            return QuasiAffine(self.signs, self.terms, self.constant, self.divisor, self.more + _integer(other))
        return QuasiAffine(self.signs, self.terms, self.constant + _integer(other))

    __radd__ = __add__

    def _check_sum(self) -> None:
        if self.least >= 0:
            raise ValueError("an expression of a maximum")

    def __mul__(self, other: Any) -> "QuasiAffine":
        self._check_sum()
        if self.divisor != 1:
            raise ValueError("a multiple of a quotient")
        factor = _integer(other)
        terms = {name: factor * coefficient for name, coefficient in self.terms.items()}
        return QuasiAffine(self.signs, terms, factor * self.constant)

    __rmul__ = __mul__

    def __neg__(self) -> "QuasiAffine":
        return self * -1

    def __sub__(self, other: Any) -> "QuasiAffine":
        return self.__add__(-other)

    def __rsub__(self, other: Any) -> "QuasiAffine":
        return self.__neg__().__add__(other)

    def __floordiv__(self, other: Any) -> "QuasiAffine":
        self._check_sum()
        divisor = _integer(other)
        if self.divisor != 1 or divisor < 1:
            raise ValueError("a quotient of a quotient, or by another number than a positive one")
        return QuasiAffine(self.signs, self.terms, self.constant, divisor)

    def __ge__(self, other: Any) -> bool:
        self.signs.append(self - other)
        return True

    def __gt__(self, other: Any) -> bool:
        return self.__ge__(other + 1)

    def __lt__(self, other: Any) -> bool:
        return not self >= other

    def __le__(self, other: Any) -> bool:
        return not self > other

    def __eq__(self, other: object) -> bool:
        raise ValueError("a comparison for equality")

    def __bool__(self) -> bool:
        raise ValueError("a condition")

    __hash__ = None  # type: ignore[assignment]  # unlike values of one symbol

    def words(self, target: int, symbols: Sequence[str], flags: Mapping[str, tuple[int, bool]]) -> list[int]:
        """The words of a `DerivedSpec`. flags: the factors of bools in the options of a key, and their defaults.

        Raises ValueError for too many terms.
        """
        terms: list[int] = []
        constant = self.constant
        for name, coefficient in self.terms.items():
            if name in flags:  # options count from the default
                factor, default = flags[name]
                constant += coefficient * default
                terms += [-coefficient if default else coefficient, 0, factor]
            else:
                terms += [coefficient, symbols.index(name), 0]
        count = len(self.terms)
        if count > MAX_EXTENT_TERMS:
            raise ValueError(f"{count} terms of an extent")
        return [
            target,
            constant,
            self.divisor,
            self.more,
            self.least,
            count,
            *terms,
            *[0] * (3 * (MAX_EXTENT_TERMS - count)),
        ]


def _integer(value: Any) -> int:
    if not isinstance(value, int):
        raise ValueError(f"an extent derived from {value!r}")  # as all forms that have no words
    return int(value)


class Extents:
    """The integers of a schema: its fields `symbols`, and those that are derived, traced.

    `flags`: the bool options of which the latter may be expressions, too. Raises ValueError for other expressions.
    """

    def __init__(self, schema: "type[KernelAttr]", symbols: Sequence[str], flags: Sequence[str]) -> None:
        self.symbols, self.derived, self.one_more = symbols, schema.derived, schema.one_more
        self._signs: list[QuasiAffine] = []
        self._values: Mapping[str, Any] = {}
        if not self.derived:
            return
        try:
            self._values = schema.derive({name: QuasiAffine(self._signs, {name: 1}) for name in (*symbols, *flags)})
        except (KeyError, TypeError, AttrError) as error:
            raise ValueError(f"derived from more than extents and flags: {error}") from error

    @property
    def names(self) -> list[str]:
        """All of them, in the order of the C function."""
        return [*self.symbols, *self.derived]

    def words(self, flags: Mapping[str, tuple[int, bool]]) -> list[list[int]]:
        """The words of all expressions, conditions first."""
        symbols = self.names
        found = [sign.words(-1, symbols, flags) for sign in self._signs]
        for name in self.derived:
            value = self._values[name]
            form = value if isinstance(value, QuasiAffine) else QuasiAffine([], {}, _integer(value))
            found.append(form.words(symbols.index(name), symbols, flags))
        assert all(len(words) == DerivedSpec.WORDS for words in found), "all have the same layout"
        return found
