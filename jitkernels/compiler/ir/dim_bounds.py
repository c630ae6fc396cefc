"""Between which bounds extents lie that move from round to round of a loop, and what extents are made of."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations

from jitkernels.compiler.ir import dim_proofs as proofs
from jitkernels.compiler.ir.clamped_dims import EXTREMES, has_clamps, larger, outermost, smaller, substituted
from jitkernels.compiler.ir.symbolic_dims import (
    BY_LIMITS,
    Atom,
    Extent,
    Number,
    evaluated,
    exact_quotient,
    is_moving,
    made,
    opaque,
    same,
    symbols_of,
    terms_of,
    value_of,
)  # fmt: skip
from jitkernels.compiler.ir.unsupported import UnknownSizeError

FAR = 2**40
"""What no extent is: bounds of ints of which nothing is known."""


def limit(extent: Number, *, is_upper: bool) -> Number | None:
    """A bound of an extent in which nothing moves; None if there is none."""
    while is_moving(extent):
        atom = outermost(extent, (*EXTREMES, "floordiv"), moving_only=True)
        if atom is not None and atom.operation != "floordiv":
            return _limit_of_split(extent, atom, is_upper=is_upper)
        bounds = None if atom is None else _limits_of_quotient(atom)
        found = (
            proofs.without_youngest(extent, is_upper=is_upper)
            if atom is None
            else None
            if bounds is None
            else proofs.replaced(extent, atom, bounds, is_upper=is_upper)
        )
        if found is None:
            return None
        extent = found
    return extent


def _limits_of_quotient(atom: Atom) -> tuple[Number, Number] | None:
    if type(atom.right) is not int or atom.right < 1:
        return None
    low, high = (limit(atom.left, is_upper=one) for one in (False, True))
    return None if low is None or high is None else (low // atom.right, high // atom.right)


def _limit_of_split(extent: Extent, atom: Atom, *, is_upper: bool) -> Number | None:
    parts = proofs.split(extent, atom)
    if parts is None:
        return None
    found = [limit(one, is_upper=is_upper) for one in (parts.one, parts.other)]
    known = [one for one in found if one is not None]
    if parts.is_max != is_upper:  # either of both is a bound
        pick = min if is_upper else max
        return pick(known, key=value_of) if known else None
    if len(known) < len(found):
        return None
    for one, other in (known, known[::-1]):
        if proofs.needs(one - other) == []:
            return one if is_upper else other
    return (larger if is_upper else smaller)(*known)


def cases(extents: Sequence[Number]) -> list[Sequence[Number]] | None:
    """All that some extents are together, with nothing that moves; None where what moves in them has many values."""
    moving = {name: one.scope for one in extents if isinstance(one, Extent) and is_moving(one)
              for name in symbols_of(one) & one.scope.moving.keys()}  # fmt: skip
    if not moving:
        return [extents]
    name, scope = next(iter(moving.items()))
    found: list[Sequence[Number]] = []
    for value in scope.few.get(name, ()):
        known = [_with_value(one, name, value) for one in extents]
        more = None if None in known else cases([one for one in known if one is not None])
        if more is None:
            return None
        found += more
    return found or None


def _with_value(extent: Number, name: str, value: Number) -> Number | None:
    """An extent for a value of a symbol; None where it is more than a polynomial of that."""
    if name not in symbols_of(extent):
        return extent
    found: Number = 0
    for monomial, count in terms_of(extent).items():
        part: Number = count
        for atom in monomial:
            if atom.operation and name in symbols_of(made({(atom,): 1}, extent.scope)):
                return None
            part = part * (value if atom.text == name else made({(atom,): 1}, extent.scope))
        found = found + part
    return found


def moving_decided(apart: Extent, sign: str) -> bool:
    """What `is_surely` tells. Raises UnknownSizeError where iterations differ, or may."""
    found = is_surely(apart, sign)
    if found is None:
        raise UnknownSizeError("the size of an array differs from round to round, and it is not known how")
    return found


def is_surely(apart: Number, sign: str) -> bool | None:
    """Whether an extent is ``== 0``, ``>= 0`` or ``> 0`` in all iterations of this call; None where that may differ.

    What holds in this call, and not in all, becomes a guard.
    """
    if not is_moving(apart):
        return bool(apart == 0 if sign == "==" else apart >= 0 if sign == ">=" else apart > 0)
    if sign == "==":
        answers = [([apart - 1], False), ([-apart - 1], False), ([apart, -apart], True)]
    else:
        least = int(sign == ">")
        answers = [([apart - least], True), ([least - 1 - apart], False)]
    failing: list[Extent] = []
    found = [(needs, answer) for extents, answer in answers if (needs := _all_needs(extents, failing)) is not None]
    if not found and sign == "==" and _is_zero_by_relation(apart):
        return True
    if not found:
        for one in failing:  # calls in which one of these holds have faster code
            if abs(one.value) < FAR:
                one.guard(-one, ">", is_choice=True)
        return None
    needs, answer = min(found, key=lambda one: len(one[0]) > 0)  # without guards if that will do
    for one in needs:
        one.guard(one, ">=")
    return answer


def _is_zero_by_relation(apart: Extent) -> bool:
    """Whether an extent is zero in all calls with a relation of two sizes that this call has, which becomes a guard.

    As ``N == x.shape[0]``, where slices of arrays of both sizes are clamped. Relations are equality, multiples, and a
    constant difference, in this order.
    """
    scope = apart.scope
    names = [name for name in sorted(symbols_of(apart)) if name not in scope.moving and name[0] != "s"]
    symbols = {name: made({(Atom(name),): 1}, scope) for name in names}
    values = scope.values
    relations: list[tuple[int, str, Number]] = []
    for one, other in permutations(names, 2):
        if values[one] >= values[other]:
            times, rest = divmod(values[one], values[other])
            if not rest:
                relations.append((int(times > 1), one, symbols[other] * times))
            relations.append((2, one, symbols[other] + (values[one] - values[other])))
    for _, name, other_size in sorted(relations, key=lambda one: one[0]):
        if same(substituted(apart, name, other_size), 0):
            guarded = symbols[name] - other_size
            guarded.guard(guarded, "==")
            return True
    return False


def _all_needs(extents: Sequence[Number], failing: list[Extent]) -> list[Extent] | None:
    found = [proofs.needs(one, failing=failing) for one in extents]
    known = [one for one in found if one is not None]
    return [one for needs in known for one in needs] if len(known) == len(found) else None


def known_with_clamps(apart: Extent, sign: str) -> bool | None:
    """What clamps tell of an extent in all calls, where one is part of it."""
    if not has_clamps(apart):
        return None
    if is_surely_at_least(apart, int(sign != ">=")):
        return sign != "=="
    return False if sign != "==" and is_surely_at_least(-apart, int(sign == ">=")) else None


def is_surely_at_least(extent: Number, number: int) -> bool:
    """Whether an extent is no less than a number in all calls and iterations."""
    return proofs.needs(extent - number) == []


def product_now(extents: Iterable[Number]) -> int:
    """The product in the traced call, without a guard: no polynomial is made, which would be one of high degree."""
    return math.prod(map(value_of, extents))


class Values:
    """What extents are for some values of their symbols, to which loops add those that move."""

    def __init__(self, symbols: Mapping[str, int]) -> None:
        self.symbols = dict(symbols)

    def __call__(self, extent: Number) -> int:
        return evaluated(extent, self.symbols)


def parted(extent: Number) -> tuple[int, Number, int]:
    """What an extent is made of: a whole number as large as can be, times an extent, and a number added to that."""
    terms = dict(terms_of(extent))
    more = terms.pop((), 0)
    if not isinstance(extent, Extent):
        return 1, 0, more
    times = math.gcd(*terms.values())
    return times, exact_quotient(made(terms, extent.scope), times), more


def least(one: Number, other: Number) -> Number:
    """The smaller one, which calls decide for themselves."""
    return _either("min", one, other)


def largest(one: Number, other: Number) -> Number:
    """The larger one, which calls decide for themselves."""
    return _either("max", one, other)


def scaled(extent: Extent, factor: float) -> Number:
    """The whole part of a product with a float, as ``int(extent * factor)`` has it."""
    return opaque("scaled", extent, factor, extent.scope)


def _either(operation: str, one: Number, other: Number) -> Number:
    apart = one - other
    if not isinstance(apart, Extent):
        return (one if apart <= 0 else other) if operation == "min" else (one if apart >= 0 else other)
    return opaque(operation, one, other, apart.scope)


BY_LIMITS.update(decided=moving_decided, limit=limit, known=known_with_clamps)
