"""Between which bounds extents lie that move from round to round of a loop, and what extents are made of."""

import math
from collections.abc import Mapping, Sequence

from jitkernels.graph.extents import (
    BY_LIMITS,
    Extent,
    Number,
    evaluated,
    exact_quotient,
    is_moving,
    least_of,
    made,
    opaque,
    symbols_of,
    terms_of,
)  # fmt: skip
from jitkernels.graph.unknown import UnknownError


def limit(extent: Number, *, is_upper: bool) -> Number | None:
    """A bound of an extent in which nothing moves; None if there is none."""
    while is_moving(extent):
        moving = extent.scope.moving
        youngest = max(symbols_of(extent) & moving.keys(), key=list(moving).index)
        found: Number = 0
        for monomial, count in extent.terms.items():
            own = [atom for atom in monomial if atom.text == youngest]
            rest = [atom for atom in monomial if atom.text != youngest]
            others = made({tuple(rest): 1}, extent.scope)
            if own:
                least = least_of(others)
                if len(own) > 1 or least is None or least < 0:
                    return None
                others = others * moving[youngest][(count > 0) == is_upper]
            elif youngest in symbols_of(others):
                return None
            found = found + others * count
        extent = found
    return extent


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
    """What the bounds tell. That it is not one, or another number, is taken for granted: no code is made for it."""
    low, high = limit(apart, is_upper=False), limit(apart, is_upper=True)
    least = None if low is None else least_of(low)
    most = None if high is None else least_of(-high)
    if sign == "==":
        if (least is not None and least > 0) or (most is not None and most > 0):
            return False
    elif least is not None and least >= (sign == ">"):
        return True
    elif most is not None and most >= (sign == ">="):
        return False
    raise UnknownError("the size of an array differs from round to round, and it is not known how")


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


BY_LIMITS.update(decided=moving_decided, limit=limit)
